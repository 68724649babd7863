"""Hosts of a bench that have met, and who of them reaches whom."""

from __future__ import annotations

from hypothesis import strategies as st


def all_pairs(bench, hosts):
    for one in hosts:
        for other in hosts:
            yield bench.trace((one.dpid, one.port_no), other.mac), one, other


def assert_reachable(bench, hosts):
    for out, one, other in all_pairs(bench, hosts):
        expected = [] if one is other else [(other.dpid, other.port_no)]
        assert out == expected, (one, other)


def populate(bench, hosts):
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    bench.meet(hosts)


@st.composite
def fabrics(draw):
    """Switches, cables on distinct ports, hosts, and what of it is down in the end."""
    count = draw(st.integers(2, 7))
    pairs = [(a, b) for a in range(1, count + 1) for b in range(a + 1, count + 1)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1, max_size=12))
    cables = [(a, 10 + n, b, 10 + n) for n, (a, b) in enumerate(chosen)]
    homes = draw(st.lists(st.integers(1, count), min_size=1, max_size=6))
    down = draw(st.lists(st.sampled_from(cables), unique=True, max_size=4))
    return count, cables, homes, down


def components(count, cables):
    label = {dpid: dpid for dpid in range(1, count + 1)}
    for _ in range(count):
        for a, _port_a, b, _port_b in cables:
            label[a] = label[b] = min(label[a], label[b])
    return label
