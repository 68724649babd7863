"""Fabric generators by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from topology.generators import jellyfish, layered, racks
from topology.generators.parameters import Parameter
from topology.graph import Graph


class Generator(NamedTuple):
    """A fabric that is made from a few numbers."""

    function: Callable[..., Graph]
    parameters: tuple[Parameter, ...]
    help: str


GENERATORS: dict[str, Generator] = {
    "fattree": Generator(
        layered.fattree, (layered.K, layered.CAPACITY), "fat tree of k pods: k^3/4 hosts, 5k^2/4 switches"
    ),
    "leaf-spine": Generator(
        layered.leaf_spine,
        (layered.LEAVES, layered.SPINES, layered.HOSTS_PER_LEAF, layered.UPLINK_RATIO, layered.CAPACITY),
        "every leaf linked to every spine: leaves * hosts_per_leaf hosts",
    ),
    "tree": Generator(
        layered.tree, (layered.DEPTH, layered.FANOUT, layered.CAPACITY), "tree of switches: fanout^depth hosts"
    ),
    "jellyfish": Generator(
        jellyfish.jellyfish,
        (jellyfish.SWITCHES, jellyfish.DEGREE, jellyfish.HOSTS, jellyfish.SEED, jellyfish.CAPACITY),
        "random graph in which every switch has the same degree",
    ),
    "portland-p6": Generator(
        layered.portland_p6,
        (layered.HOSTS_PER_TOR, layered.CAPACITY),
        "6 pods of 48 ToRs and 4 aggregations, 8 cores: 11,520 hosts",
    ),
    "portland-p12": Generator(
        layered.portland_p12,
        (layered.HOSTS_PER_TOR, layered.CAPACITY),
        "12 pods of 24 ToRs and 2 aggregations, 8 cores: 11,520 hosts",
    ),
    "servers-fattree": Generator(
        racks.servers_fattree,
        (racks.SERVERS, racks.PER_RACK, racks.CAPACITY),
        "fat tree for servers in racks: pods of 48 racks or fewer with 4 aggregations, 8 cores",
    ),
    "servers-tree": Generator(
        racks.servers_tree,
        (racks.SERVERS, racks.PER_RACK, racks.CAPACITY),
        "tree for servers in racks: an aggregation over 12 racks or fewer, one core",
    ),
    "avalanche24": Generator(
        layered.avalanche24,
        (layered.AVALANCHE_HOSTS, layered.AVALANCHE_CAPACITY),
        "3 pods of 2 ToRs and 2 aggregations, 2 cores: 24 hosts on 10 Mbit/s links",
    ),
}


def make(name: str, parameters: Mapping[str, Any] | None = None) -> Graph:
    """Return the fabric `name` with `parameters`, defaults for those not given.

    Raises ValueError, naming what is at fault, for a name or parameter that is not known and a value out of bounds.
    """
    generator = GENERATORS.get(name)
    if generator is None:
        raise ValueError(f"no topology is called {name!r}; known: {', '.join(GENERATORS)}")
    known = {parameter.name for parameter in generator.parameters}
    for given in parameters or ():
        if given not in known:
            raise ValueError(f"{given}: {name} has no such parameter; it has: {', '.join(sorted(known))}")
    return generator.function(**(parameters or {}))
