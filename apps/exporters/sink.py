"""What every output offers, and what it is given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from apps.exporters.settings import OutputSettings
from controller.performance.batch import SampleRates, Samples
from controller.performance.events import PortEvent
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps

Ask = Callable[[Callable[[], Any]], Any]
"""Runs a question on the monitor's loop and returns the answer."""


def ask_here(question: Callable[[], Any]) -> Any:
    """Ask where the monitor's loop is the caller's own."""
    return question()


class RatedSamples(NamedTuple):
    """Samples as they came in, and the rates made of them; no array in it changes any more.

    Attributes
    ----------
    samples, rates
        Their `at_s` is in seconds since the epoch.
    significant
        bool[n], the rates that differ enough from those before to be kept in files; all where None.
    epochs
        int64[n], the epoch of each switch's share; None where a monitor shares with no other.
    """

    samples: Samples
    rates: SampleRates
    significant: NDArray[np.bool_] | None = None
    epochs: NDArray[np.int64] | None = None


class SwitchAnswering(NamedTuple):
    """How a switch on the monitoring list is; `sampled_at_s` is its last answer's time in seconds since the epoch."""

    dpid: int
    kind: str
    up: bool
    sampled_at_s: float | None
    cpu_pct: float | None = None
    memory_pct: float | None = None


class ShareState(NamedTuple):
    """A monitor's share of the switches: how many, and their ports; and where it divides them, else 0, how often a
    switch was given to another monitor, and how many that are connected have none.
    """

    switches: int
    ports: int
    moves: int
    unowned: int


class ScalingState(NamedTuple):
    """How many monitors there should be; in what part of intervals the goal was met, where this monitor advises; and
    how often what was done.
    """

    advised: int | None
    met_ratio: float | None
    actions: Mapping[str, int]


class Overview(NamedTuple):
    """What is not about a port: switches, how polls ended, by name, how many; and the share and advice, if any."""

    switches: tuple[SwitchAnswering, ...] = ()
    polls: Mapping[str, int] = {}
    share: ShareState | None = None
    scaling: ScalingState | None = None


class SinkState(NamedTuple):
    """How an output fares: what it cannot do at present, if anything, totals by name, and how full its backlog is."""

    faults: tuple[str, ...]
    failures: int
    totals: Mapping[str, int]
    fill: float = 0.0


class Sink(Protocol):
    """An output. Its methods are called on the monitor's own loop, do not wait for disk or network, and never raise
    for what a disk or a network does.
    """

    def write(self, batch: RatedSamples) -> None:
        """Take samples and rates."""

    def event(self, event: PortEvent) -> None:
        """Take an event."""

    def roll_up(self, roll_ups: RollUps) -> None:
        """Take roll-ups whose time is over."""

    def state(self) -> SinkState:
        """Return how it fares."""

    def close(self) -> None:
        """Put what was taken where it belongs, and end."""


class Sources(NamedTuple):
    """What outputs are made with; `states` says how all of them fare, `ask` runs a question on the monitor's loop,
    `spoken` puts the names of switches and ports into a text that has their ids, `monitor` names who shares switches.
    """

    state_dir: Path
    ports: PortRows
    overview: Callable[[], Overview]
    states: Callable[[], Mapping[str, SinkState]]
    logger: logging.Logger
    ask: Ask
    spoken: Callable[[str], str]
    monitor: str = ""


MakeSink: TypeAlias = Callable[[OutputSettings, Sources], Sink | None]
"""Makes an output of what operators say about it; None where they do not want it."""
