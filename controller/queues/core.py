"""The core of queues: what switches and their databases tell in, transactions out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from controller.config.code_points import Demotion, demotions
from controller.effects import Notice
from controller.events import DeadlineReached, EditFailed, PortChanged, SwitchConnected, SwitchDisconnected
from controller.kernel.notices import NoticeLimiter
from controller.performance.poller import EntriesSampled, Poller
from controller.performance.ports import PortRows
from controller.performance.requests import RequestStats, StatsReceived
from controller.performance.schedule import PollSettings, StatKind
from controller.queues.databases import Databases
from controller.queues.events import (
    DatabaseLost,
    DatabaseRead,
    DatabaseUpdated,
    ReadAnew,
    ServersWanted,
    Transact,
    Transacted,
)
from controller.queues.measures import QueueMeter
from controller.queues.plan import BridgePort, PortWanted
from controller.queues.port_queues import PortQueues
from controller.queues.settings import QueuesChanged, QueueSettings
from topology.events import (
    HostGone,
    HostLearnt,
    LinkDown,
    LinkUp,
    PortRole,
    PortRoleChanged,
    SwitchDown,
    SwitchUp,
)

XID_TAG = 0xA7

SWITCHES_AT_ONCE = 4
"""Switches that are looked at in one turn; with more the others are in the next turns."""

POLLS_OUTSTANDING = 16
POLL_TIMEOUT_S = 2.0

TOLD_INTERVAL_S = 60.0
"""Time between two notices of one port that lacks capacity for goals."""

STATS_REFUSED = "stats-refused"

Effect: TypeAlias = RequestStats | ServersWanted | Transact | ReadAnew | Notice


class QueueCore:
    """Has ports of switches keep the queues of a policy, with rates that follow goals where it says so.

    Attributes
    ----------
    settings
        What the policy says.
    databases
        What servers tell, and what they are asked.
    ports
        What the queues of every port send, and are sure of.
    """

    def __init__(self, settings: QueueSettings, now: float) -> None:
        self.settings = settings
        self.databases = Databases()
        self.ports = PortQueues(settings, now)
        self._poller = Poller(_polls(settings), XID_TAG, PortRows())
        self._meter = QueueMeter()
        self._switches: set[int] = set()
        self._roles: dict[int, dict[int, PortRole]] = {}
        self._links: dict[tuple[int, int], float] = {}
        self._dirty: dict[int, None] = {}
        self._has_begun = False
        self._now = now
        self._told: dict[tuple[str, int, int], None] = {}
        self._limiter = NoticeLimiter()
        self._infeasible = NoticeLimiter(TOLD_INTERVAL_S)
        self._out: list[Effect] = []
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            StatsReceived: self._poll,
            DeadlineReached: self._deadline_reached,
            SwitchConnected: self._poll,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: lambda _event, _now: None,
            EditFailed: self._poll,
            QueuesChanged: self._changed,
            SwitchUp: self._switch_up,
            SwitchDown: self._switch_down,
            LinkUp: self._link_up,
            LinkDown: self._link_down,
            PortRoleChanged: self._role_changed,
            HostLearnt: lambda _event, _now: None,
            HostGone: lambda _event, _now: None,
            DatabaseRead: self._database_read,
            DatabaseUpdated: self._database_updated,
            DatabaseLost: self._database_lost,
            Transacted: self._transacted,
        }

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of this core's transaction ids."""
        return XID_TAG

    def handle(self, event: Any, now: float) -> list[Effect]:
        """Take one event and return what is to be done, in order; KeyError for an event of unknown type."""
        self._now = now
        if not self._has_begun:
            self._has_begun = True
            self._out.append(ServersWanted(self.settings.servers))
            self._tell_shared((), self.settings)
        self.handlers[type(event)](event, now)
        self._settle_some(now)
        out, self._out = self._out, []
        return out

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due, None for never."""
        if self._dirty or not self._has_begun:
            return self._now
        due = [self._poller.next_deadline(), self.databases.next_deadline(), self.ports.next_deadline()]
        return min((due_s for due_s in due if due_s is not None), default=None)

    # What happens

    def _changed(self, event: QueuesChanged, now: float) -> None:
        before, self.settings = self.settings, event.settings
        if before == event.settings:
            return
        self._tell_shared(_demoted(before), event.settings)
        self._poller.configure(_polls(event.settings), now)
        self.ports.configure(event.settings, now)
        if before.servers != event.settings.servers:
            self.databases.keep(event.settings.servers)
            self._out.append(ServersWanted(event.settings.servers))
        self._look_at(self.databases.dpids())

    def _tell_shared(self, known: Sequence[Demotion], settings: QueueSettings) -> None:
        """Tell which classes their code points do not tell apart, where these are others than before."""
        demoted = _demoted(settings)
        if demoted and demoted != known:
            others = f"; so it is with {len(demoted) - 1} more" if len(demoted) > 1 else ""
            names = ", ".join(each.service_class.name for each in demoted)
            text = f"{demoted[0].text()}{others}."
            self._out.append(Notice("queues-share-code-point", text, (("classes", names),)))

    def _switch_up(self, event: SwitchUp, _now: float) -> None:
        self._switches.add(event.dpid)
        self._look_at((event.dpid,))

    def _switch_down(self, event: SwitchDown, _now: float) -> None:
        self._switches.discard(event.dpid)
        self._roles.pop(event.dpid, None)
        self._forget(event.dpid)
        for key in [key for key in self._told if key[1] == event.dpid]:
            del self._told[key]

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self._meter.forget(event.dpid)
        self._poll(event, now)

    def _forget(self, dpid: int) -> None:
        self._meter.forget(dpid)
        self.ports.forget(dpid)

    def _link_up(self, event: LinkUp, _now: float) -> None:
        for end in ((event.dpid_a, event.port_a), (event.dpid_b, event.port_b)):
            self._links[end] = event.capacity_bps
            self._look_at((end[0],))

    def _link_down(self, event: LinkDown, _now: float) -> None:
        for end in ((event.dpid_a, event.port_a), (event.dpid_b, event.port_b)):
            self._links.pop(end, None)

    def _role_changed(self, event: PortRoleChanged, _now: float) -> None:
        self._roles.setdefault(event.dpid, {})[event.port_no] = event.role
        self._look_at((event.dpid,))

    def _deadline_reached(self, event: DeadlineReached, now: float) -> None:
        self._look_at(self.databases.take_due(now))
        self.ports.on_deadline(now)
        self._poll(event, now)

    # Databases

    def _database_read(self, event: DatabaseRead, now: float) -> None:
        dpids = self.databases.read(event.server, event.updates)
        if dpids is None:
            self._malformed(event.server, now)
            return
        if self.databases.is_back(event.server):
            self._out.append(Notice("ovsdb-back", f"The OVSDB server {event.server} is there again."))
        self._look_at(dpids)

    def _database_updated(self, event: DatabaseUpdated, now: float) -> None:
        dpids = self.databases.updated(event.server, event.updates)
        if dpids is None:
            self._malformed(event.server, now)
        else:
            self._look_at(dpids)

    def _database_lost(self, event: DatabaseLost, _now: float) -> None:
        if self.databases.lost(event.server):
            text = (
                f"The OVSDB server {event.server} cannot be reached: {event.reason}. Queues stay as they are there"
                " until it is back."
            )
            self._out.append(Notice("ovsdb-lost", text))

    def _transacted(self, event: Transacted, now: float) -> None:
        dpid = self.databases.transacted(event.server, event.number, event.error, now)
        if dpid is None:
            return
        if event.error is None:
            self._look_at((dpid,))
        elif self._limiter.passes(("queues-not-written", event.server, dpid), now):
            text = (
                f"The queues of switch {dpid} are not set up: the OVSDB server {event.server} refuses them whole"
                f" ({event.error})."
            )
            self._out.append(Notice("queues-not-written", text, (("dpid", dpid),)))

    def _malformed(self, server: str, now: float) -> None:
        self.databases.lost(server)
        if self._limiter.passes(("ovsdb-malformed", server), now):
            text = f"What the OVSDB server {server} tells makes no sense ({self.databases.fault}); it is read anew."
            self._out.append(Notice("ovsdb-malformed", text))
        self._out.append(ReadAnew(server))

    # Measures

    def _poll(self, event: Any, now: float) -> None:
        for output in self._poller.handle(event, now):
            if isinstance(output, EntriesSampled):
                self._sampled(output, now)
            elif isinstance(output, RequestStats) or (isinstance(output, Notice) and output.kind == STATS_REFUSED):
                self._out.append(output)

    def _sampled(self, sampled: EntriesSampled, now: float) -> None:
        dpid = sampled.dpid
        uses = self._meter.measured(sampled)
        if uses is None or not self.settings.has_queues:
            return
        if self.ports.measured(dpid, uses):
            self._look_at((dpid,))
        for port_no, missing in self.ports.missing(dpid).items():
            if self._infeasible.passes((dpid, port_no), now):
                self._out.append(_infeasible(dpid, port_no, missing, self.ports.classes_of))

    # What is to be set up

    def _look_at(self, dpids: Iterable[int]) -> None:
        self._dirty.update(dict.fromkeys(dpids))

    def _settle_some(self, now: float) -> None:
        for dpid in list(self._dirty)[:SWITCHES_AT_ONCE]:
            del self._dirty[dpid]
            self._settle(dpid, now)

    def _settle(self, dpid: int, now: float) -> None:
        is_kept = self.settings.has_queues
        if is_kept and dpid not in self._switches and dpid not in self.databases.abandoned():
            return
        for place in self.databases.with_rows_of(dpid):
            wanted = dict(self._wanted(dpid, place.ports)) if is_kept and dpid in self._switches else {}
            if wanted and place.is_in_user_space:
                self._tell_once("queues-without-effect", dpid, 0, _WITHOUT_EFFECT)
            written = self.databases.write(place, wanted, is_kept, now)
            if written is None:
                continue
            if written.transact is not None:
                self._out.append(written.transact)
            for port_no in place.ports:
                if port_no in written.foreign:
                    self._tell_once("qos-foreign", dpid, port_no, _FOREIGN)
                else:
                    self._told.pop(("qos-foreign", dpid, port_no), None)

    def _wanted(self, dpid: int, there: dict[int, BridgePort]) -> Iterator[tuple[int, PortWanted]]:
        roles = self._roles.get(dpid, {})
        for port_no, port in there.items():
            role = roles.get(port_no)
            if role is PortRole.TRUNK:
                capacity_bps = self._links.get((dpid, port_no), 0.0)
                if not capacity_bps:
                    continue  # its link is not known yet, or not any more
            elif role is PortRole.EDGE:
                capacity_bps = self.settings.port_capacity_bps or float(port.speed_bps)
            else:
                continue
            if not capacity_bps:  # a server that has begun anew tells speeds later
                capacity_bps = self.ports.capacity_bps(dpid, port_no)
            if not capacity_bps:
                self._tell_once("queues-capacity-unknown", dpid, port_no, _CAPACITY_UNKNOWN)
                continue
            written = self.databases.rates_at(port)
            rates = self.ports.rates(dpid, port_no, capacity_bps, written)
            yield port_no, PortWanted(int(capacity_bps), rates)

    def _tell_once(self, kind: str, dpid: int, port_no: int, text: str) -> None:
        """Give a notice of a switch (port 0) or port once, until it is over or the switch comes anew."""
        if (kind, dpid, port_no) not in self._told:
            self._told[kind, dpid, port_no] = None
            place = f"{dpid}:{port_no}" if port_no else str(dpid)
            fields = (("dpid", dpid), ("port_no", port_no)) if port_no else (("dpid", dpid),)
            self._out.append(Notice(kind, text.format(place), fields))


_WITHOUT_EFFECT = (
    "Switch {0} forwards in user space (datapath_type=netdev), where its ports have the queues and packets reach none"
    " of them: all wait in the same one, but where somebody else sorts them by their code points."
)
_FOREIGN = "Port {0} has a QoS that is not this controller's; it is left alone, and packets there wait as that says."
_CAPACITY_UNKNOWN = (
    "Port {0} does not tell its speed and has no queues; monitor.port_capacity_bps says what ports to hosts carry."
)


def _infeasible(
    dpid: int, port_no: int, missing: dict[int, int], classes_of: Callable[[int], tuple[str, ...]]
) -> Notice:
    lacks = ", ".join(
        f"{bps} bit/s for {' and '.join(classes_of(queue_id))}"
        for queue_id, bps in sorted(missing.items(), reverse=True)
    )
    fields = (("dpid", dpid), ("port_no", port_no), ("missing_bps", sum(missing.values())))
    return Notice("goal-infeasible", f"Port {dpid}:{port_no} lacks capacity for goals: {lacks}.", fields)


def _demoted(settings: QueueSettings) -> tuple[Demotion, ...]:
    return tuple(demotions(settings.classes)) if settings.has_queues else ()


def _polls(settings: QueueSettings) -> PollSettings:
    kinds = frozenset((StatKind.QUEUE,)) if settings.has_queues else frozenset[StatKind]()
    return PollSettings(kinds, settings.interval_s, outstanding=POLLS_OUTSTANDING, timeout_s=POLL_TIMEOUT_S)
