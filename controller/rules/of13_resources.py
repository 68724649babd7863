"""Groups, meters and roles as OpenFlow 1.3 messages (OpenFlow Switch Specification 1.3.5, 7.3.4 and 7.3.9)."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error

from controller.rules.model import (
    GROUP,
    METER,
    Action,
    Bucket,
    GroupEntry,
    GroupKey,
    GroupType,
    MeterEntry,
    MeterKey,
    Opaque,
    Resource,
    ResourceKey,
)
from controller.rules.of13 import (
    OFPG_MAX,
    OFPM_MAX,
    VERSION,
    bucket_problem,
    decode_actions,
    encode_actions,
)
from controller.rules.openflow import HEADER, REPLY_MORE, NotExpressible, ResourceDescriptions, RoleReply

KINDS: tuple[str, ...] = (METER, GROUP)
"""What a switch can be told to hold beside flow entries, in the order in which it is asked for them."""

_OFPT_GROUP_MOD, _OFPT_METER_MOD = 15, 29
_OFPT_MULTIPART_REQUEST, _OFPT_MULTIPART_REPLY = 18, 19
_OFPT_ROLE_REQUEST, _OFPT_ROLE_REPLY = 24, 25
_OFPMP_GROUP_DESC, _OFPMP_METER_CONFIG = 7, 10
_ADD, _MODIFY, _DELETE = range(3)
_OFPP_ANY = _OFPG_ANY = _OFPM_ALL = 0xFFFFFFFF
_OFPP_MAX = 0xFFFFFF00
_OFPMF_KBPS, _OFPMF_PKTPS, _OFPMF_BURST = 1, 2, 4
_OFPMBT_DROP = 1
_UNDEFINED_GENERATION = (1 << 64) - 1
NO_CHANGE = 0
"""OFPCR_ROLE_NOCHANGE: the request that asks which role the connection has."""
_LONGEST = 0xFFFF

_NO_GROUPS, _NO_METERS = ("group-table-full", "The group table"), ("meter-table-full", "The meter table")
FULL = {(6, 3): _NO_GROUPS, (6, 4): _NO_GROUPS, (12, 10): _NO_METERS, (12, 11): _NO_METERS}
"""Errors of a switch with no room, and which notice tells what is full: OFPGMFC_OUT_OF_GROUPS, _OUT_OF_BUCKETS,
OFPMMFC_OUT_OF_METERS, _OUT_OF_BANDS."""
EXISTS = frozenset({(6, 0), (12, 1)})
"""Errors of a switch that has a group or meter already: OFPGMFC_GROUP_EXISTS, OFPMMFC_METER_EXISTS."""
UNKNOWN = frozenset({(6, 8), (12, 3), (2, 9)})
"""Errors of a switch without one: OFPGMFC_UNKNOWN_GROUP, OFPMMFC_UNKNOWN_METER, OFPBAC_BAD_OUT_GROUP."""

_MULTIPART = Struct("!HHI")
_GROUP = Struct("!HBxI")
_BUCKET = Struct("!HHIII")
_METER = Struct("!HHI")
_DROP = Struct("!HHIIxxxx")
_ROLE = Struct("!BBHII4xQ")


def resource_expressible(resource: Resource) -> str | None:
    """Return None where OpenFlow 1.3 can say a group or a meter, the reason where it cannot."""
    if isinstance(resource, MeterEntry):
        return _meter_problem(resource)
    if not 1 <= resource.key.group_id <= OFPG_MAX:
        return f"group {resource.key.group_id} cannot exist"
    if resource.type not in (GroupType.ALL, GroupType.SELECT, GroupType.FAST_FAILOVER):
        return f"a group of type {resource.type}"
    for bucket in resource.buckets:
        problem = bucket_problem(bucket) or _choice_problem(resource.type, bucket)
        if problem is not None:
            return problem
    size = 16 + len(_buckets(resource.buckets))
    return None if size <= _LONGEST else f"the buckets make a message of {size} bytes"


def _choice_problem(group_type: int, bucket: Bucket) -> str | None:
    """Return why a bucket does not say what its group chooses by, or says more; None where it says that."""
    is_select, is_failover = group_type == GroupType.SELECT, group_type == GroupType.FAST_FAILOVER
    if bucket.weight and not is_select:
        return "buckets have weights in select groups alone"
    if is_select and not 1 <= bucket.weight <= 0xFFFF:
        return f"a bucket of a select group has a weight of 1 to 65535, not {bucket.weight}"
    if (bucket.watch_port is not None) != is_failover:
        return "buckets watch a port in fast-failover groups, and in these alone"
    if bucket.watch_port is not None and not 1 <= bucket.watch_port <= _OFPP_MAX:
        return f"port {bucket.watch_port} cannot be watched"
    return None


def _meter_problem(meter: MeterEntry) -> str | None:
    if meter.opaque:
        return "a meter that the model cannot say"
    if not 1 <= meter.key.meter_id <= OFPM_MAX:
        return f"meter {meter.key.meter_id} cannot exist"
    if not (1 <= meter.rate <= 0xFFFFFFFF and 1 <= meter.burst <= 0xFFFFFFFF):
        return f"a meter has a rate and a burst of 1 to 4294967295, not {meter.rate} and {meter.burst}"
    return None


def encode_resource_put(resource: Resource, xid: int, *, exists: bool) -> bytes:
    """Add a group or a meter, or where it `exists` change it in place; NotExpressible where 1.3 cannot say it."""
    reason = resource_expressible(resource)
    if reason is not None:
        raise NotExpressible(reason)
    command = _MODIFY if exists else _ADD
    if isinstance(resource, MeterEntry):
        body = _METER.pack(command, *_meter_body(resource)) + _band(resource)
        return HEADER.pack(VERSION, _OFPT_METER_MOD, 8 + len(body), xid) + body
    body = _GROUP.pack(command, resource.type, resource.key.group_id) + _buckets(resource.buckets)
    return HEADER.pack(VERSION, _OFPT_GROUP_MOD, 8 + len(body), xid) + body


def encode_resource_remove(key: ResourceKey, xid: int) -> bytes:
    """Delete a group or a meter, and with it the flow entries that name it."""
    if isinstance(key, MeterKey):
        return HEADER.pack(VERSION, _OFPT_METER_MOD, 16, xid) + _METER.pack(_DELETE, 0, key.meter_id)
    return HEADER.pack(VERSION, _OFPT_GROUP_MOD, 16, xid) + _GROUP.pack(_DELETE, GroupType.ALL, key.group_id)


def encode_resource_request(kind: str, xid: int) -> bytes:
    """Ask for all groups, or all meters, with what they do."""
    if kind == GROUP:
        return HEADER.pack(VERSION, _OFPT_MULTIPART_REQUEST, 16, xid) + _MULTIPART.pack(_OFPMP_GROUP_DESC, 0, 0)
    head = HEADER.pack(VERSION, _OFPT_MULTIPART_REQUEST, 24, xid) + _MULTIPART.pack(_OFPMP_METER_CONFIG, 0, 0)
    return head + _OFPM_ALL.to_bytes(4, "big") + bytes(4)


def encode_resource_reply(kind: str, xid: int, entries: tuple[Resource, ...], *, more: bool = False) -> bytes:
    """Build a reply to `encode_resource_request`, as a switch does."""
    body = b""
    for entry in entries:
        if isinstance(entry, MeterEntry):
            band = _band(entry)
            body += _METER.pack(8 + len(band), *_meter_body(entry)) + band
        else:
            buckets = _buckets(entry.buckets)
            body += _GROUP.pack(8 + len(buckets), entry.type, entry.key.group_id) + buckets
    what = _OFPMP_GROUP_DESC if kind == GROUP else _OFPMP_METER_CONFIG
    head = HEADER.pack(VERSION, _OFPT_MULTIPART_REPLY, 16 + len(body), xid)
    return head + _MULTIPART.pack(what, REPLY_MORE if more else 0, 0) + body


def decode_resources(message: bytes) -> ResourceDescriptions:
    """Read a reply that tells groups or meters; never raises, see `ResourceDescriptions.fault`."""
    xid = int.from_bytes(message[4:8], "big")
    if len(message) < 16 or message[1] != _OFPT_MULTIPART_REPLY:
        return ResourceDescriptions(xid, False, (), "no reply that tells groups or meters")
    what, flags, _ = _MULTIPART.unpack_from(message, 8)
    if what not in (_OFPMP_GROUP_DESC, _OFPMP_METER_CONFIG):
        return ResourceDescriptions(xid, False, (), "no reply that tells groups or meters")
    more, length = bool(flags & REPLY_MORE), int.from_bytes(message[2:4], "big")
    entries: list[Resource] = []
    if length > len(message):
        return ResourceDescriptions(xid, more, (), "the message is cut short")
    offset = 16
    try:
        while offset < length:
            size = int.from_bytes(message[offset : offset + 2], "big")
            if size < 8 or offset + size > length:
                raise ValueError("an entry does not fit")
            if what == _OFPMP_GROUP_DESC:
                entries.append(_decode_group(message, offset, offset + size))
            else:
                entries.append(_decode_meter(message, offset, offset + size))
            offset += size
    except (struct_error, ValueError) as fault:
        return ResourceDescriptions(xid, more, tuple(entries), str(fault))
    return ResourceDescriptions(xid, more, tuple(entries))


def _decode_group(message: bytes, start: int, end: int) -> GroupEntry:
    _, group_type, group_id = _GROUP.unpack_from(message, start)
    buckets: list[Bucket] = []
    offset = start + 8
    while offset < end:
        size, weight, watch_port, watch_group, _ = _BUCKET.unpack_from(message, offset)
        if size < 16 or offset + size > end:
            raise ValueError("a bucket does not fit")
        actions: list[Action] = []
        decode_actions(message, offset + 16, offset + size, actions)
        if watch_group != _OFPG_ANY:
            actions.append(Opaque(message[offset + 8 : offset + 12]))
        buckets.append(Bucket(tuple(actions), weight, None if watch_port == _OFPP_ANY else watch_port))
        offset += size
    return GroupEntry(GroupKey(group_id), group_type, tuple(buckets))


def _decode_meter(message: bytes, start: int, end: int) -> MeterEntry:
    _, flags, meter_id = _METER.unpack_from(message, start)
    bands = message[start + 8 : end]
    if len(bands) == _DROP.size and flags in (_OFPMF_KBPS | _OFPMF_BURST, _OFPMF_PKTPS | _OFPMF_BURST):
        kind, size, rate, burst = _DROP.unpack(bands)
        if kind == _OFPMBT_DROP and size == _DROP.size:
            return MeterEntry(MeterKey(meter_id), rate, burst, bool(flags & _OFPMF_PKTPS))
    return MeterEntry(MeterKey(meter_id), 0, 0, False, message[start + 2 : start + 4] + bands)


def _meter_body(meter: MeterEntry) -> tuple[int, int]:
    return (_OFPMF_PKTPS if meter.is_packets else _OFPMF_KBPS) | _OFPMF_BURST, meter.key.meter_id


def _band(meter: MeterEntry) -> bytes:
    return _DROP.pack(_OFPMBT_DROP, _DROP.size, meter.rate, meter.burst)


def _buckets(buckets: tuple[Bucket, ...]) -> bytes:
    encoded = b""
    for bucket in buckets:
        actions = encode_actions(bucket.actions)
        watch_port = _OFPP_ANY if bucket.watch_port is None else bucket.watch_port
        encoded += _BUCKET.pack(16 + len(actions), bucket.weight, watch_port, _OFPG_ANY, 0) + actions
    return encoded


def encode_role_request(role: int, generation_id: int, xid: int) -> bytes:
    """Ask a switch for a role; `generation_id` has 64 bits."""
    return _ROLE.pack(VERSION, _OFPT_ROLE_REQUEST, _ROLE.size, xid, role, generation_id)


def encode_role_reply(reply: RoleReply) -> bytes:
    """Say which role a connection has, as a switch does."""
    generation = _UNDEFINED_GENERATION if reply.generation_id is None else reply.generation_id
    return _ROLE.pack(VERSION, _OFPT_ROLE_REPLY, _ROLE.size, reply.xid, reply.role, generation)


def decode_role_reply(message: bytes) -> RoleReply | None:
    """Read a role reply; None where it is none or is cut short."""
    if len(message) < _ROLE.size or message[1] != _OFPT_ROLE_REPLY:
        return None
    _, _, _, xid, role, generation = _ROLE.unpack_from(message)
    return RoleReply(xid, role, None if generation == _UNDEFINED_GENERATION else generation)
