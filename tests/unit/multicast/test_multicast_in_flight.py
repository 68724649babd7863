"""Packets under way while links fail and return: hops and edits in any order, and nobody gets a packet twice.

`World` delivers a packet in one go; here a copy moves one hop at a time between the edits, and may wait at a switch
until that one has changed. Time stands still while packets are under way.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import DeadlineReached, PacketReceived, SwitchDisconnected
from controller.rules.evaluate import Fields
from controller.rules.fake import Copy
from controller.trees.cables import told_apart
from controller.wire.addresses import parse_ip
from topology.events import LinkDown, PortRole, PortRoleChanged
from topology.generators.draft import Draft
from topology.graph import Graph, NodeKind
from wire_frames import fields_of

from .conftest import World, ring

GROUP = parse_ip("239.1.2.3")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)


def diamond() -> Graph:
    """Return two ToRs with two hosts each, joined by two switches."""
    draft = Draft(1e9)
    tors = [draft.switch(NodeKind.TOR) for _ in range(2)]
    middles = [draft.switch(NodeKind.AGGREGATION) for _ in range(2)]
    for tor in tors:
        draft.hosts(tor, 2)
        for middle in middles:
            draft.link(tor, middle)
    return draft.graph


@dataclass
class Packet:
    """A packet under way: its copies, and who got it."""

    sender: str
    frame: bytes
    fields: Fields
    copies: list[Copy]
    got: Counter[str] = field(default_factory=Counter)


class Race:
    """A world whose packets and edits take turns as `dice` has it."""

    def __init__(self, world: World, members: list[str], senders: list[str], dice: random.Random) -> None:
        self.world = world
        self.members = members
        self.senders = senders
        self.dice = dice
        self.packets: list[Packet] = []
        self.slow: set[int] = set()
        self.names = {host.place: host.name for host in world.hosts.values()}
        for name in members:
            world.join(name)
        for name in senders:
            world.send(name)
        world.settle()

    def links(self) -> list[list[int]]:
        return sorted(sorted(link) for link in self.world.core.forest.tree(GROUP).links())

    def cables(self) -> list[list[int]]:
        """Return the cables of the tree as `World.links` names them."""
        forest = self.world.core.forest
        own = told_apart(forest.tree(GROUP), forest.loads)
        ends = {cable.ends for cable in own.values()} | {
            forest.graph.link(u, v).ends for u, v in forest.tree(GROUP).links() if (u, v) not in own
        }
        return sorted(sorted(name) for name, both in self.world.links.items() if frozenset(both) in ends)

    def send(self, count: int = 1) -> list[Packet]:
        sent = []
        for _ in range(count):
            sender = self.dice.choice(self.senders)
            frame = self.world.data(sender)
            fields = fields_of(frame)
            sent.append(Packet(sender, frame, fields, [self.first(sender, fields)]))
        self.packets += sent
        return sent

    def first(self, sender: str, fields: Fields) -> Copy:
        """Return a packet as its sender's switch gets it."""
        return Copy(*self.world.hosts[sender].place, fields.eth_dst)

    def hop(self, packet: Packet) -> None:
        copy = packet.copies.pop(self.dice.randrange(len(packet.copies)))
        onward, hosts, punts = self.world.fabric.forward(copy, packet.fields)
        packet.copies += onward
        for punt in punts:
            first = len(self.world.packet_outs)
            self.world.feed(PacketReceived(punt.dpid, punt.in_port, packet.frame))
            packet.got.update(self.names[to] for to, sent in self.world.packet_outs[first:] if sent == packet.frame)
        packet.got.update(self.names[to.dpid, to.port_no] for to in hosts)

    def moving(self, wait: bool) -> list[Packet]:
        """Return packets with a copy to move; those with one at a slow switch are left out while they `wait`."""
        return [p for p in self.packets if p.copies and not (wait and any(c.dpid in self.slow for c in p.copies))]

    def turn(self) -> bool:
        """Carry out an edit, or move a copy; False where nothing is left to do but to wait."""
        busy = [dpid for dpid, queue in self.world.queues.items() if queue]
        packets = self.moving(wait=bool(busy))
        if packets and (not busy or self.dice.random() < 0.5):
            self.hop(self.dice.choice(packets))
        elif busy:
            self.world.step(self.dice.choice(busy))
        else:
            return False
        return True

    def run(self, count: int) -> None:
        for _ in range(count):
            if not self.turn():
                return

    def settle(self, until_s: float = 0.6) -> None:
        """Let all packets arrive, and all edits be made that follow within some time."""
        world, end_s = self.world, self.world.now + until_s
        while True:
            while self.turn():
                pass
            due_s = world.core.next_deadline()
            if due_s is None or due_s > end_s:
                return
            world.now = max(world.now, due_s)
            world.feed(DeadlineReached())

    def pull(self, *name: int) -> None:
        """Pull a cable; the controller is told later."""
        pair = frozenset(name)
        self.world.fabric.cut(self.world.links[pair][0])
        self.world.down_links.add(pair)

    def told(self, *name: int) -> None:
        ends = self.world.links[frozenset(name)]
        for end in ends:
            self.world.feed(PortRoleChanged(*end, PortRole.DOWN))
        self.world.feed(LinkDown(*ends[0], *ends[1]))

    def reached_without(self, sender: str, lost: set[frozenset[int]]) -> set[str]:
        """Return the members on the sender's side of links of the present tree that are lost."""
        names = [frozenset(name) for name in self.cables()]
        links = [frozenset(dpid for dpid in name if dpid > 0) for name in names if name not in lost]
        found, queue = set(), [self.world.hosts[sender].dpid]
        while queue:
            here = queue.pop()
            found.add(here)
            queue += [there for link in links if here in link for there in link - {here} if there not in found]
        return {name for name in self.members if self.world.hosts[name].dpid in found and name != sender}

    def check_once(self) -> None:
        for packet in self.packets:
            assert set(packet.got.values()) <= {1}, packet
            assert packet.got.keys() <= set(self.members) - {packet.sender}

    def check_all(self, packets: list[Packet]) -> None:
        for packet in packets:
            assert packet.got == dict.fromkeys(set(self.members) - {packet.sender}, 1)


class Changes:
    """Members and links of a race come and go: `steady` are members throughout, `out` links that are not there."""

    def __init__(self, race: Race) -> None:
        self.race = race
        self.steady = set(race.members)
        self.out: list[list[int]] = []
        self._others = [name for name in race.world.hosts if name not in race.members]

    def make(self, what: str) -> None:
        """Pull a link of the tree or mend one, or have a member join or leave, where there is one that may."""
        race, world, dice = self.race, self.race.world, self.race.dice
        if what == "pull" and race.links():
            link = dice.choice(race.cables())
            race.pull(*link)
            race.run(dice.randrange(4))
            race.told(*link)
            self.out.append(link)
        elif what == "mend" and self.out:
            link = self.out.pop(dice.randrange(len(self.out)))
            world.plug(*link)
            race.run(dice.randrange(10))
            world.link_up(*world.links[frozenset(link)])
        elif what == "join" and self._others:
            race.members.append(self._others.pop())
            world.join(race.members[-1])
        elif what == "leave" and len(race.members) > 2:
            name = race.members.pop(dice.randrange(len(race.members)))
            self.steady.discard(name)
            self._others.append(name)
            world.leave(name)

    def check(self, seed: int, steady_get_all: bool) -> None:
        """Nobody got a packet twice, who was a member throughout each, if so asked; mended all members get all."""
        race = self.race
        for packet in race.packets:
            assert set(packet.got.values()) <= {1}, (seed, packet)
            assert packet.sender not in packet.got
            if steady_get_all:
                assert packet.got.keys() >= self.steady - {packet.sender}, (seed, packet)
        for link in self.out:
            race.world.mend(*link)
        race.settle(3.0)
        packets = race.send(2)
        race.settle()
        race.check_all(packets)


def fabric_of(name: str) -> Graph | str:
    return {"ring": lambda: ring(5), "diamond": diamond}.get(name, lambda: name)()


FABRICS = [("ring", 40), ("diamond", 40), ("leaf-spine", 40), ("bundles", 40), ("avalanche24", 20), ("fattree", 15)]


def race(make_world, graph, version, seed):
    dice = random.Random(f"{graph} {version} {seed}")
    world = make_world(fabric_of(graph), POLICY, version, seed=seed)
    names = list(world.hosts)
    members = dice.sample(names, dice.randint(2, min(6, len(names))))
    senders = dice.sample(names, dice.choice([1, 1, 2]))
    return Race(world, members, senders, dice)


@pytest.mark.parametrize(("graph", "count"), FABRICS)
def test_a_link_of_the_tree_fails_under_packets(make_world, graph, count, version):
    """Who is still on the sender's side gets all; the others miss what was sent before they are reached again."""
    for seed in range(count):
        r = race(make_world, graph, version, seed)
        if not r.links():
            continue
        cut = r.dice.choice(r.cables())
        steady = {sender: r.reached_without(sender, {frozenset(cut)}) for sender in r.senders}
        r.send(4)
        r.run(r.dice.randrange(12))
        r.pull(*cut)
        r.slow = set(r.dice.sample(sorted(r.world.switches), r.dice.randint(0, len(r.world.switches) // 2)))
        r.run(r.dice.randrange(4))
        r.told(*cut)
        r.send(3)
        r.run(r.dice.randrange(30))
        r.send(3)
        r.settle()
        r.check_once()
        for packet in r.packets:
            assert packet.got.keys() >= steady[packet.sender]
        packets = r.send(3)
        r.settle()
        r.check_all(packets) if not r.world.core.forest.tree(GROUP).detached else r.check_once()


@pytest.mark.parametrize("graph", ["ring", "diamond", "leaf-spine", "bundles", "avalanche24"])
def test_links_fail_and_return_and_members_come_and_go_under_packets(make_world, graph, version):
    """Whatever happens and however late switches are: nobody gets a packet twice, and in the end all get all.

    A cable may have its carrier back before its ends have taken the edits that follow from its loss.
    """
    for seed in range(25):
        r = race(make_world, graph, version, seed)
        others = [name for name in r.world.hosts if name not in r.members]
        out: list[tuple[int, int]] = []
        for _ in range(12):
            r.slow = set(r.dice.sample(sorted(r.world.switches), r.dice.randint(0, len(r.world.switches) // 2)))
            r.send(r.dice.randrange(3))
            r.run(r.dice.randrange(15))
            what = r.dice.choice(["pull", "pull", "mend", "mend", "join", "leave", "send", "pass"])
            if what == "pull" and r.links():
                link = r.dice.choice(r.cables())
                r.pull(*link)
                r.run(r.dice.randrange(4))
                r.told(*link)
                out.append(link)
                if r.dice.random() < 0.3:
                    r.run(r.dice.randrange(10))
                    r.world.fabric.connect(*r.world.links[frozenset(link)])
            elif what == "mend" and out:
                link = out.pop(r.dice.randrange(len(out)))
                r.world.plug(*link)
                r.run(r.dice.randrange(10))
                r.world.link_up(*r.world.links[frozenset(link)])
            elif what == "join" and others:
                r.members.append(others.pop())
                r.world.join(r.members[-1])
            elif what == "leave" and len(r.members) > 2:
                others.append(r.members.pop(r.dice.randrange(len(r.members))))
                r.world.leave(others[-1])
            elif what == "send" and len(r.senders) < 4:
                r.senders.append(r.dice.choice([name for name in r.world.hosts if name not in r.senders]))
            elif what == "pass":
                r.settle(0.02)
        r.settle()
        for packet in r.packets:
            assert set(packet.got.values()) <= {1}, (seed, packet)
            assert packet.sender not in packet.got
        for link in out:
            r.world.mend(*link)
        r.settle()
        packets = r.send(2)
        r.settle()
        r.check_all(packets)


def ring_race(make_world, version, seed=3):
    """h1 sends around a ring of six switches, all of which have a member."""
    world = make_world(ring(6), POLICY, version, seed=seed)
    return Race(world, list(world.hosts), ["h1"], random.Random(seed))


def cut_off(r: Race, link: list[int]) -> None:
    r.pull(*link)
    r.told(*link)


def test_a_repair_goes_beside_the_old_tree_only_where_packets_may_pass_both_ways(make_world, version):
    r = ring_race(make_world, version)
    cut_off(r, next(link for link in r.links() if 1 not in link))
    assert r.world.core.plane.groups[GROUP].tree_version == 1
    world = make_world(ring(6), POLICY, version)
    r = Race(world, ["h3", "h4"], ["h1"], random.Random(1))
    cut_off(r, next(link for link in r.links() if 1 in link))
    r.settle()
    assert world.core.plane.groups[GROUP].tree_version == 0, "nobody at the sender's side could get a packet twice"
    packets = r.send()
    r.settle()
    r.check_all(packets)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_link_that_has_just_failed_counts_when_another_is_back(make_world, version, at_once):
    """Nothing else led to those behind it, so it failed without a repair; a packet is behind it."""
    r = ring_race(make_world, version)
    world = r.world
    (spare,) = [sorted(pair) for pair in world.links if sorted(pair) not in r.links()]
    cut_off(r, spare)
    r.settle()
    link = next(link for link in r.links() if 1 not in link)
    (packet,) = r.send()
    while not any(copy.way and {copy.dpid, copy.way[-1][0]} == set(link) for copy in packet.copies):
        r.hop(packet)
    cut_off(r, link)
    if not at_once:
        while packet.copies:
            r.hop(packet)
        r.settle()
    world.mend(*spare)
    for dpid, queue in world.queues.items():
        while queue:
            world.step(dpid)
    assert world.core.plane.groups[GROUP].tree_version == at_once
    r.settle()
    r.check_once()
    packets = r.send()
    r.settle()
    r.check_all(packets)


def test_a_switch_without_a_connection_keeps_its_entries_through_a_repair(make_world, version):
    """It could not be told of another tree version, and would drop what it forwards as things are."""
    r = ring_race(make_world, version)
    world = r.world
    lost = 2
    world.connected.discard(lost)
    world.feed(SwitchDisconnected(lost))
    cut_off(r, next(link for link in r.links() if lost not in link and 1 not in link))
    r.settle()
    (packet,) = r.send()
    r.settle()
    assert packet.got.keys() >= {"h2"}
    assert set(packet.got.values()) == {1}


def test_a_switch_that_does_not_answer_holds_up_no_repair(make_world, version):
    r = ring_race(make_world, version)
    world, stalled = r.world, 2
    world.join("h2", parse_ip("239.9.9.9"))
    world.now += 1.0
    link = next(link for link in r.links() if stalled not in link and 1 not in link)
    behind = set(r.members) - r.reached_without("h1", {frozenset(link)}) - {"h1"}
    cut_off(r, link)
    while any(queue for dpid, queue in world.queues.items() if dpid != stalled):
        for dpid, queue in world.queues.items():
            if queue and dpid != stalled:
                world.step(dpid)
    (packet,) = r.send()
    while packet.copies:
        r.hop(packet)
    assert behind
    assert packet.got == dict.fromkeys(set(r.members) - {"h1"}, 1)


@pytest.mark.parametrize("graph", ["ring", "diamond", "leaf-spine", "avalanche24", "fattree"])
def test_a_switch_dies_under_packets(make_world, graph, version):
    """Who is on the sender's side of it gets all, nobody gets a packet twice, and the rest is reached again."""
    died = 0
    for seed in range(30):
        r = race(make_world, graph, version, seed)
        homes = {r.world.hosts[name].dpid for name in (*r.members, *r.senders)}
        inner = sorted({node for link in r.links() for node in link} - homes)
        if not inner:
            continue
        died += 1
        dpid = r.dice.choice(inner)
        lost = {frozenset(link) for link in r.links() if dpid in link}
        steady = {sender: r.reached_without(sender, lost) for sender in r.senders}
        r.send(4)
        r.run(r.dice.randrange(12))
        del r.world.alive[dpid]
        r.slow = set(r.dice.sample(sorted(r.world.switches), r.dice.randint(0, len(r.world.switches) // 2)))
        r.run(r.dice.randrange(4))
        r.world.disconnect(dpid, dies=False)
        r.send(3)
        r.settle()
        r.check_once()
        for packet in r.packets:
            assert packet.got.keys() >= steady[packet.sender]
        packets = r.send(2)
        r.settle()
        r.check_all(packets) if not r.world.core.forest.tree(GROUP).detached else r.check_once()
    assert died
