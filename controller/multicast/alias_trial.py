"""Whether one more tree would help a group: it is built in the forest, looked at, and taken away again."""

from __future__ import annotations

from controller.multicast.alias_measures import fullest, uses_of
from controller.multicast.alias_moves import AliasedPlane
from controller.multicast.aliases import AliasTrees
from controller.multicast.group import Group
from controller.service_classes.measures import is_gain
from controller.service_classes.pool import MAX_ALIASES
from controller.service_classes.split import split
from controller.trees.islands import AliasKey
from controller.trees.tree import TreeRole

TRIAL = MAX_ALIASES + 1
"""The number of a tree that is only tried."""


class AliasTrial:
    """Tries further trees of groups. What the forest accounts is afterwards as it was before."""

    def __init__(self, trees: AliasTrees, plane: AliasedPlane) -> None:
        self._trees = trees
        self._plane = plane

    def would_gain(self, group: Group) -> bool:
        """Tell whether one more tree would lower the load of the fullest link of a group's trees by enough.

        It is built with the senders that it would get.
        """
        forest = self._plane.forest
        trees = [tree for each in group.all_trees() if (tree := forest.tree(each.key)) is not None]
        flows, held = self._trees.flows.flows(group)
        usable = [tree.number for tree in group.all_trees() if self._trees.is_usable(tree)]
        rates = {flow: rate for flow, rate in flows.items() if held[flow] in usable and rate}
        found = split(rates, [*usable, TRIAL], held, (TRIAL,))
        moved = {flow for flow, to in found.items() if to != held[flow]}
        if not moved or self._plane.transitions.free_version(group) is None:
            return False
        before, key = fullest(uses_of(trees, forest.loads), forest.loads), AliasKey(group.address, TRIAL)
        dpids = sorted({flow.dpid for flow in moved})
        accounted = [
            (tree.key, node, tree.rates[node])
            for each in group.all_trees()
            for tree in self._plane.islands.trees(each.key)
            for node in dpids
            if node in tree.rates
        ]
        for each in group.all_trees():
            stays = [flow for flow in rates if held[flow] == each.number and flow not in moved]
            for dpid in dpids if each.number in usable else ():
                self._trees.moves.set_rate(each, dpid, sum(rates[flow] for flow in stays if flow.dpid == dpid))
        for dpid in dpids:
            forest.join(key, dpid, TreeRole.SENDER)
            forest.set_rate(key, dpid, sum(rates[flow] for flow in moved if flow.dpid == dpid))
        for dpid in sorted(group.interests):
            forest.join(key, dpid, TreeRole.RECEIVER)
        forest.adopt(key, ())
        trial = forest.tree(key)
        assert trial is not None
        after = fullest(uses_of([*trees, trial], forest.loads), forest.loads)
        for node in list(trial.terminals):
            forest.leave(key, node, TreeRole.RECEIVER | TreeRole.SENDER)
        for name, node, rate_bps in accounted:
            forest.set_rate(name, node, rate_bps)
        return is_gain(before, after)
