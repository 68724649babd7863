"""Aliases: further trees of groups, each under a tree version of its own, over which a group's senders are split.

An alias is bound by the entries of its version, which all its switches confirm, and then the entries of the senders
that go there. It is taken away in reverse: its senders go to other trees, confirm, what is under way arrives, and
its entries go. So every packet follows one tree, whole. A sender stays on its tree as long as that is there. Where
flows are divided (`FlowSplit`) parts of what senders send go so in their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping
from itertools import islice

from controller.config.policy import Policy
from controller.config.service_class_settings import BY_FLOW, DYNAMIC, OFF, Aliases, StaticTrees
from controller.datapath.lanes import Urgency
from controller.effects import Effect
from controller.kernel.domains import address_of
from controller.multicast.alias_moves import LOOK_AGAIN_S, PATIENCE_S, AliasedPlane, AliasMoves, TreeDeparture
from controller.multicast.flow_split import FlowSplit
from controller.multicast.group import FlowName, Group, Sender
from controller.rules.installer import Installer
from controller.rules.model import FlowKey
from controller.service_classes.pool import MAX_ALIASES
from controller.service_classes.split import split
from controller.trees.islands import AliasKey
from controller.trees.tree import Change, Key, TreeRole
from topology.graph import Graph

GROUPS_PER_TURN = 8
"""Groups whose aliases are looked at in one turn of the loop."""

ALWAYS = "the policy gives it always (aliases.static)"
BEFORE = "it was there when this controller began"


class AliasTrees:
    """The aliases of all groups of a plane.

    `is_used` tells whether any group may have aliases, `bound_count` how many there are, `flows_used`
    how many of the pool large flows of packets to one host have. `changed` is told of groups
    whose trees are others, with each switch at which senders take another one. `counters` has
    `alias-pool-empty`: a group waits for an alias, since all of the pool are in use.
    """

    def __init__(self, plane: AliasedPlane, installer: Installer, graph: Graph) -> None:
        self.is_used = False
        self.bound_count = 0
        self.flows_used = 0
        self.counters: Counter[str] = Counter()
        self.waiting: dict[bytes, None] = {}
        self.moves = AliasMoves(plane, installer, graph)
        self.moves.told, self.moves.ended = self._told, self._end
        self.moves.default_bps = Policy().multicast.default_rate_bps
        self.flows = FlowSplit(plane, installer, self.moves, self.is_usable)
        self._plane = plane
        self._installer = installer
        self._settings = Aliases()
        self._static: tuple[StaticTrees, ...] = ()
        self._touched: dict[bytes, None] = {}
        self._again: dict[bytes, float] = {}
        self._given: Counter[bytes] = Counter()
        self._promised: dict[bytes, list[str]] = {}
        self._reasons: dict[Key, str] = {}
        self._restored: dict[bytes, list[tuple[int, int]]] = {}
        self.changed: Callable[[bytes, float, int | None], None] | None = None

    # Who has how many

    def use(self, policy: Policy) -> None:
        """Go by another policy: groups get and give up aliases in turn."""
        before, self._settings = self._settings, policy.aliases
        self.moves.default_bps = policy.multicast.default_rate_bps
        if self._settings == before:
            return
        self.is_used = self._settings.mode != OFF
        self.flows.is_used = self.is_used and self._settings.split == BY_FLOW
        if self._settings.mode != DYNAMIC:
            self._given.clear()
            self._promised.clear()
        longest_first = sorted(policy.aliases.static, key=lambda entry: -entry.groups.length)
        self._static = tuple(longest_first) if self.is_used else ()
        self._touched.update(dict.fromkeys(self._plane.groups))

    def wanted(self, address: bytes) -> int:
        """Return how many aliases a group is to have: none where some switch could not forward it on another tree."""
        if not self._plane.rules.serves_everywhere(address):
            return 0
        always = self._always(address)
        return min(always + self._given[address], max(always, self._settings.per_group))

    def _always(self, address: bytes) -> int:
        """Return how many aliases the policy gives a group whatever is measured."""
        group = address_of(address)
        return next((entry.aliases for entry in self._static if entry.groups.contains(group)), 0)

    @property
    def free(self) -> int:
        """How many aliases of the pool no group has or is promised."""
        promised = sum(max(0, self.wanted(address) - self._count(address)) for address in self._given)
        return self._room - promised

    @property
    def _room(self) -> int:
        """How many aliases of the pool neither groups nor large flows of packets to one host have."""
        return self._settings.pool - self.bound_count - self.flows_used

    def _count(self, address: bytes) -> int:
        group = self._plane.groups.get(address)
        return 0 if group is None else sum(not tree.is_leaving for tree in group.all_trees()[1:])

    def may_give(self, address: bytes) -> bool:
        """Tell whether a group has an alias beside those that the policy gives it always."""
        return self._given[address] > 0

    def move(self, donor: bytes | None, receiver: bytes, reason: str) -> None:
        """Have a group give an alias to another; None: the pool does. It is bound when it has left.

        `reason` says why, as the rest of a sentence that begins with the alias.
        """
        if donor is not None:
            self.take(donor)
        self._given[receiver] += 1
        self._promised.setdefault(receiver, []).append(reason)
        self.touch(receiver)

    def take(self, address: bytes) -> None:
        """Have a group give up the alias that it got last."""
        self._given[address] -= 1
        if promised := self._promised.get(address):
            promised.pop()
        self.touch(address)

    def give_back(self, group: Group, alias: Group) -> bool:
        """Tell whether an alias may go back to the pool, and count it as gone then; `release` takes it away."""
        if alias.is_leaving or not alias.is_standing or not self.may_give(group.address):
            return False
        self._given[group.address] -= 1
        return True

    def touch(self, address: bytes) -> None:
        """Have it looked at whether a group has the aliases that it is to have."""
        self._touched[address] = None
        for number, tree_version in self._restored.pop(address, ()):
            if self._room > 0:
                self._add(self._plane.groups[address], number, tree_version).is_standing = True

    def restore(self, address: bytes, aliases: Iterable[tuple[int, int]]) -> None:
        """Have a group that is to be put back begin with aliases of an earlier run: their numbers and versions."""
        found, always = sorted(aliases), self.wanted(address)
        if self._settings.mode == DYNAMIC and len(found) > always:
            self._given[address] += len(found) - always
        if kept := found[: self.wanted(address)]:
            self._restored[address] = kept

    def follow(self, address: bytes, aliases: Iterable[tuple[int, int]], now: float) -> None:
        """Have a group, of whose senders none is known at the moment, have just these aliases."""
        group = self._plane.groups.get(address)
        if group is None:
            self.restore(address, aliases)
            return
        kept = sorted(aliases)[: self.wanted(address)]
        for alias in group.all_trees()[1:]:
            if (alias.number, alias.tree_version) not in kept:
                self._end(group, alias, now)
        there = {alias.number for alias in group.all_trees()[1:]}
        for number, tree_version in kept:
            if number not in there and self._room > 0:
                alias = self._add(group, number, tree_version)
                alias.is_standing = True
                self._build(group, alias, set(), now)

    def _add(self, group: Group, number: int, tree_version: int) -> Group:
        """Give a group an alias, and keep why it has this one."""
        alias = group.add_alias(number, tree_version)
        self.bound_count += 1
        if promised := self._promised.get(group.address):
            reason = promised.pop(0)
        else:
            reason = ALWAYS if len(group.all_trees()) - 1 <= self._always(group.address) else BEFORE
        self._reasons[alias.key] = reason
        return alias

    def reason(self, alias: Group) -> str:
        """Return why a group has an alias, as the rest of a sentence that begins with it."""
        return self._reasons[alias.key]

    # Trees and senders

    def alias(self, key: AliasKey) -> Group | None:
        """Return an alias by the key of its tree."""
        group = self._plane.groups.get(key.group)  # type: ignore[call-overload]
        if group is None or group.trees is None:
            return None
        return next((tree for tree in group.trees if tree.number == key.number), None)

    def tree_of(self, group: Group, sender: Sender) -> Group:
        """Return the tree that a sender's packets take."""
        number = sender.alias or 0
        return next((tree for tree in group.all_trees() if tree.number == number), group)

    def tree_for(self, group: Group, dpid: int, sender: Sender, before: Sender | None) -> Group:
        """Return the tree for a sender at a switch: that which it has, else the least loaded one that stands.

        Where flows are divided there it is one that the switch sends by already.
        """
        if before is not None:
            return self.tree_of(group, before)
        if sender.alias is not None:
            return self.tree_of(group, sender)
        parts = group.parts_at(dpid)
        if parts is not None:
            number = parts.trees[0]
        else:
            usable = [tree.number for tree in group.all_trees() if self.is_usable(tree)]
            flows, trees = self.moves.flows(group)
            rates, held = dict[FlowName | None, float](), dict[FlowName | None, int]()
            rates[None] = self.moves.rate(sender)
            rates.update(flows.items())
            held.update(trees.items())
            number = split(rates, usable, held)[None]
        return next(tree for tree in group.all_trees() if tree.number == number)

    def is_usable(self, tree: Group) -> bool:
        """Tell whether flows may begin on a tree."""
        if not tree.is_standing:
            confirmed = self._installer.is_confirmed
            tree.is_standing = all(confirmed(at, rule.key) for at, rules in tree.rules.items() for rule in rules)
        return tree.is_standing and not tree.is_leaving

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due next, None where nothing waits."""
        if self._touched:
            return 0.0
        departures = self.moves.departures
        if not departures and not self._again:
            return None
        return min((*(departure.due_s for departure in departures), *self._again.values()))

    def switch_connected(self, dpid: int, speaks_otherwise: bool, had: int | None, now: float) -> list[Effect]:
        """Look again at groups with aliases, for which a switch may have no entries, or may divide flows."""
        if self.bound_count and (speaks_otherwise or self.flows.is_used):
            self._touched.update(
                dict.fromkeys(a for a, group in self._plane.groups.items() if group.trees is not None)
            )
        return self.flows.switch_connected(dpid, speaks_otherwise and had is not None, now)

    def on_deadline(self, now: float) -> list[Effect]:
        """Bring some groups to the aliases that they are to have, and end what senders have left."""
        effects = self.moves.depart(now)
        for address in [address for address, due_s in self._again.items() if due_s <= now]:
            del self._again[address]
            self._touched[address] = None
        for address in tuple(islice(self._touched, GROUPS_PER_TURN)):
            del self._touched[address]
            effects += self._look(address, now)
        return effects

    def _look(self, address: bytes, now: float) -> list[Effect]:
        """Bind or take away what a group has too few or too many of."""
        group = self._plane.groups.get(address)
        self.waiting.pop(address, None)
        if group is None:
            del self._given[address]
            self._promised.pop(address, None)
        if group is None or group.held or group.is_out:
            return []
        wanted, effects = self.wanted(address), list[Effect]()
        follows_flows = self.flows.is_used or group.parts is not None
        if not wanted and group.trees is None and group.is_standing and not follows_flows:
            return effects
        staying = [tree for tree in group.all_trees() if tree.number and not tree.is_leaving]
        for tree in reversed(staying[wanted:]):
            effects += self.release(group, tree, now)
        self._follow_binding(group, now)
        missing = wanted - len(staying)
        free = self._room
        if missing > free:
            self.counters["alias-pool-empty"] += 1
            self.waiting[address] = None
        if min(missing, free) > 0:
            effects += self.bind(group, min(missing, free), now)
            self._again[address] = now + LOOK_AGAIN_S
        if follows_flows:
            effects += self.flows.follow(group, now)
            if self.flows.is_waiting(group):
                self._again[address] = now + LOOK_AGAIN_S
        return effects

    def _follow_binding(self, group: Group, now: float) -> None:
        """Tell of aliases that all switches know of now, and look again while there are others."""
        binding = [tree for tree in group.all_trees() if not tree.is_standing]
        left = [tree for tree in binding if not self.is_usable(tree) and not tree.is_standing]
        if len(left) < len(binding):
            self._told(group, now)
        if left:
            self._again[group.address] = now + LOOK_AGAIN_S

    # Bind

    def bind(self, group: Group, count: int, now: float) -> list[Effect]:
        """Give a group so many more trees, as far as versions are free, and senders of its fuller trees.

        Each tree is built with its senders known, so that it goes by the links that are least busy for its share.
        """
        aliases: list[Group] = []
        for number in range(1, MAX_ALIASES + 1):
            version = None if len(aliases) >= count else self._plane.transitions.free_version(group)
            if version is None:
                break
            if all(tree.number != number for tree in group.all_trees()):
                aliases.append(self._add(group, number, version))
        effects = self.flows.divide(group, now) if aliases else []
        flows, held = self.moves.flows(group)
        usable = [tree.number for tree in group.all_trees() if tree in aliases or self.is_usable(tree)]
        rates = {flow: rate for flow, rate in flows.items() if held[flow] in usable and rate}
        found = split(rates, usable, held, [alias.number for alias in aliases])
        by_number = {alias.number: alias for alias in aliases}
        moved = {flow: by_number[to] for flow, to in found.items() if to != held[flow]}
        self.moves.leave_behind(group, moved, now)
        for alias in aliases:
            effects += self._build(group, alias, {flow.dpid for flow, to in moved.items() if to is alias}, now)
        return effects

    def _build(self, group: Group, alias: Group, sending: set[int], now: float) -> list[Effect]:
        """Have the switches of a new tree know it, then those of its senders."""
        forest = self._plane.forest
        for dpid in sorted(sending):
            forest.join(alias.key, dpid, TreeRole.SENDER)
            self.moves.tell_rate(alias, dpid)
        for dpid in sorted(group.interests):
            forest.join(alias.key, dpid, TreeRole.RECEIVER)
        self._plane.routed.sync(alias)
        self._plane.islands.adopt(alias.key, (), {})
        tree = forest.tree(alias.key)
        links = () if tree is None else tuple(tree.links())
        self._told(group, now)
        return self._plane.refresh(alias, (Change(alias.key, links),), now, Urgency.BULK)

    # What has gone

    def release(self, group: Group, alias: Group, now: float) -> list[Effect]:
        """Take an alias away: its senders go to the other trees, the largest first to the least loaded."""
        if alias.is_leaving:
            return []
        alias.is_leaving = True
        usable = [tree.number for tree in group.all_trees() if tree is not alias and self.is_usable(tree)]
        rates, held = self.moves.flows(group)
        found = split(rates, usable, held)
        by_number = {tree.number: tree for tree in group.all_trees()}
        moved = {flow: by_number[to] for flow, to in found.items() if held[flow] == alias.number}
        effects = self.moves.move(group, moved, now)
        if not moved:
            left = TreeDeparture(group, alias, set(), set(), now, now + PATIENCE_S)
            self.moves.departures.append(left)
        return effects

    def _end(self, group: Group, alias: Group, now: float) -> list[Effect]:
        """Take away the entries of an alias that nobody sends by any more."""
        if any(departure.tree is alias for departure in self.moves.departures):
            return []  # others have left it later, whose packets may be on their way
        forest = self._plane.forest
        tree = forest.tree(alias.key)
        held = {(dpid, rule.key) for dpid, rules in alias.rules.items() for rule in rules}
        changes: list[Change | None] = []
        for dpid in list(tree.terminals) if tree is not None else ():
            changes.append(forest.leave(alias.key, dpid, TreeRole.RECEIVER | TreeRole.SENDER))
        effects = self._plane.refresh(alias, changes or (None,), now, Urgency.BULK)
        self._forget(group, alias, held)
        self._told(group, now)
        return effects

    def _told(self, group: Group, now: float, dpid: int | None = None) -> None:
        if self.changed is not None:
            self.changed(group.address, now, dpid)

    def settle(self, group: Group) -> None:
        """Forget the aliases of a group that has ended with its last member and sender.

        Of others it is looked at whether flows of other switches are to be divided.
        """
        if group.interests or group.senders:
            if self.flows.is_used:
                self._touched[group.address] = None
            return
        for alias in group.all_trees()[1:]:
            self._forget(group, alias, alias.unconfirmed or set())

    def _forget(self, group: Group, alias: Group, held: set[tuple[int, FlowKey]]) -> None:
        """Give an alias back; its versions are not taken again while a switch may hold entries of them."""
        olds: MutableMapping[int, set[tuple[int, FlowKey]]] = group.old_versions or {}
        for version, entries in {**(alias.old_versions or {}), alias.tree_version: held}.items():
            olds[version] = olds.get(version, set()) | entries
        group.old_versions = dict(olds)
        trees = group.trees
        assert trees is not None
        trees.remove(alias)
        self._reasons.pop(alias.key, None)
        alias.trees = None
        if len(trees) == 1:
            group.trees = None
        self.bound_count -= 1
        self._touched.update(dict.fromkeys([group.address, *self.waiting]))
        self.waiting.clear()
