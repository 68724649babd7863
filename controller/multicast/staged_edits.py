"""The edits that lead a group from its entries to others, in the stages in which switches get them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from controller.effects import Put, Remove
from controller.multicast.duties import duties_out
from controller.multicast.group import Group
from controller.multicast.group_rules import GroupRules
from controller.multicast.shared_entries import SharedEntries
from controller.multicast.transition import Stage, Way, shrink_first
from controller.rules.compile import RuleSet
from controller.rules.compile_shared import is_shared, shares
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey
from controller.rules.pipeline import SENDER_COOKIE_BIT
from controller.rules.plans import DRAIN_S


class StagedEdits:
    """Takes in switch by switch what a group has there and what it shall have.

    It `is_parted` where channels of it are, or have been, under covering trees by themselves.

    Where switches share entries, what they go by stands before others write it into packets. It does not go here:
    `SharedEntries` tells when.

    Attributes
    ----------
    removes
        All entries to remove.
    """

    def __init__(
        self,
        group: Group,
        way: Way,
        unconfirmed: AbstractSet[tuple[int, FlowKey]],
        shared: SharedEntries,
        is_parted: bool,
        now: float,
    ) -> None:
        self._now = now
        self._puts: Stage = []
        self.removes: Stage = []
        self._group = group
        self._way = way
        self._unconfirmed = unconfirmed
        self._shared = shared
        self._shares = shares(group.tree_version) or is_parted
        self._is_staged = self._shares and way is Way.IN_PLACE
        self._changing: Stage = []
        self._entering: Stage = []

    def switch(self, dpid: int, before: RuleSet, after: RuleSet) -> None:
        """Take in the entries of a group at a switch before and after."""
        way = self._way
        for key, rule in after.items():
            old = before.get(key)
            if is_shared(rule):
                self._shared.take(dpid, key, self._group.key)
            if way is Way.INTERRUPTED:
                if self._shares:
                    self._drop_first(dpid, rule, old)
                else:
                    is_unconfirmed = (dpid, key) in self._unconfirmed
                    shrink_first(dpid, rule, old, is_unconfirmed, self._puts, self._entering)
            elif old != rule:
                enters = rule.cookie & SENDER_COOKIE_BIT and rule.actions and (way is Way.BESIDE or old is None)
                stage = self._entering if enters else self._puts
                if self._is_staged and old is not None and not enters:
                    stage = self._changing
                stage.append((dpid, Put(rule)))
        for key, rule in before.items():
            if key in after:
                continue
            if is_shared(rule):
                self._shared.give_up(dpid, key, self._group.key, self._now)
            else:
                self.removes.append((dpid, Remove(key)))

    def wait_for_rest(self, installer: Installer) -> bool:
        """Have senders enter once switches have confirmed what the group has beside; tell whether some have not."""
        if not self._entering:
            return True
        added = {(dpid, edit.rule.key) for dpid, edit in self.all_puts() if type(edit) is Put}
        rest = [
            (dpid, rule)
            for dpid, rules in sorted(self._group.rules.items())
            for rule in rules
            if not rule.cookie & SENDER_COOKIE_BIT and not installer.is_confirmed(dpid, rule.key)
        ]
        self._puts += [(dpid, Put(rule)) for dpid, rule in rest if (dpid, rule.key) not in added]
        return bool(rest)

    def _drop_first(self, dpid: int, rule: FlowEntry, old: FlowEntry | None) -> None:
        """Have a switch drop what it would send otherwise, until all others do so: addresses tell of ports beyond."""
        if old == rule and (dpid, rule.key) not in self._unconfirmed:
            return
        if old is not None and not is_shared(rule):
            self._puts.append((dpid, Put(rule._replace(actions=()))))
        self._entering.append((dpid, Put(rule)))

    def all_puts(self) -> Stage:
        """Return all entries to put, but those by which senders enter."""
        return self._puts + self._changing

    @property
    def drain_s(self) -> float:
        """Return how long packets are given before the last stage, in seconds."""
        if self._shares and self._way is Way.INTERRUPTED:
            return DRAIN_S  # a core that is left still sends on what comes by the ports of before
        return DRAIN_S if self.removes and (self._way is Way.BESIDE or self._is_staged) else 0.0

    def stages(self) -> list[Stage]:
        """Return what is sent, each stage when the one before is confirmed."""
        if self._way is Way.BESIDE or self._is_staged:
            staged = [self._puts, self._changing, self._entering, self.removes]
        else:
            staged = [self._puts + self.removes, self._entering]
        return [stage for stage in staged if stage]


def withdrawn(
    group: Group, rules: GroupRules, shared: SharedEntries, installer: Installer, now: float
) -> list[Stage]:
    """Return the edits that leave of a group what it has while it is out, senders' entries first.

    Where no sender's entry can have been there nothing is under way, and all go at once.
    """
    kept = duties_out(group)
    senders: Stage = []
    rest: Stage = []
    for dpid, own in sorted(group.rules.items()):
        duty = kept.get(dpid)
        after = {} if duty is None else rules.lower(group, dpid, duty)
        for rule in own:
            if rule.key not in after:
                if is_shared(rule):
                    shared.give_up(dpid, rule.key, group.key, now)
                else:
                    (senders if rule.cookie & SENDER_COOKIE_BIT else rest).append((dpid, Remove(rule.key)))
            elif after[rule.key] != rule:
                rest.append((dpid, Put(after[rule.key])))
        group.set_duty(dpid, duty, tuple(after.values()))
    sends = any(installer.may_hold(dpid, edit.key) for dpid, edit in senders if type(edit) is Remove)
    return [stage for stage in ([senders, rest] if sends else [senders + rest]) if stage]
