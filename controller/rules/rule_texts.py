"""Flow entries as documents that an operator can read."""

from __future__ import annotations

from typing import Any

from controller.rules.model import Entry, FlowEntry, Match
from controller.wire.addresses import format_ip, format_mac


def rule_document(rule: FlowEntry, *, is_whole: bool = True) -> dict[str, Any]:
    """Return a flow entry in words: `table`, `priority`, `match`, `actions` (``drop`` for none) and `cookie`.

    Where it is not `is_whole` the match ends with dots: the model cannot say all of it.
    """
    key = rule.key
    return {
        "table": key.table,
        "priority": key.priority,
        "match": match_text(key.match) if is_whole else f"{match_text(key.match)}, ...",
        "actions": ", ".join(action.text for action in rule.actions) or "drop",
        "cookie": f"{rule.cookie:#018x}",
    }


def entry_document(entry: Entry) -> dict[str, Any]:
    """Return a flow entry, a group or a meter in words."""
    return rule_document(entry) if isinstance(entry, FlowEntry) else entry.document()


def match_text(match: Match) -> str:
    """Return a match as ``name=value`` after the names of OpenFlow; ``any`` where it asks for nothing."""
    parts = []
    names = ("in_port", "eth_dst", "eth_src", "eth_type", "ip_dscp", "ip_proto", "ip_src", "ip_dst", "icmpv6_type")
    for name in names:
        value = getattr(match, name)
        if value is None:
            continue
        if name in ("eth_dst", "eth_src"):
            text = format_mac(value)
            if name == "eth_dst" and match.eth_dst_mask is not None:
                text += f"/{format_mac(match.eth_dst_mask)}"
        elif name in ("ip_src", "ip_dst"):
            length = getattr(match, f"{name}_prefix")
            text = format_ip(value) + (f"/{length}" if length not in (None, 8 * len(value)) else "")
        elif name == "eth_type":
            text = f"{value:#06x}"
        else:
            text = str(value)
        parts.append(f"{name}={text}")
    if match.tagged:
        parts.append("vlan=any")
    if match.vlan_id is not None:
        parts.append(f"vlan={match.vlan_id}")
    return ", ".join(parts) or "any"
