"""Fields of decoded JSON documents: each reader returns a value, or says which field is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from controller.allocation.candidates import PortId

T = TypeVar("T", int, float)


class RequestError(ValueError):
    """A request that cannot be read; the text begins with the field at fault."""


def mapping(value: Any, path: str, known: frozenset[str] | None) -> Mapping[str, Any]:
    """Return an object whose keys are known (any where `known` is None)."""
    if not isinstance(value, dict):
        raise RequestError(f"{path}: expected an object")
    if known is not None:
        for key in value:
            if key not in known:
                raise RequestError(f"{path}.{key}: unknown field")
    return value


def identifier(value: Any, path: str) -> PortId:
    """Return the name of a port: a text or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise RequestError(f"{path}: expected a text or a whole number as name")
    return value


def identifiers(value: Any, path: str) -> list[PortId]:
    """Return a list of names of ports."""
    if not isinstance(value, list):
        raise RequestError(f"{path}: expected a list")
    return [identifier(item, f"{path}[{index}]") for index, item in enumerate(value)]


def text(value: Any, path: str) -> str:
    """Return a text or number as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise RequestError(f"{path}: expected a text")
    return value


def names(value: Any, path: str) -> list[str]:
    """Return a list of texts."""
    if not isinstance(value, list):
        raise RequestError(f"{path}: expected a list")
    return [text(item, f"{path}[{index}]") for index, item in enumerate(value)]


def number(value: Any, path: str) -> float:
    """Return a number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RequestError(f"{path}: expected a number, found {value!r}")
    if not value >= 0 or math.isinf(value):
        raise RequestError(f"{path}: {value!r} is not a number from 0 on")
    return float(value)


def whole(value: Any, path: str, lower: int) -> int:
    """Return a whole number from `lower` on."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise RequestError(f"{path}: expected a whole number, found {value!r}")
    if value < lower:
        raise RequestError(f"{path}: {value} is below {lower}")
    return value


def boolean(value: Any, path: str) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise RequestError(f"{path}: expected true or false, found {value!r}")
    return value


def within(value: T, path: str, lower: float, upper: float) -> T:
    """Return a number that is not outside its bounds."""
    if not lower <= value <= upper:
        raise RequestError(f"{path}: {value:g} is not from {lower:g} to {upper:g}")
    return value


def record(value: Any, path: str, known: frozenset[str], optional: frozenset[str] = frozenset()) -> Mapping[str, Any]:
    """Return an object that has all the fields it must have, and no others."""
    found = mapping(value, path, known)
    for name in sorted(known - optional):
        if name not in found:
            raise RequestError(f"{path}.{name}: missing")
    return found


def items(value: Any, path: str) -> list[Any]:
    """Return a list of anything."""
    if not isinstance(value, list):
        raise RequestError(f"{path}: expected a list")
    return value
