"""State in switches: the flow entries and outputs that a set of trees takes, switch by switch.

The live controller holds one entry in table FORWARD per group at each switch of the tree that passes packets on,
with the outputs in the entry itself: no group entries. A link is an output only where a receiver is beyond it, so a
stub that leads to a rendezvous point alone is none. `controller.rules.compile` makes the entries; here they are
counted without being made. A sender takes one more entry, in table ADMIT of its own switch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controller.simulation.data_centre import DataCentre
from controller.simulation.groups import SimulatedGroups
from controller.simulation.trees import TreeLinks
from controller.trees.tree import RECEIVES, Key, Tree
from topology.graph import NodeId

Ints: TypeAlias = NDArray[np.int64]

NO_TRUNKS: frozenset[NodeId] = frozenset()


def trunks(tree: Tree) -> dict[NodeId, frozenset[NodeId]]:
    """Return, for every switch that holds an entry of the group, the neighbours on the tree it sends packets to.

    A switch that receives for its own hosts alone has the empty set.
    """
    adjacent, parent, terminals = tree.adjacent, tree.parent, tree.terminals
    below = {node: int(terminals.get(node, 0)) & RECEIVES for node in adjacent}
    own = dict(below)
    for node, above in reversed(parent.items()):
        below[above] += below[node]
    everyone = below.get(tree.root, 0)
    found: dict[NodeId, frozenset[NodeId]] = {}
    for node, near in adjacent.items():
        above = parent.get(node)
        beyond = frozenset(n for n in near if (everyone - below[node] if n == above else below[n]))
        if beyond or own[node]:
            found[node] = beyond
    return found


class TableUse(NamedTuple):
    """Entries and outputs of every switch, in the order of the switches given.

    Attributes
    ----------
    entries
        Flow entries in FORWARD, shape (switches,).
    outputs
        Outputs of these entries together, to switches and to hosts, shape (switches,).
    """

    entries: Ints
    outputs: Ints

    def summary(self) -> dict[str, Any]:
        """Return maximum, 99th percentile and mean over the switches of entries and outputs, and totals."""
        return {
            "flow_entries": _spread(self.entries),
            "group_entries": 0,
            "outputs": _spread(self.outputs),
            "entries_total": int(self.entries.sum()),
            "switches_without_entries": int((self.entries == 0).sum()),
        }


def _spread(values: Ints) -> dict[str, float]:
    if not len(values):
        return {"max": 0, "p99": 0.0, "mean": 0.0}
    return {"max": int(values.max()), "p99": float(np.percentile(values, 99)), "mean": float(values.mean())}


def state_of_trees(
    trees: Iterable[Tree],
    switches: Collection[NodeId],
    host_ports: Mapping[Key, Mapping[NodeId, int]] | None = None,
) -> TableUse:
    """Count what trees take in each switch.

    Parameters
    ----------
    trees
        The trees of all groups, of any algorithm.
    switches
        The switches to report, in this order; every switch on a tree is among them (KeyError otherwise).
    host_ports
        Per group and switch, the ports with a receiver. By default one at each receiving terminal.
    """
    number = {node: i for i, node in enumerate(switches)}
    entries, outputs = [0] * len(number), [0] * len(number)
    for tree in trees:
        ports = None if host_ports is None else host_ports.get(tree.key, {})
        terminals = tree.terminals
        stub = tree.pinned is not None or tree.rate_below is not None
        near: Mapping[NodeId, Collection[NodeId]] = trunks(tree) if stub else tree.adjacent
        for node, beyond in near.items():
            at = number[node]
            entries[at] += 1
            outputs[at] += len(beyond)
            if node in terminals and int(terminals[node]) & RECEIVES:
                outputs[at] += 1 if ports is None else ports.get(node, 0)
    return TableUse(np.array(entries, dtype=np.int64), np.array(outputs, dtype=np.int64))


def state_of_links(
    group: Ints, u: Ints, v: Ints, terminal_group: Ints, terminal: Ints, switch_count: int
) -> TableUse:
    """Count the same from the links of trees, all terminals receiving at one port each.

    Parameters
    ----------
    group, u, v
        Group and ends of every tree link, shape (links,) each; switches and groups are numbered from 0.
    terminal_group, terminal
        Group and switch of every terminal on a tree, none twice, shape (terminals,) each.
    switch_count
        Switches of the fabric.
    """
    receiving = terminal_group * switch_count + terminal
    ends = np.concatenate((group * switch_count + u, group * switch_count + v))
    places, at = np.unique(np.concatenate((ends, receiving)), return_inverse=True)
    near, far = at[: len(u)], at[len(u) : len(ends)]
    receives = np.zeros(len(places), dtype=bool)
    receives[at[len(ends) :]] = True
    outputs = np.bincount(at, minlength=len(places))
    degree = np.bincount(at[: len(ends)], minlength=len(places))
    while True:
        # Nobody receives beyond a leaf that is no terminal: what is before it sends nothing there.
        stub = (degree == 1) & ~receives
        to_near, to_far = stub[near], stub[far]
        if not (to_near.any() or to_far.any()):
            break
        outputs -= np.bincount(np.concatenate((far[to_near], near[to_far])), minlength=len(places))
        stays = ~(to_near | to_far)
        near, far = near[stays], far[stays]
        degree = np.bincount(np.concatenate((near, far)), minlength=len(places))
    switch = places % switch_count
    return TableUse(
        np.bincount(switch, minlength=switch_count).astype(np.int64),
        np.rint(np.bincount(switch, weights=outputs, minlength=switch_count)).astype(np.int64),
    )


def state_of_placed(centre: DataCentre, groups: SimulatedGroups, links: Sequence[TreeLinks]) -> TableUse:
    """Count what the placed trees of `groups` (`place_trees` fills `links`) take in each of the centre's switches."""
    ends = _ends(centre, links)
    return state_of_links(*ends, groups.group_of_terminal(), groups.terminals, len(centre.switches))


def entries_of_placed(centre: DataCentre, groups: SimulatedGroups, links: Sequence[TreeLinks]) -> tuple[Ints, Ints]:
    """Return the group and the switch of each entry that placed trees take, shape (entries,) both, by group."""
    group, u, v = _ends(centre, links)
    owners = np.concatenate((group, group, groups.group_of_terminal()))
    switch_count = len(centre.switches)
    places = np.unique(owners * switch_count + np.concatenate((u, v, groups.terminals)))
    return places // switch_count, places % switch_count


def _ends(centre: DataCentre, links: Sequence[TreeLinks]) -> tuple[Ints, Ints, Ints]:
    """Return the group and both ends of each link of trees."""
    group = np.concatenate([part.group for part in links])
    cable = np.concatenate([part.cable for part in links])
    u, v = cable_ends(centre)[cable].T
    return group, u, v


def cable_ends(centre: DataCentre) -> Ints:
    """Return the numbers of both switches of every cable, shape (cables, 2)."""
    return np.array([(centre.number[u], centre.number[v]) for u, v in centre.cables], dtype=np.int64).reshape(-1, 2)
