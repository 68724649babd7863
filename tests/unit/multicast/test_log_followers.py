"""Who reads the log has the trees of who wrote it, though these were chosen by the loads of moments gone by."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.multicast.core import MulticastCore
from controller.multicast.events import LoadsMeasured
from controller.wire.addresses import format_ip
from restored_log import put_back

POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True, rebalance_interval_s=1.0),
)
GROUPS = st.integers(1, 6).map(lambda number: bytes((239, 1, 1, number)))
WHAT = [
    *["join"] * 6,
    *["send"] * 3,
    *["leave"] * 2,
    *["load", "cut", "mend", "drain", "undrain", "rebuild", "wait"],
]
HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(
            ["join"] * 6
            + ["send"] * 3
            + ["leave"] * 2
            + ["load", "cut", "mend", "drain", "undrain", "rebuild", "wait"]
        ),
        st.integers(0, 10_000),
        GROUPS,
    ),
    min_size=5,
    max_size=60,
)


def happen(world, what, number, group):
    """Have one thing happen, as far as it can."""
    hosts, pairs = sorted(world.hosts), sorted(tuple(sorted(pair)) for pair in world.links)
    host, pair, dpid = hosts[number % len(hosts)], pairs[number % len(pairs)], sorted(world.switches)[number % 5]
    if what in ("join", "leave", "send"):
        getattr(world, what)(host, group)
    elif what == "load":
        graph = world.core.fabric.graph
        loads = [
            (u, graph.port(u, v), v, float(number * (i + 1) % 9) * 1e8)
            for i, (u, v) in enumerate(pairs)
            if graph.has_link(u, v)
        ]
        world.feed(LoadsMeasured(tuple(loads)))
        world.advance(1.1)
    elif what == "cut" and len(world.down_links) < 2 and frozenset(pair) not in world.down_links:
        world.cut(*pair)
    elif what == "mend" and world.down_links:
        world.mend(*sorted(min(world.down_links, key=sorted)))
    elif what == "drain":
        world.do("switch-drain", dpid=dpid)
    elif what == "undrain":
        world.do("switch-undrain", dpid=dpid)
    elif what == "rebuild":
        world.do("group-rebuild", group=format_ip(group))
    elif what == "wait":
        world.advance(number / 2000)


def trees(core):
    """The version of each group's tree and its links."""
    found = {}
    for address, group in core.plane.groups.items():
        tree = core.forest.tree(address)
        links = None if tree is None else frozenset(map(frozenset, tree.links()))
        found[format_ip(address)] = (group.tree_version, links)
    return found


def follower(world, entries):
    core = MulticastCore(POLICY, world.now)
    put_back(core, entries, lambda event: core.handle(event, world.now))
    return core


@pytest.mark.parametrize("graph", ["leaf-spine", "fattree", "avalanche24"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(happenings=HAPPENINGS)
def test_whoever_reads_the_log_has_the_same_trees(make_world, graph, happenings):
    world = make_world(graph, POLICY)
    for happening in happenings:
        happen(world, *happening)
    world.advance(1.0)
    assert trees(follower(world, world.log.read())) == trees(world.core)


def test_without_the_decisions_the_same_members_lead_to_other_trees(make_world):
    """So what was heard does not say which trees there are, and the test above can fail."""
    differing = 0
    for seed in range(10):
        world, draw = make_world("fattree", POLICY, seed=seed), random.Random(seed)
        for _ in range(40):
            happen(world, draw.choice(WHAT), draw.randrange(10_000), bytes((239, 1, 1, draw.randrange(1, 7))))
        world.advance(1.0)
        heard = [entry for entry in world.log.read() if entry.subject != "tree"]
        assert trees(follower(world, world.log.read())) == trees(world.core)
        differing += trees(follower(world, heard)) != trees(world.core)
    assert differing >= 5
