"""PIM version 2 join and prune messages (RFC 7761, 4.9.5), which tell what a router wants of its neighbours."""

from __future__ import annotations

import math
from struct import Struct

from controller.wire.addresses import ALL_PIM_ROUTERS_V4, ALL_PIM_ROUTERS_V6, group_mac, is_multicast_ip
from controller.wire.checksum import internet_checksum, upper_layer_checksum
from controller.wire.ipv4 import PROTOCOL_PIM, encode_ipv4
from controller.wire.ipv6 import encode_ipv6
from controller.wire.packets import Malformed, PimGroup, PimJoinPrune, PimSource
from controller.wire.reasons import malformed

JOIN_PRUNE = 0x23
HOLDTIME_FOREVER = 0xFFFF

_TRUNCATED = malformed("pim-truncated")
_ADDRESS = malformed("pim-address")
_GROUP = malformed("pim-group")

_FAMILIES = {4: 1, 6: 2}
"""Address family numbers of encoded addresses (RFC 7761, 4.9.1)."""

_ADDRESS_BYTES = {4: 4, 6: 16}
_WITH_ATTRIBUTES = 1
_LAST_ATTRIBUTE = 0x40
_WILDCARD, _RPT, _SPARSE = 0x02, 0x01, 0x04
_COUNTS = Struct("!BBH")
_GROUP_COUNTS = Struct("!HH")


class _UnreadableError(Exception):
    """The message ends, or an address is none of those that it may have."""

    def __init__(self, found: Malformed) -> None:
        super().__init__(found.reason)
        self.found = found


class _Reader:
    """Reads the encoded addresses of one family, one after the other."""

    def __init__(self, frame: bytes, position: int, end: int, family: int) -> None:
        self._frame = frame
        self._position = position
        self._end = end
        self._family = family
        self._size = _ADDRESS_BYTES[family]

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        position = self._position
        if position + count > self._end:
            raise _UnreadableError(_TRUNCATED)
        self._position = position + count
        return self._frame[position : position + count]

    def unicast(self) -> bytes:
        """Return an encoded unicast address, a host's."""
        self._encoding((0,))
        address = self.take(self._size)
        if is_multicast_ip(address) or not any(address):
            raise _UnreadableError(_ADDRESS)
        return address

    def group(self) -> tuple[bytes, int]:
        """Return an encoded group address and the length of its prefix."""
        self._encoding((0,))
        prefix_bits = self.take(2)[1]
        address = self.take(self._size)
        if not is_multicast_ip(address) or not 4 <= prefix_bits <= 8 * self._size:
            raise _UnreadableError(_GROUP)
        return address, prefix_bits

    def source(self) -> PimSource:
        """Return an encoded source address; attributes behind it (RFC 5384) are passed over."""
        encoding = self._encoding((0, _WITH_ATTRIBUTES))
        flags, prefix_bits = self.take(2)
        address = self.take(self._size)
        if prefix_bits != 8 * self._size or is_multicast_ip(address):
            raise _UnreadableError(_ADDRESS)
        is_last = encoding != _WITH_ATTRIBUTES
        while not is_last:
            kind, length_bytes = self.take(2)
            self.take(length_bytes)
            is_last = bool(kind & _LAST_ATTRIBUTE)
        return PimSource(address, bool(flags & _WILDCARD), bool(flags & _RPT))

    def _encoding(self, known: tuple[int, ...]) -> int:
        family, encoding = self.take(2)
        if family != _FAMILIES[self._family] or encoding not in known:
            raise _UnreadableError(_ADDRESS)
        return encoding


def decode_join_prune(
    frame: bytes, position: int, end: int, family: int, eth_src: bytes, source: bytes
) -> PimJoinPrune | Malformed:
    """Decode what follows the header of a join and prune message in ``frame[position:end]``.

    A holdtime of 0xffff holds for ever (`math.inf`). Bytes behind the last group are padding.
    """
    reader = _Reader(frame, position, end, family)
    groups = []
    try:
        upstream = reader.unicast()
        _, group_count, holdtime = _COUNTS.unpack(reader.take(_COUNTS.size))
        for _ in range(group_count):
            group, prefix_bits = reader.group()
            join_count, prune_count = _GROUP_COUNTS.unpack(reader.take(_GROUP_COUNTS.size))
            joins = tuple([reader.source() for _ in range(join_count)])
            prunes = tuple([reader.source() for _ in range(prune_count)])
            groups.append(PimGroup(group, prefix_bits, joins, prunes))
    except _UnreadableError as error:
        return error.found
    holdtime_s = math.inf if holdtime == HOLDTIME_FOREVER else float(holdtime)
    return PimJoinPrune(family, eth_src, source, upstream, holdtime_s, tuple(groups))


def encode_pim_join_prune(message: PimJoinPrune) -> bytes:
    """Return the frame of a join and prune message.

    Raises
    ------
    ValueError
        For a holdtime that is neither 0 to 65534 s nor infinite, and for more than 255 groups.
    """
    value = HOLDTIME_FOREVER if math.isinf(message.holdtime_s) else round(message.holdtime_s)
    if not 0 <= value <= HOLDTIME_FOREVER or (value == HOLDTIME_FOREVER and not math.isinf(message.holdtime_s)):
        raise ValueError("a holdtime is 0 to 65534 s or infinite")
    if len(message.groups) > 255:
        raise ValueError("a join and prune message has 255 groups at most")
    encoding = bytes((_FAMILIES[message.family], 0))
    body = encoding + message.upstream + _COUNTS.pack(0, len(message.groups), value)
    for group, prefix_bits, joins, prunes in message.groups:
        body += encoding + bytes((0, prefix_bits)) + group + _GROUP_COUNTS.pack(len(joins), len(prunes))
        for address, is_wildcard, is_rpt in joins + prunes:
            flags = _SPARSE | _WILDCARD * is_wildcard | _RPT * is_rpt
            body += encoding + bytes((flags, 8 * len(address))) + address
    blank = bytes((JOIN_PRUNE, 0, 0, 0)) + body
    if message.family == 4:
        whole = blank[:2] + internet_checksum(blank).to_bytes(2, "big") + body
        to = ALL_PIM_ROUTERS_V4
        return encode_ipv4(group_mac(to), message.eth_src, message.source, to, PROTOCOL_PIM, whole)
    to = ALL_PIM_ROUTERS_V6
    checksum = upper_layer_checksum(message.source, to, PROTOCOL_PIM, blank)
    whole = blank[:2] + checksum.to_bytes(2, "big") + body
    return encode_ipv6(group_mac(to), message.eth_src, message.source, to, PROTOCOL_PIM, whole)
