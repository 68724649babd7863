"""The outputs by name, and all that are wanted as one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from apps import exporters
from apps.exporters.settings import OutputSettings
from apps.exporters.sink import Ask, MakeSink, Overview, RatedSamples, Sink, SinkState, Sources, ask_here
from controller.performance.events import PortEvent
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps


def find_outputs() -> dict[str, MakeSink]:
    """Return the outputs of all modules of this package that are called after sinks: their `OUTPUTS`.

    ValueError where two have one name.
    """
    found: dict[str, MakeSink] = {}
    for module in iter_modules(exporters.__path__):
        if module.name.endswith(("_sink", "_sinks")):
            outputs = import_module(f"{exporters.__name__}.{module.name}").OUTPUTS
            if both := found.keys() & outputs:
                raise ValueError(f"two outputs are called {', '.join(sorted(both))}")
            found |= outputs
    return found


SINKS: dict[str, MakeSink] = find_outputs()
"""Outputs by name; each makes its sink, None where the settings do not ask for it."""


class Sinks:
    """All outputs that are wanted, as one; a fault of one does not keep the others from what they are given."""

    def __init__(self) -> None:
        self.by_name: dict[str, Sink] = {}

    def write(self, batch: RatedSamples) -> None:
        """Give samples and rates to every output."""
        for sink in self.by_name.values():
            sink.write(batch)

    def event(self, event: PortEvent) -> None:
        """Give an event to every output."""
        for sink in self.by_name.values():
            sink.event(event)

    def roll_up(self, roll_ups: RollUps) -> None:
        """Give roll-ups to every output."""
        for sink in self.by_name.values():
            sink.roll_up(roll_ups)

    def states(self) -> dict[str, SinkState]:
        """Return how each output fares."""
        return {name: sink.state() for name, sink in self.by_name.items()}

    def close(self) -> None:
        """Put what was taken where it belongs, and end every output."""
        for sink in self.by_name.values():
            sink.close()


def build_sinks(
    settings: OutputSettings,
    state_dir: Path,
    ports: PortRows,
    logger: logging.Logger,
    overview: Callable[[], Overview] = Overview,
    ask: Ask = ask_here,
    spoken: Callable[[str], str] = str,
    monitor: str = "",
) -> Sinks:
    """Make the outputs that are wanted.

    Parameters
    ----------
    settings
        Which outputs, and how.
    state_dir
        Directory of the files.
    ports
        The table that the rows of samples refer to.
    logger
        Where faults are told.
    overview
        Returns what is not about a port; it is asked at each scrape.
    ask
        Runs a question on the loop that `ports` belongs to and returns the answer; outputs ask so from their threads.
    spoken
        Puts the names of switches and ports into a text that has their ids.
    monitor
        What this monitor is called in rows of switches that several share.

    Raises
    ------
    ValueError
        Where a setting makes no sense. What a disk or network does is counted and told, not raised.
    """
    sinks = Sinks()
    sources = Sources(state_dir, ports, overview, sinks.states, logger, ask, spoken, monitor)
    try:
        for name, make in SINKS.items():
            sink = make(settings, sources)
            if sink is not None:
                sinks.by_name[name] = sink
    except ValueError:
        sinks.close()
        raise
    return sinks
