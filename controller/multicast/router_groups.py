"""Which groups router ports get: trees follow where routers are, and what they join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from controller.datapath.lanes import Urgency
from controller.effects import Effect
from controller.membership.events import Interest, RouterPortChanged
from controller.multicast.group import Group
from controller.multicast.router_table import RouterTable
from controller.trees.forest import Forest
from controller.trees.tree import Change, TreeRole
from topology.aggregations import Place


class RoutedTrees(Protocol):
    """The groups and trees that routers are served by."""

    @property
    def groups(self) -> Mapping[bytes, Group]:
        """All groups."""

    @property
    def forest(self) -> Forest:
        """The trees."""

    def note_unheard(self, group: Group) -> None:
        """Keep account of the groups with senders that reach no member and no router."""

    def refresh(
        self, group: Group, changes: Sequence[Change | None], now: float, urgency: Urgency = Urgency.PROMPT
    ) -> list[Effect]:
        """Compile a tree again and send the difference."""


class GroupRouting:
    """Keeps the router ports of `table` on the trees of the groups that they get; `has_ports`: it has any."""

    def __init__(self, plane: RoutedTrees) -> None:
        self.table = RouterTable()
        self.has_ports = False
        self._plane = plane

    def port_changed(self, event: RouterPortChanged, now: float, vlan_id: int = 0) -> list[Effect]:
        """Give a router port of a domain the groups that it may have, or no longer."""
        dpid, _, family, *_ = event
        self.table.change(*event, vlan_id)
        self.has_ports = bool(self.table)
        groups = [group for group in self._plane.groups.values() if group.family == family]
        groups = [group for group in groups if group.vlan_id == vlan_id]
        return [effect for group in groups for effect in self._changed(group, dpid, now, Urgency.BULK)]

    def joined(self, place: Place, address: bytes, interest: Interest | None, now: float) -> list[Effect]:
        """Give the routers behind a port what they joined of a group; None: nothing any more."""
        self.table.join(place, address, interest)
        group = self._plane.groups.get(address)
        return [] if group is None else self._changed(group, place[0], now, Urgency.PROMPT)

    def sync(self, tree: Group) -> list[Change]:
        """Keep the switches of router ports on a tree of a group that has members or senders, off any other."""
        routers, forest = self.table.of_group(tree.address), self._plane.forest
        if not routers:
            return []
        if tree.is_wanted:
            return [forest.join(tree.key, dpid, TreeRole.RECEIVER) for dpid in sorted(routers)]
        return [forest.leave(tree.key, dpid, TreeRole.RECEIVER) for dpid in sorted(routers)]

    def _changed(self, group: Group, dpid: int, now: float, urgency: Urgency) -> list[Effect]:
        self._plane.note_unheard(group)
        effects: list[Effect] = []
        for tree in group.all_trees():
            change = None
            if dpid not in self.table.of_group(group.address) and dpid not in group.interests:
                change = self._plane.forest.leave(tree.key, dpid, TreeRole.RECEIVER)
            effects += self._plane.refresh(tree, (change, *self.sync(tree)), now, urgency)
        return effects
