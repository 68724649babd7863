"""What switches hold of unicast's entries, as far as is known."""

from __future__ import annotations

from typing import Final

from controller.kernel.domains import in_domain
from controller.kernel.ports import End
from controller.rules.inspection import Inspection
from controller.rules.model import FlowEntry, FlowKey, Key, Output, PushVlan, SetEthDst
from controller.rules.pipeline import PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, TopologyEvent

AWAITED_S: Final = 3.0
"""So long after switches last connected, told their entries or had a link of before found, at most, paths wait."""

AWAITED_BOUND_S: Final = 10.0
"""So long before the entries from before go paths follow the links that there are."""

BEHIND_S: Final = 0.5
"""A wait whose end is looked at later than so has been for a controller that is behind: links may have been told."""


def is_held(key: Key) -> bool:
    """Tell whether an entry from before a restart stays until it is known who needs it: not that of a flow's way."""
    return key.priority not in (PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY) if isinstance(key, FlowKey) else True


def port_held(entries: Inspection, dpid: int, key: FlowKey) -> int | None:
    """Return the port by which a switch sends what an entry is for, None where it does not."""
    rule = entries.installed(dpid).get(key)
    last = rule.actions[-1] if rule is not None and rule.actions else None
    return last.port_no if isinstance(last, Output) else None


def unconfirmed(entries: Inspection, dpid: int) -> set[bytes]:
    """Return the addresses for which a switch may hold one entry or another, or none: edits are under way."""
    desired, installed = entries.desired(dpid), entries.installed(dpid)
    keys = (key for key in desired.keys() | installed.keys() if desired.get(key) != installed.get(key))
    return {key.match.eth_dst for key in keys if key.match.eth_dst is not None}


def _tag_given(rule: FlowEntry) -> int:
    """Return the VLAN whose tag an entry gives frames that come without one, 0 for none."""
    return next((action.vlan_id for action in rule.actions if isinstance(action, PushVlan)), 0)


class FormerEntries:
    """The entries for hosts of other switches that switches hold from before a restart, until these are released."""

    def __init__(self, entries: Inspection) -> None:
        self._entries = entries
        self._told: set[int] = set()
        self._switches_of: dict[bytes, set[int]] = {}
        self._is_over = False

    def tables_told(self, dpid: int) -> list[bytes] | None:
        """Return the hosts, by name, that a switch has such entries for, None before it has told what it holds."""
        if self._is_over or dpid in self._told or not self._entries.is_read(dpid):
            return None
        self._told.add(dpid)
        found = [
            in_domain(key.match.eth_dst, key.match.vlan_id or _tag_given(rule))
            for key, rule in self._entries.unknown(dpid).items()
            if key.match.eth_dst is not None and rule.actions and isinstance(rule.actions[0], SetEthDst)
        ]
        for mac in found:
            self._switches_of.setdefault(mac, set()).add(dpid)
        return found

    def disconnected(self, dpid: int) -> None:
        """Take it that a switch tells again what it holds when it is back."""
        self._told.discard(dpid)

    def switches_of(self, mac: bytes) -> list[int]:
        """Return the switches with such an entry for a host."""
        return sorted(self._switches_of.get(mac, ()))

    def release(self) -> None:
        """Forget them all: what nobody desires is removed from now on."""
        self._is_over = True
        self._told.clear()
        self._switches_of.clear()


class AwaitedLinks:
    """The ports that led to switches before a restart, and whose links are not found again yet.

    As long as there are some, and nothing says that the fabric is another one than it was, the paths that switches
    hold are right, and those by the links that are found so far may be none: switches that connect a second later
    than the others would have all paths led round them, and back. So paths wait while switches are still to tell
    what they hold, and where one holds entries from before; no longer than `AWAITED_S` after the last sign that
    switches come back. A port that is only not known to lead to a switch any more says nothing of the others: its
    switch is late too, or its frames are.
    """

    def __init__(self) -> None:
        self._awaited: set[End] = set()
        self._reading: set[int] = set()
        self._is_former_found = self._has_ended = self._is_over = False
        self._until_s: float | None = None
        self._bound_s = 0.0

    def connected(self, dpid: int, now: float, gone_s: float | None) -> None:
        """Take it that a switch connects, to be asked what it holds; former entries go at `gone_s`, None for now."""
        if gone_s is None:
            self._is_over = True
            return
        self._bound_s = gone_s - AWAITED_BOUND_S
        self._until_s, self._has_ended = min(now + AWAITED_S, self._bound_s), False
        self._reading.add(dpid)

    def told(self, dpid: int, has_former: bool, now: float) -> None:
        """Take it that a switch has told what it holds, with or without entries for hosts from before a restart."""
        self._reading.discard(dpid)
        self._is_former_found |= has_former
        self._goes_on(now)

    def disconnected(self, dpid: int) -> None:
        """Take it that a switch tells nothing now."""
        self._reading.discard(dpid)

    def follow(self, event: TopologyEvent, now: float) -> None:
        """Take in a change of the fabric."""
        if self._is_over:
            return
        if isinstance(event, PortRoleChanged):
            end = (event.dpid, event.port_no)
            if event.role is PortRole.TRUNK:
                self._awaited.add(end)
            elif end in self._awaited and event.role is not PortRole.UNKNOWN:
                self._awaited.discard(end)
                self._is_over = event.role is PortRole.DOWN
        elif isinstance(event, LinkUp):
            found = self._awaited & {(event.dpid_a, event.port_a), (event.dpid_b, event.port_b)}
            self._awaited -= found
            if found:
                self._goes_on(now)
        elif isinstance(event, LinkDown | SwitchDown):
            self._is_over = True

    def until_s(self, now: float) -> float | None:
        """Return until when paths stay as they are, None where they follow the links that there are."""
        if self._is_over or self._until_s is None or not self._awaited:
            return None
        if not (self._is_former_found or self._reading):
            return None
        if self._until_s + BEHIND_S < now and not self._has_ended:
            self._goes_on(now)
        self._has_ended = now >= self._until_s
        return None if self._has_ended else self._until_s

    def _goes_on(self, now: float) -> None:
        if self._until_s is not None:
            self._until_s, self._has_ended = min(now + AWAITED_S, self._bound_s), False
