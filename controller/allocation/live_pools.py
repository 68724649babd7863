"""Which part of the live fabric has room: its pods, planes or switches as the pools of port selection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from controller.allocation.fabric_domains import LEVELS
from controller.allocation.fields import RequestError, boolean, mapping, text, whole
from controller.allocation.live import AllocatorCore
from controller.allocation.live_request import LiveReader, read_size
from controller.allocation.pools import ArrayPort, Pool, array_metric, choose_pool, match_num_paths
from controller.allocation.request import MOST_LISTED

KEYS = frozenset({"by", "ports", "count", "size_pct", "allow_down"})
NETWORK = "fabric"


def answer_pools(core: AllocatorCore, reader: LiveReader, asked: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """Return the least loaded entity of a level that has room for a request, and all with what speaks for them.

    Parameters
    ----------
    core, reader
        The ports, and what reads which are meant.
    asked
        ``by``, one of `LEVELS` (``pod``); ``ports`` as in a request for ports; ``count`` paths (1), of ``size_pct``
        (1) each; ``allow_down`` (false).
    now_ms
        Milliseconds since 1970.

    Returns
    -------
    dict
        An entity fits where it has the ports for the paths (of two or more in two failure domains below it) and where
        what its usable ports do not carry, in percent of a port, is enough. Its metric is the mean usage of all its
        ports that are up, those over a ceiling included.

    Raises
    ------
    RequestError
        With the field at fault.
    """
    found = mapping(asked, "request", KEYS)
    by = text(found.get("by", "pod"), "by")
    if by not in LEVELS:
        raise RequestError(f"by: {by!r} is none of {', '.join(LEVELS)}")
    count = whole(found.get("count", 1), "count", 1)
    needed_pct = count * read_size(found).size_pct
    ports = _ports(core, reader, found.get("ports"), boolean(found.get("allow_down", False), "allow_down"), now_ms)
    members: dict[str, list[ArrayPort]] = {}
    for port in ports:
        if by in port.components:
            members.setdefault(port.components[by], []).append(port)
    below = LEVELS[LEVELS.index(by) + 1 :]
    metrics = {name: array_metric(of) for name, of in members.items()}
    matches = {name: match_num_paths(of, count, below) for name, of in members.items()}
    pools = [Pool(name, name, _free_pct(of)) for name, of in members.items()]
    chosen = choose_pool(pools, metrics, needed_pct, matches, unit="%")
    usable = [] if chosen.pool is None else [port.name for port in members[chosen.pool.name] if port.usable]
    return {
        "by": by,
        "pool": None if chosen.pool is None else chosen.pool.name,
        "ports": usable[:MOST_LISTED],
        "pools": [
            {
                "id": each.pool.name,
                "ports": len(members[each.pool.name]),
                "usable": matches[each.pool.name].usable,
                "free_pct": each.pool.free,
                "metric": each.array_metric,
                "fits": each.fits,
                "reason": each.reason,
            }
            for each in chosen.ranked
        ],
        "without": sum(by not in port.components for port in ports),
    }


def _ports(core: AllocatorCore, reader: LiveReader, asked: Any, allow_down: bool, now_ms: int) -> list[ArrayPort]:
    """Return the ports that are meant and can be used, with what is reserved of them counted."""
    drawn = reader.drawn(asked, allow_down)
    found = core.book.metrics(now_ms, drawn.rows)
    measured = drawn.candidates.measured(found.usage_pct, core.book.volumes(drawn.rows))
    usage_pct = core.reservations.counted(measured).usage_pct
    levels = drawn.candidates.levels
    return [
        ArrayPort(
            str(name),
            None if np.isnan(usage_pct[index]) else float(usage_pct[index]),
            network=NETWORK,
            disqualified=bool(found.disqualified[index]),
            components={level.name: own for level in levels if (own := level.entity(index)) is not None},
        )
        for index, name in enumerate(drawn.candidates.ids)
    ]


def _free_pct(ports: list[ArrayPort]) -> float:
    """Return what usable ports do not carry; one whose load is not known is as one that carries nothing."""
    return sum(max(0.0, 100.0 - (port.usage_pct or 0.0)) for port in ports if port.usable)
