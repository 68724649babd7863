"""Which groups get further trees by what is measured: aliases move from the pool and between groups, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import NamedTuple, Protocol

from controller.admission.host import HostLike
from controller.admission.marks import Marks
from controller.config.marking import Marking
from controller.config.policy import Policy
from controller.config.service_class_settings import DYNAMIC
from controller.config.service_classes import ServiceClass
from controller.effects import Effect, Notice
from controller.kernel.domains import address_of
from controller.multicast.alias_measures import (
    SAMPLES,
    GroupMeasures,
    GroupSample,
    LinkStates,
    fare_of,
    sample_of,
)
from controller.multicast.aliases import AliasTrees
from controller.multicast.group import Group, SenderKey
from controller.service_classes.goals import DISCRETIONARY
from controller.service_classes.pool import IDLE_S
from controller.service_classes.transfers import (
    GROUPS_PER_CLASS,
    PACES,
    RECEIVER_QUEUES,
    By,
    ClassState,
    GroupState,
    Transfer,
    TransferPace,
    TransferPass,
    decide,
)
from controller.trees.forest import Forest
from controller.trees.islands import Islands
from controller.wire.addresses import format_ip

SAMPLE_S = 10.0
"""How often the trees of all groups with senders are looked at."""

GROUPS_PER_SLICE = 64
"""Groups that are looked at in one turn of the loop."""

TRIALS = 8
"""Groups that wait most of which it is tried, one in a turn, whether one more tree would help; others wait."""


class MeasuredPlane(Protocol):
    """The groups and trees that are looked at."""

    groups: dict[bytes, Group]
    islands: Islands

    @property
    def forest(self) -> Forest:
        """The trees."""


class SenderHosts(Protocol):
    """Who tells senders as rules are about them."""

    def host(self, key: SenderKey) -> HostLike:
        """Return a sender's host, by the port that stands for all of its link aggregation group."""


class GroupMeasured(NamedTuple):
    """What is shown of a group: means of `queue` (packets) and `utilisation`, and the importance of who sends."""

    queue: float
    utilisation: float
    importance: int


class _Seen:
    """What is known of a group with senders.

    `classes` are those of its admitted `senders`, by name. `waits_left` tells how many more samples the last one is
    kept in which so much waited that the group might get a tree.
    """

    __slots__ = ("classes", "importance", "is_closed", "measures", "senders", "waits_left")

    def __init__(self) -> None:
        self.measures = GroupMeasures()
        self.senders: list[SenderKey] | None = None
        self.classes: set[str] = set()
        self.importance = DISCRETIONARY
        self.is_closed = False
        self.waits_left = 0


class AliasControl:
    """Moves aliases in mode `dynamic`; in other modes it does nothing but what `trees` do.

    All is done in slices, between which anything may happen. `decisions` counts transfers by algorithm.
    """

    def __init__(self, trees: AliasTrees, plane: MeasuredPlane, hosts: SenderHosts) -> None:
        self.trees = trees
        self.decisions: Counter[str] = Counter()
        self._plane = plane
        self._hosts = hosts
        self._classes: dict[str, ServiceClass] = {}
        self._marks = Marks(Marking())
        self._pace: TransferPace = PACES["steady"]
        self._per_group = 0
        self._is_dynamic = False
        self._due_s: float | None = None
        self._steps: Iterator[list[Effect]] | None = None
        self._now = 0.0
        self._seen: dict[bytes, _Seen] = {}
        self._waiting: dict[bytes, None] = {}
        self._members: dict[str, dict[bytes, None]] = {}
        self._moved_s: dict[bytes, float] = {}
        self._used_s: dict[tuple[bytes, int], float] = {}
        self._goal_s: float | None = None
        self._efficiency_s: float | None = None
        self._last_helped: int | None = None

    def use(self, policy: Policy, now: float) -> None:
        """Go by another policy."""
        self.trees.use(policy)
        self._is_dynamic = policy.aliases.mode == DYNAMIC
        self._pace, self._per_group = PACES[policy.aliases.pace], policy.aliases.per_group
        self._classes = {each.name: each for each in policy.classes}
        self._marks.replace(Marking(True, policy.classes, policy.tenants, frozenset(), policy.link_aggregations))
        self._steps = None
        self._members = {each.name: {} for each in policy.classes if each.goal is not None}
        for seen in self._seen.values():
            seen.senders = None
        if not self._is_dynamic:
            self._due_s = None
            self._seen.clear()
            self._waiting.clear()
            self._used_s.clear()
        elif self._due_s is None:
            self._due_s = now + SAMPLE_S

    def measured(self, address: bytes) -> GroupMeasured | None:
        """Return what was measured of a group, None where nothing was."""
        seen = self._seen.get(address)
        if seen is None:
            return None
        mean = seen.measures.mean(self._pace.window_s)
        return GroupMeasured(mean.queue, mean.utilisation, seen.importance)

    def ask(self, address: bytes, present: bool, now: float) -> str | None:
        """Give a group one alias more, or one less, as an operator wants it; return why not where that cannot be."""
        group, trees = self._plane.groups.get(address), self.trees
        if not self._is_dynamic:
            return f"aliases.mode is not {DYNAMIC}, so the policy alone gives aliases"
        if group is None:
            return "there are no members or senders of it"
        if not present:
            if not trees.may_give(address):
                return "it has no alias but those that the policy gives it always"
            trees.take(address)
        elif trees.wanted(address) >= self._per_group:
            return f"it has {trees.wanted(address)} aliases; aliases.per_group allows {self._per_group}"
        elif trees.free <= 0:
            return "no alias of the pool is free"
        else:
            trees.move(None, address)
        self._moved_s[address] = now
        return None

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due next, None where nothing waits."""
        trees_s = self.trees.next_deadline()
        if self._due_s is None or (trees_s is not None and trees_s < self._due_s):
            return trees_s
        return self._due_s

    def on_deadline(self, now: float) -> list[Effect]:
        """Do what is due of the trees, and the next slice of looking at groups."""
        effects = self.trees.on_deadline(now)
        if self._due_s is None or now < self._due_s:
            return effects
        self._now = now
        if self._steps is None:
            self._steps = self._look(now)
        step = next(self._steps, None)
        if step is None:
            self._steps, self._due_s = None, now + SAMPLE_S
            return effects
        self._due_s = now
        return effects + step

    def _look(self, began_s: float) -> Iterator[list[Effect]]:
        """Look at all groups, then move trees where that is due; yields the effects of each slice."""
        addresses = list(self._plane.groups)
        for address in self._seen.keys() - self._plane.groups.keys():
            self._forget(address)
            self._moved_s.pop(address, None)
        for key in [key for key in self._used_s if key[0] not in self._plane.groups]:
            del self._used_s[key]
        states: LinkStates | None = None
        for first in range(0, len(addresses), GROUPS_PER_SLICE):
            forest = self._plane.forest
            if states is None or states.version != forest.graph.version:
                states = LinkStates(forest.loads, forest.graph.version)
            effects: list[Effect] = []
            for address in () if forest.is_broken else addresses[first : first + GROUPS_PER_SLICE]:
                if (group := self._plane.groups.get(address)) is not None:
                    effects += self._sample(group, states, began_s)
            yield effects
        if self._is_due(self._goal_s, self._pace.goal_s) or self._is_due(self._efficiency_s, self._pace.efficiency_s):
            yield from self._decide()

    def _is_due(self, last_s: float | None, interval_s: float) -> bool:
        return last_s is None or self._now - last_s >= interval_s

    # What is measured

    def _sample(self, group: Group, states: LinkStates, now: float) -> Sequence[Effect]:
        """Take a sample of a group, and give back those of its aliases that carried nothing for long."""
        address, islands, forest, rate_bps = group.address, self._plane.islands, self._plane.forest, 0.0
        for sender in group.senders.values():
            if sender.admitted:
                rate_bps += sender.rate_bps
        seen = self._seen.get(address)
        if not rate_bps and group.trees is None:
            if seen is not None:
                self._forget(address)
            return ()
        if seen is None:
            seen = self._seen[address] = _Seen()
        if group.trees is None and address not in islands:
            trees = [] if (main := forest.tree(address)) is None else [main]
        else:
            trees = [tree for each in group.all_trees() for tree in islands.trees(each.key)]
        sample = sample_of(trees, forest.loads, states, rate_bps, now, bool(self._members))
        seen.measures.take(sample)
        if sample.queue > RECEIVER_QUEUES[-1]:
            seen.waits_left = SAMPLES
            self._waiting[address] = None
        elif seen.waits_left:
            seen.waits_left -= 1
            if not seen.waits_left:
                del self._waiting[address]
        if self._classes or seen.classes:
            self._classify(group, seen)
        return () if group.trees is None else self._give_back_idle(group, now)

    def _forget(self, address: bytes) -> None:
        """Forget what was seen of a group."""
        for name in self._seen.pop(address).classes & self._members.keys():
            self._members[name].pop(address, None)
        self._waiting.pop(address, None)

    def _classify(self, group: Group, seen: _Seen) -> None:
        """Take note of the classes of who sends to a group."""
        senders = [key for key, sender in group.senders.items() if sender.admitted]
        if senders == seen.senders:
            return
        for left in seen.classes & self._members.keys():
            self._members[left].pop(group.address, None)
        seen.senders, seen.classes, seen.importance, seen.is_closed = senders, set(), DISCRETIONARY, False
        address = address_of(group.address)
        for key in senders:
            name = self._marks.of(self._hosts.host(key), address).service_class
            if name is not None:
                found = self._classes[name]
                seen.classes.add(name)
                seen.importance = min(seen.importance, found.importance)
                seen.is_closed = seen.is_closed or not found.aliases
        for joined in seen.classes & self._members.keys():
            self._members[joined][group.address] = None

    def _give_back_idle(self, group: Group, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for alias in list(group.all_trees()[1:]):
            key = (group.address, alias.number)
            if any(sender.rate_bps for sender in alias.own_senders().values()):
                self._used_s[key] = now
            elif now - self._used_s.setdefault(key, now) >= IDLE_S and self.trees.give_back(group, alias):
                del self._used_s[key]
                self._moved_s[group.address] = now
                effects += self.trees.release(group, alias, now)
                text = f"{format_ip(group.address)} gives an alias back that carried nothing for {IDLE_S:g} s."
                effects.append(Notice("alias-returned", text, (("group", format_ip(group.address)),)))
        return effects

    # What moves

    def _decide(self) -> Iterator[list[Effect]]:
        """Move trees by goals, or else by waiting; first, one at a time, it is tried whom one more would help.

        Only groups that can get or give a tree are looked at: those that it would help, those that have several,
        and of each class that misses its goal those that wait most.
        """
        window_s = self._pace.window_s
        hot: list[tuple[float, bytes]] = []
        for number, address in enumerate(list(self._waiting), 1):
            if (
                address in self._seen
                and (queue := self._seen[address].measures.queue(window_s)) > RECEIVER_QUEUES[-1]
            ):
                hot.append((-queue, address))
            if number % GROUPS_PER_SLICE == 0:
                yield []
        gains: set[bytes] = set()
        for _, address in nsmallest(TRIALS, hot):
            group = self._plane.groups.get(address)
            if group is not None and self.trees.would_gain(group):
                gains.add(address)
            yield []
        classes: list[ClassState] = []
        candidates = dict.fromkeys(gains)
        for name in self._members:
            yield from self._judge(name, classes, candidates)
        groups_now = self._plane.groups
        for address in self._seen:
            if (group := groups_now.get(address)) is not None and group.trees is not None:
                candidates[address] = None
        names = {format_ip(address): address for address in candidates if self._counts(address)}
        groups = {name: self._state(address, address in gains) for name, address in names.items()}
        moment = TransferPass(
            self._now, self.trees.free, self._per_group, self._goal_s, self._efficiency_s, self._last_helped
        )
        decision = decide(moment, classes, groups, self._pace)
        self._goal_s, self._efficiency_s = decision.last_goal_s, decision.last_efficiency_s
        self._last_helped = decision.last_helped_importance
        yield [effect for transfer in decision.transfers for effect in self._carry_out(transfer, names)]

    def _counts(self, address: bytes) -> bool:
        """Tell whether a group has several trees, or packets that wait."""
        seen, group = self._seen.get(address), self._plane.groups.get(address)
        if seen is None or group is None:
            return False
        return group.trees is not None or seen.measures.queue(self._pace.window_s) > 0

    def _state(self, address: bytes, gain: bool) -> GroupState:
        seen, group = self._seen[address], self._plane.groups[address]
        mean = seen.measures.mean(self._pace.window_s)
        tree = self._plane.forest.tree(address)
        is_whole = tree is not None and not tree.detached and not group.held and group.unsupported is None
        is_steady = all(each.is_standing and not each.is_leaving for each in group.all_trees())
        return GroupState(
            seen.importance,
            len(group.all_trees()),
            mean.queue,
            mean.utilisation,
            gain,
            is_whole and is_steady and not seen.is_closed and (gain or self.trees.may_give(address)),
            self._moved_s.get(address),
        )

    def _judge(self, name: str, classes: list[ClassState], candidates: dict[bytes, None]) -> Iterator[list[Effect]]:
        """Add to `classes` how one with a goal fares, by some groups in a turn.

        Where it misses its goal, its groups that wait most are added to `candidates`, and are those of its state.
        """
        means: list[GroupSample] = []
        delays: list[tuple[tuple[float, int], bytes]] = []
        for number, address in enumerate(list(self._members[name]), 1):
            if self._counts(address):
                measures, trees = self._seen[address].measures, len(self._plane.groups[address].all_trees())
                means.append(measures.mean(self._pace.hurried_window_s))
                delays.append(((-measures.queue(self._pace.window_s), trees), address))
            if number % GROUPS_PER_SLICE == 0:
                yield []
        found = self._classes[name]
        state = ClassState(name, found.importance, *fare_of(found.goal, means), ())
        if state.is_missed:
            least = nsmallest(GROUPS_PER_CLASS, (delay for delay, _ in delays))[-1]
            delayed = [address for delay, address in delays if delay <= least]
            candidates.update(dict.fromkeys(delayed))
            state = state._replace(groups=tuple(format_ip(address) for address in delayed))
        classes.append(state)

    def _carry_out(self, transfer: Transfer, names: dict[str, bytes]) -> list[Effect]:
        receiver = names[transfer.receiver]
        donor = None if transfer.donor is None else names[transfer.donor]
        if donor is not None and not self.trees.may_give(donor):
            return []
        self.trees.move(donor, receiver)
        for address in (donor, receiver):
            if address is not None:
                self._moved_s[address] = self._now
        self.decisions[str(transfer.by)] += 1
        source = "the pool" if transfer.donor is None else transfer.donor
        text = f"{transfer.receiver} gets an alias from {source}, {_WHY[transfer.by]}: {transfer.reason}."
        fields = (("group", transfer.receiver), ("from", transfer.donor or "pool"), ("by", str(transfer.by)))
        return [Notice("alias-moved", text, fields)]


_WHY = {By.GOAL: "for a goal", By.EFFICIENCY: "to wait less"}
