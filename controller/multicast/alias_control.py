"""Which groups get further trees by what is measured: aliases move from the pool and between groups, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from controller.admission.host import HostLike
from controller.admission.marks import Marks
from controller.config.marking import Marking
from controller.config.policy import Policy
from controller.config.service_class_settings import DYNAMIC
from controller.config.service_classes import ServiceClass
from controller.effects import Effect, Notice
from controller.kernel.domains import address_of
from controller.multicast.alias_measures import fare_of, uses_of
from controller.multicast.alias_moves import AliasedPlane
from controller.multicast.alias_trial import AliasTrial
from controller.multicast.aliases import AliasTrees
from controller.multicast.events import LoadsMeasured
from controller.multicast.group import Group, SenderKey
from controller.service_classes.goals import DISCRETIONARY
from controller.service_classes.pool import IDLE_S, AliasesUsed, FlowsUsed
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
from controller.snapshot.log import ChangeLog
from controller.trees import flows
from controller.trees.tree import TreeUses
from controller.wire.addresses import format_ip

if TYPE_CHECKING:
    from controller.multicast.alias_columns import GroupColumns, GroupNotes, LinkColumns

SAMPLE_S = 10.0
"""How often the trees of all groups with senders are looked at."""

GROUPS_PER_SLICE = 512
"""Groups that have changed of which it is taken note in one turn of the loop."""

FIRST_SEEN_PER_LOOK = 2048
"""Groups that are looked at for the first time in one look, which takes the most; others wait for the next one."""

ALL = 1 << 62
"""More groups than there are."""

TRIALS = 8
"""Groups that wait most of which it is tried, one in a turn, whether one more tree would help; others wait."""


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
    """What is known of a group with senders: its row in the columns of samples, and what they were told last.

    `classes` are those of its admitted `senders`, by name. `key` is the only sender of a group with one
    tree, None of others. `uses` are those of its one tree that the row was told of, as of their `version`.
    """

    __slots__ = ("classes", "importance", "is_closed", "key", "row", "senders", "uses", "version")

    def __init__(self, row: int) -> None:
        self.row = row
        self.senders: list[SenderKey] | None = None
        self.classes: set[str] = set()
        self.importance = DISCRETIONARY
        self.is_closed = False
        self.key: SenderKey | None = None
        self.uses: TreeUses | None = None
        self.version = 0


class AliasControl:
    """Moves aliases in mode `dynamic`; in other modes it does nothing but what `trees` do.

    All is done in slices, between which anything may happen. `log` tells which groups are others than at the last
    look. `decisions` counts transfers by algorithm.
    """

    def __init__(self, trees: AliasTrees, plane: AliasedPlane, hosts: SenderHosts, log: ChangeLog[bytes]) -> None:
        self.trees = trees
        self.trial = AliasTrial(trees, plane)
        self.decisions: Counter[str] = Counter()
        self._plane = plane
        self._hosts = hosts
        self._log = log
        self._version = 0
        self._changed: tuple[bytes, ...] = ()
        self._classes: dict[str, ServiceClass] = {}
        self._marks = Marks(Marking())
        self._pace: TransferPace = PACES["steady"]
        self._per_group = 0
        self._is_dynamic = False
        self._due_s: float | None = None
        self._steps: Iterator[list[Effect]] | None = None
        self._now = 0.0
        self._seen: dict[bytes, _Seen] = {}
        self._columns: GroupColumns | None = None
        self._members: dict[str, dict[bytes, int]] = {}
        self._moved_s: dict[bytes, float] = {}
        self._used_s: dict[tuple[bytes, int], float] = {}
        self._dropping: set[tuple[int, int]] = set()
        self._goal_s: float | None = None
        self._efficiency_s: float | None = None
        self._last_helped: int | None = None
        self._has_flows = False
        self._told_used = 0

    def use(self, policy: Policy, now: float) -> None:
        """Go by another policy."""
        self.trees.use(policy)
        self._is_dynamic = policy.aliases.mode == DYNAMIC
        self._has_flows = policy.aliases.has_flows
        self._pace, self._per_group = PACES[policy.aliases.pace], policy.aliases.per_group
        self._classes = {each.name: each for each in policy.classes}
        self._marks.replace(Marking(True, policy.classes, policy.tenants, frozenset(), policy.link_aggregations))
        self._steps, self._version = None, 0
        self._members = {each.name: {} for each in policy.classes if each.goal is not None}
        for seen in self._seen.values():
            seen.senders = seen.key = None
        if not self._is_dynamic:
            self._due_s = None
            self._seen.clear()
            self._columns = None
            self._used_s.clear()
        else:
            # It takes a while to load, which nothing else needs: now, before anything is looked at on the loop.
            import controller.multicast.alias_columns  # noqa: F401

            self._due_s = now + SAMPLE_S if self._due_s is None else self._due_s

    def drops_measured(self, event: LoadsMeasured) -> None:
        """Take note of which ports between switches dropped packets when they were last polled."""
        if self._dropping or event.dropping:
            self._dropping.difference_update((dpid, port_no) for dpid, port_no, _, _ in event.loads)
            self._dropping.update(event.dropping)

    def pool_used(self, event: FlowsUsed) -> None:
        """Take in how many of the pool large flows of packets to one host have."""
        is_less = event.number < self.trees.flows_used
        self.trees.flows_used = event.number
        for address in tuple(self.trees.waiting) if is_less else ():
            self.trees.touch(address)

    def measured(self, address: bytes) -> GroupMeasured | None:
        """Return what was measured of a group, None where nothing was."""
        seen = self._seen.get(address)
        if seen is None or self._columns is None:
            return None
        ((queue, utilisation),) = self._columns.waits([seen.row], self._pace.window_s)
        return GroupMeasured(queue, utilisation, seen.importance)

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
            trees.move(None, address, "an operator asked for it")
        self._moved_s[address] = now
        return None

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due next, None where nothing waits."""
        trees_s = self.trees.next_deadline()
        if self._due_s is None or (trees_s is not None and trees_s < self._due_s):
            return trees_s
        return self._due_s

    def on_deadline(self, now: float) -> list[Effect | AliasesUsed]:
        """Do what is due of the trees, and the next slice of looking at groups."""
        effects: list[Effect | AliasesUsed] = [*self.trees.on_deadline(now)]
        if self._has_flows and self.trees.bound_count != self._told_used:
            self._told_used = self.trees.bound_count
            effects.append(AliasesUsed(self._told_used))
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
        from controller.multicast.alias_columns import GroupColumns, LinkColumns

        columns = self._columns = self._columns or GroupColumns()
        yield from self._follow(columns)
        for address in columns.with_several_trees():
            if (group := self._plane.groups.get(address)) is not None and group.trees is not None:
                yield self._give_back_idle(group, began_s)
        links: LinkColumns | None = None
        for block in range(columns.begin(began_s)):
            forest = self._plane.forest
            if links is None or links.version != forest.graph.version:
                links = LinkColumns(forest.loads, forest.graph.version, self._dropping)
            if not forest.is_broken:
                columns.look(block, links, bool(self._members))
            yield []
        if self._is_due(self._goal_s, self._pace.goal_s) or self._is_due(self._efficiency_s, self._pace.efficiency_s):
            yield from self._decide()

    def _is_due(self, last_s: float | None, interval_s: float) -> bool:
        return last_s is None or self._now - last_s >= interval_s

    # What is measured

    def _follow(self, columns: GroupColumns) -> Iterator[list[Effect]]:
        """Take note of all groups that changed since the last look, some in a turn."""
        from controller.multicast.alias_columns import GroupNotes

        delta = self._log.since(self._version, ALL, lambda: self._plane.groups)
        self._version, changed = delta.version, delta.keys
        if self._changed or delta.whole:
            others = (*self._plane.groups, *self._seen) if delta.whole else ()
            changed, self._changed = tuple(dict.fromkeys((*self._changed, *changed, *others))), ()
        unseen = [address for address in changed if address not in self._seen]
        if len(unseen) > FIRST_SEEN_PER_LOOK:
            self._changed = tuple(unseen[FIRST_SEEN_PER_LOOK:])
            waiting = set(self._changed)
            changed = tuple([address for address in changed if address not in waiting])
        for begin in range(0, len(changed), GROUPS_PER_SLICE):
            some, forest = changed[begin : begin + GROUPS_PER_SLICE], self._plane.forest
            if forest.is_broken:
                self._changed += some  # their trees are about to change
                continue
            notes = GroupNotes()
            self._take_notes(some, columns, notes)
            columns.take(notes, forest.loads)
            yield []

    def _take_notes(self, changed: Sequence[bytes], columns: GroupColumns, notes: GroupNotes) -> None:
        """Note what the trees of groups carry.

        Of most groups with one sender all is as it was but the rate and some receivers, which is looked at first.
        """
        seen_of, groups, trees, islands = (
            self._seen,
            self._plane.groups,
            self._plane.forest.trees,
            self._plane.islands,
        )
        add_row, add_rate, add_own = notes.rows.append, notes.rates_bps.append, notes.own_bps.append
        alike, has_islands = notes.alike, len(islands) > 0
        for address in changed:
            seen, group, tree = seen_of.get(address), groups.get(address), trees.get(address)
            if (
                seen is not None
                and (key := seen.key) is not None
                and group is not None
                and group.trees is None
                and len(senders := group.senders) == 1
                and (sender := senders.get(key)) is not None
                and sender.admitted
                and (rate_bps := sender.rate_bps)
                and tree is not None
                and (uses := tree.uses) is not None
                and (numbers := uses.numbers) is not None
                and not (has_islands and address in islands)
            ):
                add_row(row := seen.row)
                add_rate(rate_bps)
                add_own(tree.rate_bps)
                if uses.version != seen.version or uses is not seen.uses:
                    seen.uses, seen.version = uses, uses.version
                    alike[row] = numbers
            else:
                self._take_note(address, columns, notes)

    def _take_note(self, address: bytes, columns: GroupColumns, notes: GroupNotes) -> None:
        """Note what a group's trees carry, whatever has changed."""
        group, seen, rate_bps = self._plane.groups.get(address), self._seen.get(address), 0.0
        senders: list[SenderKey] = []
        if group is not None:
            for key, sender in group.senders.items():
                if sender.admitted:
                    rate_bps += sender.rate_bps
                    senders.append(key)
        if group is None or (not rate_bps and group.trees is None):
            if seen is not None:
                self._forget(address, seen, columns)
            if group is None:
                self._moved_s.pop(address, None)
                for used in [used for used in self._used_s if used[0] == address]:
                    del self._used_s[used]
            return
        if seen is None:
            seen = self._seen[address] = _Seen(columns.add(address))
        if senders != seen.senders:
            self._classify(address, senders, seen)
        islands, forest = self._plane.islands, self._plane.forest
        tree, uses, own_bps = forest.tree(address), None, 0
        if tree is None or group.trees is not None or address in islands:
            every = (tree for each in group.all_trees() for tree in islands.trees(each.key))
            notes.added_up[seen.row] = uses_of(every, forest.loads)
        elif (uses := flows.uses(tree, forest.loads)) is None:
            notes.added_up[seen.row] = flows.carried(tree, forest.loads)
        elif uses.numbers is None:
            notes.spread[seen.row] = tree
        else:
            own_bps = flows.sent_bps(tree)
            if uses is not seen.uses or uses.version != seen.version:
                notes.alike[seen.row], seen.version = uses.numbers, uses.version
        notes.add(seen.row, rate_bps, own_bps, len(group.all_trees()))
        seen.uses = uses
        seen.key = senders[0] if uses is not None and len(group.senders) == len(senders) == 1 else None

    def _forget(self, address: bytes, seen: _Seen, columns: GroupColumns) -> None:
        """Forget what was seen of a group."""
        del self._seen[address]
        for name in seen.classes & self._members.keys():
            self._members[name].pop(address, None)
        columns.remove(seen.row)

    def _classify(self, group: bytes, senders: list[SenderKey], seen: _Seen) -> None:
        """Take note of the classes of who sends to a group."""
        for left in seen.classes & self._members.keys():
            self._members[left].pop(group, None)
        seen.senders, seen.classes, seen.importance, seen.is_closed = senders, set(), DISCRETIONARY, False
        address = address_of(group)
        for key in senders if self._classes else ():
            name = self._marks.of(self._hosts.host(key), address).service_class
            if name is not None:
                found = self._classes[name]
                seen.classes.add(name)
                seen.importance = min(seen.importance, found.importance)
                seen.is_closed = seen.is_closed or not found.aliases
        for joined in seen.classes & self._members.keys():
            self._members[joined][group] = seen.row

    def _give_back_idle(self, group: Group, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for alias in list(group.all_trees()[1:]):
            key = (group.address, alias.number)
            if alias.rate_bps():
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
        columns = self._columns
        assert columns is not None
        gains: set[bytes] = set()
        for address in columns.waiting(self._pace.window_s, RECEIVER_QUEUES[-1], TRIALS):
            group = self._plane.groups.get(address)
            if group is not None and self.trial.would_gain(group):
                gains.add(address)
            yield []
        classes: list[ClassState] = []
        candidates = dict.fromkeys(gains)
        for name in self._members:
            classes.append(self._judge(name, columns, candidates))
            yield []
        for address in columns.with_several_trees():
            candidates[address] = None
        names: dict[str, bytes] = {}
        groups: dict[str, GroupState] = {}
        known = [address for address in candidates if address in self._seen and address in self._plane.groups]
        means = columns.waits([self._seen[address].row for address in known], self._pace.window_s)
        for address, (queue, utilisation) in zip(known, means, strict=True):
            if queue > 0 or self._plane.groups[address].trees is not None:
                name = format_ip(address)
                names[name], groups[name] = address, self._state(address, address in gains, queue, utilisation)
        moment = TransferPass(
            self._now, self.trees.free, self._per_group, self._goal_s, self._efficiency_s, self._last_helped
        )
        decision = decide(moment, classes, groups, self._pace)
        self._goal_s, self._efficiency_s = decision.last_goal_s, decision.last_efficiency_s
        self._last_helped = decision.last_helped_importance
        yield [effect for transfer in decision.transfers for effect in self._carry_out(transfer, names)]

    def _state(self, address: bytes, gain: bool, queue: float, utilisation: float) -> GroupState:
        seen, group = self._seen[address], self._plane.groups[address]
        tree = self._plane.forest.tree(address)
        is_whole = tree is not None and not tree.detached and not group.held and group.unsupported is None
        is_steady = all(each.is_standing and not each.is_leaving for each in group.all_trees())
        return GroupState(
            seen.importance,
            len(group.all_trees()),
            queue,
            utilisation,
            gain,
            is_whole and is_steady and not seen.is_closed and (gain or self.trees.may_give(address)),
            self._moved_s.get(address),
        )

    def _judge(self, name: str, columns: GroupColumns, candidates: dict[bytes, None]) -> ClassState:
        """Return how a class with a goal fares.

        Where it misses its goal, its groups that wait most are added to `candidates`, and are those of its state.
        """
        found, window_s = self._classes[name], self._pace.window_s
        rows = columns.counting(self._members[name].values(), window_s)
        state = ClassState(
            name,
            found.importance,
            *fare_of(found.goal, columns.totals(rows, self._pace.hurried_window_s)),
            (),
        )
        if state.is_missed:
            delayed = columns.most_delayed(rows, window_s, GROUPS_PER_CLASS)
            candidates.update(dict.fromkeys(delayed))
            state = state._replace(groups=tuple(format_ip(address) for address in delayed))
        return state

    def _carry_out(self, transfer: Transfer, names: dict[str, bytes]) -> list[Effect]:
        receiver = names[transfer.receiver]
        donor = None if transfer.donor is None else names[transfer.donor]
        if donor is not None and not self.trees.may_give(donor):
            return []
        source = "the pool" if transfer.donor is None else transfer.donor
        moved = f"from {source}, {_WHY[transfer.by]}: {transfer.reason}"
        self.trees.move(donor, receiver, moved)
        for address in (donor, receiver):
            if address is not None:
                self._moved_s[address] = self._now
        self.decisions[str(transfer.by)] += 1
        text = f"{transfer.receiver} gets an alias {moved}."
        fields = (("group", transfer.receiver), ("from", transfer.donor or "pool"), ("by", str(transfer.by)))
        return [Notice("alias-moved", text, fields)]


_WHY = {By.GOAL: "for a goal", By.EFFICIENCY: "to wait less"}
