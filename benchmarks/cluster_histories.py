"""Histories of three controllers that share switches through a store, drawn by seed, and what must hold in all.

    python benchmarks/cluster_histories.py [--seeds 1000] [--first 1] [--size small|middle|large] [--emptied 0.3]
        [--json]

Members are the real ones (`controller.cluster.member`), and so is what asks switches for roles and writes to them
(`controller.datapath`); the store is the twin in memory, switches are those of the tests with the roles of Open
vSwitch. Processes are killed and stopped, cut off from the store, from each other and from switches; the store is
silent, stands still, loses requests and replies, or is emptied; switches restart. Time is simulated: what is told of
take-overs are seconds of that.

A history ends with an AssertionError that names its seed where a switch accepted a write of an older epoch than its
last master's, or had two writers in an epoch, where an action was lost after it had been acknowledged, and where
`SETTLE_S` after the last fault there is no leader, or a switch is not as it is to be.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter, defaultdict
from collections.abc import Collection
from typing import NamedTuple

from cluster_members import COOKIE_MASK, JOURNAL, Connection, Node, Switch
from measure import Measurement, report
from simulated_store import Timeline

from controller.cluster.engine import OPERATIONS_BOUND, PutKey, Transaction
from controller.cluster.events import HandOverWanted
from controller.cluster.memory_engine import MemoryEngine, RequestFault
from controller.events import ControllerRole
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3

TICK_S = 0.02
BEAT_S = 0.1
ACTION_S = 0.4
ACTIONS_BOUND = 1000
"""Actions have lower numbers than this, groups from before higher ones."""

ENTRIES_OF_ONE = 3
"""Switches that have an entry of an action, or of a group, at most."""

FAULTS_FROM_S, FAULTS_UNTIL_S = 5.0, 60.0
FAULT_S = 4.0
SETTLE_S = 30.0


class Take(NamedTuple):
    """A leader that was killed or stopped, and how long no other led, in seconds of the history."""

    fault: str
    seconds: float


class Size(NamedTuple):
    """How large a fabric is; every so many switches one speaks OpenFlow 1.0."""

    switches: int
    groups: int
    old_every: int


SMALL = Size(3, 0, 3)
MIDDLE = Size(60, 600, 10)
LARGE = Size(1000, 10_000, 10)
SIZES = {"small": SMALL, "middle": MIDDLE, "large": LARGE}
SIZES_HELP = ", ".join(f"{name}: {size.switches:,} switches, {size.groups:,} groups" for name, size in SIZES.items())


class World(Timeline):
    """Members, switches and a store, with one clock and one source of chance."""

    def __init__(self, seed: int, members: int = 3, size: Size = SMALL, emptied: float = 0.0) -> None:
        super().__init__(seed)
        self._emptied_share = emptied
        self.told: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.takes: list[Take] = []
        self.writes = 0
        self.acknowledged_numbers: set[int] = set()
        self._writers: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        self._leaders: dict[int, str] = {}
        self._lost_lead: tuple[str, str, float] | None = None
        self._action = 0
        self._emptied_s = -1.0
        self.size = size
        self.switches = {
            dpid: Switch(self, dpid, OPENFLOW_1_0 if dpid % size.old_every == 0 else OPENFLOW_1_3)
            for dpid in range(1, size.switches + 1)
        }
        self.groups = frozenset(range(ACTIONS_BOUND, ACTIONS_BOUND + size.groups))
        self._keep_groups()
        self.nodes = {f"c{number}": Node(self, f"c{number}") for number in range(1, members + 1)}
        for node in self.nodes.values():
            self.later(self.chance.uniform(0, 0.5), node.start)
        self._tick()
        self._beat()
        self._act()

    def places(self, number: int) -> Collection[int]:
        """Return the switches that have an entry of an action, or of a group."""
        count = len(self.switches)
        if count <= ENTRIES_OF_ONE:
            return self.switches
        return [(number * at) % count + 1 for at in range(1, ENTRIES_OF_ONE + 1)]

    def _keep_groups(self) -> None:
        """Have the journal know groups from before."""
        engine, numbers = MemoryEngine(self.store), sorted(self.groups)
        for at in range(0, len(numbers), OPERATIONS_BOUND):
            some = numbers[at : at + OPERATIONS_BOUND]
            engine.ask(Transaction((), tuple(PutKey(f"{JOURNAL}{number:06}", str(number)) for number in some)))

    # Time

    def _tick(self) -> None:
        self.store.advance(self.now)
        for node in self.nodes.values():
            node.tick()
            node.look()
        self.later(TICK_S, self._tick)

    def _beat(self) -> None:
        for node in self.nodes.values():
            node.beat()
        self.later(BEAT_S, self._beat)

    def _act(self) -> None:
        """Have somebody who takes itself for the leader take an action."""
        leaders = [node for node in self.nodes.values() if node.is_up and not node.is_stopped and node.leading.fence]
        if leaders:
            self._action += 1
            self.chance.choice(leaders).act(self._action)
        self.later(ACTION_S, self._act)

    # What must hold

    def written(self, switch: Switch, connection: Connection, epoch: int | None) -> None:
        """Take it that a switch accepted edits; without generations who is elected anew goes on as master."""
        self.writes += 1
        latest = switch.master_epoch
        assert connection.role is ControllerRole.MASTER, (self.seed, self.now, "written by one who is no master")
        told = f"switch {switch.dpid}: written in epoch {epoch}, the last master's is {latest}"
        without = switch.ofp_version == OPENFLOW_1_0
        goes_on = without and epoch is not None and latest is not None and epoch > latest
        assert epoch == latest or goes_on, (self.seed, self.now, told)
        assert epoch is not None, (self.seed, self.now, told)
        writers = self._writers[switch.dpid, epoch]
        writers.add(connection.node.incarnation)
        assert len(writers) == 1, (self.seed, self.now, f"two writers in {epoch}", writers)

    def has_master(self, switch: Switch, connection: Connection, epoch: int) -> None:
        """Take it that a switch has another master, which of OpenFlow 1.0 may be any who asks."""
        told = f"switch {switch.dpid} was asked in epoch {epoch}, after {switch.master_epoch}"
        assert switch.master_epoch is None or epoch >= switch.master_epoch, (self.seed, self.now, told)

    def leads(self, node: Node, epoch: int) -> None:
        """Take it that a member leads."""
        former = self._leaders.setdefault(epoch, node.incarnation)
        assert former == node.incarnation, (self.seed, self.now, f"two leaders in {epoch}")
        lost = self._lost_lead
        if lost is None:
            return
        self._lost_lead = None
        if lost[1] != node.incarnation:  # else it went on before anybody was elected
            self.takes.append(Take(lost[0], self.now - lost[2]))

    def acknowledged(self, number: int, asked_s: float) -> None:
        """Take it that an operator was told that an action is done; a store that is emptied later takes it along."""
        if asked_s > self._emptied_s:
            self.acknowledged_numbers.add(number)

    def leaders(self) -> list[Node]:
        """Return who takes itself for the leader."""
        return [node for node in self.nodes.values() if node.is_up and node.member.epoch is not None]

    def is_settled(self) -> bool:
        """Tell whether one member leads, and is master of every switch, all of which are as it wants them."""
        leaders = self.leaders()
        if len(leaders) != 1 or leaders[0].is_stopped:
            return False
        (leader,) = leaders
        for switch in self.switches.values():
            masters = [name for name, each in switch.connections.items() if each.role is ControllerRole.MASTER]
            if masters != [leader.name] or not leader.app.in_sync(switch.dpid):
                return False
        return True

    def check(self) -> None:
        """Check how things are in the end."""
        (leader,) = self.leaders()
        epoch = leader.member.epoch
        held = {int(key.removeprefix(JOURNAL)) for key in self.store._versions if key.startswith(JOURNAL)}
        assert held >= self.acknowledged_numbers, (self.seed, "lost", self.acknowledged_numbers - held)
        wanted: defaultdict[int, set[int]] = defaultdict(set)
        for number in self.acknowledged_numbers:
            for dpid in self.places(number):
                wanted[dpid].add(number)
        for dpid, switch in self.switches.items():
            assert switch.ofp_version == OPENFLOW_1_0 or switch.master_epoch == epoch, (self.seed, dpid)
            there = {rule.cookie & COOKIE_MASK for rule in switch.fake.rules.values()}
            assert there >= wanted[dpid], (self.seed, dpid, wanted[dpid] - there)

    # Faults

    def begin_fault(self) -> None:
        """Have something go wrong for a while, and the next thing some time later."""
        if self.now >= FAULTS_UNTIL_S:
            return
        if self._emptied_share and self.chance.random() < self._emptied_share:
            self._empty_under_leader()
        kinds = (
            *(self.fault_kill, self.fault_kill, self.fault_stop, self.fault_stop, self.fault_store_cut),
            *(self.fault_peer_cut, self.fault_switch_cut, self.fault_switch_restarts, self.fault_store_silent),
            *(self.fault_store_stands_still, self.fault_store_loses, self.fault_hand_over, self.fault_stall),
        )
        kind = self.fault_store_emptied if self.chance.random() < 0.02 else self.chance.choice(kinds)
        leaders = self.leaders()
        node = self.chance.choice(leaders if leaders and self.chance.random() < 0.6 else [*self.nodes.values()])
        for_s = min(self.chance.uniform(0.2, 8.0), FAULTS_UNTIL_S - self.now)
        if node.is_up and not node.is_stopped:
            self.faults[kind.__name__.removeprefix("fault_")] += 1
            kind(node, for_s)
        self.later(self.chance.expovariate(1 / FAULT_S), self.begin_fault)

    def _empty_under_leader(self) -> None:
        """Have the store lose all, and within a second the leader end, stand still or be cut off from the store."""
        self.faults["store_emptied"] += 1
        self._empty_store()
        if not (leaders := self.leaders()):
            return
        node, for_s = self.chance.choice(leaders), min(self.chance.uniform(0.2, 8.0), FAULTS_UNTIL_S - self.now)
        kinds = (self.fault_stop, self.fault_kill, self.fault_store_cut, self.fault_store_stands_still)
        kind = self.chance.choice(kinds)

        def end() -> None:
            if node.is_up and not node.is_stopped:
                self.faults[kind.__name__.removeprefix("fault_")] += 1
                kind(node, for_s)

        self.later(self.chance.uniform(0, 1.0), end)

    def _lead_lost(self, fault: str, node: Node) -> None:
        if node.member.epoch is not None:
            self._lost_lead = (fault, node.incarnation, self.now)

    def fault_kill(self, node: Node, for_s: float) -> None:
        self._lead_lost("killed", node)
        node.kill()
        self.later(for_s, node.start)

    def fault_stop(self, node: Node, for_s: float) -> None:
        self._lead_lost("stopped", node)
        node.is_stopped = True
        run = node.run
        self.later(for_s, lambda: node.resume() if node.run == run and node.is_up else None)

    def fault_store_cut(self, node: Node, for_s: float) -> None:
        node.engine.fault = self.chance.choice((RequestFault.REQUEST_LOST, RequestFault.REPLY_LOST))
        self.later(for_s, lambda: setattr(node.engine, "fault", None))

    def fault_peer_cut(self, node: Node, for_s: float) -> None:
        node.is_cut_from_peers = True
        self.later(for_s, lambda: setattr(node, "is_cut_from_peers", False))

    def fault_switch_cut(self, node: Node, for_s: float) -> None:
        switch = self.switches[self.chance.choice([*self.switches])]
        node.without.add(switch.dpid)
        node.disconnect(switch)

        def heal() -> None:
            node.without.discard(switch.dpid)
            node.disconnect(switch)

        self.later(for_s, heal)

    def fault_switch_restarts(self, _node: Node, _for_s: float) -> None:
        self.switches[self.chance.choice([*self.switches])].restart()

    def fault_store_silent(self, _node: Node, for_s: float) -> None:
        self.store.advance(self.now)
        self.store.be_silent(for_s)

    def fault_store_stands_still(self, _node: Node, for_s: float) -> None:
        self.store.advance(self.now)
        self.store.stand_still(for_s)

    def fault_store_loses(self, _node: Node, for_s: float) -> None:
        self.loss = self.chance.uniform(0.05, 0.5)
        self.later(for_s, lambda: setattr(self, "loss", 0.0))

    def fault_store_emptied(self, _node: Node, _for_s: float) -> None:
        self._empty_store()

    def _empty_store(self) -> None:
        """Have the store lose all, groups apart: whoever leads writes them anew."""
        self.store.empty()
        self._emptied_s = self.now
        self.acknowledged_numbers.clear()
        self._keep_groups()

    def fault_hand_over(self, node: Node, _for_s: float) -> None:
        node.give(HandOverWanted())

    def fault_stall(self, node: Node, for_s: float) -> None:
        node.idle_s = 20.0
        run = node.run
        self.later(for_s, lambda: setattr(node, "idle_s", 0.0) if node.run == run else None)


def history(seed: int, size: Size = SMALL, emptied: float = 0.0) -> World:
    """Return a world after a history; AssertionError where something did not hold.

    Before the share `emptied` of its faults the store is emptied while its leader ends.
    """
    world = World(seed, size=size, emptied=emptied)
    world.later(FAULTS_FROM_S, world.begin_fault)
    world.run(FAULTS_UNTIL_S + 0.5)
    ends_s = world.now + SETTLE_S
    world.run(ends_s, world.is_settled)
    assert world.is_settled(), (
        seed,
        "not settled",
        [(n.name, n.member.standing, n.member.epoch) for n in world.nodes.values()],
    )
    world.check()
    return world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--size", choices=SIZES, default="small", help=SIZES_HELP)
    text = "before which share of faults the store is emptied too, while its leader ends"
    parser.add_argument("--emptied", type=float, default=0.0, help=text)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    takes: defaultdict[str, list[float]] = defaultdict(list)
    faults, writes, actions = Counter[str](), [], []
    gc.disable()  # half of a large history's time goes into looking for cycles
    begun_s = time.process_time()
    for seed in range(args.first, args.first + args.seeds):
        world = history(seed, SIZES[args.size], args.emptied)
        faults += world.faults
        writes.append(world.writes)
        actions.append(len(world.acknowledged_numbers))
        for take in world.takes:
            takes[take.fault].append(take.seconds)
        del world
        gc.collect()
    measurements = [
        Measurement(f"leader {fault}: no other led for", "s", seconds) for fault, seconds in sorted(takes.items())
    ]
    measurements += [
        Measurement("batches of edits accepted in a history", "", writes),
        Measurement("actions acknowledged in a history", "", actions),
        Measurement("processor time of a history", "s", [(time.process_time() - begun_s) / args.seeds]),
    ]
    measurements += [Measurement(f"fault: {name}", "", [count]) for name, count in sorted(faults.items())]
    report(measurements, as_json=args.json, source="cluster_histories")


if __name__ == "__main__":
    main()
