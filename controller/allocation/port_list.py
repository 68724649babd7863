"""Ports as plain values: which are candidates, with their usage and failure domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from controller.allocation.candidates import Candidates, PortId
from controller.allocation.fields import RequestError, boolean, identifier, mapping, names, number, text
from controller.allocation.pools import USABLE_STATUS

PLACE_KEYS = frozenset({"network", "virtual_arrays", "status", "registered", "front_end", "disqualified"})
"""What may make a port no candidate."""

PORT_KEYS = PLACE_KEYS | {"id", "usage", "volumes", "connected", "components"}


class Scope(NamedTuple):
    """Which ports are wanted; None for any. Ports to `keep` stay in the list, though not to be allocated anew."""

    network: str | None = None
    virtual_array: str | None = None
    keep: frozenset[PortId] = frozenset()


ANYWHERE = Scope()


def read_levels(value: Any) -> list[str]:
    """Return the names of the levels, the highest priority first; RequestError where one is there twice."""
    levels = names(value, "levels")
    for index, level in enumerate(levels):
        if level in levels[:index]:
            raise RequestError(f"levels[{index}]: {level!r} is there twice")
    return levels


def read_ports(listed: Any, levels: Sequence[str], path: str, scope: Scope = ANYWHERE) -> Candidates:
    """Return the candidates in a list of objects.

    Parameters
    ----------
    listed
        Objects with ``id`` and ``usage`` (null without a valid metric) and, where they apply, the other `PORT_KEYS`.
    levels
        Failure domains; components at other levels are left out of account.
    path
        The list's name, for messages.
    scope
        Where candidates must be.

    Returns
    -------
    Candidates
        Without ports of another network or virtual array, of bad status, not registered, not front-end, or over a
        ceiling; these are in `excluded`, each with its reason.

    Raises
    ------
    RequestError
        Names the field at fault.
    """
    if not isinstance(listed, list):
        raise RequestError(f"{path}: expected a list of ports")
    n = len(listed)
    ids: list[PortId] = []
    seen: set[PortId] = set()
    excluded: dict[PortId, str] = {}
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
        if "usage" not in port:
            raise RequestError(f"{where}.usage: missing (null where the port has no valid metric)")
        place = len(ids)
        if port["usage"] is not None:
            usage_pct[place] = number(port["usage"], f"{where}.usage")
        else:
            usage_pct[place] = np.nan
        volumes[place] = 0.0 if port.get("volumes") is None else number(port["volumes"], f"{where}.volumes")
        connected[place] = boolean(port.get("connected", True), f"{where}.connected")
        for level, entity in mapping(port.get("components") or {}, f"{where}.components", None).items():
            if entity is not None and level in numbers:
                entities[numbers[level]][place] = text(entity, f"{where}.components.{level}")
        reason = _exclusion(port, where, scope) if not PLACE_KEYS.isdisjoint(port) else ""
        if reason:
            excluded[name] = reason
            connected[place] = False
            if name not in scope.keep:
                for column in entities:
                    column[place] = None
                continue
        ids.append(name)
    n = len(ids)
    columns = {level: column[:n] for level, column in zip(levels, entities, strict=True)}
    return Candidates(ids, usage_pct[:n], volumes[:n], connected[:n], columns, excluded)


def _exclusion(port: Mapping[str, Any], where: str, scope: Scope) -> str:
    """Return why a port is no candidate, '' where it is one."""
    network = port.get("network")
    if scope.network is not None and network is not None and text(network, f"{where}.network") != scope.network:
        return f"in network {network}"
    if port.get("virtual_arrays") is not None:
        arrays = names(port["virtual_arrays"], f"{where}.virtual_arrays")
        if scope.virtual_array is not None and scope.virtual_array not in arrays:
            return f"not in virtual array {scope.virtual_array}"
    status = text(port.get("status", "OK"), f"{where}.status")
    if status not in USABLE_STATUS:
        return f"status {status}"
    if not boolean(port.get("registered", True), f"{where}.registered"):
        return "not registered"
    if not boolean(port.get("front_end", True), f"{where}.front_end"):
        return "not a front-end port"
    if boolean(port.get("disqualified", False), f"{where}.disqualified"):
        return "over a ceiling"
    return ""
