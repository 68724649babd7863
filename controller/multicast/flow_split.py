"""Flows of a group's senders over its trees: switches divide what they send into parts, each of which takes one tree.

The entry of a sender hashes each packet into a part, and an entry per part, for all senders of the group at the
switch, says by which tree it goes. A part is to trees what a sender is where flows are not divided: it is moved by
its entry alone. The entries of parts stand, confirmed, before any sender's entry divides its packets; and no sender's
does any more, and nothing is under way, when they go.
"""

from __future__ import annotations

from collections.abc import Callable

from controller.datapath.lanes import Urgency
from controller.effects import Effect, Notice
from controller.kernel.domains import in_domain
from controller.multicast.alias_moves import PATIENCE_S, AliasedPlane, AliasMoves, TreeDeparture
from controller.multicast.flow_parts import FlowParts, PartKey
from controller.multicast.group import FlowName, Group
from controller.multicast.rate_meter import CounterReading
from controller.rules.compile import part_of
from controller.rules.installer import Installer
from controller.rules.model import FLOW_PARTS, FlowKey
from controller.rules.openflow import FlowCounter
from controller.rules.pipeline import OPENFLOW_1_0, SPLIT
from controller.service_classes.split import split
from controller.trees.tree import TreeRole

NOT_SPLIT = "flows-not-split"
"""The notice that all that a sender at a switch sends takes one tree, though flows are to be divided."""


class FlowSplit:
    """Divides flows of groups with aliases, where `is_used`, at switches that can.

    `is_usable` tells whether flows may begin on a tree.
    """

    def __init__(
        self, plane: AliasedPlane, installer: Installer, moves: AliasMoves, is_usable: Callable[[Group], bool]
    ) -> None:
        self.is_used = False
        self._plane = plane
        self._installer = installer
        self._moves = moves
        self._is_usable = is_usable
        self._divided: dict[bytes, None] = {}
        self._unable: dict[int, str] = {}
        self._told: set[int] = set()

    def is_waiting(self, group: Group) -> bool:
        """Tell whether some entries of parts of flows are not confirmed yet, or are about to go."""
        return any(not parts.is_used for parts in (group.parts or {}).values())

    def follow(self, group: Group, now: float) -> list[Effect]:
        """Divide flows of a group where that is due, or do so no more."""
        effects: list[Effect] = []
        sending = _sending(group)
        for dpid, parts in list((group.parts or {}).items()):
            if dpid not in sending:
                effects += self._drop(group, dpid, now)
            elif parts.is_leaving:
                continue
            elif dpid in self._unable or not self._is_wanted(group):
                effects += self._undivide(group, dpid, parts, now)
            elif not parts.is_used:
                effects += self._use(group, dpid, parts, now)
        if self._is_wanted(group) and sum(map(self._is_usable, group.all_trees())) > 1:
            effects += self.divide(group, now)
        return effects

    def divide(self, group: Group, now: float) -> list[Effect]:
        """Divide flows at each switch that can and has senders, over the trees that all their switches know of."""
        effects: list[Effect] = []
        for dpid in sorted(_sending(group)) if self._is_wanted(group) else ():
            if group.parts_at(dpid) is None:
                effects += self._divide(group, dpid, now) if self._is_able(dpid) else self._tell(dpid)
        return effects

    def flows(self, group: Group) -> tuple[dict[FlowName, float], dict[FlowName, int]]:
        """Return what `AliasMoves.flows` does, were flows divided wherever a further tree would have them divided."""
        rates, held = self._moves.flows(group)
        if self.is_used:
            for key, sender in group.senders.items():
                if sender.admitted and group.parts_at(key.dpid) is None and self._is_able(key.dpid):
                    rate, rates[key] = rates[key], 0.0
                    for part in range(FLOW_PARTS):
                        name = PartKey(key.dpid, part)
                        rates[name] = rates.get(name, 0.0) + rate / FLOW_PARTS
                        held.setdefault(name, held[key])
        return rates, held

    def sender_left(self, group: Group, dpid: int, now: float) -> list[Effect]:
        """Take the entries of parts away where the last sender at a switch has gone."""
        return [] if group.parts_at(dpid) is None or dpid in _sending(group) else self._drop(group, dpid, now)

    def switch_connected(self, dpid: int, speaks_otherwise: bool, now: float) -> list[Effect]:
        """Take it that a switch may have learnt to divide flows, or, by another version, cannot any more."""
        self._unable.pop(dpid, None)
        self._told.discard(dpid)
        effects: list[Effect] = []
        for address in list(self._divided) if speaks_otherwise else ():
            group = self._plane.groups.get(address)
            if group is not None and group.parts_at(dpid) is not None:
                self._forget(group, dpid)
                for tree in group.all_trees():
                    effects += self._settle(tree, dpid, now)
        return effects

    def counted(self, dpid: int, entry: FlowCounter, now: float) -> bool:
        """Take in what an entry has counted; True where it is that of a part, whose rate is news to the trees."""
        table, _, match = entry.rule.key
        part = part_of(match) if table == SPLIT else None
        if part is None or part >= FLOW_PARTS or match.ip_dst is None or entry.byte_count is None:
            return False
        group = self._plane.groups.get(in_domain(match.ip_dst, match.vlan_id or 0))
        parts = None if group is None else group.parts_at(dpid)
        if group is None or parts is None:
            return False
        if not parts.measured(part, CounterReading(now, entry.duration_s, entry.byte_count)):
            return False
        self._plane.sender_measured(group.address, dpid)
        return True

    def _is_wanted(self, group: Group) -> bool:
        return self.is_used and group.trees is not None

    def _is_able(self, dpid: int) -> bool:
        return dpid not in self._unable and self._plane.rules.may_divide(dpid)

    def _tell(self, dpid: int) -> list[Effect]:
        """Tell once that a switch does not divide flows, when it is known why."""
        why = self._unable.get(dpid)
        if why is None and self._plane.rules.ofp_version(dpid) == OPENFLOW_1_0:
            why = "it speaks OpenFlow 1.0"
        if why is None or dpid in self._told:
            return []
        self._told.add(dpid)
        text = f"Switch {dpid} does not divide flows, for {why}: all that a sender there sends takes one tree."
        return [Notice(NOT_SPLIT, text, (("dpid", dpid),))]

    def _divide(self, group: Group, dpid: int, now: float) -> list[Effect]:
        """Give the parts of flows at a switch trees, and have the switch know of them."""
        rates, held = self._moves.flows(group)
        senders = [key for key, sender in group.senders.items() if key.dpid == dpid and sender.admitted]
        total_bps = sum([rates[key] for key in senders], 0.0)
        names = [PartKey(dpid, part) for part in range(FLOW_PARTS)]
        rates |= {key: 0.0 for key in group.senders if key.dpid == dpid}
        rates |= dict.fromkeys(names, total_bps / FLOW_PARTS)
        usable = [tree.number for tree in group.all_trees() if self._is_usable(tree)]
        found = split(rates, usable or [0], held)
        parts = group.parts or {}
        parts[dpid] = FlowParts([found[name] for name in names], total_bps)
        for tree in group.all_trees():
            tree.parts = parts
        self._divided[group.address] = None
        effects: list[Effect] = []
        for tree in group.all_trees():
            if tree.number in parts[dpid].trees:
                effects += self._moves.enter(tree, (dpid,), now)
            else:
                self._moves.tell_rate(tree, dpid)
        return effects

    def _use(self, group: Group, dpid: int, parts: FlowParts, now: float) -> list[Effect]:
        """Have senders' entries divide their packets, if the switch has confirmed the entries of all parts."""
        rules, installer = self._plane.rules, self._installer
        keys = [key for tree in group.all_trees() for key in rules.entry_keys(tree, dpid)[1]]
        if any(installer.is_refused(dpid, key) for key in keys):
            return self._refused(group, dpid, parts, now)
        if len(keys) < FLOW_PARTS or not all(installer.is_confirmed(dpid, key) for key in keys):
            return []
        parts.is_used = True
        effects: list[Effect] = []
        for tree in group.all_trees():
            senders, _ = rules.entry_keys(tree, dpid)
            if senders:
                effects += self._plane.refresh(tree, (None,), now, Urgency.BULK)
                left = TreeDeparture(group, tree, {dpid}, {(dpid, key) for key in senders}, now, now + PATIENCE_S)
                left.refused = lambda at: self._refused(group, dpid, parts, at)
                self._moves.departures.append(left)
        self._moves.told(group, now, dpid)
        return effects

    def _refused(self, group: Group, dpid: int, parts: FlowParts, now: float) -> list[Effect]:
        """Give up dividing flows at a switch that refused an entry for it."""
        self._unable[dpid] = "it refused an entry that has it do so (multipath and resubmit of Open vSwitch)"
        if group.parts_at(dpid) is not parts or parts.is_leaving:
            return self._tell(dpid)
        return [*self._tell(dpid), *self._undivide(group, dpid, parts, now)]

    def _undivide(self, group: Group, dpid: int, parts: FlowParts, now: float) -> list[Effect]:
        """Have senders at a switch take one tree each again; the entries of parts go when nobody goes by them."""
        parts.is_used, parts.is_leaving = False, True
        keys: set[tuple[int, FlowKey]] = set()
        effects: list[Effect] = []
        for tree in group.all_trees():
            own = [key for key in tree.own_senders() if key.dpid == dpid]
            for key in own:
                keys |= {(dpid, rule_key) for rule_key in self._plane.rules.take_flow(tree, key)}
            if own:
                effects += self._moves.enter(tree, (dpid,), now)
        left = TreeDeparture(group, group, set(), keys, now, now + PATIENCE_S)
        left.drained = lambda at: self._drop(group, dpid, at) if group.parts_at(dpid) is parts else []
        self._moves.departures.append(left)
        self._moves.told(group, now, dpid)
        return effects

    def _drop(self, group: Group, dpid: int, now: float) -> list[Effect]:
        """Take the entries of parts at a switch away."""
        trees = [tree for tree in group.all_trees() if tree.part_entries(dpid)]
        self._forget(group, dpid)
        effects = [effect for tree in trees for effect in self._settle(tree, dpid, now)]
        self._moves.told(group, now, dpid)
        return effects

    def _forget(self, group: Group, dpid: int) -> None:
        parts = group.parts
        assert parts is not None
        del parts[dpid]
        if not parts:
            self._divided.pop(group.address, None)
            for tree in group.all_trees():
                tree.parts = None

    def _settle(self, tree: Group, dpid: int, now: float) -> list[Effect]:
        """Have a switch do for a tree what follows from its senders there, now that flows are not divided."""
        forest, role = self._plane.forest, TreeRole.SENDER
        change = forest.join(tree.key, dpid, role) if tree.sends_at(dpid) else forest.leave(tree.key, dpid, role)
        self._moves.tell_rate(tree, dpid)
        return self._plane.refresh(tree, (change,), now, Urgency.BULK)


def _sending(group: Group) -> set[int]:
    """Return the switches at which a group has admitted senders."""
    return {key.dpid for key, sender in group.senders.items() if sender.admitted}
