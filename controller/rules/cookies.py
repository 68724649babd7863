"""Cookies: each flow entry says which app and what of it the entry comes from."""

from __future__ import annotations

from hashlib import blake2b

from controller.rules.pipeline import DISCOVERY_TAG, MULTICAST_TAG, SENDER_COOKIE_BIT

_DIGEST_BYTES = 6
_GROUP_ORIGIN = blake2b(b"('group', ", digest_size=_DIGEST_BYTES)


def cookie_of(app_tag: int, *origin: object) -> int:
    """Return the cookie of an origin: `app_tag` in the upper 16 bits, a stable hash of `origin` in the others.

    An origin is made of strings, bytes, numbers and tuples of them.
    """
    digest = blake2b(repr(origin).encode(), digest_size=_DIGEST_BYTES).digest()
    return app_tag << 48 | int.from_bytes(digest, "big")


def group_cookie(app_tag: int, group: bytes) -> int:
    """Return the cookie of a group's entries, by its name.

    It is `cookie_of` with ``"group"`` and the name, the beginning of which is hashed once for all.
    `SENDER_COOKIE_BIT` is left to who knows which entries are those of senders.
    """
    hashed = _GROUP_ORIGIN.copy()
    hashed.update(f"{group!r})".encode())
    return (app_tag << 48 | int.from_bytes(hashed.digest(), "big")) & ~SENDER_COOKIE_BIT


VLAN_TAGGED_COOKIE = cookie_of(DISCOVERY_TAG, ("vlan-tagged",))
"""Of the entries that drop frames with a VLAN tag, so that their counters can be read alone."""

STALE_VERSION_COOKIE = cookie_of(MULTICAST_TAG, "stale-version") & ~SENDER_COOKIE_BIT
"""Of the entries that drop packets of groups whose tree version a switch does not know."""

SHARED_COOKIE = cookie_of(MULTICAST_TAG, "port-set") & ~SENDER_COOKIE_BIT
"""Of the entries that groups share, each of which sends to one set of ports."""
