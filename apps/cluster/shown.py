"""What operators see of a cluster: a document for each member, and figures."""

from __future__ import annotations

from typing import Any

from apps.cluster.messages import Seen
from apps.exporters import controller_metrics as metrics
from apps.exporters.exposition import Metric
from controller.cluster.place import Course, PlaceCore
from controller.snapshot.log import Document, DocumentLog


class ClusterSection:
    """The section `cluster`: the members as this controller knows them, and of itself what it is about."""

    def __init__(self, member: str) -> None:
        self.documents: dict[str, Document] = {}
        self.section: DocumentLog[str] = DocumentLog(
            lambda: tuple(self.documents), lambda name: self.documents.get(name)
        )
        self._member = member

    def refresh(self, core: PlaceCore, seen: Seen) -> None:
        """Have readers told what is otherwise."""
        names = {self._member, *seen.members} | ({seen.leader.member} if seen.leader is not None else set())
        documents = {name: self._document(name, core, seen) for name in sorted(names)}
        former, self.documents = self.documents, documents
        for name in former.keys() | documents.keys():
            if former.get(name) != documents.get(name):
                self.section.touch(name)

    def _document(self, name: str, core: PlaceCore, seen: Seen) -> Document:
        leads = seen.leader is not None and seen.leader.member == name
        document: dict[str, Any] = {
            "member": name,
            "leads": leads,
            "epoch": seen.leader.epoch if seen.leader is not None and leads else None,
            "peer": seen.peers.get(name),
            "is_there": name in seen.members,
            "answers": name == self._member,
            "switches": seen.switches.get(name),
        }
        if name == self._member:
            document["course"] = core.course.value
            document["store"] = "silent" if seen.is_store_silent else "answers"
            document["switches"] = len(core.switches)
            document["switches_led"] = sum(core.switches.values())
            document["take_over_s"] = take_over_s(core)
        return document


def take_over_s(core: PlaceCore) -> float | None:
    """Return how long the last take-over took, from the election until the apps knew the last switch."""
    if core.began_s is None or core.led_s is None:
        return None
    return round(core.led_s - core.began_s, 3)


def cluster_figures(
    core: PlaceCore, seen: Seen, take_over_count: int, denied_count: int, lag_s: float
) -> list[Metric]:
    """Return what Prometheus is told of the cluster; `lag_s` is for how long the logs have been behind."""
    took_s = take_over_s(core)
    return [
        (metrics.CLUSTER_LEADER, [({}, int(core.course is Course.LEADING))]),
        (metrics.CLUSTER_EPOCH, [({}, seen.epoch)]),
        (metrics.CLUSTER_MEMBERS, [({}, len(seen.members))]),
        (metrics.CLUSTER_ENGINE_UP, [({}, int(not seen.is_store_silent))]),
        (metrics.CLUSTER_TAKE_OVERS, [({}, take_over_count)]),
        (metrics.CLUSTER_TAKE_OVER, [] if took_s is None else [({}, took_s)]),
        (metrics.CLUSTER_LAG, [({}, lag_s)]),
        (metrics.CLUSTER_REFUSED, [({}, denied_count)]),
    ]
