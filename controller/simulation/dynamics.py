"""Groups over time: joins, leaves and failures one after the other, and what each of them changes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from controller.simulation.switch_state import NO_TRUNKS, trunks
from controller.trees.algorithms import DEFAULT_ALGORITHM
from controller.trees.forest import Forest
from controller.trees.tree import Change, Key, Tree, TreeRole
from topology.graph import Graph, NodeId, NodeKind, holds_cycle


class EventKind(StrEnum):
    """What may happen."""

    JOIN = "join"
    LEAVE = "leave"
    LINK_DOWN = "link_down"
    LINK_UP = "link_up"
    SWITCH_DOWN = "switch_down"
    SWITCH_UP = "switch_up"


MEMBER_EVENTS = frozenset({EventKind.JOIN, EventKind.LEAVE})
LINK_EVENTS = frozenset({EventKind.LINK_DOWN, EventKind.LINK_UP})


class GroupEvent(NamedTuple):
    """One event: `group` and `member` of a join or leave, ends `u` and `v` of a link, or the switch `u`.

    `rate_bps` of a join is the group's rate from then on; None leaves it.
    """

    time_s: float
    kind: EventKind
    group: Key | None = None
    member: NodeId | None = None
    u: NodeId | None = None
    v: NodeId | None = None
    rate_bps: float | None = None


class EventOutcome(NamedTuple):
    """What one event changed.

    Attributes
    ----------
    applied
        False where the event found things as it would have left them: the member was there already, the link was up.
    trees_changed
        Trees that got or lost a link.
    members_cut_off, members_restored
        Members that nothing leads to since this event, and those that are reached again.
    links_added, links_removed
        Of all trees together.
    rules_put, rules_removed
        Flow entries that the controller writes (new ones and changed ones) and removes, in all switches.
    """

    applied: bool = True
    trees_changed: int = 0
    members_cut_off: int = 0
    members_restored: int = 0
    links_added: int = 0
    links_removed: int = 0
    rules_put: int = 0
    rules_removed: int = 0


IGNORED = EventOutcome(applied=False)


class Dynamics:
    """A fabric in which members come and go and links fail, over the live controller's trees.

    Every member receives and may send: a group is accounted with its rate in both directions of its tree's links.

    Parameters
    ----------
    graph
        The switches (see `switch_graph`); copied.
    homes
        The switch of every host (see `homes_of`). A switch may be a member itself.
    algorithm, seed, default_rate_bps
        As in `Forest`.
    rebalances
        Whether the trees are spread anew after every failure and return (`Forest.rebalance`), as part of that event.

    Attributes
    ----------
    forest
        The trees. Read-only.
    members
        Per group and switch, the members there.
    entries
        Flow entries of every switch that has held any.
    peak_utilisation
        Load over capacity of the busiest link at its busiest time so far, exact; `peak_entries` likewise.
    """

    def __init__(
        self,
        graph: Graph,
        homes: Mapping[NodeId, NodeId],
        algorithm: str = DEFAULT_ALGORITHM,
        seed: int = 0,
        default_rate_bps: float = 1e6,
        rebalances: bool = False,
    ) -> None:
        self._rebalances = rebalances
        self._fabric = graph.copy()
        self._homes = homes
        self.forest = Forest(graph.copy(), algorithm, seed, default_rate_bps)
        self.members: dict[Key, dict[NodeId, set[NodeId]]] = {}
        self.entries: dict[NodeId, int] = {}
        self.peak_utilisation = 0.0
        self.peak_entries = 0
        self._held: dict[Key, dict[NodeId, frozenset[NodeId]]] = {}
        self._cut: dict[Key, frozenset[NodeId]] = {}
        self._links_down: set[frozenset[NodeId]] = set()
        self._switches_down: set[NodeId] = set()

    def step(self, event: GroupEvent) -> EventOutcome:
        """Apply one event (KeyError for a member, switch or link that the fabric does not have)."""
        kind = event.kind
        if kind is EventKind.JOIN:
            return self._join(event.group, event.member, event.rate_bps)
        if kind is EventKind.LEAVE:
            return self._leave(event.group, event.member)
        if kind in LINK_EVENTS:
            self._fabric.link(event.u, event.v)
            return self._link(event.u, event.v, kind is EventKind.LINK_DOWN)
        self._fabric.kind(event.u)
        return self._switch(event.u, kind is EventKind.SWITCH_DOWN)

    def cut_off(self) -> int:
        """Return how many members nothing leads to now."""
        return sum(len(self.members[key][node]) for key, nodes in self._cut.items() for node in nodes)

    def loads_are_exact(self) -> bool:
        """Tell whether the accounted loads are those of the trees, counted from nothing."""
        loads = self.forest.loads
        counted = [0] * len(loads.bps)
        for tree in self.forest:
            for u, v in tree.links():
                number = loads.index[u][v]
                counted[number] += tree.idle_bps
                counted[number ^ 1] += tree.idle_bps
        return counted == loads.bps

    # Members.

    def _home(self, member: NodeId) -> NodeId:
        home = self._homes.get(member)
        if home is None:
            self._fabric.kind(member)
            return member
        return home

    def _join(self, key: Key, member: NodeId, rate_bps: float | None) -> EventOutcome:
        node = self._home(member)
        places = self.members.setdefault(key, {})
        here = places.setdefault(node, set())
        if member in here:
            return IGNORED
        here.add(member)
        if rate_bps is not None:
            self._set_rate(key, rate_bps)
        change = self.forest.join(key, node, TreeRole.RECEIVER)
        return self._outcome((change,), node, joined=True)

    def _leave(self, key: Key, member: NodeId) -> EventOutcome:
        node = self._home(member)
        places = self.members.get(key, {})
        here = places.get(node, set())
        if member not in here:
            return IGNORED
        here.discard(member)
        if here:
            return self._outcome((Change(key),), node)
        change = self.forest.leave(key, node, TreeRole.RECEIVER)
        outcome = self._outcome((change,), node)
        del places[node]
        if not places:
            del self.members[key]
        return outcome

    def _set_rate(self, key: Key, rate_bps: float) -> None:
        self.forest.set_group_rate(key, rate_bps)
        tree = self.forest.tree(key)
        if tree is not None:
            self._note_utilisation(tree.links())

    # The fabric.

    def _link(self, u: NodeId, v: NodeId, fails: bool) -> EventOutcome:
        link = frozenset((u, v))
        if fails == (link in self._links_down):
            return IGNORED
        present = not link & self._switches_down
        if fails:
            self._links_down.add(link)
            return self._fabric_changed(self.forest.remove_link(u, v) if present else [])
        self._links_down.discard(link)
        return self._fabric_changed(self.forest.add_link(*self._fabric.link(u, v)) if present else [])

    def _switch(self, node: NodeId, fails: bool) -> EventOutcome:
        if fails == (node in self._switches_down):
            return IGNORED
        if fails:
            self._switches_down.add(node)
            return self._fabric_changed(self.forest.remove_node(node))
        self._switches_down.discard(node)
        changes = self.forest.add_node(node, self._fabric.kind(node))
        for near in self._fabric.neighbours(node):
            if near not in self._switches_down and frozenset((node, near)) not in self._links_down:
                changes += self.forest.add_link(*self._fabric.link(node, near))
        return self._fabric_changed(changes)

    def _fabric_changed(self, changes: list[Change]) -> EventOutcome:
        if self._rebalances:
            changes = [*changes, *self.forest.rebalance()]
        return self._outcome(_by_tree(changes))

    # Accounting.

    def _outcome(self, changes: Iterable[Change], node: NodeId | None = None, joined: bool = False) -> EventOutcome:
        """Sum changes up, one per tree; at `node` a member came or went."""
        trees = cut_off = restored = added = removed = puts = removes = 0
        for change in changes:
            key = change.key
            tree = self.forest.tree(key)
            if change.added or change.removed:
                trees += 1
                added += len(change.added)
                removed += len(change.removed)
                self._note_utilisation(change.added)
            put, gone = self._rules(tree, change, node)
            puts += put
            removes += gone
            was = self._cut.get(key)
            if was or (tree is not None and tree.detached):
                lost, back = self._reach(key, tree, was or frozenset())
                # One more that joins where members wait already is cut off from the start.
                cut_off += lost + (joined and was is not None and node in was and node in self._cut.get(key, ()))
                restored += back
        return EventOutcome(True, trees, cut_off, restored, added, removed, puts, removes)

    def _note_utilisation(self, links: Iterable[tuple[NodeId, NodeId]]) -> None:
        loads = self.forest.loads
        for u, v in links:
            number = loads.index[u][v]
            utilisation = loads.bps[number] / loads.capacity_bps[number]
            if utilisation > self.peak_utilisation:
                self.peak_utilisation = utilisation

    def _reach(self, key: Key, tree: Tree | None, was: frozenset[NodeId]) -> tuple[int, int]:
        """Return how many members were cut off and restored where the terminals `was` were cut off before."""
        now = frozenset() if tree is None else frozenset(tree.detached)
        if now:
            self._cut[key] = now
        else:
            self._cut.pop(key, None)
        places = self.members[key]
        return sum(len(places[at]) for at in now - was), sum(len(places[at]) for at in was - now)

    def _rules(self, tree: Tree | None, change: Change, node: NodeId | None) -> tuple[int, int]:
        """Return how many flow entries are put and removed, and count them in their switches."""
        key = change.key
        before = self._held.get(key, {})
        if tree is None or tree.root is None:
            self._count(before, -1)
            self._held.pop(key, None)
            return 0, len(before)
        if change.added and change.removed and self._closes_loop(tree, change):
            # Old and new tree side by side: entries of another tree version throughout.
            now = trunks(tree)
            self._count(before, -1)
            self._count(now, 1)
            self._held[key] = now
            return len(now), len(before)
        whole = None if tree.pinned is None else trunks(tree)
        touched: set[NodeId] = set() if node is None else {node}
        if whole is None:
            # Every leaf receives, so that each link is an output at both ends. What differs are the ends of links
            # that moved, and the only switch of a tree without links.
            for link in chain(change.added, change.removed):
                touched.update(link)
            touched.update(change.detached, change.attached)
        else:
            touched.update(at for at in whole.keys() | before.keys() if whole.get(at) != before.get(at))
        holding: Container[NodeId] = tree if whole is None else whole
        put = [at for at in touched if at in holding]
        gone = [at for at in touched if at in before and at not in holding]
        self._count([at for at in put if at not in before], 1)
        self._count(gone, -1)
        if whole is None:
            before.update(dict.fromkeys(put, NO_TRUNKS))
            for at in gone:
                del before[at]
        self._held[key] = before if whole is None else whole
        return len(put), len(gone)

    def _closes_loop(self, tree: Tree, change: Change) -> bool:
        graph = self.forest.graph
        links = {frozenset(link) for link in tree.links()}
        links.update(frozenset(link) for link in change.removed if graph.has_link(*link))
        return holds_cycle(links)

    def _count(self, nodes: Iterable[NodeId], by: int) -> None:
        entries = self.entries
        for node in nodes:
            held = entries[node] = entries.get(node, 0) + by
            if held > self.peak_entries:
                self.peak_entries = held


def _by_tree(changes: Iterable[Change]) -> list[Change]:
    """Return one change per tree; `detached` and `attached` name whoever was either at some time."""
    merged: dict[Key, Change] = {}
    for change in changes:
        first = merged.get(change.key)
        if first is not None:
            change = first.then(change)._replace(
                detached=first.detached + change.detached, attached=first.attached + change.attached
            )
        merged[change.key] = change
    return list(merged.values())


def homes_of(graph: Graph) -> dict[NodeId, NodeId]:
    """Return the switch of every host, the lowest one where it has several; hosts without one are left out."""
    found: dict[NodeId, NodeId] = {}
    for host in graph.hosts():
        near = [node for node in graph.neighbours(host) if graph.kind(node) is not NodeKind.HOST]
        if near:
            found[host] = near[0]
    return found
