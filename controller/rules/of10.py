"""OpenFlow 1.0 messages as bytes (OpenFlow Switch Specification 1.0.0)."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from controller.rules.model import (
    OFPP_CONTROLLER,
    VLAN_ACTIONS,
    VLAN_ID_MAX,
    Action,
    FlowEntry,
    FlowKey,
    Match,
    Opaque,
    Output,
    PopVlan,
    PushVlan,
    Resource,
    SetDscp,
    SetEthDst,
    SetQueue,
    SetVlan,
    SplitFlows,
)
from controller.rules.openflow import (
    HEADER,
    MATCHES_CACHED,
    NO_BUFFER,
    OFPT_FLOW_MOD,
    OFPT_PACKET_OUT,
    REPLY_MORE,
    FlowCounter,
    FlowStats,
    NotExpressible,
    counter,
    dscp_problem,
    match_problem,
    read_flow_stats,
    tag_problem,
)
from controller.rules.pipeline import ETH_TYPE_IPV4

VERSION = 1
OFPFC_MODIFY_STRICT, OFPFC_DELETE_STRICT = 2, 4

_OFPT_STATS_REQUEST, _OFPT_STATS_REPLY = 16, 17
_OFPT_BARRIER_REQUEST = 18
OFPT_BARRIER_REPLY: int = 19
_OFPST_FLOW = 1
_OFPTT_ALL = 0xFF
_OFPP_MAX, _OFPP_CONTROLLER, _OFPP_NONE = 0xFF00, 0xFFFD, 0xFFFF
_RESERVED_PORTS = 0xFFFF0000
"""Reserved ports are the last of 32 bits in OpenFlow 1.3, with these bits in front of those of 1.0."""
_OFPAT_OUTPUT, _OFPAT_SET_VLAN_VID, _OFPAT_STRIP_VLAN, _OFPAT_SET_DL_DST = 0, 1, 3, 5
_OFPAT_SET_NW_TOS, _OFPAT_ENQUEUE = 8, 11
_OFPQ_ALL = 0xFFFFFFFF

_OFPFW_IN_PORT, _OFPFW_DL_VLAN, _OFPFW_DL_SRC, _OFPFW_DL_DST, _OFPFW_DL_TYPE, _OFPFW_NW_PROTO = (
    1 << bit for bit in range(6)
)
_NW_SRC_SHIFT, _NW_DST_SHIFT, _NW_BITS = 8, 14, 0x3F
_OFPFW_DL_VLAN_PCP = 1 << 20
_OFPFW_UNUSED = 1 << 6 | 1 << 7 | 1 << 21
"""Transport ports and TOS: never matched on."""
_OFP_VLAN_NONE = 0xFFFF
"""In `dl_vlan`: frames without a VLAN tag. A priority tag is one."""
_KNOWN_WILDCARDS = (1 << 22) - 1

_MATCH = Struct("!IH6s6sHBxHBBxx4s4sHH")
_FLOW_MOD = Struct("!BBHI40sQHHHHIHH")
_OUTPUT = Struct("!HHHH")
_ENQUEUE = Struct("!HHH6xI")
_FLOW_STATS = Struct("!HBx40sIIHHH6xQQQ")
_PACKET_OUT = Struct("!BBHIIHH")
_HH = Struct("!HH")
_SET_DL_DST = _HH.pack(_OFPAT_SET_DL_DST, 16)
_SET_VLAN_VID = _HH.pack(_OFPAT_SET_VLAN_VID, 8)
_SET_NW_TOS = _HH.pack(_OFPAT_SET_NW_TOS, 8)
_STRIP_VLAN = _HH.pack(_OFPAT_STRIP_VLAN, 8)

_matches: dict[Match, bytes | str] = {}
_decoded: dict[bytes, tuple[Match, bool]] = {}
_outputs: dict[int, bytes] = {}


def expressible(rule: FlowEntry) -> str | None:
    """Return None where OpenFlow 1.0 can say `rule`, the reason where it cannot."""
    if rule.key.table:
        return "OpenFlow 1.0 has table 0 only"
    match = _match(rule.key.match)
    if type(match) is str:
        return match
    if rule.key.match.tagged and rule.actions:
        return "OpenFlow 1.0 cannot ask for a VLAN tag: a tagged match is for every frame, and can drop only"
    for action in rule.actions:
        kind = type(action)
        if kind is Output:
            if type(_output(action[0])) is str:  # type: ignore[arg-type]
                return f"OpenFlow 1.0 has no port {action[0]!r}"
        elif kind is Opaque:
            return "an action that the model cannot say"
        elif kind is SplitFlows:
            return "OpenFlow 1.0 has one table, and divides no flows"
        elif kind is SetQueue:
            if (problem := _queue_problem(rule.actions)) is not None:
                return problem
        elif kind is SetDscp:
            if rule.key.match.eth_type != ETH_TYPE_IPV4:
                return "OpenFlow 1.0 sets the code point of IPv4 packets only"
            if (problem := dscp_problem(rule.key.match, action[0])) is not None:  # type: ignore[arg-type]
                return problem
        elif kind in VLAN_ACTIONS:
            if (problem := tag_problem(rule.key.match, rule.actions)) is not None:
                return problem
        elif kind is not SetEthDst:
            return f"OpenFlow 1.0 has no {action.text.partition(':')[0]}"
    return None


def _queue_problem(actions: tuple[Action, ...]) -> str | None:
    """Return why the queues among actions cannot be said as OFPAT_ENQUEUE, which has a port and its queue at once."""
    queue_id: int | None = None
    for action, then in zip(actions, (*actions[1:], None), strict=True):
        if isinstance(action, SetQueue):
            if not isinstance(then, Output) or then.port_no == OFPP_CONTROLLER:
                return "OpenFlow 1.0 sets a queue right before an output to a port only"
            if action.queue_id == queue_id:
                return "the queue is set already"
            queue_id = action.queue_id
            if not 0 <= queue_id < _OFPQ_ALL:
                return f"queue {queue_id} cannot exist"
    return None


def resource_expressible(resource: Resource) -> str | None:
    """Return why OpenFlow 1.0 cannot say a group or a meter: it has none."""
    return f"OpenFlow 1.0 has no {resource.key.kind}s"


def encode_put(rule: FlowEntry, xid: int) -> bytes:
    """Add the entry or change the one with the same key; its counters go on counting.

    OFPFC_MODIFY_STRICT adds where there is nothing to modify (1.0.0, 4.6), and unlike OFPFC_ADD leaves counters
    alone. NotExpressible where OpenFlow 1.0 cannot say the rule.
    """
    key, actions, cookie, idle_timeout_s, hard_timeout_s = rule
    match = _matches.get(key[2]) or _match(key[2])
    encoded = b""
    for action in actions:
        kind = type(action)
        if kind is Output:
            output = _outputs.get(action[0]) or _output(action[0])  # type: ignore[arg-type]
            if type(output) is str:
                raise NotExpressible(expressible(rule))
            encoded += output  # type: ignore[operator]
        elif kind is SetEthDst:
            encoded += _SET_DL_DST + action[0] + bytes(6)  # type: ignore[operator]
        else:
            encoded = _actions(rule)
            break
    if type(match) is str or key[0] or (key[2].tagged and actions):
        raise NotExpressible(expressible(rule))
    return (
        _FLOW_MOD.pack(
            VERSION,
            OFPT_FLOW_MOD,
            72 + len(encoded),
            xid,
            match,
            cookie,
            OFPFC_MODIFY_STRICT,
            idle_timeout_s,
            hard_timeout_s,
            key[1],
            NO_BUFFER,
            _OFPP_NONE,
            0,
        )
        + encoded
    )


def _actions(rule: FlowEntry) -> bytes:
    """Return the actions of a rule, whichever they are; NotExpressible where OpenFlow 1.0 cannot say it.

    One message gives a frame its tag and the tag another id: which of both is meant follows from the match.
    """
    reason = expressible(rule)
    if reason is not None:
        raise NotExpressible(reason)
    encoded, queue_id = b"", None
    for action in rule.actions:
        if isinstance(action, SetQueue):
            queue_id = action.queue_id
        elif isinstance(action, SetDscp):
            encoded += _SET_NW_TOS + bytes((action.dscp << 2, 0, 0, 0))
        elif isinstance(action, PushVlan | SetVlan):
            encoded += _SET_VLAN_VID + action.vlan_id.to_bytes(2, "big") + bytes(2)
        elif isinstance(action, PopVlan):
            encoded += _STRIP_VLAN + bytes(4)
        elif isinstance(action, SetEthDst):
            encoded += _SET_DL_DST + action.mac + bytes(6)
        elif isinstance(action, Output):
            if queue_id is None or action.port_no == OFPP_CONTROLLER:
                encoded += _output(action.port_no)  # type: ignore[operator]
            else:
                encoded += _ENQUEUE.pack(_OFPAT_ENQUEUE, 16, action.port_no & 0xFFFF, queue_id)
    return encoded


def encode_remove(key: FlowKey, xid: int) -> bytes:
    """Delete the entry with exactly this key."""
    match = _match(key.match)
    if isinstance(match, str) or key.table:
        raise NotExpressible(expressible(FlowEntry(key, (), 0)))
    return _FLOW_MOD.pack(
        VERSION,
        OFPT_FLOW_MOD,
        72,
        xid,
        match,
        0,
        OFPFC_DELETE_STRICT,
        0,
        0,
        key.priority,
        NO_BUFFER,
        _OFPP_NONE,
        0,
    )


def encode_barrier(xid: int) -> bytes:
    """Ask for a reply once everything before it is done."""
    return HEADER.pack(VERSION, _OFPT_BARRIER_REQUEST, 8, xid)


def encode_packet_out(ports: Iterable[int], data: bytes, xid: int) -> bytes:
    """Send a frame out of each of `ports`; NotExpressible where a port does not exist in OpenFlow 1.0."""
    outputs = [_output(port_no) for port_no in ports]
    for output in outputs:
        if isinstance(output, str):
            raise NotExpressible(output)
    actions = b"".join(outputs)  # type: ignore[arg-type]
    length = 16 + len(actions) + len(data)
    fixed = _PACKET_OUT.pack(VERSION, OFPT_PACKET_OUT, length, xid, NO_BUFFER, _OFPP_NONE, len(actions))
    return fixed + actions + data


def encode_flow_stats_request(xid: int, _cookie: int, _cookie_mask: int) -> bytes:
    """Ask for all entries: OpenFlow 1.0 cannot ask by cookie, `decode_flow_stats` filters."""
    head = HEADER.pack(VERSION, _OFPT_STATS_REQUEST, 56, xid) + _HH.pack(_OFPST_FLOW, 0)
    return head + _EVERYTHING + bytes((_OFPTT_ALL, 0)) + _OFPP_NONE.to_bytes(2, "big")


def decode_flow_stats(message: bytes, cookie: int = 0, cookie_mask: int = 0) -> FlowStats:
    """Read a flow statistics reply; never raises, see `FlowStats.fault`.

    Entries whose cookie differs from `cookie` under `cookie_mask` are left out.
    """
    return read_flow_stats(message, _OFPT_STATS_REPLY, 12, _FLOW_STATS.size, _decode_entry, (cookie, cookie_mask))


def encode_flow_stats_entry(entry: FlowCounter) -> bytes:
    """Build one entry of a flow statistics reply, as a switch does."""
    rule = entry.rule
    message = encode_put(rule, 0)
    fixed = _FLOW_STATS.pack(
        _FLOW_STATS.size + len(message) - _FLOW_MOD.size,
        0,
        message[8:48],
        int(entry.duration_s),
        int(entry.duration_s % 1 * 1e9),
        rule.key.priority,
        rule.idle_timeout_s,
        rule.hard_timeout_s,
        rule.cookie,
        entry.packet_count or 0,
        entry.byte_count or 0,
    )
    return fixed + message[_FLOW_MOD.size :]


def encode_flow_stats_reply(xid: int, more: bool, entries: bytes) -> bytes:
    """Build a flow statistics reply around entries that are encoded already, as a switch does."""
    head = HEADER.pack(VERSION, _OFPT_STATS_REPLY, 12 + len(entries), xid)
    return head + _HH.pack(_OFPST_FLOW, REPLY_MORE if more else 0) + entries


def _match(match: Match) -> bytes | str:
    """Return the encoded match, or why it cannot be said."""
    encoded = _matches.get(match)
    if encoded is None:
        if len(_matches) >= MATCHES_CACHED:
            _matches.clear()
        encoded = _matches[match] = match_problem(match) or _match_limit(match) or _encode_match(match)
    return encoded


def _match_limit(match: Match) -> str | None:
    if match.eth_dst_mask is not None:
        return "OpenFlow 1.0 has no mask for eth_dst"
    if match.in_port is not None and match.in_port < _RESERVED_PORTS and match.in_port >= _OFPP_MAX:
        return f"OpenFlow 1.0 has no port {match.in_port}"
    if match.icmpv6_type is not None:
        return "OpenFlow 1.0 has no ICMPv6 match"
    if match.ip_dscp is not None:
        return "code points are matched in OpenFlow 1.3 alone"
    named = match.ip_src, match.ip_dst, match.ip_proto
    if match.eth_type != ETH_TYPE_IPV4 and any(field is not None for field in named):
        return "OpenFlow 1.0 has no IPv6 match"
    return None


def _encode_match(match: Match) -> bytes:
    wildcards = _OFPFW_UNUSED | _OFPFW_DL_VLAN_PCP
    if match.tagged:
        wildcards |= _OFPFW_DL_VLAN
    if match.in_port is None:
        wildcards |= _OFPFW_IN_PORT
    if match.eth_src is None:
        wildcards |= _OFPFW_DL_SRC
    if match.eth_dst is None:
        wildcards |= _OFPFW_DL_DST
    if match.eth_type is None:
        wildcards |= _OFPFW_DL_TYPE
    if match.ip_proto is None:
        wildcards |= _OFPFW_NW_PROTO
    wildcards |= 32 - (match.ip_src_prefix or 0) << _NW_SRC_SHIFT
    wildcards |= 32 - (match.ip_dst_prefix or 0) << _NW_DST_SHIFT
    return _MATCH.pack(
        wildcards,
        (match.in_port or 0) & 0xFFFF,
        match.eth_src or bytes(6),
        match.eth_dst or bytes(6),
        match.vlan_id or (0 if match.tagged else _OFP_VLAN_NONE),
        0,
        match.eth_type or 0,
        0,
        match.ip_proto or 0,
        match.ip_src or bytes(4),
        match.ip_dst or bytes(4),
        0,
        0,
    )


_EVERYTHING = _encode_match(Match(tagged=True))


def _output(port_no: int) -> bytes | str:
    encoded = _outputs.get(port_no)
    if encoded is None:
        if _OFPP_MAX <= port_no < _RESERVED_PORTS + _OFPP_MAX:
            return f"OpenFlow 1.0 has no port {port_no}"
        max_len = 0xFFFF if port_no == OFPP_CONTROLLER else 0
        encoded = _outputs[port_no] = _OUTPUT.pack(_OFPAT_OUTPUT, 8, port_no & 0xFFFF, max_len)
    return encoded


def _port(port_no: int) -> int:
    return port_no | _RESERVED_PORTS if port_no > _OFPP_MAX else port_no


def _decode_entry(message: bytes, start: int, end: int) -> FlowCounter:
    _, table, encoded, duration_s, nanoseconds, priority, idle, hard, cookie, packets, size = _FLOW_STATS.unpack_from(
        message, start
    )
    decoded = _decoded.get(encoded)
    if decoded is None:
        if len(_decoded) >= MATCHES_CACHED:
            _decoded.clear()
        decoded = _decoded[encoded] = _decode_match(encoded)
    match, foreign = decoded
    actions = _decode_actions(message, start + _FLOW_STATS.size, end, match)
    rule = FlowEntry(FlowKey(table, priority, match), actions, cookie, idle, hard)
    # What stands in a further table is there by another version of the protocol, and 1.0 cannot name it.
    return FlowCounter(rule, counter(packets), counter(size), duration_s + nanoseconds / 1e9, foreign or table != 0)


def _decode_match(encoded: bytes) -> tuple[Match, bool]:
    """Return the match, and whether it has parts that the model cannot say."""
    wildcards, in_port, dl_src, dl_dst, vlan, _, dl_type, _, nw_proto, nw_src, nw_dst, _, _ = _MATCH.unpack(encoded)
    src = max(32 - (wildcards >> _NW_SRC_SHIFT & _NW_BITS), 0)
    dst = max(32 - (wildcards >> _NW_DST_SHIFT & _NW_BITS), 0)
    any_vlan = bool(wildcards & _OFPFW_DL_VLAN)
    match = Match(
        in_port=None if wildcards & _OFPFW_IN_PORT else _port(in_port),
        eth_dst=None if wildcards & _OFPFW_DL_DST else dl_dst,
        eth_src=None if wildcards & _OFPFW_DL_SRC else dl_src,
        eth_type=None if wildcards & _OFPFW_DL_TYPE else dl_type,
        ip_proto=None if wildcards & _OFPFW_NW_PROTO else nw_proto,
        ip_src=nw_src if src else None,
        ip_src_prefix=src or None,
        ip_dst=nw_dst if dst else None,
        ip_dst_prefix=dst or None,
        tagged=any_vlan,
        vlan_id=None if any_vlan or vlan == _OFP_VLAN_NONE else vlan,
    )
    asks_priority = not wildcards & _OFPFW_DL_VLAN_PCP and (any_vlan or vlan != _OFP_VLAN_NONE)
    foreign = asks_priority or wildcards & _OFPFW_UNUSED != _OFPFW_UNUSED or wildcards > _KNOWN_WILDCARDS
    return match, foreign or match_problem(match) is not None or _match_limit(match) is not None


def _decode_actions(message: bytes, offset: int, end: int, match: Match) -> tuple[Action, ...]:
    actions: list[Action] = []
    queue_id: int | None = None
    is_tagged = match.vlan_id is not None
    while offset < end:
        kind, length = _HH.unpack_from(message, offset)
        if length < 8 or offset + length > end:
            raise ValueError("an action does not fit")
        raw = message[offset : offset + length]
        action: Action = Opaque(raw)
        if kind == _OFPAT_OUTPUT and length == 8:
            port_no, max_len = _HH.unpack_from(raw, 4)
            if (queue_id is None) if port_no != _OFPP_CONTROLLER else max_len == 0xFFFF:
                action = Output(_port(port_no))
        elif kind == _OFPAT_ENQUEUE and length == 16:
            _, _, port_no, wanted = _ENQUEUE.unpack_from(raw)
            if port_no != _OFPP_CONTROLLER:
                if wanted != queue_id:
                    queue_id = wanted
                    actions.append(SetQueue(wanted))
                action = Output(_port(port_no))
        elif raw[:4] == _SET_DL_DST:
            action = SetEthDst(raw[4:10])
        elif raw[:4] == _SET_NW_TOS and match.eth_type == ETH_TYPE_IPV4:
            action = SetDscp(raw[4] >> 2)
        elif raw[:4] == _SET_VLAN_VID and not match.tagged:
            vlan_id = int.from_bytes(raw[4:6], "big")
            if 1 <= vlan_id <= VLAN_ID_MAX:
                action = SetVlan(vlan_id) if is_tagged else PushVlan(vlan_id)
            is_tagged = True
        elif raw[:4] == _STRIP_VLAN and is_tagged:
            action, is_tagged = PopVlan(), False
        actions.append(action)
        offset += length
    return tuple(actions)
