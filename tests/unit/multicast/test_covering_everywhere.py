"""Covering trees in VLANs and queues, and where switches do not take what they need: nothing is lost or doubled."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.config.service_class_settings import Aliases, QueuePolicy
from controller.config.service_classes import ServiceClass
from controller.config.terms import parse_prefix
from controller.config.vlans import PortVlans
from controller.multicast.common_forms import CommonForms
from controller.multicast.events import PolicyLoaded
from controller.multicast.table_limits import TableLimits
from controller.overcommit.tables import GroupTables
from controller.rules.compile_cover import COVERED_VERSIONS, cover_mac
from controller.rules.compile_shared import SHARED_MASK, is_shared, shares
from controller.rules.fake import FakeSwitch
from controller.rules.model import FlowKey, Match
from controller.rules.pipeline import FORWARD, OPENFLOW_1_0, VLAN_FORWARD
from topology.generators import make
from topology.graph import NodeKind

from .conftest import OPEN
from .test_covering import (
    COVER,
    MEMBERS,
    SENDER,
    SILENT_S,
    assert_served,
    covered,
    entries_of,
    filled,
    group,
    inside,
    scarce,
)
from .test_multicast_queues import queues_of
from .vlan_world import VlanWorld, started

__all__ = ["scarce"]

BAD_FIELD, UNKNOWN = (4, 6), (5, 0)
"""What a switch answers that does not know how to match something: by the text, and as some do."""


def switches_of(graph, kind):
    return [graph.attributes(node)["dpid"] for node in graph.switches() if graph.kind(node) is kind]


def cover_entries(world):
    return [rule for dpid in inside(world) for rule in world.rules()[dpid].values() if is_of_cover(rule.key.match)]


def is_of_cover(match):
    return match.ip_dst is None and match.eth_dst is not None and match.eth_dst[:4] == cover_mac(1)[:4]


def refuse(monkeypatch, dpid, is_refused, error):
    """Have a switch refuse some entries, and return what it refused."""
    found = []
    own = FakeSwitch._fault

    def fault(switch, rule):
        if switch.dpid == dpid and is_refused(rule.key.match):
            found.append(rule)
            return error, "no such match here"
        return own(switch, rule)

    monkeypatch.setattr(FakeSwitch, "_fault", fault)
    return found


# VLANs and queues


def test_groups_of_vlans_have_trees_in_common_with_all_others_and_entries_in_the_table_of_vlans(scarce):
    ports = {
        "h1": PortVlans(10, frozenset()),
        "h6": PortVlans(10, frozenset((20,))),
        "h11": PortVlans(20, frozenset((10,))),
        "h16": PortVlans(10, frozenset((20,))),
    }
    world = VlanWorld(ports, policy=COVER)
    reached = {}
    for number in range(3):
        for vlan_id, members in ((10, ("h1", "h6", "h11")), (20, ("h6", "h11"))):
            for name in members:
                world.joins(name, group(number), vlan_id)
            world.settle()
            reached[number, vlan_id] = started(world, "h16", group(number), vlan_id)
            assert sum(reached[number, vlan_id].values()) == len(members)
    for name in ("h2", "h12"):
        world.joins(name, group(0))
    world.settle()
    outside = started(world, "h15", group(0))
    world.advance(SILENT_S)
    assert len(covered(world)) == 7
    tables = {rule.key.table for rule in cover_entries(world)}
    assert tables == {FORWARD, VLAN_FORWARD}
    for (number, vlan_id), copies in reached.items():
        sent = len(world.packet_outs)
        assert world.sends("h16", group(number), vlan_id) == copies
        assert len(world.packet_outs) == sent, "the switches forward it"
    assert world.sends("h15", group(0)) == outside


FEED = ServiceClass("feed", 1, (parse_prefix("239.7.0.0/25"),))
QUEUED = replace(COVER, classes=(FEED,), queues=QueuePolicy(mode="static"))


def test_groups_of_each_queue_have_a_tree_whose_entries_send_to_it(make_world, scarce):
    world = make_world("fattree", QUEUED)
    numbers = (0, 1, 128, 129)
    for number in numbers:
        for name in MEMBERS:
            world.join(name, group(number))
        world.send(SENDER, group(number))
        world.settle()
    queue_of = {number: world.core.plane.groups[group(number)].queue_id for number in numbers}
    assert queue_of[0] == queue_of[1] != queue_of[128] == queue_of[129]
    world.advance(SILENT_S)
    assert covered(world) == {group(number) for number in numbers}
    covers = {number: world.core.plane.covers.of(world.core.plane.groups[group(number)]) for number in numbers}
    assert {cover.number: cover.queue_id for cover in covers.values()} == {
        covers[0].number: queue_of[0],
        covers[128].number: queue_of[128],
    }
    for number in numbers:
        assert_served(world, group(number))
        own = [rule for rules in entries_of(world, group(number)).values() for rule in rules]
        common = [rule for rule in cover_entries(world)
                  if rule.key.match.eth_dst == cover_mac(covers[number].number)]  # fmt: skip
        assert common
        assert {queue for rule in (*own, *common) for queue in queues_of(rule)} == {queue_of[number]}


def test_a_group_that_waits_in_another_queue_has_its_own_tree_at_once(make_world, scarce):
    world = filled(make_world("fattree", QUEUED), 2)
    assert len(covered(world)) == 2
    world.feed(PolicyLoaded(replace(QUEUED, classes=(replace(FEED, groups=(parse_prefix("239.7.0.1/32"),)),))))
    world.advance(2.0)
    assert group(1) in covered(world)
    for number in range(2):
        assert_served(world, group(number))


def test_a_restart_and_who_follows_keep_the_queues_of_covering_trees(make_world, scarce):
    world = filled(make_world("fattree", QUEUED), 3)
    world.advance(1.0)
    before, names = world.rules(), covered(world)
    world.restart()
    world.connect_all()
    world.advance(5.0)
    assert world.applied == 0 and world.rules() == before
    assert covered(world) == names == {group(number) for number in range(3)}


# Switches that do not take what covering trees need


@pytest.mark.parametrize("where", ["one", "all"])
@pytest.mark.parametrize("error", [BAD_FIELD, UNKNOWN])
def test_groups_go_on_by_their_own_trees_where_a_switch_refuses_the_entry_of_a_covering_tree(
    make_world, scarce, monkeypatch, error, where
):
    (cover,) = filled(make_world("fattree", COVER), 12).core.plane.covers.trees.values()
    within = sorted(dpid for dpid, near in cover.adjacent.items() if len(near) > 1)
    refused = {
        dpid: refuse(monkeypatch, dpid, is_of_cover, error) for dpid in (within if where == "all" else within[:1])
    }
    world = make_world("fattree", COVER)
    for number in range(12):
        for name in MEMBERS:
            world.join(name, group(number))
        world.send(SENDER, group(number))
        world.settle()
    for second in range(60):
        world.advance(1.0)
        assert_served(world, group(second % 12))
    world.advance(SILENT_S)
    for number in range(12):
        assert_served(world, group(number))
    told = [dict(notice.fields)["dpid"] for notice in world.notices if notice.kind == "common-entry-refused"]
    assert sorted(told) == sorted(dpid for dpid, rules in refused.items() if rules)
    assert within[0] in told
    assert not any(set(told) & each.adjacent.keys() for each in world.core.plane.covers.trees.values())
    counts = [len(rules) for rules in refused.values()]
    world.advance(120.0)
    assert [len(rules) for rules in refused.values()] == counts, "they are not asked again"


@pytest.mark.parametrize("kind", [NodeKind.CORE, NodeKind.AGGREGATION, NodeKind.TOR])
def test_a_switch_that_matches_no_part_of_an_address_has_entries_of_each_group(make_world, monkeypatch, kind):
    monkeypatch.setattr(TableLimits, "are_ample", lambda _self: False)
    graph = make("fattree")
    refused = []
    for dpid in switches_of(graph, kind):
        refused.append(refuse(monkeypatch, dpid, lambda match: match.eth_dst_mask is not None
                              and len(set(match.eth_dst_mask)) > 1, BAD_FIELD))  # fmt: skip
    world = make_world(graph, replace(COVER, overcommit=replace(COVER.overcommit, mode="swap")))
    for number in range(6):
        for name in MEMBERS:
            world.join(name, group(number))
        for _ in range(3):
            assert world.send(SENDER, group(number)) == Counter(MEMBERS)
            world.advance(0.5)
    assert any(refused)
    for number in range(6):
        assert shares(world.core.plane.groups[group(number)].tree_version)
        assert_served(world, group(number))
    told = {dict(notice.fields)["dpid"] for notice in world.notices if notice.kind == "common-entry-refused"}
    assert told and told <= set(switches_of(graph, kind))
    for dpid in told:
        assert not any(is_shared(rule) for rule in world.rules()[dpid].values())
    counts = [len(each) for each in refused]
    world.leave("h6", group(0))
    world.advance(5.0)
    world.join("h6", group(0))
    world.advance(200.0)
    assert_served(world, group(0))
    assert sum(map(len, refused)) <= sum(counts) + len(switches_of(graph, kind)), "each is asked once more at most"


def test_other_entries_that_are_refused_say_nothing_of_covering_trees(make_world, scarce, monkeypatch):
    graph = make("fattree")
    dpid = switches_of(graph, NodeKind.AGGREGATION)[0]
    is_refused = [True]
    refuse(monkeypatch, dpid, lambda match: is_refused[0] and match.ip_dst == group(0), UNKNOWN)
    world = filled(make_world(graph, COVER), 3)
    assert not [notice for notice in world.notices if notice.kind == "common-entry-refused"]
    assert dpid in world.core.plane.forms.covering
    is_refused[0] = False


def test_each_switch_of_openflow_1_0_is_told_once_with_covering_trees_and_not_without(make_world, scarce):
    graph = make("fattree")
    dpids = [graph.attributes(node)["dpid"] for node in graph.switches()]
    old = switches_of(graph, NodeKind.CORE)
    for mode, wanted in (("cover", old), ("swap", [])):
        policy = replace(COVER, overcommit=replace(COVER.overcommit, mode=mode))
        world = filled(make_world(graph, policy, {**dict.fromkeys(dpids, 4), **dict.fromkeys(old, OPENFLOW_1_0)}), 2)
        world.advance(30.0)
        told = [notice for notice in world.notices if notice.kind == "covers-unfit"]
        assert sorted(dict(notice.fields)["dpid"] for notice in told) == wanted
        assert all("OpenFlow 1.0" in notice.text for notice in told)
        assert not any(set(old) & each.adjacent.keys() for each in world.core.plane.covers.trees.values())
        for number in range(2):
            assert_served(world, group(number))


def test_covering_trees_go_round_cores_of_openflow_1_0_while_there_are_others(make_world, scarce):
    graph = make("fattree")
    dpids = [graph.attributes(node)["dpid"] for node in graph.switches()]
    cores = switches_of(graph, NodeKind.CORE)
    went = 0
    for old in cores:
        world = filled(make_world(graph, COVER, {**dict.fromkeys(dpids, 4), old: OPENFLOW_1_0}), 2)
        went += len(covered(world))
        assert not any(old in each.adjacent for each in world.core.plane.covers.trees.values())
        for number in range(2):
            assert_served(world, group(number))
    assert went == 2 * len(cores)


def test_it_is_told_once_that_none_is_under_a_tree_while_groups_may_have_aliases(make_world, scarce):
    world = filled(make_world("fattree", replace(COVER, aliases=Aliases(mode="dynamic"))), 2)
    world.advance(30.0)
    assert not covered(world)
    assert [notice.kind for notice in world.notices].count("covers-unused") == 1


# What is kept account of


def test_who_is_under_which_tree_is_counted_as_it_changes(make_world, scarce, monkeypatch):
    world = filled(make_world("fattree", COVER), 6)
    plane, covering = world.core.plane, world.core.swapping.covering

    def assert_counted():
        under = {name: each.tree_version - COVERED_VERSIONS for name, each in plane.groups.items()
                 if each.tree_version > COVERED_VERSIONS}  # fmt: skip
        assert plane.covers.under == under
        assert covering.covered_count() == len(under)
        assert {name for names in plane.covers.groups.values() for name in names} == under.keys()
        assert world.core.swapping.out_count() == sum(each.is_out for each in plane.groups.values())
        return len(under)

    assert assert_counted() == 6
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    world.send(SENDER, group(0))
    world.advance(5.0)
    assert assert_counted() == 5
    for name in MEMBERS:
        world.leave(name, group(1))
    world.advance(400.0)
    assert_counted()
    world.do("group-swap-out", group="239.7.0.2")
    world.advance(2.0)
    assert_counted()
    world.feed(PolicyLoaded(OPEN))
    world.advance(5.0)
    assert assert_counted() == 0
    assert not plane.covers.groups and not plane.covers.moved


def test_a_switch_that_speaks_another_version_is_fit_or_not_and_keeps_what_it_refused():
    forms = CommonForms()
    forms.speaks(1, OPENFLOW_1_0)
    assert forms.unfit == {1: "it speaks OpenFlow 1.0"} and list(forms.changed) == [1]
    forms.speaks(1, 4)
    assert not forms.unfit and not forms.changed and forms.covering == forms.masking == {1}
    refused = FlowKey(FORWARD, 1, Match(eth_dst=bytes(6), eth_dst_mask=SHARED_MASK))
    assert forms.refused(1, refused) == "entries that groups share"
    assert forms.refused(1, refused) is None
    assert forms.refused(2, refused) is None
    forms.speaks(1, OPENFLOW_1_0)
    forms.speaks(1, 4)
    assert forms.covering == {1} and not forms.masking


@pytest.mark.parametrize("kind", [NodeKind.CORE, NodeKind.TOR])
def test_after_a_restart_a_switch_that_refuses_has_entries_of_each_group_again(make_world, monkeypatch, kind):
    monkeypatch.setattr(TableLimits, "are_ample", lambda _self: False)
    graph = make("fattree")
    for dpid in switches_of(graph, kind):
        refuse(
            monkeypatch,
            dpid,
            lambda match: match.eth_dst_mask is not None and len(set(match.eth_dst_mask)) > 1,
            BAD_FIELD,
        )
    world = make_world(graph, replace(COVER, overcommit=replace(COVER.overcommit, mode="swap")))
    for number in range(4):
        for name in MEMBERS:
            world.join(name, group(number))
        for _ in range(3):
            assert world.send(SENDER, group(number)) == Counter(MEMBERS)
            world.advance(0.5)
    world.advance(10.0)
    world.notices.clear()
    world.restart()
    world.connect_all()
    for _ in range(40):
        world.advance(1.0)
        for number in range(4):
            for name in MEMBERS:
                world.join(name, group(number))
            assert world.send(SENDER, group(number)) == Counter(MEMBERS)
    for number in range(4):
        assert_served(world, group(number))
    assert {notice.kind for notice in world.notices} >= {"common-entry-refused"}
