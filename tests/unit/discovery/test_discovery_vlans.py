"""Hosts are known by VLAN: the same addresses in two VLANs are two hosts, each learnt, asked and forgotten alone."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller.config.terms import SwitchPort
from controller.config.vlans import PortVlans, VlanEntry, Vlans
from controller.discovery.journal import HostsRead
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.events import PacketReceived
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.rules.model import PushVlan
from controller.rules.pipeline import INGRESS, PRIORITY_ADDRESS_RESOLUTION, PRIORITY_PORT_CLOSED, at_port
from controller.wire.arp import encode_arp
from controller.wire.ethernet import ETHERTYPE_EXPERIMENTAL, ETHERTYPE_QINQ, ETHERTYPE_VLAN, with_tag, without_tag
from controller.wire.frame import decode
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Arp, Neighbour
from topology.events import HostGone, HostLearnt, PortRole, SwitchDown

A, B = (b"\x02\0\0\0\0" + bytes((n,)) for n in (10, 11))
IP_A, IP_B = (b"\x0a\0\0" + bytes((n,)) for n in (10, 11))
IP6_A = b"\xfd" + bytes(14) + b"\x0a"
ACCESS_10, ACCESS_20 = PortVlans(10, frozenset()), PortVlans(20, frozenset())
TRUNK, NATIVE = PortVlans(None, frozenset((10, 20))), PortVlans(10, frozenset((20,)))
OWN = PortVlans(0, frozenset())
ARP_AT_PORT = at_port(PRIORITY_ADDRESS_RESOLUTION)
PORTS = {(1, 1): ACCESS_10, (1, 2): ACCESS_20, (1, 3): TRUNK, (1, 4): NATIVE, (1, 5): OWN, (2, 2): ACCESS_10}


def vlans_of(ports):
    return Vlans(entries=tuple(VlanEntry(port, ports=(SwitchPort(*end),)) for end, port in ports.items()))


def named(mac, vlan_id, end, *addresses):
    return HostLearnt(in_domain(mac, vlan_id), *end, tuple(in_domain(address, vlan_id) for address in addresses))


@pytest.fixture
def make_vlans(make_world):
    class VlanWorld(make_world):
        """Hosts are told apart by the names of their MAC addresses, and answer what has the tag of their VLAN."""

        def __init__(self, ports=PORTS, settings=None):
            self.port_vlans = dict(ports)
            super().__init__((settings or DiscoverySettings())._replace(vlans=vlans_of(ports)))

        def framed(self, end, frame, vlan_id):
            """Return a frame as a switch hands it over: those of VLANs have a tag by then."""
            return with_tag(frame, vlan_id) if vlan_id else frame

        def on_wire(self, end, vlan_id):
            return vlan_id and self.port_vlans.get(end, OWN).untagged != vlan_id

        def says(self, mac, vlan_id, end, address, is_framed=True):
            if len(address) == 4:
                frame = encode_arp(Arp(mac, b"\xff" * 6, 1, mac, address, bytes(6), address))
            else:
                nodes = b"\xff\x02" + bytes(13) + b"\x01"
                frame = encode_neighbour(Neighbour(mac, b"\x33\x33\0\0\0\1", address, nodes, False, address, mac))
            return self.frame(end, self.framed(end, frame, vlan_id) if is_framed else frame)

        def answer(self, end, data):
            tag, frame = without_tag(data) or (0, data)
            asked = decode(frame)
            if not isinstance(asked, Arp | Neighbour):
                return
            for name, where in self.hosts.items():
                mac, vlan_id = address_of(name), domain_of(name)
                if where != end or mac != asked.eth_dst or tag != (vlan_id if self.on_wire(end, vlan_id) else 0):
                    continue
                if isinstance(asked, Arp) and asked.target_ip in self.addresses[name]:
                    reply = encode_arp(Arp(mac, asked.eth_src, 2, mac, asked.target_ip, asked.sender_mac, bytes(4)))
                    self.feed(PacketReceived(*end, self.framed(end, reply, vlan_id)))
                elif isinstance(asked, Neighbour) and asked.target in self.addresses[name]:
                    back = Neighbour(mac, asked.eth_src, asked.target, asked.source, False, asked.target, mac)
                    self.feed(PacketReceived(*end, self.framed(end, encode_neighbour(back), vlan_id)))

        def policy(self, **changes):
            self.port_vlans.update({(1, int(name[1:])): port for name, port in changes.items()})
            before = len(self.events)
            self.settings = self.settings._replace(vlans=vlans_of(self.port_vlans))
            self.feed(DiscoveryChanged(self.settings))
            return self.events[before:]

    return VlanWorld


@pytest.fixture
def world(make_vlans):
    world = make_vlans()
    world.connect(1, range(1, 7))
    world.connect(2)
    world.run(1.0)
    return world


def plug(world, mac, vlan_id, end, *addresses):
    world.host(in_domain(mac, vlan_id), end, *addresses)
    return [event for address in addresses for event in world.says(mac, vlan_id, end, address)]


def entries_of(world, dpid, port_no):
    """Return what a switch holds in its first table for frames of a port."""
    return {rule for key, rule in world.rules[dpid].items() if key.table == INGRESS and key.match.in_port == port_no}


def test_a_port_that_comes_back_is_in_its_vlan_from_its_first_frame(world):
    """Were it not, a host could reach the fabric's own domain by pulling its cable for a moment."""
    own = entries_of(world, 1, 1)
    assert own
    world.port((1, 1), up=False)
    assert entries_of(world, 1, 1) == own
    world.port((1, 1), up=True)
    assert world.fabric.role(1, 1) is PortRole.UNKNOWN
    assert entries_of(world, 1, 1) == own


def test_a_port_that_is_cabled_to_a_switch_carries_every_vlan(world):
    own = entries_of(world, 1, 1)
    world.port((1, 1), up=False)
    world.port((2, 1), up=False)
    world.cable((1, 1), (2, 1))
    world.link((1, 1), up=True)
    world.run(1.0)
    assert world.fabric.role(1, 1) is PortRole.TRUNK
    carries = entries_of(world, 1, 1)
    assert carries
    assert carries != own
    world.port((1, 1), up=False)
    assert entries_of(world, 1, 1) == set()


def test_a_switch_that_is_gone_for_good_takes_no_entries_of_others_along_and_has_its_own_when_it_is_back(world):
    held = {dpid: dict(world.rules[dpid]) for dpid in (1, 2)}
    world.disconnect(1)
    world.run(60.0)
    assert SwitchDown(1) in world.events
    assert world.rules[2] == held[2]
    pushes = {rule for rule in entries_of(world, 2, 2) if PushVlan(10) in rule.actions}
    world.port_vlans[2, 2] = OWN
    world.policy()
    assert pushes and not pushes & entries_of(world, 2, 2)
    world.port_vlans[2, 2] = ACCESS_10
    world.policy()
    assert world.rules[2] == held[2]
    world.rules[1].clear()
    world.connect(1, range(1, 7))
    world.run(1.0)
    assert world.rules == held


@pytest.mark.parametrize("version", [4, 1])
def test_a_policy_changes_those_entries_of_a_switch_alone_that_say_otherwise_now(make_vlans, version):
    world = make_vlans()
    world.connect(1, range(1, 7), version=version)
    world.run(1.0)
    before = dict(world.rules[1])
    assert world.policy(p1=TRUNK) == []
    assert world.rules[1] != before
    assert world.policy(p1=ACCESS_10) == []
    assert world.rules[1] == before
    world.settings = world.settings._replace(vlans=replace(world.settings.vlans, passes_double_tagged=True))
    world.feed(DiscoveryChanged(world.settings))
    passing = dict(world.rules[1])
    assert (passing != before) is (version == 4), "OpenFlow 1.0 drops frames with two tags always"
    assert {key for key in before if before[key] != passing.get(key)} <= {
        key for key in before if key.match.tagged and key.match.eth_type in (ETHERTYPE_VLAN, ETHERTYPE_QINQ)
    }
    world.policy()
    assert world.rules[1] == before


def test_the_same_addresses_in_two_vlans_are_two_hosts(world):
    assert plug(world, A, 10, (1, 1), IP_A)[-1] == named(A, 10, (1, 1), IP_A)
    assert plug(world, A, 20, (1, 3), IP_A)[-1] == named(A, 20, (1, 3), IP_A)
    assert plug(world, A, 0, (1, 5), IP_A)[-1] == named(A, 0, (1, 5), IP_A)
    known = world.fabric.hosts()
    assert len(known) == 3
    world.run(2 * world.settings.host_timeout_s)
    assert world.fabric.hosts() == known, "and each answers for itself, with its tag"
    assert (world.notices, world.core.fabric.snapshot()) == ([], world.fabric.snapshot())


def test_a_trunk_has_a_host_in_each_of_its_vlans(world):
    plug(world, A, 10, (1, 4), IP_A, IP6_A)
    plug(world, A, 20, (1, 4), IP_A, IP6_A)
    world.run(400.0)
    assert world.fabric.hosts() == (named(A, 10, (1, 4), IP_A, IP6_A), named(A, 20, (1, 4), IP_A, IP6_A))
    asked = [
        packet for packet in world.sent if decode((without_tag(packet.data) or (0, packet.data))[1]).__class__ is Arp
    ]
    assert {without_tag(packet.data) and without_tag(packet.data)[0] for packet in asked} == {None, 20}


def test_who_falls_silent_goes_alone(world):
    plug(world, A, 10, (1, 4), IP_A)
    plug(world, A, 20, (1, 4), IP_A)
    del world.hosts[in_domain(A, 20)]
    events = world.run(2 * world.settings.host_timeout_s)
    assert events == [HostGone(in_domain(A, 20), 1, 4)]


@pytest.mark.parametrize(
    ("end", "frame_vlan", "kind"),
    [
        ((1, 1), 20, "vlan-tagged"),
        ((1, 3), 0, "vlan-untagged"),
        ((1, 3), 30, "vlan-tagged"),
        ((1, 5), 10, "vlan-tagged"),
    ],
)
def test_what_a_port_may_not_have_is_counted_and_teaches_nothing(world, end, frame_vlan, kind):
    assert world.says(A, frame_vlan, end, IP_A) == []
    assert world.core.counters == {kind: 1}


@pytest.mark.parametrize("tag", [0, 4095])
@pytest.mark.parametrize("port_no", range(1, 6))
def test_priority_tags_and_the_reserved_id_are_counted_at_every_port_and_teach_nothing(world, tag, port_no):
    frame = encode_arp(Arp(A, b"\xff" * 6, 1, A, IP_A, bytes(6), IP_A))
    assert world.frame((1, port_no), with_tag(frame, tag)) == []
    assert world.core.counters == {"vlan-tagged": 1}
    assert world.fabric.hosts() == ()


def test_frames_from_before_a_port_is_known_are_named_by_the_policy(make_vlans):
    world = make_vlans()
    world.connect(1, range(1, 7))
    assert world.core.fabric.role(1, 1) is PortRole.UNKNOWN
    world.says(A, 10, (1, 1), IP_A, is_framed=False)
    world.says(B, 0, (1, 3), IP_B)
    world.run(1.0)
    assert world.fabric.hosts() == (named(A, 10, (1, 1), IP_A),)
    assert world.core.counters["vlan-untagged"] == 1


def test_frames_from_before_a_port_is_known_do_not_count_where_it_has_another_vlan_by_then(make_vlans):
    world = make_vlans()
    world.connect(1, range(1, 7))
    world.says(A, 10, (1, 1), IP_A, is_framed=False)
    world.policy(p1=ACCESS_20)
    world.run(1.0)
    assert world.fabric.hosts() == ()


def test_a_host_moves_within_its_vlan_alone(world):
    plug(world, A, 10, (1, 1), IP_A)
    assert plug(world, A, 20, (1, 2), IP_A) == [named(A, 20, (1, 2)), named(A, 20, (1, 2), IP_A)][-1:]
    world.run(3.0)
    assert len(world.fabric.hosts()) == 2, "in another VLAN it is another host"
    del world.hosts[in_domain(A, 10)]
    world.says(A, 10, (1, 3), IP_A)
    world.host(in_domain(A, 10), (1, 3), IP_A)
    world.run(3.0)
    assert world.fabric.hosts() == (named(A, 10, (1, 3), IP_A), named(A, 20, (1, 2), IP_A))


def test_a_host_that_answers_with_its_tag_keeps_its_address(world):
    plug(world, A, 20, (1, 4), IP_A)
    plug(world, B, 20, (1, 2), IP_A)
    world.run(3.0)
    assert world.fabric.host_by_ip(in_domain(IP_A, 20)).mac == in_domain(A, 20)
    (notice,) = (notice for notice in world.notices if notice.kind == "spoof-suspected")
    assert "02:00:00:00:00:0b@20, that claims 10.0.0.10@20" in notice.text


def test_a_policy_that_moves_a_port_forgets_its_hosts_in_the_vlans_that_it_left(world):
    for vlan_id in (10, 20):
        plug(world, A, vlan_id, (1, 3), IP_A)
    plug(world, B, 10, (1, 1), IP_B)
    plug(world, B, 0, (1, 5), IP_B)
    assert world.policy(p3=ACCESS_20) == [HostGone(in_domain(A, 10), 1, 3)]
    assert world.policy(p1=OWN, p5=ACCESS_10) == [HostGone(in_domain(B, 10), 1, 1), HostGone(B, 1, 5)]
    world.run(400.0)
    assert world.fabric.hosts() == (named(A, 20, (1, 3), IP_A),), "asked without a tag now"


def test_hosts_are_there_again_after_a_restart_where_their_port_has_their_vlan_still(make_vlans, world):
    for vlan_id in (10, 20):
        plug(world, A, vlan_id, (1, 4), IP_A, IP6_A)
    plug(world, B, 0, (1, 5), IP_B)
    plug(world, B, 20, (1, 2), IP_B)
    del world.hosts[in_domain(B, 20)]
    world.run(2 * world.settings.host_timeout_s)
    assert {"mac": "02:00:00:00:00:0b", "vlan": 20, "dpid": None} in world.journal
    assert {"mac": "02:00:00:00:00:0b", "dpid": 1, "port_no": 5, "ips": ["10.0.0.11"]} in world.journal
    known = world.fabric.hosts()
    assert len(known) == 3
    for changes, expected in (({}, known), ({(1, 4): ACCESS_20}, (known[2], known[1])[::-1])):
        new = make_vlans({**PORTS, **changes})
        new.hosts, new.addresses = world.hosts, world.addresses
        new.feed(HostsRead(tuple(world.journal)))
        new.connect(1, range(1, 7))
        new.run(600.0)
        if changes:
            assert {host.mac for host in new.fabric.hosts()} == {B, in_domain(A, 20)}
        else:
            assert new.fabric.hosts() == expected


@pytest.mark.parametrize("vlan", ["20", True, -1, 4095, 1.5, None])
def test_a_record_of_no_vlan_is_left_out(make_vlans, vlan):
    world = make_vlans()
    world.feed(HostsRead(({"mac": "02:00:00:00:00:0b", "vlan": vlan, "dpid": 1, "port_no": 4, "ips": []},)))
    assert [notice.kind for notice in world.notices] == ["host-journal-faulty"]


def test_sound_frames_with_a_tag_do_not_count_towards_the_guard(make_vlans):
    world = make_vlans(settings=DiscoverySettings(guard_burst_count=5, guard_refill_per_s=0.1))
    world.connect(1, range(1, 7))
    world.run(1.0)
    data = encode_arp(Arp(A, b"\xff" * 6, 1, A, IP_A, bytes(6), IP_A))
    other = data[:12] + b"\x86\xdd" + data[14:]
    for _ in range(20):
        world.frame((1, 4), with_tag(data[:12] + ETHERTYPE_EXPERIMENTAL.to_bytes(2, "big") + data[14:], 20))
    assert world.notices == []
    for _ in range(20):
        world.frame((1, 4), with_tag(other, 30))
    assert [notice.kind for notice in world.notices] == ["port-guarded"]


def test_the_bridges_of_a_segment_learn_hosts_with_the_tag_of_their_vlan(make_vlans):
    world = make_vlans(
        {(1, 3): NATIVE, (2, 2): NATIVE, (1, 1): ACCESS_10, (1, 2): ACCESS_20, (2, 3): PortVlans(30, frozenset())}
    )
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    plug(world, A, 10, (1, 1), IP_A)
    plug(world, A, 20, (1, 2), IP_A)
    plug(world, A, 30, (2, 3), IP_A)
    plug(world, B, 0, (1, 4), IP_B)
    world.segments.append({(1, 3), (2, 2)})
    before = len(world.sent)
    world.run(6.0)
    told = [p.data for p in world.sent[before:] if p.data[6:12] in (A, B) and (p.dpid, p.ports) == (1, (3,))]
    assert {(without_tag(data) or (0,))[0] for data in told} == {0, 20}
    assert {data[6:12] for data in told} == {A}, "those of domains that the segment does not have are left out"


def test_in_openflow_1_0_what_ports_may_have_has_entries_of_their_own(make_vlans):
    world = make_vlans()
    world.connect(1, range(1, 7), version=1)
    world.run(1.0)
    asked = {(key.match.in_port, key.match.vlan_id) for key in world.rules[1] if key.priority == ARP_AT_PORT}
    assert asked == {(1, None), (2, None), (3, 10), (3, 20), (4, None), (4, 20)}, "ports and tags of ARP"
    plug(world, A, 0, (1, 5), IP_A)
    plug(world, A, 10, (1, 1), IP_A)
    assert world.says(A, 20, (1, 1), IP_A) == []
    assert set(world.fabric.hosts()) == {named(A, 0, (1, 5), IP_A), named(A, 10, (1, 1), IP_A)}
    world.policy(p1=OWN)
    assert 1 not in {key.match.in_port for key in world.rules[1] if key.priority == ARP_AT_PORT}
    closed = [key.match for key in world.rules[1] if key.priority == PRIORITY_PORT_CLOSED]
    dropped = {(match.in_port, match.vlan_id) for match in closed}
    assert {(1, 10), (1, 20), (5, 10), (5, 20)} <= dropped, "tags that ports of the fabric's own domain may not have"
    assert not world.notices


@pytest.mark.parametrize("version", [4, 1])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_hosts_and_policies_do_each_domain_knows_its_own(make_vlans, seed, version):
    """Against a model: who speaks in a domain of its port is there; others are not known, and the journal agrees."""
    rng = random.Random(seed)
    world = make_vlans()
    world.connect(1, range(1, 7), version=version)
    world.run(1.0)
    expected: dict[bytes, tuple[int, int]] = {}
    for _ in range(60):
        end = (1, rng.randint(1, 5))
        if rng.random() < 0.15:
            port = rng.choice([ACCESS_10, ACCESS_20, TRUNK, NATIVE, OWN])
            world.policy(**{f"p{end[1]}": port})
            for name in [name for name, at in expected.items() if at == end and domain_of(name) not in port.vlans()]:
                del expected[name], world.hosts[name]
        else:
            mac, tag = rng.choice([A, B]), rng.choice([0, 10, 20, 30])
            has_none = tag == 0 and world.port_vlans[end].untagged is None
            vlan_id = tag or world.port_vlans[end].untagged or 0
            name = in_domain(mac, vlan_id)
            if has_none or vlan_id not in world.port_vlans[end].vlans():
                assert world.says(mac, tag, end, mac[-4:]) == []
            elif expected.get(name, end) == end:
                expected[name] = end
                plug(world, mac, vlan_id, end, mac[-4:])
        world.run(rng.choice([0.1, 5.0]))
        assert {host.mac: (host.dpid, host.port_no) for host in world.fabric.hosts()} == expected
    world.run(2.0)
    new = make_vlans(world.port_vlans)
    new.hosts, new.addresses = world.hosts, world.addresses
    new.feed(HostsRead(tuple(world.journal)))
    new.connect(1, range(1, 7), version=version)
    new.run(5.0)
    assert new.fabric.hosts() == world.fabric.hosts()
