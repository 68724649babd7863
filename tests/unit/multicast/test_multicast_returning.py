"""Cables come back while a switch has not carried out what it was told when they were lost.

Leaves 1 to 3, spines 4 and 5, two hosts a leaf. Leaf 2 carries out nothing any more; its cable to the spine of the
tree is cut, and the tree is repaired around that, over the other spine and leaf 1.
"""

from __future__ import annotations

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import DeadlineReached, Port, PortChanged
from controller.rules.pipeline import PRIORITY_UNKNOWN_SENDER
from controller.wire.addresses import parse_ip
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged

GROUP, OTHER = parse_ip("239.1.2.3"), parse_ip("239.9.9.9")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)
STALLED = 2
MEMBERS = ["h2", "h3", "h4", "h5", "h6"]


def carry_out(world, stalled=STALLED, seconds=0.2, members=None):
    """Let all switches but one do what they were told; a packet between each two edits is to reach `members`."""
    end_s = world.now + seconds
    while True:
        busy = [dpid for dpid, queue in world.queues.items() if queue and dpid != stalled]
        if busy:
            world.step(world.random.choice(busy))
        else:
            due_s = world.core.next_deadline()
            if due_s is None or due_s > end_s:
                world.now = end_s
                return
            world.now = max(world.now, due_s)
            world.feed(DeadlineReached())
        if members is not None:
            check(world, members)


def check(world, members=MEMBERS):
    assert world.send("h1") == dict.fromkeys(members, 1)


def is_used(world, a, b):
    return world.core.fabric.graph.has_link(a, b)


def closed(world):
    """The ports of all switches that let no multicast in."""
    return {
        (dpid, key.match.in_port)
        for dpid, rules in world.rules().items()
        for key, rule in rules.items()
        if key.priority == PRIORITY_UNKNOWN_SENDER and not rule.actions
    }


def stalling(make_world, version):
    """The world before anything is cut, with leaf 2 known not to answer, and the spine of the tree."""
    world = make_world("leaf-spine", POLICY, version)
    for name in MEMBERS:
        world.join(name)
    world.send("h1")
    world.settle()
    (spine,) = {node for link in world.core.forest.tree(GROUP).links() for node in link} & {4, 5}
    world.join("h3", OTHER)
    carry_out(world, seconds=1.0)
    return world, spine


@pytest.fixture
def repaired(make_world, version):
    """The world as the module says, and the spine whose cable to leaf 2 is cut."""
    world, spine = stalling(make_world, version)
    world.cut(3, 9 - spine)
    carry_out(world)
    world.cut(STALLED, spine)
    carry_out(world)
    assert {frozenset(link) for link in world.core.forest.tree(GROUP).links()} == {
        frozenset(pair) for pair in [(1, spine), (3, spine), (1, 9 - spine), (STALLED, 9 - spine)]
    }
    check(world)
    return world, spine


def test_a_link_waits_for_the_switch_that_may_still_send_over_it(repaired):
    world, spine = repaired
    version = world.core.plane.groups[GROUP].tree_version
    world.mend(STALLED, spine)
    check(world)
    carry_out(world, members=MEMBERS)
    assert not is_used(world, STALLED, spine)
    assert world.core.plane.groups[GROUP].tree_version == version, "no tree moved"
    assert [notice.kind for notice in world.notices].count("link-held") == world.core.counters["link-held"] == 1
    for _ in world.steps():
        check(world)
    assert is_used(world, STALLED, spine)
    assert not {place for place in closed(world) if place in world.links[frozenset((STALLED, spine))]}
    assert frozenset((STALLED, spine)) in {frozenset(link) for link in world.core.forest.tree(GROUP).links()}


@pytest.mark.parametrize("link_first", [False, True])
def test_a_cable_back_at_once_leads_nothing_in(make_world, version, link_first):
    """Another was lost just before, so that link-scope flooding follows later than the trees."""
    world, spine = stalling(make_world, version)
    world.cut(3, 9 - spine)
    carry_out(world, seconds=0.0)
    ends = world.links[frozenset((STALLED, spine))]
    world.fabric.cut(ends[0])
    events = [LinkDown(*ends[0], *ends[1]), *(PortRoleChanged(*end, PortRole.DOWN) for end in ends)]
    for event in events if link_first else events[::-1]:
        world.feed(event)
    carry_out(world, seconds=0.0)
    world.fabric.connect(*ends)
    check(world)


def test_a_link_that_was_silent_leads_nothing_in_once_it_is_found_again(make_world, version):
    """Its ports kept their carrier and were open; discovery missed its frames for a while."""
    world, spine = stalling(make_world, version)
    world.cut(3, 9 - spine)
    carry_out(world)
    ends = world.links[frozenset((STALLED, spine))]
    world.fabric.cut(ends[0])
    world.feed(LinkDown(*ends[0], *ends[1]))
    carry_out(world)
    check(world)
    world.feed(LinkUp(*ends[0], *ends[1], 1e9))
    carry_out(world, members=MEMBERS, seconds=0.0)
    world.fabric.connect(*ends)
    check(world)
    world.feed(LinkDown(*ends[0], *ends[1]))
    world.fabric.cut(ends[0])
    world.settle()
    assert not is_used(world, STALLED, spine), "it was lost again while it was held"
    check(world)


def test_a_link_that_nothing_can_go_round_is_used_at_once(make_world, version):
    """In a tree of switches: the leaf goes by its former entries, which are as good."""
    world = make_world("tree", POLICY, version)
    members = ["h2", "h3", "h9"]
    for name in members:
        world.join(name)
    world.send("h1")
    world.settle()
    stalled = world.hosts["h1"].dpid
    (uplink,) = [sorted(pair) for pair in world.links if stalled in pair]
    world.cut(*uplink)
    carry_out(world, stalled, 1.0)
    world.mend(*uplink)
    carry_out(world, stalled)
    assert is_used(world, *uplink)
    check(world, members)
    world.settle()
    check(world, members)


def test_a_held_link_is_used_as_soon_as_nothing_else_leads_to_its_switch(repaired):
    world, spine = repaired
    world.mend(STALLED, spine)
    carry_out(world)
    assert not is_used(world, STALLED, spine)
    world.cut(STALLED, 9 - spine)
    assert is_used(world, STALLED, spine)
    carry_out(world)
    check(world)
    world.settle()
    check(world)


def test_a_link_of_other_switches_is_used_at_once(repaired):
    """It is not known what is behind its ports before discovery has found the link."""
    world, spine = repaired
    ends = world.plug(3, 9 - spine)
    for end in ends:
        world.feed(PortRoleChanged(*end, PortRole.TRUNK))
    carry_out(world, members=MEMBERS)
    assert set(ends) <= closed(world)
    world.feed(LinkUp(*ends[0], *ends[1], 1e9))
    carry_out(world)
    assert is_used(world, 3, 9 - spine)
    assert not set(ends) & closed(world)
    check(world)


def test_a_link_may_be_found_before_its_ports_are_known_to_lead_to_switches(repaired):
    world, spine = repaired
    ends = world.plug(3, 9 - spine)
    carry_out(world)
    world.feed(LinkUp(*ends[0], *ends[1], 1e9))
    for end in ends:
        world.feed(PortRoleChanged(*end, PortRole.TRUNK))
    carry_out(world)
    assert not set(ends) & closed(world)
    check(world)


def test_a_port_that_leads_to_hosts_after_all_is_open(repaired):
    world, _ = repaired
    host = world.hosts["h6"]
    for role in (PortRole.DOWN, PortRole.TRUNK):
        world.feed(PortRoleChanged(*host.place, role))
    carry_out(world)
    assert host.place in closed(world)
    for role in (PortRole.DOWN, PortRole.EDGE):
        world.feed(PortRoleChanged(*host.place, role))
    carry_out(world)
    assert host.place not in closed(world)


def test_the_second_cable_of_a_link_in_use_takes_over_at_once(repaired):
    """The cable of the stalled leaf that was cut is plugged in beside the other one, which then fails."""
    world, spine = repaired
    other = 9 - spine
    lost = next(end for end in world.links[frozenset((STALLED, spine))] if end[0] == STALLED)
    new, former = (other, 40), world.links[frozenset((STALLED, other))]
    world.switches[other].ports = {*world.switches[other].ports, 40}
    world.feed(PortChanged(other, Port(40, "p40", bytes(6), True, 1e9), deleted=False))
    carry_out(world)
    world.fabric.connect(lost, new)
    world.fabric.cut(former[0])
    world.feed(LinkUp(*lost, *new, 1e9))
    for end in (lost, new):
        world.feed(PortRoleChanged(*end, PortRole.TRUNK))
    assert world.core.fabric.cable(*lost) is None, "it is held, for the other one joins the same switches"
    for end in former:
        world.feed(PortRoleChanged(*end, PortRole.DOWN))
    world.feed(LinkDown(*former[0], *former[1]))
    assert world.core.fabric.cable(*lost) is not None
    carry_out(world)
    check(world)


def test_a_cable_plugged_into_another_switch_leads_nothing_in(repaired):
    world, spine = repaired
    ends = world.links[frozenset((STALLED, spine))]
    (lost,) = [end for end in ends if end[0] == STALLED]
    new = (3, 40)
    world.switches[3].ports = {*world.switches[3].ports, 40}
    world.feed(PortChanged(3, Port(40, "p40", bytes(6), True, 1e9), deleted=False))
    carry_out(world)
    world.fabric.connect(lost, new)
    for end in (lost, new):
        world.feed(PortRoleChanged(*end, PortRole.UNKNOWN))
        world.feed(PortRoleChanged(*end, PortRole.TRUNK))
    carry_out(world, members=MEMBERS)
    world.feed(LinkUp(*lost, *new, 1e9))
    carry_out(world, members=MEMBERS)
    assert not is_used(world, STALLED, 3)
    for _ in world.steps():
        check(world)
    assert is_used(world, STALLED, 3)
    assert new not in closed(world)


def test_a_held_link_that_is_lost_again_is_not_used(repaired):
    world, spine = repaired
    world.mend(STALLED, spine)
    carry_out(world)
    world.cut(STALLED, spine)
    carry_out(world, members=MEMBERS)
    world.settle()
    assert not is_used(world, STALLED, spine)
    check(world)
    world.mend(STALLED, spine)
    assert is_used(world, STALLED, spine), "the switch has confirmed all it was told"
    world.settle()
    check(world)
    assert world.core.counters["link-held"] == 1


def test_a_port_whose_link_is_not_found_is_opened_when_the_switch_has_confirmed(repaired):
    """Its frames arrive in one direction only, or it is the second cable between two switches."""
    world, spine = repaired
    ends = world.plug(3, 9 - spine)
    for end in ends:
        world.feed(PortRoleChanged(*end, PortRole.TRUNK))
    carry_out(world)
    assert set(ends) <= closed(world)
    world.settle()
    assert not set(ends) & closed(world)
    check(world)


def test_a_switch_that_is_gone_holds_nothing(repaired):
    world, spine = repaired
    world.cut(STALLED, 9 - spine)
    carry_out(world)
    ends = world.plug(3, 9 - spine)
    for end in ends:
        world.feed(PortRoleChanged(*end, PortRole.TRUNK))
    carry_out(world)
    assert set(ends) <= closed(world)
    world.disconnect(STALLED)
    carry_out(world)
    assert not set(ends) & closed(world)
    world.reconnect(STALLED)
    world.mend(STALLED, spine)
    world.mend(STALLED, 9 - spine)
    world.mend(3, 9 - spine)
    world.settle()
    assert {frozenset(link[:2]) for link in world.core.fabric.graph.links()} == set(world.links)
    assert not closed(world)
