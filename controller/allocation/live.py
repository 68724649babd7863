"""The core of the live allocator: what the monitor and discovery tell, as ports that may be allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.allocation.book import PortBook
from controller.allocation.busy import NOT_KNOWN, SampleOutcome
from controller.allocation.candidates import PortId
from controller.allocation.events import AllocationChanged, PortKey, PortsRated
from controller.allocation.fabric_domains import FabricDomains
from controller.allocation.link_metrics import LinkMetrics, Told
from controller.allocation.parameters import averaging_period_s
from controller.allocation.proposals import Proposals
from controller.allocation.reservation import Reservations
from controller.allocation.selection import PortSelection
from controller.config.settings import Allocation
from controller.events import DeadlineReached, Port, PortChanged, SwitchConnected, SwitchDisconnected
from controller.performance.poller import CODECS
from topology.events import TOPOLOGY_EVENTS, HostGone, HostLearnt, SwitchDown, TopologyEvent
from topology.live import LiveFabric

FAMILY = "openflow"

NO_ROW = -1
"""Of a port that is there and found no room."""

XID_TAG = 0xA5
"""Upper 8 bits of transaction ids; this core sends nothing, so that no reply is its own."""


class PortStateChanges(NamedTuple):
    """What is to be kept: the state of some ports and their CPUs, as `PortBook.state` has it, and ports forgotten."""

    state: dict[str, Any]
    forgotten: tuple[str, ...]


class AllocatorCore:
    """Ports of the fabric with their averages, failure domains and reservations.

    Parameters
    ----------
    settings
        Parameters of the families.

    Attributes
    ----------
    book
        Averages by the port's name, ``dpid:port_no``; ports that are gone stay until their metric is stale.
    ports
        The physical ports that connected switches have, by datapath id and number.
    version
        Grows with every change of ports, of their rows and of the fabric.
    last_rated_ms
        Time of the newest sample since the start, milliseconds since 1970; None where none came.
    """

    def __init__(self, settings: Allocation) -> None:
        self.settings = settings
        self.book = PortBook(settings)
        self.fabric = LiveFabric()
        self.domains = FabricDomains(self.fabric)
        self.reservations = Reservations(settings.penalty_factor)
        self.proposals = Proposals()
        self.link_metrics = LinkMetrics()
        self.ports: dict[int, dict[int, Port]] = {}
        self.version = 0
        self.last_rated_ms: int | None = None
        self._last_port_no: dict[int, int] = {}
        self._rows: dict[PortKey, int] = {}
        self._held = 0
        self._dirty: dict[str, None] = {}
        self._forgotten: dict[str, None] = {}
        self.handlers: dict[type, Callable[[Any], None]] = {
            PortsRated: self._ports_rated,
            AllocationChanged: self._allocation_changed,
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            PortChanged: self._port_changed,
            DeadlineReached: lambda _event: None,
            **dict.fromkeys(TOPOLOGY_EVENTS, self._topology_changed),
        }

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of this core's transaction ids."""
        return XID_TAG

    def handle(self, event: Any, _now: float) -> tuple[Told, ...]:
        """Take one event, and return what others are to hear of it: it proposes, they edit.

        KeyError for an event of unknown type.
        """
        self.handlers[type(event)](event)
        if isinstance(event, PortsRated) and self.last_rated_ms is not None:
            now_ms = self.last_rated_ms
            return self.link_metrics.look(self.fabric.graph, self.settings, partial(self._metrics_of, now_ms), now_ms)
        self.version += 1
        return ()

    def next_deadline(self) -> float | None:
        """Return None: nothing happens by time alone."""
        return None

    def restore(self, state: dict[str, Any]) -> None:
        """Take what an earlier run measured, before any event; StateError where it is damaged, and takes nothing."""
        self.book.restore(state)

    def port(self, key: PortKey) -> Port | None:
        """Return a port that is there, None for any other."""
        return self.ports.get(key[0], {}).get(key[1])

    def has(self, key: PortKey) -> bool:
        """Return whether a port that is there found room in the book."""
        return self._rows.get(key, NO_ROW) != NO_ROW

    def measurement(self, name: str, now_ms: int) -> str:
        """Return how good the metric of a port is, in words; KeyError where it is not known."""
        row, table = self.book.row(name), self.book.ports
        last_ms = int(table.last_ms[row])
        if last_ms == NOT_KNOWN:
            return "never measured: the monitor told nothing of it"
        ago_s = max(0.0, (now_ms - last_ms) / 1000)
        if ago_s > self.settings.stale_s:
            return f"stale: the last sample is {ago_s:.0f} s old"
        if np.isnan(table.average_pct[row]):
            return "no utilisation known"
        if np.isnan(table.history_pct[row]):
            period_s = averaging_period_s(self.book.parameters(FAMILY))
            left_s = period_s - (now_ms - int(table.start_ms[row])) / 1000
            until = f"first averaging period: valid in {max(0.0, left_s):.0f} s"
            known = not np.isnan(self.book.metrics(now_ms, np.array([row])).port_pct[0])
            return f"provisional, {ago_s:.0f} s old; {until}" if known else until
        return f"valid, {ago_s:.0f} s old"

    def reserve(self, selection: PortSelection, size_pct: float, now_ms: int) -> None:
        """Reserve the ports that a proposal picked, and count them as attached until they are seen in use."""
        self.reservations.reserve(selection, size_pct)
        names = [str(step.chosen) for step in selection.steps]
        rows = np.fromiter(map(self.book.row, names), np.intp, len(names))
        loads_pct = np.nan_to_num(self.book.metrics(now_ms, rows).port_pct).tolist()
        for name, load_pct in zip(names, loads_pct, strict=True):
            for changed in self.proposals.propose(name, now_ms, load_pct, size_pct):
                self._count(port_key(changed))

    def expire_proposals(self, now_ms: int) -> None:
        """Let those end that nobody was seen to use."""
        for name in self.proposals.expire(now_ms - round(self.settings.proposal_s * 1000)):
            self._count(port_key(name))

    def changes(self, limit: int) -> PortStateChanges:
        """Return what changed and was not returned yet, of at most `limit` ports."""
        names = [name for name, _ in zip(self._dirty, range(limit), strict=False)]
        for name in names:
            del self._dirty[name]
        forgotten, self._forgotten = tuple(self._forgotten), {}
        return PortStateChanges(self.book.state(names), forgotten)

    def all_changed(self) -> None:
        """Have everything returned by `changes` once more."""
        self._dirty = dict.fromkeys(self.book.names)

    def expire(self, now_ms: int) -> None:
        """Forget ports that are gone and whose last sample is stale, or that never had one."""
        last_ms = self.book.ports.last_ms[: len(self.book)]
        stale = np.flatnonzero(last_ms < now_ms - self.settings.stale_s * 1000).tolist()
        if stale:
            names = self.book.names
            self._forget(names[row] for row in stale)
            for key in [key for key, row in self._rows.items() if row == NO_ROW]:
                del self._rows[key]
                self._arrive(key)

    # Events.

    def _ports_rated(self, event: PortsRated) -> None:
        of_port = self._rows
        rows = np.fromiter((of_port.get(key, NO_ROW) for key in event.ports), np.intp, len(event.ports))
        known = np.flatnonzero(rows != NO_ROW)
        if not len(known):
            return
        at_ms = np.round(event.at_s[known] * 1000).astype(np.int64)
        outcomes = self.book.ports.observe_percent(rows[known], at_ms, event.busier_pct[known])
        self.last_rated_ms = max(self.last_rated_ms or 0, int(at_ms.max()))
        seen = [event.ports[index] for index in known.tolist()]
        busy = {dpid: event.cpu_pct[dpid] for dpid in {dpid for dpid, _ in seen} & event.cpu_pct.keys()}
        if busy:
            cpu_rows = np.array([self.book.add_cpu(str(dpid), FAMILY) for dpid in busy], np.intp)
            percent = np.fromiter(busy.values(), np.float64, len(busy))
            self.book.cpus.observe_percent(cpu_rows, np.full(len(busy), at_ms.max()), percent)
        self._dirty.update(dict.fromkeys(map(port_name, seen)))
        if len(self.proposals):
            for key, busy_pct in zip(seen, event.busier_pct[known].tolist(), strict=True):
                if self.proposals.measured(port_name(key), busy_pct):
                    self._count(key)
        measured: Iterable[str] = ()
        if len(self.reservations):
            measured = (
                port_name(seen[index]) for index in np.flatnonzero(outcomes == SampleOutcome.MEASURED).tolist()
            )
        self.reservations.refresh(measured)

    def _allocation_changed(self, event: AllocationChanged) -> None:
        self.settings = event.settings
        self.book.configure(event.settings)
        self.reservations.penalty_factor = event.settings.penalty_factor

    def _switch_connected(self, event: SwitchConnected) -> None:
        dpid = event.dpid
        codec = CODECS.get(event.ofp_version)
        self._last_port_no[dpid] = 0 if codec is None else codec.last_port_no
        before = self.ports.get(dpid, {})
        now = {port.port_no: port for port in event.ports if self._is_physical(dpid, port)}
        self.ports[dpid] = now
        self._leave(dpid, before.keys() - now.keys())
        for port_no in now:
            self._arrive((dpid, port_no))

    def _switch_disconnected(self, event: SwitchDisconnected) -> None:
        self._leave(event.dpid, self.ports.pop(event.dpid, ()))

    def _port_changed(self, event: PortChanged) -> None:
        dpid, port, deleted = event
        ports = self.ports.get(dpid)
        if ports is None or not self._is_physical(dpid, port):
            return
        if deleted:
            ports.pop(port.port_no, None)
            self._leave(dpid, (port.port_no,))
        else:
            ports[port.port_no] = port
            self._arrive((dpid, port.port_no))

    def _is_physical(self, dpid: int, port: Port) -> bool:
        return port.port_no <= self._last_port_no.get(dpid, 0)

    def _topology_changed(self, event: TopologyEvent) -> None:
        self.fabric.apply(event)
        if isinstance(event, HostLearnt | HostGone):
            self._count((event.dpid, event.port_no))
        elif isinstance(event, SwitchDown):
            for port_no in self.ports.get(event.dpid, ()):
                self._count((event.dpid, port_no))

    def _metrics_of(self, now_ms: int, keys: Sequence[PortKey]) -> NDArray[np.float64]:
        """Return the metrics of ports in percent, NaN where there is none."""
        rows = np.fromiter((self._rows.get(key, NO_ROW) for key in keys), np.intp, len(keys))
        found = np.full(len(rows), np.nan)
        known = rows != NO_ROW
        found[known] = self.book.metrics(now_ms, rows[known]).metric_pct
        return found

    # Rows of the book.

    def _count(self, key: PortKey) -> None:
        """Have a port's hosts counted: each is an initiator and an attachment, which a proposal is too."""
        row = self._rows.get(key, NO_ROW)
        if row != NO_ROW:
            name, hosts = port_name(key), len(self.fabric.hosts_at(*key))
            self.proposals.attached(name, hosts - self.book.initiators(row))
            self.book.count(row, hosts, hosts + self.proposals.count(name))
            self._dirty[name] = None

    def _arrive(self, key: PortKey) -> None:
        """Give a port that is there its row, where there is room or a port that is gone can make some."""
        if key in self._rows:
            return
        name = port_name(key)
        row = self.book.add(name, FAMILY, str(key[0]))
        if row is None and len(self.book) > self._held:
            self._forget(self.book.names)
            row = self.book.add(name, FAMILY, str(key[0]))
        self._rows[key] = NO_ROW if row is None else row
        if row is not None:
            self._held += 1
            self._forgotten.pop(name, None)
            self._count(key)

    def _leave(self, dpid: int, port_nos: Iterable[int]) -> None:
        """Take note that ports are gone; what was measured of them stays."""
        keys = [(dpid, port_no) for port_no in port_nos]
        for key in keys:
            if self._rows.pop(key, NO_ROW) != NO_ROW:
                self._held -= 1
        names = [port_name(key) for key in keys]
        self.reservations.refresh(names)
        self.proposals.forget(names)

    def _forget(self, names: Iterable[str]) -> None:
        """Forget those of the ports that are gone."""
        here = {port_name(key): key for key in self._rows}
        gone = [name for name in names if name not in here]
        if gone:
            self.book.forget(gone)
            for name in gone:
                self._dirty.pop(name, None)
            self._forgotten.update(dict.fromkeys(gone))
            self.version += 1
            for row, name in enumerate(self.book.names):
                if name in here:
                    self._rows[here[name]] = row


def port_name(key: PortKey) -> str:
    """Return what a port is called, ``dpid:port_no``."""
    return f"{key[0]}:{key[1]}"


def port_key(name: PortId) -> PortKey:
    """Return the port that is called so."""
    dpid, _, port_no = str(name).partition(":")
    return int(dpid), int(port_no)
