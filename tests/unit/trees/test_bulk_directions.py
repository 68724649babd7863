"""Loads per direction of bulk trees against the live accounting of the same trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.trees import flows
from controller.trees.bulk import BulkFabric, Groups, directed_load_bps, place
from controller.trees.tree import Tree, TreePlan, TreeRole, rooted
from topology.loads import LinkLoads

FABRICS = {
    "fattree": lambda lab: lab.fat_tree(),
    "avalanche24": lambda lab: lab.avalanche24(),
    "leaf-spine": lambda lab: lab.leaf_spine(),
    "tree": lambda lab: lab.k_ary_tree(),
}


@pytest.mark.parametrize("name", FABRICS)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 9999), dead=st.integers(0, 3))
def test_each_direction_carries_what_the_live_accounting_says(lab, name, seed, dead):
    generator = np.random.default_rng(seed)
    graph = FABRICS[name](lab)
    cables = list(graph.links())
    for number in generator.choice(len(cables), dead, replace=False):
        graph.remove_link(*cables[number][:2])
    fabric = BulkFabric.of(graph)
    sizes = generator.integers(1, 6, 10)
    members = generator.integers(0, len(fabric.tors), sizes.sum())
    groups = Groups.of(np.append(0, np.cumsum(sizes)), members, generator.integers(1, 99, 10), len(fabric.tors))
    sends = generator.integers(1, 50, len(groups.tors)) * (generator.random(len(groups.tors)) < 0.4)
    receives = (generator.random(len(groups.tors)) < 0.7) | (sends == 0)
    placement = place(fabric, groups)
    loads = LinkLoads(graph.links())
    for group in range(groups.count):
        tree = Tree(group, 0, int(groups.rates_bps[group]))
        near: dict = {}
        for i in placement.links_of(group):
            u, v = fabric.links[i]
            near.setdefault(u, set()).add(v)
            near.setdefault(v, set()).add(u)
        if not near:
            continue
        for i in range(groups.offsets[group], groups.offsets[group + 1]):
            node = fabric.tors[groups.tors[i]]
            tree.terminals[node] = (TreeRole.RECEIVER if receives[i] else TreeRole(0)) | (
                TreeRole.SENDER if sends[i] else TreeRole(0)
            )
            if sends[i]:
                tree.rates[node] = int(sends[i])
        root = next(iter(near))
        tree.install(TreePlan(root, rooted(root, near)))
        flows.charge(tree, loads)
    found = directed_load_bps(placement, sends, receives)
    assert found.ravel().tolist() == loads.bps


def test_without_senders_both_directions_carry_the_rate_of_the_group(lab):
    fabric = BulkFabric.of(lab.fat_tree())
    groups = Groups.of([0, 3, 5], [0, 1, 5, 2, 7], [10, 20], 8)
    placement = place(fabric, groups)
    found = directed_load_bps(placement, np.zeros(5, dtype=int), np.ones(5, dtype=bool))
    assert found.tolist() == np.stack([placement.load_bps] * 2, axis=1).tolist()
    assert np.bincount(placement.uses()[1], groups.rates_bps[placement.uses()[0]], 32).tolist() == list(
        placement.load_bps
    )
