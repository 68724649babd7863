"""Covering trees: which groups that are silent are under which, so that they need no entries of their own inside.

A group may be under any tree that has all its switches. What it sends then reaches switches that none of its members
is at, copies in vain, until it has a tree of its own again. Each group is charged, on every link that would carry
such copies, with what it sends when it does, times the chance that it is sending; a group is under a tree only where
the charges of no link are above their bound with its own. That one who was silent for I seconds sends in the next few
is taken to be as likely as these are long beside all of them: 3 / (3 + I).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from math import ceil
from typing import Generic, NamedTuple, TypeAlias

from controller.overcommit.draws import G

MOST_COVERS = 64
"""Covering trees at most: each is an entry of its own at every switch inside that it passes."""

LEAST_GROUPS = 8
"""Groups for which a tree is made at least: fewer would save little more than it costs."""

GATHERED = 64
"""Groups that a tree is made for at most; others that lie within it may be under it as well."""

FULL_PART, OLDEST_PART = 0.9, 0.1
"""Part of what a link may carry in vain from which groups make room, and the part of its groups that do."""

REACTION_S = 3.0
"""How long a group that sends again stays under its covering tree: a reading of counters, and the way to its own."""

Adjacency: TypeAlias = Mapping[int, AbstractSet[int]]
"""A tree: the switches next to each switch on it."""

Direction: TypeAlias = tuple[int, int]
"""A link, from one switch to the other."""


class CoverNeed(NamedTuple):
    """A group: what senders at each switch are expected to send, in bits per second, and switches with members.

    Its packets wait in the queue `queue_id`, None where there are no queues. Only groups of one
    queue have a tree in common.
    """

    senders: Mapping[int, int]
    members: frozenset[int]
    queue_id: int | None = None

    @property
    def switches(self) -> frozenset[int]:
        """The switches with senders or members."""
        return self.members.union(self.senders)


class CoverTree(NamedTuple):
    """A covering tree, the switches with hosts that it was made for, and the queue of all packets on it."""

    adjacent: Adjacency
    ends: frozenset[int]
    queue_id: int | None = None


def sending_part(silence_s: float) -> float:
    """Return the chance that a group is sending under a covering tree which was silent for so long, 0 to 1."""
    return REACTION_S / (REACTION_S + max(0.0, silence_s))


def copies_in_vain(tree: Adjacency, need: CoverNeed) -> Counter[Direction]:
    """Return what links of a tree carry of a group to where no member is, in bits per second.

    Parameters
    ----------
    tree
        A tree that has all switches of the group.
    need
        The group. Its own switches send only towards members; all others by every link.
    """
    found: Counter[Direction] = Counter()
    own = need.switches
    for sender, rate_bps in need.senders.items():
        order, above = [sender], {sender: sender}
        for at in order:
            for neighbour in tree[at]:
                if neighbour != above[at]:
                    above[neighbour] = at
                    order.append(neighbour)
        useful = set()
        for at in reversed(order):
            if at in need.members or at in useful:
                useful.add(above[at])
        reached = {sender}
        for at in order[1:]:
            if above[at] not in reached:
                continue
            is_useful = at in need.members or at in useful
            if is_useful or above[at] not in own:
                reached.add(at)
                if not is_useful:
                    found[above[at], at] += rate_bps
    return found


class CoverChoice(Generic[G]):
    """Which groups are under which covering trees.

    Parameters
    ----------
    capacity_bps
        What a link carries, by its two switches.

    Attributes
    ----------
    trees
        The trees by number.
    under
        The number of the tree of each group that is under one.
    charges
        What each link is expected to carry in vain of all groups, in bits per second.
    """

    def __init__(self, capacity_bps: Callable[[int, int], float]) -> None:
        self.trees: dict[int, CoverTree] = {}
        self.under: dict[G, int] = {}
        self._groups: dict[int, dict[G, None]] = {}
        self.charges: Counter[Direction] = Counter()
        self._capacity_bps = capacity_bps
        self._spurious_part = 0.0
        self._charged: dict[G, Counter[Direction]] = {}
        self._entered: dict[G, None] = {}

    def use(self, spurious_pct: float) -> None:
        """Have links carry at most this part of what they can in vain, in percent."""
        self._spurious_part = spurious_pct / 100

    def choose(
        self,
        wanted: Mapping[G, CoverNeed],
        build: Callable[[frozenset[int], int | None], tuple[int, Adjacency] | None],
        may_have: Callable[[G, int], bool],
    ) -> dict[G, int]:
        """Have some groups be under trees, and return which; the others are under none.

        Each is under the tree with the fewest switches beside its own, of those whose links have room for its copies
        in vain. For groups that none takes, others are made as long as enough of them can be under each.

        Parameters
        ----------
        wanted
            The groups, those first that are to be under one rather than others.
        build
            Returns the number and the links of a new tree to some switches, for a queue; None where there is none.
        may_have
            Tells whether a group may be under a tree, for all other reasons.
        """
        found: dict[G, int] = {}
        left: dict[G, CoverNeed] = {}
        for group, need in wanted.items():
            number = self._find(group, need, may_have)
            if number is None:
                left[group] = need
            else:
                found[group] = number
        while len(left) >= LEAST_GROUPS and len(self.trees) < MOST_COVERS:
            ends, gathered = gather(left)
            queue_id = left[gathered[0]].queue_id
            built = build(ends, queue_id) if len(gathered) >= LEAST_GROUPS else None
            for group in gathered:
                need = left.pop(group)
                if built is not None:
                    self.trees.setdefault(built[0], CoverTree(built[1], ends, queue_id))
                    if self._place(group, need, built[0], may_have):
                        found[group] = built[0]
            if built is not None and sum(number == built[0] for number in found.values()) < LEAST_GROUPS:
                self.drop(built[0])
                found = {group: number for group, number in found.items() if number != built[0]}
        return found

    def _find(self, group: G, need: CoverNeed, may_have: Callable[[G, int], bool]) -> int | None:
        """Have a group be under the tree that has the fewest switches beside its own; None where no tree takes it."""
        switches = need.switches
        fit = [
            number
            for number, tree in self.trees.items()
            if tree.queue_id == need.queue_id and switches <= tree.adjacent.keys()
        ]
        fit.sort(key=lambda number: (len(self.trees[number].ends - switches), number))
        return next((number for number in fit if self._place(group, need, number, may_have)), None)

    def _place(self, group: G, need: CoverNeed, number: int, may_have: Callable[[G, int], bool]) -> bool:
        charge = copies_in_vain(self.trees[number].adjacent, need)
        if not self._has_room(charge) or not may_have(group, number):
            return False
        self._charge(group, number, charge)
        return True

    def _has_room(self, charge: Mapping[Direction, int]) -> bool:
        part, capacity_bps = self._spurious_part, self._capacity_bps
        return all(self.charges[link] + rate_bps <= part * capacity_bps(*link) for link, rate_bps in charge.items())

    def _charge(self, group: G, number: int, charge: Counter[Direction]) -> None:
        self.under[group] = number
        self._groups.setdefault(number, {})[group] = None
        self._charged[group] = charge
        self._entered.setdefault(group, None)
        self.charges.update(charge)

    def note(self, group: G, need: CoverNeed, number: int) -> bool:
        """Take in that a group is under a tree, and what it needs there now; tell whether it keeps to the bound."""
        self._discharge(group)
        charge = copies_in_vain(self.trees[number].adjacent, need)
        is_within = self._has_room(charge)
        self._charge(group, number, charge)
        return is_within

    def leave(self, group: G) -> None:
        """Take in that a group is under no tree."""
        self._discharge(group)
        self._entered.pop(group, None)

    def _discharge(self, group: G) -> None:
        number = self.under.pop(group, None)
        if number is not None:
            del self._groups[number][group]
            charge = self._charged.pop(group)
            self.charges.subtract(charge)
            for link in charge:
                if not self.charges[link]:
                    del self.charges[link]

    def oldest_of_full(self) -> list[G]:
        """Return groups that make room where links carry nearly what they may in vain: those under trees for longest.

        Of each such link that is a tenth of its groups, one at least.
        """
        part, capacity_bps = self._spurious_part, self._capacity_bps
        full: dict[Direction, list[G]] = {
            link: [] for link, bps in self.charges.items() if bps >= FULL_PART * part * capacity_bps(*link)
        }
        for group in self._entered if full else ():
            for link in self._charged[group]:
                if link in full:
                    full[link].append(group)
        oldest = (groups[: ceil(OLDEST_PART * len(groups))] for groups in full.values())
        return list(dict.fromkeys(group for groups in oldest for group in groups))

    def drop(self, number: int) -> None:
        """Forget a tree, and that groups are under it."""
        self.trees.pop(number, None)
        for group in list(self._groups.get(number, ())):
            self.leave(group)
        self._groups.pop(number, None)

    def unused(self) -> Iterator[int]:
        """Yield the trees that no group is under."""
        return (number for number in list(self.trees) if not self._groups.get(number))


def gather(needs: Mapping[G, CoverNeed]) -> tuple[frozenset[int], list[G]]:
    """Return switches for a tree to have, and groups that lie within: the first, and those that add the fewest.

    All have the queue of the first.
    """
    first = next(iter(needs))
    left = {group: need.switches for group, need in needs.items() if need.queue_id == needs[first].queue_id}
    ends, gathered = left.pop(first), [first]
    while left and len(gathered) < GATHERED:
        group = min(left, key=lambda each: len(left[each] - ends))
        ends |= left.pop(group)
        gathered.append(group)
    return ends, gathered
