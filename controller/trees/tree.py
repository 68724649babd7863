"""A group's tree: what others read of it, and the two ways in which it grows and shrinks."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import IntFlag
from typing import Final, NamedTuple, TypeAlias

from controller.kernel.hashing import stable_hash
from topology.graph import Link, NodeId, order_key

Key: TypeAlias = Hashable
"""What names a group: its address, or a (source, group) pair."""

Adjacency: TypeAlias = Mapping[NodeId, AbstractSet[NodeId]]
NOBODY: Final[frozenset[NodeId]] = frozenset()

Links: TypeAlias = tuple[tuple[NodeId, NodeId], ...]
Route: TypeAlias = tuple[NodeId, ...]
"""Switches from a new terminal to a tree, of which the last alone is on the tree."""

Index: TypeAlias = dict[NodeId, dict[NodeId, int]]
"""Numbers of directions in `LinkLoads`, by both ends."""


class TreeRole(IntFlag):
    """What the hosts behind a terminal do with the group."""

    RECEIVER = 1
    SENDER = 2


RECEIVES: Final = int(TreeRole.RECEIVER)
SENDS: Final = int(TreeRole.SENDER)
ROLES: Final[tuple[TreeRole, ...]] = (
    TreeRole(0),
    TreeRole.RECEIVER,
    TreeRole.SENDER,
    TreeRole.RECEIVER | TreeRole.SENDER,
)
"""Every role by its number: arithmetic on enum members is too slow for a join."""


class Change(NamedTuple):
    """What an operation did to a tree: links added (from the leaf up) and removed, terminals cut off and back on.

    `left` are the cables that it left of those that had others beside them: those of such links removed, and of links
    that it has by another cable now.
    """

    key: Key
    added: Links = ()
    removed: Links = ()
    detached: tuple[NodeId, ...] = ()
    attached: tuple[NodeId, ...] = ()
    left: tuple[Link, ...] = ()

    @property
    def empty(self) -> bool:
        """Tell whether links and reachability are as they were."""
        return not (self.added or self.removed or self.detached or self.attached or self.left)

    def then(self, second: Change) -> Change:
        """Return the one change that this and the next of the same tree amount to; `second` tells who is cut off."""
        left = self.left
        if second.left:
            # What the second left it had before both only where the first neither took the link nor moved on it.
            taken = {frozenset(link) for link in self.added} | {frozenset(link[:2]) for link in left}
            left += tuple(link for link in second.left if frozenset(link[:2]) not in taken)
        if not (second.added or second.removed):
            return second._replace(added=self.added, removed=self.removed, left=left)
        was, gone = set(map(frozenset, self.added)), set(map(frozenset, self.removed))
        undone, again = set(map(frozenset, second.removed)), set(map(frozenset, second.added))
        return second._replace(
            added=_without(self.added, undone) + _without(second.added, gone),
            removed=_without(self.removed, again) + _without(second.removed, was),
            left=left,
        )


def _without(links: Links, others: Container[frozenset[NodeId]]) -> Links:
    return tuple(link for link in links if frozenset(link) not in others)


class Form:
    """How a tree of the default algorithm came about, which decides how it may grow."""

    NEW: Final = ""
    DESIGNATED: Final = "designated"
    UNIQUE: Final = "unique"
    GENERAL: Final = "general"


class TreePlan(NamedTuple):
    """A tree as it should become; `parent` holds every node but the root, each after its own parent.

    `cables` names the cables of links, of which there may be others; what it does not name keeps its cable, or takes
    the least busy one.
    """

    root: NodeId | None
    parent: dict[NodeId, NodeId]
    form: str = Form.NEW
    core: NodeId | None = None
    aggregations: Mapping[int, NodeId] = {}
    pinned: NodeId | None = None
    fallbacks: int = 0
    cables: Mapping[NodeId, Mapping[NodeId, int]] | None = None


class TreeUses:
    """The directed links that take all that one node sends over a tree, by their numbers in `LinkLoads`.

    `version` counts how often they changed. Where several nodes send, `numbers` are None, and the tree has another
    one of these as soon as its links, receivers or senders are others.
    """

    __slots__ = ("numbers", "version")

    def __init__(self, numbers: set[int] | None) -> None:
        self.numbers = numbers
        self.version = 0

    def turn(self, number: int, step: int) -> None:
        """Take a link in (`step` 1) or out (-1)."""
        if self.numbers is not None:
            (self.numbers.add if step > 0 else self.numbers.discard)(number)
            self.version += 1


class Tree:
    """The tree of one group. Read-only outside `controller.trees`.

    Attributes
    ----------
    key, seed
        The group, and the forest's seed.
    terminals
        Every attachment switch with a member or sender, in order of arrival, with its role.
    detached
        The terminals that are not on the tree, since nothing leads there now.
    fallbacks
        Breadth-first searches that `vsrt-literal` had to fall back to.
    root, parent
        The links, seen from one end: `parent` of every node but `root`, parents first.
    children
        The other way round: the nodes below each node that has some.
    aggregations
        Designated aggregation of each pod; entries whose node has left the tree are stale.
    rates
        Rate in bps of the senders at each sending terminal, and `rate_bps` their sum.
    idle_bps
        Rate accounted in both directions of every link while no sender is on the tree.
    cables
        The number in `LinkLoads` of each of its links, from either end; None where no link of it has several cables.
    uses
        What `flows.uses` found, kept in step with the receivers; None where it is to look again.
    receivers_below, rate_below
        Receiving terminals and sending rate in the subtree of each node, while the tree has a sender.
    """

    __slots__ = (
        "_salt",
        "aggregations",
        "cables",
        "children",
        "core",
        "detached",
        "fallbacks",
        "form",
        "idle_bps",
        "key",
        "parent",
        "pinned",
        "rate_below",
        "rate_bps",
        "rates",
        "receivers_below",
        "root",
        "seed",
        "terminals",
        "uses",
        "version",
    )

    def __init__(self, key: Key, seed: int, idle_bps: int = 0) -> None:
        self.key = key
        self.seed = seed
        self.idle_bps = idle_bps
        self._salt = 0
        self.terminals: dict[NodeId, TreeRole] = {}
        self.detached: set[NodeId] | frozenset[NodeId] = NOBODY
        self.fallbacks = 0
        self.root: NodeId | None = None
        self.parent: dict[NodeId, NodeId] = {}
        self.children: dict[NodeId, list[NodeId]] = {}
        self.cables: Index | None = None
        self.pinned: NodeId | None = None
        self.form = Form.NEW
        self.core: NodeId | None = None
        self.aggregations: dict[int, NodeId] = {}
        self.version = -1
        self.rates: dict[NodeId, int] = {}
        self.rate_bps = 0
        self.uses: TreeUses | None = None
        self.rate_below: dict[NodeId, int] | None = None
        self.receivers_below: dict[NodeId, int] | None = None

    def __repr__(self) -> str:
        return f"<Tree {self.key!r}: {len(self.terminals)} terminals, {len(self.parent)} links>"

    def __contains__(self, node: object) -> bool:
        return node in self.parent or (node == self.root and node is not None)

    @property
    def size(self) -> int:
        """Number of links."""
        return len(self.parent)

    @property
    def receivers(self) -> frozenset[NodeId]:
        """Terminals with a receiver."""
        return frozenset(node for node, role in self.terminals.items() if int(role) & RECEIVES)

    @property
    def senders(self) -> frozenset[NodeId]:
        """Terminals with a sender."""
        return frozenset(node for node, role in self.terminals.items() if int(role) & SENDS)

    @property
    def salt(self) -> int:
        """An odd number that decides the tree's ties: a hash of seed and group."""
        if not self._salt:
            self._salt = stable_hash(self.seed, self.key)
        return self._salt

    def links(self) -> Iterable[tuple[NodeId, NodeId]]:
        """Return each link once, as (node, its neighbour towards the root)."""
        return self.parent.items()

    def nodes(self) -> Iterator[NodeId]:
        """Yield the switches on the tree, its root first."""
        if self.root is not None:
            yield self.root
            yield from self.parent

    def neighbours(self, node: NodeId) -> list[NodeId]:
        """Return the neighbours on the tree of a switch, the one towards the root first."""
        below, above = self.children.get(node, []), self.parent.get(node)
        return [*below] if above is None else [above, *below]

    def has_link(self, u: NodeId, v: NodeId) -> bool:
        """Tell whether two switches are neighbours on the tree."""
        return self.parent.get(u) == v or self.parent.get(v) == u

    @property
    def adjacent(self) -> dict[NodeId, set[NodeId]]:
        """The neighbours of every switch on the tree, made of its links at each call."""
        return adjacency_of(self.root, self.parent)

    def install(self, plan: TreePlan) -> tuple[Links, Links]:
        """Become `plan`; return the links added and removed. Loads and subtree counts are the caller's."""
        old, now = self.parent, plan.parent
        added = tuple((c, p) for c, p in now.items() if old.get(c) != p and old.get(p) != c)
        removed = tuple((c, p) for c, p in old.items() if now.get(c) != p and now.get(p) != c)
        self.root, self.parent, self.children = plan.root, now, children_of(now)
        self.pinned, self.form, self.core = plan.pinned, plan.form, plan.core
        self.aggregations = dict(plan.aggregations)
        self.fallbacks += plan.fallbacks
        return added[::-1], removed[::-1]

    def plan(self) -> TreePlan:
        """Return what this tree is now as a plan."""
        return TreePlan(self.root, dict(self.parent), self.form, self.core, dict(self.aggregations), self.pinned)


def children_of(parent: Mapping[NodeId, NodeId]) -> dict[NodeId, list[NodeId]]:
    """Return the nodes below each node of a rooted tree that has some."""
    children: dict[NodeId, list[NodeId]] = {}
    for node, above in parent.items():
        children.setdefault(above, []).append(node)
    return children


def adjacency_of(root: NodeId | None, parent: Mapping[NodeId, NodeId]) -> dict[NodeId, set[NodeId]]:
    """Return the neighbours of every node of a rooted tree."""
    adjacent: dict[NodeId, set[NodeId]] = {} if root is None else {root: set()}
    for node, above in parent.items():
        adjacent[above].add(node)
        adjacent[node] = {above}
    return adjacent


def adjacency(links: Iterable[tuple[NodeId, NodeId]]) -> dict[NodeId, set[NodeId]]:
    """Return the neighbours of every node on some links."""
    adjacent: dict[NodeId, set[NodeId]] = {}
    for u, v in links:
        adjacent.setdefault(u, set()).add(v)
        adjacent.setdefault(v, set()).add(u)
    return adjacent


def spanning(adjacent: Adjacency, terminals: Iterable[NodeId]) -> tuple[NodeId | None, dict[NodeId, NodeId] | None]:
    """Return links as a tree, rooted at the first terminal on them; no parents where they are none over all."""
    ends = list(terminals)
    root = next((node for node in ends if node in adjacent), None)
    parent = {} if root is None else rooted(root, adjacent)
    spans = all(node == root or node in parent for node in ends)
    is_tree = spans and len(parent) == sum(map(len, adjacent.values())) // 2
    return root, parent if is_tree else None


def rooted(root: NodeId, adjacent: Adjacency) -> dict[NodeId, NodeId]:
    """Return the parent of every node that `root` reaches over `adjacent`, parents first, in a fixed order."""
    parent: dict[NodeId, NodeId] = {}
    queue = deque([root])
    while queue:
        node = queue.popleft()
        above = parent.get(node)
        neighbours = adjacent[node]
        for neighbour in sorted(neighbours, key=order_key) if len(neighbours) > 1 else neighbours:
            if neighbour != above and neighbour not in parent and neighbour != root:
                parent[neighbour] = node
                queue.append(neighbour)
    return parent


def placing_order(tree: Tree) -> tuple[int, int]:
    """Sort key that has the tree first that is hardest to place: the largest rate, ties by seeded hash."""
    return (-(tree.rate_bps or tree.idle_bps), tree.salt)


def terminals_served(tree: Tree, components: Mapping[NodeId, int]) -> list[NodeId]:
    """Return the terminals of the component worth a tree: one with a sender, most terminals, in use.

    `components` has the number of the component of each switch that there is.
    """
    groups: dict[int, list[NodeId]] = {}
    for node in tree.terminals:
        if node in components:
            groups.setdefault(components[node], []).append(node)
    if len(groups) <= 1:
        return next(iter(groups.values()), [])

    def worth(nodes: list[NodeId]) -> tuple[bool, int, int]:
        sends = any(int(tree.terminals[node]) & SENDS for node in nodes)
        return (sends, len(nodes), sum(node in tree for node in nodes))

    return max(groups.values(), key=worth)


def prune_leaves(adjacent: dict[NodeId, set[NodeId]], keep: Mapping[NodeId, object] | set[NodeId]) -> None:
    """Take leaves that are not in `keep` off a tree until none is left."""
    leaves = [node for node, neighbours in adjacent.items() if len(neighbours) <= 1 and node not in keep]
    while leaves:
        node = leaves.pop()
        for neighbour in adjacent.pop(node):
            adjacent[neighbour].discard(node)
            if len(adjacent[neighbour]) == 1 and neighbour not in keep:
                leaves.append(neighbour)
