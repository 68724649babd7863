"""Cookies: each flow entry says which app and what of it the entry comes from."""

from __future__ import annotations

from hashlib import blake2b

from controller.kernel.domains import HIGHEST_VLAN, IPV4_NAME_BYTES
from controller.rules.pipeline import DISCOVERY_TAG, MULTICAST_TAG, SENDER_COOKIE_BIT

_DIGEST_BYTES = 6
_VLAN_BITS = HIGHEST_VLAN.bit_length()
_HASHED_BIT = SENDER_COOKIE_BIT >> 1
"""Set in the cookies of IPv6 groups, so that none is that of an IPv4 group."""
_number = int.from_bytes


def cookie_of(app_tag: int, *origin: object) -> int:
    """Return the cookie of an origin: `app_tag` in the upper 16 bits, a stable hash of `origin` in the others.

    An origin is made of strings, bytes, numbers and tuples of them.
    """
    digest = blake2b(repr(origin).encode(), digest_size=_DIGEST_BYTES).digest()
    return app_tag << 48 | int.from_bytes(digest, "big")


def group_cookie(app_tag: int, group: bytes) -> int:
    """Return the cookie of a group's entries, by its name.

    Below the tag an IPv4 group's has its VLAN id, 0 in the fabric's own domain, and its address: 0x5602_0007_ef010203
    is 239.1.2.3 in VLAN 7. An IPv6 group's has a hash of its name. `SENDER_COOKIE_BIT` is left to who knows which
    entries are those of senders.
    """
    size = len(group)
    if size == 4:
        return app_tag << 48 | _number(group, "big")
    if size == IPV4_NAME_BYTES:
        number = _number(group, "big")
        vlan_id = number & (1 << _VLAN_BITS) - 1
        return app_tag << 48 | vlan_id << 32 | number >> 24
    return cookie_of(app_tag, "group", group) & ~SENDER_COOKIE_BIT | _HASHED_BIT


VLAN_TAGGED_COOKIE = cookie_of(DISCOVERY_TAG, ("vlan-tagged",))
"""Of the entries that drop frames with a VLAN tag, so that their counters can be read alone."""

STALE_VERSION_COOKIE = cookie_of(MULTICAST_TAG, "stale-version") & ~SENDER_COOKIE_BIT
"""Of the entries that drop packets of groups whose tree version a switch does not know."""

SHARED_COOKIE = cookie_of(MULTICAST_TAG, "port-set") & ~SENDER_COOKIE_BIT
"""Of the entries that groups share, each of which sends to one set of ports."""
