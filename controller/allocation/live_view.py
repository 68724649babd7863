"""What people ask of the live allocator: ports, why these and not others, and how loaded ports are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from controller.allocation.events import PortKey
from controller.allocation.fields import RequestError, whole
from controller.allocation.live import AllocatorCore, port_name
from controller.allocation.live_request import KEYS, LiveReader, read_key, select_keys
from controller.allocation.request import MOST_LISTED, answer, explain
from controller.allocation.reservation import Proposal
from controller.allocation.selection import TooFewPortsError, Wish

Document = dict[str, Any]
Arguments = Mapping[str, Any]

MOST_PORTS = 100000

MOST_KEPT = 8_000_000
"""Candidates of all picks, after each level, of an allocation that is kept to be explained; 8 bytes each."""


class _Given(NamedTuple):
    """An answer that was given."""

    proposal: Proposal
    wish: Wish


class AllocatorConsole:
    """Answers questions about an allocator's core.

    Parameters
    ----------
    core
        The core.
    now_ms
        Returns the time, milliseconds since 1970.
    state
        Returns a document about what is around the core: where its state is kept.
    """

    def __init__(self, core: AllocatorCore, now_ms: Callable[[], int], state: Callable[[], Document]) -> None:
        self._core = core
        self._reader = LiveReader(core)
        self._now_ms = now_ms
        self._state = state
        self._last: _Given | None = None

    def allocate(self, asked: Arguments) -> Document:
        """Return ports for a request and reserve them until they are measured; an error where there are too few."""
        now_ms = self._now_ms()
        request = self._reader.read(asked, now_ms)
        reservations = self._core.reservations
        try:
            proposal = reservations.propose(request.candidates, request.wish)
        except TooFewPortsError as error:
            numbers = {"requested": error.requested, "allocated": error.allocated, "available": error.available}
            return {"error": numbers, "measured": self._measured(now_ms)}
        if request.reserve:
            reservations.reserve(proposal.selection, request.size_pct)
            kept = sum(len(each.ports) for step in proposal.selection.steps for each in step.filters)
            self._last = _Given(proposal, request.wish) if kept <= MOST_KEPT else None
        candidates, selection = proposal
        unmeasured = [candidates.ids[index] for index in np.flatnonzero(np.isnan(candidates.usage_pct)).tolist()]
        return {
            **answer(candidates, selection),
            "reserved": request.reserve,
            "metrics": {str(name): self._metrics(str(name), now_ms) for name in selection.ports},
            "unmeasured": [
                {"id": name, "reason": self._core.measurement(str(name), now_ms)} for name in unmeasured[:MOST_LISTED]
            ],
            "measured": self._measured(now_ms),
        }

    def explain(self, asked: Arguments) -> Document:
        """Return what became of a port in the last allocation, or what would in the request that is given."""
        now_ms = self._now_ms()
        request = {key: value for key, value in asked.items() if key != "port"}
        name = port_name(read_key(self._core, asked.get("port"), "port"))
        given = self._last
        if request.keys() & KEYS:
            live = self._reader.read(request, now_ms)
            given = _Given(self._core.reservations.propose(live.candidates, live.wish.fewer()), live.wish)
        elif request:
            raise RequestError(f"{next(iter(request))}: unknown field")
        elif given is None:
            raise RequestError("count: missing; no allocation is kept that could be explained")
        (candidates, selection), wish = given
        if name in candidates.numbers or name in candidates.excluded:
            verdict, passed = explain(candidates, selection, wish, name)
        else:
            verdict, passed = "not among the ports that were asked for", []
        note = "" if selection.enough else f"{selection.requested} ports requested, {len(selection.ports)} allocated"
        return {
            "port": name,
            "chosen": name in selection.ports,
            "reason": verdict,
            "steps": [{"pick": index, **each._asdict()} for index, each in enumerate(passed, 1)],
            "note": note,
            **self._metrics(name, now_ms),
            "usage_steps": list(self._core.book.assess(name, now_ms).steps),
        }

    def watch(self, asked: Arguments) -> Document:
        """Return the ports asked for, the most used first."""
        now_ms = self._now_ms()
        count = whole(asked.get("count", 20), "count", 1)
        if count > MOST_PORTS:
            raise RequestError(f"count: {count} is above {MOST_PORTS}")
        selector = {key: value for key, value in asked.items() if key != "count"}
        keys = select_keys(self._core, selector, "ports")
        rows = np.array([self._core.book.row(port_name(key)) for key in keys], np.intp)
        usage = self._core.book.metrics(now_ms, rows).usage_pct
        order = np.argsort(np.where(np.isnan(usage), -1.0, usage) * -1.0, kind="stable")[:count].tolist()
        return {
            "time": now_ms / 1000,
            "measured": self._measured(now_ms),
            "ports": [self._port(keys[index], now_ms) for index in order],
            **self._state(),
        }

    def _port(self, key: PortKey, now_ms: int) -> Document:
        core, port = self._core, self._core.port(key)
        return {
            "id": port_name(key),
            "name": "" if port is None else port.name,
            "type": core.domains.kind(key[0]).value,
            "role": core.fabric.role(*key).value,
            "up": port is not None and port.up,
            "components": core.domains.components(*key, "" if port is None else port.name),
            **self._metrics(port_name(key), now_ms),
        }

    def _metrics(self, name: str, now_ms: int) -> Document:
        """Return the six reported fields of a port, its usage, what is reserved, and how good that is."""
        book = self._core.book
        assessed = book.assess(name, now_ms)
        return {
            **book.report(name, now_ms),
            "usage": assessed.usage,
            "reserved_pct": float(self._core.reservations.reserved_pct([name])[0]),
            "reasons": list(assessed.reasons),
            "measurement": self._core.measurement(name, now_ms),
        }

    def _measured(self, now_ms: int) -> Document:
        """Return of how many ports there is a valid metric, and how old the newest sample of this run is."""
        core = self._core
        valid = int((~np.isnan(core.book.metrics(now_ms).metric_pct)).sum())
        last_ms = core.last_rated_ms
        return {
            "ports": len(core.book),
            "valid": valid,
            "last_sample_s_ago": None if last_ms is None else (now_ms - last_ms) / 1000,
        }


ACTIONS: dict[str, Callable[[AllocatorConsole, Arguments], Document]] = {
    "allocate": AllocatorConsole.allocate,
    "allocate-explain": AllocatorConsole.explain,
    "allocate-watch": AllocatorConsole.watch,
}
"""What can be asked, by name."""
