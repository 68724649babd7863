"""Links of trees where several cables join two switches: which of them a tree has, and by which ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from controller.trees.cables import told_apart
from controller.trees.tree import Change, Index, Tree
from topology.graph import Graph, Link, NodeId
from topology.loads import LinkLoads

Way: TypeAlias = frozenset[NodeId]
"""A link as two nodes. A cable that has others beside it is two: from either switch to what stands for the cable, its
`Link.ends`; so two cables between two switches hold a cycle as two links of different switches do."""


def ways_of(links: Iterable[Link], graph: Graph) -> Iterator[Way]:
    """Yield the ways of links, of those that have others beside them in `graph` by cable."""
    for link in links:
        if len(graph.cables(link.u, link.v)) > 1:
            yield from ways_of_cable(link)
        else:
            yield frozenset((link.u, link.v))


def ways_of_cable(cable: Link) -> tuple[Way, Way]:
    """Return the ways of a cable that is told apart from those beside it."""
    ends = cable.ends
    return frozenset((cable.u, ends)), frozenset((cable.v, ends))


def is_alive(way: Way, cables: Graph) -> bool:
    """Tell whether packets may run over a way, of a cable whether that very one is there."""
    for node in way:
        if isinstance(node, frozenset):
            (u, u_port), (v, v_port) = node
            cable = cables.cable(u, v, u_port)
            return cable is not None and cable.v_port == v_port
    return cables.has_link(*way)


class TreeWays:
    """The ways of a group's trees as they are, and of what changed of them."""

    def __init__(self, trees: Sequence[Tree], loads: LinkLoads) -> None:
        self._trees = trees
        self._loads = loads
        self._own = _cables_of(trees)

    def now(self) -> set[Way]:
        """Return the ways of all links."""
        if not self._own:
            return {frozenset(link) for tree in self._trees for link in tree.links()}
        return {way for tree in self._trees for u, v in tree.links() for way in self._ways(u, v)}

    def added(self, changes: Iterable[Change | None]) -> set[Way]:
        """Return those that the trees have and had not, or had by another cable."""
        found: set[Way] = set()
        for change in changes:
            if change is None:
                continue
            links = change.added
            if change.left:
                links += tuple((cable.u, cable.v) for cable in change.left if is_link(self._trees, cable))
            if not self._own:
                found.update(map(frozenset, links))
            else:
                for u, v in links:
                    found.update(self._ways(u, v))
        return found

    def removed(self, changes: Iterable[Change | None]) -> set[Way]:
        """Return those that the trees had and have no more."""
        found: set[Way] = set()
        is_any_cable = False
        for change in changes:
            if change is None:
                continue
            links = set(map(frozenset, change.removed))
            for cable in change.left:
                is_any_cable = True
                links.discard(frozenset((cable.u, cable.v)))
                links.update(ways_of_cable(cable))
            found |= links
        return found - self.now() if is_any_cable else found

    def _ways(self, u: NodeId, v: NodeId) -> Iterable[Way]:
        loads = self._loads
        number = self._own[u].get(v) if u in self._own else None
        if number is None or u not in loads.bundles or v not in loads.bundles[u]:
            return (frozenset((u, v)),)
        return ways_of_cable(loads.links[number])


def port_of(
    trees: Sequence[Tree], change: Change | None, graph: Graph, loads: LinkLoads
) -> Callable[[int, int], int]:
    """Return what tells the port at a switch by which trees go, or went before a change, to the next one."""
    left, own = () if change is None else change.left, _cables_of(trees)
    if not own and not left:
        return graph.port
    gone = {(cable.u, cable.v): cable.u_port for cable in left if not is_link(trees, cable)}
    gone |= {(v, u): cable.v_port for cable in left for u, v in ((cable.u, cable.v),) if (u, v) in gone}

    def port(u: int, v: int) -> int:
        number = own[u].get(v) if u in own else None
        port_no = gone.get((u, v)) if number is None else loads.links[number].u_port
        return graph.port(u, v) if port_no is None else port_no

    return port


def is_link(trees: Iterable[Tree], cable: Link) -> bool:
    """Tell whether the switches that a cable joins are neighbours on one of some trees."""
    return any(tree.has_link(cable.u, cable.v) for tree in trees)


def links_of(tree: Tree, loads: LinkLoads) -> Iterable[tuple[Any, ...]]:
    """Return each link of a tree: two switches, followed by the port at both where several cables join these."""
    if tree.cables is None:
        return tree.links()
    cables = told_apart(tree, loads)
    return [(*link, *cables[link].ports) if link in cables else link for link in tree.links()]


def pairs_and_ports(
    links: Iterable[tuple[int, ...]],
) -> tuple[list[tuple[NodeId, NodeId]], dict[tuple[NodeId, NodeId], tuple[int, int]]]:
    """Return links as pairs of switches, and the ports of those that name both after these."""
    pairs: list[tuple[NodeId, NodeId]] = []
    ports: dict[tuple[NodeId, NodeId], tuple[int, int]] = {}
    for u, v, *both in links:
        pairs.append((u, v))
        if both:
            ports[u, v] = (both[0], both[1])
    return pairs, ports


def _cables_of(trees: Iterable[Tree]) -> Index:
    """Return the numbers of the cables of trees that have no switch in common, as far as they remember them."""
    found: Index = {}
    for tree in trees:
        if tree.cables is not None:
            found.update(tree.cables)
    return found
