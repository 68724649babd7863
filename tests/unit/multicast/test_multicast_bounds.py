"""Bad input and too much of it: counted, bounded, never raised, and other groups and ports go on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.effects import Notice
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    PacketReceived,
    SwitchDisconnected,
)
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType
from topology.events import HostGone, HostLearnt, LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, SwitchUp

GROUP = parse_ip("239.1.2.3")
GROUP_V6 = parse_ip("ff0e::1:2:3")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6, groups_per_port=65536),
    multicast=Multicast(fast_leave=True),
)


def group(n):
    return bytes((239, 4, n >> 8, n & 255))


def limited(**limits):
    return replace(POLICY, limits=replace(POLICY.limits, **limits))


def test_groups_with_a_tree_are_bounded(make_world, version):
    world = make_world("leaf-spine", limited(groups=3), version)
    for n in range(6):
        world.join("h3", group(n))
    for n in range(3, 6):
        assert world.send("h1", group(n)) == {}
    world.settle()
    assert len(world.core.forest) == 3
    assert [notice.kind for notice in world.notices] == ["groups-bound"]
    assert world.send("h1", group(0)) == {"h3": 1}
    world.leave("h3", group(1))
    world.advance(11.0)
    world.settle()
    assert len(world.core.forest) == 3
    served = [n for n in range(3, 6) if world.send("h1", group(n)) == {"h3": 1}]
    assert len(served) == 1, "a member that waited has the room now"


def test_refused_senders_do_not_fill_the_table_of_groups(make_world):
    policy = replace(limited(groups=5, senders_per_port=100), default_allow=False)
    world = make_world("leaf-spine", policy)
    for n in range(50):
        world.send("h1", group(n))
    assert len(world.core.forest) == 0
    world.settle()
    assert world.send("h1", group(7)) == {}


def test_a_port_may_be_in_so_many_groups(make_world):
    world = make_world("leaf-spine", limited(groups_per_port=4))
    for n in range(10):
        world.join("h3", group(n))
    world.join("h5", group(9))
    world.settle()
    assert sorted(world.core.plane.groups) == [group(n) for n in (0, 1, 2, 3, 9)]
    assert any(notice.kind == "membership-limit-groups" for notice in world.notices)


def test_storms_from_one_port_leave_others_alone(make_world):
    world = make_world("leaf-spine", limited(reports_per_second_per_port=10))
    for n in range(1000):
        world.join("h3", group(n))
    world.join("h5", GROUP)
    world.settle()
    assert len(world.core.plane.groups) == 21
    assert world.send("h1") == {"h5": 1}


def test_a_full_table_is_told_and_heals(make_world, version):
    held = {1: 30, 4: 34}[version]
    world = make_world("leaf-spine", POLICY, version, capacity=held)
    for n in range(60):
        world.join("h3", group(n))
    world.settle()
    assert any(notice.kind == "table-full" for notice in world.notices)
    served = [n for n in range(60) if group(n) in {key.match.ip_dst for key in world.rules()[2]}]
    assert 0 < len(served) < 60
    for n in served[2:]:
        world.leave("h3", group(n))
    for _ in range(6):
        world.advance(6.0)
    left = [n for n in range(60) if n not in served[2:]]
    now = {key.match.ip_dst for key in world.rules()[2]}
    waiting = [n for n in left if group(n) not in now]
    assert len(waiting) < len(left) - len(served[:2]), "those that waited took the room"
    assert {group(n) for n in served[:2]} <= now


def test_what_an_openflow_1_0_switch_cannot_do_is_told_once(make_world):
    world = make_world("leaf-spine", POLICY, dict.fromkeys(range(1, 6), 4) | {2: 1, 5: 1}, start=False)
    world.connect_all()
    world.settle()
    world.cut(*sorted(next(iter(world.links))))
    world.advance(5.0)
    told = [notice for notice in world.notices if notice.kind == "ipv6-unsupported"]
    assert [notice.fields for notice in told] == [(("dpid", 2),), (("dpid", 5),)]
    assert all("OpenFlow 1.0" in notice.text for notice in told)


def test_an_ipv6_group_that_needs_an_openflow_1_0_switch_is_refused_whole(make_world):
    versions = dict.fromkeys(range(1, 6), 4) | {4: 1, 5: 1}
    world = make_world("leaf-spine", POLICY, versions)
    plain = world.rules()
    world.join("h1", GROUP_V6)
    world.join("h2", GROUP_V6)
    world.settle()
    assert world.send("h1", GROUP_V6) == {"h2": 1}
    world.join("h5", GROUP_V6)
    world.settle()
    assert [notice.kind for notice in world.notices] == ["group-unsupported"]
    assert "OpenFlow 1.0" in world.notices[0].text
    assert world.send("h1", GROUP_V6) == {}
    world.settle()
    outs = len(world.packet_outs)
    assert world.send("h1", GROUP_V6) == {}
    assert len(world.packet_outs) == outs, "its senders are dropped at their ports"
    assert {dpid: rules for dpid, rules in world.rules().items() if dpid > 3} == {4: plain[4], 5: plain[5]}
    world.join("h5")
    world.settle()
    assert world.send("h1") == {"h5": 1}, "IPv4 groups are served"
    world.leave("h5", GROUP_V6)
    world.settle()
    assert world.send("h1", GROUP_V6) == {"h2": 1}
    assert world.refused_edits() == []


def test_a_switch_may_come_back_with_another_version(make_world):
    world = make_world("leaf-spine", POLICY, 4)
    for name in ("h3", "h5"):
        world.join(name)
    world.send("h1")
    world.settle()
    world.disconnect(1)
    world.settle()
    world.switches[1].ofp_version, world.switches[1].table_count = 1, 1
    world.reconnect(1)
    world.settle()
    assert world.send("h1") == {"h3": 1, "h5": 1}
    world.settle()
    assert world.send("h1") == {"h3": 1, "h5": 1}
    assert all(key.table == 0 for key in world.rules()[1])


def test_links_and_ports_may_be_told_before_their_switches(make_world):
    world = make_world("leaf-spine", POLICY, start=False)
    for ends in world.links.values():
        world.link_up(*ends)
    for host in world.hosts.values():
        world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
    for dpid in world.switches:
        world.connect(dpid)
    world.settle()
    world.join("h5")
    world.settle()
    assert world.send("h1") == {"h5": 1}


# Whatever bytes

FRAMES = st.binary(max_size=120)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(frames=st.lists(FRAMES, max_size=20))
def test_random_frames_never_raise(make_world, frames):
    world = make_world("leaf-spine", POLICY)
    for frame in frames:
        world.feed(PacketReceived(1, 3, frame))
    world.settle()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_frames_never_raise(make_world, data):
    world = make_world("leaf-spine", POLICY)
    outs = len(world.packet_outs)
    world.join("h1")
    source = world.hosts["h5"].v4
    world.record("h1", RecordType.ALLOW_NEW_SOURCES, GROUP, source)
    world.join("h1", GROUP_V6)
    frames = [world.data("h1"), world.data("h1", GROUP_V6), *(frame for _, frame in world.packet_outs[:outs])]
    frame = bytearray(data.draw(st.sampled_from(frames)))
    for _ in range(data.draw(st.integers(1, 6))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)))
    for place in (world.hosts["h1"].place, (1, 1), (77, 1)):
        world.feed(PacketReceived(*place, bytes(frame[:cut])))
        world.feed(PacketReceived(*place, bytes(frame)))
    world.settle()


DPIDS = st.integers(1, 7)
PORTS = st.integers(1, 5)
XIDS = st.integers(0, 3) | st.integers(0xA2000000, 0xA2000040)
MACS = st.sampled_from([b"\x02\0\0\0\0" + bytes((n,)) for n in range(1, 7)])
EVENTS = st.one_of(
    st.builds(SwitchUp, DPIDS, st.sampled_from([1, 4])),
    st.builds(SwitchDown, DPIDS),
    st.builds(PortRoleChanged, DPIDS, PORTS, st.sampled_from(PortRole)),
    st.builds(LinkUp, DPIDS, PORTS, DPIDS, PORTS, st.just(1e9)).filter(lambda event: event[0] != event[2]),
    st.builds(LinkDown, DPIDS, DPIDS),
    st.builds(HostLearnt, MACS, DPIDS, PORTS, st.just((b"\x0a\0\0\x01",))),
    st.builds(HostGone, MACS, DPIDS, PORTS),
    st.builds(SwitchDisconnected, DPIDS),
    st.builds(BarrierReplied, DPIDS, XIDS),
    st.builds(EditFailed, DPIDS, XIDS, st.integers(0, 6), st.integers(0, 6)),
    st.builds(FlowStatsReceived, DPIDS, st.sampled_from([1, 4]), XIDS, st.binary(max_size=60)),
    st.just(DeadlineReached()),
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(events=st.lists(EVENTS, max_size=30), names=st.lists(st.sampled_from(["h1", "h3", "h5"]), max_size=6))
def test_no_order_of_events_raises(make_world, events, names):
    world = make_world("leaf-spine", POLICY)
    for name in names:
        world.join(name)
        world.send(name)
    for event in events:
        world.feed(event)
        for name in names[:2]:
            world.join(name)
    world.advance(30.0)
    assert all(isinstance(notice, Notice) for notice in world.notices)


@pytest.mark.parametrize("protocol", [1, 2, 3])
def test_wrong_checksums_count_for_nothing(make_world, protocol):
    from controller.wire.encode import encode
    from controller.wire.packets import GroupRecord, Report

    world = make_world("leaf-spine", POLICY)
    host = world.hosts["h3"]
    record = GroupRecord(RecordType.MODE_IS_EXCLUDE, GROUP)
    frame = bytearray(encode(Report(4, protocol, host.mac, host.v4, (record,))))
    frame[41] ^= 1
    world.report("h3", bytes(frame))
    assert not world.core.plane.groups
    assert sum(count for reason, count in world.core.counters.items() if "checksum" in reason) == 1
