"""One owner for each switch: what apps want there is sent in batches that they share, and a connection is read once.

Each app's `Installer` says what it wants, and is told what switches confirmed. The apps that have the same
`DatapathCore` share the windows of its switches, a batch at a time with one barrier, and the reading with which a
connection begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from controller.config.edit_settings import Edits
from controller.datapath.batches import Batches
from controller.datapath.roles import Roles
from controller.datapath.window import Windows
from controller.datapath.xids import Xids
from controller.effects import Effect, RequestFlows, RequestResources
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    OwnerLeft,
    ResourcesReceived,
    RoleReplied,
    RoleWanted,
)
from controller.rules.lowering import LOWERINGS
from controller.rules.of13_resources import decode_resources
from controller.rules.openflow import ResourceDescriptions
from controller.rules.switch_state import Datapath, EntryOwner
from controller.rules.timeouts import Timeouts, earliest

if TYPE_CHECKING:
    from controller.rules.switch_state import OwnerState

READ_TIMEOUT_S, READ_DOUBLINGS = 10.0, 3
"""How long a switch has to tell its entries, or the next part of them, and how often that doubles where it does not:
where many are read at once, to throw an answer away for being late makes those that follow later still."""

_COOKIE_BITS = 16
_ALL_BITS = (1 << _COOKIE_BITS) - 1

_READINGS = frozenset((FlowStatsReceived, ResourcesReceived))

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class OwnerTold(NamedTuple):
    """What switch `dpid` confirmed, or told as a whole, concerns an app, which carries out `effects`.

    The app is told by the tag of its transaction ids; of what was confirmed where it listens (`Installer.listens`).
    """

    xid_tag: int
    dpid: int
    was_read: bool
    effects: tuple[Effect, ...]


class DatapathCore(Batches):
    """The connections of all switches, for one owner or several.

    `xid_tag` marks its transaction ids; what `gathers` sends a turn's edits together (see `Batches`).
    """

    def __init__(self, xid_tag: int, gathers: bool = False) -> None:
        super().__init__(Xids(xid_tag), gathers)
        self._windows = Windows(Edits())
        self._reads: Timeouts[int] = Timeouts(READ_TIMEOUT_S)
        self._datapaths: dict[int, Datapath] = {}
        self._roles = Roles(self, self.xids)
        self._answers = (self._reads, self._roles.timeouts, self._roles.confirms)
        self.handlers: dict[type, Callable[[Any, float], Iterable[OwnerState]]] = {
            BarrierReplied: self.barrier_replied,
            EditFailed: lambda event, now: self.edit_failed(event, now),
            FlowStatsReceived: lambda event, now: self.flow_stats_received(event, now),
            ResourcesReceived: lambda event, now: self.resources_received(event, now),
            RoleWanted: lambda event, now: self.role_wanted(event, now),
            RoleReplied: lambda event, now: self.role_replied(event, now),
            OwnerLeft: lambda event, now: self.owner_left(event.xid_tag, now),
            DeadlineReached: lambda _event, now: self.on_deadline(now),
        }

    def handle(self, event: object, now: float) -> list[Effect | OwnerTold]:
        """Take what came of a message of this core's; KeyError for an event of another kind."""
        kind = type(event)
        concerned = self.handlers[kind](event, now)
        self.flush(now)
        effects: list[Effect | OwnerTold] = self.take_effects() if self.effects else []  # type: ignore[assignment]
        is_reading = kind in _READINGS
        for state in concerned:
            owner = state.owner
            was_read = is_reading and state.reading is None
            own = owner.take_effects()
            if was_read or own or owner.listens(state.dpid):
                effects.append(_new(OwnerTold, (owner.xid_tag, state.dpid, was_read, tuple(own))))
        return effects

    # Owners

    def add(self, owner: EntryOwner) -> None:
        """Have an app as owner of the entries with its tag, in the place of one that had this tag before."""
        self.remove(owner.app_tag)
        self._owners[owner.app_tag] = owner
        self._ready = (*self._ready, owner.ready)

    def remove(self, app_tag: int) -> None:
        """Have an app as owner no more."""
        self._owners.pop(app_tag, None)
        self._ready = tuple([owner.ready for owner in self._owners.values()])
        for datapath in tuple(self._datapaths.values()):
            self._drop(datapath, app_tag)

    def owner_left(self, xid_tag: int, now: float) -> tuple[OwnerState, ...]:
        """Take it that the app whose transaction ids have this tag has ended."""
        for app_tag in [owner.app_tag for owner in self._owners.values() if owner.xid_tag == xid_tag]:
            self.remove(app_tag)
        return ()

    def datapath(self, dpid: int) -> Datapath:
        """Return a switch, known from here on."""
        datapath = self._datapaths.get(dpid)
        if datapath is None:
            datapath = self._datapaths[dpid] = Datapath(dpid, self._windows.of(dpid))
        return datapath

    def unsettled(self) -> tuple[int, ...]:
        """Return the connected switches that do not hold yet what some owner wants there."""
        return tuple(
            dpid
            for dpid, datapath in self._datapaths.items()
            if datapath.connected and not all(state.in_sync() for state in datapath.parts.values())
        )

    def drop(self, state: OwnerState) -> None:
        """Forget what an owner has at a switch."""
        self._drop(state.datapath, state.owner.app_tag)

    def _drop(self, datapath: Datapath, app_tag: int) -> None:
        datapath.attached.discard(app_tag)
        state = datapath.parts.pop(app_tag, None)
        if state is not None:
            datapath.under_way = tuple(part for part in datapath.under_way if part is not state)
        if datapath.connected and not datapath.attached:
            self._ended(datapath)
        if not datapath.parts and not datapath.connected:
            self._datapaths.pop(datapath.dpid, None)
            self.due.pop(datapath.dpid, None)

    def use(self, settings: Edits) -> None:
        """Send as many edits at once as the operator wants from here on."""
        self._windows.use(settings)
        for dpid, datapath in self._datapaths.items():
            datapath.window = self._windows.of(dpid)

    # Connections

    def connected(self, state: OwnerState, now: float) -> None:
        """Take in that an owner heard of a connection: the first to do so has the switch read, for all."""
        datapath, app_tag = state.datapath, state.owner.app_tag
        if not datapath.connected or app_tag in datapath.attached:
            self._lost(datapath, now)
            datapath.connected = True
            datapath.window = self._windows.connected(datapath.dpid)
            datapath.attached.add(app_tag)
            self._roles.use(datapath, now)
        datapath.attached.add(app_tag)
        state.connected = datapath.is_ours
        if not state.connected:
            return
        if datapath.reading_xid is None or (state.resources is not None and not datapath.reads_resources):
            self.read(datapath, now)
        else:
            state.owner.reading_begun(state, datapath.reading_xid)

    def disconnected(self, state: OwnerState, now: float) -> None:
        """Take in that an owner heard of the end of a connection."""
        if state.owner.app_tag in state.datapath.attached:
            self._lost(state.datapath, now)

    def _lost(self, datapath: Datapath, now: float) -> None:
        if datapath.barrier_xid is not None:
            datapath.window.lost(datapath.edit_count, now)
        self._ended(datapath)

    def _ended(self, datapath: Datapath) -> None:
        self._roles.ended(datapath)
        self._forget(datapath)
        datapath.connected = False
        datapath.attached.clear()

    def _forget(self, datapath: Datapath) -> None:
        """Wait for nothing that is under way at a switch."""
        self.barriers.cancel(datapath.dpid)
        self._reads.cancel(datapath.dpid)
        self.due.pop(datapath.dpid, None)
        datapath.under_way = ()
        datapath.barrier_xid = datapath.reading_xid = None
        datapath.asked.clear()

    # Roles

    def role_wanted(self, wanted: RoleWanted, now: float) -> tuple[OwnerState, ...]:
        """Ask switches for a role, those that connect later too; return what may not be ours to write meanwhile."""
        self._roles.want(wanted)
        concerned: list[OwnerState] = []
        known = self._datapaths
        dpids = tuple(known) if wanted.dpid is None else (wanted.dpid,)
        for datapath in [known[dpid] for dpid in dpids if dpid in known]:
            if datapath.connected:
                self._roles.use(datapath, now)
                concerned += datapath.attached_parts()
        return tuple(concerned)

    def role_replied(self, reply: RoleReplied, now: float) -> tuple[OwnerState, ...]:
        """Take the role that a switch says we have; return what may have become ours to write."""
        datapath = self._datapaths.get(reply.dpid)
        if datapath is None or not self._roles.replied(datapath, reply, now):
            return ()
        return tuple(datapath.attached_parts())

    def role(self, dpid: int) -> tuple[int | None, int | None]:
        """Return the role and the generation that a switch last said, None for what it did not say."""
        datapath = self._datapaths.get(dpid)
        return (None, None) if datapath is None else (datapath.role, datapath.generation_id)

    def has_refused(self, dpid: int) -> bool:
        """Tell whether a switch refused the role that is wanted there, also while it is asked which one we have."""
        datapath = self._datapaths.get(dpid)
        if datapath is None or datapath.wanted is None:
            return False
        if datapath.role_xid is not None:
            return datapath.role_generation_id is None
        return datapath.role != datapath.wanted.role

    def open(self, datapath: Datapath, now: float) -> None:
        """Begin to write to a switch, which is read first."""
        for state in datapath.attached_parts():
            state.connected = True
        self.read(datapath, now)

    def close(self, datapath: Datapath) -> None:
        """Write to a switch no more."""
        self._forget(datapath)
        for state in datapath.attached_parts():
            state.owner.closed(state)

    def notice(self, datapath: Datapath, kind: str, text: str, now: float, **particulars: object) -> None:
        """Give notice, as the app that heard of the connection first, of what befell a switch."""
        for state in datapath.attached_parts()[:1]:
            state.owner.notice(kind, datapath.dpid, text, now, **particulars)

    # Answers

    def barrier_replied(self, event: BarrierReplied, now: float) -> tuple[OwnerState, ...]:
        """Take the edits before the barrier as done, but for those that failed; return what they belong to."""
        dpid, xid = event
        datapath = self._datapaths.get(dpid)
        if datapath is None or datapath.barrier_xid != xid:
            return ()
        parts, edit_count, window = datapath.under_way, datapath.edit_count, datapath.window
        datapath.under_way, datapath.barrier_xid = (), None
        sent_s = self.barriers.take(dpid)
        if 4 * edit_count >= window.size:
            window.confirmed(edit_count, now - sent_s, now)
        for state in parts:
            batch, state.batch = state.batch, None
            if batch is not None:
                state.owner.batch_done(state, batch, now)
        if datapath.has_more:
            self.due[dpid] = datapath
        return parts

    def edit_failed(self, event: EditFailed, now: float) -> tuple[OwnerState, ...]:
        """Take an OpenFlow error; what it means for the edit is seen at the barrier."""
        dpid, xid, kind, code = event
        datapath = self._datapaths.get(dpid)
        if datapath is not None and self._roles.refused(datapath, event, now):
            return tuple(datapath.attached_parts())
        if datapath is not None and xid in datapath.asked:
            return self._resources_told(datapath, xid, ResourceDescriptions(xid, False, ()), now)
        if datapath is not None and datapath.barrier_xid is not None:
            place = xid - (datapath.barrier_xid - datapath.edit_count)
            for state in datapath.under_way:
                batch = state.batch
                if batch is not None and 0 <= place - batch.place < len(batch.edits):
                    batch.failed[place - batch.place] = (kind, code)
                    return ()
        text = f"Switch {dpid} refused message {xid:#x} with OpenFlow error {kind}/{code}."
        parts = tuple(datapath.parts.values())[:1] if datapath is not None else ()
        for state in parts:
            state.owner.notice("error-unmatched", dpid, text, now, type=kind, code=code)
        return parts

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> tuple[OwnerState, ...]:
        """Take a reply to a reading of all that the owners have on a switch; return whom it concerns."""
        datapath = self._datapaths.get(event.dpid)
        if datapath is None or datapath.reading_xid != event.xid:
            return () if datapath is None else self._check_told(datapath, event, now)
        stats = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, *self._cookies())
        parts, counts = datapath.attached_parts(), True
        for state in parts:
            counts &= state.owner.told(state, stats, now)
        if not counts:
            return tuple(parts)
        if stats.more:
            self._reads.start(datapath.dpid, now)
            return ()
        datapath.flows_told = True
        return self._read_in(datapath, now)

    def check(self, asker: OwnerState, now: float) -> int:
        """Have a switch tell what its owners have there, who compare that; return the transaction id.

        Those who keep no groups or meters take part, beside the one who asks, unless something keeps them from it.
        """
        datapath, xid = asker.datapath, self.xids.take()
        for state in datapath.attached_parts():
            if state is not asker and state.resources is None:
                state.owner.check_begun(state, xid, now)
        self.effects.append(RequestFlows(datapath.dpid, xid, *self._cookies()))
        return xid

    def _check_told(self, datapath: Datapath, event: FlowStatsReceived, now: float) -> tuple[OwnerState, ...]:
        """Take a reply to a check; return what those have there who have something to say of it."""
        parts = [part for part in datapath.attached_parts() if part.check is not None and part.check.xid == event.xid]
        if not parts:
            return ()
        stats = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, *self._cookies())
        return tuple(part for part in parts if part.owner.check_told(part, stats, now))

    def resources_received(self, event: ResourcesReceived, now: float) -> tuple[OwnerState, ...]:
        """Take a reply that tells groups or meters, to a reading of all; return whom it concerns."""
        datapath = self._datapaths.get(event.dpid)
        if datapath is None or event.xid not in datapath.asked:
            return ()
        return self._resources_told(datapath, event.xid, decode_resources(event.message), now)

    def _resources_told(
        self, datapath: Datapath, xid: int, told: ResourceDescriptions, now: float
    ) -> tuple[OwnerState, ...]:
        """Take what a switch tells of its groups or meters; where it refuses to, it has none."""
        parts, counts = datapath.attached_parts(), True
        for state in parts:
            counts &= state.owner.resources_told(state, told, now)
        if not counts:
            return tuple(parts)
        if told.more:
            return ()
        del datapath.asked[xid]
        return self._read_in(datapath, now)

    def _read_in(self, datapath: Datapath, now: float) -> tuple[OwnerState, ...]:
        """Take it that a part of the reading is in; when all is, the owners are told."""
        if datapath.asked or not datapath.flows_told:
            return ()
        self._reads.cancel(datapath.dpid)
        datapath.reading_xid, datapath.doublings = None, 0
        parts = datapath.attached_parts()
        for state in parts:
            state.owner.read(state, now)
        self.due[datapath.dpid] = datapath
        return tuple(parts)

    def read(self, datapath: Datapath, now: float) -> None:
        """Have a switch tell all entries of the owners; groups and meters, which some keep, before them."""
        keepers = [part for part in datapath.attached_parts() if part.resources is not None]
        datapath.reads_resources, datapath.flows_told = bool(keepers), False
        datapath.asked.clear()
        for kind in keepers[0].lowering.resource_kinds if keepers else ():  # type: ignore[union-attr]
            datapath.asked[xid := self.xids.take()] = kind
            self.effects.append(RequestResources(datapath.dpid, xid, kind))
        datapath.reading_xid = self.xids.take()
        for state in datapath.attached_parts():
            state.owner.reading_begun(state, datapath.reading_xid)
        self.effects.append(RequestFlows(datapath.dpid, datapath.reading_xid, *self._cookies()))
        datapath.waits_left = (1 << datapath.doublings) - 1
        self._reads.start(datapath.dpid, now)

    def _cookies(self) -> tuple[int, int]:
        """Return the cookie and the mask that the entries of all owners have in common."""
        tags = list(self._owners)
        mask = _ALL_BITS
        for tag in tags:
            mask &= ~(tag ^ tags[0])
        return (tags[0] & mask) << 64 - _COOKIE_BITS, mask << 64 - _COOKIE_BITS

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        if self._due_s is not None:
            return self._due_s
        soonest = self.barriers.next()
        for timeouts in self._answers:
            if timeouts.due:
                soonest = earliest(soonest, timeouts.next())
        return soonest

    def on_deadline(self, now: float) -> tuple[OwnerState, ...]:
        """Send what was gathered, and read switches that owe an answer; return what may be another than thought."""
        concerned: list[OwnerState] = self._send_due(now)
        for dpid in self.barriers.take_due(now):
            datapath = self._datapaths[dpid]
            text = f"Switch {dpid} did not answer a barrier: its flow entries are read."
            datapath.window.failed(datapath.edit_count)
            for state in datapath.under_way:
                state.owner.notice("barrier-timeout", dpid, text, now)
                if state.batch is not None:
                    state.take_back(state.batch)
                    state.batch = None
            concerned += datapath.under_way
            datapath.under_way, datapath.barrier_xid = (), None
            self.read(datapath, now)
        for dpid in self._reads.take_due(now):
            datapath = self._datapaths[dpid]
            if datapath.waits_left:
                datapath.waits_left -= 1
                self._reads.start(dpid, now)
                continue
            datapath.doublings = min(datapath.doublings + 1, READ_DOUBLINGS)
            text = f"Switch {dpid} did not tell its flow entries in time: it is asked again, and has twice as long."
            parts = datapath.attached_parts()
            for state in parts[:1]:
                state.owner.notice("read-timeout", dpid, text, now)
            concerned += parts[:1]
            self.read(datapath, now)
        for dpid in self._roles.timeouts.take_due(now):
            self._roles.overdue(self._datapaths[dpid], now)
            concerned += self._datapaths[dpid].attached_parts()[:1]
        for dpid in self._roles.confirms.take_due(now):
            self._roles.confirm(self._datapaths[dpid], now)
        return tuple(concerned)
