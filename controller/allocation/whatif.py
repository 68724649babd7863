"""What-if: a day of port loads and requests, replayed under several ways to choose ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.allocation.busy import BusyTable
from controller.allocation.candidates import Candidates
from controller.allocation.metric import port_metric, volume_load
from controller.allocation.parameters import averaging_period_s
from controller.allocation.reservation import Reservations
from controller.allocation.selection import Wish, select
from controller.config.settings import PortParameters

POLICIES = ("metric", "count", "random")
"""By port metrics with reservation; by the number of attachments, as before there were metrics; by chance."""


class Requests(NamedTuple):
    """Requests in the order of their arrival, n of each: polling step, ports wanted, load of each, how many steps."""

    step: NDArray[np.int64]
    ports: NDArray[np.int64]
    load_pct: NDArray[np.float64]
    steps: NDArray[np.int64]


class Day(NamedTuple):
    """What is replayed.

    `background_pct` is float64[steps, ports], load from elsewhere; `attached` int64[ports], attachments at the start;
    `levels` the entity of each port by level.
    """

    ports: Sequence[str]
    levels: Mapping[str, Sequence[str | None]]
    interval_s: float
    background_pct: NDArray[np.float64]
    attached: NDArray[np.int64]
    requests: Requests


class Spread(NamedTuple):
    """How evenly ports were used: float64[steps, ports] utilisation, and figures over it."""

    utilisation_pct: NDArray[np.float64]
    p99_pct: float
    mean_pct: float
    gini: NDArray[np.float64]
    saturated_share: float
    refused: int

    @property
    def p99_over_mean(self) -> float:
        """The 99th percentile as a multiple of the mean; 0 where nothing was used."""
        return self.p99_pct / self.mean_pct if self.mean_pct > 0 else 0.0


def skewed_day(
    pods: int = 4, switches: int = 4, ports: int = 16, requests: int = 2000, interval_s: float = 300, seed: int = 1
) -> Day:
    """Return a day on which a few ports carry far more than their number of attachments tells.

    Parameters
    ----------
    pods, switches, ports
        Pods, switches in each, ports of each.
    requests
        Requests over the day, of 2 ports each; most come by day.
    interval_s
        Time between two polls.
    seed
        Decides everything.

    Returns
    -------
    Day
        A tenth of the ports is hot (20 to 40 % on average), the others carry 1 to 8 %; all follow the hour of the
        day, each pod at its own time. Attachments do not tell hot ports from others.
    """
    generator = np.random.default_rng(seed)
    n = pods * switches * ports
    base = np.where(generator.random(n) < 0.1, generator.uniform(20, 40, n), generator.uniform(1, 8, n))
    return _day(generator, (pods, switches, ports), base, lambda: generator.poisson(10, n), requests, interval_s)


def attached_day(
    pods: int = 4, switches: int = 4, ports: int = 16, requests: int = 2000, interval_s: float = 300, seed: int = 1
) -> Day:
    """Return a day on which what ports carry follows from what is attached to them.

    Parameters and what is returned are those of `skewed_day`, but a port carries the loads of its attachments: 1.2 on
    average (Poisson), put anywhere, each with a load drawn as those of the requests are.
    """
    generator = np.random.default_rng(seed)
    n = pods * switches * ports
    attached = generator.poisson(1.2, n)
    loads_pct = _loads_pct(generator, int(attached.sum()))
    base = np.bincount(np.repeat(np.arange(n), attached), loads_pct, n).astype(np.float64)
    return _day(generator, (pods, switches, ports), base, lambda: attached, requests, interval_s)


def _day(
    generator: np.random.Generator,
    shape: tuple[int, int, int],
    base_pct: NDArray[np.float64],
    attached: Callable[[], NDArray[np.int64]],
    requests: int,
    interval_s: float,
) -> Day:
    """Return a day of pods, switches and ports with a mean load each; what is drawn is drawn in this order."""
    pods, switches, ports = shape
    n, steps = len(base_pct), round(86400 / interval_s)
    pod = np.repeat(np.arange(pods), switches * ports)
    switch = np.repeat(np.arange(pods * switches), ports)
    hours = np.arange(steps)[:, None] / steps * 2 * np.pi
    daily = 1 + 0.4 * np.sin(hours + pod[None, :] * 0.7)
    background = base_pct * daily * generator.lognormal(0, 0.15, (steps, n))
    weight = 1 + 0.8 * np.sin(hours[:, 0])
    arrival = np.sort(generator.choice(steps, requests, p=weight / weight.sum()))
    return Day(
        [f"p{index}" for index in range(n)],
        {"pod": [f"pod{value}" for value in pod], "switch": [f"switch{value}" for value in switch]},
        interval_s,
        background,
        attached().astype(np.int64),
        Requests(
            arrival,
            np.full(requests, 2),
            _loads_pct(generator, requests),
            np.maximum(1, np.round(generator.exponential(4 * 3600 / interval_s, requests))).astype(np.int64),
        ),
    )


def _loads_pct(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    return np.minimum(generator.pareto(2.5, count) * 5 + 2, 25.0)


def replay(day: Day, policy: str, parameters: PortParameters, penalty_factor: float = 1.5, seed: int = 1) -> Spread:
    """Return how evenly the ports of a day are used where requests are placed by a policy.

    Parameters
    ----------
    day
        Loads and requests.
    policy
        One of `POLICIES`. All keep to the failure domains; they differ in what they take for a port's usage.
    parameters
        Those of the port metric; the time over which samples are averaged should be well below a day.
    penalty_factor
        That of the reservation between two polls.
    seed
        Decides the choices of ``random``.

    Returns
    -------
    Spread
        A request that finds too few ports is refused and counted.

    Raises
    ------
    ValueError
        The policy is not known.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; known: {', '.join(POLICIES)}")
    steps, n = day.background_pct.shape
    placed, attached = np.zeros(n), day.attached.astype(np.float64)
    ending: dict[int, list[tuple[NDArray[np.intp], float]]] = {}
    usage = _Usage(n, policy, parameters, penalty_factor, np.random.default_rng(seed))
    utilisation = np.empty((steps, n))
    connected = np.ones(n, np.bool_)
    candidates = Candidates(day.ports, np.zeros(n), attached, connected, day.levels)
    refused = position = 0
    for step in range(steps):
        for ports, load in ending.pop(step, ()):
            placed[ports] -= load
            attached[ports] -= 1
        busy = np.minimum(day.background_pct[step] + placed, 100.0)
        usage.poll(round(step * day.interval_s * 1000), busy, attached)
        while position < len(day.requests.step) and day.requests.step[position] <= step:
            load, wanted = float(day.requests.load_pct[position]), int(day.requests.ports[position])
            names = usage.place(candidates, wanted, load, attached)
            if names is None:
                refused += 1
            else:
                ports = np.array([candidates.numbers[name] for name in names], np.intp)
                placed[ports] += load
                attached[ports] += 1
                ending.setdefault(step + int(day.requests.steps[position]), []).append((ports, load))
            position += 1
        utilisation[step] = np.minimum(day.background_pct[step] + placed, 100.0)
    return Spread(
        utilisation,
        float(np.percentile(utilisation, 99)),
        float(utilisation.mean()),
        gini(utilisation),
        float((utilisation >= 100).mean()),
        refused,
    )


def gini(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Gini coefficient of each row of values from 0 on: 0 where all are equal, 1 where one has everything.

    Notes
    -----
    C. Gini, "Variabilità e mutabilità", 1912; from ordered values: sum((2i - n - 1) x_i) / (n sum x).
    """
    n = values.shape[1]
    ordered = np.sort(values, axis=1)
    total = ordered.sum(axis=1)
    weighted = ordered @ (2.0 * np.arange(1, n + 1) - n - 1)
    found: NDArray[np.float64] = np.divide(weighted, n * total, out=np.zeros(len(values)), where=total > 0)
    return found


class _Usage:
    """What a policy takes for the usage of ports, from one poll to the next."""

    def __init__(
        self, n: int, policy: str, parameters: PortParameters, penalty_factor: float, generator: np.random.Generator
    ) -> None:
        self._parameters = parameters
        self._generator = generator
        self._busy = BusyTable()
        self._rows = np.array(
            [
                self._busy.add(averaging_period_s(parameters), parameters.weight_for_exponential_moving_average)
                for _ in range(n)
            ],
            np.intp,
        )
        self._reservations = Reservations(penalty_factor)
        self._usage_pct = np.full(n, np.nan)
        self._metric = policy == "metric"
        self._of: Callable[[NDArray[np.float64]], NDArray[np.float64]] = {
            "metric": lambda attached: self._usage_pct,
            "count": lambda attached: attached,
            "random": lambda attached: self._generator.random(n),
        }[policy]

    def poll(self, at_ms: int, busy_pct: NDArray[np.float64], attached: NDArray[np.float64]) -> None:
        if not self._metric:
            return
        at = np.full(len(self._rows), at_ms, np.int64)
        self._busy.observe_percent(self._rows, at, busy_pct)
        self._reservations.refresh()
        own = self._parameters
        port = self._busy.values(self._rows, at_ms, np.inf, np.full(len(self._rows), np.inf))
        metric = port_metric(port, np.nan, own.port_utilization_floor, own.cpu_utilization_floor)
        metric[np.isnan(port)] = np.nan
        self._usage_pct = metric + volume_load(attached, own.metric_volume_coefficient, own.volumes_at_full_load)

    def place(
        self, candidates: Candidates, count: int, load_pct: float, attached: NDArray[np.float64]
    ) -> Sequence[str | int] | None:
        candidates.usage_pct = self._of(attached)
        wish = Wish(count, allow_fewer=True)
        if self._metric:
            found = self._reservations.place(candidates, wish, load_pct)
        else:
            found = select(candidates, wish)
        return found.ports if found.enough else None
