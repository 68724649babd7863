"""Fields of the log's values that this version does not know: kept for those that do, and put back where it writes.

A value is an object of known names; what some of these name is an object, or a list of objects, in turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controller.effects import Notice
from controller.log import LogEntry

BYTES_BOUND = 1 << 20
"""Text of all that is kept, in bytes; what is more is lost, and told."""

DEPTH_BOUND = 32
"""How deep what is kept may be nested; what is deeper is lost likewise."""

PARTS_DEPTH = 3
"""How deep parts are looked into: the values of this version have two levels of them."""

NAMED_AT_MOST = 8

_PARTS = ("members", "senders", "records", "routers", "joins", "prunes", "order")
"""Known names of what is an object in turn, or a list of them."""

_IDENTITY = ("record", "dpid", "port_no", "group", "family", "mac", "address", "router", "source")
"""By which names an object of a list is the same as before."""

_text_of = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


class KnownFields(NamedTuple):
    """What this version knows of a value.

    Attributes
    ----------
    names
        Of its fields, and of those of its parts.
    kinds
        What the field `record` of a part of a list may say.
    """

    names: frozenset[str]
    kinds: frozenset[str] = frozenset()


class _Kept(NamedTuple):
    """What is kept of an object: its own fields, its parts' by name, those of the objects of a list by identity."""

    fields: dict[str, Any]
    parts: dict[str, _Kept]
    items: dict[str, dict[str, _Kept]]
    whole: dict[str, list[Any]]

    def names(self) -> set[str]:
        """Return the names of fields, and of the lists with objects of unknown kinds."""
        below = [*self.parts.values(), *(each for items in self.items.values() for each in items.values())]
        return {*self.fields, *self.whole}.union(*(each.names() for each in below))


class ForeignFields:
    """Keeps fields for the controllers that know them, in bounds; nothing is made of them here.

    Parameters
    ----------
    known
        What this version knows of values, by the subject of their keys; others are let be.
    bound_bytes
        `BYTES_BOUND`, unless it is a test.
    """

    def __init__(self, known: Mapping[str, KnownFields], bound_bytes: int = BYTES_BOUND) -> None:
        self._known = known
        self._bound_bytes = bound_bytes
        self._kept: dict[str, tuple[_Kept, int]] = {}
        self._size_bytes = 0
        self._lost: set[str] = set()

    def read(self, entry: LogEntry, value: Mapping[str, Any] | None) -> None:
        """Take in the last value of a key, as it was read; None where there is none any more."""
        self._forget(entry.key)
        known = self._known.get(entry.subject)
        kept = None if known is None or value is None else _kept_of(value, known, PARTS_DEPTH)
        if kept is None:
            return
        if _is_deeper(value, DEPTH_BOUND):
            self._lost.add(entry.key)
            return
        size_bytes = len(entry.key) + len(_text_of(kept))
        if self._size_bytes + size_bytes > self._bound_bytes:
            self._lost.add(entry.key)
            return
        self._kept[entry.key] = kept, size_bytes
        self._size_bytes += size_bytes

    def onto(self, entries: Iterable[LogEntry]) -> list[LogEntry]:
        """Return entries that are to be written with what is kept of their keys; of keys that end it is no more."""
        return [self._onto(entry) for entry in entries] if self._kept or self._lost else list(entries)

    def told(self) -> list[Notice]:
        """Return what operators are told when all is known: nothing where nothing is kept."""
        count = len(self._kept) + len(self._lost)
        if not count:
            return []
        names = {f"{key.partition('/')[0]}: {name}" for key, (kept, _) in self._kept.items() for name in kept.names()}
        named = ", ".join(sorted(names)[:NAMED_AT_MOST]) + (", ..." if len(names) > NAMED_AT_MOST else "")
        text = (
            f"{count} entries of the log have fields that this version does not know ({named or '...'}): they stay "
            "as they are for controllers that do, and do nothing while this one leads."
        )
        if self._lost:
            text += (
                f" Those of {len(self._lost)} entries are lost where this controller writes them, for more than "
                f"{self._bound_bytes} bytes, or than {DEPTH_BOUND} levels, are not kept."
            )
        return [Notice("journal-fields-unknown", text, (("records", count), ("lost", len(self._lost))))]

    def _forget(self, key: str) -> None:
        _, size_bytes = self._kept.pop(key, (None, 0))
        self._size_bytes -= size_bytes
        self._lost.discard(key)

    def _onto(self, entry: LogEntry) -> LogEntry:
        if entry.text is None:
            self._forget(entry.key)
        elif entry.key in self._kept:
            kept, _ = self._kept[entry.key]
            return LogEntry.of_record(entry.kind, entry.key, _merged(entry.value or {}, kept))
        return entry


def _is_deeper(value: Any, levels: int) -> bool:
    """Tell whether an object is nested deeper than so many levels."""
    level = [value]
    for _ in range(levels):
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _kept_of(value: Mapping[str, Any], known: KnownFields, depth: int) -> _Kept | None:
    """Return what this version does not know of an object and its parts; None where that is nothing."""
    names = known.names
    fields = {} if value.keys() <= names else {name: value[name] for name in value if name not in names}
    parts: dict[str, _Kept] = {}
    items: dict[str, dict[str, _Kept]] = {}
    whole: dict[str, list[Any]] = {}
    for name in _PARTS if depth else ():
        part = value.get(name) if name in names else None
        if isinstance(part, dict):
            if (kept := _kept_of(part, known, depth - 1)) is not None:
                parts[name] = kept
        elif isinstance(part, list):
            for item in part:
                if not isinstance(item, dict):
                    continue
                if "record" in item and item["record"] not in known.kinds:
                    whole.setdefault(name, []).append(item)
                elif (kept := _kept_of(item, known, depth - 1)) is not None:
                    items.setdefault(name, {})[_identity(item)] = kept
    found = _Kept(fields, parts, items, whole)
    return found if any(found) else None


def _merged(value: Mapping[str, Any], kept: _Kept) -> dict[str, Any]:
    """Return an object with what is kept of it; of parts that are no more nothing is put back."""
    merged = {**kept.fields, **value}
    for name, part in kept.parts.items():
        if isinstance(merged.get(name), dict):
            merged[name] = _merged(merged[name], part)
    for name, items in kept.items.items():
        listed = merged.get(name, ())
        merged[name] = [
            _merged(item, items[identity]) if (identity := _identity(item)) in items else item for item in listed
        ]
    for name, whole in kept.whole.items():
        merged[name] = [*merged.get(name, ()), *whole]
    return merged


def _identity(item: Mapping[str, Any]) -> str:
    return _text_of([item.get(name) for name in _IDENTITY])
