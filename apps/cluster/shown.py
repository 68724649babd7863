"""What operators see of a cluster: a document for each member, what is wrong, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from apps.cluster.attendance import Attendance
from apps.cluster.messages import Seen
from apps.exporters import controller_metrics as metrics
from apps.exporters.exposition import Metric
from controller.cluster.monitor_states import MonitorsSeen
from controller.cluster.place import Course, PlaceCore
from controller.snapshot.log import Document, DocumentLog

BEHIND_S = 1.0
"""How far the log is behind when operators are told that it is."""


class LeadSince(NamedTuple):
    """Since when who leads does, in seconds since 1970; `at_least` where it did before this controller looked."""

    epoch: int
    at_s: float
    at_least: bool


class ClusterSection:
    """The section `cluster`: the members as this controller knows them, and of itself what it is about.

    While the store is silent members are as they were when it last answered, and it is told since when.

    Parameters
    ----------
    member, peer
        Its name, and where the others hear it; '' for nowhere.
    """

    def __init__(self, member: str, peer: str = "") -> None:
        self.documents: dict[str, Document] = {}
        self.section: DocumentLog[str] = DocumentLog(
            lambda: tuple(self.documents), lambda name: self.documents.get(name)
        )
        self._member = member
        self._peer = peer
        self._attendance = Attendance()
        self._since: LeadSince | None = None
        self._silent_s: float | None = None
        self._has_looked = False

    def saw(self, seen: Seen, now_s: float) -> None:
        """Take note of when things changed; `now_s` is in seconds since 1970."""
        self._attendance.see(seen.members, now_s)
        if not seen.is_store_silent:
            self._silent_s = None
        elif self._silent_s is None:
            self._silent_s = now_s
        leader = seen.leader
        if leader is None:
            self._since = None
        elif self._since is None or self._since.epoch != leader.epoch:
            self._since = LeadSince(leader.epoch, now_s, at_least=not self._has_looked)
        self._has_looked = self._has_looked or bool(seen.members)

    def refresh(
        self, core: PlaceCore, seen: Seen, lag_s: float, monitors: MonitorsSeen, more: Iterable[str] = ()
    ) -> None:
        """Have readers told what is otherwise.

        `lag_s` is for how long the logs have been behind, and `more` what else is wrong, gravest first, as sentences.
        """
        leading = {seen.leader.member} if seen.leader is not None else set()
        names = {self._member, *seen.members, *self._attendance.gone_s} | leading
        documents = {name: self._document(name, core, seen) for name in sorted(names)}
        problems = *filter(None, more), *self._problems(core, seen, lag_s), *_problems_of(monitors)
        documents[self._member] |= {**self._own(core, seen, lag_s), "problems": list(problems)}
        former, self.documents = self.documents, documents
        for name in former.keys() | documents.keys():
            if former.get(name) != documents.get(name):
                self.section.touch(name)

    def _document(self, name: str, core: PlaceCore, seen: Seen) -> Document:
        leads = seen.leader is not None and seen.leader.member == name
        since = self._since if leads else None
        gone_s = self._attendance.gone_s.get(name)
        return {
            "member": name,
            "leads": leads,
            "epoch": seen.leader.epoch if seen.leader is not None and leads else None,
            "leads_since_s": None if since is None else round(since.at_s, 1),
            "leads_at_least": None if since is None else since.at_least,
            "peer": seen.peers.get(name),
            "is_there": name in seen.members,
            "gone_s": None if gone_s is None else round(gone_s, 1),
            "answers": name == self._member,
            "switches": seen.switches.get(name),
        }

    def _own(self, core: PlaceCore, seen: Seen, lag_s: float) -> dict[str, Any]:
        return {
            "course": core.course.value,
            "store": "silent" if seen.is_store_silent else "answers",
            "store_silent_s": None if self._silent_s is None else round(self._silent_s, 1),
            "switches": len(core.switches),
            "switches_led": sum(core.switches.values()),
            "take_over_s": take_over_s(core),
            "log_lag_s": round(lag_s, 1),
        }

    def _problems(self, core: PlaceCore, seen: Seen, lag_s: float) -> Iterator[str]:
        """Yield what is wrong, gravest first, as sentences."""
        if seen.is_store_silent:
            yield (
                "The store does not answer: nobody can be elected, nothing can be set, and members are shown as they "
                "were before."
            )
        if seen.leader is None:
            yield "Nobody leads: switches forward by the entries that they have."
        elif seen.leader.member not in seen.members:
            yield f"{seen.leader.member} leads, and is no member any more: it is followed when its lease is over."
        if (other := self._namesake(seen)) is not None:
            yield (
                f"Another controller, at {other}, is a member by this one's name, {self._member}: give each a name "
                "of its own (VSRT_MEMBER), and start it anew."
            )
        led, count = sum(core.switches.values()), len(core.switches)
        if core.course is Course.LEADING and led < count:
            yield f"{count - led} of {count} switches have not confirmed that this one leads."
        for name in self._attendance.gone_s:
            if name == self._member:
                yield "This controller is no member: the store has given up its lease, and it cannot lead."
            else:
                yield f"{name} is gone."
        if len(seen.members) == 1 and seen.leader is not None and not self._attendance.gone_s:
            yield f"{seen.members[0]} is the only member: nobody could take over."
        if lag_s > BEHIND_S:
            where = "the store" if core.course is Course.LEADING else "what the leader wrote"
            yield f"The log is behind {where} for {lag_s:.0f} s."

    def _namesake(self, seen: Seen) -> str | None:
        """Return where another controller of this one's name is heard, None where there is none."""
        leads = [seen.leader.peer] if seen.leader is not None and seen.leader.member == self._member else []
        heard = {*leads, seen.peers.get(self._member, self._peer)} - {self._peer, ""}
        return min(heard, default=None) if self._peer else None


def _problems_of(monitors: MonitorsSeen) -> Iterator[str]:
    """Yield what is wrong with the monitors."""
    if monitors.unowned:
        which, are = ("switch", "is") if monitors.unowned == 1 else ("switches", "are")
        yield f"{monitors.unowned} {which} that monitors are connected to {are} polled by none."
    for name, state in sorted(monitors.states.items()):
        if state.drained and state.switches:
            which = "switch" if state.switches == 1 else "switches"
            yield f"{name} is drained and still has {state.switches} {which}."
    if monitors.states and not any(state.divides for state in monitors.states.values()):
        yield "No monitor divides the switches."


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
