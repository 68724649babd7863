"""What hosts send to each other gets the code point of its class where it enters, and no other (OpenFlow 1.3)."""

from __future__ import annotations

import pytest

from controller.config.marking import Marking
from controller.config.policy import LinkAggregation
from controller.config.service_classes import ServiceClass
from controller.config.terms import MacAddress, SwitchPort, parse_prefix
from controller.config.vlans import PortVlans
from controller.effects import SendPacket
from controller.events import PacketReceived
from controller.kernel.domains import address_of, domain_of
from controller.rules.model import SetDscp
from controller.unicast.settings import UnicastSettings
from controller.wire.addresses import BROADCAST_MAC
from controller.wire.dscp import with_dscp
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Neighbour
from controller.wire.udp import encode_udp
from topology.events import HostGone, HostLearnt, PortRole, PortRoleChanged

from .vlan_network import PORTS, Network, meet, v6

MAC = b"\x02\0\0\0\0"
BACKUP = ServiceClass("backup", 6, hosts=(parse_prefix("10.0.0.1/32"),), dscp=8)
BOARD = ServiceClass("board", 2, hosts=(MacAddress(MAC + b"\x02"),), dscp=34)
MARKET = ServiceClass("market", 1, (parse_prefix("239.1.0.0/16"),), dscp=46)
CLASSES = (MARKET, BACKUP, BOARD)
MARKING = Marking(True, CLASSES)
OWN = 46
"""The code point that hosts claim for themselves."""


class Marked(Network):
    """Hosts of a network whose packets are marked, and the code points that their packets are received with."""

    def __init__(self, marking=MARKING, **options):
        self.marking = marking
        super().__init__(**options)

    def mark(self, marking):
        """Load a policy that says something else of code points."""
        self.marking = marking
        self.policy()

    def sent(self, host, other):
        """Send a packet from host to host; return the code points of the copies that the other receives."""
        frame = encode_udp(
            address_of(host[0]), self.hosts[host], self.hosts[other], b"x", eth_dst=address_of(other[0])
        )
        self.heard.clear()
        self.say(host, with_dscp(frame, OWN))
        self.run(0.05)
        return [heard[2][15] >> 2 for heard in self.heard if heard[0] == other[1] and heard[2][12:14] == b"\x08\x00"]


def hosts_of(network, vlan_id):
    return sorted(host for host in network.hosts if domain_of(host[0]) == vlan_id)


@pytest.fixture
def network():
    network = Marked()
    meet(network)
    return network


@pytest.mark.parametrize("vlan_id", [0, 10, 20])
def test_packets_have_the_code_point_of_the_sender_s_class_in_every_domain(network, vlan_id):
    for sender in (hosts := hosts_of(network, vlan_id)):
        expected = {b"\x0a\0\0\1": 8, b"\x0a\0\0\2": 34}.get(network.hosts[sender], 0)
        for receiver in hosts:
            if receiver != sender and receiver[1] != sender[1]:
                assert network.sent(sender, receiver) == [expected], (sender, receiver)


def test_what_the_controller_hands_on_is_marked_too(network):
    one, other = hosts_of(network, 0)[:2]
    frame = encode_udp(
        address_of(one[0]), network.hosts[one], network.hosts[other], b"x", eth_dst=address_of(other[0])
    )
    outputs = network.cores[1].handle(PacketReceived(*one[1], with_dscp(frame, OWN)), network.now)
    assert [output for output in outputs if isinstance(output, SendPacket)] == [
        SendPacket(other[1][0], (other[1][1],), with_dscp(frame, 8))
    ]


def test_ports_that_are_trusted_have_no_entries_and_keep_their_code_points(network):
    one, other = hosts_of(network, 0)[:2]
    network.mark(Marking(True, CLASSES, trust=frozenset({SwitchPort(*one[1])})))
    assert network.sent(one, other) == [OWN]
    assert network.sent(other, one) == [34]


def test_another_policy_is_followed_and_off_leaves_nothing(network):
    one, other = hosts_of(network, 0)[:2]
    network.mark(Marking(True, (BOARD,)))
    assert network.sent(one, other) == [0]
    assert network.sent(other, one) == [34]
    network.mark(Marking())
    assert network.sent(one, other) == [OWN]
    assert not marks_of(network)


def test_where_nothing_is_marked_no_entry_differs():
    plain, classed = Network(), Marked(Marking(False))
    assert plain.rules() == classed.rules()


def marks_of(network):
    found = [rule for rules in network.rules().values() for rule in rules.values()]
    return {rule.key for rule in found if isinstance(next(iter(rule.actions), None), SetDscp)}


def test_entries_of_a_host_go_with_it(network):
    one = hosts_of(network, 0)[0]
    before = marks_of(network)
    network.tell(HostGone(one[0], *one[1]), (1,))
    network.run(1.0)
    gone = before - marks_of(network)
    assert {(key.match.in_port, key.match.eth_src, key.match.ip_src) for key in gone} == {
        (one[1][1], address_of(one[0]), network.hosts[one])
    }


def test_ports_to_switches_mark_nothing(network):
    trunks = {end for end in network.cables if end not in PORTS}
    for dpid, rules in network.rules().items():
        marked = {(dpid, key.match.in_port) for key, rule in rules.items() if SetDscp(0) in rule.actions}
        assert marked and not marked & trunks


def test_openflow_1_0_has_no_marks_and_forwards_as_before():
    network = Marked(versions={1: 1, 2: 1, 3: 1})
    meet(network)
    one, other = hosts_of(network, 0)[:2]
    assert network.sent(one, other) == [OWN]
    assert not marks_of(network)


def test_a_restart_finds_its_marks(network):
    before = marks_of(network)
    network.start()
    assert marks_of(network) == before
    one, other = hosts_of(network, 0)[:2]
    meet(network)
    network.run(60.0)
    assert network.sent(one, other) == [8]
    assert marks_of(network) == before


def test_marks_follow_ports_to_other_vlans(network):
    one = hosts_of(network, 0)[0]
    desk = ServiceClass("desk", 3, hosts=(SwitchPort(*one[1]),), dscp=12)
    network.mark(Marking(True, (desk,)))
    network.policy(**{f"p{one[1][0]}{one[1][1]}": PortVlans(10, frozenset())})
    moved = network.plug(9, 10, one[1])
    del network.hosts[one]
    meet(network)
    other = next(host for host in hosts_of(network, 10) if host[0] != moved[0])
    assert network.sent(moved, other) == [12]
    assert network.sent(other, moved) == [0]


def marked_at(network, host):
    """Return the ports with an entry for the addresses of a host in the fabric's own domain."""
    mac, address = address_of(host[0]), network.hosts[host]
    matches = [(dpid, key.match) for dpid, rules in network.rules().items() for key in rules]
    return {(dpid, at.in_port) for dpid, at in matches if (at.eth_src, at.ip_src, at.vlan_id) == (mac, address, None)}


def test_a_host_that_moves_leaves_no_mark_behind(network):
    one, _, third = hosts_of(network, 0)
    assert marked_at(network, one) == {one[1]}
    network.tell(HostLearnt(one[0], *third[1], (network.hosts[one],)), (1,))
    network.run(1.0)
    assert marked_at(network, one) == {third[1]}


def relayed(network, end, mac, address, to_mac, to_address):
    """Have the controller hand on a packet; return the code points of what it sends."""
    frame = with_dscp(encode_udp(mac, address, to_address, b"x", eth_dst=to_mac), OWN)
    outputs = network.cores[1].handle(PacketReceived(*end, frame), network.now)
    return {output.data[15] >> 2 for output in outputs if isinstance(output, SendPacket)}


def test_a_broadcast_with_the_address_of_another_is_of_no_class(network):
    one, _, third = hosts_of(network, 0)
    everybody = BROADCAST_MAC, b"\xff\xff\xff\xff"
    assert relayed(network, one[1], one[0], network.hosts[one], *everybody) == {8}
    assert relayed(network, third[1], third[0], network.hosts[one], *everybody) == {0}


def test_an_address_that_nobody_is_known_to_hold_is_of_no_class(network):
    _, other, third = hosts_of(network, 0)
    network.mark(Marking(True, (ServiceClass("vacant", 1, hosts=(parse_prefix("10.7.0.0/16"),), dscp=OWN),)))
    assert relayed(network, third[1], third[0], b"\x0a\x07\0\1", other[0], network.hosts[other]) == {0}


def test_a_class_of_a_port_is_that_of_hosts_there_which_are_not_known(network):
    _, other, third = hosts_of(network, 0)
    desk = ServiceClass("desk", 3, hosts=(SwitchPort(*third[1]),), dscp=12)
    network.mark(Marking(True, (BOARD, desk)))
    stranger = MAC + b"\x77", third[1]
    network.hosts[stranger] = b"\x0a\0\0\x77"
    assert network.sent(stranger, other) == [12]
    assert network.sent(third, other) == [12]


def test_neighbour_discovery_that_the_controller_passes_on_is_marked(network):
    one, other, _ = hosts_of(network, 0)
    for asker, asked in ((one, other), (other, one)):
        network.solicit(asker, v6(asked[0]))
    packet = Neighbour(other[0], one[0], v6(other[0]), v6(one[0]), True, v6(one[0]), other[0])
    outputs = network.cores[1].handle(
        PacketReceived(*other[1], with_dscp(encode_neighbour(packet), OWN)), network.now
    )
    frames = [output.data for output in outputs if isinstance(output, SendPacket)]
    assert frames and {(frame[14] & 0x0F) << 2 | frame[15] >> 6 for frame in frames} == {34}


def port_marks(bench, *legs):
    """Return the ports among `legs` that mark packets, and those that do so for hosts of their own."""
    found = [(dpid, key) for dpid, rules in bench.rules.items() for key, rule in rules.items() if is_mark(rule)]
    ends = [(dpid, key.match.in_port, key.match.eth_src) for dpid, key in found]
    return {end[:2] for end in ends if end[:2] in legs}, {end[:2] for end in ends if end[:2] in legs and end[2]}


def is_mark(rule):
    return isinstance(next(iter(rule.actions), None), SetDscp)


def bonded(make_bench, *legs):
    bond = LinkAggregation("bond", "static", tuple(SwitchPort(*leg) for leg in legs))
    marking = Marking(True, CLASSES, link_aggregations=(bond,))
    bench = make_bench(UnicastSettings(link_aggregations=(bond,), marking=marking))
    bench.build([(1, 1, 2, 1), (2, 2, 3, 1)], [*legs, (2, 6)])
    return bench


@pytest.mark.parametrize("leg", [(1, 5), (3, 5)])
def test_a_host_is_marked_at_all_legs_whichever_it_is_told_at(make_bench, leg):
    bench = bonded(make_bench, (1, 5), (3, 5))
    bench.feed(HostLearnt(MAC + b"\x01", *leg, (b"\x0a\0\0\x01",)))
    bench.run(0.1)
    assert port_marks(bench, (1, 5), (3, 5)) == ({(1, 5), (3, 5)}, {(1, 5), (3, 5)})
    bench.feed(HostLearnt(MAC + b"\x01", 2, 6, (b"\x0a\0\0\x01",)))
    bench.run(0.1)
    assert port_marks(bench, (1, 5), (3, 5), (2, 6)) == ({(1, 5), (3, 5), (2, 6)}, {(2, 6)})


def test_a_port_whose_role_is_not_known_keeps_its_own_marks_until_it_leads_to_a_switch(make_bench):
    bench = bonded(make_bench, (1, 5), (3, 5))
    for role in (PortRole.DOWN, PortRole.UNKNOWN, PortRole.EDGE):
        bench.feed(PortRoleChanged(2, 6, role))
        bench.run(0.1)
        assert port_marks(bench, (2, 6)) == ({(2, 6)}, set())
    bench.feed(PortRoleChanged(2, 6, PortRole.TRUNK))
    bench.run(0.1)
    assert port_marks(bench, (2, 6)) == (set(), set())
