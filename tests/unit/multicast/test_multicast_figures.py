"""What is counted of multicast, as operators' monitoring has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from apps.exporters.figures import core_figures
from controller.config.policy import Policy
from controller.config.settings import Limits
from controller.config.vlans import PortVlans
from controller.multicast.events import PolicyLoaded
from controller.multicast.figures import OTHER_VLANS, VLANS_BOUND
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType

from .vlan_world import VlanWorld, started, vlans_of

GROUP = parse_ip("239.1.2.3")
OPEN = Policy(
    default_allow=True, limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
)
World = Any


def test_a_join_is_timed_from_the_report_to_the_last_barrier(make_world: Callable[..., World]) -> None:
    world = make_world("leaf-spine")
    world.join("h1")
    world.join("h3")
    world.now += 0.004
    world.settle(0)
    world.join("h3")
    world.settle(0)
    latency = world.core.figures.all().join_latency
    assert sum(latency.counts) == 2, "a report that changes nothing is no join"
    assert 0.004 <= latency.sum <= 0.009


def test_groups_members_senders_and_trees_are_counted(make_world: Callable[..., World]) -> None:
    world = make_world("leaf-spine")
    for name in ("h1", "h3", "h4"):
        world.join(name)
    world.send("h5")
    world.settle()
    found = world.core.figures.all()
    assert (found.group_count, found.member_count, found.sender_count) == (1, 3, 1)
    assert found.tree_change_count >= 2
    assert found.decisions["default"]["allow"] == 4
    world.leave("h1")
    world.advance(10)
    assert world.core.figures.all().member_count == 2


def test_refusals_are_counted_by_rule_and_are_no_members(make_world: Callable[..., World]) -> None:
    world = make_world("leaf-spine", replace(OPEN, default_allow=False))
    world.join("h1")
    world.settle()
    found = world.core.figures.all()
    assert found.decisions == {"default": {"allow": 0, "deny": 1}}
    assert (found.member_count, found.group_count, sum(found.join_latency.counts)) == (0, 0, 0)


def test_a_tree_that_loses_a_link_is_repaired_and_counted(make_world: Callable[..., World]) -> None:
    world = make_world("leaf-spine")
    world.join("h1")
    world.join("h3")
    world.settle()
    tree = world.core.forest.tree(GROUP)
    assert tree is not None
    before = world.core.figures.all()
    a, b = sorted(next(iter(tree.links())))
    world.cut(a, b)
    world.settle()
    found = world.core.figures.all()
    assert (before.tree_repair_count, found.tree_repair_count) == (0, 1)
    assert found.tree_change_count > before.tree_change_count


def test_a_switch_that_is_gone_is_shown_until_it_is_forgotten(make_world: Callable[..., World]) -> None:
    world = make_world("leaf-spine")
    world.join("h1")
    world.settle()

    def states() -> dict[int, tuple[bool, bool]]:
        return {each.dpid: (each.is_connected, each.in_sync) for each in world.core.figures.by_switch()}

    dpid = world.hosts["h1"].dpid
    assert set(states().values()) == {(True, True)}
    world.disconnect(dpid)
    assert states()[dpid] == (False, False)
    world.do("switch-forget", dpid=dpid)
    assert dpid not in states()


def test_a_switch_that_is_gone_has_the_labels_that_it_had_and_no_entries_that_anybody_knows_of(
    make_world: Callable[..., World],
) -> None:
    world = make_world("leaf-spine")
    world.join("h1")
    world.settle()
    dpid = world.hosts["h1"].dpid

    def labels() -> list[tuple[str, int | None]]:
        return [(each.name, each.ofp_version) for each in world.core.figures.by_switch() if each.dpid == dpid]

    def counted() -> list[int]:
        return [entry_count for of, entry_count, _ in world.core.installer.entry_counts() if of == dpid]

    before = labels()
    assert counted()[0] > 0
    world.disconnect(dpid)
    assert (labels(), counted()) == (before, [])
    world.reconnect(dpid)
    world.settle()
    assert labels() == before
    assert counted()[0] > 0


def test_what_is_told_of_policies_does_not_grow_with_groups(make_world: Callable[..., World]) -> None:
    world = make_world("leaf-spine", OPEN)
    before = _size(world)
    for number in range(50):
        world.join("h1", bytes((239, 1, 1, number)))
    world.settle()
    assert _size(world) == before


def _size(world: World) -> int:
    found: Any = world.core.figures.all()
    return sum(len(value) if hasattr(value, "__len__") else 1 for value in found) + len(
        list(world.core.figures.by_switch())
    )


def test_each_vlan_is_counted_and_those_beyond_the_bound_together() -> None:
    tagged = PortVlans(0, frozenset((10, 200)))
    world = VlanWorld({"h1": tagged, "h5": tagged, "h9": PortVlans(200, frozenset())})
    for name, vlan_id in (("h5", 10), ("h5", 200), ("h9", 200), ("h5", 0)):
        world.joins(name, GROUP, vlan_id)
    started(world, "h1", GROUP, 10)
    assert world.core.figures.by_vlan() == {0: (1, 1, 0), 10: (1, 1, 1), 200: (1, 2, 0)}
    world.tell("h5", RecordType.CHANGE_TO_INCLUDE, GROUP, 10)
    world.tell("h5", RecordType.CHANGE_TO_INCLUDE, GROUP, 0)
    world.advance(5.0)
    assert world.core.figures.by_vlan() == {0: (0, 0, 0), 10: (1, 0, 1), 200: (1, 2, 0)}
    named = tuple((vlan_id, f"v{vlan_id}") for vlan_id in range(100, 100 + VLANS_BOUND))
    vlans = replace(vlans_of(world.port_vlans), names=named)
    world.feed(PolicyLoaded(replace(world.core.policy, vlans=vlans)))
    found = world.core.figures.by_vlan()
    assert len(found) == VLANS_BOUND + 2
    assert found[10] == (1, 0, 1) and found[OTHER_VLANS] == (1, 2, 0)
    members = {family.name: samples for family, samples in core_figures(world.core)}["vsrt_vlan_members"]
    assert [members[0], members[1], members[-1]] == [
        ({"vlan": "untagged"}, 0),
        ({"vlan": 10}, 0),
        ({"vlan": "other"}, 2),
    ]


def test_a_fabric_without_vlans_has_none_to_count(make_world: Callable[..., World]) -> None:
    world = make_world("leaf-spine")
    world.join("h1")
    assert world.core.figures.by_vlan() == {}
