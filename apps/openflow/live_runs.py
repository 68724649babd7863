"""What operators have this controller go through, as readers follow it: a profile of it, and a storm against it.

A storm is played by a command in another process, which tells how it goes on; one that is told of no more is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from apps.status_server import QuestionRefused
from apps.system import system_threading
from controller.snapshot.log import Document, DocumentLog

PROFILE, STORM = "profile", "storm"
LOST_S = 5.0
"""A storm that was not told of for so long goes on no more, as far as anybody knows."""

MOST_STORMS, WORD_LENGTH = 64, 200
PLAYING, ENDED, LOST = "playing", "ended", "lost"

_NUMBER = (int, float)
_STORM_FIELDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("state", "stage", "target", "shape", "fault"), (str,)),
    **dict.fromkeys(("done", "total", "joins", "switches"), (int,)),
    **dict.fromkeys(("begun_s", "sigma_s", "slo_ms"), _NUMBER),
}
_PLAYED_FIELDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("joins", "unserved"), (int,)),
    **dict.fromkeys(("peak_per_s", "p50_ms", "p95_ms", "p99_ms"), (*_NUMBER, type(None))),
    "keeps_goal": (bool,),
}


class LiveRuns:
    """The section of runs: at most one profile and one storm. Any thread may use it.

    Parameters
    ----------
    profile
        Returns the document of the profile that runs, or of the last one, None before the first.
    """

    def __init__(self, profile: Callable[[], Document | None]) -> None:
        self._shown: dict[str, Document] = {}
        self.section: DocumentLog[str] = DocumentLog(lambda: self._shown, self._shown.get)
        self._profile = profile
        self._storm: Document | None = None
        self._told_s = 0.0
        self._lock = system_threading.Lock()

    def answer(self, question: Callable[[], Any]) -> Any:
        """Answer one question at a time."""
        with self._lock:
            return question()

    def refresh(self) -> None:
        """Note what has changed since readers looked last."""
        profile, storm = self._profile(), self._storm
        if storm is not None and storm["state"] == PLAYING and time.monotonic() > self._told_s + LOST_S:
            storm = {**storm, "state": LOST}
        for name, document in ((PROFILE, profile), (STORM, storm)):
            if document is not None and document != self._shown.get(name):
                self._shown[name] = document
                self.section.touch(name)

    def told_storm(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Take how a storm goes on; QuestionRefused where that is not told as it has to be."""
        told = _checked(asked.get("storm"), _STORM_FIELDS, "storm")
        if told["state"] not in (PLAYING, ENDED):
            raise QuestionRefused(f"storm.state: must be {PLAYING} or {ENDED}", "storm")
        played = asked["storm"].get("storms", [])
        if not isinstance(played, list) or len(played) > MOST_STORMS:
            raise QuestionRefused(f"storm.storms: must be a list of {MOST_STORMS} at most", "storm")
        by = asked.get("by")
        self._storm = {
            "run": STORM,
            "by": by[:WORD_LENGTH] if isinstance(by, str) else None,
            **told,
            "storms": [_checked(each, _PLAYED_FIELDS, f"storm.storms[{at}]") for at, each in enumerate(played)],
        }
        self._told_s = time.monotonic()
        return {}


def _checked(value: Any, fields: Mapping[str, tuple[type, ...]], what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise QuestionRefused(f"{what}: must be an object", "storm")
    found: dict[str, Any] = {}
    for name, kinds in fields.items():
        given = value.get(name)
        if type(given) not in kinds or (isinstance(given, str) and len(given) > WORD_LENGTH):
            raise QuestionRefused(f"{what}.{name}: is missing, or not what it has to be", "storm")
        found[name] = given
    return found
