"""Requests for ports as plain values (request.json): read, checked, and answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from controller.allocation.candidates import Candidates, Mode, PortId
from controller.allocation.fields import RequestError, boolean, identifiers, mapping, names, text, whole
from controller.allocation.port_list import Scope, read_levels, read_ports
from controller.allocation.selection import Affinity, Carried, PortPick, PortSelection, Wish

MOST_LISTED = 1000
"""Candidates listed of one level at one pick; `counts` tells all."""

KEYS = frozenset(
    {"levels", "ports", "count", "allow_fewer", "previously_allocated", "used", "affinity", "mode"}
    | {"network", "virtual_array"}
)


class PortRequest(NamedTuple):
    """A request that was read."""

    candidates: Candidates
    wish: Wish


def read_request(document: Any) -> PortRequest:
    """Return the request of a decoded JSON document; RequestError names the field at fault."""
    found = mapping(document, "request", KEYS)
    levels = read_levels(found.get("levels"))
    previous = identifiers(found.get("previously_allocated") or [], "previously_allocated")
    network, virtual_array = (
        None if found.get(key) is None else text(found[key], key) for key in ("network", "virtual_array")
    )
    scope = Scope(network, virtual_array, frozenset(previous))
    candidates = read_ports(found.get("ports"), levels, "ports", scope)
    known_ports(previous, candidates, "previously_allocated")
    wish = Wish(
        count=whole(found.get("count"), "count", 1),
        allow_fewer=boolean(found.get("allow_fewer", False), "allow_fewer"),
        previously_allocated=previous,
        carried=read_used(found.get("used") or {}, levels),
        affinity=read_affinity(found.get("affinity"), levels),
        mode=read_mode(found.get("mode", Mode.DEFAULT.value)),
    )
    return PortRequest(candidates, wish)


def answer(candidates: Candidates, selection: PortSelection) -> dict[str, Any]:
    """Return the answer to a request: ports, steps with the candidates after each level, entities used."""
    return {
        "ports": list(selection.ports),
        "steps": [_step(candidates, step) for step in selection.steps],
        "used": {level: list(entities) for level, entities in selection.carried.used.items()},
        "excluded": [{"id": name, "reason": reason} for name, reason in candidates.excluded.items()],
    }


def _step(candidates: Candidates, step: PortPick) -> dict[str, Any]:
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


def explain(candidates: Candidates, selection: PortSelection, wish: Wish, name: PortId) -> tuple[str, list[Passed]]:
    """Return what became of a port, and why it was not taken at each pick before that; KeyError where unknown."""
    if name in wish.previously_allocated:
        return "allocated before this request", []
    if name in candidates.excluded:
        return f"no candidate: {candidates.excluded[name]}", []
    port = candidates.numbers[name]
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


def _passed(candidates: Candidates, step: PortPick, port: int, mode: Mode) -> Passed:
    for each in step.filters:
        if not np.isin(port, each.ports):
            levels = {level.name: level for level in candidates.levels}
            level = levels.get(each.level) or levels[each.level.removesuffix(" affinity")]
            entity = level.entity(port)
            reason = (
                f"{each.level} {entity} left out: {each.reason}"
                if entity
                else f"{each.level}: it has no entity there"
            )
            return Passed(step.chosen, each.level, reason)
    chosen = candidates.numbers[step.chosen]
    lacking = candidates.by_volumes(mode)
    if np.isin(port, step.tied):
        first = chosen == int(step.tied[0])
        why = "comes first in the input" if first else "is elsewhere than what other requests took lately"
        reason = f"as little used as {step.chosen}, which {why}"
    elif lacking[port] and not lacking[chosen]:
        reason = f"no valid metric; {step.chosen} has one"
    elif lacking[port]:
        reason = f"{candidates.volumes[port]:g} volumes; {step.chosen} has {candidates.volumes[chosen]:g}"
    else:
        reason = f"usage {candidates.usage_pct[port]:g} %; {step.chosen} has {candidates.usage_pct[chosen]:g} %"
    return Passed(step.chosen, None, reason)


def known_ports(names_: Sequence[PortId], candidates: Candidates, path: str) -> None:
    """Raise RequestError for a port that is not among the candidates."""
    for index, name in enumerate(names_):
        if name not in candidates.numbers:
            raise RequestError(f"{path}[{index}]: {name!r} is not among the ports")


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


def read_affinity(value: Any, levels: Sequence[str]) -> Affinity | None:
    """Return the affinity of a request, None where it has none."""
    if value is None:
        return None
    found = mapping(value, "affinity", frozenset({"level", "budget"}))
    level = text(found.get("level"), "affinity.level")
    if level not in levels:
        raise RequestError(f"affinity.level: {level!r} is not one of levels")
    budget = mapping(found.get("budget"), "affinity.budget", None)
    return Affinity(level, {name: whole(n, f"affinity.budget.{name}", 0) for name, n in budget.items()})
