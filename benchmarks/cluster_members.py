"""Controllers and switches of simulated histories: real members, places and installers; messages take their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from controller.cluster.effects import FollowPeer, Leading, StoreRequest, TellOperators, WatchKeys
from controller.cluster.engine import (
    Committed,
    ConditionFailed,
    KeyChanges,
    KeyPage,
    PutKey,
    ReadPage,
    Reply,
    Transaction,
)
from controller.cluster.events import (
    Answered,
    ConfirmWanted,
    ControllerBeat,
    ControllerGone,
    FenceRefused,
    KeysChanged,
    PeerGone,
    PeerHeard,
    RoleLost,
    WatchEnded,
)
from controller.cluster.keys import Keys, Leader
from controller.cluster.member import MemberCore
from controller.cluster.member_settings import MemberSettings
from controller.cluster.memory_engine import MemoryEngine, MemoryWatch
from controller.cluster.place import BeginAnew, ConfirmLead, Course, LetIn, PlaceCore, TakenOver, TakeOver
from controller.datapath.core import DatapathCore, OwnerTold
from controller.effects import ApplyEdits, RequestFlows, RequestRole, RoleDenied
from controller.effects import Put as PutRule
from controller.events import (
    ControllerRole,
    DeadlineReached,
    EditFailed,
    RoleWanted,
    SwitchConnected,
    SwitchDisconnected,
    TableChanged,
)
from controller.rules.fake import FakeSwitch
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.pipeline import OPENFLOW_1_3

FABRIC = "simulated"
KEYS = Keys(FABRIC)
JOURNAL = f"{KEYS.root}journal/operator/"
TAG = 0x5601
COOKIE_MASK = (1 << 48) - 1


PIPE_S = 0.0005
"""How long what the member decides takes to the controller beside it."""

BEGIN_S = 3.0
"""How long a controller takes to begin anew."""


class Connection:
    """A controller's connection to a switch, as the switch has it."""

    def __init__(self, node: Node, run: int) -> None:
        self.node = node
        self.run = run
        self.role = ControllerRole.EQUAL


class Switch:
    """A switch: a new connection is equal, a new master makes slaves of others, without a word.

    Of OpenFlow 1.0, with the roles of Nicira, it knows no generations: the last one who asks is master.
    """

    def __init__(self, world: Any, dpid: int, ofp_version: int = OPENFLOW_1_3) -> None:
        self.world = world
        self.dpid = dpid
        self.ofp_version = ofp_version
        self.fake = FakeSwitch(dpid, ofp_version)
        self.connections: dict[str, Connection] = {}
        self.master_epoch: int | None = None

    def take(self, connection: Connection, effect: Any, epoch: int | None) -> list[Any]:
        """Take a message that its sender sent while it led in `epoch`; return the answers."""
        if self.connections.get(connection.node.name) is not connection:
            return []
        self.fake.role = connection.role
        answers = self.fake.respond(effect, self.world.now)
        connection.role = self.fake.role
        if type(effect) is RequestRole and effect.role is ControllerRole.MASTER:
            if type(answers[0]) is not EditFailed:
                self.world.has_master(self, connection, effect.generation_id)
                self.master_epoch = effect.generation_id
                for other in self.connections.values():
                    if other is not connection and other.role is ControllerRole.MASTER:
                        other.role = ControllerRole.SLAVE
        elif type(effect) is ApplyEdits:
            refused = sum(type(answer) is EditFailed for answer in answers)
            if len(effect.edits) > refused:
                self.world.written(self, connection, epoch)
        return answers

    def restart(self) -> None:
        """Lose entries, roles and generation, and all connections."""
        self.fake, self.master_epoch = FakeSwitch(self.dpid, self.ofp_version), None
        for connection in tuple(self.connections.values()):
            connection.node.disconnect(self)


class Node:
    """A controller: a member, and what it has for switches."""

    def __init__(self, world: Any, name: str) -> None:
        self.world = world
        self.name = name
        self.run = 0
        self.is_up = False
        self.is_stopped = False
        self.idle_s = 0.0
        self.backlog: list[Callable[[], None]] = []
        self.engine = MemoryEngine(world.store)
        self.without: set[int] = set()
        self.is_cut_from_peers = False

    def start(self) -> None:
        """Begin as a new process."""
        self.run += 1
        self.incarnation = f"{self.name}-{self.run}"
        self.is_up, self.is_stopped, self.idle_s, self.backlog = True, False, 0.0, []
        self.connected_dpids: frozenset[int] = frozenset()
        self.member = MemberCore(MemberSettings(FABRIC, self.name, self.incarnation, self.name), self.world.now)
        self.core = DatapathCore(0xA0)
        self.place = PlaceCore(3.0, self.core)
        self.app = Installer(TAG, datapath=self.core)
        self.followed: Leader | None = None
        self.leading = Leading(None, None, False, 0.0)
        self.watch: MemoryWatch | None = None
        self.watch_number = 0
        self.give(DeadlineReached())
        for switch in self.world.switches.values():
            self.connect(switch)

    def kill(self) -> None:
        """End at once; what was sent before arrives."""
        self.is_up = False
        run = self.run
        for switch in self.world.switches.values():
            self.world.later(0.05, lambda switch=switch: self._closed(switch, run))

    def _closed(self, switch: Switch, run: int) -> None:
        connection = switch.connections.get(self.name)
        if connection is not None and connection.run == run:
            del switch.connections[self.name]

    def resume(self) -> None:
        """Go on where it stopped, with all that came meanwhile."""
        self.is_stopped = False
        backlog, self.backlog = self.backlog, []
        for action in backlog:
            action()

    def at(self, channel: str, action: Callable[[], None], delay_s: float | None = None) -> None:
        """Have something happen to this process after a delay, if it still is."""
        run = self.run

        def happen() -> None:
            if run != self.run or not self.is_up:
                return
            if self.is_stopped:
                self.backlog.append(happen)
            else:
                action()

        self.world.later(
            self.world.delay_s() if delay_s is None else delay_s, happen, f"{self.incarnation} {channel}"
        )

    # Its parts

    def give(self, event: object) -> None:
        """Have the member take an event."""
        for effect in self.member.handle(event, self.world.now):
            if type(effect) is StoreRequest:
                number = effect.number
                self.world.ask(self, effect.request, lambda reply, number=number: self.give(Answered(number, reply)))
            elif type(effect) is WatchKeys:
                self.watch = self.engine.watch(effect.prefix, effect.after_revision)
                self.watch_number = effect.watch
            elif type(effect) is FollowPeer:
                self.followed = effect.leader
            elif type(effect) is RoleWanted or type(effect) is Leading:
                if type(effect) is Leading:
                    self.leading = effect
                    if effect.epoch is not None:
                        self.world.leads(self, effect.epoch)
                self.at("pipe", lambda told=effect: self.put(told), PIPE_S)
            elif type(effect) is TellOperators:
                self.world.told[effect.kind] += 1
                assert effect.text.endswith("."), effect.text

    def put(self, event: object) -> None:
        """Have the controller's place take an event."""
        for effect in self.place.handle(event, self.world.now):
            if type(effect) is RoleWanted:
                self.perform(self.core.handle(effect, self.world.now))
            elif type(effect) is TakeOver:
                self.load(effect.epoch, "", 0, [])
            elif type(effect) is LetIn:
                for dpid in effect.dpids:
                    version = self.world.switches[dpid].ofp_version
                    self.perform(self.app.handle(SwitchConnected(dpid, version, ()), self.world.now))
            elif type(effect) is ConfirmLead:
                self.at("say", lambda: self.give(ConfirmWanted()), PIPE_S)
            elif type(effect) is BeginAnew:
                self.begin_anew()
            else:
                self.perform((effect,))

    def begin_anew(self) -> None:
        """End in order, and be another process some time later."""
        self.world.told["begins-anew"] += 1
        self.give(ControllerGone())
        self.kill()
        run = self.run
        self.world.later(BEGIN_S, lambda: self.start() if self.run == run else None)

    def load(self, epoch: int, after: str, revision: int, loaded: list[int]) -> None:
        """Read the journal page by page, and have its entries desired."""

        def read(reply: Reply) -> None:
            if self.place.epoch != epoch:
                return
            if type(reply) is not KeyPage:
                self.load(epoch, "", 0, [])
                return
            loaded.extend(int(held.value) for held in reply.held)
            if reply.has_more:
                self.load(epoch, reply.held[-1].key, reply.revision, loaded)
                return
            self.desire(loaded)
            self.put(TakenOver(epoch))

        self.world.ask(self, ReadPage(JOURNAL, after, revision), read)

    def desire(self, numbers: Iterable[int]) -> None:
        """Have entries at the switches of some actions."""
        rules = [
            FlowEntry(FlowKey(0, 10, Match(in_port=number)), (Output(1),), TAG << 48 | number) for number in numbers
        ]
        edits = [(dpid, PutRule(rule)) for rule in rules for dpid in self.world.places(rule.cookie & COOKIE_MASK)]
        if edits:
            self.perform(self.app.change([edits], self.world.now))

    def act(self, number: int) -> None:
        """Take an operator's action: it counts when the store has it."""
        fence, epoch = self.leading.fence, self.leading.epoch
        if fence is None or epoch is None or self.place.course is not Course.LEADING:
            return
        put, asked_s = PutKey(f"{JOURNAL}{number:06}", str(number)), self.world.now

        def done(reply: Reply) -> None:
            if type(reply) is Committed:
                self.world.acknowledged(number, asked_s)
                if self.leading.fence == fence:
                    self.desire([number])
            elif type(reply) is ConditionFailed and reply.held:
                self.give(FenceRefused(epoch))

        self.world.ask(self, Transaction((fence,), (put,), True), done)

    def perform(self, effects: Iterable[Any]) -> None:
        """Carry out what is for switches."""
        for effect in effects:
            if type(effect) is OwnerTold:
                self.perform(effect.effects)
                if effect.xid_tag == self.place.xid_tag:
                    self.put(TableChanged(effect.dpid, effect.was_read))
            elif type(effect) is RoleDenied:
                self.at("self", lambda effect=effect: self.give(RoleLost(effect.dpid, effect.generation_id)), 0.0)
            elif type(effect) in (ApplyEdits, RequestFlows, RequestRole):
                self.send(effect)

    def send(self, effect: Any) -> None:
        """Have a message reach a switch, and its answers come back."""
        switch, epoch = self.world.switches[effect.dpid], self.place.epoch
        connection = switch.connections.get(self.name)
        if connection is None or connection.run != self.run:
            return

        def arrive() -> None:
            for answer in switch.take(connection, effect, epoch):
                self.at(f"from {switch.dpid}", lambda answer=answer: self.answered(switch, connection, answer))

        self.world.later(self.world.delay_s(), arrive, f"{self.incarnation} to {switch.dpid}")

    def answered(self, switch: Switch, connection: Connection, answer: Any) -> None:
        """Take a switch's answer."""
        if switch.connections.get(self.name) is connection:
            self.perform(self.core.handle(answer, self.world.now))

    def connect(self, switch: Switch) -> None:
        """Have a connection to a switch."""
        if switch.dpid not in self.without:
            switch.connections[self.name] = Connection(self, self.run)
            self.connected_dpids |= {switch.dpid}
            self.at("switches", lambda: self.connected(switch))

    def connected(self, switch: Switch) -> None:
        """Know of a connection: the switch is asked for a role before it is taken in."""
        wanted = self.place.role_at(switch.dpid, switch.ofp_version, self.world.now)
        if wanted is not None:
            self.perform(self.core.handle(wanted, self.world.now))
        self.put(SwitchConnected(switch.dpid, switch.ofp_version, ()))

    def disconnected(self, switch: Switch) -> None:
        """Know that a connection has ended."""
        was_in = self.place.switches.get(switch.dpid, False)
        self.put(SwitchDisconnected(switch.dpid))
        if was_in:
            self.perform(self.app.handle(SwitchDisconnected(switch.dpid), self.world.now))

    def disconnect(self, switch: Switch) -> None:
        """Lose the connection to a switch, and have another one soon unless something is in between."""
        if switch.connections.pop(self.name, None) is not None:
            self.connected_dpids -= {switch.dpid}
            self.at("switches", lambda: self.disconnected(switch))
        self.at("switches", lambda: self.connect(switch) if self.name not in switch.connections else None, 0.5)

    def tick(self) -> None:
        """Do what is due, and take what the watch tells."""
        if not self.is_up or self.is_stopped:
            return
        now = self.world.now
        due = self.member.next_deadline()
        if due is not None and due <= now:
            self.give(DeadlineReached())
        at_s = self.place.next_deadline()
        if at_s is not None and at_s <= now:
            self.put(DeadlineReached())
        for holder in (self.core, self.app):
            at_s = holder.next_deadline()
            if at_s is not None and at_s <= now:
                self.perform(holder.handle(DeadlineReached(), now))

    def look(self) -> None:
        """Have told what the watch has."""
        if not self.is_up or self.watch is None:
            return
        watch, number = self.watch, self.watch_number
        told = watch.take(0.0)
        if type(told) is KeyChanges:
            changes = told.changes
            self.at("watch", lambda: self.give(KeysChanged(number, changes)))
        elif told is not None:
            self.watch = None
            self.at("watch", lambda: self.give(WatchEnded(number)))

    def beat(self) -> None:
        """Hear one's own controller, and the leader."""
        if not self.is_up:
            return
        if not self.is_stopped:
            self.at("beats", lambda: self.give(ControllerBeat(self.idle_s, self.connected_dpids)), 0.0)
        leader = self.followed
        peer = None if leader is None else self.world.nodes.get(leader.peer)
        if leader is None or peer is None or self.is_cut_from_peers or peer.is_cut_from_peers:
            return
        if peer.is_up and peer.incarnation == leader.incarnation:
            if not peer.is_stopped:
                self.at("peer", lambda: self.give(PeerHeard(leader.incarnation)))
        else:
            self.at("peer", lambda: self.give(PeerGone(leader.incarnation)))
