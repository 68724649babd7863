"""Which trees move to which groups: for goals that are missed, else to lower waiting altogether."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from controller.service_classes.measures import can_spare_tree

MISSED_INDEX = 1.0
"""Performance index above which a class misses its goal."""

SIGNIFICANT_QUEUE_SHARE = 0.1
"""Part of a class's delay that it must spend in queues for a tree to be looked for."""

GROUPS_PER_CLASS = 3
"""Groups of a class, the most delayed ones, that are helped in a pass at most."""

RECEIVER_QUEUES = (0.5, 0.25)
"""Waiting packets above which a group may get a tree without a goal; the second where none is above the first."""

DONOR_QUEUE_SHARE = 0.5
"""Part of the receiver's queue that a donor's may have at most, where no goal is at stake."""


class TransferPace(NamedTuple):
    """How soon things are looked at and done again, in seconds.

    Attributes
    ----------
    goal_s, efficiency_s
        Between two passes of each algorithm.
    rest_s, hurried_rest_s
        After a group got or gave a tree; the second where a class more important than the last one helped is helped.
    window_s, hurried_window_s
        Over which measures are averaged; 0 for one sample.
    """

    goal_s: float
    efficiency_s: float
    rest_s: float
    hurried_rest_s: float
    window_s: float
    hurried_window_s: float


PACES: Mapping[str, TransferPace] = {
    "steady": TransferPace(30.0, 60.0, 60.0, 30.0, 60.0, 30.0),
    "fast": TransferPace(10.0, 10.0, 10.0, 10.0, 0.0, 0.0),
}
"""The paces of the policy file."""


class By(StrEnum):
    """The algorithm that moved a tree."""

    GOAL = "goal"
    EFFICIENCY = "efficiency"


class ClassState(NamedTuple):
    """How a class fares: its index, above 1 where it misses its goal, and the share of its delay spent in queues."""

    name: str
    importance: int
    performance_index: float
    queue_share: float
    groups: tuple[str, ...]

    @property
    def is_missed(self) -> bool:
        """Whether it misses its goal, and trees may help."""
        return self.performance_index > MISSED_INDEX and self.queue_share >= SIGNIFICANT_QUEUE_SHARE


class GroupState(NamedTuple):
    """What decides whether a group gets or gives a tree.

    Attributes
    ----------
    importance
        Of the most important class that uses the group.
    trees
        The base's and its aliases'.
    queue, utilisation
        As from `controller.service_classes.measures`.
    gain
        Whether one more tree would lower the utilisation of the fullest link.
    enabled
        Whether the group may be touched: false where the policy says so, and for groups that are being rebuilt,
        drained or detached.
    last_action_s
        When it last got or gave a tree; None where it never did.
    """

    importance: int
    trees: int
    queue: float
    utilisation: float
    gain: bool = True
    enabled: bool = True
    last_action_s: float | None = None


class TransferPass(NamedTuple):
    """When transfers are looked for and what came before; times in seconds of one clock, None where never.

    `free` aliases are in the pool, and a group may have `per_group` aliases beside its base.
    """

    now_s: float
    free: int
    per_group: int
    last_goal_s: float | None = None
    last_efficiency_s: float | None = None
    last_helped_importance: int | None = None


class Transfer(NamedTuple):
    """One tree for `receiver`: from the group `donor`, or from the pool where that is None."""

    by: By
    donor: str | None
    receiver: str
    reason: str


class TransferDecision(NamedTuple):
    """The transfers of a pass, and what the next one must know."""

    transfers: tuple[Transfer, ...]
    last_goal_s: float | None
    last_efficiency_s: float | None
    last_helped_importance: int | None


def decide(
    moment: TransferPass,
    classes: Sequence[ClassState],
    groups: Mapping[str, GroupState],
    pace: TransferPace = PACES["steady"],
) -> TransferDecision:
    """Return which trees move now.

    The goal algorithm runs where it is due; the efficiency algorithm where it is due and the first moved nothing.
    In a pass each group gets or gives one tree at most, and every donor keeps one.
    """
    finder = _Pass(moment, groups, pace)
    last_goal_s, last_efficiency_s = moment.last_goal_s, moment.last_efficiency_s
    if _is_due(moment.now_s, last_goal_s, pace.goal_s):
        last_goal_s = moment.now_s
        finder.help_classes(classes)
    if not finder.transfers and _is_due(moment.now_s, last_efficiency_s, pace.efficiency_s):
        last_efficiency_s = moment.now_s
        finder.even_out()
    return TransferDecision(tuple(finder.transfers), last_goal_s, last_efficiency_s, finder.last_helped_importance)


def _is_due(now_s: float, last_s: float | None, interval_s: float) -> bool:
    return last_s is None or now_s - last_s >= interval_s


class _Pass:
    """One look at all groups."""

    def __init__(self, moment: TransferPass, groups: Mapping[str, GroupState], pace: TransferPace) -> None:
        self.transfers: list[Transfer] = []
        self.last_helped_importance = moment.last_helped_importance
        self._moment = moment
        self._groups = groups
        self._pace = pace
        self._free = moment.free
        self._moved: set[str] = set()
        self._donors: list[str] | None = None

    def help_classes(self, classes: Sequence[ClassState]) -> None:
        """Find trees for the groups of classes that miss their goals."""
        missed = [class_ for class_ in classes if class_.is_missed]
        for class_ in sorted(missed, key=lambda class_: (class_.importance, -class_.performance_index, class_.name)):
            last = self.last_helped_importance
            is_hurried = last is None or class_.importance < last
            rest_s = self._pace.hurried_rest_s if is_hurried else self._pace.rest_s
            delayed = sorted((name for name in class_.groups if self._groups[name].queue > 0), key=self._neediest)
            for name in delayed[:GROUPS_PER_CLASS]:
                if self._may_receive(name, rest_s) and self._help(class_, name, rest_s):
                    self.last_helped_importance = class_.importance

    def even_out(self) -> None:
        """Find trees for the groups that wait most, whoever uses them, from groups that hardly wait."""
        rest_s = self._pace.rest_s
        for least in RECEIVER_QUEUES:
            receivers = [
                name
                for name, group in self._groups.items()
                if group.queue > least and self._may_receive(name, rest_s)
            ]
            if receivers:
                break
        donors = deque(
            name for name in self._in_donors_order() if self._is_safe(name) and self._may_move(name, rest_s)
        )
        for name in sorted(receivers, key=self._neediest):
            if name in self._moved:
                continue
            queue = self._groups[name].queue
            waits = f"{queue:.2f} packets of it wait"
            if self._take_free(By.EFFICIENCY, name, waits):
                continue
            while donors and donors[0] in self._moved:
                donors.popleft()
            if not donors or self._groups[donors[0]].queue > DONOR_QUEUE_SHARE * queue:
                break
            donor = donors.popleft()
            full_pct = 100 * self._groups[donor].utilisation
            trees = self._groups[donor].trees
            reason = f"{waits}, and {donor}, {full_pct:.0f} % full with {trees} trees, can spare one"
            self._move(By.EFFICIENCY, donor, name, reason)

    def _help(self, class_: ClassState, name: str, rest_s: float) -> bool:
        """Find a tree for a group of a class; tell whether there is one."""
        missed = f"class {class_.name} misses its goal (index {class_.performance_index:.2f})"
        if self._take_free(By.GOAL, name, missed):
            return True
        importance = self._groups[name].importance
        for donor in self._in_donors_order():
            if donor == name or not self._may_move(donor, rest_s):
                continue
            other = self._groups[donor]
            if other.importance > importance:
                self._move(By.GOAL, donor, name, f"{missed}, and {donor} is less important")
                return True
            if other.importance == importance and self._is_safe(donor):
                self._move(By.GOAL, donor, name, f"{missed}, and {donor}, as important, hardly needs the tree")
                return True
        return False

    def _neediest(self, name: str) -> tuple[float, int, str]:
        group = self._groups[name]
        return -group.queue, group.trees, name

    def _may_receive(self, name: str, rest_s: float) -> bool:
        group = self._groups[name]
        return group.gain and group.trees <= self._moment.per_group and self._may_move(name, rest_s)

    def _may_move(self, name: str, rest_s: float) -> bool:
        group = self._groups[name]
        return group.enabled and name not in self._moved and _is_due(self._moment.now_s, group.last_action_s, rest_s)

    def _is_safe(self, name: str) -> bool:
        group = self._groups[name]
        return can_spare_tree(group.trees, group.utilisation)

    def _in_donors_order(self) -> list[str]:
        """Return the groups with a tree to give, those that wait least first."""
        if self._donors is None:
            groups = self._groups
            several = (name for name, group in groups.items() if group.trees > 1)
            self._donors = sorted(several, key=lambda name: (groups[name].queue, -groups[name].trees, name))
        return self._donors

    def _take_free(self, by: By, name: str, reason: str) -> bool:
        if self._free <= 0:
            return False
        self._free -= 1
        self._move(by, None, name, f"{reason}, and the pool has a free alias")
        return True

    def _move(self, by: By, donor: str | None, receiver: str, reason: str) -> None:
        self.transfers.append(Transfer(by, donor, receiver, reason))
        self._moved.add(receiver)
        if donor is not None:
            self._moved.add(donor)
