"""What operators follow of queues: each class with how far it is from its goal, and each queue of each port."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import isfinite
from typing import Any

from controller.queues.core import QueueCore
from controller.queues.measures import QueueUse
from controller.queues.port_queues import PortQueuesReport
from controller.service_classes.goals import queue_of
from controller.snapshot.log import Document, DocumentLog

COMPARE_INTERVAL_S = 1.0
"""How often what is known is compared with what readers know."""

MOST_INDEX = 1000.0
"""Greatest performance index that is told: a class that gets nothing at all is infinitely far from its goal."""

_NOTHING = QueueUse(0.0, 0.0, 0.0, 0.0, 0.0)


class QueueSections:
    """The sections `classes` and `queues`, and the figures of classes."""

    def __init__(self, core: QueueCore) -> None:
        self._core = core
        self._compared_s = float("-inf")
        self._classes: dict[str, Document] = {}
        self._queues: dict[tuple[int, int, int], Document] = {}
        self.classes: DocumentLog[str] = DocumentLog(lambda: self._classes, lambda name: self._classes.get(name))
        self.queues: DocumentLog[tuple[int, int, int]] = DocumentLog(
            lambda: self._queues, lambda key: self._queues.get(key), lambda key: f"{key[0]}:{key[1]}/{key[2]}"
        )

    def by_name(self) -> dict[str, DocumentLog[Any]]:
        """Return the sections by the names under which they are offered."""
        return {"classes": self.classes, "queues": self.queues}

    def refresh(self, now: float) -> None:
        """Find what changed; to be called before sections are read."""
        if now - self._compared_s < COMPARE_INTERVAL_S:
            return
        self._compared_s = now
        reports = list(self._core.ports.reports()) if self._core.settings.has_queues else []
        queues = {
            (report.dpid, report.port_no, queue_id): self._queue(report, queue_id)
            for report in reports
            for queue_id in report.min_rate_bps
        }
        classes = self.class_documents(reports)
        _tell(self.queues, self._queues, queues)
        _tell(self.classes, self._classes, classes)
        self._queues, self._classes = queues, classes

    def class_documents(self, reports: list[PortQueuesReport]) -> dict[str, Document]:
        """Return what is known of each class, by its name, with `reports` of all ports."""
        found: dict[str, Document] = {}
        if not self._core.settings.has_queues:
            return found
        clusters = self._core.ports.clusters()
        worst: dict[int, tuple[float, PortQueuesReport]] = {}
        ports: dict[int, int] = {}
        missing: dict[int, int] = {}
        for report in reports:
            for queue_id in report.uses:
                ports[queue_id] = ports.get(queue_id, 0) + 1
            for queue_id, bps in report.missing_bps.items():
                missing[queue_id] = missing.get(queue_id, 0) + bps
            for queue_id, index in report.performance.items():
                if queue_id not in worst or index > worst[queue_id][0]:
                    worst[queue_id] = (index, report)
        for each in self._core.settings.classes:
            queue_id = queue_of(each.importance)
            farthest = worst.get(queue_id) if each.goal is not None else None
            among = next((found for found in clusters if queue_id in found), (queue_id,))
            found[each.name] = {
                "service_class": each.name,
                "importance": each.importance,
                "queue_id": queue_id,
                "goal": None if each.goal is None else {str(each.goal.kind): each.goal.value},
                "index": None if farthest is None else _told(farthest[0]),
                "dpid": None if farthest is None else farthest[1].dpid,
                "port_no": None if farthest is None else farthest[1].port_no,
                "ports": ports.get(queue_id, 0),
                "missing_bps": missing.get(queue_id, 0),
                "competes_with": sorted(
                    other.name
                    for other in self._core.settings.classes
                    if other.name != each.name and queue_of(other.importance) in among
                ),
            }
        return found

    def _queue(self, report: PortQueuesReport, queue_id: int) -> Document:
        use = report.uses.get(queue_id, _NOTHING)
        index = report.performance.get(queue_id)
        return {
            "dpid": report.dpid,
            "port_no": report.port_no,
            "queue_id": queue_id,
            "classes": list(self._core.ports.classes_of(queue_id)),
            "min_rate_bps": report.min_rate_bps[queue_id],
            "capacity_bps": report.capacity_bps,
            "tx_bps": round(use.tx_bps),
            "dropped_pps": round(use.dropped_pps, 1),
            "missing_bps": report.missing_bps.get(queue_id, 0),
            "index": None if index is None else _told(index),
        }


def _told(index: float) -> float:
    return round(min(index, MOST_INDEX), 3) if isfinite(index) else MOST_INDEX


def _tell(section: DocumentLog[Any], before: Mapping[Any, Document], now: Mapping[Any, Document]) -> None:
    changed: set[Hashable] = {key for key, document in now.items() if before.get(key) != document}
    for key in sorted(changed | (before.keys() - now.keys())):  # type: ignore[type-var]
        section.touch(key)
