"""Flow entries as documents that an operator can read."""

from __future__ import annotations

from typing import Any

from controller.rules.model import (
    OFPP_CONTROLLER,
    OFPP_IN_PORT,
    Action,
    Entry,
    FlowEntry,
    Goto,
    GroupType,
    Match,
    Meter,
    MeterEntry,
    Output,
    PopVlan,
    PushVlan,
    SetDscp,
    SetEthDst,
    SetQueue,
    SetVlan,
    ToGroup,
)
from controller.wire.addresses import format_ip, format_mac

_TYPES: dict[int, str] = {
    GroupType.ALL: "all",
    GroupType.SELECT: "select",
    GroupType.FAST_FAILOVER: "fast_failover",
}
_PORTS = {OFPP_CONTROLLER: "controller", OFPP_IN_PORT: "in_port"}


def rule_document(rule: FlowEntry, *, is_whole: bool = True) -> dict[str, Any]:
    """Return a flow entry in words: `table`, `priority`, `match`, `actions` (``drop`` for none) and `cookie`.

    Where it is not `is_whole` the match ends with dots: the model cannot say all of it.
    """
    key = rule.key
    return {
        "table": key.table,
        "priority": key.priority,
        "match": match_text(key.match) if is_whole else f"{match_text(key.match)}, ...",
        "actions": ", ".join(map(_action_text, rule.actions)) or "drop",
        "cookie": f"{rule.cookie:#018x}",
    }


def entry_document(entry: Entry) -> dict[str, Any]:
    """Return a flow entry, a group (`group`, `type`, `buckets`) or a meter (`meter`, `rate`, `burst`, `unit`)."""
    if isinstance(entry, FlowEntry):
        return rule_document(entry)
    if isinstance(entry, MeterEntry):
        unit = "packets/s" if entry.is_packets else "kbit/s"
        meter = {"meter": entry.key.meter_id, "rate": entry.rate, "burst": entry.burst, "unit": unit}
        return {**meter, "other": entry.opaque.hex()} if entry.opaque else meter
    buckets = []
    for bucket in entry.buckets:
        parts = ([f"weight:{bucket.weight}"] if bucket.weight else []) + (
            [f"watch:{bucket.watch_port}"] if bucket.watch_port is not None else []
        )
        buckets.append(", ".join([*parts, *map(_action_text, bucket.actions)]) or "drop")
    return {"group": f"{entry.key.group_id:#x}", "type": _TYPES.get(entry.type, str(entry.type)), "buckets": buckets}


def match_text(match: Match) -> str:
    """Return a match as ``name=value`` after the names of OpenFlow; ``any`` where it asks for nothing."""
    parts = []
    for name in ("in_port", "eth_dst", "eth_src", "eth_type", "ip_proto", "ip_src", "ip_dst", "icmpv6_type"):
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


def _action_text(action: Action) -> str:
    match action:
        case Output(port_no=port_no):
            return f"output:{_PORTS.get(port_no, port_no)}"
        case SetEthDst(mac=mac):
            return f"set eth_dst:{format_mac(mac)}"
        case SetDscp(dscp=dscp):
            return f"set ip_dscp:{dscp}"
        case SetQueue(queue_id=queue_id):
            return f"queue:{queue_id}"
        case PushVlan(vlan_id=vlan_id):
            return f"push vlan:{vlan_id}"
        case SetVlan(vlan_id=vlan_id):
            return f"set vlan:{vlan_id}"
        case PopVlan():
            return "pop vlan"
        case ToGroup(group_id=group_id):
            return f"group:{group_id:#x}"
        case Goto(table=table):
            return f"goto:{table}"
        case Meter(meter_id=meter_id):
            return f"meter:{meter_id}"
    return f"other:{action.raw.hex()}"
