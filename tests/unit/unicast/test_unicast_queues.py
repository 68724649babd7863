"""What hosts send to each other waits in the queue of its class where it enters (OpenFlow 1.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.marking import Marking
from controller.config.service_classes import ServiceClass
from controller.config.terms import MacAddress, SwitchPort, parse_prefix
from controller.kernel.domains import address_of, domain_of
from controller.rules.model import SetQueue
from controller.wire.udp import encode_udp

from .test_unicast_marks import MAC, Marked, hosts_of
from .vlan_network import fields_of, meet

BACKUP = ServiceClass("backup", 6, hosts=(parse_prefix("10.0.0.1/32"),), dscp=8)
BOARD = ServiceClass("board", 2, hosts=(MacAddress(MAC + b"\x02"),), dscp=34)
MARKET = ServiceClass("market", 1, (parse_prefix("239.1.0.0/16"),), dscp=46)
CLASSES = (MARKET, BACKUP, BOARD)
QUEUED = Marking(True, CLASSES, has_queues=True)


@pytest.fixture
def network():
    network = Marked(QUEUED)
    meet(network)
    return network


def queue_of_packet(network, sender, receiver):
    """Return the queue in which a packet leaves the switch of its sender, and its code point."""
    frame = encode_udp(
        address_of(sender[0]), network.hosts[sender], network.hosts[receiver], b"x", eth_dst=address_of(receiver[0])
    )
    dpid, port_no = sender[1]
    (sent,) = network.switches[dpid].process(fields_of(frame), port_no).sent
    return sent.queue_id, sent.dscp


def queues_on_way(network, sender, receiver):
    """Return the queues in which a packet waits, one at each switch from its first on."""
    address = network.hosts[receiver]
    frame = encode_udp(address_of(sender[0]), network.hosts[sender], address, b"x", eth_dst=address_of(receiver[0]))
    fields, end, found = fields_of(frame), sender[1], []
    while end is not None:
        (sent,) = network.switches[end[0]].process(fields, end[1]).sent
        found.append(sent.queue_id)
        fields = fields._replace(eth_dst=sent.eth_dst, dscp=sent.dscp, vlan_ids=sent.vlan_ids)
        end = network.cables.get((end[0], sent.port_no))
    return found


def queues_set(network):
    found = [rule for rules in network.rules().values() for rule in rules.values()]
    return {action.queue_id for rule in found for action in rule.actions if isinstance(action, SetQueue)}


def test_a_packet_waits_in_the_queue_of_the_first_class_without_groups_about_its_sender(network):
    one, other, third = hosts_of(network, 0)
    assert queue_of_packet(network, one, other) == (1, 8)
    assert queue_of_packet(network, other, one) == (5, 34)
    assert queue_of_packet(network, third, one) == (1, 0)


def far_pairs(network, vlan_id=0):
    hosts = hosts_of(network, vlan_id)
    return [(one, other) for one in hosts for other in hosts if one[1][0] != other[1][0]]


def test_a_packet_waits_in_the_queue_of_its_class_at_every_switch(network):
    queues = {b"\x0a\0\0\1": 1, b"\x0a\0\0\2": 5}
    pairs = far_pairs(network)
    assert {queues.get(network.hosts[sender], 1) for sender, _ in pairs} == {1, 5}
    for sender, receiver in pairs:
        found = queues_on_way(network, sender, receiver)
        assert len(found) > 1
        assert set(found) == {queues.get(network.hosts[sender], 1)}


def test_classes_that_share_a_code_point_wait_with_the_least_important_behind_their_first_switch(network):
    network.mark(QUEUED._replace(classes=(replace(BACKUP, dscp=34), BOARD)))
    for sender, receiver in far_pairs(network):
        if network.hosts[sender] == b"\x0a\0\0\2":
            first, *further = queues_on_way(network, sender, receiver)
            assert first == 5
            assert set(further) == {1}


def test_a_host_gains_no_queue_by_a_code_point_of_its_own(network):
    for sender, receiver in far_pairs(network):
        if network.hosts[sender] == b"\x0a\0\0\1":
            frame = encode_udp(
                address_of(sender[0]),
                network.hosts[sender],
                network.hosts[receiver],
                b"x",
                eth_dst=address_of(receiver[0]),
            )
            fields = fields_of(frame)._replace(dscp=34)
            (sent,) = network.switches[sender[1][0]].process(fields, sender[1][1]).sent
            assert (sent.queue_id, sent.dscp) == (1, 8)


def test_without_queues_no_entry_asks_for_a_code_point(network):
    def asking():
        return [key for rules in network.rules().values() for key in rules if key.match.ip_dscp is not None]

    assert len(asking()) == 2 * 2 * 3 * len(network.switches), "two tables, two families, three code points"
    network.mark(QUEUED._replace(has_queues=False))
    assert asking() == []
    network.mark(QUEUED)
    assert asking()


def test_a_trusted_port_has_queues_and_keeps_its_code_points(network):
    one, other, _ = hosts_of(network, 0)
    network.mark(QUEUED._replace(trust=frozenset({SwitchPort(*other[1])})))
    assert network.sent(other, one) == [46]
    assert queue_of_packet(network, other, one)[0] == 5


def test_another_policy_is_followed_and_without_queues_no_entry_names_one(network):
    one, other, _ = hosts_of(network, 0)
    network.mark(QUEUED._replace(classes=(ServiceClass("board", 3, hosts=BOARD.hosts),)))
    assert queue_of_packet(network, other, one)[0] == 4
    network.mark(QUEUED._replace(has_queues=False))
    assert queue_of_packet(network, other, one) == (None, 34)
    assert not queues_set(network)


def test_a_restart_finds_its_queues(network):
    before = {dpid: dict(rules) for dpid, rules in network.rules().items()}
    network.start()
    meet(network)
    network.run(60.0)
    assert queues_set(network) == {1, 5}
    assert {dpid: set(rules) for dpid, rules in network.rules().items()} == {
        dpid: set(rules) for dpid, rules in before.items()
    }


def test_hosts_of_vlans_wait_in_queues_too(network):
    for vlan_id in (10, 20):
        for sender in (hosts := hosts_of(network, vlan_id)):
            expected = {b"\x0a\0\0\2": 5}.get(network.hosts[sender], 1)
            for receiver in hosts:
                if receiver[1] != sender[1]:
                    assert domain_of(sender[0]) == vlan_id
                    assert network.sent(sender, receiver)
                    assert expected in queues_set(network)
