"""Links, ports and switches fail and return, hosts move, trees are replaced; who can be reached is reached, once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import SwitchDisconnected
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from topology.events import HostGone, LinkDown, LinkUp, PortRole, PortRoleChanged

GROUP = parse_ip("239.1.2.3")
SLOW = parse_ip("239.7.7.7")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)


def started(world, members, senders):
    for name in members:
        world.join(name)
    for name in senders:
        world.send(name)
    world.settle()
    check(world, members, senders)


def check(world, members, senders):
    for sender in senders:
        assert world.send(sender) == {name: 1 for name in members if name != sender}


def tree_links(world, group=GROUP):
    return {frozenset(link) for link in world.core.forest.tree(group).links()}


@pytest.mark.parametrize("graph", ["fattree", "avalanche24", "leaf-spine", "ring"])
def test_every_link_of_a_tree_may_fail_and_return(make_world, graph, version):
    world = make_world(graph, POLICY, version)
    names = list(world.hosts)
    members, senders = names[1::2], [names[0], names[-1]]
    started(world, members, senders)
    before = world.rules()
    for pair in sorted(sorted(pair) for pair in tree_links(world)):
        world.cut(*pair)
        world.settle()
        check(world, members, senders)
        world.mend(*pair)
        world.settle()
        check(world, members, senders)
    assert before.keys() == world.rules().keys()
    assert world.refused_edits() == []


def test_a_repair_touches_only_what_the_link_carried(make_world, version):
    world = make_world("fattree", POLICY, version)
    started(world, ["h2", "h9"], ["h1"])
    world.join("h6", SLOW)
    world.join("h5", SLOW)
    world.settle()
    untouched = world.core.plane.groups[SLOW].rules
    elsewhere = [pair for pair in tree_links(world) if pair not in tree_links(world, SLOW)]
    kept = dict(untouched)
    assert world.core.topology.repaired_count == 0
    world.cut(*elsewhere[0])
    assert world.core.topology.repaired_count == 1
    world.settle()
    assert world.core.plane.groups[SLOW].rules == kept


def test_a_member_that_is_cut_off_is_back_with_its_link(make_world, version):
    world = make_world("tree", POLICY, version)
    started(world, ["h1", "h9"], ["h2"])
    (link,) = [pair for pair in world.links if world.hosts["h9"].dpid in pair]
    world.cut(*link)
    world.settle()
    assert world.send("h2") == {"h1": 1}
    assert world.core.forest.tree(GROUP).detached == {world.hosts["h9"].dpid}
    world.mend(*link)
    world.settle()
    assert world.send("h2") == {"h1": 1, "h9": 1}


@pytest.mark.parametrize("dies", [True, False], ids=["dies", "loses-us"])
def test_switches_fail_and_return(make_world, version, dies):
    world = make_world("fattree", POLICY, version)
    members, senders = ["h2", "h6", "h9", "h16"], ["h1", "h12"]
    started(world, members, senders)
    inner = [dpid for dpid in world.core.forest.tree(GROUP).adjacent if not world.core.fabric.edge_ports(dpid)]
    assert inner
    for dpid in inner:
        world.disconnect(dpid, dies=dies)
        world.settle()
        check(world, members, senders)
        world.reconnect(dpid)
        world.settle()
        check(world, members, senders)


def test_the_members_of_a_switch_that_returns_are_still_members(make_world, version):
    world = make_world("fattree", POLICY, version)
    started(world, ["h2", "h9"], ["h1", "h10"])
    dpid = world.hosts["h9"].dpid
    world.disconnect(dpid)
    world.settle()
    assert world.send("h1") == {"h2": 1}
    world.advance(30.0)
    outs = len(world.packet_outs)
    world.reconnect(dpid)
    world.settle()
    check(world, ["h2", "h9"], ["h1", "h10"])
    asked = {place for place, query in world.queries(outs) if query.group is None}
    assert world.hosts["h9"].place in asked


def test_members_of_a_switch_that_stays_away_age(make_world):
    world = make_world("fattree", POLICY)
    started(world, ["h2", "h9"], ["h1"])
    world.disconnect(world.hosts["h9"].dpid)
    for _ in range(3):
        world.advance(100.0)
        world.join("h2")
    assert [host.mac for host, *_ in world.core.membership.members()] == [world.hosts["h2"].mac]


def test_a_port_that_goes_down_takes_its_members_and_senders_along(make_world, version):
    world = make_world("leaf-spine", POLICY, version)
    started(world, ["h3", "h5"], ["h1"])
    for name in ("h3", "h1"):
        host = world.hosts[name]
        world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.DOWN))
        world.feed(HostGone(host.mac, host.dpid, host.port_no))
    world.settle()
    group = world.core.plane.groups[GROUP]
    assert set(group.interests) == {world.hosts["h5"].dpid}
    assert not group.senders


def test_a_host_that_moves_is_served_where_it_is(make_world, version):
    world = make_world("fattree", POLICY, version)
    world.move("h16", *world.hosts["h16"].place)
    free = world.hosts.pop("h16")
    started(world, ["h2", "h9"], ["h1"])
    world.move("h9", *free.place)
    world.settle()
    assert world.send("h1") == {"h2": 1}
    world.feed(PortRoleChanged(*free.place, PortRole.EDGE))
    world.learn(world.hosts["h9"])
    world.join("h9")
    world.settle()
    assert world.send("h1") == {"h2": 1, "h9": 1}


def test_a_report_from_a_new_place_counts_once_the_move_is_confirmed(make_world):
    """The old port never went down, so that discovery has to ask there first; the host reports meanwhile."""
    world = make_world("fattree", POLICY)
    started(world, ["h2", "h9"], ["h1"])
    old, place = world.hosts["h9"], world.hosts["h16"].place
    world.hosts["h9"] = old._replace(dpid=place[0], port_no=place[1])
    world.join("h9")
    assert world.core.counters["report-elsewhere"] == 1
    assert world.core.plane.groups[GROUP].interests.get(place[0]) is None
    world.now += 0.9
    world.feed(HostGone(old.mac, old.dpid, old.port_no))
    world.learn(world.hosts["h9"])
    world.settle()
    assert set(world.core.plane.groups[GROUP].interests[place[0]]) == {place[1]}
    assert old.dpid not in world.core.plane.groups[GROUP].interests


def test_a_report_from_a_port_just_up_counts_once_the_port_is_known(make_world):
    world = make_world("fattree", POLICY)
    host = world.hosts["h9"]
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.DOWN))
    world.feed(HostGone(host.mac, host.dpid, host.port_no))
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.UNKNOWN))
    world.join("h9")
    assert GROUP not in world.core.plane.groups
    world.now += 0.4
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
    world.learn(host)
    world.settle()
    assert set(world.core.plane.groups[GROUP].interests[host.dpid]) == {host.port_no}


def test_a_report_from_a_trunk_never_counts(make_world):
    world = make_world("fattree", POLICY)
    host = world.hosts["h9"]
    world.feed(HostGone(host.mac, host.dpid, host.port_no))
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.TRUNK))
    world.join("h9")
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
    world.learn(host)
    world.settle()
    assert GROUP not in world.core.plane.groups


def test_memberships_end_where_a_host_is_found_not_to_be(make_world):
    """Reports came before anything was known of the host; then it is known to be elsewhere."""
    world = make_world("fattree", POLICY)
    owner = world.hosts["h9"]
    world.feed(HostGone(owner.mac, owner.dpid, owner.port_no))
    liar = owner._replace(dpid=world.hosts["h1"].dpid, port_no=world.hosts["h1"].port_no)
    world.hosts["liar"] = liar
    world.join("liar")
    world.join("h9")
    del world.hosts["liar"]
    world.learn(owner)
    world.settle()
    assert set(world.core.plane.groups[GROUP].interests) == {owner.dpid}


def test_a_cable_that_moves_to_other_ports(make_world, version):
    world = make_world("leaf-spine", POLICY, version)
    started(world, ["h3", "h5"], ["h1"])
    pair = sorted(next(iter(tree_links(world))))
    (a, a_port), (b, b_port) = world.links[frozenset(pair)]
    for dpid in (a, b):
        world.switches[dpid].ports = {*world.switches[dpid].ports, 40}
    world.fabric.cut((a, a_port))
    world.fabric.connect((a, 40), (b, 40))
    for dpid in (a, b):
        world.feed(PortRoleChanged(dpid, 40, PortRole.TRUNK))
    world.feed(LinkUp(a, 40, b, 40, 1e9))
    world.feed(LinkDown(a, a_port, b, b_port))
    for dpid, port_no in ((a, a_port), (b, b_port)):
        world.feed(PortRoleChanged(dpid, port_no, PortRole.DOWN))
    world.settle()
    check(world, ["h3", "h5"], ["h1"])


def test_a_connection_that_ends_and_comes_back_changes_nothing(make_world, version):
    """Discovery keeps a switch for a while after its connection ended; the switch forwards on meanwhile."""
    world = make_world("fattree", POLICY, version)
    started(world, ["h2", "h9"], ["h1"])
    for dpid in world.core.forest.tree(GROUP).adjacent:
        applied = world.applied
        world.connected.discard(dpid)
        world.feed(SwitchDisconnected(dpid))
        check(world, ["h2", "h9"], ["h1"])
        world.advance(5.0)
        check(world, ["h2", "h9"], ["h1"])
        world.connect(dpid)
        world.settle()
        check(world, ["h2", "h9"], ["h1"])
        assert world.applied == applied


# Make before break


def reseeded(policy, seed):
    return PolicyLoaded(replace(policy, multicast=replace(policy.multicast, seed=seed)))


@pytest.mark.parametrize("graph", ["fattree", "avalanche24", "leaf-spine"])
def test_trees_are_replaced_without_loss_or_duplicate(make_world, graph, version):
    """Packets are sent between every single edit, while edits reach switches in any order."""
    moves = 0
    for seed in range(6):
        world = make_world(graph, POLICY, version, seed=seed)
        names = list(world.hosts)
        members, senders = world.random.sample(names, 5), world.random.sample(names, 2)
        started(world, members, senders)
        before = tree_links(world)
        world.feed(reseeded(POLICY, 1000 + seed))
        moves += tree_links(world) != before
        for _ in world.steps():
            check(world, members, senders)
        version_now = world.core.plane.groups[GROUP].tree_version
        assert world.core.installer.plan_count == 0
        assert version_now in (0, 1)
    assert moves


def test_trees_may_be_replaced_while_they_are_being_replaced(make_world, version):
    for seed in range(6):
        world = make_world("fattree", POLICY, version, seed=seed)
        members, senders = ["h2", "h7", "h9", "h16"], ["h1", "h12"]
        started(world, members, senders)
        for again in range(5):
            world.feed(reseeded(POLICY, 10 * seed + again))
            for _, _step in zip(range(world.random.randrange(12)), world.steps(), strict=False):
                check(world, members, senders)
        for _ in world.steps():
            check(world, members, senders)


@pytest.mark.parametrize("graph", ["fattree", "leaf-spine", "ring"])
def test_steady_members_lose_nothing_while_others_come_and_go(make_world, graph, version):
    world = make_world(graph, POLICY, version)
    names = list(world.hosts)
    steady, senders = [names[1], names[-1]], [names[0]]
    started(world, steady, senders)
    others = [name for name in names if name not in steady and name not in senders]
    joined = set()
    for _ in range(40):
        name = world.random.choice(others)
        if name in joined:
            world.leave(name)
            joined.discard(name)
        else:
            world.join(name)
            joined.add(name)
        for _, _step in zip(range(world.random.randrange(8)), world.steps(), strict=False):
            got = world.send(senders[0])
            assert {name: got[name] for name in steady} == dict.fromkeys(steady, 1)
            assert set(got.values()) == {1}
    world.settle()
    check(world, [*steady, *joined], senders)


def test_members_that_come_back_over_another_core_meet_nothing_of_their_old_way(make_world, version):
    """A pod leaves and rejoins before its old entries are gone: the two ways must not form a circle."""
    for seed in range(30):
        world = make_world("fattree", POLICY, version, seed=seed)
        started(world, ["h2", "h3", "h9", "h10"], ["h1", "h12"])
        for name in ("h9", "h10"):
            world.leave(name)
        world.join("h16")
        for _, _step in zip(range(world.random.randrange(6)), world.steps(), strict=False):
            pass
        for name in ("h9", "h10"):
            world.join(name)
        for _ in world.steps():
            for sender in ("h1", "h12"):
                got = world.send(sender)
                assert set(got.values()) == {1}
                assert {"h2", "h3"} <= got.keys()


def test_rebalancing_moves_trees_without_loss(make_world):
    policy = replace(POLICY, multicast=Multicast(fast_leave=True, rebalance_interval_s=1.0))
    world = make_world("avalanche24", policy)
    groups = [bytes((239, 2, 0, n)) for n in range(8)]
    for n, group in enumerate(groups):
        world.join(f"h{13 + n}", group)
        world.send(f"h{1 + n}", group)
    world.settle()
    trees = {group: {frozenset(link) for link in world.core.forest.tree(group).links()} for group in groups}
    for second in range(12):
        for n, group in enumerate(groups):
            for _ in range(1 + (n * second) % 7):
                world.send(f"h{1 + n}", group, payload=bytes(1000 * (n + 1) % 1400))
        for _ in world.steps(1.0):
            for n, group in enumerate(groups):
                assert world.send(f"h{1 + n}", group) == {f"h{13 + n}": 1}
        world.now += 0.1
    assert trees != {group: {frozenset(link) for link in world.core.forest.tree(group).links()} for group in groups}
