"""Tells the controller how a storm against it goes on, so that its page shows that; the storm never waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from apps.cli.snapshot_socket import user_name
from apps.status_client import query

TELL_S = 0.5
TIMEOUT_S = 5.0
MOST_STORMS = 64
"""What the controller takes of the storms that were played already: the last ones."""


class StormTeller:
    """A context within which the controller at `socket` is told, twice a second; nobody is where it is None.

    `about` is what the storm is: `target`, `shape`, `switches`, `sigma_s` and `slo_ms`. A controller that does not
    answer, or does not take it, is told nothing more.
    """

    def __init__(self, socket: Path | None, about: Mapping[str, Any]) -> None:
        self._socket = socket
        self._about = {**about, "begun_s": time.time()}
        self._stage = ("", 0, 0)
        self._joins = 0
        self._fault = ""
        self._played: Sequence[dict[str, Any]] = ()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storm-teller", daemon=True)

    def __enter__(self) -> Self:
        if self._socket is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._fault = (str(error) or "it was interrupted")[:200]
        if self._socket is not None:
            self._is_over.set()
            self._thread.join(2 * TIMEOUT_S)

    def goes_on(self, stage: str, done: int, total: int) -> None:
        """Note how far a stage of the storm is."""
        self._stage = stage, done, total

    def begins(self, joins: int) -> None:
        """Note how many joins the storm has that is played from here on."""
        self._joins = joins

    def played(self, storms: Sequence[Mapping[str, Any]]) -> None:
        """Note what the storms showed that were played, as the command tells them."""
        self._played = [_shortly(each) for each in storms[-MOST_STORMS:]]

    def _run(self) -> None:
        while True:
            is_over = self._is_over.wait(TELL_S)
            if not self._tell("ended" if is_over else "playing") or is_over:
                return

    def _tell(self, state: str) -> bool:
        assert self._socket is not None
        stage, done, total = self._stage
        storm = {
            **self._about,
            **{"state": state, "stage": stage, "done": done, "total": total, "joins": self._joins},
            **{"fault": self._fault, "storms": self._played},
        }
        try:
            answer = query(self._socket, {"do": "storm-told", "storm": storm, "by": user_name()}, TIMEOUT_S)
        except (OSError, ValueError):
            return False
        return isinstance(answer, dict) and "error" not in answer


def _shortly(storm: Mapping[str, Any]) -> dict[str, Any]:
    waits, peak_per_s = storm["waits"], storm["peak_per_s"]
    off = storm["after_port_up"] or {"unserved": 0}
    return {
        "joins": storm["joins"],
        "peak_per_s": peak_per_s if peak_per_s is not None and isfinite(peak_per_s) else None,
        **{name: waits[name] for name in ("p50_ms", "p95_ms", "p99_ms")},
        "unserved": waits["unserved"] + off["unserved"],
        "keeps_goal": storm["keeps_goal"],
    }
