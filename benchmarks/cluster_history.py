"""How long the history of monitors that share the switches takes to read, each octet once.

    python benchmarks/cluster_history.py [--rows 9000000] [--monitors 10] [--json]

Each monitor's sink writes its own files, as in a running monitor. Half-way through one monitor dies and its switches
go to the others; another is cut off from the store for ten polls, and goes on polling beside the next owners. The
result is compared with what the ports carried: an octet too many or too few ends the benchmark. Times are processor
time of the whole process, and wall time beside it.
"""

from __future__ import annotations

import argparse
import logging
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import Measurement, report

from apps.cli.perf_history import samples_of
from apps.cli.perf_rates import rates_of
from apps.cli.sample_file import COUNTER_COLUMNS
from apps.exporters.history import read_history
from apps.exporters.history_sink import HistorySink
from apps.exporters.schema import RecordKind
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
                *(np.zeros(len(rows), kind) for kind in (np.uint8, np.uint16, np.uint16)),
            )
            none = np.zeros(len(rows), np.bool_)
            samples = Samples(rows, at_s, at_s - START_S + 1e6, counters)
            sink.write(RatedSamples(samples, rates, none, epoch[rows // PORTS_PER_SWITCH]))
            written += len(rows)
            while sink.waiting_rows > WAITING_ROWS:
                time.sleep(0.001)
        sink.close()
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=9_000_000)
    parser.add_argument("--monitors", type=int, default=10)
    parser.add_argument("--switches", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    polls = args.rows // (args.switches * PORTS_PER_SWITCH)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        written = write(directory, args.monitors, args.switches, polls)
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        places = [directory / f"m{monitor}" for monitor in range(args.monitors)]
        begun = time.monotonic(), time.process_time()
        columns = ("duration_s", "speed_bps", *COUNTER_COLUMNS)
        table = read_history(places, RecordKind.COUNTERS, since_s=0, until_s=1e10, columns=columns)
        read = time.monotonic(), time.process_time()
        ports = rates_of(samples_of(table))
        done = time.monotonic(), time.process_time()
    after_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    expected_bps = LOAD_OCTETS_PER_S * 8
    assert len(ports) == args.switches * PORTS_PER_SWITCH
    for port, found in ports.items():
        assert abs(found["rx_bps"] - expected_bps) < 1 and not found["discontinuities"], (port, found)
    assert table.num_rows == args.switches * PORTS_PER_SWITCH * polls
    measurements = [
        Measurement("rows written", "", [written]),
        Measurement("rows that count", "", [table.num_rows]),
        Measurement("read, wall time", "s", [read[0] - begun[0]]),
        Measurement("read, processor time", "s", [read[1] - begun[1]]),
        Measurement("rates of them, processor time", "s", [done[1] - read[1]]),
        Measurement("both, wall time", "s", [done[0] - begun[0]]),
        Measurement("both, processor time", "s", [done[1] - begun[1]]),
        Measurement(
            "memory above what writing took",
            "MB",
            [(after_kb - before_kb) / 1e3],
        ),
    ]
    report(measurements, as_json=args.json, source="cluster_history")


if __name__ == "__main__":
    main()
