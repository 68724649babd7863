"""How a group gets from the entries that its switches may hold to those of its present tree.

A packet under way may be forwarded by an old entry here and by a new one there. Where both trees, laid over each
other, form a tree, it goes the one way there is. Where they hold a cycle, it may go round, or reach a member twice; a
link that has just died counts, for the packet may have crossed it before. Then the new tree gets its own version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from math import inf

from controller.effects import Edit, Put, Remove
from controller.multicast.covers import Covers
from controller.multicast.group import Group
from controller.multicast.tree_links import TreeWays, is_alive
from controller.rules.compile import TREE_VERSIONS, common_outputs, tree_version_of
from controller.rules.compile_cover import is_covered
from controller.rules.compile_shared import shares
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey
from controller.trees.tree import RECEIVES, SENDS, Change, Tree
from topology.graph import Graph, NodeId, component_roots, holds_cycle
from topology.loads import LinkLoads

UNDER_WAY_S = 0.05
"""How long a packet that has crossed a link may be on its way beyond."""

Stage = list[tuple[int, Edit]]


class Way(Enum):
    """How a group's entries are replaced."""

    IN_PLACE = auto()
    """All edits go out at once: no path in use changes."""

    BESIDE = auto()
    """The new tree stands, under another version, before senders are moved to it and the old one goes."""

    RESTORED = auto()
    """All edits go out at once: switches are yet to be told of any of them."""

    INTERRUPTED = auto()
    """Switches give up what they lose before any takes on what is new: no version is free."""


class Transitions:
    """Chooses the way for each change of a group's tree, and remembers what switches may still hold of former ones.

    Parameters
    ----------
    installer
        Tells what switches have confirmed.
    graph
        The switches and links that trees are built on.
    cables
        The links over which packets may run, also those that trees do without.
    covers
        The covering trees.
    """

    def __init__(self, installer: Installer, graph: Graph, cables: Graph, covers: Covers) -> None:
        self._installer = installer
        self._graph = graph
        self._cables = cables
        self._covers = covers

    def choose(
        self, group: Group, trees: Sequence[Tree], changes: Sequence[Change | None], loads: LinkLoads, now: float
    ) -> Way:
        """Take in how a group's trees or terminals changed, and return the way there; BESIDE gives a new version."""
        self.settle(group, now)
        if is_covered(group.tree_version):
            return Way.IN_PLACE if self._covers.holds(group, group.tree_version, trees) else self._leave_cover(group)
        if not changes:
            return Way.IN_PLACE
        ways = TreeWays(trees, loads)
        removed, added = ways.removed(changes), ways.added(changes)
        has_failed = any(not is_alive(link, self._cables) for link in removed)
        known = group.left_links
        if known is None:
            is_within = not added  # what is left of a tree lies within it
        else:
            is_within = group.left_is_within and not has_failed and added <= known.keys()
        earlier: set[frozenset[NodeId]] = set()
        if known is not None and not is_within:
            earlier = self._in_question(group, now)
        if removed:
            self._leave(group, removed, now)
        group.left_is_within = is_within and not has_failed
        if is_within:
            return Way.IN_PLACE
        left = earlier | removed
        if not left or not trees:
            return Way.IN_PLACE
        if not earlier and not added:
            return Way.IN_PLACE
        links = ways.now()
        if not holds_cycle(links | left):
            group.left_is_within = all(failed_s == inf for failed_s in (group.left_links or {}).values())
            return Way.IN_PLACE
        dead = {link for link in left if not is_alive(link, self._cables)}
        if (added or removed) and holds_cycle(links | left - dead):
            return Way.BESIDE if self.take_version(group) else Way.INTERRUPTED
        if not earlier and _crosses_once(trees, links - added | removed - dead):
            return Way.IN_PLACE
        if not all(self._installer.answers(dpid, now) for tree in trees for dpid in tree.nodes()):  # type: ignore[arg-type]
            return Way.IN_PLACE
        return Way.BESIDE if self.take_version(group) else Way.IN_PLACE

    def _leave_cover(self, group: Group) -> Way:
        """Give a group a tree of its own, which stands before its senders leave the covering tree."""
        if not self.take_version(group, shared=False):
            group.tree_version = 1
            self._covers.note(group.address, 1)
        return Way.BESIDE

    def note(
        self, group: Group, moved: bool, unconfirmed: set[tuple[int, FlowKey]], puts: Stage, removes: Stage
    ) -> None:
        """Remember which entries may for a while be other than desired, where that matters to later trees."""
        gone = {(dpid, edit.key) for dpid, edit in removes if type(edit) is Remove}
        if moved:
            olds = group.old_versions = group.old_versions or {}
            for dpid, key in gone | unconfirmed:
                if key.match.ip_dst is None:  # shared with groups of any version
                    continue
                olds.setdefault(tree_version_of(key.match), set()).add((dpid, key))
        elif group.unconfirmed is not None:
            group.unconfirmed |= gone
            group.unconfirmed |= {(dpid, edit.rule.key) for dpid, edit in puts if type(edit) is Put}

    def _leave(self, group: Group, links: Iterable[frozenset[NodeId]], now: float) -> None:
        """Remember links that a group's tree has left, and since when those that failed carry nothing."""
        left = group.left_links = {} if group.left_links is None else group.left_links
        left.update((link, inf if is_alive(link, self._cables) else now) for link in links)
        group.left_s = now
        group.unconfirmed = group.unconfirmed or set()

    def _in_question(self, group: Group, now: float) -> set[frozenset[NodeId]]:
        """Return the former links over which an entry may lead, or a packet under way may have come.

        One that failed leads nowhere, and is not used again before its ends send nothing over it (`ReturningLinks`).
        """
        return {
            link
            for link, failed_s in (group.left_links or {}).items()
            if now < failed_s + UNDER_WAY_S or is_alive(link, self._cables)
        }

    def settle(self, group: Group, now: float) -> bool:
        """Forget former links that no entry leads to any more and no packet is on; tell whether there are others."""
        if group.unconfirmed is None:
            return False
        if now < group.left_s + UNDER_WAY_S:
            return True
        group.unconfirmed = self._still_unconfirmed(group.unconfirmed)
        if group.unconfirmed:
            return True
        group.left_links = group.unconfirmed = None
        return False

    def take_version(self, group: Group, shared: bool | None = None) -> bool:
        """Give a group's new tree a version that no switch knows of; False where there is none.

        Whether its switches share entries stays as it is where `shared` is None.
        """
        version = self.free_version(group, shares(group.tree_version) if shared is None else shared)
        if version is None:
            return False
        if is_covered(group.tree_version):
            self._covers.note(group.address, version)
        group.tree_version = version
        group.left_links = group.unconfirmed = None
        return True

    def anew(self, group: Group) -> Way:
        """Give a group another version, by which channels come that have been apart: no switch knows theirs."""
        return Way.BESIDE if self.take_version(group) else Way.INTERRUPTED

    def has_former(self, group: Group, version: int) -> bool:
        """Tell whether a switch may still hold former entries of a version of a group's trees."""
        olds = group.old_versions or {}
        olds[version] = self._still_unconfirmed(olds.get(version, ()))
        return bool(olds[version] or olds.pop(version))

    def free_version(self, group: Group, shared: bool = False) -> int | None:
        """Return the next version that no tree of a group has and no switch knows of; None where there is none.

        Where entries are `shared` it is one of those above `TREE_VERSIONS`.
        """
        taken: set[int] = set()
        for tree in group.all_trees():
            olds = tree.old_versions or {}
            for version in list(olds):
                olds[version] = self._still_unconfirmed(olds[version])
                if not olds[version]:
                    del olds[version]
            versions = (tree.tree_version, *olds)
            taken |= {version % TREE_VERSIONS for version in versions if not is_covered(version)}
        for step in range(1, TREE_VERSIONS):
            version = (group.tree_version + step) % TREE_VERSIONS
            if version not in taken and (version or not shared):
                return version + TREE_VERSIONS if shared else version
        return None

    def _still_unconfirmed(self, entries: Iterable[tuple[int, FlowKey]]) -> set[tuple[int, FlowKey]]:
        """Return those of some entries that a switch of the fabric may still hold otherwise than it shall."""
        graph, is_confirmed = self._graph, self._installer.is_confirmed
        return {(dpid, key) for dpid, key in entries if dpid in graph and not is_confirmed(dpid, key)}


def _crosses_once(trees: Sequence[Tree], links: Iterable[frozenset[NodeId]]) -> bool:
    """Tell whether no packet passes between the parts of a broken tree over a dead link and by a new way as well.

    `links` are those of the old tree that live on. So it is without senders, and where these are together in one part
    and all receivers in another: a packet there finds no entry that leads back, and one on the senders' side was sent
    the one way or the other.
    """
    root = component_roots(links)
    terminals = trees[0].terminals
    senders = {root.get(node, node) for node, role in terminals.items() if int(role) & SENDS}
    receivers = {root.get(node, node) for node, role in terminals.items() if int(role) & RECEIVES}
    return not senders or (len(senders) == len(receivers) == 1 and senders != receivers)


def shrink_first(
    dpid: int, rule: FlowEntry, old: FlowEntry | None, is_unconfirmed: bool, first: Stage, second: Stage
) -> None:
    """Have a switch give up what an entry has no more before any takes on what is new; this interrupts."""
    kept = common_outputs(rule, old)
    if old != rule or is_unconfirmed:
        if old is not None:
            first.append((dpid, Put(kept)))
        if old is None or kept != rule:
            second.append((dpid, Put(rule)))
