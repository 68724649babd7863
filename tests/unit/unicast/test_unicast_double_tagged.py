"""Frames to one host with a second tag behind that of a VLAN, where the policy has them pass."""

from __future__ import annotations

import pytest

from controller.events import PacketReceived
from controller.kernel.domains import in_domain
from controller.wire.arp import encode_arp
from controller.wire.ethernet import with_tag
from controller.wire.packets import Arp
from controller.wire.udp import encode_udp

from .vlan_network import Network, meet

AT_TRUNK, AT_ACCESS, FAR_TRUNK = (1, 7), (2, 5), (3, 5)
"""Ports of VLAN 10: with its tag, without it, and with it at another switch."""

STRANGER, OTHER = b"\x02\0\0\0\x07\x01", b"\x02\0\0\0\x07\x02"
INNER = 99


class Doubled(Network):
    """Two tags pass; what leaves the fabric is kept as it is on the cable."""

    passes_double_tagged = True

    def __init__(self, **settings):
        self.on_cables = []
        super().__init__(**settings)

    def hear(self, end, frame):
        self.on_cables.append((end, frame))

    def sends(self, end, eth_src, eth_dst, outer=10):
        """Have a frame with two tags sent; return at which ports it leaves, and as what."""
        self.on_cables.clear()
        frame = inner_frame(eth_src, eth_dst)
        self.enter(end, with_tag(frame, outer))
        self.run(0.05)
        found = [(at, {frame: "outer off", with_tag(frame, outer): "whole"}.get(sent)) for at, sent in self.on_cables]
        return sorted((at, how) for at, how in found if how is not None)


class Answering(Doubled):
    """Two tags pass, and hosts hear what has one and answer."""

    def hear(self, end, frame):
        super().hear(end, frame)
        if INNER.to_bytes(2, "big") not in (frame[14:16], frame[18:20]):
            Network.hear(self, end, frame)


def inner_frame(eth_src, eth_dst):
    """Return a frame with the inner tag alone."""
    return with_tag(encode_udp(eth_src, b"\x0a\x63\0\1", b"\x0a\x63\0\2", b"inner", eth_dst=eth_dst), INNER)


def mac_at(network, end, vlan_id):
    return next(name[:6] for name, at in network.hosts if at == end and name == in_domain(name[:6], vlan_id))


def test_a_known_host_gets_them_alone():
    network = Answering()
    meet(network)
    mac, far = mac_at(network, AT_ACCESS, 10), mac_at(network, FAR_TRUNK, 10)
    for _ in range(2):
        assert network.sends(AT_TRUNK, mac_at(network, AT_TRUNK, 10), mac) == [(AT_ACCESS, "outer off")]
        assert network.sends(AT_TRUNK, mac_at(network, AT_TRUNK, 10), far) == [(FAR_TRUNK, "whole")]


def test_one_that_nobody_knows_is_sent_to_all_of_the_outer_vlan_and_its_sender_is_known_from_then_on():
    network = Doubled()
    everywhere = network.sends(AT_TRUNK, STRANGER, OTHER)
    ends = network.domain_ends(10) - {AT_TRUNK}
    assert everywhere == sorted((at, "whole" if 10 in network.ports[at].tagged else "outer off") for at in ends)
    for core in network.cores:
        host = core.fabric.host(in_domain(STRANGER, 10))
        assert (host.dpid, host.port_no, host.addresses) == (*AT_TRUNK, ())
        assert core.fabric.host(in_domain(STRANGER, INNER)) is None
    assert network.sends(FAR_TRUNK, OTHER, STRANGER) == [(AT_TRUNK, "whole")]
    assert network.sends(AT_TRUNK, STRANGER, OTHER) == [(FAR_TRUNK, "whole")]
    assert network.cores[1].counters["double-tagged-relayed"] == 1
    assert network.cores[0].counters["vlan-tagged"] == 0
    assert [notice.kind for notice in network.notices] == []


def test_the_controller_carries_no_more_of_them_once_their_switch_has_its_entry():
    network = Doubled()
    network.sends(AT_TRUNK, STRANGER, OTHER)
    network.sends(FAR_TRUNK, OTHER, STRANGER)
    network.sends(AT_TRUNK, STRANGER, OTHER)
    before = network.cores[1].counters.copy()
    assert network.sends(AT_TRUNK, STRANGER, OTHER) == [(FAR_TRUNK, "whole")]
    assert network.cores[1].counters == before


@pytest.mark.parametrize("outer", [20, 30])
def test_they_stay_within_the_outer_vlan(outer):
    network = Answering()
    meet(network)
    mac = mac_at(network, AT_ACCESS, 10)
    assert all(outer in network.ports[at].vlans() for at, _ in network.sends(AT_TRUNK, STRANGER, mac, outer))


def test_an_inner_question_is_not_answered_and_teaches_no_address():
    network = Answering()
    meet(network)
    asked = network.hosts[in_domain(mac_at(network, AT_ACCESS, 10), 10), AT_ACCESS]
    question = encode_arp(Arp(STRANGER, b"\xff" * 6, 1, STRANGER, b"\x0a\0\0\x63", bytes(6), asked))
    network.on_cables.clear()
    network.tell(PacketReceived(*AT_TRUNK, with_tag(with_tag(question, INNER), 10)))
    network.run(1.0)
    assert network.on_cables == []
    assert network.cores[0].fabric.host_by_ip(in_domain(b"\x0a\0\0\x63", 10), AT_TRUNK[0]) is None


@pytest.mark.parametrize("passes", [False, True])
def test_a_switch_that_looks_behind_both_tags_is_told_of(passes):
    """It takes what they carry for the outer VLAN's: here, a group's packet that came to the controller."""
    network = Network()
    network.passes_double_tagged = passes
    network.policy()
    frame = encode_udp(STRANGER, b"\x0a\0\0\x63", b"\xef\1\1\1", b"x")
    for _ in range(2):
        network.tell(PacketReceived(*AT_TRUNK, with_tag(with_tag(frame, INNER), 10)))
    network.run(0.1)
    (told,) = [notice for notice in network.notices if notice.kind == "double-tagged-misread"]
    assert "vlan-limit" in told.text
    assert all(core.fabric.host(in_domain(STRANGER, 10)) is None for core in network.cores)


def test_none_passes_without_the_policys_word_nor_after_it_is_taken_back():
    network = Doubled()
    assert network.sends(AT_TRUNK, STRANGER, OTHER)
    network.passes_double_tagged = False
    network.policy()
    for outer in (10, 20):
        assert network.sends(AT_TRUNK, STRANGER, OTHER, outer) == []
    network.passes_double_tagged = True
    network.policy()
    assert network.sends(AT_TRUNK, STRANGER, OTHER)


def test_old_switches_drop_them():
    network = Doubled(versions={1: 1})
    assert network.sends(AT_TRUNK, STRANGER, OTHER) == []
