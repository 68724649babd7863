"""What values of records are to a script: integers, strings, octets, records, lists of these; all else is hidden."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, NewType, Union, get_args, get_origin

from controller.probes.declared import field_types, property_types

HIDDEN = frozenset({"secret", "token", "password", "key_pem"})
"""Fields that no script sees, whatever record has them."""


class ValueKind(NamedTuple):
    """A kind of values.

    Attributes
    ----------
    name
        ``int``, ``string``, ``octets``, ``record`` or ``list``.
    of
        The types that a record may be of; the kind of a list's items.
    """

    name: str
    of: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.name == "record":
            return " or ".join(kind.__name__ for kind in self.of)
        return f"list of {self.of[0]}" if self.name == "list" else self.name


INT, STRING, OCTETS = ValueKind("int"), ValueKind("string"), ValueKind("octets")


def is_record(kind: Any) -> bool:
    """Tell whether a type is one of records: a named tuple, a dataclass, or what these have in common."""
    if not isinstance(kind, type):
        return False
    return is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields")) or _is_protocol(kind)


def _is_protocol(kind: type) -> bool:
    return getattr(kind, "_is_protocol", False) and bool(property_types(kind))


def _is_seen(name: str) -> bool:
    return name not in HIDDEN and not name.startswith("_")


@cache
def fields_of(kind: type) -> dict[str, ValueKind]:
    """Return what a script sees of a type of records, by the names of its fields."""
    if _is_protocol(kind):
        hints = property_types(kind)
        return _seen(hints, hints)
    hints = field_types(kind)
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else list(kind._fields)  # type: ignore[attr-defined]
    return _seen(names, hints)


def _seen(names: Iterable[str], hints: Mapping[str, Any]) -> dict[str, ValueKind]:
    found = {name: kind_of(hints[name]) for name in names if _is_seen(name) and name in hints}
    return {name: each for name, each in found.items() if each is not None}


def common_fields(kinds: Sequence[type]) -> dict[str, ValueKind]:
    """Return the fields that records of several types all have, with the same kind."""
    first, *others = (fields_of(kind) for kind in kinds)
    return {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}


def kind_of(annotation: Any) -> ValueKind | None:
    """Return the kind of an annotation's values; None where a script does not see them."""
    if isinstance(annotation, NewType):
        return kind_of(annotation.__supertype__)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _kind_of_union([each for each in arguments if each is not type(None)])
    if origin is not None:
        return _kind_of_items(origin, arguments)
    if not isinstance(annotation, type):
        return None
    if is_record(annotation):
        return ValueKind("record", (annotation,))
    if issubclass(annotation, str | Enum) and not issubclass(annotation, int):
        return STRING
    if issubclass(annotation, int | float):
        return INT
    return OCTETS if issubclass(annotation, bytes) else None


def _kind_of_union(members: list[Any]) -> ValueKind | None:
    kinds = {kind_of(each) for each in members}
    if None in kinds or not kinds:
        return None
    if all(kind.name == "record" for kind in kinds if kind is not None):
        found = dict.fromkeys(each for member in members for each in kind_of(member).of)  # type: ignore[union-attr]
        return ValueKind("record", tuple(found))
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_items(origin: Any, arguments: tuple[Any, ...]) -> ValueKind | None:
    if not (isinstance(origin, type) and issubclass(origin, Sequence | frozenset | set)) or not arguments:
        return None
    kinds = {kind_of(each) for each in arguments if each is not Ellipsis}
    item = kinds.pop() if len(kinds) == 1 else None
    return None if item is None else ValueKind("list", (item,))
