"""Statistics replies as arrays: what the layouts of both OpenFlow versions share."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HEADER = Struct("!BBHIHH")
"""version, type, length, xid; multipart (statistics) type and flags."""

MORE = 1


class Reply(NamedTuple):
    """One multipart message; `more` messages of the same `xid` may follow."""

    xid: int
    kind: int
    more: bool
    body: bytes


class MalformedReply(NamedTuple):
    """A message that makes no sense, and why."""

    reason: str


class Entries(NamedTuple):
    """Decoded entries: `keys` uint64[n, k] name them; `counters` uint64[n, m] and `gauges` uint64[n, g] tell of them.

    `duration_s` float64[n] is how long the switch has counted, NaN where it does not say.
    """

    keys: NDArray[np.uint64]
    counters: NDArray[np.uint64]
    gauges: NDArray[np.uint64]
    duration_s: NDArray[np.float64]


class Layout(NamedTuple):
    """How entries of a kind stand in a body.

    Attributes
    ----------
    entry
        The fixed part of an entry; `counters` holds its 64-bit counters, a field `length` its whole length.
    keys, counters, gauges
        What the columns of `Entries` are called; keys and gauges are fields of `entry`, ``match`` the match's hash.
    match_at, match_bytes
        Where the match of a flow entry stands, and its length, None for a match that says its length itself.
    """

    entry: np.dtype[Any]
    keys: tuple[str, ...]
    counters: tuple[str, ...]
    gauges: tuple[str, ...] = ()
    match_at: int | None = None
    match_bytes: int | None = None


def read_header(message: bytes, header_bytes: int) -> Reply | MalformedReply:
    """Return a multipart message taken apart; `header_bytes` precede its body."""
    if len(message) < header_bytes:
        return MalformedReply("stats-truncated-header")
    _, _, length, xid, kind, flags = HEADER.unpack_from(message)
    if length != len(message):
        return MalformedReply("stats-wrong-length")
    return Reply(xid, kind, bool(flags & MORE), bytes(message[header_bytes:]))


def read_entries(layouts: Mapping[int, Layout], kind: int, body: bytes) -> Entries | MalformedReply:
    """Return the entries of a body.

    Parameters
    ----------
    layouts
        Layouts by kind, of one OpenFlow version.
    kind
        Multipart type.
    body
        What follows the multipart header; may be empty.

    Returns
    -------
    Entries or MalformedReply
        Nothing is raised, whatever the bytes. A body that ends within an entry is malformed as a whole.
    """
    layout = layouts.get(kind)
    if layout is None:
        return MalformedReply("stats-unknown-kind")
    entry = layout.entry
    names = entry.names or ()
    hashes: list[int] = []
    if "length" in names:
        found = _walk(layout, body)
        if isinstance(found, MalformedReply):
            return found
        fixed, hashes = found
    elif len(body) % entry.itemsize:
        return MalformedReply("stats-truncated")
    else:
        fixed = body
    rows = np.frombuffer(fixed, entry)
    keys = np.empty((len(rows), len(layout.keys)), np.uint64)
    for column, name in enumerate(layout.keys):
        keys[:, column] = hashes if name == "match" else rows[name]
    gauges = np.empty((len(rows), len(layout.gauges)), np.uint64)
    for column, name in enumerate(layout.gauges):
        gauges[:, column] = rows[name]
    if "duration_s" in names:
        duration_s = rows["duration_s"] + rows["duration_ns"] * 1e-9
    else:
        duration_s = np.full(len(rows), np.nan)
    return Entries(keys, rows["counters"].astype(np.uint64), gauges, duration_s)


def _walk(layout: Layout, body: bytes) -> tuple[bytes, list[int]] | MalformedReply:
    """Return the fixed parts of entries of different length, and the hashes of their matches."""
    entry, match_at = layout.entry, layout.match_at
    fields: Any = entry.fields
    where, size = fields["length"][1], entry.itemsize
    parts: list[bytes] = []
    hashes: list[int] = []
    offset, end = 0, len(body)
    while offset < end:
        if end - offset < size:
            return MalformedReply("stats-truncated")
        length = body[offset + where] << 8 | body[offset + where + 1]
        if length < size or length > end - offset:
            return MalformedReply("stats-entry-length")
        parts.append(body[offset : offset + size])
        if match_at is not None:
            match = body[offset + match_at : offset + _match_end(layout, body, offset, length)]
            hashes.append(int.from_bytes(blake2b(match, digest_size=8).digest(), "big"))
        offset += length
    return b"".join(parts), hashes


def _match_end(layout: Layout, body: bytes, offset: int, length: int) -> int:
    """Return where the match of the flow entry at `offset` ends, counted from the start of the entry."""
    match_at = layout.match_at or 0
    if layout.match_bytes is not None:
        return match_at + layout.match_bytes
    at = offset + match_at
    if length < match_at + 4:
        return length
    return min(length, match_at + (body[at + 2] << 8 | body[at + 3]))
