"""Samples, rates and roll-ups of them to files."""

from __future__ import annotations

import logging
from pathlib import Path

from apps.exporters.row_files import RowFiles
from apps.exporters.rows import PortKeys, counter_rows, rate_rows, roll_up_rows
from apps.exporters.schema import ROLL_UPS, RecordKind
from apps.exporters.settings import HistorySettings, OutputSettings
from apps.exporters.sink import MakeSink, RatedSamples, Sink, Sources
from controller.performance.events import PortEvent
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps

HISTORY_DIRECTORY = "history"


class HistorySink(RowFiles):
    """Keeps the samples and rates of a fabric in `directory`; rows of switches that monitors share name `monitor`."""

    def __init__(
        self, directory: Path, settings: HistorySettings, ports: PortRows, logger: logging.Logger, monitor: str = ""
    ) -> None:
        super().__init__(directory, ((RecordKind.COUNTERS, RecordKind.RATES),), settings, logger)
        self._monitor = monitor
        self._ports = ports
        self._keys = PortKeys(ports)

    def write(self, batch: RatedSamples) -> None:
        """Take one batch; its arrays must not change afterwards. Never waits for the disk."""
        self.put(counter_rows(batch, self._keys, self._ports.speed_bps, self._monitor))
        self.put(rate_rows(batch, self._keys, self._monitor))

    def event(self, event: PortEvent) -> None:
        """Events are not kept here."""

    def roll_up(self, roll_ups: RollUps) -> None:
        """Roll-ups are another sink's."""


class RollUpSink(RowFiles):
    """Keeps the roll-ups of a fabric in `directory`: few rows, which are on the disk before they count as kept.

    Where there are too many, those of seconds go before those of minutes, and those of hours last.
    """

    def __init__(self, directory: Path, settings: HistorySettings, ports: PortRows, logger: logging.Logger) -> None:
        kinds = [(kind,) for kind in ROLL_UPS.values()]
        super().__init__(directory, kinds, settings, logger, what="roll-ups", synchronised=True)
        self._keys = PortKeys(ports)

    def write(self, batch: RatedSamples) -> None:
        """Samples are another sink's."""

    def event(self, event: PortEvent) -> None:
        """Events are not kept here."""

    def roll_up(self, roll_ups: RollUps) -> None:
        """Take roll-ups whose time is over. Never waits for the disk."""
        self.put(roll_up_rows(roll_ups, self._keys))


def _history(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.history
    return wanted and HistorySink(of.state_dir / HISTORY_DIRECTORY, wanted, of.ports, of.logger, of.monitor)


def _roll_ups(settings: OutputSettings, of: Sources) -> Sink | None:
    wanted = settings.roll_ups
    return wanted and RollUpSink(of.state_dir / HISTORY_DIRECTORY, wanted, of.ports, of.logger)


OUTPUTS: dict[str, MakeSink] = {"history": _history, "roll_ups": _roll_ups}
