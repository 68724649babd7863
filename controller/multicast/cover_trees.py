"""Covering trees are built over the fabric as groups' own trees are."""

from __future__ import annotations

from collections.abc import Mapping

from controller.effects import Effect, Notice
from controller.multicast.covers import CoverLink
from controller.multicast.groups import GroupPlane
from controller.multicast.tree_links import port_of
from controller.trees.tree import TreeRole

DRAWS = 8
"""Trees that are drawn for a new one until one passes no switch that cannot be on it."""


class CoverTrees:
    """Builds covering trees over the forest of a plane, and has each be one of the plane's."""

    def __init__(self, plane: GroupPlane) -> None:
        self._plane = plane

    def capacity_bps(self, u: int, v: int) -> float:
        """Return what a link carries, of several the least."""
        graph = self._plane.forest.graph
        return min(cable.capacity_bps for cable in graph.cables(u, v)) if graph.has_link(u, v) else 0.0

    def build(self, ends: frozenset[int], queue_id: int | None) -> tuple[int, Mapping[int, set[int]]] | None:
        """Return the number and links of a new tree; None where it reaches not all, or a switch cannot be on it."""
        if self._plane.forest.is_broken:
            return None
        for draw in range(DRAWS):
            links = self._drawn(ends, f"cover {draw}")
            if not links:
                return None
            if self._plane.forms.covering.issuperset(dpid for link in links for dpid in link[:2]):
                cover = self._plane.covers.add(links, queue_id)
                return cover.number, {dpid: set(near) for dpid, near in cover.adjacent.items()}
        return None

    def _drawn(self, ends: frozenset[int], key: str) -> list[CoverLink]:
        """Return the links of a tree, none where it reaches not all; the `key` decides between equal ways."""
        forest = self._plane.forest
        for dpid in sorted(ends):
            forest.join(key, dpid, TreeRole.RECEIVER)
        tree = forest.tree(key)
        links: list[CoverLink] = []
        if tree is not None and not tree.detached:
            port = port_of([tree], None, forest.graph, forest.loads)
            links = [(u, v, port(u, v), port(v, u)) for u, v in tree.links()]  # type: ignore[arg-type, misc]
        for dpid in sorted(ends):
            forest.leave(key, dpid, TreeRole.RECEIVER)
        return links

    def unfit_told(self) -> list[Effect]:
        """Return notices of switches that may be on no covering tree, of which that is news."""
        forms = self._plane.forms
        effects: list[Effect] = []
        for dpid in forms.changed:
            text = (
                f"Switch {dpid} is on no covering tree, for {forms.unfit[dpid]}: groups there keep their own "
                f"entries, and swap."
            )
            effects.append(Notice("covers-unfit", text, (("dpid", dpid),)))
        forms.changed.clear()
        return effects
