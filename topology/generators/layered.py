"""Fabrics in tiers: fat trees, trees, and the wirings that the VSRT article measures."""

from __future__ import annotations

from topology.generators.draft import Draft, pods
from topology.generators.parameters import MAX_HOSTS, Parameter, capacity
from topology.graph import Graph, NodeKind

K = Parameter("k", 4, 2, 64, "ports of each switch, and pods", multiple_of=2)
DEPTH = Parameter("depth", 2, 1, 16, "tiers of switches")
FANOUT = Parameter("fanout", 4, 1, 256, "children of each switch; hosts of each lowest one")
HOSTS_PER_TOR = Parameter("hosts_per_tor", 40, 0, 200, "hosts of each ToR")
AVALANCHE_HOSTS = Parameter("hosts_per_tor", 4, 0, 200, "hosts of each ToR")
LEAVES = Parameter("leaves", 4, 1, 1024, "leaf switches (ToRs)")
SPINES = Parameter("spines", 2, 1, 256, "spine switches, each linked to every leaf")
HOSTS_PER_LEAF = Parameter("hosts_per_leaf", 4, 0, 200, "hosts of each leaf")
UPLINK_RATIO = Parameter("uplink_ratio", 1.0, 0.01, 1000.0, "capacity of a link to a spine over that of a host's")
CAPACITY = capacity()
AVALANCHE_CAPACITY = capacity(10e6)


def fattree(k: int = 4, capacity_bps: float = CAPACITY.default) -> Graph:
    """Return the fat tree of `k` pods, k^3/4 hosts and 5k^2/4 switches.

    Every pod has k/2 ToRs of k/2 hosts and k/2 aggregations; the aggregation at position j of each pod is linked to
    the j-th block of k/2 of the k^2/4 cores (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008, doi 10.1145/1402958.1402967).
    Raises ValueError where `k` is odd or out of its bounds.
    """
    K.check(k)
    CAPACITY.check(capacity_bps)
    half = k // 2
    return pods([[half] * half] * k, half, half * half, lambda j: range(j * half, (j + 1) * half), capacity_bps)


def leaf_spine(
    leaves: int = 4,
    spines: int = 2,
    hosts_per_leaf: int = 4,
    uplink_ratio: float = UPLINK_RATIO.default,
    capacity_bps: float = CAPACITY.default,
) -> Graph:
    """Return a folded Clos fabric of two tiers: every leaf (ToR) is linked to every spine (aggregation).

    A host's link has `capacity_bps`, a link to a spine `uplink_ratio` times that. A leaf is oversubscribed
    hosts_per_leaf to spines * uplink_ratio. Raises ValueError for parameters out of bounds, and for more than
    `MAX_HOSTS` hosts.
    """
    for parameter, value in (
        (LEAVES, leaves),
        (SPINES, spines),
        (HOSTS_PER_LEAF, hosts_per_leaf),
        (UPLINK_RATIO, uplink_ratio),
        (CAPACITY, capacity_bps),
    ):
        parameter.check(value)
    if leaves * hosts_per_leaf > MAX_HOSTS:
        raise ValueError(
            f"hosts_per_leaf: {hosts_per_leaf} at {leaves} leaves gives {leaves * hosts_per_leaf} hosts, "
            f"more than {MAX_HOSTS}"
        )
    draft = Draft(capacity_bps)
    lower = [draft.switch(NodeKind.TOR) for _ in range(leaves)]
    upper = [draft.switch(NodeKind.AGGREGATION) for _ in range(spines)]
    for leaf in lower:
        draft.hosts(leaf, hosts_per_leaf)
        for spine in upper:
            draft.link(leaf, spine, uplink_ratio)
    return draft.graph


def tree(depth: int = 2, fanout: int = 4, capacity_bps: float = CAPACITY.default) -> Graph:
    """Return the tree of `depth` tiers of switches, of `fanout` children each: fanout^depth hosts.

    The lowest tier are ToRs, the root of two tiers and more is the core, what is between are aggregations. From three
    tiers on, ``pod`` is the subtree of the root that a node is in. Raises ValueError for parameters out of bounds,
    and for more than `MAX_HOSTS` hosts.
    """
    DEPTH.check(depth)
    FANOUT.check(fanout)
    CAPACITY.check(capacity_bps)
    if fanout**depth > MAX_HOSTS:
        raise ValueError(f"fanout: {fanout} at depth {depth} gives {fanout**depth} hosts, more than {MAX_HOSTS}")
    draft = Draft(capacity_bps)
    below: list[str] = []
    for tier in range(1, depth + 1):
        kind = NodeKind.TOR if tier == 1 else NodeKind.CORE if tier == depth else NodeKind.AGGREGATION
        here = []
        for position in range(fanout ** (depth - tier)):
            pod = {"pod": position // fanout ** (depth - 1 - tier)} if depth > 2 and tier < depth else {}
            switch = draft.switch(kind, **pod)
            here.append(switch)
            if tier == 1:
                draft.hosts(switch, fanout, **pod)
            for child in below[position * fanout : (position + 1) * fanout]:
                draft.link(child, switch)
        below = here
    return draft.graph


def portland_p6(hosts_per_tor: int = 40, capacity_bps: float = CAPACITY.default) -> Graph:
    """Return 6 pods of 48 ToRs and 4 aggregations under 8 cores: 1,200 links between switches, 11,520 hosts.

    The aggregation at position j of each pod is linked to the cores 2j and 2j + 1. Of the wirings with the number
    of servers that the VSRT article gives for PortLand (section 5), this one gives its figures.
    """
    HOSTS_PER_TOR.check(hosts_per_tor)
    CAPACITY.check(capacity_bps)
    return pods([[hosts_per_tor] * 48] * 6, 4, 8, lambda j: range(2 * j, 2 * j + 2), capacity_bps)


def portland_p12(hosts_per_tor: int = 40, capacity_bps: float = CAPACITY.default) -> Graph:
    """Return 12 pods of 24 ToRs and 2 aggregations under 8 cores: 672 links between switches, 11,520 hosts.

    The aggregation at position j of each pod is linked to the cores 4j to 4j + 3.
    """
    HOSTS_PER_TOR.check(hosts_per_tor)
    CAPACITY.check(capacity_bps)
    return pods([[hosts_per_tor] * 24] * 12, 2, 8, lambda j: range(4 * j, 4 * j + 4), capacity_bps)


def avalanche24(hosts_per_tor: int = 4, capacity_bps: float = AVALANCHE_CAPACITY.default) -> Graph:
    """Return the fabric of the VSRT article's emulation: 24 hosts, 6 ToRs, 6 aggregations, 2 cores, 10 Mbit/s links.

    Three pods of 2 ToRs and 2 aggregations, every aggregation linked to both cores (Iyer, Kumar, Mann, COMSNETS
    2014, doi 10.1109/COMSNETS.2014.6734903).
    """
    AVALANCHE_HOSTS.check(hosts_per_tor)
    AVALANCHE_CAPACITY.check(capacity_bps)
    return pods([[hosts_per_tor] * 2] * 3, 2, 2, lambda _: range(2), capacity_bps)
