"""Paths of equal length are taken by how busy their ports are, and everybody is reached meanwhile."""

from __future__ import annotations

from itertools import product

import pytest

from controller.unicast.weights import PortLevels, PortsWeighed


def reachable(bench, hosts) -> bool:
    pairs = [(one, other) for one, other in product(hosts, hosts) if one is not other]
    return all(
        bench.trace((one.dpid, one.port_no), other.mac) == [(other.dpid, other.port_no)] for one, other in pairs
    )


def ports_used(bench, dpid: int, hosts) -> dict[bytes, int | None]:
    """By which port a switch sends to each host elsewhere."""
    return {host.mac: bench.core.port_to(dpid, host.mac) for host in hosts if host.dpid != dpid}


@pytest.fixture
def fabric(make_bench, make_host, make_fattree):
    bench = make_bench()
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    hosts = [make_host(number, *end) for number, end in enumerate(ends, 1)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    bench.meet(hosts)
    return bench, hosts


TOR, BUSY, FREE = 10100, 3, 4


def test_a_busy_port_is_left_to_few_and_taken_as_before_once_it_is_idle(fabric):
    bench, hosts = fabric
    before = ports_used(bench, TOR, hosts)
    assert list(before.values()).count(BUSY) >= 4
    bench.on_edits = lambda: reachable(bench, hosts) or pytest.fail("a host is cut off meanwhile")
    bench.feed(PortsWeighed(((TOR, BUSY, 10),)))
    bench.run(0.1)
    now = ports_used(bench, TOR, hosts)
    assert list(now.values()).count(BUSY) <= 2
    assert all(after == before[mac] for mac, after in now.items() if before[mac] == FREE)
    assert reachable(bench, hosts)
    bench.feed(PortsWeighed(((TOR, BUSY, 0),)))
    bench.run(0.1)
    assert ports_used(bench, TOR, hosts) == before


def test_levels_that_change_nothing_edit_nothing(fabric):
    bench, _hosts = fabric
    edits = bench.edits
    bench.feed(PortsWeighed(((TOR, BUSY, 0), (TOR, 1, 9), (77, 1, 5))))
    bench.run(0.1)
    assert bench.edits == edits


def test_a_host_that_comes_later_finds_the_levels_of_before(fabric, make_host):
    bench, hosts = fabric
    bench.feed(PortsWeighed(((TOR, BUSY, 10),)))
    bench.run(0.1)
    late = make_host(99, hosts[-1].dpid, hosts[-1].port_no)
    bench.feed(late)
    bench.run(0.1)
    assert bench.core.port_to(TOR, late.mac) in (BUSY, FREE)
    assert reachable(bench, hosts)


def test_levels_are_kept_of_ports_that_are_busy_alone():
    levels = PortLevels()
    assert levels.take(((1, 1, 4), (1, 2, 0), (2, 1, 3))) == {1, 2}
    assert (dict(levels.of(1)), dict(levels.of(2)), dict(levels.of(3))) == ({1: 4}, {1: 3}, {})
    assert levels.take(((1, 1, 4), (2, 1, 0))) == {2}
    assert dict(levels.of(2)) == {}
