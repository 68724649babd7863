"""What switches hold of unicast's entries, as far as is known."""

from __future__ import annotations

from controller.kernel.domains import in_domain
from controller.rules.inspection import Inspection
from controller.rules.model import FlowEntry, FlowKey, Output, PushVlan, SetEthDst


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

    def tables_told(self, dpid: int) -> list[bytes]:
        """Return the hosts for which a switch has such entries, by their names, once it has told what it holds."""
        if self._is_over or dpid in self._told or not self._entries.is_read(dpid):
            return []
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
