"""Covering trees as switches have them, and which groups may be under each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from controller.multicast.group import Group
from controller.rules.compile import TREE_VERSIONS, SwitchDuty
from controller.rules.compile_cover import HIGHEST_COVER, CoverDuty, cover_of, is_covered
from controller.rules.compile_shared import GroupDuty
from controller.trees.tree import Tree
from topology.graph import Graph

CoverLink = tuple[int, int, int, int]
"""A link of a covering tree: two switches, and the port at each."""


class Cover(NamedTuple):
    """A covering tree, which stays as it is as long as it is used: its links, and what each switch has of them."""

    number: int
    links: tuple[CoverLink, ...]
    adjacent: Mapping[int, AbstractSet[int]]
    ports: Mapping[tuple[int, int], int]

    def port(self, dpid: int, neighbour: int) -> int:
        """Return the port at a switch of the tree that leads to the next one."""
        return self.ports[dpid, neighbour]

    def duties(self, tree_version: int, duties: Mapping[int, SwitchDuty]) -> dict[int, GroupDuty]:
        """Return what switches do for a group under the tree, of what they would over a tree of its own like it.

        Those without its hosts send by all links of the tree, and where they have but one do nothing.
        """
        found: dict[int, GroupDuty] = {}
        for dpid, duty in duties.items():
            if has_hosts(duty):
                found[dpid] = duty
            elif len(self.adjacent[dpid]) > 1:
                ports = tuple(sorted(self.ports[dpid, near] for near in self.adjacent[dpid]))
                found[dpid] = CoverDuty(tree_version, (), (), ports)
        return found


def has_hosts(duty: GroupDuty) -> bool:
    """Tell whether a switch has hosts of a group, or routers, by what it does for it."""
    return bool(duty.senders) or any(channel.host_ports for channel in duty.channels)


def cover_with(number: int, links: Iterable[CoverLink]) -> Cover:
    """Return a covering tree with these links."""
    links = tuple(links)
    adjacent: dict[int, set[int]] = {}
    ports: dict[tuple[int, int], int] = {}
    for u, v, u_port, v_port in links:
        adjacent.setdefault(u, set()).add(v)
        adjacent.setdefault(v, set()).add(u)
        ports[u, v], ports[v, u] = u_port, v_port
    return Cover(number, links, adjacent, ports)


class Covers:
    """The covering trees there are, by number; `speaking_1_3` are the switches that may be on them.

    Attributes
    ----------
    trees
        The trees in use.
    changed
        The numbers of those that are new, or no more, and of which the log was not told.
    is_watched
        Whether there may be trees, or groups that are to leave one, so that somebody has to look after them.
    was_put_back
        Whether groups were put back under trees, of which nobody has taken note.
    """

    def __init__(self, speaking_1_3: AbstractSet[int]) -> None:
        self.trees: dict[int, Cover] = {}
        self.changed: dict[int, None] = {}
        self.is_watched = self.was_put_back = False
        self._speaking_1_3 = speaking_1_3
        self._last = 0

    def of(self, group: Group) -> Cover | None:
        """Return the tree that a group is under, None where it has its own."""
        return self.trees.get(cover_of(group.tree_version)) if is_covered(group.tree_version) else None

    def holds(self, tree_version: int, trees: Sequence[Tree]) -> bool:
        """Tell whether a group, whose own trees are these, may be under the covering tree of its version."""
        cover = self.trees.get(cover_of(tree_version))
        if cover is None or not cover.adjacent.keys() <= self._speaking_1_3:
            return False
        return all(tree.terminals.keys() <= cover.adjacent.keys() for tree in trees)

    def add(self, links: Iterable[CoverLink]) -> Cover:
        """Have another tree, by a number that none has had for long."""
        number = self._last
        while number == self._last or number in self.trees:
            number = number % HIGHEST_COVER + 1
        self._last = number
        cover = self.trees[number] = cover_with(number, links)
        self.changed[number] = None
        self.is_watched = True
        return cover

    def remove(self, number: int) -> None:
        """Have a tree no more: groups that are under it get their own as soon as they are compiled."""
        if self.trees.pop(number, None) is not None:
            self.changed[number] = None

    def restore(self, covers: Mapping[int, tuple[CoverLink, ...]]) -> None:
        """Have the trees of an earlier run, or of another controller."""
        for number, links in covers.items():
            self.trees[number] = cover_with(number, links)
            self._last = max(self._last, number)
            self.is_watched = True

    def adopted(self, group: Group, tree_version: int, trees: Sequence[Tree]) -> int:
        """Return the version of a group that had this in an earlier run: of its own tree where no cover has it."""
        if not is_covered(tree_version):
            return tree_version
        if group.is_out or group.trees is not None or not self.holds(tree_version, trees):
            return tree_version % TREE_VERSIONS
        self.was_put_back = True
        return tree_version

    def broken(self, graph: Graph) -> list[int]:
        """Return the trees of which a link is no more."""
        return [cover.number for cover in self.trees.values() if any(_is_gone(link, graph) for link in cover.links)]


def _is_gone(link: CoverLink, graph: Graph) -> bool:
    u, v, u_port, v_port = link
    cable = graph.cable(u, v, u_port) if u in graph and v in graph and graph.has_link(u, v) else None
    return cable is None or cable.v_port != v_port
