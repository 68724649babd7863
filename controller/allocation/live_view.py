"""What people ask of the live allocator: ports, why these and not others, and how loaded ports are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from controller.allocation.documents import answer_paths
from controller.allocation.events import PortKey
from controller.allocation.fields import RequestError, whole
from controller.allocation.live import AllocatorCore, port_name
from controller.allocation.live_pools import answer_pools
from controller.allocation.live_request import LiveReader, Size, read_key, select_keys
from controller.allocation.plan import TooFewPathsError, plan
from controller.allocation.request import MOST_LISTED, Passed, answer, explain
from controller.allocation.reservation import Proposal
from controller.allocation.selection import TooFewPortsError, Wish

Document = dict[str, Any]
Arguments = Mapping[str, Any]

MOST_PORTS = 100000

MOST_KEPT = 8_000_000
"""Candidates of all picks, after each level, of an allocation that is kept to be explained; 8 bytes each."""


class _Given(NamedTuple):
    """What was chosen of one network."""

    proposal: Proposal
    wish: Wish


class _Answered(NamedTuple):
    """An answer, and what was chosen of each network."""

    document: Document
    given: list[_Given]
    size: Size


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
        self._last: list[_Given] = []

    def allocate(self, asked: Arguments) -> Document:
        """Return ports for a request and reserve them until they are measured; an error where there are too few."""
        now_ms = self._now_ms()
        self._core.expire_proposals(now_ms)
        numbers: dict[str, int | str]
        try:
            document, given, size = self._answered(asked, now_ms)
        except TooFewPortsError as error:
            numbers = {"requested": error.requested, "allocated": error.allocated, "available": error.available}
            return {"error": numbers, "measured": self._measured(now_ms)}
        except TooFewPathsError as error:
            numbers = {"requested": error.wanted, "allocated": error.found, "available": error.found}
            return {"error": {"host": error.host, **numbers}, "measured": self._measured(now_ms)}
        if size.reserve:
            for each in given:
                self._core.reserve(each.proposal.selection, size.size_pct, now_ms)
            steps = [step for each in given for step in each.proposal.selection.steps]
            self._last = given if sum(len(left.ports) for step in steps for left in step.filters) <= MOST_KEPT else []
        unmeasured = [
            str(candidates.ids[index])
            for (candidates, _), _ in given
            for index in np.flatnonzero(np.isnan(candidates.usage_pct)).tolist()
        ]
        return {
            **document,
            "reserved": size.reserve,
            "metrics": {str(name): self._metrics(str(name), now_ms) for name in document["ports"]},
            "unmeasured": [
                {"id": name, "reason": self._core.measurement(name, now_ms)}
                for name in list(dict.fromkeys(unmeasured))[:MOST_LISTED]
            ],
            "measured": self._measured(now_ms),
        }

    def explain(self, asked: Arguments) -> Document:
        """Return what became of a port in the last allocation, or what would in the request that is given."""
        now_ms = self._now_ms()
        request = {key: value for key, value in asked.items() if key != "port"}
        name = port_name(read_key(self._core, asked.get("port"), "port"))
        given = self._answered(request, now_ms, fewer=True).given if request else self._last
        if not given:
            raise RequestError("count: missing; no allocation is kept that could be explained")
        verdict, passed, note = "not among the ports that were asked for", list[Passed](), ""
        for (candidates, selection), wish in given:
            if name in candidates.numbers or name in candidates.excluded:
                verdict, passed = explain(candidates, selection, wish, name)
                short = f"{selection.requested} ports requested, {len(selection.ports)} allocated"
                note = "" if selection.enough else short
                if name in selection.ports:
                    break
        return {
            "port": name,
            "chosen": any(name in each.proposal.selection.ports for each in given),
            "reason": verdict,
            "steps": [{"pick": index, **each._asdict()} for index, each in enumerate(passed, 1)],
            "note": note,
            **self._metrics(name, now_ms),
            "usage_steps": list(self._core.book.assess(name, now_ms).steps),
        }

    def _answered(self, asked: Arguments, now_ms: int, *, fewer: bool = False) -> _Answered:
        """Return the answer to a request; with `fewer` it is answered as well as can be."""
        reservations = self._core.reservations
        if "networks" not in asked:
            candidates, wish, size = self._reader.read(asked, now_ms)
            proposal = reservations.propose(candidates, wish.fewer() if fewer else wish)
            return _Answered(answer(*proposal), [_Given(proposal, wish)], size)
        request, size = self._reader.read_paths(asked, now_ms)
        request = request._replace(
            networks={
                name: network._replace(candidates=reservations.counted(network.candidates))
                for name, network in request.networks.items()
            },
            rules=replace(request.rules, min_paths=0) if fewer else request.rules,
            terms=replace(request.terms, lately=reservations.lately),
        )
        found = plan(*request)
        given = [
            _Given(
                Proposal(network.candidates, selection),
                Wish(selection.requested, previously_allocated=network.previously_allocated, mode=request.terms.mode),
            )
            for network, selection in zip(request.networks.values(), found.networks.values(), strict=True)
        ]
        return _Answered(answer_paths(request, found), given, size)

    def pool(self, asked: Arguments) -> Document:
        """Return the part of the fabric that has room for a request and is loaded least; nothing is reserved."""
        now_ms = self._now_ms()
        self._core.expire_proposals(now_ms)
        return {**answer_pools(self._core, self._reader, asked, now_ms), "measured": self._measured(now_ms)}

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
            "told_pct": core.link_metrics.told_pct(key),
        }

    def _metrics(self, name: str, now_ms: int) -> Document:
        """Return the six reported fields of a port, its usage, what is reserved, and how good that is."""
        book = self._core.book
        assessed = book.assess(name, now_ms)
        return {
            **book.report(name, now_ms),
            "usage": assessed.usage,
            "reserved_pct": float(self._core.reservations.reserved_pct([name])[0]),
            "proposals": self._core.proposals.count(name),
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


ALLOCATE = "allocate"

ACTIONS: dict[str, Callable[[AllocatorConsole, Arguments], Document]] = {
    ALLOCATE: AllocatorConsole.allocate,
    "allocate-explain": AllocatorConsole.explain,
    "allocate-pool": AllocatorConsole.pool,
    "allocate-watch": AllocatorConsole.watch,
}
"""What can be asked, by name."""
