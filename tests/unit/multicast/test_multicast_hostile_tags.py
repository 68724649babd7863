"""Frames whose tags their port is not to have: nobody gets them, nothing is learnt, and who speaks well is served."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.config.vlans import PortVlans
from controller.events import PacketReceived
from controller.kernel.domains import in_domain
from controller.rules.evaluate import Fields
from controller.rules.pipeline import ADMIT, VLAN_ADMIT
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag
from controller.wire.packets import GroupRecord, Query, RecordType, Report
from controller.wire.udp import encode_udp

from .vlan_world import VlanWorld, started

GROUP, OTHER_GROUP = parse_ip("239.1.2.3"), parse_ip("239.7.7.7")
ACCESS_10, ACCESS_20 = PortVlans(10, frozenset()), PortVlans(20, frozenset())
TRUNK, VOICE = PortVlans(None, frozenset((10, 20))), PortVlans(0, frozenset((20,)))
PORTS = dict.fromkeys(("h1", "h2", "h16"), ACCESS_10) | dict.fromkeys(("h3", "h9"), ACCESS_20)
PORTS |= {"h5": TRUNK, "h7": VOICE}
TAGS = [(vlan_id,) for vlan_id in (0, 1, 10, 20, 30, 4095)] + [(10, 20), (20, 10), (10, 10), (0, 10), (4095, 20), ()]
SEEN = {("h2", ()): 1, ("h16", ()): 1, ("h5", (10,)): 1}


def domain_at(port: PortVlans, tags: tuple[int, ...]) -> int | None:
    """Return the domain of a frame with these tags at a port, None where it is to have none."""
    if not tags:
        return port.untagged
    return tags[0] if len(tags) == 1 and tags[0] in port.tagged else None


def hostile_frames(world: VlanWorld, name: str) -> list[bytes]:
    """Return frames of a host that would be a sender, a member, a querier and somebody else's address."""
    host, victim = world.hosts[name], world.hosts["h2"]
    report = Report(4, 3, host.mac, host.v4, (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, OTHER_GROUP, ()),))
    leave = Report(4, 3, victim.mac, victim.v4, (GroupRecord(RecordType.CHANGE_TO_INCLUDE, GROUP, ()),))
    query = Query(4, 3, host.mac, parse_ip("10.0.0.1"), None, (), 1.0, False, 2, 125.0)
    return [
        encode_udp(host.mac, host.v4, GROUP, b"hostile"),
        encode_udp(victim.mac, victim.v4, GROUP, b"hostile"),
        encode(report),
        encode(leave),
        encode(query),
    ]


def utter(world: VlanWorld, name: str, frame: bytes, tags: tuple[int, ...]) -> Counter:
    """Have a host send a frame with tags; return who got copies. Switches look behind one tag alone."""
    place = world.hosts[name].place
    if len(tags) < 2:
        return world.utter(place, with_tag(frame, *tags) if tags else frame)
    seen = Fields(frame[:6], frame[6:12], 0x8100, vlan_ids=tags[:1])
    delivery = world.fabric.deliver(*place, seen, len(frame))
    assert not delivery.punts
    return Counter(delivery.hosts)


def state_of(world: VlanWorld) -> tuple[object, ...]:
    """Return what is known of members, senders, queriers and hosts, by name."""
    core = world.core
    members = {
        name: sorted((member.host, member.mode, member.leaving) for member in core.memberships.members_of(name))
        for name in core.memberships.groups()
    }
    senders = {name: sorted(group.senders) for name, group in core.plane.groups.items()}
    queriers = [
        membership.querier(4, dpid)[2:] for _, membership in core.memberships.all() for dpid in world.switches
    ]
    return members, senders, queriers


@pytest.mark.parametrize("version", [4, 1])
@pytest.mark.parametrize("name", ["h3", "h4", "h5", "h7"])
def test_nobody_gets_what_a_port_is_not_to_have_and_nothing_is_learnt_of_it(name: str, version: int) -> None:
    world = VlanWorld(PORTS, version=version)
    for member in ("h2", "h16", "h5"):
        world.joins(member, GROUP, 10)
    world.settle()
    assert started(world, "h1", GROUP) == SEEN
    place = world.hosts[name].place
    port = world.port_vlans.get(place, PortVlans(0, frozenset()))
    dropped = 0
    for tags in TAGS:
        if domain_at(port, tags) is not None:
            continue
        for frame in hostile_frames(world, name):
            before = state_of(world)
            assert utter(world, name, frame, tags) == Counter(), tags
            assert state_of(world) == before, tags
            dropped += bool(tags)
    world.settle()
    assert world.sends("h1", GROUP) == SEEN
    world.advance(70.0)
    assert world.core.counters["vlan-tagged"] >= dropped


def test_frames_that_end_early_behind_a_tag_are_no_membership_and_are_counted() -> None:
    world = VlanWorld(PORTS)
    host = world.hosts["h5"]
    report = Report(4, 3, host.mac, host.v4, (GroupRecord(RecordType.CHANGE_TO_EXCLUDE, OTHER_GROUP, ()),))
    frame = with_tag(encode(report), 10)
    world.feed(PacketReceived(*host.place, with_tag(encode(report._replace(records=())), 10)))
    for size in range(18 + 20 + 4 + 16):
        counted = world.core.counters.total()
        world.feed(PacketReceived(*host.place, frame[:size]))
        assert world.core.counters.total() > counted, size
    assert not list(world.core.memberships.groups())
    world.feed(PacketReceived(*host.place, frame))
    assert list(world.core.memberships.groups()) == [in_domain(OTHER_GROUP, 10)]


def test_a_port_has_entries_in_the_tables_of_its_domains_alone() -> None:
    world = VlanWorld(PORTS)
    plain = {host.place for host in world.hosts.values()} - world.port_vlans.keys()
    of_own = plain | {place for place, port in world.port_vlans.items() if port.untagged == 0}
    of_vlans = {place for place, port in world.port_vlans.items() if port.vlans() - {0}}
    found: dict[int, set[tuple[int, int]]] = {ADMIT: set(), VLAN_ADMIT: set()}
    for dpid in world.switches:
        for key in world.core.installer.installed(dpid):
            if key.table in found and key.match.in_port is not None:
                found[key.table].add((dpid, key.match.in_port))
    assert found == {ADMIT: of_own, VLAN_ADMIT: of_vlans}
