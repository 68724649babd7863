"""Groups that are silent have covering trees in common where tables are short, and their own again when they send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from math import ceil

from controller.config.overcommit_settings import COVER, Overcommit
from controller.datapath.lanes import Urgency
from controller.effects import Effect
from controller.multicast.covers import Cover, CoverLink, has_hosts
from controller.multicast.departures import Departures
from controller.multicast.group import Group
from controller.multicast.group_changes import GroupChanges
from controller.multicast.groups import GroupPlane
from controller.multicast.table_accounts import TableAccounts
from controller.multicast.table_limits import place_of, table_of
from controller.multicast.transition import Way
from controller.multicast.tree_links import port_of
from controller.overcommit.covers import GATHERED, CoverChoice, CoverNeed, CoverTree, sending_part
from controller.rules.compile import COVERED_VERSIONS
from controller.rules.compile_cover import cover_of, is_covered
from controller.rules.compile_shared import is_shared
from controller.rules.model import FlowKey
from controller.rules.pipeline import FORWARD
from controller.rules.plans import UNHURRIED_DRAIN_S
from controller.trees.tree import TreeRole

GROUPS_AT_ONCE = 128
"""Groups that go under covering trees between two readings of counters, at most."""

GROUPS_PER_TURN = 64
"""Groups that leave trees which are no more in one turn of the loop, or are looked at anew at one reading."""

LEAST_BPS = 6000
"""What a sender of which no rate is known is taken to send for each packet between two readings, in bits per second:
a full frame every 2 s."""


class Covering:
    """Which groups of a plane are under covering trees.

    Parameters
    ----------
    plane, accounts, departures, changes
        The groups, what tables have of them, those on the way out, and whom changes are told.
    room
        How many entries a table has room for at the moment.
    out
        Has a group go out of all tables.
    counters
        `covers` counts groups that went under covering trees, `covers-left` those that got their own again.

    Attributes
    ----------
    is_used
        Whether groups may go under covering trees.
    """

    def __init__(
        self,
        plane: GroupPlane,
        accounts: TableAccounts,
        departures: Departures,
        changes: GroupChanges,
        room: Callable[[int], int],
        out: Callable[[bytes, float], list[Effect]],
        counters: Counter[str],
    ) -> None:
        self.is_used = False
        self._plane = plane
        self._covers = plane.covers
        self._accounts = accounts
        self._departures = departures
        self._changes = changes
        self._room = room
        self._out = out
        self._counters = counters
        self._choice: CoverChoice[bytes] = CoverChoice(self._capacity_bps)
        self._sent_bps: dict[bytes, dict[int, int]] = {}
        self._waking: dict[bytes, None] = {}
        self._homeless: dict[bytes, None] = {}
        self._doubled: Counter[int] = Counter()
        self._looked_s: float | None = None
        self._graph_version = -1

    def use(self, policy: Overcommit) -> None:
        """Go by another policy."""
        self.is_used = policy.mode == COVER
        self._choice.use(policy.cover_spurious_pct)
        if not self.is_used:
            self._sent_bps.clear()
            self._waking.clear()

    def covered_count(self) -> int:
        """Return how many groups are under covering trees."""
        return sum(is_covered(group.tree_version) for group in self._plane.groups.values()) if self.is_used else 0

    # Under

    def compress(self, now: float) -> list[Effect]:
        """Have groups that are silent go under covering trees where that frees short tables.

        Where none could, the next try is after another reading.
        """
        tables = self._accounts.tables
        if not self.is_used or self._plane.aliases.is_used or self._looked_s == tables.residence.read_s:
            return []
        short = tables.short_ahead()
        if not short:
            return []
        self._doubled.clear()
        found = self._choice.choose(self._wanted(short, now), self._build, self._may_have)
        for number in [number for number in self._covers.trees if number not in self._choice.trees]:
            self._covers.remove(number)
        self._looked_s = None if found else tables.residence.read_s
        effects: list[Effect] = []
        for address, number in found.items():
            group = self._plane.groups[address]
            effects += self._move(group, COVERED_VERSIONS + number, now, Urgency.BULK)
        self._tell(now)
        self._accounts.follow_shared()
        return effects

    def _wanted(self, short: Mapping[int, int], now: float) -> dict[bytes, CoverNeed]:
        """Return groups that would free entries of tables by going under a tree, first who is expected to send least.

        There are enough of them for a new tree, though fewer would do for the moment.
        """
        tables = self._accounts.tables
        found: dict[bytes, CoverNeed] = {}
        for table in sorted(short, key=lambda table: -short[table]):
            freed = 0
            for address in tables.residence.silent(tables.tables[table].groups):
                if freed >= max(short[table], GATHERED) or len(found) >= GROUPS_AT_ONCE:
                    break
                group = self._plane.groups[address]
                dpid, table_id = place_of(table)
                if table_id != FORWARD or not self._may_go_under(group, now):
                    continue
                need = self._need(group, now)
                if dpid not in need.switches:
                    found[address] = need
                    freed += 1
        return found

    def _may_go_under(self, group: Group, now: float) -> bool:
        """Tell whether a group can go by MAC addresses alone inside, and has nothing under way."""
        if group.is_out or group.held or group.trees is not None or group.unsupported is not None:
            return False
        if group.vlan_id or group.queue_id is not None or is_covered(group.tree_version):
            return False
        return group.address not in self._departures and not self._plane.transitions.settle(group, now)

    def _need(self, group: Group, now: float) -> CoverNeed:
        """Return what a group is expected to send, by what it did when it sent last, and where its members are."""
        sent = self._sent_bps.get(group.address, {})
        part = sending_part(self._accounts.tables.residence.silence_s(group.address, now))
        rates = {dpid: max(rate, sent.get(dpid, 0)) for dpid, rate in _rates(group, 1).items()}
        senders = {dpid: ceil(rate * part) for dpid, rate in rates.items()}
        members = {dpid for dpid, duty in group.duties.items() if any(each.host_ports for each in duty.channels)}
        return CoverNeed(senders, frozenset(members))

    def _capacity_bps(self, u: int, v: int) -> float:
        graph = self._plane.forest.graph
        return min(cable.capacity_bps for cable in graph.cables(u, v)) if graph.has_link(u, v) else 0.0

    def _build(self, ends: frozenset[int]) -> tuple[int, Mapping[int, set[int]]] | None:
        """Return the number and links of a new tree; None where it reaches not all, or a table has no room for it."""
        forest, key = self._plane.forest, "cover"
        if forest.is_broken:
            return None
        for dpid in sorted(ends):
            forest.join(key, dpid, TreeRole.RECEIVER)
        tree = forest.tree(key)
        links: list[CoverLink] = []
        if tree is not None and not tree.detached:
            port = port_of([tree], None, forest.graph, forest.loads)
            links = [(u, v, port(u, v), port(v, u)) for u, v in tree.links()]  # type: ignore[arg-type, misc]
        for dpid in sorted(ends):
            forest.leave(key, dpid, TreeRole.RECEIVER)
        cover = self._covers.add(links)
        if not links or not self._has_room(cover):
            self._covers.remove(cover.number)
            return None
        return cover.number, {dpid: set(near) for dpid, near in cover.adjacent.items()}

    def _has_room(self, cover: Cover) -> bool:
        """Tell whether all switches inside a tree have room for its entry."""
        tables = [table_of(dpid, FORWARD) for dpid, near in cover.adjacent.items() if len(near) > 1]
        self._accounts.know(tables)
        return all(self._room(table) > 0 for table in tables)

    def _may_have(self, address: bytes, number: int) -> bool:
        """Tell whether a group may be under a tree: switches can, and have room for what is there twice meanwhile."""
        group, version = self._plane.groups[address], COVERED_VERSIONS + number
        trees = list(self._plane.islands.trees(group.key))
        if version in (group.old_versions or {}) or not self._covers.holds(version, trees):
            return False
        twice = Counter(
            table_of(dpid, rule.key.table)
            for dpid, rules in group.rules.items()
            for rule in rules
            if rule.key.table == FORWARD and has_hosts(group.duties[dpid]) and not is_shared(rule)
        )
        self._accounts.know(twice)
        if any(self._room(table) < count + self._doubled[table] for table, count in twice.items()):
            return False
        self._doubled.update(twice)
        return True

    def _move(self, group: Group, version: int | None, now: float, urgency: Urgency) -> list[Effect]:
        """Have a group go over to another tree version, None being one of its own, beside the entries that it has."""
        if version is not None:
            group.tree_version, group.left_links, group.unconfirmed = version, None, None
        elif not self._plane.transitions.take_version(group, shared=not self._accounts.is_ample):
            return []
        before = _own_entries(group)
        effects = self._plane.refresh(group, (), now, urgency, pause_s=UNHURRIED_DRAIN_S, way=Way.BESIDE)
        gone = before - _own_entries(group)
        if group.address in self._accounts.tables:
            self._accounts.follow(group)
        self._departures.begin(group, Counter(table_of(dpid, key.table) for dpid, key in gone), gone, now)
        self._changes.changed(group.address, now)
        self._counters["covers" if is_covered(group.tree_version) else "covers-left"] += 1
        return effects

    # Their own again

    def read(self, packets: Mapping[bytes, int], now: float) -> list[Effect]:
        """Take in which groups had packets since the last reading: those under covering trees get their own."""
        if not self.is_used:
            return []
        self._tidy(now)
        if self._plane.aliases.is_used:
            self._waking.update(dict.fromkeys(self._choice.under))
        for address, count in packets.items():
            group = self._plane.groups.get(address)
            if group is not None:
                self._sent_bps[address] = _rates(group, count)
                if is_covered(group.tree_version):
                    self._waking[address] = None
        return self.wake(now)

    def wake(self, now: float) -> list[Effect]:
        """Give groups that sent their own trees, where there is room by now, or others send less."""
        effects: list[Effect] = []
        for address in list(self._waking):
            group = self._plane.groups.get(address)
            if group is None or group.is_out or not is_covered(group.tree_version):
                del self._waking[address]
            elif address not in self._departures:
                effects += self._wake(group, now)
        return effects

    def _wake(self, group: Group, now: float) -> list[Effect]:
        effects: list[Effect] = []
        more, twice = self._needs_more(group, effects)
        self._accounts.know(twice)
        address = group.address
        if all(self._room(table) >= count for table, count in twice.items()):
            del self._waking[address]
            return effects + self._move(group, None, now, Urgency.PROMPT)
        leaving = self._accounts.tables.find_leaving(address, more, now)
        if leaving is not None and address not in leaving:
            return effects + [effect for other in leaving for effect in self._out(other, now)]
        del self._waking[address]
        number = cover_of(group.tree_version)
        if number in self._choice.trees and self._choice.note(address, self._need(group, now), number):
            return effects
        return effects + self._out(address, now)

    def _needs_more(self, group: Group, effects: list[Effect]) -> tuple[dict[int, int], dict[int, int]]:
        """Return how many entries more a group needs in each table by its own tree, and while it has both."""
        covered, own = group.tree_version, self._plane.transitions.free_version(group, not self._accounts.is_ample)
        group.tree_version = covered % COVERED_VERSIONS if own is None else own
        needs, entries = self._accounts.needs(group, effects)
        group.tree_version = covered
        missing = Counter(self._accounts.with_shared(needs, entries))
        held = self._accounts.tables.entries(group.address)
        kept = Counter(
            table_of(dpid, key.table) for dpid, key in _own_entries(group) if key in needs.rules.get(dpid, {})
        )
        return dict(missing - Counter(held)), dict(missing - kept)

    def left(self, group: Group) -> None:
        """Take it that a group has no entries: it comes in again by a tree of its own."""
        self._waking.pop(group.address, None)
        if is_covered(group.tree_version):
            version = self._plane.transitions.free_version(group)
            group.tree_version = 1 if version is None else version
            self._choice.leave(group.address)

    def forget(self, address: bytes) -> None:
        """Drop all that is known of a group that is no more."""
        self._choice.leave(address)
        for known in (self._sent_bps, self._waking, self._homeless):
            known.pop(address, None)

    # Trees

    def _tidy(self, now: float) -> None:
        """Take in which groups left their trees, or were put back under some; forget trees of none.

        Of some, those first of which that was done longest ago, it is found anew what they are expected to send.
        """
        groups, choice, covers = self._plane.groups, self._choice, self._covers
        was_put_back, covers.was_put_back = covers.was_put_back, False
        for address, each in groups.items() if was_put_back else ():
            cover = covers.of(each)
            if cover is not None and address not in choice.under:
                ends = frozenset(dpid for dpid, near in cover.adjacent.items() if len(near) == 1)
                choice.trees.setdefault(cover.number, CoverTree(cover.adjacent, ends))
                choice.note(address, self._need(each, now), cover.number)
        for address, number in list(choice.under.items()):
            group = groups.get(address)
            if group is None or cover_of(group.tree_version) != number:
                choice.leave(address)
        for address, number in list(islice(choice.under.items(), GROUPS_PER_TURN)):
            choice.note(address, self._need(groups[address], now), number)
        for number in [*choice.unused(), *(number for number in covers.trees if number not in choice.trees)]:
            self._remove(number)
        self._tell(now)

    def _remove(self, number: int) -> None:
        self._covers.remove(number)
        self._choice.drop(number)

    def _tell(self, now: float) -> None:
        if self._covers.changed:
            self._changes.covers_changed(self._covers.changed, now)
            self._covers.changed.clear()

    def is_due(self) -> bool:
        """Tell whether trees may have to go, or groups are to leave those that are no more."""
        self._covers.is_watched = bool(self._homeless or self._covers.trees)
        return bool(self._homeless) or (self._covers.is_watched and self._may_be_broken())

    def _may_be_broken(self) -> bool:
        return not self.is_used or self._plane.forest.graph.version != self._graph_version

    def on_deadline(self, now: float) -> list[Effect]:
        """Give groups their own trees whose covering tree has lost a link; without the mode all."""
        graph = self._plane.forest.graph
        if self._covers.trees and self._may_be_broken():
            self._graph_version = graph.version
            broken = set(self._covers.broken(graph) if self.is_used else self._covers.trees)
            for number in broken:
                self._remove(number)
            if broken:
                groups = self._plane.groups.items()
                self._homeless.update((name, None) for name, each in groups if cover_of(each.tree_version) in broken)
                self._tell(now)
        effects: list[Effect] = []
        for address in list(islice(self._homeless, GROUPS_PER_TURN)):
            del self._homeless[address]
            group = self._plane.groups.get(address)
            if group is not None and is_covered(group.tree_version):
                effects += self._plane.refresh(group, (), now)
                self._counters["covers-left"] += 1
                self._changes.changed(address, now)
        return effects


def _rates(group: Group, packets: int) -> dict[int, int]:
    """Return what senders at each switch send, in bits per second, that had so many packets together."""
    rates: Counter[int] = Counter()
    for key, sender in group.senders.items():
        if sender.admitted:
            rates[key.dpid] += round(sender.rate_bps) or LEAST_BPS * packets
    return rates


def _own_entries(group: Group) -> set[tuple[int, FlowKey]]:
    """Return the entries of a group that it shares with no other."""
    return {(dpid, rule.key) for dpid, rules in group.rules.items() for rule in rules if not is_shared(rule)}
