"""What operators follow of the live allocator: how used ports are, and what was allocated and why."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from controller.allocation.book import Metrics
from controller.allocation.live import AllocatorCore
from controller.snapshot.log import Document, DocumentLog
from controller.snapshot.ring import Ring

COMPARE_INTERVAL_MS = 5000
"""How often metrics are compared with what readers know; they are averages over hours."""

CHANGE_PCT = 0.05
"""A metric is told again when it differs by this from what was told before."""

ALLOCATIONS_BOUND = 200
"""Allocations kept; beyond it the oldest goes."""

STEPS_BOUND = 100
"""Steps and ports of an allocation that are shown."""


class _Told(NamedTuple):
    """What readers know of all ports, row by row."""

    names: tuple[str, ...]
    found: Metrics


class AllocatorSections:
    """The sections of the live allocator."""

    def __init__(self, core: AllocatorCore) -> None:
        self.ports: DocumentLog[str] = DocumentLog(lambda: self._told.names, self._port)
        self._kept: Ring[Document] = Ring(ALLOCATIONS_BOUND, lambda decision: decision)
        self.allocations = self._kept.section
        self._core = core
        self._compared_ms = -COMPARE_INTERVAL_MS
        self._told = _Told((), core.book.metrics(0))
        self._rows: dict[str, int] = {}

    def by_name(self) -> dict[str, DocumentLog[Any]]:
        """Return the sections by the names under which they are offered."""
        return {"ports": self.ports, "allocations": self.allocations}

    def refresh(self, now_ms: int) -> None:
        """Find whose metric changed; to be called before sections are read."""
        if abs(now_ms - self._compared_ms) < COMPARE_INTERVAL_MS:
            return
        self._compared_ms = now_ms
        before, self._told = self._told, _Told(tuple(self._core.book.names), self._core.book.metrics(now_ms))
        if before.names != self._told.names:
            self._rows = {name: row for row, name in enumerate(self._told.names)}
            self.ports.log.forget()
            return
        old, new = before.found, self._told.found
        same = old.disqualified == new.disqualified
        for was, now in ((old.metric_pct, new.metric_pct), (old.usage_pct, new.usage_pct)):
            same &= (np.abs(now - was) < CHANGE_PCT) | (np.isnan(was) & np.isnan(now))
        for row in np.flatnonzero(~same).tolist():
            self.ports.touch(before.names[row])

    def decided(self, asked: Mapping[str, Any], answer: Document, at_s: float) -> None:
        """Keep an allocation: what was asked and answered, at `at_s` in seconds since 1970."""
        networks = answer.get("networks") or {None: answer}
        steps = [
            {
                "network": network,
                "chosen": step["chosen"],
                "candidates": step["counts"],
                "tied": step["tied"],
                "reason": step["reason"],
            }
            for network, part in networks.items()
            for step in part.get("steps", ())
        ]
        self._kept.add(
            {
                "time_s": at_s,
                "request": dict(asked),
                "ports": answer.get("ports", [])[:STEPS_BOUND],
                "steps": steps[:STEPS_BOUND],
                "error": answer.get("error"),
            }
        )

    def _port(self, name: str) -> Document | None:
        row = self._rows.get(name)
        if row is None:
            return None
        found = self._told.found
        return {
            "port_metric": _known(found.metric_pct[row]),
            "usage": _known(found.usage_pct[row]),
            "disqualified": bool(found.disqualified[row]),
        }


def _known(value: float) -> float | None:
    return None if isnan(value) else float(value)
