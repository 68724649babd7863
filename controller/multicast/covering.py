"""Groups that are silent have covering trees in common where tables are short, and their own again when they send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from math import ceil

from controller.config.overcommit_settings import COVER, Overcommit
from controller.datapath.lanes import Urgency
from controller.effects import Effect, Notice
from controller.multicast.cover_trees import CoverTrees
from controller.multicast.covered_channels import GROUP_TABLES, LEAST_BPS, CoveredChannels
from controller.multicast.covers import Channel, Cover, Covered, has_hosts
from controller.multicast.departures import Departures
from controller.multicast.group import Group
from controller.multicast.group_changes import GroupChanges
from controller.multicast.groups import GroupPlane
from controller.multicast.table_accounts import TableAccounts
from controller.multicast.table_limits import place_of, table_of
from controller.multicast.table_readings import TableReadings
from controller.multicast.transition import Way
from controller.overcommit.covers import GATHERED, CoverChoice, CoverNeed, CoverTree, sending_part
from controller.rules.compile import COVERED_VERSIONS
from controller.rules.compile_cover import cover_of, cover_rule, is_covered
from controller.rules.compile_shared import is_shared
from controller.rules.model import FlowKey
from controller.rules.plans import UNHURRIED_DRAIN_S

GROUPS_AT_ONCE = 128
"""Groups that go under covering trees between two readings of counters, at most."""

GROUPS_PER_TURN = 64
"""Groups that leave trees which are no more in one turn of the loop, or are looked at anew at one reading."""


class Covering:
    """Which groups of a plane are under covering trees, and which channels of others.

    Parameters
    ----------
    plane, accounts, departures, changes
        The groups, what tables have of them, those on the way out, and whom changes are told.
    room
        How many entries a table has room for at the moment.
    out
        Has a group go out of all tables.
    counters
        `covers` counts groups that went under covering trees, `covers-left` those that got their own again, and
        `covers-aged` those that went out since links carry nearly what they may in vain. `channel-covers` and
        `channel-covers-left` count channels that went under by themselves and came back.

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
        self._trees = CoverTrees(plane)
        self._choice: CoverChoice[Covered] = CoverChoice(self._trees.capacity_bps)
        self._channels = CoveredChannels(plane, departures)
        self._placed: dict[bytes, dict[bytes, int]] = {}
        self._sent_bps: dict[bytes, dict[int, int]] = {}
        self._waking: dict[bytes, None] = {}
        self._homeless: dict[bytes, None] = {}
        self._doubled: Counter[int] = Counter()
        self._promised: set[tuple[int, FlowKey]] = set()
        self._is_told = False
        self._looked_s: float | None = None
        self._graph_version = -1

    def use(self, policy: Overcommit) -> None:
        """Go by another policy."""
        self.is_used = policy.mode == COVER
        self._is_told = False
        self._choice.use(policy.cover_spurious_pct)
        if not self.is_used:
            self._sent_bps.clear()
            self._waking.clear()
            self._channels.clear()

    def covered_count(self) -> int:
        """Return how many groups are under covering trees as a whole."""
        return len(self._covers.under)

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
        self._promised.clear()
        wanted = self._wanted(short, now)
        effects = self._make_way(now) if wanted else []
        found = self._choice.choose(wanted, self._trees.build, self._may_have)
        for number in [number for number in self._covers.trees if number not in self._choice.trees]:
            self._covers.remove(number)
        self._looked_s = None if found else tables.residence.read_s
        going: dict[bytes, dict[bytes, int]] = {}
        for each, number in found.items():
            if isinstance(each, Channel):
                going.setdefault(each.address, {})[each.source] = number
                self._placed.setdefault(each.address, {})[each.source] = number
            else:
                effects += self._move(self._plane.groups[each], COVERED_VERSIONS + number, now, Urgency.BULK)
        for address, numbers in going.items():
            effects += self._move_channels(self._plane.groups[address], numbers, now, Urgency.BULK)
        self._tell(now)
        self._accounts.follow_shared()
        return effects

    def _make_way(self, now: float) -> list[Effect]:
        """Have groups go out that were under trees for longest, where links carry nearly what they may in vain."""
        groups, departures = self._plane.groups, self._departures
        effects: list[Effect] = []
        for address in self._choice.oldest_of_full():
            if isinstance(address, Channel) or address not in self._accounts.tables or address in departures:
                continue
            group = groups.get(address)
            if group is None or group.held:
                continue
            if is_covered(group.tree_version) and not self._plane.transitions.settle(group, now):
                self._counters["covers-aged"] += 1
                effects += self._out(address, now)
        return effects

    def _wanted(self, short: Mapping[int, int], now: float) -> dict[Covered, CoverNeed]:
        """Return groups that would free entries of tables by going under a tree, first who is expected to send least.

        There are enough of them for a new tree, though fewer would do for the moment. After them come channels of
        groups that are not silent.
        """
        tables = self._accounts.tables
        found: dict[Covered, CoverNeed] = {}
        for table in sorted(short, key=lambda table: -short[table]):
            freed = 0
            for address in tables.residence.silent(tables.tables[table].groups):
                if freed >= max(short[table], GATHERED) or len(found) >= GROUPS_AT_ONCE:
                    break
                group = self._plane.groups[address]
                dpid, table_id = place_of(table)
                if table_id not in GROUP_TABLES or not self._may_go_under(group, now):
                    continue
                need = self._need(group, now)
                if dpid not in need.switches:
                    found[address] = need
                    freed += 1
        for channel, need in self._channels.wanted(short, now):
            if len(found) >= GROUPS_AT_ONCE:
                break
            if channel.address not in found:
                found[channel] = need
        return found

    def _may_go_under(self, group: Group, now: float) -> bool:
        """Tell whether a group is in by one tree of its own, and has nothing under way."""
        if group.is_out or group.held or group.trees is not None or group.unsupported is not None:
            return False
        if is_covered(group.tree_version) or group.apart is not None:
            return False
        return group.address not in self._departures and not self._plane.transitions.settle(group, now)

    def _need(self, group: Group, now: float) -> CoverNeed:
        """Return what a group is expected to send, by what it did when it sent last, and where its members are."""
        sent = self._sent_bps.get(group.address, {})
        part = sending_part(self._accounts.tables.residence.silence_s(group.address, now))
        rates = {dpid: max(rate, sent.get(dpid, 0)) for dpid, rate in _rates(group, 1).items()}
        senders = {dpid: ceil(rate * part) for dpid, rate in rates.items()}
        members = {dpid for dpid, duty in group.duties.items() if any(each.host_ports for each in duty.channels)}
        return CoverNeed(senders, frozenset(members), group.queue_id)

    def _need_of(self, each: Covered, now: float) -> CoverNeed:
        if isinstance(each, Channel):
            return self._channels.need(each, now)
        return self._need(self._plane.groups[each], now)

    def _unshared(self, group: Group, cover: Cover) -> set[tuple[int, FlowKey]]:
        """Return the entries inside a tree that nobody uses yet whose table the group's are in."""
        version = COVERED_VERSIONS + cover.number
        inside = (dpid for dpid, near in cover.adjacent.items() if len(near) > 1)
        key = cover_rule(version, (), bool(group.vlan_id)).key
        return {(dpid, key) for dpid in inside if (dpid, key) not in self._plane.shared} - self._promised

    def _may_have(self, each: Covered, number: int) -> bool:
        """Tell whether a group, or a channel, may be under a tree: switches can, and have room for both meanwhile."""
        if isinstance(each, Channel):
            group = self._plane.groups[each.address]
            return self._channels.may_be_under(each, number) and self._takes_room(
                group, number, self._channels.entries_under(each)
            )
        group, version = self._plane.groups[each], COVERED_VERSIONS + number
        trees = list(self._plane.islands.trees(group.key))
        if version in (group.old_versions or {}) or not self._covers.holds(group, version, trees):
            return False
        twice = Counter(
            table_of(dpid, rule.key.table)
            for dpid, rules in group.rules.items()
            for rule in rules
            if rule.key.table in GROUP_TABLES and has_hosts(group.duties[dpid]) and not is_shared(rule)
        )
        return self._takes_room(group, number, twice)

    def _takes_room(self, group: Group, number: int, twice: Counter[int]) -> bool:
        """Take the room for entries that are to be there twice, and for those of the tree that nobody uses yet."""
        unshared = self._unshared(group, self._covers.trees[number])
        twice.update(table_of(dpid, key.table) for dpid, key in unshared)
        self._accounts.know(twice)
        if any(self._room(table) < count + self._doubled[table] for table, count in twice.items()):
            return False
        self._doubled.update(twice)
        self._promised |= unshared
        return True

    def _move(self, group: Group, version: int | None, now: float, urgency: Urgency) -> list[Effect]:
        """Have a group go over to another tree version, None being one of its own, beside the entries that it has."""
        if version is not None:
            group.tree_version, group.left_links, group.unconfirmed = version, None, None
            self._covers.note(group.address, version)
        elif not self._plane.transitions.take_version(group, shared=not self._accounts.is_ample):
            return []
        self._counters["covers" if is_covered(group.tree_version) else "covers-left"] += 1
        return self._go_over(group, now, urgency)

    def _move_channels(
        self, group: Group, numbers: Mapping[bytes, int], now: float, urgency: Urgency
    ) -> list[Effect]:
        """Have channels go under covering trees of these numbers, or back (0), beside the entries that they have."""
        for source, number in numbers.items():
            self._covers.set_apart(group, source, number)
            self._counters["channel-covers" if number else "channel-covers-left"] += 1
        return self._go_over(group, now, urgency)

    def _go_over(self, group: Group, now: float, urgency: Urgency) -> list[Effect]:
        before = group.own_entries()
        effects = self._plane.refresh(group, (), now, urgency, pause_s=UNHURRIED_DRAIN_S, way=Way.BESIDE)
        gone = before - group.own_entries()
        if group.address in self._accounts.tables:
            self._accounts.follow(group)
        self._departures.begin(group, Counter(table_of(dpid, key.table) for dpid, key in gone), gone, now)
        self._changes.changed(group.address, now)
        return effects

    # Their own again

    def read(self, readings: TableReadings, now: float) -> list[Effect]:
        """Take in which groups had packets since the last reading: those under covering trees get their own."""
        if not self.is_used:
            return []
        self._tidy(now)
        effects = self._trees.unfit_told()
        if self._plane.aliases.is_used:
            self._waking.update(dict.fromkeys(self._covers.under))
            self._channels.wake_all()
            effects += self._unused()
        self._channels.read(readings.packets, readings.known_s, readings.late)
        for address, count in readings.packets.items():
            group = self._plane.groups.get(address)
            if group is not None:
                self._sent_bps[address] = _rates(group, count)
                if is_covered(group.tree_version):
                    self._waking[address] = None
        return effects + self.wake(now)

    def _unused(self) -> list[Effect]:
        """Tell once that no group is under a covering tree while groups may have further trees."""
        if self._is_told:
            return []
        self._is_told = True
        text = (
            "No group is under a covering tree while groups may have further trees (`aliases.mode`): they keep their "
            "own entries, and swap."
        )
        return [Notice("covers-unused", text)]

    def wake(self, now: float) -> list[Effect]:
        """Give groups that sent their own trees, where there is room by now, or others send less."""
        effects: list[Effect] = []
        for address in list(self._waking):
            group = self._plane.groups.get(address)
            if group is None or group.is_out or not is_covered(group.tree_version):
                del self._waking[address]
            elif address not in self._departures:
                effects += self._wake(group, now)
        for address, sources in list(self._channels.waking.items()):
            group = self._plane.groups.get(address)
            apart = {} if group is None or group.is_out else group.apart or {}
            own = {source: 0 for source in sources if source in apart}
            if group is None or not own:
                del self._channels.waking[address]
            elif self._channels.may_go_over(group, now):
                effects += self._wake_channels(group, own, now)
        return effects

    def _wake(self, group: Group, now: float) -> list[Effect]:
        effects: list[Effect] = []
        address, number = group.address, cover_of(group.tree_version)
        covered, own = group.tree_version, self._plane.transitions.free_version(group, not self._accounts.is_ample)
        group.tree_version = covered % COVERED_VERSIONS if own is None else own
        more, twice = self._needs_more(group, effects)
        group.tree_version = covered
        if self._has_room(twice):
            del self._waking[address]
            return effects + self._move(group, None, now, Urgency.PROMPT)
        if (leaving := self._leaving(address, more, now)) is not None:
            return effects + leaving
        del self._waking[address]
        if number in self._choice.trees and self._choice.note(address, self._need(group, now), number):
            return effects
        return effects + self._out(address, now)

    def _wake_channels(self, group: Group, own: Mapping[bytes, int], now: float) -> list[Effect]:
        effects: list[Effect] = []
        address, apart = group.address, group.apart or {}
        group.apart = {source: number for source, number in apart.items() if source not in own} or None
        more, twice = self._needs_more(group, effects)
        group.apart = apart
        if self._has_room(twice):
            del self._channels.waking[address]
            return effects + self._move_channels(group, own, now, Urgency.PROMPT)
        if (leaving := self._leaving(address, more, now)) is not None:
            return effects + leaving
        del self._channels.waking[address]
        for source in own:
            channel, number = Channel(address, source), apart[source]
            if number not in self._choice.trees or not self._choice.note(
                channel, self._need_of(channel, now), number
            ):
                return effects + self._out(address, now)
        return effects

    def _has_room(self, entries: Mapping[int, int]) -> bool:
        self._accounts.know(entries)
        return all(self._room(table) >= count for table, count in entries.items())

    def _leaving(self, address: bytes, more: Mapping[int, int], now: float) -> list[Effect] | None:
        """Have others go out for a group that needs more entries; None where all of them send more."""
        leaving = self._accounts.tables.find_leaving(address, more, now)
        if leaving is None or address in leaving:
            return None
        return [effect for other in leaving for effect in self._out(other, now)]

    def _needs_more(self, group: Group, effects: list[Effect]) -> tuple[dict[int, int], dict[int, int]]:
        """Return how many entries more a group needs in each table than it has, and while it has both."""
        needs, entries = self._accounts.needs(group, effects)
        missing = Counter(self._accounts.with_shared(needs, entries))
        held = self._accounts.tables.entries(group.address)
        kept = Counter(
            table_of(dpid, key.table) for dpid, key in group.own_entries() if key in needs.rules.get(dpid, {})
        )
        return dict(missing - Counter(held)), dict(missing - kept)

    def left(self, group: Group) -> None:
        """Take it that a group has no entries: it comes in again by a tree of its own."""
        self._waking.pop(group.address, None)
        if is_covered(group.tree_version):
            version = self._plane.transitions.free_version(group)
            group.tree_version = 1 if version is None else version
            self._covers.note(group.address, group.tree_version)
            self._choice.leave(group.address)
        for source in group.apart or ():
            self._covers.set_apart(group, source, 0)

    def forget(self, address: bytes) -> None:
        """Drop all that is known of a group that is no more."""
        self._covers.note(address, 0)
        self._covers.moved.pop(address, None)
        self._choice.leave(address)
        for source in self._placed.pop(address, ()):
            self._choice.leave(Channel(address, source))
        self._channels.forget(address)
        for known in (self._sent_bps, self._waking, self._homeless):
            known.pop(address, None)

    # Trees

    def _tidy(self, now: float) -> None:
        """Take in which groups left their trees, or were put back under some; forget trees of none.

        Of some, those first of which that was done longest ago, it is found anew what they are expected to send.
        """
        groups, choice, covers = self._plane.groups, self._choice, self._covers
        for address in covers.moved:
            group, number = groups.get(address), covers.under.get(address, 0)
            if choice.under.get(address, 0) != number:
                choice.leave(address)
                if group is not None and self._knows(number):
                    choice.note(address, self._need(group, now), number)
            self._follow_channels(address, group, now)
        covers.moved.clear()
        for each, number in list(islice(choice.under.items(), GROUPS_PER_TURN)):
            choice.note(each, self._need_of(each, now), number)
        for number in [*choice.unused(), *(number for number in covers.trees if number not in choice.trees)]:
            self._remove(number)
        self._tell(now)

    def _knows(self, number: int) -> bool:
        """Have a covering tree be one of those that are chosen from; False where it is no more."""
        cover = self._covers.trees.get(number)
        if cover is not None:
            ends = frozenset(dpid for dpid, near in cover.adjacent.items() if len(near) == 1)
            self._choice.trees.setdefault(number, CoverTree(cover.adjacent, ends, cover.queue_id))
        return cover is not None

    def _follow_channels(self, address: bytes, group: Group | None, now: float) -> None:
        """Take in which channels of a group are apart."""
        apart = {} if group is None else group.apart or {}
        placed = self._placed.pop(address, {})
        for source, number in placed.items():
            if apart.get(source) != number:
                self._choice.leave(Channel(address, source))
        for source, number in apart.items():
            if placed.get(source) != number and self._knows(number):
                channel = Channel(address, source)
                self._choice.note(channel, self._need_of(channel, now), number)
        if apart:
            self._placed[address] = dict(apart)

    def _remove(self, number: int) -> None:
        self._covers.remove(number)
        self._choice.drop(number)

    def _tell(self, now: float) -> None:
        if self._covers.changed:
            self._changes.covers_changed(self._covers.changed, now)
            self._covers.changed.clear()

    def look_for_unfit(self) -> None:
        """Have it looked whether trees pass switches that cannot be on any."""
        self._graph_version = -1

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
                for number in broken:
                    self._homeless.update(self._covers.groups.get(number, {}))
                    self._homeless.update((each.address, None) for each in self._covers.channels.get(number, {}))
                self._tell(now)
        effects: list[Effect] = []
        for address in list(islice(self._homeless, GROUPS_PER_TURN)):
            del self._homeless[address]
            group = self._plane.groups.get(address)
            if group is not None and (is_covered(group.tree_version) or group.apart):
                self._counters["covers-left" if is_covered(group.tree_version) else "channel-covers-left"] += 1
                effects += self._plane.refresh(group, (), now)
                self._changes.changed(address, now)
        if not self.is_used:
            self._covers.moved.clear()
        return effects


def _rates(group: Group, packets: int) -> dict[int, int]:
    """Return what senders at each switch send, in bits per second, that had so many packets together."""
    rates: Counter[int] = Counter()
    for key, sender in group.senders.items():
        if sender.admitted:
            rates[key.dpid] += round(sender.rate_bps) or LEAST_BPS * packets
    return rates
