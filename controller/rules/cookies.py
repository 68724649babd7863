"""Cookies: each flow entry says which app and what of it the entry comes from."""

from __future__ import annotations

from hashlib import blake2b

from controller.rules.pipeline import DISCOVERY_TAG, SENDER_COOKIE_BIT


def cookie_of(app_tag: int, *origin: object) -> int:
    """Return the cookie of an origin: `app_tag` in the upper 16 bits, a stable hash of `origin` in the others.

    An origin is made of strings, bytes, numbers and tuples of them.
    """
    digest = blake2b(repr(origin).encode(), digest_size=6).digest()
    return app_tag << 48 | int.from_bytes(digest, "big")


def group_cookie(app_tag: int, group: bytes) -> int:
    """Return the cookie of a group's entries, by its name.

    `SENDER_COOKIE_BIT` is left to who knows which entries are those of senders.
    """
    return cookie_of(app_tag, "group", group) & ~SENDER_COOKIE_BIT


VLAN_TAGGED_COOKIE = cookie_of(DISCOVERY_TAG, ("vlan-tagged",))
"""Of the entries that drop frames with a VLAN tag, so that their counters can be read alone."""
