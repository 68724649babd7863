"""What the OpenFlow codecs share: results of decoding, refusals, and the canonical form of matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from controller.rules.model import (
    DSCP_MAX,
    VLAN_ACTIONS,
    VLAN_ID_MAX,
    Action,
    FlowEntry,
    Match,
    PopVlan,
    PushVlan,
    Resource,
)
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6, IPPROTO_ICMPV6

NO_BUFFER = 0xFFFFFFFF
UNSUPPORTED_COUNTER = 0xFFFFFFFFFFFFFFFF
MATCHES_CACHED = 65536
"""Encoded matches kept; when as many are there the cache starts anew."""
ACTIONS_CACHED = 16384
"""Encoded lists of actions kept, likewise."""

OFPT_ERROR = 1
OFPT_SET_CONFIG = 9
OFPT_PACKET_OUT = 13
OFPT_FLOW_MOD = 14

HEADER = Struct("!BBHI")
ERROR = Struct("!BBHIHH")


REPLY_MORE = 1
"""The flag of a reply that others follow (OFPSF_REPLY_MORE, OFPMPF_REPLY_MORE)."""

_FLOW = b"\x00\x01"
"""OFPST_FLOW, OFPMP_FLOW."""


class NotExpressible(ValueError):  # noqa: N818
    """A rule or message that an OpenFlow version has no way to say; `args[0]` is the reason."""


class FlowCounter(NamedTuple):
    """A flow entry as a switch reports it.

    `packet_count` and `byte_count` are None where the switch does not count. `foreign` says that the match has
    parts the model cannot say, so that `rule.key` is not what identifies the entry. Actions that it cannot say
    stand as `Opaque`.
    """

    rule: FlowEntry
    packet_count: int | None
    byte_count: int | None
    duration_s: float
    foreign: bool = False


class FlowStats(NamedTuple):
    """A flow statistics reply; `more` replies of the same `xid` may follow.

    Where the bytes make no sense `fault` says why, and `entries` are those before the fault.
    """

    xid: int
    more: bool
    entries: tuple[FlowCounter, ...]
    fault: str | None = None


class ErrorReply(NamedTuple):
    """A switch refused the message `xid`."""

    xid: int
    type: int
    code: int


class ResourceDescriptions(NamedTuple):
    """A reply that tells groups or meters; `more` replies of the same `xid` may follow.

    Where the bytes make no sense `fault` says why, and `entries` are those before the fault.
    """

    xid: int
    more: bool
    entries: tuple[Resource, ...]
    fault: str | None = None


class RoleReply(NamedTuple):
    """What a switch says of the role of this connection: the number of the role, and the generation it knows.

    `generation_id` is None where no master has been there since the switch started.
    """

    xid: int
    role: int
    generation_id: int | None


def encode_set_config(ofp_version: int, miss_send_len_bytes: int, xid: int) -> bytes:
    """Ask for packet-ins of table misses with up to `miss_send_len_bytes` of the packet (0xffff: whole)."""
    return HEADER.pack(ofp_version, OFPT_SET_CONFIG, 12, xid) + miss_send_len_bytes.to_bytes(4, "big")


def read_flow_stats(
    message: bytes,
    kind: int,
    start: int,
    entry_bytes: int,
    decode_entry: Callable[[bytes, int, int], FlowCounter],
    wanted: tuple[int, int],
) -> FlowStats:
    """Read a flow statistics reply of a type of messages; never raises, see `FlowStats.fault`.

    Entries begin at `start` with their size, which is `entry_bytes` at least; `decode_entry` takes the message and
    where one begins and ends. Those whose cookie is not as `wanted`, a cookie and its mask, are left out.
    """
    cookie, mask = wanted
    xid = int.from_bytes(message[4:8], "big")
    if len(message) < start or message[1] != kind or message[8:10] != _FLOW:
        return FlowStats(xid, False, (), "not a flow statistics reply")
    length = int.from_bytes(message[2:4], "big")
    more = bool(message[11] & REPLY_MORE)
    entries: list[FlowCounter] = []
    if length > len(message):
        return FlowStats(xid, more, (), "the message is cut short")
    offset = start
    try:
        while offset < length:
            size = int.from_bytes(message[offset : offset + 2], "big")
            if size < entry_bytes or offset + size > length:
                raise ValueError("an entry does not fit")
            entry = decode_entry(message, offset, offset + size)
            if (entry.rule.cookie ^ cookie) & mask == 0:
                entries.append(entry)
            offset += size
    except (struct_error, ValueError) as fault:
        return FlowStats(xid, more, tuple(entries), str(fault))
    return FlowStats(xid, more, tuple(entries))


def decode_error(message: bytes) -> ErrorReply | None:
    """Read an error message; None where it is none or cut short."""
    if len(message) < ERROR.size or message[1] != OFPT_ERROR:
        return None
    _, _, _, xid, kind, code = ERROR.unpack_from(message)
    return ErrorReply(xid, kind, code)


def counter(value: int) -> int | None:
    """Return a counter's value, None for the one that says unsupported."""
    return None if value == UNSUPPORTED_COUNTER else value


def match_problem(match: Match) -> str | None:
    """Tell why a match is not in canonical form, None where it is.

    Canonical form is what a switch reports back: prerequisites present (OpenFlow 1.3.5, 7.2.3.8), no bits set
    that the mask leaves out, no mask that covers nothing or everything.
    """
    in_port, eth_dst, eth_src, eth_type, proto, ip_src, src_len, ip_dst, dst_len, icmp6, mask, tag, vlan, dscp = match
    if (eth_dst is not None and len(eth_dst) != 6) or (eth_src is not None and len(eth_src) != 6):
        return "a MAC address has 6 bytes"
    if mask is not None:
        if eth_dst is None or len(mask) != 6:
            return "eth_dst_mask needs eth_dst and 6 bytes"
        if mask == b"\xff" * 6 or not any(mask):
            return "eth_dst_mask covers all bits or none"
        if any(byte & ~kept for byte, kept in zip(eth_dst, mask, strict=True)):
            return "eth_dst has bits outside eth_dst_mask"
    if in_port is not None and not 0 < in_port <= 0xFFFFFFFF:
        return f"port {in_port} does not exist"
    size = 4 if eth_type == ETH_TYPE_IPV4 else 16 if eth_type == ETH_TYPE_IPV6 else 0
    if (ip_src is not None or src_len is not None) and (problem := _address_problem(ip_src, src_len, size)):
        return problem
    if (ip_dst is not None or dst_len is not None) and (problem := _address_problem(ip_dst, dst_len, size)):
        return problem
    if proto is not None and not size:
        return "ip_proto needs an eth_type of IPv4 or IPv6"
    if icmp6 is not None and (eth_type != ETH_TYPE_IPV6 or proto != IPPROTO_ICMPV6):
        return "icmpv6_type needs IPv6 and ICMPv6"
    if dscp is not None and not (size and 0 <= dscp <= DSCP_MAX):
        return f"a code point is 0 to {DSCP_MAX}, and needs an eth_type of IPv4 or IPv6"
    if vlan is not None:
        return "a match asks for one VLAN or for any tag, not for both" if tag else vlan_id_problem(vlan)
    return None


def vlan_id_problem(vlan_id: int) -> str | None:
    """Tell why no frame belongs to a VLAN with this id, None where frames may."""
    return None if 1 <= vlan_id <= VLAN_ID_MAX else f"VLAN {vlan_id} cannot exist: ids are 1 to {VLAN_ID_MAX}"


def tag_problem(match: Match, actions: Iterable[Action]) -> str | None:
    """Tell why actions of an entry with this match cannot change a frame's VLAN tag, None where they can.

    A tag is set or popped where the match asks for it or an action before has pushed it: a switch refuses else
    (OpenFlow 1.3.5, 5.12). It is pushed where there is none yet, for OpenFlow 1.0 gives no frame two.
    """
    is_tagged = match.tagged or match.vlan_id is not None
    for action in actions:
        kind = type(action)
        if kind not in VLAN_ACTIONS:
            continue
        if kind is PushVlan:
            if is_tagged:
                return "a frame that has a VLAN tag is given no second one"
        elif not is_tagged:
            return "a VLAN tag is set or popped where neither the match asks for one nor an action pushed it"
        is_tagged = kind is not PopVlan
        if is_tagged and (problem := vlan_id_problem(action[0])) is not None:  # type: ignore[arg-type]
            return problem
    return None


def dscp_problem(match: Match, dscp: int) -> str | None:
    """Tell why an entry with this match cannot give a packet this code point, None where it can."""
    if match.eth_type not in (ETH_TYPE_IPV4, ETH_TYPE_IPV6):
        return "a code point is set where the match asks for IPv4 or IPv6 only"
    return None if 0 <= dscp <= DSCP_MAX else f"code point {dscp} cannot exist: they are 0 to {DSCP_MAX}"


def _address_problem(address: bytes | None, prefix: int | None, size: int) -> str | None:
    if address is None:
        return "a prefix length without an address"
    if prefix is None or len(address) != size or not 0 < prefix <= 8 * size:
        return "an IP address needs an eth_type of its family and a prefix length of 1 bit or more"
    if prefix < 8 * size and int.from_bytes(address, "big") & ((1 << 8 * size - prefix) - 1):
        return "an IP address has bits beyond its prefix"
    return None


def prefix_mask(bits: int, prefix: int) -> bytes:
    """Return a netmask of `prefix` ones in `bits` bits."""
    return ((1 << bits) - (1 << bits - prefix)).to_bytes(bits // 8, "big")


def mask_prefix(mask: bytes) -> int | None:
    """Return how many leading ones a netmask has, None where ones follow zeros."""
    bits = 8 * len(mask)
    inverse = ~int.from_bytes(mask, "big") & ((1 << bits) - 1)
    return bits - inverse.bit_length() if inverse & (inverse + 1) == 0 else None
