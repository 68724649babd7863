"""Flow entries of groups in VLANs: who sends what with which tag, in OpenFlow 1.3 and 1.0."""

from __future__ import annotations

import pytest

from controller.kernel.domains import in_domain
from controller.kernel.oifs import oif_in
from controller.rules import of10, of13
from controller.rules.compile import ChannelDuty, SenderEntry, SwitchDuty, versioned_mac
from controller.rules.compile_vlan import (
    channel_key_in_vlan,
    common_key_in_vlan,
    lower_in_vlan_to_1_0,
    lower_in_vlan_to_1_3,
    outputs_in_vlan,
)
from controller.rules.model import (
    OFPP_IN_PORT,
    Action,
    Goto,
    Match,
    Output,
    PopVlan,
    PushVlan,
    SetDscp,
    SetEthDst,
    SetVlan,
)
from controller.rules.pipeline import (
    OPENFLOW_1_0,
    OPENFLOW_1_3,
    PRIORITY_CHANNEL,
    PRIORITY_GROUP,
    PRIORITY_SENDER,
    SENDER_COOKIE_BIT,
    VLAN_ADMIT,
    VLAN_FORWARD,
    at_port,
)

ADDRESS, ADDRESS_V6 = b"\xef\1\2\3", b"\xff\x1e" + bytes(13) + b"\1"
GROUP = in_domain(ADDRESS, 10)
HOST, SOURCE, OTHER = b"\2\0\0\0\0\1", b"\x0a\0\0\1", b"\x0a\0\0\2"
COOKIE = 0x1000
ENTER = (Goto(VLAN_FORWARD),)
IN_20, IN_30, UNTAGGED_40 = oif_in(1, 20), oif_in(1, 30), oif_in(1, 40)


def sender(port_no: int = 1, address: bytes = SOURCE, admitted: bool = True, dscp: int | None = None) -> SenderEntry:
    return SenderEntry(port_no, HOST, address, admitted, dscp)


def channel(source: bytes | None, trunks: tuple[int, ...], hosts: tuple[int, ...]) -> ChannelDuty:
    return ChannelDuty(source, trunks, hosts)


def of_senders(
    ofp_version: int,
    channels: tuple[ChannelDuty, ...],
    *senders: SenderEntry,
    untagged: tuple[int, ...] = (),
    version: int = 0,
) -> list[tuple[Action, ...]]:
    """Return what a switch does with packets of each sender; all entries can be said in this OpenFlow version."""
    lower, codec = {OPENFLOW_1_3: (lower_in_vlan_to_1_3, of13), OPENFLOW_1_0: (lower_in_vlan_to_1_0, of10)}[
        ofp_version
    ]
    rules = lower(GROUP, untagged, SwitchDuty(version, channels, senders), COOKIE)
    assert not [problem for rule in rules.values() if (problem := codec.expressible(rule)) is not None]
    assert all(key == rule.key for key, rule in rules.items())
    of_channels = [rule for key, rule in rules.items() if key.match.in_port is None]
    assert {rule.cookie for rule in of_channels} <= {COOKIE}
    found = [rule for key, rule in rules.items() if key.match.in_port is not None]
    assert {rule.cookie for rule in found} <= {COOKIE | SENDER_COOKIE_BIT}
    assert [(rule.key.match.in_port, rule.key.match.eth_src, rule.key.match.ip_src) for rule in found] == [
        (each.port_no, each.mac, each.address) for each in senders
    ]
    return [rule.actions for rule in found]


ANY = channel(None, (9,), (3,))


def test_in_1_3_a_sender_enters_with_its_mark_and_the_version_of_its_tree_and_a_refused_one_is_dropped() -> None:
    duty = (ANY,)
    assert of_senders(OPENFLOW_1_3, duty, sender(), sender(2, admitted=False)) == [ENTER, ()]
    assert of_senders(OPENFLOW_1_3, duty, sender(dscp=46)) == [(SetDscp(46), *ENTER)]
    of_tree = SetEthDst(versioned_mac(ADDRESS, 3))
    assert of_senders(OPENFLOW_1_3, duty, sender(dscp=0), version=3) == [(SetDscp(0), of_tree, *ENTER)]


def test_in_1_3_entries_stand_in_the_tables_of_vlans() -> None:
    duty = SwitchDuty(0, (ANY, channel(SOURCE, (), (3,))), (sender(),))
    keys = set(lower_in_vlan_to_1_3(GROUP, (), duty, COOKIE))
    assert {(key.table, key.priority) for key in keys} == {
        (VLAN_ADMIT, PRIORITY_SENDER),
        (VLAN_FORWARD, PRIORITY_CHANNEL),
        (VLAN_FORWARD, PRIORITY_GROUP),
    }
    assert {key.match.vlan_id for key in keys} == {10}
    assert {key.match.ip_dst for key in keys} == {ADDRESS}


@pytest.mark.parametrize(
    ("oifs", "untagged", "returned"),
    [
        ((3, IN_20), (), (SetVlan(20), Output(OFPP_IN_PORT), SetVlan(10))),
        ((3, IN_20, IN_30), (), (SetVlan(20), Output(OFPP_IN_PORT), SetVlan(30), Output(OFPP_IN_PORT), SetVlan(10))),
        ((IN_20, UNTAGGED_40), (UNTAGGED_40,),
         (SetVlan(20), Output(OFPP_IN_PORT), PopVlan(), Output(OFPP_IN_PORT), PushVlan(10))),
        ((3, oif_in(4, 20)), (), ()),
        ((1, 3), (), ()),
    ],
)  # fmt: skip
def test_in_1_3_receivers_of_other_vlans_at_a_senders_port_get_copies_and_the_frame_goes_on_as_it_came(
    oifs: tuple[int, ...], untagged: tuple[int, ...], returned: tuple[Action, ...]
) -> None:
    duty = (channel(None, (9,), oifs),)
    assert of_senders(OPENFLOW_1_3, duty, sender(dscp=8), untagged=untagged) == [(SetDscp(8), *returned, *ENTER)]


def test_a_sender_has_the_channel_of_its_own_before_that_of_all_others() -> None:
    duty = (channel(None, (), (3,)), channel(SOURCE, (), (3, IN_20)), channel(b"\x0a\0\0\7", (), (3, IN_30)))
    back = (SetVlan(20), Output(OFPP_IN_PORT), SetVlan(10))
    assert of_senders(OPENFLOW_1_3, duty, sender(), sender(1, OTHER)) == [(*back, *ENTER), ENTER]
    assert of_senders(OPENFLOW_1_3, duty[1:], sender(1, OTHER)) == [ENTER], "no channel, and nobody to send back to"
    own, others = of_senders(OPENFLOW_1_0, duty, sender(), sender(2, OTHER))
    assert own == (*back, Output(3), SetVlan(20), Output(1))
    assert others == (Output(3),)


def test_in_1_0_a_copy_back_to_an_untagged_senders_port_has_the_tag_of_its_receiver() -> None:
    duty = (channel(None, (9,), (1, IN_20)),)
    (actions,) = of_senders(OPENFLOW_1_0, duty, sender(dscp=8), untagged=(1,))
    back = (PushVlan(20), Output(OFPP_IN_PORT), PopVlan())
    assert actions == (SetDscp(8), *back, PushVlan(10), Output(9), SetVlan(20), Output(1), PopVlan(), Output(1))


def test_in_1_0_a_sender_without_a_receiver_or_refused_is_dropped_whatever_its_mark() -> None:
    assert of_senders(OPENFLOW_1_0, (channel(None, (), ()),), sender(dscp=46), sender(2, OTHER)) == [(), ()]
    assert of_senders(OPENFLOW_1_0, (ANY,), sender(admitted=False)) == [()]
    assert of_senders(OPENFLOW_1_0, (), sender()) == [()]


def test_in_1_0_a_senders_entry_is_of_its_port_and_asks_for_the_tag_that_it_has_there() -> None:
    duty = SwitchDuty(0, (ANY, channel(SOURCE, (), (3,))), (sender(1), sender(2)))
    keys = {key.match.in_port: key for key in lower_in_vlan_to_1_0(GROUP, (1,), duty, COOKIE) if key.match.in_port}
    assert {key.match.in_port: key.match.vlan_id for key in keys.values()} == {1: None, 2: 10}
    assert {(key.table, key.priority) for key in keys.values()} == {(0, at_port(PRIORITY_SENDER))}
    of_channels = {key for key in lower_in_vlan_to_1_0(GROUP, (1,), duty, COOKIE) if key.match.in_port is None}
    assert {(key.table, key.priority) for key in of_channels} == {(0, PRIORITY_GROUP), (0, PRIORITY_CHANNEL)}


def test_packets_of_a_further_tree_have_their_own_address_again_before_hosts_get_them() -> None:
    restored = SetEthDst(versioned_mac(ADDRESS, 0))
    assert outputs_in_vlan(GROUP, (3,), channel(None, (9,), (3, 4)), 2) == (
        Output(9), restored, Output(4), PopVlan(), Output(3),
    )  # fmt: skip
    assert outputs_in_vlan(GROUP, (), channel(None, (9,), ()), 2) == (Output(9),)
    rules = lower_in_vlan_to_1_3(GROUP, (3,), SwitchDuty(2, (channel(None, (), (3,)),), ()), COOKIE)
    assert [rule.actions for rule in rules.values()] == [(restored, PopVlan(), Output(3))]
    of_tree = SetEthDst(versioned_mac(ADDRESS, 2))
    (actions,) = of_senders(OPENFLOW_1_0, (channel(None, (9,), (3,)),), sender(), untagged=(1, 3), version=2)
    assert actions == (PushVlan(10), of_tree, Output(9), restored, PopVlan(), Output(3))
    (actions,) = of_senders(OPENFLOW_1_0, (channel(None, (), (3,)),), sender(), untagged=(1, 3), version=2)
    assert actions == (Output(3),), "what does not leave the switch never has another address"


def test_one_tag_is_set_once_for_all_ports_of_a_receiver_vlan() -> None:
    oifs = (4, oif_in(3, 20), oif_in(5, 20), oif_in(3, 30))
    assert outputs_in_vlan(GROUP, (), channel(None, (9,), oifs), 0) == (
        Output(9), Output(4), SetVlan(20), Output(3), Output(5), SetVlan(30), Output(3),
    )  # fmt: skip


def test_keys_name_the_family_the_version_of_the_tree_and_the_source() -> None:
    mac, of_tree = versioned_mac(ADDRESS, 0), versioned_mac(ADDRESS, 4)
    bare = Match(eth_dst=mac, eth_type=0x0800, ip_dst=ADDRESS, ip_dst_prefix=32, vlan_id=10)
    assert common_key_in_vlan(GROUP, 10) == channel_key_in_vlan(OPENFLOW_1_3, GROUP, 0, None)
    assert common_key_in_vlan(GROUP, 10).match == bare
    assert channel_key_in_vlan(OPENFLOW_1_3, GROUP, 4, None).match == bare._replace(eth_dst=of_tree)
    assert channel_key_in_vlan(OPENFLOW_1_0, GROUP, 0, SOURCE).match == bare._replace(ip_src=SOURCE, ip_src_prefix=32)
    six = common_key_in_vlan(in_domain(ADDRESS_V6, 4094), 4094).match
    assert (six.eth_type, six.ip_dst, six.ip_dst_prefix, six.vlan_id) == (0x86DD, ADDRESS_V6, 128, 4094)
