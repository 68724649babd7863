"""Requests for ports as plain values (request.json): read, checked, and answered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from controller.allocation.candidates import Candidates, Mode, PortId
from controller.allocation.selection import Affinity, Carried, Selection, Step, Wish

MOST_LISTED = 1000
"""Candidates listed of one level at one pick; `counts` tells all."""

KEYS = frozenset({"levels", "ports", "count", "allow_fewer", "previously_allocated", "used", "affinity", "mode"})
PORT_KEYS = frozenset({"id", "usage", "volumes", "connected", "components"})


class RequestError(ValueError):
    """A request that cannot be read; the text begins with the field at fault."""


class PortRequest(NamedTuple):
    """A request that was read."""

    candidates: Candidates
    wish: Wish


def read_request(document: Any) -> PortRequest:
    """Return the request of a decoded JSON document; RequestError names the field at fault."""
    found = mapping(document, "request", KEYS)
    levels = read_levels(found.get("levels"))
    candidates = read_ports(found.get("ports"), levels, "ports")
    previous = identifiers(found.get("previously_allocated") or [], "previously_allocated")
    for index, name in enumerate(previous):
        if name not in candidates.numbers:
            raise RequestError(f"previously_allocated[{index}]: {name!r} is not among the ports")
    wish = Wish(
        count=whole(found.get("count"), "count", 1),
        allow_fewer=boolean(found.get("allow_fewer", False), "allow_fewer"),
        previously_allocated=previous,
        carried=read_used(found.get("used") or {}, levels),
        affinity=_affinity(found.get("affinity"), levels),
        mode=read_mode(found.get("mode", Mode.DEFAULT.value)),
    )
    return PortRequest(candidates, wish)


def read_levels(value: Any) -> list[str]:
    """Return the names of the levels, the highest priority first; RequestError where one is there twice."""
    levels = names(value, "levels")
    for index, level in enumerate(levels):
        if level in levels[:index]:
            raise RequestError(f"levels[{index}]: {level!r} is there twice")
    return levels


def read_ports(listed: Any, levels: Sequence[str], path: str) -> Candidates:
    """Return the ports of a list of objects; RequestError names the field at fault.

    Components at levels that are not asked for are left out of account.
    """
    if not isinstance(listed, list):
        raise RequestError(f"{path}: expected a list of ports")
    n = len(listed)
    ids: list[PortId] = []
    seen: set[PortId] = set()
    usage_pct, volumes, connected = np.full(n, np.nan), np.zeros(n), np.ones(n, np.bool_)
    entities: list[list[str | None]] = [[None] * n for _ in levels]
    numbers = {level: number for number, level in enumerate(levels)}
    for index, item in enumerate(listed):
        where = f"{path}[{index}]"
        port = mapping(item, where, PORT_KEYS)
        name = identifier(port.get("id"), f"{where}.id")
        if name in seen:
            raise RequestError(f"{where}.id: {name!r} is there twice")
        seen.add(name)
        ids.append(name)
        if "usage" not in port:
            raise RequestError(f"{where}.usage: missing (null where the port has no valid metric)")
        if port["usage"] is not None:
            usage_pct[index] = number(port["usage"], f"{where}.usage")
        if port.get("volumes") is not None:
            volumes[index] = number(port["volumes"], f"{where}.volumes")
        if "connected" in port:
            connected[index] = boolean(port["connected"], f"{where}.connected")
        for level, entity in mapping(port.get("components") or {}, f"{where}.components", None).items():
            place = numbers.get(level)
            if place is not None and entity is not None:
                entities[place][index] = text(entity, f"{where}.components.{level}")
    return Candidates(ids, usage_pct, volumes, connected, dict(zip(levels, entities, strict=True)))


def answer(candidates: Candidates, selection: Selection) -> dict[str, Any]:
    """Return the answer to a request: ports, steps with the candidates after each level, entities used."""
    return {
        "ports": list(selection.ports),
        "steps": [_step(candidates, step) for step in selection.steps],
        "used": {level: list(entities) for level, entities in selection.carried.used.items()},
    }


def _step(candidates: Candidates, step: Step) -> dict[str, Any]:
    ids = candidates.ids
    return {
        "chosen": step.chosen,
        "candidates": {
            each.level: [ids[port] for port in each.ports[:MOST_LISTED].tolist()] for each in step.filters
        },
        "counts": {each.level: len(each.ports) for each in step.filters},
        "levels": {each.level: each.reason for each in step.filters},
        "tied": [ids[port] for port in step.tied[:MOST_LISTED].tolist()] if len(step.tied) > 1 else [],
        "reason": step.reason,
    }


class Passed(NamedTuple):
    """Why a port was not taken at one pick: the level that removed it, or None where another was less used."""

    chosen: PortId
    level: str | None
    reason: str


def explain(candidates: Candidates, selection: Selection, wish: Wish, name: PortId) -> tuple[str, list[Passed]]:
    """Return what became of a port, and why it was not taken at each pick before that; KeyError where unknown."""
    port = candidates.numbers[name]
    if name in wish.previously_allocated:
        return "allocated before this request", []
    if not candidates.connected[port]:
        return "not connected: never a candidate", []
    passed: list[Passed] = []
    for number_, step in enumerate(selection.steps, 1):
        if step.chosen == name:
            return f"taken at pick {number_}: {step.reason}", passed
        passed.append(_passed(candidates, step, port, wish.mode))
    if not passed:
        return "nothing was left to pick", passed
    return f"not taken at any of {len(passed)} picks", passed


def _passed(candidates: Candidates, step: Step, port: int, mode: Mode) -> Passed:
    for each in step.filters:
        if np.isin(port, each.removed):
            levels = {level.name: level for level in candidates.levels}
            level = levels.get(each.level) or levels[each.level.removesuffix(" affinity")]
            entity = level.entity(port)
            reason = (
                f"{each.level}: {entity} left out, {each.reason}"
                if entity
                else f"{each.level}: it has no entity there"
            )
            return Passed(step.chosen, each.level, reason)
    chosen = candidates.numbers[step.chosen]
    lacking = candidates.by_volumes(mode)
    if np.isin(port, step.tied):
        reason = f"as little used as {step.chosen}, which comes first in the input"
    elif lacking[port] and not lacking[chosen]:
        reason = f"no valid metric; {step.chosen} has one"
    elif lacking[port]:
        reason = f"{candidates.volumes[port]:g} volumes; {step.chosen} has {candidates.volumes[chosen]:g}"
    else:
        reason = f"usage {candidates.usage_pct[port]:g} %; {step.chosen} has {candidates.usage_pct[chosen]:g} %"
    return Passed(step.chosen, None, reason)


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


def read_mode(value: Any) -> Mode:
    """Return the mode of a request."""
    try:
        return Mode(value)
    except ValueError:
        raise RequestError(f"mode: expected {' or '.join(Mode)}, found {value!r}") from None


def read_used(value: Any, levels: Sequence[str]) -> Carried:
    """Return the entities used already; RequestError names the field at fault."""
    used = mapping(value, "used", None)
    for level in used:
        if level not in levels:
            raise RequestError(f"used.{level}: not one of levels")
    return Carried({level: names(entities, f"used.{level}") for level, entities in used.items()})


def _affinity(value: Any, levels: Sequence[str]) -> Affinity | None:
    if value is None:
        return None
    found = mapping(value, "affinity", frozenset({"level", "budget"}))
    level = text(found.get("level"), "affinity.level")
    if level not in levels:
        raise RequestError(f"affinity.level: {level!r} is not one of levels")
    budget = mapping(found.get("budget"), "affinity.budget", None)
    return Affinity(level, {name: whole(n, f"affinity.budget.{name}", 0) for name, n in budget.items()})
