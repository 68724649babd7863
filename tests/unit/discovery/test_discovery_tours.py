"""One frame asks many links, where there are too many ports to ask each: what it finds, and that it harms nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.discovery.base_rules import base_rules, tour_rule, turn_rule
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.discovery.timers import RESTART_GRACE_S
from controller.rules.evaluate import Fields, FlowTables, Sent
from controller.rules.fake import Copy, FakeFabric, FakeSwitch
from controller.rules.lowering import LOWERINGS
from controller.rules.model import OFPP_CONTROLLER
from controller.wire.lldp import NEAREST_BRIDGE_MAC, TOUR_MAC, return_mac
from topology.events import LinkDown, SwitchDown

from .test_discovery_liveness import BusyWorld
from .test_discovery_properties import expected_links, found_links, wirings

SCARCE = DiscoverySettings(idle_frames_per_s=8.0)
"""Too few frames at rest for more than 16 ports to be asked singly."""

HUB, LEAVES = 1, tuple(range(2, 10))


def star(make_world, settings=SCARCE, version=4, world=None):
    """A hub whose ports 1 to 8 lead to port 1 of a switch each, which has three ports more."""
    world = world or make_world(settings)
    for port_no, leaf in enumerate(LEAVES, 1):
        world.cable((HUB, port_no), (leaf, 1))
    world.connect(HUB, ports=range(1, 10), version=version)
    for leaf in LEAVES:
        world.connect(leaf, version=version)
    (world.run_busy if isinstance(world, BusyWorld) else world.run)(30.0)
    assert world.links() == {(HUB, leaf) for leaf in LEAVES}
    del world.events[:], world.sent[:]
    return world


def tours_of(world):
    return [packet for packet in world.sent if packet.data[:6] == TOUR_MAC]


def tour_entries(world, dpid=HUB):
    return [key for key in world.rules[dpid] if key.match.in_port is not None and key.match.eth_type == 0x88CC]


def changes(world):
    return [event for event in world.events if not hasattr(event, "role")]


@pytest.mark.parametrize("version", [1, 4])
def test_one_frame_asks_all_links_of_a_hub_and_the_budget_holds(make_world, version):
    world = star(make_world, version=version)
    hops = world.tour_hops
    world.run(60.0)
    assert len(tour_entries(world)) == len(LEAVES) - 1
    frames = tours_of(world)
    assert 60 / 2.0 <= len(frames) <= 60 / 1.3, "one tour, less often than an interval"
    assert {(packet.dpid, packet.ports) for packet in frames} == {(HUB, (1,))}
    assert world.tour_hops - hops == len(frames) * (len(LEAVES) - 1)
    assert len(world.sent) <= 60 * SCARCE.idle_frames_per_s + 4
    assert changes(world) == []


@pytest.mark.parametrize("leaf_port", [1, 4, 8])
@pytest.mark.parametrize("out,back", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("after_s", [0.0, 0.4, 0.9, 1.3])
def test_a_link_that_dies_in_silence_is_found_as_soon_as_in_a_small_fabric(make_world, leaf_port, out, back, after_s):
    world = star(make_world)
    world.run(after_s)
    world.cut |= {(HUB, leaf_port)} if out else set()
    world.cut |= {(leaf_port + 1, 1)} if back else set()
    world.run(2.7)
    assert world.links() == {(HUB, leaf) for leaf in LEAVES if leaf != leaf_port + 1}
    world.run(60.0)
    assert changes(world) == [LinkDown(HUB, leaf_port, leaf_port + 1, 1)], "and no other"
    world.cut.clear()
    world.run(10.0)
    assert len(world.links()) == len(LEAVES)


@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.0])
def test_a_frozen_hub_loses_its_links_while_its_connection_lasts(make_world, after_s):
    world = star(make_world)
    world.run(after_s)
    world.dead.add(HUB)
    world.run(3.0)
    assert world.links() == set()
    assert SwitchDown(HUB) not in world.events
    world.dead.clear()
    world.connect(HUB, ports=range(1, 10))
    world.run(60.0)
    assert len(world.links()) == len(LEAVES)
    del world.sent[:]
    world.run(10.0)
    assert tours_of(world)


def test_a_frozen_switch_at_a_tours_other_end_loses_its_link_alone(make_world):
    world = star(make_world)
    world.dead.add(4)
    world.run(2.7)
    world.run(20.0)
    assert changes(world) == [LinkDown(HUB, 3, 4, 1)]


def test_all_links_that_die_at_once_are_found(make_world):
    world = star(make_world)
    world.cut |= {(HUB, port_no) for port_no in range(1, 9)}
    world.run(2.7)
    assert world.links() == set()


def test_two_tour_frames_that_are_lost_are_no_failure(make_world):
    world = star(make_world)
    for missed in (1, 2):
        world.without_echo = True
        seen = len(tours_of(world))
        while len(tours_of(world)) < seen + missed:
            world.run(0.01)
        world.without_echo = False
        world.run(10.0)
    assert changes(world) == []
    assert "link-suspected" not in world.core.counters, "the links answer when they are asked singly"
    seen = len(tours_of(world))
    world.run(10.0)
    assert len(tours_of(world)) - seen >= 5, "and the tour goes on"


def test_a_tour_whose_frames_never_return_asks_nothing_and_its_links_are_asked_singly(make_world):
    """The hub lost its entries; what fails then is found by LLDP."""
    world = star(make_world, SCARCE._replace(check_interval_s=0.0))
    for key in tour_entries(world):
        del world.rules[HUB][key]
    world.run(20.0)
    assert changes(world) == []
    suspected = world.core.counters["link-suspected"]
    singles = [p for p in world.sent if p.data[:6] == NEAREST_BRIDGE_MAC]
    world.run(20.0)
    later = [p for p in world.sent if p.data[:6] == NEAREST_BRIDGE_MAC]
    assert len(later) - len(singles) >= 20 * SCARCE.idle_frames_per_s / 4
    assert world.core.counters["link-suspected"] == suspected == 0
    world.cut |= {(HUB, 3), (4, 1)}
    world.run(12.0)
    assert changes(world) == [LinkDown(HUB, 3, 4, 1)]


def test_switches_without_echo_have_no_tours(make_world):
    world = make_world(SCARCE)
    world.without_echo = True
    star(make_world, world=world)
    world.run(60.0)
    assert tours_of(world) == tour_entries(world) == []
    assert changes(world) == []


def test_a_cable_moved_in_silence_is_found_by_the_tour(make_world):
    """LLDP would come round once in half a minute; the tour meets a switch that it does not expect."""
    world = star(make_world)
    world.connect(20)
    world.run(20.0)
    del world.events[:]
    world.unplug((HUB, 3))
    world.cable((HUB, 3), (20, 2))
    world.run(5.0)
    assert world.links() == {(HUB, leaf) for leaf in LEAVES if leaf != 4} | {(HUB, 20)}


def test_a_port_that_goes_down_leaves_its_tour_and_comes_back_to_it(make_world):
    world = star(make_world)
    world.link((HUB, 4), up=False)
    assert len(tour_entries(world)) == len(LEAVES) - 2
    world.run(20.0)
    assert world.core.counters["link-suspected"] == 0
    frames, hops = len(tours_of(world)), world.tour_hops
    world.run(20.0)
    assert world.tour_hops - hops == (len(tours_of(world)) - frames) * (len(LEAVES) - 2)
    world.link((HUB, 4), up=True)
    world.run(20.0)
    assert len(tour_entries(world)) == len(LEAVES) - 1


@pytest.mark.parametrize("dpid", [HUB, 4])
def test_a_lost_switch_that_forwards_keeps_its_links_and_one_that_dies_does_not(make_world, dpid):
    settings = SCARCE._replace(switch_grace_s=60.0)
    world = star(make_world, settings)
    world.disconnect(dpid)
    world.run(20.0)
    assert changes(world) == []
    world.dead.add(dpid)
    world.run(12.0)
    gone = {(HUB, leaf) for leaf in LEAVES if dpid in (HUB, leaf)}
    assert world.links() == {(HUB, leaf) for leaf in LEAVES} - gone
    assert changes(world)[-1] == SwitchDown(dpid)
    world.dead.clear()
    world.connect(dpid, ports=range(1, 10) if dpid == HUB else (1, 2, 3, 4))
    world.run(30.0)
    assert world.links() == {(HUB, leaf) for leaf in LEAVES}
    assert len(tour_entries(world)) == len(LEAVES) - 1


def test_a_hub_that_blinks_keeps_its_entries_and_its_tour(make_world):
    world = star(make_world)
    before = dict(world.rules[HUB])
    world.disconnect(HUB)
    world.run(3.0)
    world.connect(HUB, ports=range(1, 10))
    assert world.rules[HUB] == before
    del world.sent[:]
    world.run(20.0)
    assert len(tours_of(world)) >= 10
    assert changes(world) == []


def test_a_tour_frame_counts_once_and_at_its_own_ports(make_world):
    world = star(make_world)
    world.run(2.0)
    frame = tours_of(world)[-1].data
    for end in ((HUB, 8), (HUB, 3), (HUB, 9), (4, 2)):
        world.frame(end, NEAREST_BRIDGE_MAC + frame[6:])
    assert world.core.counters["lldp-replayed"] == 4
    world.frame((HUB, 8), NEAREST_BRIDGE_MAC + frame[6:-4] + bytes((frame[-4] ^ 1,)) + frame[-3:])
    assert world.core.counters["lldp-forged"] == 1
    assert changes(world) == []


def test_a_budget_that_reaches_again_ends_the_tours_and_one_that_does_not_begins_them(make_world):
    world = star(make_world)
    world.feed(DiscoveryChanged(SCARCE._replace(idle_frames_per_s=100.0)))
    assert tour_entries(world) == []
    world.run(40.0)
    del world.sent[:]
    world.run(20.0)
    ports = len(LEAVES) * 4 + 9
    assert len(world.sent) == 20 / SCARCE.lldp_interval_s * ports
    assert tours_of(world) == []
    world.feed(DiscoveryChanged(SCARCE))
    world.run(40.0)
    assert len(tour_entries(world)) == len(LEAVES) - 1
    assert changes(world) == []


def test_a_hub_that_is_given_up_leaves_no_entry_behind(make_world):
    world = star(make_world)
    world.disconnect(HUB)
    world.run(SCARCE.switch_grace_s + 1.0)
    world.rules[HUB].clear()
    world.connect(HUB, ports=range(1, 10), version=1)
    world.run(20.0)
    assert {key.table for key in tour_entries(world)} == {0}
    assert len(tour_entries(world)) == len(LEAVES) - 1


def test_links_of_a_fat_tree_are_asked_by_their_aggregations(make_world):
    """k = 4: eight aggregations cover all 32 links, four each."""
    world = make_world(SCARCE)
    edges, aggregations, cores = range(1, 9), range(11, 19), range(21, 25)
    for index, aggregation in enumerate(aggregations):
        pod, position = divmod(index, 2)
        for n in (0, 1):
            world.cable((aggregation, 1 + n), (edges[2 * pod + n], 1 + position))
            world.cable((aggregation, 3 + n), (cores[2 * position + n], 1 + pod))
    for dpid in (*cores, *edges, *aggregations):
        world.connect(dpid)
    world.run(60.0)
    assert len(world.links()) == 32
    del world.sent[:]
    world.run(30.0)
    assert {packet.dpid for packet in tours_of(world)} == set(aggregations)
    assert {dpid for dpid in world.rules if tour_entries(world, dpid)} == set(aggregations)


@pytest.mark.parametrize("version", [1, 4])
def test_the_next_controller_leaves_the_entries_of_tours_as_they_are(make_world, version):
    former = star(make_world, version=version)
    entries = {key: former.rules[HUB][key] for key in tour_entries(former)}
    world = make_world(SCARCE)
    world.rules, world.now = former.rules, former.now
    star(make_world, version=version, world=world)
    assert len(entries) == len(LEAVES) - 1
    assert all(world.rules[HUB].get(key) is rule for key, rule in entries.items()), "put again"
    world.run(10.0)
    assert tours_of(world)


def test_what_the_next_controller_does_not_want_of_tours_goes_after_a_time_of_grace(make_world):
    former = star(make_world)
    world = make_world(SCARCE)
    world.cables, world.rules, world.now = former.cables, former.rules, former.now
    (last,) = [key for key in tour_entries(world) if key.match.in_port == len(LEAVES) - 1]
    world.connect(HUB, ports=range(1, 10))
    for leaf in LEAVES[:-1]:
        world.connect(leaf)
    world.run(RESTART_GRACE_S - 1.0)
    assert last in world.rules[HUB]
    world.run(3.0)
    assert last not in world.rules[HUB]
    assert len(tour_entries(world)) == len(LEAVES) - 2


def test_a_late_answer_of_the_fabric_is_told_and_its_end_too(make_world):
    """Eight switches that nobody could ask by tours: seven frames at rest are too few for their ports."""
    world = make_world(SCARCE._replace(idle_frames_per_s=4.0))
    world.without_echo = True
    star(make_world, world=world)
    world.run(30.0)
    (notice,) = (notice for notice in world.notices if notice.kind == "detection-late")
    fields = dict(notice.fields)
    assert f"within {fields['within_s']:.1f} s only: 4 frames a second" in notice.text
    assert fields["within_s"] > 5.0
    world.run(600.0)
    assert world.core.counters["detection-late"] == 1, "told once"
    enough = SCARCE._replace(idle_frames_per_s=fields["needed_per_s"])
    world.feed(DiscoveryChanged(enough))
    world.run(40.0)
    assert world.notices[-1].kind == "detection-in-time"
    assert world.core.counters["detection-late"] == 1


def test_a_controller_behind_its_input_takes_no_link_down_for_its_tours():
    world = BusyWorld(SCARCE)
    star(None, world=world, settings=None)
    del world.events[:]
    world.burst_at, world.burst_s = world.now, 2.0
    world.run_busy(60.0)
    assert world.longest_s >= 1.8
    assert [event for event in world.events if isinstance(event, LinkDown | SwitchDown)] == []
    assert tours_of(world)


@settings(max_examples=60, deadline=None)
@given(wirings(), st.randoms(use_true_random=False))
def test_links_are_those_of_the_wiring_whatever_happened_on_a_small_budget(make_world, wiring, random):
    count, cables = wiring
    world = make_world(DiscoverySettings(flap_burst_count=1000, idle_frames_per_s=2.0))
    for a, b in cables:
        world.cable(a, b)
    for dpid in range(1, count + 1):
        world.connect(dpid, range(1, 6))
    for _ in range(random.randint(0, 10)):
        kind = random.choice(["link", "silent", "switch", "run"])
        cable = random.choice(cables)
        if kind == "link":
            world.link(cable[0], up=False)
            world.run(random.choice([0.0, 0.1, 3.0]))
            world.link(cable[0], up=True)
        elif kind == "silent":
            world.cut |= set(cable)
            world.run(random.choice([0.3, 4.0]))
            world.cut -= set(cable)
        elif kind == "switch":
            dpid = random.randint(1, count)
            world.disconnect(dpid)
            world.run(random.choice([0.0, 1.0, 11.0]))
            world.connect(dpid, range(1, 6))
        else:
            world.run(random.choice([0.01, 3.0]))
    world.run(120.0)
    assert found_links(world) == expected_links(cables)
    assert world.core.fabric.snapshot() == world.fabric.snapshot()
    assert all(len(tour_entries(world, dpid)) <= 4 for dpid in world.rules)


@pytest.mark.parametrize("version", [1, 4])
def test_entries_of_a_tour_take_a_frame_on_from_the_right_neighbour_alone(version):
    tables = FlowTables()
    for rule in (*base_rules(version), turn_rule(version, 7), tour_rule(version, 3, 9, 5)):
        assert LOWERINGS[version].expressible(rule) is None
        assert tables.conflict(version, rule) is None
        tables.put(rule)
    assert tables.process(version, Fields(TOUR_MAC, bytes(6), 0x88CC), 3).sent == (Sent(3, return_mac(7)),)
    assert tables.process(version, Fields(return_mac(9), bytes(6), 0x88CC), 3).sent == (Sent(5, TOUR_MAC),)
    for neighbour, port_no in ((8, 3), (9, 4)):
        stray = Fields(return_mac(neighbour), bytes(6), 0x88CC)
        assert tables.process(version, stray, port_no).sent == (Sent(OFPP_CONTROLLER, return_mac(neighbour)),)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_tour_frame_circles_whatever_the_cables_and_entries(data):
    """Cables may have moved since the entries were made, lead back to their switch, or to hosts that answer alike."""
    count = data.draw(st.integers(1, 4))
    ports = range(1, 6)
    turns = st.sets(st.tuples(st.sampled_from(ports), st.sampled_from(ports)))
    ends = data.draw(st.permutations([(dpid, port_no) for dpid in range(1, count + 1) for port_no in ports]))
    switches = {dpid: FakeSwitch(dpid, data.draw(st.sampled_from([1, 4]))) for dpid in range(1, count + 1)}
    for dpid, switch in switches.items():
        version = switch.ofp_version
        rules = [*base_rules(version), turn_rule(version, dpid)]
        for port_no, next_port_no in data.draw(turns):
            if port_no < next_port_no:
                rules.append(tour_rule(version, port_no, data.draw(st.integers(1, count)), next_port_no))
        for rule in rules:
            switch.tables.put(rule)
    cables = data.draw(st.integers(0, len(ends) // 2))
    fabric = FakeFabric([(ends[2 * n], ends[2 * n + 1]) for n in range(cables)], switches)
    for dpid in switches:
        for port_no in ports:
            for eth_dst in (TOUR_MAC, return_mac(data.draw(st.integers(1, count)))):
                copies, hops = [Copy(dpid, port_no, eth_dst)], 0
                while copies:
                    hops += 1
                    assert hops <= 4 * len(ports)
                    copies += fabric.forward(copies.pop(), Fields(eth_dst, bytes(6), 0x88CC)).onward
