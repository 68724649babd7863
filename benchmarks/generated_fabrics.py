"""Fabrics, their traffic and their faults, made by a seed: what a monitor would tell of them, with the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live_events import WHOLE_SWITCH, MemberKey, PortsSampled
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp, TopologyEvent
from topology.generators import make
from topology.graph import Graph

Floats = NDArray[np.float64]

GRID_S = 5.0
"""Traffic is made in steps of so many seconds, evenly spread in each."""
PACKET_BYTES = 800
CAPACITY_BPS = 1e9
DAY_S = 86_400.0
START_S = 1_700_000_000.0
CHANGED = 1.3
"""Who carries so many times more, or less, while a fault lasts has taken part in its consequences."""

KINDS = ("loss", "errors", "drops", "load", "silent", "cpu")


class Fault(NamedTuple):
    """What goes wrong from `start_s` to `end_s` after the start.

    `members` are those of whom any may be named: both ends of the cable, the port, or the switch. `concerned` are
    those whose traffic the fault changes too.
    """

    kind: str
    start_s: float
    end_s: float
    members: frozenset[MemberKey]
    concerned: frozenset[MemberKey]


class Cable(NamedTuple):
    """One direction between two ports; an end at a host has no port that is sampled."""

    sender: MemberKey | None
    receiver: MemberKey | None


class Run(NamedTuple):
    """A fabric over a time: its events, its faults, and what is sampled of it."""

    name: str
    events: tuple[TopologyEvent, ...]
    members: int
    faults: tuple[Fault, ...]
    samples: Callable[[], Iterator[PortsSampled]]


def generated(
    seed: int,
    calm_s: float,
    fault_s: float,
    between_s: float,
    faults: int,
    poll_s: float,
    kinds: Sequence[str] = KINDS,
) -> Run:
    """Return a run: `calm_s` without a fault, then `faults` of `fault_s` each, with `between_s` after each of them.

    The seed decides on topology and size, who sends how much to whom by which paths, how that changes over the day
    and from minute to minute, what the faults are, of the `kinds` given, and how bad.
    """
    rng = np.random.default_rng(seed)
    name, graph = _drawn_fabric(rng)
    fabric = _Fabric(graph, rng)
    duration_s = calm_s + faults * (fault_s + between_s)
    steps = round(duration_s / GRID_S)
    rates = fabric.rates(rng, steps)
    share_lost = np.zeros((len(fabric.cables), steps))
    errors, drops = (np.full((len(fabric.ports), steps), level) for level in (1e-5, 2e-3))
    cpu = _wandering(rng, len(fabric.switches), steps, 0.1) * rng.uniform(15, 35, len(fabric.switches))[:, None]
    made = []
    for number in range(faults):
        start_s = calm_s + number * (fault_s + between_s)
        span = slice(round(start_s / GRID_S), round((start_s + fault_s) / GRID_S))
        kind = str(rng.choice(kinds))
        members, concerned = _fault(kind, rng, fabric, rates, share_lost, errors, drops, cpu, span)
        made.append(Fault(kind, start_s, start_s + fault_s, members, concerned))

    def samples() -> Iterator[PortsSampled]:
        return _samples(np.random.default_rng([seed, 1]), fabric, rates, share_lost, errors, drops, cpu, poll_s)

    return Run(name, tuple(fabric.events()), len(fabric.ports) + len(fabric.switches), tuple(made), samples)


def _drawn_fabric(rng: np.random.Generator) -> tuple[str, Graph]:
    kind = str(rng.choice(["leaf-spine", "fattree", "servers-fattree", "tree"]))
    parameters = {
        "leaf-spine": {
            "leaves": int(rng.integers(4, 13)),
            "spines": int(rng.integers(2, 5)),
            "hosts_per_leaf": int(rng.integers(2, 7)),
        },
        "fattree": {"k": 4},
        "servers-fattree": {"servers": int(rng.integers(20, 60)), "per_rack": int(rng.integers(3, 6))},
        "tree": {"depth": 3, "fanout": int(rng.integers(3, 5))},
    }[kind]
    return " ".join([kind, *(f"{name}={value}" for name, value in parameters.items())]), make(kind, parameters)


class _Fabric:
    """A graph as cables in both directions, and flows between its hosts over them."""

    def __init__(self, graph: Graph, rng: np.random.Generator) -> None:
        self._graph = graph
        self.switches = [int(graph.attributes(node)["dpid"]) for node in graph.switches()]
        self._dpid = {node: int(graph.attributes(node)["dpid"]) for node in graph.switches()}
        self.cables: list[Cable] = []
        self.number: dict[tuple[str, str], int] = {}
        self.between: list[tuple[int, int]] = []
        for link in graph.links():
            u, v = str(link.u), str(link.v)
            end_u, end_v = self._end(u, link.u_port), self._end(v, link.v_port)
            for near, far, sender, receiver in ((u, v, end_u, end_v), (v, u, end_v, end_u)):
                self.number[near, far] = len(self.cables)
                self.cables.append(Cable(sender, receiver))
            if end_u is not None and end_v is not None:
                self.between.append((self.number[u, v], self.number[v, u]))
        self.ports = sorted({end for cable in self.cables for end in cable if end is not None})
        hosts = [str(host) for host in graph.hosts()]
        count = len(hosts) * int(rng.integers(4, 9))
        pairs = [rng.choice(len(hosts), 2, replace=False) for _ in range(count)]
        self._flows = [(hosts[one], hosts[other]) for one, other in pairs]
        self._flow_rates = rng.lognormal(0, 1, count)
        self._hash = int(rng.integers(2**32))
        self._flow_rates *= rng.uniform(0.03, 0.1) * CAPACITY_BPS / 8 / PACKET_BYTES / self.loads().mean()

    def _end(self, node: str, port_no: int | None) -> MemberKey | None:
        return (self._dpid[node], int(port_no or 0)) if node in self._dpid else None

    def loads(self, without: tuple[int, ...] = ()) -> Floats:
        """Return packets per second of each cable before changes over the day, (cables,).

        Each flow takes one of its shortest paths, as ECMP has it; nothing goes by the cables `without`.
        """
        loads = np.zeros(len(self.cables))
        towards: dict[str, dict[str, int]] = {}
        for index, (source, target) in enumerate(self._flows):
            hops = towards.setdefault(target, self._hops(target, without))
            choice = np.random.default_rng([self._hash, index])
            node = source
            while node != target and node in hops:
                near = (each for each in map(str, self._graph.neighbours(node)) if each in hops)
                nearer = [each for each in near if hops[each] < hops[node] and self.number[node, each] not in without]
                following = str(choice.choice(sorted(nearer)))
                loads[self.number[node, following]] += self._flow_rates[index]
                node = following
        return loads

    def _hops(self, target: str, without: tuple[int, ...]) -> dict[str, int]:
        found, edge = {target: 0}, [target]
        while edge:
            following = []
            for node in edge:
                for near in map(str, self._graph.neighbours(node)):
                    if near not in found and self.number[near, node] not in without:
                        found[near] = found[node] + 1
                        following.append(near)
            edge = following
        return found

    def rates(self, rng: np.random.Generator, steps: int) -> Floats:
        """Return packets per second of each cable over the time, (cables, steps)."""
        hours = np.arange(steps) * GRID_S / DAY_S * 2 * np.pi
        swing, phase = rng.uniform(0.1, 0.4), rng.uniform(0, 2 * np.pi)
        daily = 1 + swing * np.sin(hours + phase)
        noise = _wandering(rng, len(self.cables), steps, rng.uniform(0.05, 0.2))
        self.shape = daily * noise
        return self.loads()[:, None] * self.shape

    def events(self) -> Iterator[TopologyEvent]:
        """Return what discovery finds."""
        for dpid in self.switches:
            yield SwitchUp(dpid, 4)
        for there, back in self.between:
            (near, far), _ = self.cables[there], self.cables[back]
            assert near is not None and far is not None
            yield PortRoleChanged(*near, PortRole.TRUNK)
            yield PortRoleChanged(*far, PortRole.TRUNK)
            yield LinkUp(*near, *far, CAPACITY_BPS)
        number = 0
        for cable in self.cables:
            if cable.sender is None and cable.receiver is not None:
                number += 1
                yield PortRoleChanged(*cable.receiver, PortRole.EDGE)
                yield HostLearnt(b"\x02" + number.to_bytes(5, "big"), *cable.receiver, ())


def _wandering(rng: np.random.Generator, count: int, steps: int, deviation: float) -> Floats:
    """Return positive noise around 1 that stays near itself for some ten minutes, (count, steps)."""
    kept = np.exp(-GRID_S / 600)
    steps_of = rng.normal(0, deviation * np.sqrt(1 - kept**2), (count, steps))
    found = np.empty((count, steps))
    level = rng.normal(0, deviation, count)
    for step in range(steps):
        level = kept * level + steps_of[:, step]
        found[:, step] = level
    return np.asarray(np.exp(found - deviation**2 / 2))


def _fault(
    kind: str,
    rng: np.random.Generator,
    fabric: _Fabric,
    rates: Floats,
    share_lost: Floats,
    errors: Floats,
    drops: Floats,
    cpu: Floats,
    span: slice,
) -> tuple[frozenset[MemberKey], frozenset[MemberKey]]:
    """Put a fault into what is made, and return who may be named and who is concerned besides."""
    there, back = fabric.between[int(rng.integers(len(fabric.between)))]
    ends = frozenset(end for end in fabric.cables[there] if end is not None)
    port = sorted(ends)[int(rng.integers(len(ends)))]
    row = fabric.ports.index(port)
    concerned: set[MemberKey] = set()
    if kind == "loss":
        share_lost[there, span] = 10 ** rng.uniform(-1.7, -0.7)
    elif kind == "errors":
        errors[row, span] = 10 ** rng.uniform(-0.5, 1.3)
    elif kind == "drops":
        drops[row, span] = 10 ** rng.uniform(0.7, 2.3)
    elif kind == "cpu":
        switch = int(rng.integers(len(fabric.switches)))
        cpu[switch, span] = np.minimum(cpu[switch, span] + rng.uniform(30, 60), 100)
        ends = frozenset([(fabric.switches[switch], WHOLE_SWITCH)])
    else:
        before = fabric.loads()
        if kind == "load":
            after = before.copy()
            after[there] = min(before[there] * rng.uniform(3, 8), 0.95 * CAPACITY_BPS / 8 / PACKET_BYTES)
        else:
            after = fabric.loads((there, back))
        rates[:, span] = after[:, None] * fabric.shape[:, span]
        ratio = (after + 1) / (before + 1)
        for number in np.flatnonzero((ratio > CHANGED) | (ratio < 1 / CHANGED)).tolist():
            concerned.update(end for end in fabric.cables[number] if end is not None)
    concerned |= {(dpid, WHOLE_SWITCH) for dpid, _ in ends | concerned}
    return ends, frozenset(concerned - ends)


def _samples(
    rng: np.random.Generator,
    fabric: _Fabric,
    rates: Floats,
    share_lost: Floats,
    errors: Floats,
    drops: Floats,
    cpu: Floats,
    poll_s: float,
) -> Iterator[PortsSampled]:
    """Poll every switch at its own time, and return what is counted there since the poll before."""
    steps = rates.shape[1]
    sent = rng.poisson(rates * GRID_S)
    arrived = rng.binomial(sent, 1 - share_lost)
    row = {port: number for number, port in enumerate(fabric.ports)}
    received_by, sent_by = (np.zeros((len(fabric.ports), steps + 1)) for _ in range(2))
    for number, cable in enumerate(fabric.cables):
        if cable.sender is not None:
            np.cumsum(sent[number], out=sent_by[row[cable.sender], 1:])
        if cable.receiver is not None:
            np.cumsum(arrived[number], out=received_by[row[cable.receiver], 1:])
    totals = [received_by, sent_by]
    for amounts in (errors, drops):
        counted = np.zeros((len(fabric.ports), steps + 1))
        np.cumsum(rng.poisson(amounts * GRID_S), axis=1, out=counted[:, 1:])
        totals.append(counted)
    phase_s = {dpid: rng.uniform(0, poll_s) for dpid in fabric.switches}
    offsets_s = np.array([phase_s[dpid] for dpid, _ in fabric.ports])
    grid_s = np.arange(steps + 1) * GRID_S
    before_s, before = None, None
    for poll in range(round(steps * GRID_S / poll_s) - 1):
        jitter_s = {dpid: rng.normal(0, 0.02) for dpid in fabric.switches}
        at_s = poll * poll_s + offsets_s + np.array([jitter_s[dpid] for dpid, _ in fabric.ports])
        step = np.minimum((at_s / GRID_S).astype(np.int64), steps - 1).clip(0)
        part = (at_s - grid_s[step]) / GRID_S
        index = np.arange(len(fabric.ports))
        now = [of[index, step] * (1 - part) + of[index, step + 1] * part for of in totals]
        if before_s is not None and before is not None:
            interval_s = at_s - before_s
            per_s = np.zeros((len(fabric.ports), 12))
            for column, quantity in ((0, 0), (1, 1), (6, 2), (4, 3)):
                per_s[:, column] = (now[quantity] - before[quantity]) / interval_s
            per_s[:, 2:4] = per_s[:, :2] * PACKET_BYTES
            at_step = min(round(poll * poll_s / GRID_S), steps - 1)
            yield PortsSampled(
                tuple(fabric.ports),
                START_S + at_s,
                interval_s,
                per_s,
                per_s[:, 2:4] * 800 / CAPACITY_BPS,
                dict(zip(fabric.switches, cpu[:, at_step].tolist(), strict=True)),
            )
        before_s, before = at_s, now
