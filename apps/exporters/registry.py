"""The outputs by name, and all that are wanted as one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from apps.exporters.event_sinks import EventLogSink, SyslogSink
from apps.exporters.history_sink import HistorySink, RollUpSink
from apps.exporters.prometheus_sink import PrometheusSink
from apps.exporters.settings import OutputSettings
from apps.exporters.sink import Ask, Overview, RatedSamples, Sink, SinkState, ask_here
from controller.performance.events import PortEvent
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps

HISTORY_DIRECTORY = "history"
EVENT_LOG = "events.jsonl"


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


def _history(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.history
    return wanted and HistorySink(of.state_dir / HISTORY_DIRECTORY, wanted, of.ports, of.logger, of.monitor)


def _roll_ups(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.roll_ups
    return wanted and RollUpSink(of.state_dir / HISTORY_DIRECTORY, wanted, of.ports, of.logger)


def _prometheus(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.prometheus
    return wanted and PrometheusSink(wanted, of.ports, of.overview, of.states, of.logger, of.ask)


def _event_log(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.event_log
    return wanted and EventLogSink(of.state_dir / EVENT_LOG, wanted, of.ports, of.logger)


def _syslog(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.syslog
    return wanted and SyslogSink(wanted, of.ports, of.logger, of.spoken)


SINKS: dict[str, Callable[[OutputSettings, Sources], Sink | None]] = {
    "history": _history,
    "roll_ups": _roll_ups,
    "prometheus": _prometheus,
    "event_log": _event_log,
    "syslog": _syslog,
}
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
