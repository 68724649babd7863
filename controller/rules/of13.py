"""OpenFlow 1.3 messages as bytes (OpenFlow Switch Specification 1.3.5)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from struct import Struct
from typing import TypeVar

from controller.rules.group_match import GroupMatch
from controller.rules.model import (
    DSCP_MAX,
    OFPP_CONTROLLER,
    VLAN_ACTIONS,
    VLAN_ID_MAX,
    Action,
    Bucket,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Meter,
    Opaque,
    Output,
    PopVlan,
    PushVlan,
    SetDscp,
    SetEthDst,
    SetQueue,
    SetVlan,
    SplitFlows,
    ToGroup,
)
from controller.rules.openflow import (
    ACTIONS_CACHED,
    HEADER,
    NO_BUFFER,
    OFPT_FLOW_MOD,
    OFPT_PACKET_OUT,
    REPLY_MORE,
    FlowCounter,
    FlowStats,
    NotExpressible,
    counter,
    dscp_problem,
    read_flow_stats,
    tag_problem,
    vlan_id_problem,
)
from controller.rules.oxm import (
    MATCHES,
    OFPMT_OXM,
    OFPVID_PRESENT,
    VLAN_VID,
    decode_match,
    group_match_bytes,
    match_bytes,
)
from controller.rules.pipeline import SPLIT
from controller.wire.ethernet import ETHERTYPE_VLAN

VERSION = 4
OFPFC_ADD, OFPFC_DELETE_STRICT = 0, 4

_OFPT_MULTIPART_REQUEST, _OFPT_MULTIPART_REPLY = 18, 19
_OFPT_BARRIER_REQUEST = 20
OFPT_BARRIER_REPLY: int = 21
_OFPMP_FLOW = 1
_OFPTT_ALL = 0xFF
_OFPP_ANY = _OFPG_ANY = 0xFFFFFFFF
_OFPCML_NO_BUFFER = 0xFFFF
_OFPIT_GOTO_TABLE, _OFPIT_APPLY_ACTIONS, _OFPIT_METER = 1, 4, 6
_OFPAT_OUTPUT, _OFPAT_PUSH_VLAN, _OFPAT_POP_VLAN, _OFPAT_SET_QUEUE, _OFPAT_GROUP = 0, 17, 18, 21, 22
_OFPAT_SET_FIELD = 25
OFPG_MAX, OFPM_MAX = 0xFFFFFF00, 0xFFFF0000
_OFPQ_ALL = 0xFFFFFFFF

_FLOW_MOD = Struct("!BBHIQQBBHHHIIIHxx")
_ADD = Struct("!IIQ8xBBHHH16s")
_ADD_START = VERSION << 24 | OFPT_FLOW_MOD << 16 | 48
_ADD_END = Struct("!IIIHxx").pack(NO_BUFFER, _OFPP_ANY, _OFPG_ANY, 0)
"""A flow-mod that adds, as `_FLOW_MOD` has it but with less to pack: its start, to which the length of match and
instructions is added; what differs by entry; and its end, which is the same for all."""
_OUTPUT = Struct("!HHIH6x")
_FLOW_STATS = Struct("!HBxIIHHHH4xQQQ")
_PACKET_OUT = Struct("!BBHIIIH6x")
_U8, _U16, _U32, _U64, _HH, _HHI, _IH = map(Struct, ("!B", "!H", "!I", "!Q", "!HH", "!HHI", "!IH"))

_SET_ETH_DST = bytes.fromhex("0019001080000606")
"""OFPAT_SET_FIELD of 16 bytes with the OXM header of eth_dst; the address and two bytes of padding follow."""
_SET_VLAN_VID = _HH.pack(_OFPAT_SET_FIELD, 16) + VLAN_VID
"""The same for vlan_vid; two bytes with the id and six of padding follow."""
_SET_IP_DSCP = bytes.fromhex("0019001080001001")
"""The same for ip_dscp; one byte with the code point and seven of padding follow."""
_PUSH_VLAN = _HHI.pack(_OFPAT_PUSH_VLAN, 8, ETHERTYPE_VLAN << 16)
_PUSHED = Opaque(_PUSH_VLAN)
"""A pushed tag before its id is set: by itself it is nothing that the model says."""
_POP_VLAN = _HHI.pack(_OFPAT_POP_VLAN, 8, 0)

_MULTIPATH = bytes.fromhex("ffff0020 00002320 000a 0003 0000 0000 0000 000f 00000000 0000 0007 00000206")
"""NXAST_MULTIPATH: symmetric_l3l4+udp without basis, modulo 16 (`FLOW_PARTS`), into the last byte of eth_dst."""
_RESUBMIT = bytes.fromhex("ffff0010 00002320 000e fff8") + _U8.pack(SPLIT) + bytes(3)
"""NXAST_RESUBMIT_TABLE with the port by which the packet came."""
_HASHED = Opaque(_MULTIPATH)
"""A part without the entry that tells what becomes of it: by itself it is nothing that the model says."""

INSTRUCTIONS_CACHED = 4096
"""Lists of instructions, as bytes, of which it is known what they say; a fabric's switches have most in common."""

_outputs: dict[int, bytes] = {}
_plain: dict[tuple[Action, ...], bytes] = {}
"""The instructions of lists of outputs and rewritten addresses alone, which any table may have."""
_tagging: dict[tuple[bool, tuple[Action, ...]], bytes] = {}
"""Those of lists that change VLAN tags beside, where the match asks for a tag, and where it does not."""
_in_vlan: dict[tuple[Action, ...], bytes] = {}
"""Those of lists of either kind that entries have whose match asks for a VLAN."""
_decoded: dict[bytes, tuple[Action, ...]] = {}

K = TypeVar("K", bound=Hashable)

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


def expressible(rule: FlowEntry) -> str | None:
    """Return None where OpenFlow 1.3 can say `rule`, the reason where it cannot."""
    actions = rule[1]
    match = rule[0][2]
    if actions in (_plain if match[12] is None else _in_vlan) and (type(match) is GroupMatch or match in MATCHES):
        return None
    encoded = match_bytes(match)
    if isinstance(encoded, str):
        return encoded
    if actions in _plain or (_asks_for_tag(rule), actions) in _tagging:
        return None
    last = len(actions) - 1
    for index, action in enumerate(actions):
        kind = type(action)
        if kind is Output or kind is SetEthDst:
            continue
        if kind is Goto:
            if index != last:
                return "goto is not the last action"
            if action[0] <= rule.key.table:  # type: ignore[operator]
                return f"table {action[0]!r} is not after table {rule.key.table}"
        elif kind is Meter:
            if index:
                return "a meter is not the first action"
            if not 1 <= action[0] <= OFPM_MAX:  # type: ignore[operator]
                return f"meter {action[0]!r} cannot exist"
        elif kind in VLAN_ACTIONS:
            if (reason := tag_problem(rule.key.match, actions)) is not None:
                return reason
        elif kind is SetDscp:
            if (reason := dscp_problem(rule.key.match, action[0])) is not None:  # type: ignore[arg-type]
                return reason
        elif kind is SplitFlows:
            if (reason := _split_problem(rule.key.table, action[0])) is not None:  # type: ignore[arg-type]
                return reason
        elif (reason := _action_problem(action)) is not None:
            return reason
    return None


def _split_problem(table: int, mac: bytes) -> str | None:
    """Return why an entry of a table cannot divide flows by such an address, None where it can."""
    if table == SPLIT:
        return f"table {SPLIT} says where parts of flows go; there they are not divided again"
    return None if len(mac) == 6 and not mac[5] else "the address of parts of flows has 6 bytes, the last of them 0"


def _action_problem(action: Action) -> str | None:
    """Return why OpenFlow 1.3 cannot say an action of a list, None where it can."""
    if isinstance(action, Output | SetEthDst | PopVlan):
        return None
    if isinstance(action, PushVlan | SetVlan):
        return vlan_id_problem(action.vlan_id)
    if isinstance(action, SetDscp):
        return "a group does not know which packets are IP"
    if isinstance(action, SplitFlows):
        return "a group does not divide flows here"
    if isinstance(action, SetQueue):
        return None if 0 <= action.queue_id < _OFPQ_ALL else f"queue {action.queue_id} cannot exist"
    if isinstance(action, ToGroup):
        return None if 1 <= action.group_id <= OFPG_MAX else f"group {action.group_id} cannot exist"
    return "an action that the model cannot say"


def bucket_problem(bucket: Bucket) -> str | None:
    """Return why OpenFlow 1.3, or the model, has no group with this bucket; None where there may be one."""
    for action in bucket.actions:
        if isinstance(action, ToGroup):
            return "a group names no other groups here"
        if (reason := _action_problem(action)) is not None:
            return reason
    return None


def encode_put(rule: FlowEntry, xid: int) -> bytes:
    """Add the entry or replace the one with the same key; its counters go on counting (1.3.5, 6.4).

    NotExpressible where OpenFlow 1.3 cannot say it.
    """
    (table, priority, match), actions, cookie, idle_timeout_s, hard_timeout_s = rule
    body = group_match_bytes(match) if type(match) is GroupMatch else MATCHES.get(match) or _match(match)
    if actions:
        body += (_plain if match[12] is None else _in_vlan).get(actions) or _instructions(rule)
    start = _ADD_START + len(body)
    return _ADD.pack(start, xid, cookie, table, OFPFC_ADD, idle_timeout_s, hard_timeout_s, priority, _ADD_END) + body


def encode_remove(key: FlowKey, xid: int) -> bytes:
    """Delete the entry with exactly this key."""
    match = _match(key.match)
    fixed = _FLOW_MOD.pack(
        VERSION,
        OFPT_FLOW_MOD,
        48 + len(match),
        xid,
        0,
        0,
        key.table,
        OFPFC_DELETE_STRICT,
        0,
        0,
        key.priority,
        NO_BUFFER,
        _OFPP_ANY,
        _OFPG_ANY,
        0,
    )
    return fixed + match


def _match(match: Match) -> bytes:
    encoded = match_bytes(match)
    if isinstance(encoded, str):
        raise NotExpressible(encoded)
    return encoded


def encode_barrier(xid: int) -> bytes:
    """Ask for a reply once everything before it is done."""
    return HEADER.pack(VERSION, _OFPT_BARRIER_REQUEST, 8, xid)


def encode_packet_out(ports: Iterable[int], data: bytes, xid: int) -> bytes:
    """Send a frame out of each of `ports`."""
    actions = b"".join([_outputs.get(port_no) or _output(port_no) for port_no in ports])
    length = 24 + len(actions) + len(data)
    fixed = _PACKET_OUT.pack(VERSION, OFPT_PACKET_OUT, length, xid, NO_BUFFER, OFPP_CONTROLLER, len(actions))
    return fixed + actions + data


def encode_flow_stats_request(xid: int, cookie: int, cookie_mask: int) -> bytes:
    """Ask for the entries of all tables whose cookie equals `cookie` under `cookie_mask`."""
    head = HEADER.pack(VERSION, _OFPT_MULTIPART_REQUEST, 56, xid) + _HHI.pack(_OFPMP_FLOW, 0, 0)
    where = _U8.pack(_OFPTT_ALL) + bytes(3) + _U32.pack(_OFPP_ANY) + _U32.pack(_OFPG_ANY) + bytes(4)
    return head + where + _U64.pack(cookie) + _U64.pack(cookie_mask) + _HHI.pack(OFPMT_OXM, 4, 0)


def decode_flow_stats(message: bytes, cookie: int = 0, cookie_mask: int = 0) -> FlowStats:
    """Read a flow statistics reply; never raises, see `FlowStats.fault`.

    Entries whose cookie differs from `cookie` under `cookie_mask` are left out.
    """
    return read_flow_stats(message, _OFPT_MULTIPART_REPLY, 16, 56, _decode_entry, (cookie, cookie_mask))


def encode_flow_stats_entry(entry: FlowCounter) -> bytes:
    """Build one entry of a flow statistics reply, as a switch does."""
    rule = entry.rule
    match = _match(rule.key.match)
    body = match + (_instructions(rule) if rule.actions else b"")
    fixed = _FLOW_STATS.pack(
        48 + len(body),
        rule.key.table,
        int(entry.duration_s),
        int(entry.duration_s % 1 * 1e9),
        rule.key.priority,
        rule.idle_timeout_s,
        rule.hard_timeout_s,
        0,
        rule.cookie,
        entry.packet_count or 0,
        entry.byte_count or 0,
    )
    return fixed + body


def encode_flow_stats_reply(xid: int, more: bool, entries: bytes) -> bytes:
    """Build a flow statistics reply around entries that are encoded already, as a switch does."""
    head = HEADER.pack(VERSION, _OFPT_MULTIPART_REPLY, 16 + len(entries), xid)
    return head + _HHI.pack(_OFPMP_FLOW, REPLY_MORE if more else 0, 0) + entries


def _output(port_no: int) -> bytes:
    max_len = _OFPCML_NO_BUFFER if port_no == OFPP_CONTROLLER else 0
    encoded = _OUTPUT.pack(_OFPAT_OUTPUT, 16, port_no, max_len)
    if port_no <= 0xFFFF:
        _outputs[port_no] = encoded
    return encoded


def _asks_for_tag(rule: FlowEntry) -> bool:
    match = rule.key.match
    return match.tagged or match.vlan_id is not None


def _instructions(rule: FlowEntry) -> bytes:
    asks_for_tag = _asks_for_tag(rule)
    kept = _plain.get(rule.actions) or _tagging.get((asks_for_tag, rule.actions))
    if kept is not None:
        if rule.key.match.vlan_id is not None:
            _keep(_in_vlan, rule.actions, kept)
        return kept
    meter = goto = actions = b""
    is_plain = is_for_any_table = True
    for action in rule.actions:
        kind = type(action)
        if kind is Output:
            actions += _outputs.get(action[0]) or _output(action[0])  # type: ignore[arg-type]
        elif kind is SetEthDst:
            actions += _SET_ETH_DST + action[0] + b"\0\0"  # type: ignore[operator]
        else:
            if is_plain and (reason := expressible(rule)) is not None:
                raise NotExpressible(reason)
            is_plain = False
            is_for_any_table = is_for_any_table and kind in VLAN_ACTIONS
            if isinstance(action, Goto):
                goto = _HH.pack(_OFPIT_GOTO_TABLE, 8) + _U8.pack(action.table) + b"\0\0\0"
            elif isinstance(action, Meter):
                meter = _HHI.pack(_OFPIT_METER, 8, action.meter_id)
            else:
                actions += _action(action)
    if actions:
        actions = _HHI.pack(_OFPIT_APPLY_ACTIONS, 8 + len(actions), 0) + actions
    if is_plain:
        _keep(_plain, rule.actions, actions)
    elif is_for_any_table:
        _keep(_tagging, (asks_for_tag, rule.actions), actions)
    return meter + actions + goto


def _keep(kept: dict[K, bytes], key: K, instructions: bytes) -> None:
    """Keep what a list of actions is as instructions, among `ACTIONS_CACHED` others at most."""
    if len(kept) >= ACTIONS_CACHED:
        kept.clear()
    kept[key] = instructions


def _action(action: Action) -> bytes:
    if isinstance(action, Output):
        return _outputs.get(action.port_no) or _output(action.port_no)
    if isinstance(action, SetEthDst):
        return _SET_ETH_DST + action.mac + b"\0\0"
    if isinstance(action, SetDscp):
        return _SET_IP_DSCP + _U8.pack(action.dscp) + bytes(7)
    if isinstance(action, SetQueue):
        return _HHI.pack(_OFPAT_SET_QUEUE, 8, action.queue_id)
    if isinstance(action, PushVlan):
        return _PUSH_VLAN + _set_vlan_vid(action.vlan_id)
    if isinstance(action, SetVlan):
        return _set_vlan_vid(action.vlan_id)
    if isinstance(action, PopVlan):
        return _POP_VLAN
    if isinstance(action, SplitFlows):
        return _SET_ETH_DST + action.mac + b"\0\0" + _MULTIPATH + _RESUBMIT
    if isinstance(action, ToGroup):
        return _HHI.pack(_OFPAT_GROUP, 8, action.group_id)
    raise NotExpressible(f"{type(action).__name__} stands in no list of actions")


def _set_vlan_vid(vlan_id: int) -> bytes:
    return _SET_VLAN_VID + _U16.pack(OFPVID_PRESENT | vlan_id) + bytes(6)


def encode_actions(actions: Iterable[Action]) -> bytes:
    """Build a list of actions, of those that `bucket_problem` finds nothing to say against."""
    return b"".join(map(_action, actions))


def _decode_entry(message: bytes, start: int, end: int) -> FlowCounter:
    _, table, duration_s, nanoseconds, priority, idle, hard, _, cookie, packets, size = _FLOW_STATS.unpack_from(
        message, start
    )
    kind, match_length = _HH.unpack_from(message, start + 48)
    after = start + 48 + (match_length + 7 & ~7)
    if kind != OFPMT_OXM or match_length < 4 or after > end:
        raise ValueError("a match does not fit")
    match, foreign = decode_match(message, start + 52, start + 48 + match_length)
    encoded = message[after:end]
    actions = _decoded.get(encoded)
    if actions is None:
        actions = _decode_instructions(message, after, end)
        if len(_decoded) >= INSTRUCTIONS_CACHED:
            _decoded.clear()
        _decoded[encoded] = actions
    rule = _new(FlowEntry, (_new(FlowKey, (table, priority, match)), actions, cookie, idle, hard))
    counts = (counter(packets), counter(size), duration_s + nanoseconds / 1e9)
    return _new(FlowCounter, (rule, *counts, foreign))


def _decode_instructions(message: bytes, offset: int, end: int) -> tuple[Action, ...]:
    """Return meter, actions and goto in the model's order."""
    meters: list[Action] = []
    actions: list[Action] = []
    others: list[Action] = []
    while offset < end:
        kind, length = _HH.unpack_from(message, offset)
        if length < 8 or offset + length > end:
            raise ValueError("an instruction does not fit")
        if kind == _OFPIT_APPLY_ACTIONS:
            decode_actions(message, offset + 8, offset + length, actions)
        elif kind == _OFPIT_METER:
            meters.append(Meter(_U32.unpack_from(message, offset + 4)[0]))
        elif kind == _OFPIT_GOTO_TABLE:
            others.append(Goto(message[offset + 4]))
        else:
            others.insert(0, Opaque(message[offset : offset + length]))
        offset += length
    return (*meters, *actions, *others)


def decode_actions(message: bytes, offset: int, end: int, actions: list[Action]) -> None:
    """Add the actions that stand from `offset` to `end`; ValueError where they do not fit."""
    while offset < end:
        kind, length = _HH.unpack_from(message, offset)
        if length < 8 or offset + length > end:
            raise ValueError("an action does not fit")
        raw = message[offset : offset + length]
        action: Action = Opaque(raw)
        if kind == _OFPAT_OUTPUT and length == 16:
            port_no, max_len = _IH.unpack_from(raw, 4)
            if port_no != OFPP_CONTROLLER or max_len == _OFPCML_NO_BUFFER:
                action = Output(port_no)
        elif raw[:8] == _SET_ETH_DST and length == 16:
            action = SetEthDst(raw[8:14])
        elif raw[:8] == _SET_VLAN_VID and length == 16 and (vlan_id := _vlan_id_of(raw)) is not None:
            if actions and actions[-1] == _PUSHED:
                actions.pop()
                action = PushVlan(vlan_id)
            else:
                action = SetVlan(vlan_id)
        elif raw[:8] == _SET_IP_DSCP and length == 16 and raw[8] <= DSCP_MAX:
            action = SetDscp(raw[8])
        elif raw[:4] == _POP_VLAN[:4]:
            action = PopVlan()
        elif raw == _RESUBMIT and (mac := _base_of(actions)) is not None:
            del actions[-2:]
            action = SplitFlows(mac)
        elif kind == _OFPAT_SET_QUEUE and length == 8:
            action = SetQueue(_U32.unpack_from(raw, 4)[0])
        elif kind == _OFPAT_GROUP and length == 8:
            action = ToGroup(_U32.unpack_from(raw, 4)[0])
        actions.append(action)
        offset += length


def _base_of(actions: list[Action]) -> bytes | None:
    """Return the address from which parts of flows are counted, where the last two actions put a packet into one."""
    if len(actions) < 2 or actions[-1] != _HASHED:
        return None
    base = actions[-2]
    return base.mac if isinstance(base, SetEthDst) and not base.mac[5] else None


def _vlan_id_of(set_vlan_vid: bytes) -> int | None:
    """Return the id that an action OFPAT_SET_FIELD sets in a tag, None where no VLAN can have it."""
    vlan_id = _U16.unpack_from(set_vlan_vid, 8)[0] ^ OFPVID_PRESENT
    return vlan_id if 1 <= vlan_id <= VLAN_ID_MAX else None
