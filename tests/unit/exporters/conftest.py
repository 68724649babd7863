from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from apps.exporters.history_sink import HistorySink
from apps.exporters.settings import HistorySettings
from apps.exporters.sink import RatedSamples
from controller.performance.batch import Discontinuity, SampleRates, Samples
from controller.performance.counters import COUNTER_COUNT, UNSUPPORTED
from controller.performance.ports import PortRows
from required import leave_out
from topology.graph import NodeKind


class Fabric:
    """A table of ports, and batches of samples of them."""

    def __init__(self, switches: int = 2, ports: int = 3) -> None:
        self.ports = PortRows()
        for dpid in range(1, switches + 1):
            for port_no in range(1, ports + 1):
                added = self.ports.add(dpid, port_no, f"s{dpid}-eth{port_no}", 1e9)
                assert added is not None
                self.ports.set_link(added.row, True)
            self.ports.classify(dpid, NodeKind.TOR)

    def batch(
        self,
        at_s: float,
        start: int = 0,
        *,
        rows: list[int] | None = None,
        unsupported: tuple[int, ...] = (),
        kind: Discontinuity = Discontinuity.NONE,
    ) -> RatedSamples:
        """Samples of all ports (or of `rows`) whose counters count up from `start` by column and row."""
        chosen = np.arange(len(self.ports), dtype=np.int32) if rows is None else np.array(rows, np.int32)
        n = len(chosen)
        counters = (start + np.arange(COUNTER_COUNT)[None, :] * 100 + chosen[:, None]).astype(np.uint64)
        counters[:, list(unsupported)] = UNSUPPORTED
        per_s = np.full((n, COUNTER_COUNT), start / 10.0)
        per_s[:, list(unsupported)] = np.nan
        at = np.full(n, at_s)
        rates = SampleRates(
            chosen,
            at,
            np.full(n, 10.0),
            per_s,
            np.tile([12.5, 50.0], (n, 1)) if kind is Discontinuity.NONE else np.full((n, 2), np.nan),
            np.full(n, kind, np.uint8),
            np.zeros(n, np.uint16),
            np.zeros(n, np.uint16),
        )
        return RatedSamples(Samples(chosen, at, np.full(n, 60.0), counters), rates)


@pytest.fixture
def fabric() -> Fabric:
    return Fabric()


@pytest.fixture(scope="session")
def promtool() -> str:
    """The checker that comes with Prometheus; tests without it are skipped where nobody insists."""
    found = shutil.which("promtool")
    if found is None:
        leave_out("promtool (Debian package prometheus) is not installed")
    return found


@pytest.fixture
def make_fabric() -> Callable[..., Fabric]:
    return Fabric


@pytest.fixture
def logger() -> logging.Logger:
    return logging.getLogger("exporters-under-test")


@pytest.fixture
def open_history(tmp_path: Path, fabric: Fabric, logger: logging.Logger) -> Iterator[Callable[..., HistorySink]]:
    """Opens the history of the fabric in `tmp_path`, with settings; it is closed after the test."""
    opened: list[HistorySink] = []

    def make(directory: Path = tmp_path, **settings: object) -> HistorySink:
        opened.append(HistorySink(directory, HistorySettings(**settings), fabric.ports, logger))
        return opened[-1]

    yield make
    for sink in opened:
        sink.close()
