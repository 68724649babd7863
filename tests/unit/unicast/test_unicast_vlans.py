"""Unicast by VLAN: discovery and unicast together, on switches that refuse what strict ones would.

The same MAC and IP addresses are in every domain. Whatever a host sends, each copy that leaves the fabric does so at
a port of its domain, with the tag that this port has it with.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from controller.config.vlans import PortVlans
from controller.events import (
    PacketReceived,
    Port,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.rules.pipeline import LOCATION, PRIORITY_HELD, PRIORITY_PORT_CLOSED, VLAN_UNICAST
from controller.unicast.settings import UnicastChanged, UnicastSettings
from controller.wire.addresses import BROADCAST_MAC
from controller.wire.ethernet import with_tag
from controller.wire.udp import encode_udp

from .vlan_network import (
    ACCESS_10,
    ACCESS_20,
    MAC,
    NATIVE,
    OWN,
    TRUNK,
    Network,
    check_all,
    meet,
    v6,
    vlans_of,
)


@pytest.fixture
def network():
    return Network()


def test_every_host_reaches_every_other_of_its_domain_and_nobody_else(network):
    check_all(network)
    known = network.cores[1].fabric.hosts()
    assert {(host.mac, (host.dpid, host.port_no)) for host in known} == set(network.hosts)
    assert network.cores[1].counters["unicast-unknown"] == 0
    assert [notice.kind for notice in network.notices] == []


def test_entries_of_a_vlan_ask_for_it_and_pop_the_tag_at_the_hosts_port_alone(network):
    meet(network)
    rules = [rule for switch in network.switches.values() for rule in switch.rules.values()]
    vlan_rules = [rule for rule in rules if rule.key.match.eth_dst and rule.key.match.vlan_id]
    assert {rule.key.table for rule in vlan_rules} == {VLAN_UNICAST, LOCATION}
    kinds = Counter(tuple(type(action).__name__ for action in rule.actions) for rule in vlan_rules)
    assert kinds == {
        ("PopVlan", "Output"): 5,
        ("Output",): 5,
        ("SetEthDst", "PopVlan", "Output"): 5,
        ("SetEthDst", "Output"): 5,
        ("SetEthDst", "Goto"): sum(
            len({name for name, end in network.hosts if domain_of(name) == vlan_id and end[0] != dpid})
            for vlan_id in (10, 20)
            for dpid in network.switches
        ),
    }


def test_neighbour_discovery_is_answered_within_the_vlan(network):
    meet(network)
    for one in network.hosts:
        for other in network.hosts:
            if one[1] != other[1] and domain_of(one[0]) == domain_of(other[0]):
                network.heard.clear()
                network.solicit(one, v6(address_of(other[0])))
                assert network.caches[one][v6(address_of(other[0]))] == address_of(other[0])
                assert {heard[1] for heard in network.heard} == {domain_of(one[0])}


def test_a_known_mac_address_of_another_domain_reaches_nobody(network):
    meet(network)
    for vlan_id, end in ((10, (2, 5)), (20, (3, 6)), (0, (2, 7))):
        host = network.plug(0x50 + vlan_id, vlan_id, end)
        network.ask(host, b"\x0a\0\0\1")
    for one in list(network.hosts):
        for vlan_id in {0, 10, 20} - {domain_of(one[0])}:
            network.heard.clear()
            eth_dst = b"\x02\0\0\0\0" + bytes((0x50 + vlan_id,))
            assert network.send(one, eth_dst, b"\x0a\0\0" + eth_dst[5:]) == {}
            assert {heard[1] for heard in network.heard} <= {domain_of(one[0])}, (
                "at most asked for, in its own domain"
            )


def test_no_host_can_send_by_location_address(network):
    meet(network)
    addresses = {name: network.cores[1].location_address(name) for name, _ in network.hosts}
    assert len(set(addresses.values())) == len(addresses), "each host of each domain has its own"
    for one in network.hosts:
        for name, address in addresses.items():
            network.heard.clear()
            assert network.send(one, address, network.hosts[one][:3] + b"\x63") == {}
            assert all(frame[6:12] == b"\x02VSRT\x00" for _, _, frame in network.heard), name


def test_broadcasts_reach_the_other_ports_of_the_domain_once(network):
    for one in network.hosts:
        vlan_id = domain_of(one[0])
        network.heard.clear()
        mac = address_of(one[0])
        network.say(one, encode_udp(mac, bytes(4), b"\xff" * 4, b"discover", eth_dst=BROADCAST_MAC))
        network.run(0.05)
        ends = Counter(end for end, _, _ in network.heard)
        assert ends == dict.fromkeys(network.domain_ends(vlan_id) - {one[1]}, 1)


def test_an_unknown_host_is_looked_for_in_the_domain_alone(network):
    one = network.plug(1, 10, (1, 5))
    network.heard.clear()
    network.ask(one, b"\x0a\0\0\x63")
    assert {end for end, _, _ in network.heard} == network.domain_ends(10) - {(1, 5)}
    network.heard.clear()
    assert network.send(one, b"\x02\0\0\0\0\x63", b"\x0a\0\0\x63") == {}
    assert {end for end, _, _ in network.heard} == network.domain_ends(10) - {(1, 5)}


def test_what_a_port_may_not_have_goes_nowhere(network):
    meet(network)
    for end, frame_vlan in (((1, 5), 20), ((1, 5), 10), ((1, 7), 0), ((1, 7), 30), ((1, 8), 10), ((2, 6), 10)):
        for number in (1, 2, 3):
            eth_dst = b"\x02\0\0\0\0" + bytes((number,))
            frame = encode_udp(MAC, b"\x0a\0\0\x31", b"\x0a\0\0\1", b"x", eth_dst=eth_dst)
            network.heard.clear()
            network.enter(end, with_tag(frame, frame_vlan) if frame_vlan else frame)
            network.run(0.1)
            assert network.heard == []


def test_a_port_that_moves_to_another_vlan_takes_part_in_that_one_alone(network):
    meet(network)
    moved = in_domain(b"\x02\0\0\0\0\1", 10), (1, 5)
    del network.hosts[moved]
    network.policy(p15=ACCESS_20)
    assert network.cores[1].fabric.host(moved[0]) is None
    assert network.cores[1].location_address(moved[0]) is None
    network.plug(9, 20, (1, 5))
    check_all(network)


def test_a_host_has_no_entries_at_a_port_that_lost_its_vlan_before_discovery_knows(network):
    meet(network)
    name = in_domain(b"\x02\0\0\0\0\1", 10)
    network.ports[1, 5] = ACCESS_20
    network.tell(UnicastChanged(UnicastSettings(vlans=vlans_of(network.ports))), (1,))
    network.run(0.1)
    assert network.cores[1].fabric.host(name) is not None
    assert network.cores[1].location_address(name) is None
    network.heard.clear()
    network.ask((in_domain(b"\x02\0\0\0\0\3", 10), (2, 5)), b"\x0a\0\0\1")
    assert (1, 5) not in {end for end, _, _ in network.heard}


def test_a_frame_of_one_vlan_with_the_location_address_of_another_is_not_delivered(network):
    """Such a frame can be under way while hosts and addresses change."""
    meet(network)
    address = network.cores[1].location_address(in_domain(b"\x02\0\0\0\0\2", 10))
    frame = encode_udp(b"\x02\0\0\0\0\1", b"\x0a\0\0\1", b"\x0a\0\0\2", b"x", eth_dst=address)
    for tag, reached in ((20, []), (None, []), (10, [(1, 7)])):
        network.heard.clear()
        network.tell(PacketReceived(1, 1, with_tag(frame, tag) if tag else frame), (1,))
        network.run(0.1)
        assert [end for end, _, _ in network.heard] == reached


def test_a_port_whose_tag_changes_keeps_its_hosts(network):
    meet(network)
    known = network.cores[1].fabric.hosts()
    network.policy(p15=PortVlans(None, frozenset((10,))), p26=PortVlans(20, frozenset((10,))))
    assert network.cores[1].fabric.hosts() == known
    check_all(network)


def test_vlans_come_and_go_with_the_policy(network):
    meet(network)
    before = dict(network.ports)
    hosts = dict(network.hosts)
    network.hosts = {key: address for key, address in hosts.items() if domain_of(key[0]) == 0}
    network.policy(**{f"p{dpid}{port_no}": OWN for dpid, port_no in before})
    for switch in network.switches.values():
        assert not any(5 <= key.table <= 7 or key.match.vlan_id for key in switch.rules)
    check_all(network)
    network.hosts = hosts
    network.policy(**{f"p{dpid}{port_no}": port for (dpid, port_no), port in before.items()})
    check_all(network)


def test_a_host_that_moves_within_its_vlan_is_followed(network):
    meet(network)
    name = in_domain(b"\x02\0\0\0\0\1", 10)
    address = network.hosts.pop((name, (1, 5)))
    network.hosts[name, (3, 5)] = address
    network.ask((name, (3, 5)), b"\x0a\0\0\3")
    network.run(3.0)
    host = network.cores[1].fabric.host(name)
    assert (host.dpid, host.port_no) == (3, 5)
    check_all(network)


def test_switches_keep_their_entries_over_a_restart(network):
    meet(network)
    before = network.rules()
    network.start()
    for host, address in network.hosts.items():
        network.ask(host, address)
    network.run(60.0)
    assert network.rules() == before, "what was asked for is read from the switches"


def test_a_switch_that_lost_its_table_has_it_back(network):
    meet(network)
    before = network.rules()
    for key in list(network.switches[2].rules):
        network.switches[2].tables.remove(key)
    network.run(130.0)
    assert network.rules() == before


def test_a_lost_connection_changes_nothing(network):
    meet(network)
    before = network.rules()
    network.tell(SwitchDisconnected(2))
    network.run(1.0)
    described = tuple(Port(n, "", bytes(6), True, 1e9) for n in (1, 2, 5, 6, 7))
    network.tell(SwitchConnected(2, 4, described))
    network.run(2.0)
    assert network.rules() == before
    check_all(network)


@pytest.mark.parametrize("versions", [{1: 1, 2: 1, 3: 1}, {2: 1}, {1: 1, 3: 1}])
def test_vlans_reach_their_hosts_over_openflow_1_0_switches_too(versions):
    network = Network(versions=versions)
    meet(network)
    check_all(network)


def test_a_port_of_an_openflow_1_0_switch_has_what_its_policy_says_at_any_time():
    network = Network(versions={1: 1, 2: 1, 3: 1})
    meet(network)
    before = network.rules()
    network.policy(p15=ACCESS_20)
    assert network.rules()[1] != before[1]
    network.policy(p15=ACCESS_10)
    meet(network)
    check_all(network)
    network.policy(**{f"p{dpid}{port_no}": OWN for dpid, port_no in network.ports})
    own = range(PRIORITY_PORT_CLOSED, PRIORITY_HELD)
    assert not any(key.priority in own for rules in network.rules().values() for key in rules)


def test_a_restart_finds_the_entries_of_an_openflow_1_0_switch_as_they_are_to_be():
    network = Network(versions={1: 1, 2: 1, 3: 1})
    meet(network)
    before = network.rules()
    network.start()
    meet(network)
    network.run(40.0)
    assert network.rules() == before
    check_all(network)


@pytest.mark.parametrize("versions", [{}, {1: 1, 2: 1, 3: 1}, {2: 1}], ids=["1.3", "1.0", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_no_frame_crosses_domains_and_each_reaches_its_host_once(seed, versions):
    """`Network.hear` fails where a frame leaves at a port, or with a tag, that its domain does not have there."""
    network = Network(seed, versions=versions)
    rng = random.Random(seed)
    for _ in range(120):
        what = rng.random()
        if what < 0.08:
            end = rng.choice(sorted(network.ports))
            port = rng.choice([ACCESS_10, ACCESS_20, TRUNK, NATIVE, OWN])
            network.hosts = {
                (name, at): address
                for (name, at), address in network.hosts.items()
                if at != end or domain_of(name) in port.vlans()
            }
            network.policy(**{f"p{end[0]}{end[1]}": port})
        elif what < 0.18:
            name, end = rng.choice(sorted(network.hosts))
            ends = sorted(network.domain_ends(domain_of(name)) - {at for other, at in network.hosts if other == name})
            if ends:
                address = network.hosts.pop((name, end))
                end = rng.choice(ends)
                network.hosts[name, end] = address
                network.ask((name, end), b"\x0a\0\0\1")
                network.run(3.0)
        else:
            one, other = rng.sample(sorted(network.hosts), 2)
            vlan_id = domain_of(one[0])
            network.ask(other, network.hosts[other])
            network.heard.clear()
            network.ask(one, network.hosts[other])
            reached = network.send(one, address_of(other[0]), network.hosts[other])
            expected = [host for host in network.hosts if host[0] == in_domain(address_of(other[0]), vlan_id)]
            if expected and expected[0][1] != one[1]:
                network.ask(expected[0], network.hosts[expected[0]])
                network.ask(one, network.hosts[other])
                reached = network.send(one, address_of(other[0]), network.hosts[other])
                assert reached == {expected[0]: 1}
            else:
                assert reached == {}
            assert {heard[1] for heard in network.heard} <= {vlan_id}
