"""How long the history of monitors that share the switches takes to read, each octet once.

    python benchmarks/cluster_history.py [--rows 9000000] [--monitors 10] [--runs 3] [--json]

Each monitor's sink writes its own files, as in a running monitor. Half-way through one monitor dies and its switches
go to the others; another is cut off from the store for ten polls, and goes on polling beside the next owners. The
result is compared with what the ports carried: an octet too many or too few ends the benchmark. DuckDB is beside it,
with a query by the same rule that tells one counter's mean and knows no gaps, wraps or resets. They take turns, each
in a process of its own.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
from fabric_simulator.process import resident_bytes
from measure import Measurement, report

from apps.cli.perf_history import rates_between
from apps.exporters.history_sink import HistorySink
from apps.exporters.settings import HistorySettings
from apps.exporters.sink import RatedSamples
from controller.performance.batch import SampleRates, Samples
from controller.performance.counters import COUNTER_COUNT
from controller.performance.ports import PortRows

PORTS_PER_SWITCH = 48
INTERVAL_S = 10.0
START_S = 1_700_002_800.0
LOAD_OCTETS_PER_S = 1_000_000
BESIDE_POLLS = 10
WAITING_ROWS = 200_000
LOOK_S = 0.02
CARRIED_BPS = LOAD_OCTETS_PER_S * 8

MEANS = """
    with rows as (select dpid, port_no, epoch_us(timestamp) as at_us, rx_bytes, share_epoch from read_parquet('{}')),
    begun as (select dpid, share_epoch, min(at_us) as at_us from rows group by all),
    ends as (
        select one.dpid, one.share_epoch, min(later.at_us) as at_us from begun one
        left join begun later on one.dpid = later.dpid and later.share_epoch > one.share_epoch group by all
    ),
    counted as (
        select rows.* from rows join ends using (dpid, share_epoch)
        where ends.at_us is null or rows.at_us < ends.at_us
    ),
    steps as (
        select dpid, port_no, rx_bytes - lag(rx_bytes) over port as octets, at_us - lag(at_us) over port as us
        from counted window port as (partition by dpid, port_no order by at_us)
    )
    select dpid, port_no, sum(octets) / sum(us) * 8e6 from steps where us is not null group by all
"""


def write(directory: Path, monitors: int, switches: int, polls: int) -> int:
    """Write the files of each monitor; return how many rows they have."""
    ports = PortRows(switches * PORTS_PER_SWITCH)
    for row in range(switches * PORTS_PER_SWITCH):
        ports.add(row // PORTS_PER_SWITCH + 1, row % PORTS_PER_SWITCH + 1, "", 10e9)
    settings, logger = HistorySettings(backlog_rows=1 << 40), logging.getLogger("benchmark")
    owner = np.arange(switches) % monitors
    dead, cut = monitors - 1, monitors - 2
    later = np.where(np.isin(owner, (dead, cut)), np.arange(switches) // monitors % (monitors - 2), owner)
    rows_of_switch = np.arange(switches * PORTS_PER_SWITCH, dtype=np.int32).reshape(switches, PORTS_PER_SWITCH)
    written = 0
    for monitor in range(monitors):
        sink = HistorySink(directory / f"m{monitor}", settings, ports, logger, f"m{monitor}")
        for poll in range(polls):
            moved = poll >= polls // 2
            mine = (later if moved else owner) == monitor
            epoch = np.where(moved & (later != owner), 2, 1)
            if monitor == cut and polls // 2 <= poll < polls // 2 + BESIDE_POLLS:
                mine, epoch = owner == cut, np.ones(switches, np.int64)
            rows = rows_of_switch[mine].reshape(-1)
            if not len(rows):
                continue
            at_s = np.full(len(rows), START_S + poll * INTERVAL_S + rows // PORTS_PER_SWITCH % 97 / 10.0)
            at_s += 0.5 * (epoch[rows // PORTS_PER_SWITCH] == 1)
            counters = np.zeros((len(rows), COUNTER_COUNT), np.uint64)
            counters[:, :4] = np.round((at_s - START_S) * LOAD_OCTETS_PER_S)[:, None]
            unknown = np.full((len(rows), COUNTER_COUNT), np.nan)
            rates = SampleRates(
                rows,
                at_s,
                np.full(len(rows), np.nan),
                unknown,
                unknown[:, :2],
                np.zeros(len(rows), np.uint8),
                np.zeros(len(rows), np.uint16),
                np.zeros(len(rows), np.uint16),
            )
            none = np.zeros(len(rows), np.bool_)
            samples = Samples(rows, at_s, at_s - START_S + 1e6, counters)
            sink.write(RatedSamples(samples, rates, none, epoch[rows // PORTS_PER_SWITCH]))
            written += len(rows)
            while sink.waiting_rows > WAITING_ROWS:
                time.sleep(0.001)
        sink.close()
    return written


class Taken(NamedTuple):
    """What a reading took, and how much memory its process had at most."""

    wall_s: float
    processor_s: float
    memory_mb: float


def by_command(directory: Path, monitors: int, ports: int) -> None:
    """Have the rates as `vsrt perf history` does; AssertionError where they are others than what was carried."""
    found = rates_between([directory / f"m{monitor}" for monitor in range(monitors)], 0, 1e10)
    assert len(found) == ports
    for port, said in found.items():
        assert abs(said["rx_bps"] - CARRIED_BPS) < 1 and not said["discontinuities"], (port, said)


def by_query(directory: Path, _monitors: int, ports: int) -> None:
    """Have means by a query of DuckDB."""
    duckdb.sql("set enable_progress_bar = false")
    means = duckdb.sql(MEANS.format(directory / "*" / "counters" / "*.parquet"))
    assert means is not None
    found = means.fetchall()
    assert len(found) == ports
    for port in found:
        assert abs(port[2] - CARRIED_BPS) < 1, port


def taken(read: Callable[[Path, int, int], None], directory: Path, monitors: int, ports: int) -> Taken:
    """Return what a reading takes in this process."""
    held, is_over = [resident_bytes(os.getpid())], threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_S):
            held.append(resident_bytes(os.getpid()))

    looking = threading.Thread(target=look)
    looking.start()
    begun_s, begun_processor_s = time.monotonic(), time.process_time()
    read(directory, monitors, ports)
    wall_s, processor_s = time.monotonic() - begun_s, time.process_time() - begun_processor_s
    is_over.set()
    looking.join()
    return Taken(wall_s, processor_s, max(held) / 1e6)


READERS = {"vsrt perf history": by_command, "DuckDB": by_query}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=9_000_000)
    parser.add_argument("--monitors", type=int, default=10)
    parser.add_argument("--switches", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    ports = args.switches * PORTS_PER_SWITCH
    found: dict[str, list[Taken]] = {name: [] for name in READERS}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        written = write(directory, args.monitors, args.switches, args.rows // ports)
        for _ in range(args.runs):
            for reader, read in READERS.items():
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found[reader].append(pool.apply(taken, (read, directory, args.monitors, ports)))
    measurements = [Measurement("rows written", "", [written])]
    for reader, each in found.items():
        measurements += [
            Measurement(f"{reader}: wall time", "s", [one.wall_s for one in each]),
            Measurement(f"{reader}: processor time", "s", [one.processor_s for one in each]),
            Measurement(f"{reader}: resident memory at most", "MB", [one.memory_mb for one in each]),
        ]
    report(measurements, as_json=args.json, source="cluster_history")


if __name__ == "__main__":
    main()
