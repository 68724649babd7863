"""Which groups have entries in tables that are too small for all: silent ones go out, a packet brings one in.

A group is in at all switches of its tree or out at all. It goes out in the order senders' entries, barrier, a pause
for what is under way, the rest; and comes in in reverse, with a pause where it left a moment ago. A packet of a group
that is out meets no entry at its sender's port, so the controller hands it on; none is in the fabric without a way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import inf

from controller.admission.host import HostLike
from controller.config.overcommit_settings import OFF, Overcommit
from controller.config.policy import Tenant
from controller.datapath.lanes import Urgency
from controller.effects import Effect, Remove
from controller.multicast.carried import CarriedPackets
from controller.multicast.common_refusals import CommonRefusals
from controller.multicast.covering import Covering
from controller.multicast.departures import Departures
from controller.multicast.full_tables import FullTables
from controller.multicast.group import Group, SenderKey
from controller.multicast.group_changes import GroupChanges
from controller.multicast.group_rules import Needs
from controller.multicast.groups import GroupPlane
from controller.multicast.sharing import Sharing
from controller.multicast.staged_edits import withdrawn
from controller.multicast.swap_slots import SwapSlots
from controller.multicast.table_accounts import TableAccounts
from controller.multicast.table_limits import place_of
from controller.multicast.table_questions import TableQuestions
from controller.multicast.table_readings import TableReadings
from controller.multicast.table_tenants import TableTenants
from controller.multicast.thrashing import Thrashing
from controller.rules.compile_shared import shares
from controller.rules.installer import Installer
from controller.rules.plans import DRAIN_S
from controller.rules.timeouts import earliest

GROUPS_PER_TURN = 64
"""Groups that are looked at in one turn of the loop."""

SETTLE_SOON_S, SETTLE_LATER_S = 0.02, 0.5
"""Between two looks at groups whose entries are others, while tables are short of free ones or groups wait, and else.

In a storm of joins a group is looked at once for many.
"""

COUNT_INTERVAL_S = 30.0
"""Between two counts of the entries that stay whatever groups do; those of short tables come at each reading."""


class Swapping:
    """Brings groups in and out of the tables of a plane's switches, in mode `swap`; else all are in.

    Attributes
    ----------
    is_used
        Whether groups may be out.
    counters
        `swaps-in`, `swaps-out`; `faults`: packets to groups out, or on their way in, of known senders; and of these
        `faults-over-limit` and `carried-over-limit`, which were dropped, and `faults-turned-away`, whose group stays
        out since it sends less than those that would have to leave; `groups-asked`, by `IdleMembers`.
    faults
        The same packets by the switch that they came to.
    always_in
        Tells whether the policy or an operator has a group always sent somewhere, so that it stays in.
    pinned
        Groups that an operator wants in.
    slots, questions
        How many groups may be out, and what switches are asked.
    accounts, readings, departures
        How full tables are of which groups, what these send, and which are on their way out.
    """

    def __init__(
        self,
        plane: GroupPlane,
        installer: Installer,
        group_changes: GroupChanges,
        slots: SwapSlots,
        host_of: Callable[[SenderKey], HostLike],
    ) -> None:
        self.is_used = False
        self.counters: Counter[str] = Counter()
        self.faults: Counter[int] = Counter()
        self.always_in: Callable[[bytes], bool] = lambda _address: False
        self.pinned: dict[bytes, None] = {}
        self._settings = Overcommit()
        self._named: Sequence[Tenant] = ()
        self._tenants = TableTenants(plane, host_of)
        self._plane = plane
        self._installer = installer
        self._changes = group_changes
        self.slots = slots
        self.accounts = TableAccounts(plane, installer, self._settings)
        self.readings = TableReadings(self.accounts)
        self.questions = TableQuestions(installer, self.accounts, self.readings)
        self._tables = self.accounts.tables
        self._limits = self.accounts.limits
        self._touched: dict[bytes, None] = {}
        self._entering: dict[bytes, None] = {}
        self.departures = Departures(plane, installer)
        self._restored: dict[bytes, None] = {}
        self._carried = CarriedPackets(self._settings, self.counters)
        self._full = FullTables(plane, installer, self.accounts, self.out)
        self._refusals = CommonRefusals(plane, installer)
        self._out: dict[bytes, None] = {}
        self._settle_s = self._count_s = -inf
        self._thrashing = Thrashing()
        self._sharing = Sharing(plane, self._room)
        self.covering = Covering(
            plane, self.accounts, self.departures, group_changes, self._room, self.out, self.counters
        )

    def use(self, policy: Overcommit, tenants: Sequence[Tenant], now: float) -> None:
        """Go by another policy: groups come in, or may leave, in turn."""
        named = tenants if policy.tenants else ()
        if (policy, named) == (self._settings, self._named):
            return
        self._settings, self._named = policy, named
        self.slots.use(policy, tenants)
        self.is_used = policy.mode != OFF
        self._full.use(self.is_used)
        self._plane.starts_out = self._starts_out if self.is_used else None
        self._plane.ended = self.forget if self.is_used else None
        self._changes.followed_by = self.touch if self.is_used else None
        self.readings.is_used = self.is_used
        self._carried.use(policy)
        self.questions.use(self.is_used)
        if not self.is_used:
            self.accounts.clear()
            self._sharing.clear()
            for known in (self._entering, self._restored):
                known.clear()
        self.accounts.use(policy)
        self.covering.use(policy)
        self._tables.use_shares(self._tenants.use(policy, tenants), self._tenants.of)
        self.touch_all()
        self.readings.asked(now)

    # Who is in

    def _starts_out(self, address: bytes) -> bool:
        """Tell whether a new group begins without entries: nobody sends to it yet, or none that was heard."""
        self._touched[address] = None
        if address in self._restored:
            del self._restored[address]
            return False
        if self._is_pinned(address):
            return False
        self._out[address] = None
        return True

    def restore(self, address: bytes, is_out: bool) -> None:
        """Have a group of an earlier run begin as it was, or of another controller be as it is there."""
        if not self.is_used:
            return
        group = self._plane.groups.get(address)
        if group is not None:
            group.is_out = is_out and not self._is_pinned(address)
            self._out.pop(address, None)
            if group.is_out:
                self._out[address] = None
        elif is_out:
            self._restored.pop(address, None)
        else:
            self._restored[address] = None

    def _is_pinned(self, address: bytes) -> bool:
        return address in self.pinned or self.always_in(address)

    def stays_in(self, group: Group) -> bool:
        """Tell whether a group is not to leave."""
        return group.trees is not None or group.unsupported is not None or self._is_pinned(group.address)

    def pin(self, address: bytes, present: bool) -> None:
        """Have a group stay in as an operator wants it, or no longer."""
        self.pinned.pop(address, None)
        if present:
            self.pinned[address] = None
        if self.is_used and address in self._plane.groups:
            self._touched[address] = None

    def touch(self, address: bytes) -> None:
        """Have it looked at what entries a group has now: soon, or where it is in and has ample room when needed."""
        group = self._plane.groups.get(address)
        if group is None or not group.interests:
            self.slots.left(address)
        if group is not None:
            accounts = self.accounts
            (accounts.behind if accounts.is_ample and not group.is_out else self._touched)[address] = None

    def touch_all(self) -> None:
        """Have all groups looked at soon."""
        self._touched.update(dict.fromkeys(self._plane.groups))

    def catch_up(self) -> None:
        """Note what entries groups have of which that is not known."""
        behind, groups = self.accounts.behind, self._plane.groups
        for address in behind:
            group = groups.get(address)
            if group is None or address not in self._tables or self.stays_in(group):
                self._touched[address] = None
            else:
                self.accounts.follow(group)
        behind.clear()

    def _look_at_those_behind(self) -> None:
        self._touched.update(self.accounts.behind)
        self.accounts.behind.clear()

    def _settle(self, now: float) -> list[Effect]:
        """Take in what entries groups have now; those for which there is no room go out."""
        effects: list[Effect] = []
        self.accounts.look_for_room()
        if not self.accounts.is_ample:
            self._look_at_those_behind()
        for address in list(islice(self._touched, GROUPS_PER_TURN)):
            self._touched.pop(address, None)
            effects += self._look(address, now)
        if self._limits.outdated and not self._touched:
            self._limits.count_outdated()
        is_urgent = self._touched or self._tables.short
        self._settle_s = now + (SETTLE_SOON_S if is_urgent else SETTLE_LATER_S)
        return effects

    def _look(self, address: bytes, now: float) -> list[Effect]:
        group = self._plane.groups.get(address)
        if group is None or group.held:
            return []
        if group.is_out:
            if self.is_used and not self.stays_in(group):
                return []
            return [] if address in self.departures else self._put(group, now)
        if not self.is_used:
            return self._plane.move_aside(group, now, shared=False) if shares(group.tree_version) else []
        entries = self._account(group, now)
        if entries is not None and not self.accounts.is_ample:
            self._sharing.look(group)
        return [] if entries is None or not self._tables.short else self._make_room(address, entries, now)

    def _account(self, group: Group, now: float) -> Mapping[int, int] | None:
        """Note and return what entries a group has that is in; None where it is not to leave."""
        if not self.stays_in(group):
            return self.accounts.account(group, now)
        if group.address in self._tables:
            self._tables.forget(group.address)
        return None

    def _make_room(self, address: bytes, entries: Mapping[int, int], now: float) -> list[Effect]:
        """Have a group that is in leave whole where a table has no room for all that it needs there now."""
        tables = self._tables.tables
        if all(tables[table].free >= 0 for table in entries):
            return []
        effects = self._leave_ahead(now)
        if any(tables[table].free < 0 for table in entries) and address in self._tables:
            effects += self.out(address, now)
        return effects

    def forget(self, address: bytes) -> None:
        """Drop all that is known of a group that is no more, at once: one of the same name begins anew."""
        self._touched.pop(address, None)
        self.accounts.behind.pop(address, None)
        self._restored.pop(address, None)
        if address in self._entering:
            del self._entering[address]
            self.accounts.reserved.subtract(self._tables.entries(address))
        self._tables.forget(address)
        self.covering.forget(address)
        self._carried.forget(address)
        self._full.failed.forget(address)
        self._out.pop(address, None)
        self.slots.left(address)

    # In

    def may_carry(self, dpid: int, address: bytes, now: float) -> bool:
        """Tell whether a packet to a group that is out may be handed on: within what its switch and it may have."""
        self.counters["faults"] += 1
        self.faults[dpid] += 1
        return self._carried.may(dpid, address, now)

    def fault(self, address: bytes, now: float) -> list[Effect]:
        """Take in that a packet of an admitted sender came to a group that is out: it comes in if it may."""
        group = self._plane.groups.get(address)
        if group is None or not group.is_out or not self.is_used or address in self._entering:
            return []
        if not self._tables.residence.missed(address, now):
            return []
        if self._full.failed.waits(address, now):
            return []
        return self._bring_in(group, now)

    def _bring_in(self, group: Group, now: float) -> list[Effect]:
        """Have a group that is out come in, and others leave for it, where these send less."""
        effects: list[Effect] = []
        if not self.accounts.is_ample:
            self._sharing.choose(group)
        address, (needs, entries) = group.address, self.accounts.needs(group, effects)
        self.accounts.follow_shared()
        missing = self.accounts.with_shared(needs, entries)
        self.accounts.know(missing)
        leaving = self._tables.find_leaving(address, missing, now)
        if leaving is None:
            self.counters["faults-turned-away"] += 1
            self._thrashing.turned_away(address, entries, now)
            self.readings.schedule()
            return effects
        for other in leaving:
            effects += self.out(other, now, Urgency.PROMPT)
        self._tables.came_in(address, entries, now)
        self._thrashing.swapped_in(entries)
        if not self.departures.departing:
            effects += self._put(group, now, needs)
        else:
            self._entering[address] = None
            self.accounts.reserved.update(entries)
            effects += self._enter(now, {address: needs})
        effects += self._leave_ahead(now)
        self.readings.schedule()
        return effects

    def bring_in(self, address: bytes, now: float) -> tuple[list[Effect], str | None]:
        """Have a group come in without a packet; the answer says why not where it cannot."""
        group = self._plane.groups.get(address)
        fault = self._not_asked(group)
        if fault is not None or group is None:
            return [], fault
        if not group.is_out or address in self._entering:
            return [], "it is in already"
        self._tables.residence.missed(address, now)
        effects = self._bring_in(group, now)
        return effects, None if address in self._tables else "all that would have to leave for it send more"

    def take_out(self, address: bytes, now: float) -> tuple[list[Effect], str | None]:
        """Have a group go out until its next packet; the answer says why not where it cannot."""
        group = self._plane.groups.get(address)
        fault = self._not_asked(group)
        if fault is not None or group is None:
            return [], fault
        if not group.is_out and not group.held:
            self._account(group, now)
        if address not in self._tables:
            return [], "it is out already" if group.is_out else "it stays in: it is pinned, or has static members"
        return self.out(address, now), None

    def found_in(self, group: Group, needs: Needs, entries: Mapping[int, int], now: float) -> list[Effect]:
        """Take it that switches hold the entries of a group that was taken to be out; there may be no room left."""
        self.accounts.know(entries)
        self._tables.came_in(group.address, entries, now)
        self._touched[group.address] = None
        return self._put(group, now, needs)

    def _not_asked(self, group: Group | None) -> str | None:
        if not self.is_used:
            return f"overcommit.mode is {OFF}, so that all groups are in"
        return "there are no members or senders of it" if group is None else None

    def _enter(self, now: float, known: Mapping[bytes, Needs]) -> list[Effect]:
        """Send the entries of those that tables have room for by now; what some need is `known` of this moment."""
        effects: list[Effect] = []
        for address in list(self._entering):
            entries = self._tables.entries(address)
            if address in self.departures or any(self._room(table) < count for table, count in entries.items()):
                continue
            del self._entering[address]
            self.accounts.reserved.subtract(entries)
            effects += self._put(self._plane.groups[address], now, known.get(address))
        return effects

    def _room(self, table: int) -> int:
        """Return how many entries a table has room for, those that are still on their way out counted as there."""
        return self._tables.tables[table].free + self.accounts.reserved[table] - self.departures.leaving[table]

    def _put(self, group: Group, now: float, needs: Needs | None = None) -> list[Effect]:
        """Give switches the entries of a group, those of its senders last."""
        group.is_out = False
        self._out.pop(group.address, None)
        self.counters["swaps-in"] += 1
        self._carried.forget(group.address)
        pause_s = self.departures.pause_s(group.address, now)
        effects: list[Effect] = []
        if needs is None and self.is_used:
            needs, _ = self.accounts.needs(group, effects)
        effects += self._plane.refresh(group, (), now, needs=needs, pause_s=pause_s)
        group.arrives = True
        self._changes.changed(group.address, now)
        if self._plane.aliases.is_used:
            self._plane.aliases.touch(group.address)
        return effects

    # Out

    def out(self, address: bytes, now: float, urgency: Urgency = Urgency.BULK) -> list[Effect]:
        """Take the entries of a group from all switches."""
        if address in self.accounts.behind:
            self.catch_up()
        entries = self._tables.entries(address)
        self._tables.went_out(address)
        if address in self._entering:
            del self._entering[address]
            self.accounts.reserved.subtract(entries)
            return []
        group = self._plane.groups[address]
        group.is_out = True
        self._out[address] = None
        for sender in group.senders.values():
            sender.packet_count = 0
        self.counters["swaps-out"] += 1
        stages = withdrawn(group, self._plane.rules, self._plane.shared, self._installer, now)
        keys = {(dpid, edit.key) for stage in stages for dpid, edit in stage if type(edit) is Remove}
        self.departures.begin(group, entries, keys, now)
        self.covering.left(group)
        self._plane.transitions.note(group, False, group.unconfirmed or set(), [], [e for s in stages for e in s])
        effects = self._installer.change(stages, now, DRAIN_S, urgency, is_patient=True)
        self._changes.changed(address, now)
        return effects

    def _leave_ahead(self, now: float) -> list[Effect]:
        """Have groups that have ended leave where tables are short, and first go under covering trees."""
        effects = self.covering.compress(now)
        return effects + [effect for address in self._tables.take_ended() for effect in self.out(address, now)]

    # Switches

    def switch_connected(self, dpid: int) -> None:
        """Take it that a switch may be another one than it was."""
        if self.is_used:
            self.accounts.switch_connected(dpid)
            self.questions.connected(dpid)

    def _look_for_full(self, now: float) -> list[Effect]:
        """Follow switches that refused entries for want of room."""
        self.catch_up()
        effects = self._full.look(self._settings.carried_packets_per_second, now)
        if effects is None:
            return []
        self.readings.schedule()
        return effects + self._leave_ahead(now) + self.questions.ask_again(now)

    # Readings

    def _read(self, now: float) -> list[Effect]:
        self.readings.take(now)
        if self._limits:
            self._limits.count_soon({place_of(table)[0] for table in self._tables.short})
            if now >= self._count_s:
                self._count_s = now + COUNT_INTERVAL_S
                self._limits.count_later({place_of(table)[0] for table in self._tables.tables})
                self._look_at_those_behind()
        self.accounts.follow_shared()
        effects = [*self._full.try_more(now), *self.covering.read(self.readings, now)]
        effects += self._leave_ahead(now) + self._sharing.go_over(now) + self.questions.ask_again(now)
        self.readings.schedule()
        return [*effects, *self._thrashing.look(self._tables, self._limits, now)]

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due next, None where nothing waits."""
        if self.readings.is_told or self._limits.due or self._full.is_due or self._refusals.is_due:
            return 0.0
        if self._plane.covers.is_watched and self.covering.is_due():
            return 0.0
        leaves_s = self.departures.next_deadline() if self.departures.departing else None
        if self._plane.shared.unused:
            leaves_s = earliest(leaves_s, self._plane.shared.next_deadline())
        if (self._touched or self.accounts.behind or self._limits.outdated) and (
            leaves_s is None or self._settle_s < leaves_s
        ):
            return self._settle_s
        return leaves_s

    def on_deadline(self, now: float) -> list[Effect]:
        """Do what is due."""
        effects: list[Effect] = []
        if self._refusals.is_due:
            self.covering.look_for_unfit()
            effects += self._refusals.on_deadline(now)
        effects += self.covering.on_deadline(now)
        effects += self._look_for_full(now) if self._full.is_due else []
        if (self._touched or self.accounts.behind or self._limits.outdated) and now >= self._settle_s:
            effects += self._settle(now)
        if self.readings.is_told:
            effects += self._read(now)
        if self._limits.due:
            self.accounts.count()
        if unused := self._plane.shared.take_unused(now):
            effects += self._installer.change([[(dpid, Remove(key)) for dpid, key in unused]], now)
        left = self.departures.on_deadline(now)
        self._touched.update(dict.fromkeys(left))
        return effects + self._enter(now, {}) + self.covering.wake(now) if left else effects

    def out_count(self) -> int:
        """Return how many groups are out."""
        return len(self._out)
