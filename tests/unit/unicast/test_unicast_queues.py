"""What hosts send to each other waits in the queue of its class where it enters (OpenFlow 1.3)."""

from __future__ import annotations

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


def queues_set(network):
    found = [rule for rules in network.rules().values() for rule in rules.values()]
    return {action.queue_id for rule in found for action in rule.actions if isinstance(action, SetQueue)}


def test_a_packet_waits_in_the_queue_of_the_first_class_without_groups_about_its_sender(network):
    one, other, third = hosts_of(network, 0)
    assert queue_of_packet(network, one, other) == (1, 8)
    assert queue_of_packet(network, other, one) == (5, 34)
    assert queue_of_packet(network, third, one) == (1, 0)


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
