"""Which tenants a host is of: by MAC address, port and address of either family."""

from __future__ import annotations

from controller.admission.tenant_index import TenantIndex
from controller.config.policy import Tenant
from controller.config.terms import SwitchPort, parse_host_term
from controller.wire.addresses import parse_ip, parse_mac

MAC = parse_mac("02:00:00:00:00:01")


def tenant(name: str, *terms: str) -> Tenant:
    return Tenant(name, tuple(parse_host_term(term) for term in terms))


def test_a_host_is_of_each_tenant_that_names_it_by_anything():
    index = TenantIndex(
        [
            tenant("video", "10.0.0.0/24", "fd00::/64"),
            tenant("all", "0.0.0.0/0"),
            tenant("card", "02:00:00:00:00:01"),
            Tenant("port", (SwitchPort(3, 7),)),
        ]
    )
    assert index.of(MAC, [parse_ip("10.0.0.9")], 3, 7) == ("all", "card", "port", "video")
    assert index.of(None, [parse_ip("10.0.1.9")], 3, 8) == ("all",)
    assert index.of(None, [parse_ip("fd00::9")], 3, 8) == ("video",)
    assert index.of(None, [parse_ip("fd01::9")], 3, 8) == ()
    assert index.of(None, [], 3, 7) == ("port",)


def test_addresses_of_one_family_are_none_of_the_other():
    index = TenantIndex([tenant("v6", "::/0"), tenant("v4", "0.0.0.0/0")])
    assert index.of(MAC, [parse_ip("10.0.0.1")], 1, 1) == ("v4",)
    assert index.of(MAC, [parse_ip("fd00::1")], 1, 1) == ("v6",)


def test_one_network_of_two_tenants_is_both():
    assert TenantIndex([tenant("b", "10.0.0.1"), tenant("a", "10.0.0.1")]).of(MAC, [parse_ip("10.0.0.1")], 1, 1) == (
        "a",
        "b",
    )
