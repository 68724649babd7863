"""What switches do for a group that is in, over its own tree or a covering one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from controller.effects import Effect
from controller.multicast.apart import with_apart
from controller.multicast.common_forms import CommonForms
from controller.multicast.covers import Cover, Covers
from controller.multicast.duties import group_duties, not_served, where_supported
from controller.multicast.group import Group
from controller.multicast.router_table import RouterTable
from controller.multicast.tree_links import port_of
from controller.rules.compile_shared import GroupDuty, shared_duties, shares
from controller.trees.forest import Forest
from controller.trees.islands import Islands
from controller.trees.tree import Tree


class DutyPlane(Protocol):
    """Who has the groups: what their duties follow from."""

    forest: Forest
    islands: Islands
    covers: Covers
    forms: CommonForms
    routers: RouterTable

    def changed(self, address: bytes, /) -> None:
        """Take note that there is news of a group."""


class TreeDuties:
    """Finds what switches do for groups of a plane; `ofp_versions` are those of the switches."""

    def __init__(self, plane: DutyPlane, ofp_versions: Mapping[int, int]) -> None:
        self._plane = plane
        self._ofp_versions = ofp_versions

    def of(self, group: Group, effects: list[Effect]) -> dict[int, GroupDuty]:
        """Return what each switch is to do with a group that is in; where one cannot, it is refused whole."""
        plane = self._plane
        trees: list[Tree | Cover] = list(plane.islands.trees(group.key))
        port = port_of(trees, None, plane.forest.graph, plane.forest.loads)  # type: ignore[arg-type]
        cover = plane.covers.of(group)
        if cover is not None:
            trees, port = [cover], cover.port
        apart = (group.apart or ()) if group.trees is None else ()
        routers = plane.routers.of_group(group.address, group.senders)
        duties = group_duties(group, trees, port, routers, apart)
        duties, reason = where_supported(group, duties, self._ofp_versions)
        if reason is not None and group.unsupported is None:
            effects.append(not_served(group.address, reason))
        if reason != group.unsupported:
            group.unsupported = reason
            plane.changed(group.address)
        if cover is not None:
            return cover.duties(group.tree_version, duties)
        own = dict[int, GroupDuty](duties)
        if reason is not None:
            return own
        if shares(group.tree_version):
            own = self.shared(group, own)
        return with_apart(group, plane.covers, own, routers) if apart else own

    def shared(self, group: Group, duties: Mapping[int, GroupDuty]) -> dict[int, GroupDuty]:
        """Return what switches do that share the entries of a group where they can; one in a queue shares none."""
        plane = self._plane
        trees: Sequence[Tree] = () if group.queue_id is not None else list(plane.islands.trees(group.key))
        port = port_of(trees, None, plane.forest.graph, plane.forest.loads)
        near = {dpid: nodes for tree in trees for dpid, nodes in tree.adjacent.items()}
        return shared_duties(duties, near, port, plane.forms.masking)  # type: ignore[arg-type]
