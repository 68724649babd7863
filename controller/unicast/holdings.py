"""What switches hold of unicast's entries, as far as is known."""

from __future__ import annotations

from controller.rules.inspection import Inspection
from controller.rules.model import Output, RuleKey, SetEthDst


def port_held(entries: Inspection, dpid: int, key: RuleKey) -> int | None:
    """Return the port by which a switch sends what an entry is for, None where it does not."""
    rule = entries.installed(dpid).get(key)
    last = rule.actions[-1] if rule is not None and rule.actions else None
    return last.port_no if isinstance(last, Output) else None


def is_asked_for(entries: Inspection, dpid: int, key: RuleKey) -> bool:
    """Tell whether a switch holds an entry that gives another switch's host its location address."""
    rule = entries.installed(dpid).get(key)
    return rule is not None and bool(rule.actions) and isinstance(rule.actions[0], SetEthDst)


def unconfirmed(entries: Inspection, dpid: int) -> set[bytes]:
    """Return the addresses for which a switch may hold one entry or another, or none: edits are under way."""
    desired, installed = entries.desired(dpid), entries.installed(dpid)
    keys = (key for key in desired.keys() | installed.keys() if desired.get(key) != installed.get(key))
    return {key.match.eth_dst for key in keys if key.match.eth_dst is not None}
