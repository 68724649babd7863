"""Tenants of what hosts receive, and the prefixes that they are written by."""

from __future__ import annotations

import numpy as np
import pytest
from generated_joins import seen_fabric
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from controller.policy_discovery.prefixes import exact_prefixes, prefixes
from controller.policy_discovery.tenants import tenancy
from controller.wire.addresses import parse_ip


@pytest.mark.parametrize("seed", range(6))
def test_tenants_are_found_though_each_host_was_seen_to_receive_a_part(seed: int) -> None:
    fabric = seen_fabric(seed)
    found = tenancy(fabric.seen)
    admitted = np.zeros(fabric.seen.shape, np.bool_)
    for row, tenant in enumerate(found.of_host.tolist()):
        if tenant >= 0:
            admitted[row, [*found.groups[tenant], *found.common]] = True
    own = (fabric.of_host >= 0)[:, None] & np.ones(fabric.seen.shape, np.bool_)
    assert admitted[fabric.allowed & fabric.seen & own].mean() > 0.99
    assert admitted[fabric.allowed & ~fabric.seen & own].mean() > 0.95
    assert admitted[~fabric.allowed & own].mean() < 0.01


def test_one_seen_group_is_enough_to_belong() -> None:
    received = np.zeros((21, 8), np.bool_)
    received[:10, :4] = True
    received[10:20, 4:] = True
    received[20, 6] = True
    found = tenancy(received)
    assert found.groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert found.of_host[20] == 1


def test_a_host_that_joins_everything_widens_no_tenant() -> None:
    received = np.zeros((31, 12), np.bool_)
    for tenant in range(3):
        received[10 * tenant : 10 * tenant + 10, 4 * tenant : 4 * tenant + 4] = True
    received[30] = True
    found = tenancy(received)
    assert found.strays == (30,)
    assert found.groups == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))


def test_what_hosts_of_all_tenants_receive_is_for_all() -> None:
    received = np.zeros((20, 7), np.bool_)
    received[:10, :3], received[10:, 3:6], received[:, 6] = True, True, True
    found = tenancy(received)
    assert (found.groups, found.common) == (((0, 1, 2), (3, 4, 5)), (6,))


@given(arrays(np.bool_, st.tuples(st.integers(0, 25), st.integers(0, 8))))
def test_whatever_was_received_every_host_is_somewhere(received: np.ndarray) -> None:
    found = tenancy(received)
    for row in range(len(received)):
        has_tenant = found.of_host[row] >= 0
        assert has_tenant == (bool(received[row].any()) and row not in found.strays)
    assert all(0 <= tenant < len(found.groups) or tenant == -1 for tenant in found.of_host.tolist())


def addresses(*texts: str) -> list[bytes]:
    return [parse_ip(text) for text in texts]


def test_a_prefix_holds_its_own_hosts_alone() -> None:
    own = addresses("10.1.0.1", "10.1.0.2", "10.1.0.200", "10.1.1.7")
    assert prefixes(own, addresses("10.2.0.1")) == ["10.1.0.0/23"]
    assert prefixes(own, addresses("10.1.1.9")) == ["10.1.0.0/24", "10.1.1.7"]
    assert prefixes(own[:2], []) == ["10.1.0.1", "10.1.0.2"]


def test_a_prefix_is_never_wider_than_it_can_be_answered_for() -> None:
    own = addresses("10.1.0.1", "10.1.0.2", "10.1.0.3", "172.16.0.1")
    assert prefixes(own, []) == ["10.1.0.0/30", "172.16.0.1"]


@given(
    st.sets(st.binary(min_size=4, max_size=4), max_size=30), st.sets(st.binary(min_size=4, max_size=4), max_size=30)
)
def test_prefixes_hold_all_that_are_own_and_none_of_others(own: set[bytes], others: set[bytes]) -> None:
    from ipaddress import ip_address, ip_network

    networks = [ip_network(text) for text in prefixes(own, others)]
    assert all(any(ip_address(address) in network for network in networks) for address in own)
    assert not any(ip_address(address) in network for address in others - own for network in networks)


def test_groups_are_a_prefix_only_where_they_are_all_of_it() -> None:
    assert exact_prefixes(addresses("239.1.0.0", "239.1.0.1", "239.1.0.3", "ff0e::1")) == [
        "239.1.0.0/31",
        "239.1.0.3",
        "ff0e::1",
    ]
