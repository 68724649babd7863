"""Flows of a sender over the trees of its group: each packet reaches each member once, whatever comes and goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.terms import parse_prefix
from controller.multicast.alias_trial import AliasTrial
from controller.multicast.events import PolicyLoaded
from controller.rules.model import FLOW_PARTS, SplitFlows
from controller.rules.pipeline import SPLIT
from controller.wire.udp import encode_udp
from wire_frames import fields_of

from .conftest import GROUP, GROUP_V6, OPEN, leaf_spine

FLOWS = Aliases(mode="static", split="flow", static=(StaticTrees(parse_prefix("239.1.0.0/16"), 3),))
BY_FLOW = replace(OPEN, aliases=FLOWS)
MEMBERS = ["h9", "h10", "h11", "h12"]
PORTS = range(4000, 4040)


@pytest.fixture
def graph():
    """Six leaves of two hosts under four spines."""
    return leaf_spine(leaves=6, spines=4, hosts=2)


@pytest.fixture
def world(make_world, graph):
    return started(make_world(graph, BY_FLOW, 4))


def frame(world, name, port=5001, group=GROUP):
    host = world.hosts[name]
    return encode_udp(host.mac, host.address(group), group, b"data", source_port=port)


def started(world, senders=("h1",), group=GROUP):
    for name in MEMBERS:
        world.join(name, group)
    world.settle()
    for name in senders:
        world.send(name, group)
    world.settle(2.0)
    return world


def use(world, aliases):
    world.policy = replace(world.policy, aliases=aliases)
    world.feed(PolicyLoaded(world.policy))


def give(world, count):
    use(world, replace(FLOWS, static=(StaticTrees(parse_prefix("239.1.0.0/16"), count),)) if count else Aliases())


def check(world, senders=("h1",), group=GROUP, members=MEMBERS, ports=PORTS):
    """Each of several flows reaches each member once."""
    for name in senders:
        for port in ports:
            got = world.inject(world.hosts[name].place, frame(world, name, port, group))
            assert got == dict.fromkeys(set(members) - {name}, 1), (name, port)


def check_some(world, senders=("h1",), members=MEMBERS):
    check(world, senders, members=members, ports=world.random.sample(PORTS, 3))


def parts(world, group=GROUP, name="h1"):
    """How many parts of flows at a host's switch take each tree."""
    found = world.core.plane.groups[group].parts
    return Counter(found[world.hosts[name].dpid].trees) if found and world.hosts[name].dpid in found else None


def spines_passed(world, ports=PORTS, name="h1"):
    """Where flows of a host go from its switch."""
    host, passed = world.hosts[name], Counter()
    for port in ports:
        verdict = world.switches[host.dpid].process(fields_of(frame(world, name, port)), host.port_no)
        passed.update(sent.port_no for sent in verdict.sent if sent.eth_dst[0] != 1 or len(verdict.sent) == 1)
    return passed


def in_split(world):
    """The entries of parts, by switch."""
    found = {
        dpid: [rule for key, rule in rules.items() if key.table == SPLIT] for dpid, rules in world.rules().items()
    }
    return {dpid: rules for dpid, rules in found.items() if rules}


def heads(world):
    """How many entries of senders divide their packets."""
    rules = [rule for rules in world.rules().values() for rule in rules.values()]
    return sum(any(isinstance(action, SplitFlows) for action in rule.actions) for rule in rules)


def test_flows_of_one_sender_go_by_all_trees(world):
    assert parts(world) == {0: 4, 1: 4, 2: 4, 3: 4}
    assert {dpid: len(rules) for dpid, rules in in_split(world).items()} == {world.hosts["h1"].dpid: FLOW_PARTS}
    assert heads(world) == 1
    passed = spines_passed(world)
    assert len(passed) == 4 and min(passed.values()) >= 4
    check(world)


def test_split_by_sender_not_one_entry_differs(make_world, graph):
    plain, flows = (
        make_world(graph, replace(OPEN, aliases=aliases), 4)
        for aliases in (replace(FLOWS, split="sender", static=()), replace(FLOWS, static=()))
    )
    for world in (plain, flows):
        started(world, ("h1", "h2", "h3"))
    assert plain.rules() == flows.rules()


def test_trees_come_and_go_under_packets(make_world, graph):
    world = started(make_world(graph, OPEN, 4))
    before, world.is_hasty = world.rules(), True
    for count in (3, 1, 4, 2, 0):
        give(world, count)
        for _ in world.steps(2.0):
            check_some(world)
        check(world)
        if count:
            assert parts(world).keys() == set(range(count + 1))
    assert world.rules() == before
    assert world.core.plane.groups[GROUP].parts is None


def test_flows_are_divided_under_packets_when_the_policy_says_so_and_taken_together_again(make_world, graph):
    world = started(
        make_world(graph, replace(BY_FLOW, aliases=replace(FLOWS, split="sender")), 4), ("h1", "h2", "h3")
    )
    before = world.rules()
    assert not in_split(world)
    use(world, FLOWS)
    for _ in world.steps(2.0):
        check_some(world, ("h1", "h2", "h3"))
    assert heads(world) == 3 and len(in_split(world)) == 2
    use(world, replace(FLOWS, split="sender"))
    for _ in world.steps(2.0):
        check_some(world, ("h1", "h2", "h3"))
    assert not in_split(world) and not heads(world)
    assert {dpid: rules.keys() for dpid, rules in world.rules().items()} == {d: r.keys() for d, r in before.items()}


def test_no_packet_is_divided_before_all_parts_have_entries(make_world, graph):
    world = started(make_world(graph, OPEN, 4))
    use(world, FLOWS)
    seen = set()
    for _ in world.steps(2.0):
        entries = len(in_split(world).get(world.hosts["h1"].dpid, ()))
        seen.add((entries, heads(world)))
        assert not heads(world) or entries == FLOW_PARTS
    assert (FLOW_PARTS, 0) in seen and (FLOW_PARTS, 1) in seen


def test_senders_at_other_switches_come_and_go(world):
    for name in ("h3", "h4", "h5"):
        world.inject(world.hosts[name].place, frame(world, name))
        world.settle(2.0)
    assert heads(world) == 4 and len(in_split(world)) == 3
    check(world, ("h1", "h3", "h4", "h5"))
    for name in ("h1", "h4", "h3"):
        host = world.hosts[name]
        world.perform_all(world.core.senders.port_gone(host.dpid, host.port_no, world.now))
        for _ in world.steps(2.0):
            check_some(world, ("h5",))
    assert in_split(world).keys() == {world.hosts["h5"].dpid}
    host = world.hosts["h5"]
    world.perform_all(world.core.senders.port_gone(host.dpid, host.port_no, world.now))
    world.settle(2.0)
    assert not in_split(world)
    assert world.core.plane.groups[GROUP].parts is None


def test_a_group_that_ends_leaves_nothing_and_may_begin_again(world):
    for name in MEMBERS:
        world.leave(name)
    host = world.hosts["h1"]
    world.perform_all(world.core.senders.port_gone(host.dpid, host.port_no, world.now))
    world.advance(10.0)
    assert not in_split(world)
    assert GROUP not in world.core.plane.groups
    assert len(world.core.plane.forest) == 0
    started(world)
    assert parts(world) == {0: 4, 1: 4, 2: 4, 3: 4}
    check(world)


def test_members_come_and_go_on_every_tree(world):
    world.join("h2")
    world.join("h5")
    for _ in world.steps():
        for port in world.random.sample(PORTS, 3):
            got = world.inject(world.hosts["h1"].place, frame(world, "h1", port))
            assert {member: got[member] for member in MEMBERS} == dict.fromkeys(MEMBERS, 1)
            assert set(got.values()) == {1}
    check(world, members=[*MEMBERS, "h2", "h5"])
    world.leave("h9")
    world.advance(5.0)
    check(world, members=["h2", "h5", "h10", "h11", "h12"])


def test_links_of_trees_fail_and_are_back(world):
    for tree in list(world.core.plane.groups[GROUP].all_trees()):
        link = sorted(world.core.forest.tree(tree.key).links())[0]
        world.cut(*link)
        world.settle(1.0)
        check(world)
        world.mend(*link)
        for _ in world.steps(1.0):
            check_some(world)
    assert parts(world).total() == FLOW_PARTS


def test_a_spine_is_drained_under_packets(world):
    plane = world.core.plane
    tree = plane.forest.tree(plane.groups[GROUP].all_trees()[1].key)
    leaves = {host.dpid for host in world.hosts.values()}
    spine = sorted({node for link in tree.links() for node in link} - leaves)[0]
    world.do("switch-drain", dpid=spine)
    for _ in world.steps(2.0):
        check_some(world)
    world.do("switch-undrain", dpid=spine)
    for _ in world.steps(2.0):
        check_some(world)
    check(world)


def test_after_a_restart_flows_are_divided_again_without_loss(world):
    world.advance(5.0)
    before = spines_passed(world).keys()
    world.restart()
    world.connect_all()
    for _ in world.steps(20.0):
        check_some(world)
    assert parts(world) == {0: 4, 1: 4, 2: 4, 3: 4}
    assert spines_passed(world).keys() == before
    assert heads(world) == 1
    check(world)


def test_after_a_restart_without_a_log_too(world):
    world.advance(1.0)
    world.restart(journal=False)
    world.connect_all()
    for name in MEMBERS:
        world.join(name)
    for _ in world.steps(20.0):
        check_some(world)
    world.advance(5.0)
    assert parts(world) == {0: 4, 1: 4, 2: 4, 3: 4}
    check(world)


def test_a_restart_by_a_policy_that_divides_nothing_leaves_no_entry_of_it(world):
    world.advance(1.0)
    world.restart(policy=OPEN)
    world.connect_all()
    for _ in world.steps(20.0):
        for port in world.random.sample(PORTS, 3):
            got = world.inject(world.hosts["h1"].place, frame(world, "h1", port))
            assert set(got.values()) <= {1}
    assert not in_split(world) and not heads(world)
    check(world)


def test_a_switch_of_openflow_1_0_keeps_senders_whole_and_that_is_told_once(make_world, graph):
    built = make_world(graph, BY_FLOW, 4)
    old = built.hosts["h1"].dpid
    world = started(make_world(graph, BY_FLOW, {old: 1}), ("h1", "h3"))
    world.advance(3.0)
    assert in_split(world).keys() == {world.hosts["h3"].dpid}
    told = [notice.text for notice in world.notices if notice.kind == "flows-not-split"]
    why = "for it speaks OpenFlow 1.0: all that a sender there sends takes one tree."
    assert told == [f"Switch {old} does not divide flows, {why}"]
    check(world, ("h1", "h3"))
    assert len(spines_passed(world)) == 1


def refuse(world, dpid, kind):
    """Have a switch take no entries of a kind: those of parts, or those that divide packets."""
    switch = world.switches[dpid]
    fault_of = switch._fault

    def fault(rule):
        divides = any(isinstance(action, SplitFlows) for action in rule.actions)
        if (rule.key.table == SPLIT) if kind == "parts" else divides:
            return (2, 0), "an action that it does not know"
        return fault_of(rule)

    switch._fault = fault
    return lambda: setattr(switch, "_fault", fault_of)


@pytest.mark.parametrize("kind", ["parts", "heads"])
def test_a_switch_that_refuses_to_divide_keeps_senders_whole_without_loss(make_world, graph, kind):
    world = started(make_world(graph, OPEN, 4), ("h1", "h3"))
    dpid = world.hosts["h1"].dpid
    restore = refuse(world, dpid, kind)
    use(world, FLOWS)
    for _ in world.steps(5.0):
        check_some(world, ("h1", "h3"))
    check(world, ("h1", "h3"))
    assert world.core.plane.groups[GROUP].parts.keys() == {world.hosts["h3"].dpid}
    assert in_split(world).keys() == {world.hosts["h3"].dpid}
    told = [notice.text for notice in world.notices if notice.kind == "flows-not-split"]
    assert len(told) == 1 and f"Switch {dpid} does not divide flows, for it refused" in told[0]
    world.advance(60.0)
    assert world.core.plane.groups[GROUP].parts.keys() == {world.hosts["h3"].dpid}, "it is not tried for ever"
    restore()
    world.disconnect(dpid, dies=False)
    world.reconnect(dpid)
    world.settle(3.0)
    assert world.core.plane.groups[GROUP].parts.keys() == {dpid, world.hosts["h3"].dpid}
    check(world, ("h1", "h3"))


def test_a_switch_that_dies_and_comes_back_empty_divides_flows_again(world):
    dpid = world.hosts["h1"].dpid
    world.disconnect(dpid)
    world.advance(2.0)
    world.reconnect(dpid)
    world.settle(5.0)
    check(world)
    assert heads(world) == 1 and len(in_split(world)[dpid]) == FLOW_PARTS


def test_a_switch_that_comes_back_with_openflow_1_0_divides_nothing(world):
    dpid = world.hosts["h1"].dpid
    world.disconnect(dpid)
    world.advance(1.0)
    world.switches[dpid].ofp_version = 1
    world.switches[dpid].table_count = 1
    world.reconnect(dpid)
    world.settle(5.0)
    assert not in_split(world)
    check(world)


def test_ipv6_groups_are_divided(make_world, graph):
    aliases = replace(FLOWS, static=(StaticTrees(parse_prefix("ff0e::/16"), 3),))
    world = started(make_world(graph, replace(OPEN, aliases=aliases), 4), group=GROUP_V6)
    assert parts(world, GROUP_V6) == {0: 4, 1: 4, 2: 4, 3: 4}
    check(world, group=GROUP_V6)


def test_parts_that_carry_more_are_spread_by_what_was_measured(world):
    """Of the 16 parts three carry nearly all: they are on three trees once there are trees again."""
    group, dpid = world.core.plane.groups[GROUP], world.hosts["h1"].dpid
    ports = {fields_of(frame(world, "h1", port)).flow % FLOW_PARTS: port for port in range(4000, 5000)}

    def carry(seconds):
        for _ in range(round(2 * seconds)):
            for part in range(FLOW_PARTS):
                fields = fields_of(frame(world, "h1", ports[part]))
                world.fabric.deliver(*world.hosts["h1"].place, fields, 100_000 if part < 3 else 100)
            world.advance(0.5)

    carry(20)
    measured = group.parts[dpid].rates_bps
    assert min(measured[:3]) > 1e6 > 1e5 > max(measured[3:])
    assert sum(tree.rate_bps() for tree in group.all_trees()) == pytest.approx(sum(measured))
    assert world.core.forest.tree(group.all_trees()[1].key).rates[dpid] == pytest.approx(
        group.all_trees()[1].rate_at(dpid)
    )
    for count in (1, 3):
        give(world, count)
        carry(3)
    assert len(set(group.parts[dpid].trees[:3])) == 3
    check(world)


def test_parts_by_which_nothing_has_come_are_spread_too(world):
    world.advance(30.0)
    assert set(world.core.plane.groups[GROUP].parts[world.hosts["h1"].dpid].rates_bps) == {0.0}
    give(world, 1)
    world.settle(2.0)
    give(world, 3)
    world.settle(2.0)
    assert parts(world) == {0: 4, 1: 4, 2: 4, 3: 4}


def test_one_more_tree_helps_a_group_of_one_sender_where_its_flows_are_divided(make_world, graph):
    gains = []
    for split in ("sender", "flow"):
        world = started(make_world(graph, replace(OPEN, aliases=Aliases(mode="dynamic", split=split)), 4))
        group = world.core.plane.groups[GROUP]
        key, sender = next(iter(group.senders.items()))
        sender.rate_bps = sender.placed_bps = 1e8
        world.core.plane.sender_measured(GROUP, key.dpid)
        trial = AliasTrial(world.core.plane.aliases, world.core.plane)
        before = {tree.key: dict(tree.rates) for tree in world.core.forest.trees.values()}
        gains.append(trial.would_gain(group))
        assert {tree.key: dict(tree.rates) for tree in world.core.forest.trees.values()} == before
    assert gains == [False, True]


def test_a_group_and_its_aliases_are_shown(world):
    document = world.core.group_view.group(GROUP)
    assert [(each["number"], each["state"], each["flow_parts"]) for each in document["aliases"]] == [
        (number, "bound", 4) for number in (1, 2, 3)
    ]
    assert [sender["divided"] for sender in document["senders"]] == [True]
