"""Groups that came in or went out after the log was told of them last: at a start, what switches hold counts.

The log is told after the switches. So who takes a fabric over may find the entries of a group that is out by the log,
or none of one that is in. What a switch lacks of a group is not sent before all switches of its tree were read: then
the group has gone out, or all but its senders' entries is sent first, as no packet may enter a tree with a hole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from controller.datapath.lanes import Urgency
from controller.effects import Effect, Put, Remove
from controller.kernel.deadlines import Deadlines
from controller.multicast.due import Due, Grace
from controller.multicast.group import Group
from controller.multicast.group_rules import Needs
from controller.multicast.groups import GroupPlane
from controller.multicast.swapping import Swapping
from controller.multicast.table_limits import place_of, table_of
from controller.multicast.transition import Stage
from controller.rules.compile_cover import is_covered
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey, Key
from controller.rules.pipeline import SENDER_COOKIE_BIT
from controller.rules.plans import DRAIN_S

SWITCHES_AWAITED_S = 2.0
"""How long after the first switch was read the others of a tree are waited for: one may be gone."""

SenderEntries = dict[tuple[int, FlowKey], None]


class FoundSwaps:
    """Compares groups with what switches hold when they are read for the first time, in the time of grace.

    `others_late` is to be called when that is `due`, which is set when the first was read.
    """

    def __init__(
        self,
        plane: GroupPlane,
        installer: Installer,
        swapping: Swapping,
        grace: Grace,
        due: Deadlines[Due],
    ) -> None:
        self._plane = plane
        self._installer = installer
        self._swapping = swapping
        self._grace = grace
        self._due = due
        self._read: dict[int, None] = {}
        self._are_late = False
        self._by_cookie: dict[int, bytes] = {}
        self._doubtful: dict[bytes, None] = {}
        self._lacking: dict[bytes, None] = {}
        self._found: dict[bytes, SenderEntries] = {}
        self._broken: dict[bytes, None] = {}
        self._waiting: dict[int, dict[bytes, None]] = {}

    def withheld(self, dpid: int, lacking: Iterable[Key]) -> Collection[Key]:
        """Return which of the entries that a switch was found to lack, or to have otherwise, are not sent yet.

        A switch that holds nothing was restarted, and gets all that it lacks.
        """
        if not self._looks_at(dpid) or not self._installer.installed(dpid):
            return ()
        desired, kept = self._installer.desired(dpid), set()
        for key in lacking:
            rule = desired.get(key)  # type: ignore[arg-type]
            group = None if rule is None else self._group_of(rule)
            if group is not None and not group.is_out and not group.held:
                kept.add(key)
                self._lacking[group.address] = self._doubtful[group.address] = None
        return kept

    def switch_read(self, dpid: int, now: float) -> list[Effect]:
        """Take in what a switch holds, and what can be told by that of groups."""
        if not self._looks_at(dpid):
            return []
        if not self._read:
            self._due.set(Due.READ, now + SWITCHES_AWAITED_S)
        self._read[dpid] = None
        for key, rule in self._installer.unknown(dpid).items():
            if (group := self._group_of(rule)) is None:
                continue
            if group.is_out:
                self._doubtful[group.address] = None
            if _is_entrance(rule):
                self._found.setdefault(group.address, {})[dpid, key] = None
        waited = self._waiting.pop(dpid, {})
        return [effect for address in (*waited, *self._doubtful) for effect in self._look(address, now)]

    def others_late(self, now: float) -> list[Effect]:
        """Wait no longer for switches that were not read."""
        self._are_late = True
        waiting, self._waiting = self._waiting, {}
        addresses = [address for others in waiting.values() for address in others]
        return [effect for address in addresses for effect in self._look(address, now)]

    def end(self, now: float) -> list[Effect]:
        """Take it that the time of grace has ended; groups of which there is no log are in, or out for want of room.

        In are those whose entries stand. The others get theirs beside, as the plane releases them, where all fit.
        """
        held = [group for group in self._plane.groups.values() if group.held] if self._swapping.is_used else []
        effects: list[Effect] = []
        others = [group for group in held if not self._takes_in(group, effects, now)]
        if others and not self._fit_beside(others, effects):
            for group in others:
                if not self._swapping.stays_in(group):
                    effects += self._puts_out(group, now)
        maps = (self._read, self._by_cookie, self._lacking, self._found, self._doubtful, self._broken, self._waiting)
        for known in maps:
            known.clear()
        return effects

    def _fit_beside(self, groups: Iterable[Group], effects: list[Effect]) -> bool:
        """Tell whether tables have room for all that groups need beside what they hold."""
        needed: Counter[int] = Counter()
        for group in groups:
            needed.update(self._swapping.accounts.needs(group, effects)[1])
        limits, held = self._swapping.accounts.limits, self._installer.by_table
        places = {table: place_of(table) for table in needed}
        return all(
            held(dpid, confirmed=True)[table_id] + needed[table] <= limits.of(table).limit
            for table, (dpid, table_id) in places.items()
        )

    def _puts_out(self, group: Group, now: float) -> list[Effect]:
        """Have a group be out that was taken to be in."""
        group.held = False
        group.tree_version = self._plane.found.version_beside(group.cookie)
        self._swapping.restore(group.address, True)
        return self._takes_off(group, now) + self._plane.refresh(group, (), now, Urgency.BULK)

    def _takes_off(self, group: Group, now: float) -> list[Effect]:
        """Have switches hold nothing more of what they were found to of a group, entries of its senders go first."""
        entrances = self._found.get(group.address, {})
        found = (self._plane.found.versions(group.cookie) or {}).values()
        rest = [
            (dpid, key)
            for entries in found
            for dpid, key in sorted(entries, key=_order)
            if key not in self._installer.desired(dpid)
        ]
        keys = {*entrances, *rest}
        self._swapping.departures.begin(group, Counter(table_of(dpid, key.table) for dpid, key in keys), keys, now)
        stages = [[(dpid, Remove(key)) for dpid, key in stage] for stage in (entrances, rest) if stage]
        return self._installer.change(stages, now, DRAIN_S, is_patient=True)

    def _looks_at(self, dpid: int) -> bool:
        return self._swapping.is_used and dpid not in self._read and self._grace.is_running

    def _group_of(self, rule: FlowEntry) -> Group | None:
        groups, cookie = self._plane.groups, rule.cookie & ~SENDER_COOKIE_BIT
        address = self._by_cookie.get(cookie)
        if address is None and len(self._by_cookie) < len(groups):
            self._by_cookie = {group.cookie: each for each, group in groups.items()}
            address = self._by_cookie.get(cookie)
        return None if address is None else groups.get(address)

    def _look(self, address: bytes, now: float) -> list[Effect]:
        """Tell what became of a group, once all switches of its tree were read."""
        self._doubtful.pop(address, None)
        group = self._plane.groups.get(address)
        if group is None or group.held:
            return []
        nodes = [dpid for tree in self._plane.islands.trees(group.key) for dpid in tree.nodes()]
        if self._waits(address, nodes):  # type: ignore[arg-type]
            return []
        if not group.is_out:
            is_lacking = address in self._lacking
            self._lacking.pop(address, None)
            return self._was_in(group, now) if is_lacking else []
        effects: list[Effect] = []
        if address in self._found and address not in self._broken:
            if self._takes_in(group, effects, now):
                return effects
            self._broken[address] = None
        if self._waits(address, self._plane.forest.graph.nodes()):  # type: ignore[arg-type]
            return effects
        effects += self._takes_off(group, now)
        self._found.pop(address, None)
        return effects

    def _waits(self, address: bytes, switches: Iterable[int]) -> bool:
        """Have a group be looked at when another of some switches was read; False where all were, or are late."""
        for dpid in () if self._are_late else switches:
            if dpid not in self._read:
                self._waiting.setdefault(dpid, {})[address] = None
                return True
        return False

    def _takes_in(self, group: Group, effects: list[Effect], now: float) -> bool:
        """Have a group be in where switches hold all that it needs, by a tree version that the log need not have."""
        before = group.tree_version
        for version in dict.fromkeys((before, *(self._plane.found.versions(group.cookie) or ()))):
            group.tree_version = version
            needs, entries = self._swapping.accounts.needs(group, effects)
            if not is_covered(version) and self._stands(needs):
                group.held = False
                effects += self._swapping.found_in(group, needs, entries, now)
                return True
        group.tree_version = before
        return False

    def _stands(self, needs: Needs) -> bool:
        """Tell whether switches that were read hold all that a group needs beside its senders' entries."""
        return all(
            dpid not in self._read or self._installer.installed(dpid).get(key) == rule
            for dpid, rules in needs.rules.items()
            for key, rule in rules.items()
            if not _is_entrance(rule)
        )

    def _was_in(self, group: Group, now: float) -> list[Effect]:
        """Have a group be out of whose senders no switch has an entry; of another all is sent, these last."""
        entrances: Stage = []
        rest: Stage = []
        is_there = False
        for dpid, rules in sorted(group.rules.items()):
            for rule in rules:
                is_entrance = _is_entrance(rule)
                (entrances if is_entrance else rest).append((dpid, Put(rule)))
                if is_entrance and (dpid not in self._read or self._installer.may_hold(dpid, rule.key)):
                    is_there = True
        if entrances and not is_there and not self._swapping.stays_in(group):
            return self._swapping.take_out(group.address, now)[0]
        return self._installer.change([stage for stage in (rest, entrances) if stage], now, 0.0, Urgency.BULK)


def _is_entrance(rule: FlowEntry) -> bool:
    """Tell whether packets of a sender enter a tree by an entry: of a refused one they are dropped."""
    return bool(rule.cookie & SENDER_COOKIE_BIT and rule.actions)


def _order(entry: tuple[int, FlowKey]) -> tuple[int, int, bytes, bytes]:
    dpid, key = entry
    return dpid, key.table, key.match.eth_dst or b"", key.match.ip_src or b""
