"""The poller: switch events and replies in; requests and decoded samples out. It has neither clock nor socket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from controller.effects import Notice
from controller.events import (
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.kernel.notices import NoticeLimiter
from controller.performance import of10_stats, of13_stats
from controller.performance.batch import Samples
from controller.performance.inputs import SamplesReceived
from controller.performance.poller_layout import Entries, MalformedReply, Reply
from controller.performance.ports import PortRows
from controller.performance.requests import RequestStats, StatsReceived
from controller.performance.schedule import PollSettings, ReplyVerdict, Schedule, StatKind
from topology.events import TOPOLOGY_EVENTS, TopologyEvent
from topology.graph import NodeKind
from topology.live import LiveFabric

FLUSH_S = 0.5
"""How long samples wait for others at most, so that what comes after them is done for many at once."""

FLUSH_SAMPLES = 16384
SWITCH_SILENT = "switch-silent"
"""The kind of what is told of a switch that answers no polls."""

CLASSIFY_S = 1.0
"""Time between two looks at the classes of switches while the fabric changes."""


LEVEL_KINDS = MappingProxyType({1: NodeKind.TOR, 2: NodeKind.AGGREGATION})
"""Class of a switch by its hops from the servers; any further away is a core."""


class SwitchTaken(NamedTuple):
    """Poll a switch that is connected: first in `due_in_s` seconds, and then in its turn."""

    dpid: int
    ofp_version: int
    due_in_s: float


class EntriesSampled(NamedTuple):
    """Queues, groups, meters, flow entries or tables of a switch; `more` parts of the reply `xid` may follow."""

    dpid: int
    ofp_version: int
    kind: StatKind
    xid: int
    more: bool
    entries: Entries
    at_s: float


class SwitchTurned(NamedTuple):
    """A switch went down, or came up."""

    dpid: int
    up: bool


Output: TypeAlias = RequestStats | SamplesReceived | EntriesSampled | SwitchTurned | Notice


class Codec(NamedTuple):
    """How an OpenFlow version is spoken; `last_port_no` is the highest number of a physical port."""

    encode_request: Callable[[StatKind, int], bytes]
    read_reply: Callable[[bytes], Reply | MalformedReply]
    decode: Callable[[int, bytes], Entries | MalformedReply]
    last_port_no: int


CODECS: Mapping[int, Codec] = MappingProxyType(
    {
        module.VERSION: Codec(module.encode_request, module.read_reply, module.decode, module.OFPP_MAX)
        for module in (of10_stats, of13_stats)
    }
)


class Poller:
    """Polls the switches that it is told of.

    Parameters
    ----------
    settings
        How polls go; `configure` changes it.
    xid_tag
        Upper 8 bits of the transaction ids.
    ports
        The rows of ports; somebody else fills it.
    """

    def __init__(self, settings: PollSettings, xid_tag: int, ports: PortRows) -> None:
        self.xid_tag = xid_tag
        self.schedule = Schedule(settings, xid_tag)
        self.fabric = LiveFabric()
        self.counters: Counter[str] = Counter()
        self._table = ports
        self._parts: list[Samples] = []
        self._samples = 0
        self._flush_s: float | None = None
        self._classified_version = -1
        self._classify_s = float("-inf")
        self._tors_version = -1
        self._has_tors = False
        self._limiter = NoticeLimiter()
        self._out: list[Output] = []
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            StatsReceived: self._stats_received,
            DeadlineReached: lambda _event, _now: None,
            SwitchConnected: self._switch_connected,
            SwitchTaken: self._switch_taken,
            SwitchDisconnected: lambda event, now: self.schedule.disconnected(event.dpid, now),
            EditFailed: self._request_failed,
            **dict.fromkeys(TOPOLOGY_EVENTS, self._topology_changed),
        }

    def handle(self, event: Any, now: float) -> list[Output]:
        """Take one event and return what is to be done; KeyError for an event of unknown type."""
        self._handlers[type(event)](event, now)
        schedule = self.schedule
        due_s = schedule.next_deadline()
        if due_s is not None and due_s <= now:
            self._classify(now)
            requests = schedule.on_deadline(now)
        else:
            requests = schedule.send(now)
        for dpid, kind, xid in requests:
            codec = CODECS[schedule.switches[dpid].ofp_version]
            self._out.append(RequestStats(dpid, codec.encode_request(kind, xid)))
        if schedule.turned:
            self._tell_turned(now)
        if self._samples >= FLUSH_SAMPLES or (self._flush_s is not None and now >= self._flush_s):
            samples = self.flush()
            if samples is not None:
                self._out.append(samples)
        out, self._out = self._out, []
        return out

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due, None for never."""
        due_s = self.schedule.next_deadline()
        if self._flush_s is not None and (due_s is None or self._flush_s < due_s):
            return self._flush_s
        return due_s

    def configure(self, settings: PollSettings, now: float) -> None:
        """Go on with other settings."""
        self.schedule.configure(settings, now)

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        if event.ofp_version in CODECS:
            self.schedule.connected(event.dpid, event.ofp_version, now)

    def _switch_taken(self, event: SwitchTaken, now: float) -> None:
        if event.ofp_version in CODECS:
            self.schedule.connected(event.dpid, event.ofp_version, now, event.due_in_s)

    def _topology_changed(self, event: TopologyEvent, _now: float) -> None:
        self.fabric.apply(event)

    def _classify(self, now: float) -> None:
        version = self.fabric.graph.version
        if version != self._classified_version and now >= self._classify_s:
            self._classified_version, self._classify_s = version, now + CLASSIFY_S
            for dpid in self.schedule.switches:
                self.schedule.classify(dpid, self.kind_of(dpid), now)

    def kind_of(self, dpid: int) -> NodeKind:
        """Return the class of a switch: by its hops from the servers, `SWITCH` where no host was found yet.

        One that is gone, or that no link leads to, is of the class that it was of.
        """
        graph = self.fabric.graph
        if graph.version != self._tors_version:
            self._tors_version, self._has_tors = graph.version, bool(graph.nodes(NodeKind.TOR))
        if dpid in graph and self._has_tors and (graph.neighbours(dpid) or graph.level(dpid) == 1):
            return LEVEL_KINDS.get(graph.level(dpid), NodeKind.CORE)
        switch = self.schedule.switches.get(dpid)
        return NodeKind.SWITCH if switch is None else switch.kind

    # Replies.

    def _stats_received(self, event: StatsReceived, now: float) -> None:
        dpid, ofp_version, _, message, at_s = event
        codec = CODECS[ofp_version]
        reply = codec.read_reply(message)
        if isinstance(reply, MalformedReply):
            self._malformed(dpid, reply, now)
            return
        xid, kind, more, body = reply
        verdict = self.schedule.replied(dpid, xid, kind, more, now)
        if verdict is not ReplyVerdict.AWAITED:
            self._counted(
                verdict, dpid, f"A statistics reply of switch {dpid} is not used: {verdict}.", now, count=False
            )
            return
        entries = codec.decode(kind, body)
        if isinstance(entries, MalformedReply):
            self._malformed(dpid, entries, now)
        elif kind == StatKind.PORT:
            self._take_ports(dpid, entries, codec.last_port_no, at_s, now)
        else:
            self._out.append(EntriesSampled(dpid, ofp_version, StatKind(kind), xid, more, entries, at_s))

    def _take_ports(self, dpid: int, entries: Entries, last_port_no: int, at_s: float, now: float) -> None:
        port_no, counters, duration_s = entries.keys[:, 0], entries.counters, entries.duration_s
        physical = port_no <= last_port_no
        if not physical.all():
            port_no, counters, duration_s = port_no[physical], counters[physical], duration_s[physical]
        count = len(port_no)
        if count:
            rows = self._table.rows_of(dpid, port_no)
            self._parts.append(Samples(rows, np.full(count, at_s), duration_s, counters))
            self._samples += count
            if self._flush_s is None:
                self._flush_s = now + FLUSH_S

    def flush(self) -> SamplesReceived | None:
        """Return the samples that wait; to be called before rows of ports change hands."""
        parts, self._parts = self._parts, []
        self._samples, self._flush_s = 0, None
        return SamplesReceived(Samples.concatenate(parts)) if parts else None

    def _request_failed(self, event: EditFailed, now: float) -> None:
        kind = self.schedule.unsupported(event.dpid, event.xid, now)
        if kind is not None:
            error = f"OpenFlow error {event.type}/{event.code}"
            text = f"Switch {event.dpid} refuses to tell its {kind.name.lower()} statistics ({error})."
            self._counted("stats-refused", event.dpid, text, now)

    # Notices.

    def _tell_turned(self, now: float) -> None:
        turned, self.schedule.turned = self.schedule.turned, []
        for dpid in turned:
            switch = self.schedule.switches.get(dpid)
            up = switch is not None and switch.up
            self._out.append(SwitchTurned(dpid, up))
            if switch is not None and switch.connected and not up:
                self._counted(SWITCH_SILENT, dpid, f"Switch {dpid} does not answer polls.", now)

    def _malformed(self, dpid: int, malformed: MalformedReply, now: float) -> None:
        self._counted(
            malformed.reason,
            dpid,
            f"Statistics of switch {dpid} are malformed and not used: {malformed.reason}.",
            now,
        )

    def _counted(self, kind: str, dpid: int, text: str, now: float, *, count: bool = True) -> None:
        """Count, and give notice at most once per kind and switch in `NOTICE_INTERVAL_S`."""
        if count:
            self.counters[kind] += 1
        if self._limiter.passes((kind, dpid), now):
            self._out.append(Notice(kind, text, (("dpid", dpid),)))


def stats_received(event: FlowStatsReceived, at_s: float) -> StatsReceived:
    """Return a flow statistics reply as one of the poller's."""
    return StatsReceived(event.dpid, event.ofp_version, event.xid, event.message, at_s)
