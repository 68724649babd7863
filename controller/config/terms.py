"""What a policy names hosts and groups by: prefixes, MAC addresses and switch ports, and their texts."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from controller.wire.addresses import (
    BROADCAST_V4,
    format_ip,
    format_mac,
    is_link_scope_group,
    is_multicast_ip,
    parse_ip,
    parse_mac,
)
from controller.wire.dpids import looks_like_dpid

MAX_PORT_NO = 0xFFFFFF00
"""OFPP_MAX of OpenFlow 1.3 (7.2.1): the highest number of a real port."""

SEVERITIES = ("info", "warning", "critical")
"""Of events and alarms, the least grave first."""

SWITCH_NAME = "[A-Za-z0-9]([A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?"
PORT_NAME = "[A-Za-z_]([A-Za-z0-9 ._/-]{0,62}[A-Za-z0-9._/-])?"

LABEL_KEY = "[A-Za-z][A-Za-z0-9_.-]{0,62}"
LABEL_VALUE = "[A-Za-z0-9_.-]{1,63}"
POOL_NAME = LABEL_KEY
ADDRESS_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
RESERVED_LABELS = ("tier", "dpid", "name", "state", "fabric")
"""What selectors know of every switch, and no label is called."""

_LABEL_KEY = re.compile(rf"{LABEL_KEY}\Z")
_LABEL_VALUE = re.compile(rf"{LABEL_VALUE}\Z")
_ADDRESS_NAME = re.compile(rf"{ADDRESS_NAME}\Z")
_SWITCH_NAME = re.compile(rf"{SWITCH_NAME}\Z")
_PORT_NAME = re.compile(rf"{PORT_NAME}\Z")
_LENGTH = re.compile(r"[0-9]{1,3}\Z")
_PORT = re.compile(r"[0-9]{1,5}\Z")
_MAPPED = bytes(10) + b"\xff\xff"


class Prefix(NamedTuple):
    """The addresses that share `length` leading bits with `network` (4 or 16 bytes, host bits 0)."""

    network: bytes
    length: int

    def __str__(self) -> str:
        address = format_ip(self.network)
        return address if self.length == 8 * len(self.network) else f"{address}/{self.length}"

    def contains(self, address: bytes) -> bool:
        """Tell whether an address of either family is within the prefix."""
        return len(address) == len(self.network) and mask_address(address, self.length) == self.network


class MacAddress(NamedTuple):
    """The host with this MAC address (6 bytes)."""

    mac: bytes

    def __str__(self) -> str:
        return format_mac(self.mac)


class SwitchPort(NamedTuple):
    """A port of a datapath, or whatever host is behind it."""

    dpid: int
    port_no: int

    def __str__(self) -> str:
        return f"{self.dpid}:{self.port_no}"


class NamedSwitch(NamedTuple):
    """What operators call a switch, and those of its ports that they name."""

    name: str
    dpid: int
    ports: tuple[tuple[int, str], ...] = ()


class Labelled(NamedTuple):
    """The labels of a switch, or of a port of it: keys and values."""

    dpid: int
    port_no: int | None
    labels: tuple[tuple[str, str], ...]


class SwitchLink(NamedTuple):
    """A link by its ends, the lower one first."""

    a: SwitchPort
    b: SwitchPort

    def __str__(self) -> str:
        return f"{self.a}-{self.b}"


HostTerm: TypeAlias = Prefix | MacAddress | SwitchPort


def is_switch_name(text: str) -> bool:
    """Tell whether a text can name a switch: 64 letters, digits, spaces, ``.``, ``_`` and ``-``, and no id."""
    return _SWITCH_NAME.match(text) is not None and not looks_like_dpid(text)


def is_port_name(text: str) -> bool:
    """Tell whether a text can name a port: a letter first, then as a switch's name, or ``/``."""
    return _PORT_NAME.match(text) is not None


def is_label_key(text: str) -> bool:
    """Tell whether a text can name a label: a letter, then up to 62 letters, digits, ``.``, ``_`` and ``-``."""
    return _LABEL_KEY.match(text) is not None and text not in RESERVED_LABELS


def is_label_value(text: str) -> bool:
    """Tell whether a text can be the value of a label: up to 63 letters, digits, ``.``, ``_`` and ``-``."""
    return _LABEL_VALUE.match(text) is not None


def is_pool_name(text: str) -> bool:
    """Tell whether a text can name a pool: a letter, then up to 62 letters, digits, ``.``, ``_`` and ``-``."""
    return _LABEL_KEY.match(text) is not None


def is_address_name(text: str) -> bool:
    """Tell whether a text can be whose an address of a pool is: a letter or digit, then as a pool's name."""
    return _ADDRESS_NAME.match(text) is not None


def parse_host_port(text: str) -> tuple[str, int]:
    """Return name or address, without brackets, and port of ``host:port``; ValueError where `text` is none."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not _PORT.match(port) or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no host:port with a port of 1 to 65535")
    try:
        host.encode("idna")  # as whoever asks for its address does
    except UnicodeError as error:
        raise ValueError(f"{text!r} is no host:port: {host!r} is no name") from error
    return host, int(port)


def is_ovsdb_target(text: str) -> bool:
    """Tell whether a text says where an OVSDB server listens: ``unix:PATH`` or ``tcp:HOST:PORT``."""
    kind, _, rest = text.partition(":")
    return bool(rest) if kind == "unix" else kind == "tcp" and _is_host_port(rest)


def is_syslog_target(text: str) -> bool:
    """Tell whether a text says where a syslog daemon listens: an absolute path or ``host:port``."""
    return text.startswith("/") or _is_host_port(text)


def mask_address(address: bytes, length: int) -> bytes:
    """Return an address with all but its first `length` bits set to 0."""
    host_bits = 8 * len(address) - length
    if not host_bits:
        return address
    return (int.from_bytes(address, "big") >> host_bits << host_bits).to_bytes(len(address), "big")


def parse_prefix(text: str) -> Prefix:
    """Return the prefix written as an address or as ``address/length``.

    Raises
    ------
    ValueError
        Not an address, a length out of range, host bits set, an IPv6 zone, or an IPv4-mapped IPv6 address.
    """
    address_text, slash, length_text = text.partition("/")
    if "%" in address_text:
        raise ValueError(f"{text!r} has a zone, which means nothing outside its host")
    try:
        address = parse_ip(address_text)
    except ValueError:
        raise ValueError(f"{text!r} is not an IPv4 or IPv6 address or prefix") from None
    bits = 8 * len(address)
    if not slash:
        length = bits
    elif not _LENGTH.match(length_text) or int(length_text) > bits:
        raise ValueError(f"{text!r}: the length of an IPv{4 if bits == 32 else 6} prefix is 0 to {bits}")
    else:
        length = int(length_text)
    if address[:12] == _MAPPED and bits == 128 and length >= 96:
        raise ValueError(f"{text!r} is an IPv4-mapped address; write it as IPv4")
    network = mask_address(address, length)
    if network != address:
        raise ValueError(f"{text!r} has host bits set; did you mean {Prefix(network, length)}?")
    return Prefix(network, length)


def parse_group_prefix(text: str) -> Prefix:
    """Return a prefix of multicast groups that a policy may speak about; ValueError where `text` is none.

    224.0.0.0/24 and ff00::/16 to ff02::/16 (RFC 5771, RFC 4291) never leave their link and are subject to no policy.
    """
    prefix = parse_prefix(text)
    first, last = prefix.network, _last_address(prefix)
    if not (is_multicast_ip(first) and is_multicast_ip(last)):
        raise ValueError(f"{text!r} is not within the multicast addresses 224.0.0.0/4 or ff00::/8")
    if is_link_scope_group(first) and is_link_scope_group(last):
        raise ValueError(f"{text!r} is link scope, which is never subject to policy")
    return prefix


def can_be_host(address: bytes) -> bool:
    """Tell whether `parse_host_prefix` takes an address: one of a host, no group's, and not IPv4 within IPv6."""
    return any(address) and address != BROADCAST_V4 and not is_multicast_ip(address) and address[:12] != _MAPPED


def parse_host_prefix(text: str) -> Prefix:
    """Return a prefix that hosts or sources may be in; ValueError where `text` is none or names no host."""
    prefix = parse_prefix(text)
    if is_multicast_ip(prefix.network):
        raise ValueError(f"{text!r} is multicast; a host has a unicast address")
    if prefix.length == 8 * len(prefix.network):
        if not any(prefix.network):
            raise ValueError(f"{text!r} is the unspecified address, which no host has")
        if prefix.network == BROADCAST_V4:
            raise ValueError(f"{text!r} is the broadcast address, which no host has")
    return prefix


def parse_host_mac(text: str) -> MacAddress:
    """Return the MAC address of a host; ValueError where `text` is none, is a group address or all zero."""
    mac = parse_mac(text)
    if mac[0] & 1:
        raise ValueError(f"{text!r} is a group address; a host has an individual one")
    if not any(mac):
        raise ValueError(f"{text!r} is all zero, which no host has")
    return MacAddress(mac)


def looks_like_mac(text: str) -> bool:
    """Tell whether a text is meant as a MAC address, in any of the usual spellings."""
    pairs = re.split(r"[:-]", text)
    return len(pairs) == 6 and all(len(pair) <= 2 for pair in pairs)


def looks_like_address(text: str) -> bool:
    """Tell whether a text is meant as an address or prefix rather than a name."""
    return ":" in text or "/" in text or not text.strip("0123456789.")


def parse_host_term(text: str) -> Prefix | MacAddress:
    """Return the host written as IP address, prefix or MAC address; ValueError where `text` is none of them."""
    if looks_like_mac(text):
        return parse_host_mac(text)
    return parse_host_prefix(text)


def _is_host_port(text: str) -> bool:
    try:
        parse_host_port(text)
    except ValueError:
        return False
    return True


def _last_address(prefix: Prefix) -> bytes:
    """Return the highest address of a prefix."""
    size = len(prefix.network)
    host_bits = (1 << 8 * size - prefix.length) - 1
    return (int.from_bytes(prefix.network, "big") | host_bits).to_bytes(size, "big")
