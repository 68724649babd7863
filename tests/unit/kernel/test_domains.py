"""Names of addresses in broadcast domains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.kernel.domains import address_of, domain_of, family_of, in_domain, is_name
from controller.wire.addresses import (
    format_ip,
    format_mac,
    group_mac,
    is_link_scope_group,
    is_multicast_ip,
    is_ssm_group,
    parse_ip,
    parse_name,
)

addresses = st.sampled_from((4, 16)).flatmap(lambda size: st.binary(min_size=size, max_size=size))
macs = st.binary(min_size=6, max_size=6)
vlans = st.integers(0, 4094)


@given(addresses | macs, vlans)
def test_a_name_tells_its_address_and_its_domain(address: bytes, vlan_id: int) -> None:
    name = in_domain(address, vlan_id)
    assert (address_of(name), domain_of(name), is_name(name)) == (address, vlan_id, True)


@given(addresses | macs, vlans, addresses | macs, vlans)
def test_names_differ_where_address_or_domain_do(a: bytes, a_vlan: int, b: bytes, b_vlan: int) -> None:
    assert (in_domain(a, a_vlan) == in_domain(b, b_vlan)) is ((a, a_vlan) == (b, b_vlan))


@given(addresses, vlans)
def test_the_text_of_a_name_reads_back(address: bytes, vlan_id: int) -> None:
    name = in_domain(address, vlan_id)
    assert parse_name(format_ip(name)) == name
    assert family_of(name) == (4 if len(address) == 4 else 6)


@given(addresses, vlans)
def test_what_is_told_of_a_group_is_the_same_in_every_vlan(address: bytes, vlan_id: int) -> None:
    name = in_domain(address, vlan_id)
    for tells in (is_link_scope_group, is_multicast_ip, is_ssm_group, group_mac):
        assert tells(name) == tells(address)


def test_names_are_written_with_their_vlan() -> None:
    assert format_ip(in_domain(parse_ip("239.1.1.1"), 20)) == "239.1.1.1@20"
    assert format_ip(in_domain(parse_ip("ff0e::1"), 4094)) == "ff0e::1@4094"
    assert format_mac(in_domain(bytes.fromhex("02000000000a"), 7)) == "02:00:00:00:00:0a@7"


@pytest.mark.parametrize(
    "text", ["239.1.1.1@", "239.1.1.1@0", "239.1.1.1@4095", "239.1.1.1@020", "239.1.1.1@x", "@3", ""]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_name(text)


@pytest.mark.parametrize(
    "name", [b"", bytes(5), bytes(4) + b"\x80\0\1", bytes(4) + b"\x81\0\0", bytes(6) + b"\x81\x0f\xff"]
)
def test_what_is_no_name_is_told(name: bytes) -> None:
    assert not is_name(name)
