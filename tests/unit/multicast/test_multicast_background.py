"""The monitor's word about links reaches the trees of the multicast core."""

from __future__ import annotations

import io

from apps.replays import read_lines
from controller.config.policy import Policy
from controller.config.settings import Multicast
from controller.multicast.events import LoadsMeasured
from controller.recording import plain, write_line
from controller.wire.addresses import parse_ip

GROUP, OTHER = parse_ip("239.1.2.3"), parse_ip("239.1.2.4")


def cores_of(world, group):
    """The switches of a group's tree that have no hosts and no neighbour that has."""
    edges = {host.dpid for host in world.hosts.values()}
    inner = {node for link in world.core.forest.tree(group).links() for node in link} - edges
    near = {node for dpid in edges for node in world.core.fabric.graph.neighbours(dpid)}
    return inner - near


def load_all(world, dpid, bps):
    graph = world.core.fabric.graph
    return LoadsMeasured(tuple((near, graph.port(near, dpid), dpid, bps) for near in graph.neighbours(dpid)))


def test_the_next_tree_avoids_what_unicast_loads(make_world):
    world = make_world("fattree")
    world.join("h1", GROUP)
    world.join("h16", GROUP)
    (core,) = cores_of(world, GROUP)
    for name in ("h1", "h16"):
        world.leave(name, GROUP)
    world.advance(5.0)
    world.feed(load_all(world, core, 6e8))
    world.join("h1", GROUP)
    world.join("h16", GROUP)
    (other,) = cores_of(world, GROUP)
    assert other != core


def test_loads_of_links_that_are_gone_are_passed_over(make_world):
    world = make_world("fattree")
    assert world.feed(LoadsMeasured(((1, 1, 999, 1e9), (998, 1, 999, 1e9)))) == []


def test_a_tree_moves_off_a_link_that_others_fill_where_that_is_asked_for(make_world):
    policy = Policy(default_allow=True, multicast=Multicast(rebalance_interval_s=1.0, default_rate_bps=1e7))
    world = make_world("fattree", policy)
    world.join("h1", GROUP)
    world.join("h16", GROUP)
    (core,) = cores_of(world, GROUP)
    world.feed(load_all(world, core, 1e9))
    world.advance(2.0)
    (other,) = cores_of(world, GROUP)
    assert other != core


def test_it_can_be_recorded_and_read_back():
    event = LoadsMeasured(((1, 3, 2, 3e6), (2, 4, 1, 0.0)))
    (line,) = read_lines(io.StringIO(write_line("multicast", 1.0, "event", event)))
    assert plain(line.content) == plain(event)
    assert type(line.content) is LoadsMeasured
