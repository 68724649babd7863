"""Groups with several trees: senders are split over them; nobody loses a packet or gets one twice, whatever moves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.terms import parse_prefix
from controller.config.vlans import PortVlans
from controller.events import DeadlineReached, SwitchDisconnected
from controller.kernel.domains import in_domain
from controller.multicast.events import PolicyLoaded
from controller.rules.compile import tree_version_of
from controller.rules.cookies import STALE_VERSION_COOKIE
from controller.rules.pipeline import SENDER_COOKIE_BIT
from controller.wire.addresses import parse_ip
from controller.wire.ethernet import with_tag
from controller.wire.udp import encode_udp
from wire_frames import fields_of

from .conftest import GROUP, GROUP_V6, OPEN, leaf_spine
from .vlan_world import VlanWorld
from .vlan_world import started as vlan_started

OTHER = parse_ip("239.9.9.9")
STATIC = Aliases(mode="static", static=(StaticTrees(parse_prefix("239.1.0.0/16"), 3),))
ALIASED = replace(OPEN, aliases=STATIC)
SENDERS = [f"h{n}" for n in range(1, 9)]
MEMBERS = ["h9", "h10", "h11", "h12"]


@pytest.fixture
def graph():
    """Six leaves of two hosts under four spines."""
    return leaf_spine(leaves=6, spines=4, hosts=2)


@pytest.fixture
def world(make_world, graph, version):
    return started(make_world(graph, ALIASED, version))


def started(world, senders=SENDERS, group=GROUP):
    for name in MEMBERS:
        world.join(name, group)
    world.settle()
    for name in senders:
        world.send(name, group)
        world.settle()
    return world


def use(world, aliases):
    world.policy = replace(world.policy, aliases=aliases)
    world.feed(PolicyLoaded(world.policy))


def numbers(world, group=GROUP):
    """Return how many senders each tree of a group has, by its number."""
    return Counter(sender.alias for sender in world.core.plane.groups[group].senders.values())


def leaves(world):
    return {host.dpid for host in world.hosts.values()}


def spines(world, group=GROUP):
    """Return the spines that each tree of a group passes."""
    plane = world.core.plane
    return [
        {node for link in plane.forest.tree(tree.key).links() for node in link} - leaves(world)
        for tree in plane.groups[group].all_trees()
    ]


def versions(world, group=GROUP):
    """Return the versions of the group's entries that switches hold, but for those of senders."""
    rules = [rule for table in world.rules().values() for rule in table.values()]
    own = [rule for rule in rules if rule.key.match.ip_dst == group and not rule.cookie & SENDER_COOKIE_BIT]
    return {tree_version_of(rule.key.match) for rule in own if rule.key.match.eth_dst is not None}


def check(world, senders=SENDERS, group=GROUP, members=MEMBERS):
    for name in senders:
        assert world.send(name, group) == dict.fromkeys(set(members) - {name}, 1), name


def test_senders_are_split_evenly_over_trees_by_other_spines(world):
    assert numbers(world) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert sorted(map(len, spines(world))) == [1, 1, 1, 1]
    assert len(set().union(*spines(world))) == 4
    assert versions(world) == {0, 1, 2, 3}
    check(world)


def test_off_not_one_entry_differs(make_world, graph, version):
    plain, off = (
        make_world(graph, policy, version) for policy in (OPEN, replace(ALIASED, aliases=replace(STATIC, mode="off")))
    )
    for world in (plain, off):
        started(world)
        world.leave("h12")
        world.settle()
    assert plain.rules() == off.rules()
    assert plain.applied == off.applied
    assert plain.log.read() == off.log.read()


def test_groups_that_the_policy_gives_no_aliases_are_as_ever(make_world, graph, version):
    plain, aliased = (make_world(graph, policy, version) for policy in (OPEN, ALIASED))
    for world in (plain, aliased):
        started(world, group=OTHER)
    found = aliased.rules()
    for rules in found.values():
        counting = [key for key, rule in rules.items() if rule.cookie == STALE_VERSION_COOKIE]
        assert len(counting) == (0 if version == 1 else 2), "those that are there whatever groups exist"
        for key in counting:
            del rules[key]
    assert found == plain.rules()


def test_a_group_under_packets_gets_trees_and_gives_them_up(make_world, graph, version):
    world = started(make_world(graph, OPEN, version))
    before, world.is_hasty = world.rules(), True
    for aliases, expected in ((STATIC, {0: 2, 1: 2, 2: 2, 3: 2}), (Aliases(), {0: 8})):
        use(world, aliases)
        for _ in world.steps(2.0):
            check(world)
        assert numbers(world) == expected
        check(world)
    assert world.rules() == before
    assert world.core.plane.aliases.bound_count == 0
    assert world.core.plane.groups[GROUP].trees is None


def test_packets_wait_for_no_alias_that_a_switch_has_not_confirmed(make_world, graph, version):
    """Nobody sends by a tree that a slow switch does not know."""
    world = started(make_world(graph, OPEN, version))
    use(world, STATIC)
    slow = world.hosts["h9"].dpid
    world.feed(DeadlineReached())
    for _ in range(200):
        busy = [dpid for dpid, queue in world.queues.items() if queue and dpid != slow]
        if not busy:
            break
        world.step(world.random.choice(busy))
        check(world)
    assert world.queues[slow]
    world.settle(2.0)
    assert numbers(world) == {0: 2, 1: 2, 2: 2, 3: 2}
    check(world)


def test_members_come_and_go_on_every_tree(world):
    for name in ("h9", "h10"):
        world.leave(name)
        world.advance(5.0)
        check(world, members=[m for m in MEMBERS if m not in ("h9", name)] if name == "h10" else MEMBERS[1:])
    world.join("h1")
    world.settle()
    check(world, members=["h1", "h11", "h12"])


def test_a_member_that_stays_misses_nothing_while_others_join(world):
    world.join("h1")
    world.join("h3")
    for _ in world.steps():
        for name in SENDERS:
            got = world.send(name)
            assert {member: got[member] for member in MEMBERS} == dict.fromkeys(MEMBERS, 1)
            assert set(got.values()) == {1}
    check(world, members=[*MEMBERS, "h1", "h3"])


def test_a_sender_stays_on_its_tree_and_a_new_one_takes_the_least_loaded(world):
    group = world.core.plane.groups[GROUP]
    gone = next(key for key, sender in group.senders.items() if sender.alias == 2)
    others = {key: sender.alias for key, sender in group.senders.items() if key != gone}
    world.perform_all(world.core.senders.port_gone(gone.dpid, gone.port_no, world.now))
    world.settle()
    assert {key: sender.alias for key, sender in group.senders.items()} == others
    world.send("h12")
    world.settle()
    assert numbers(world) == {0: 2, 1: 2, 2: 2, 3: 2}
    check(world, [name for name in SENDERS if world.hosts[name].mac != gone.mac] + ["h12"])


def test_a_link_of_an_alias_fails_and_is_back(world):
    for tree in list(world.core.plane.groups[GROUP].all_trees()):
        link = sorted(world.core.forest.tree(tree.key).links())[0]
        world.cut(*link)
        world.settle(1.0)
        check(world)
        world.mend(*link)
        world.settle(1.0)
        check(world)
    assert numbers(world) == {0: 2, 1: 2, 2: 2, 3: 2}


def test_a_spine_is_drained_under_packets(world):
    spine = sorted(set().union(*spines(world)))[0]
    world.do("switch-drain", dpid=spine)
    for _ in world.steps(2.0):
        check(world)
    assert spine not in set().union(*spines(world))
    world.do("switch-undrain", dpid=spine)
    for _ in world.steps(2.0):
        check(world)


@pytest.mark.parametrize("moment", ["bound", "binding", "leaving"])
def test_a_spine_that_dies_under_an_alias_doubles_nothing_and_is_done_without(make_world, graph, version, moment):
    world = started(make_world(graph, OPEN if moment == "binding" else ALIASED, version))
    plane = world.core.plane
    if moment != "bound":
        use(world, STATIC if moment == "binding" else replace(STATIC, static=()))
        steps = world.steps(1.0)
        is_leaving = moment == "leaving"
        while not any(
            alias.is_leaving if is_leaving else not alias.is_standing for alias in plane.groups[GROUP].all_trees()[1:]
        ):
            next(steps)
    alias = plane.groups[GROUP].all_trees()[-1]
    dead = sorted({node for link in plane.forest.tree(alias.key).links() for node in link} - leaves(world))[0]
    world.disconnect(dead)
    for _ in world.steps(3.0):
        for name in SENDERS:
            assert set(world.send(name).values()) <= {1}, name
    assert dead not in set().union(*spines(world))
    check(world)
    world.reconnect(dead)
    world.settle(3.0)
    check(world)
    assert len(plane.groups[GROUP].all_trees()) == (1 if moment == "leaving" else 4)


def test_rebalancing_and_another_seed_move_trees_without_loss(world):
    multicast = replace(world.policy.multicast, seed=7)
    world.feed(PolicyLoaded(replace(world.policy, multicast=multicast)))
    for _ in world.steps(2.0):
        check(world)
    world.perform_all(world.core.plane.trees_changed(world.core.forest.rebalance(0.0), world.now))
    for _ in world.steps(2.0):
        check(world)
    assert numbers(world) == {0: 2, 1: 2, 2: 2, 3: 2}


def test_a_switch_without_a_connection_holds_up_no_bind_for_ever(make_world, graph, version):
    world = started(make_world(graph, OPEN, version))
    lost = next(iter(spines(world)[0]))
    world.connected.discard(lost)
    world.feed(SwitchDisconnected(lost))
    use(world, STATIC)
    world.advance(40.0)
    assert sum(numbers(world).values()) == 8
    for name in SENDERS:
        assert set(world.send(name).values()) <= {1}


def test_with_the_log_a_restart_finds_every_alias_and_sends_no_edit(world):
    world.advance(5.0)
    before, split = world.rules(), numbers(world)
    world.restart()
    world.connect_all()
    applied = world.applied
    world.settle(5.0)
    assert world.applied == applied
    assert world.rules() == before
    assert numbers(world) == split
    check(world)
    found = [
        f
        for f in world.core.journal_check().search({e.key: e.value for e in world.log.read() if e.value}, world.now)
        if f
    ]
    assert found == []


def test_without_the_log_a_group_is_built_beside_all_of_its_former_trees(world):
    former = versions(world)
    world.restart(journal=False)
    world.connect_all()
    for name in MEMBERS:
        world.join(name)
    for _ in world.steps(20.0):
        check(world)
    world.advance(5.0)
    check(world)
    assert len(former) == 4
    assert numbers(world).total() == 8
    assert len(versions(world)) == 4


def test_a_policy_without_aliases_at_a_restart_takes_the_senders_home(world):
    world.advance(1.0)
    world.restart(policy=replace(ALIASED, aliases=Aliases()))
    world.connect_all()
    for _ in world.steps(20.0):
        for name in SENDERS:
            assert set(world.send(name).values()) <= {1}
    assert numbers(world) == {0: 8}
    assert len(versions(world)) == 1
    check(world)


def test_no_more_aliases_stand_than_the_pool_has_and_groups_wait_for_others(make_world, graph, version):
    world = make_world(graph, replace(ALIASED, aliases=replace(STATIC, pool=4)), version)
    second = parse_ip("239.1.2.4")
    started(world)
    started(world, group=second)
    plane = world.core.plane
    assert [len(plane.groups[group].all_trees()) for group in (GROUP, second)] == [4, 2]
    assert plane.aliases.bound_count == 4
    assert plane.aliases.counters["alias-pool-empty"] > 0
    assert second in plane.aliases.waiting
    for name in MEMBERS:
        world.leave(name)
    for key in list(plane.groups[GROUP].senders):
        world.perform_all(world.core.senders.port_gone(key.dpid, key.port_no, world.now))
    world.advance(10.0)
    assert GROUP not in plane.groups
    assert len(plane.groups[second].all_trees()) == 4
    check(world, group=second)


def test_a_group_that_ends_leaves_nothing_and_may_begin_again(world):
    for name in MEMBERS:
        world.leave(name)
    plane = world.core.plane
    for key in list(plane.groups[GROUP].senders):
        world.perform_all(world.core.senders.port_gone(key.dpid, key.port_no, world.now))
    world.advance(10.0)
    assert versions(world) == set()
    assert len(plane.forest) == 0
    assert plane.aliases.bound_count == 0
    started(world)
    check(world)
    assert numbers(world) == {0: 2, 1: 2, 2: 2, 3: 2}


def test_aliases_do_not_count_as_groups(make_world, graph, version):
    limits = replace(ALIASED.limits, groups=2)
    world = started(make_world(graph, replace(ALIASED, limits=limits), version))
    started(world, group=OTHER)
    check(world, group=OTHER)


def test_a_source_that_a_member_names_reaches_it_on_every_tree(world):
    source = world.hosts["h1"].v4
    world.record("h5", 3, GROUP, source)  # CHANGE_TO_INCLUDE
    world.settle()
    for name in SENDERS:
        expected = {*MEMBERS, "h5"} if name == "h1" else set(MEMBERS)
        assert world.send(name) == dict.fromkeys(expected - {name}, 1)


def test_ipv6_groups_have_aliases_where_every_switch_speaks_openflow_1_3(make_world, graph):
    aliases = replace(STATIC, static=(StaticTrees(parse_prefix("ff0e::/16"), 3),))
    world = started(make_world(graph, replace(OPEN, aliases=aliases), 4), group=GROUP_V6)
    assert numbers(world, GROUP_V6) == {0: 2, 1: 2, 2: 2, 3: 2}
    check(world, group=GROUP_V6)
    spine = max(world.switches)
    mixed = started(make_world(graph, replace(OPEN, aliases=aliases), {spine: 1}), group=GROUP_V6)
    assert mixed.core.plane.groups[GROUP_V6].trees is None


def test_a_cut_that_parts_the_fabric_leaves_every_part_with_its_trees(make_world, version):
    world = make_world(leaf_spine(leaves=4, spines=2, hosts=2), ALIASED, version)
    for name in ("h1", "h3", "h5", "h7"):
        world.join(name)
    world.settle()
    for name in ("h2", "h4", "h6", "h8"):
        world.send(name)
        world.settle()
    leaves = sorted({host.dpid for host in world.hosts.values()})
    upper = sorted(set(world.switches) - set(leaves))
    for leaf, spine in [(leaves[0], upper[1]), (leaves[1], upper[1]), (leaves[2], upper[0]), (leaves[3], upper[0])]:
        world.cut(leaf, spine)
    world.settle(2.0)
    for senders, members in ((("h2", "h4"), ("h1", "h3")), (("h6", "h8"), ("h5", "h7"))):
        check(world, senders, members=members)
    for link in [sorted(pair) for pair in world.down_links]:
        world.mend(*link)
    world.settle(2.0)
    check(world, ("h2", "h4", "h6", "h8"), members=("h1", "h3", "h5", "h7"))


def test_groups_of_vlans_have_aliases(version):
    untagged, tagged = PortVlans(10, frozenset()), PortVlans(None, frozenset({10}))
    names = ["h1", "h3", "h9", "h10", "h16"]
    world = VlanWorld(
        {name: tagged if name in ("h3", "h10") else untagged for name in names}, version=version, policy=ALIASED
    )
    for name in ("h9", "h10", "h16"):
        world.joins(name)
    world.settle()
    for name in ("h1", "h3"):
        vlan_started(world, name)
        world.settle()
    group = in_domain(GROUP, 10)
    assert len(numbers(world, group)) == 2
    for name in ("h1", "h3"):
        host = world.hosts[name]
        frame = encode_udp(host.mac, host.v4, GROUP, b"data")
        fields = fields_of(frame if name == "h1" else with_tag(frame, 10))
        copies = world.fabric.deliver(*host.place, fields).hosts
        got = Counter(
            (world.at()[copy.dpid, copy.port_no], copy.vlan_ids, copy.eth_dst) for copy in copies.elements()
        )
        mac = fields.eth_dst
        assert got == {("h9", (), mac): 1, ("h10", (10,), mac): 1, ("h16", (), mac): 1}


def test_a_group_and_its_aliases_are_shown(world):
    document = world.core.group_view.group(GROUP)
    assert [(each["number"], each["state"], each["senders"]) for each in document["aliases"]] == [
        (number, "bound", 2) for number in (1, 2, 3)
    ]
    links = [tuple(map(tuple, each["links"])) for each in (document, *document["aliases"])]
    assert len(set(links)) == 4
    assert Counter(sender["alias"] for sender in document["senders"]) == {None: 2, 1: 2, 2: 2, 3: 2}


def test_all_trees_of_a_group_are_built_anew_when_an_operator_asks(world):
    answer = world.do("group-rebuild", group="239.1.2.3").document
    assert (
        answer["links_before"]
        == answer["links"]
        == sum(world.core.forest.tree(tree.key).size for tree in world.core.plane.groups[GROUP].all_trees())
    )
    check(world)
