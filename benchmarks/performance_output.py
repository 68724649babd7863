"""What the outputs of the performance manager cost: files beside csv and SQLite, the scrape beside prometheus_client.

python benchmarks/performance_output.py [--ports N] [--sweeps N] [--repeats N] [--json]

Time is processor time of the whole process, so that the thread that writes counts as well. prometheus_client is no
dependency of the project: its rows are there where it can be imported.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import logging
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Measurement, report

from apps.exporters.history import read_history
from apps.exporters.history_sink import HistorySink
from apps.exporters.prometheus_sink import PrometheusSink
from apps.exporters.schema import RecordKind
from apps.exporters.settings import HistorySettings, PrometheusSettings
from apps.exporters.sink import Overview, RatedSamples
from controller.performance.batch import SampleRates, Samples
from controller.performance.counters import COUNTER_COUNT, COUNTERS
from controller.performance.ports import PortRows

PORTS_PER_SWITCH = 48
INTERVAL_S = 10.0
START_S = 1_700_002_800.0
BATCH_SAMPLES = 4800
WAITING_ROWS = 100_000
LOGGER = logging.getLogger("benchmark")


def make_ports(count: int) -> PortRows:
    """Ports of switches with 48 each."""
    ports = PortRows()
    for row in range(count):
        dpid, port_no = divmod(row, PORTS_PER_SWITCH)
        ports.add(dpid + 1, port_no + 1, f"s{dpid + 1}-eth{port_no + 1}", 10e9)
    return ports


def make_batches(ports: int, sweeps: int, seed: int) -> list[RatedSamples]:
    """Sweeps over ports whose loads spread over six decades and change by half from one to the next.

    Counters stand where some months have brought them; one port in 50 drops packets, one in 500 has errors.
    """
    rng = np.random.default_rng(seed)
    rows = np.arange(ports, dtype=np.int32)
    load_bps = np.minimum(rng.lognormal(np.log(2e6), 2.5, (ports, 2)), 9e9)
    packet_bytes = rng.uniform(90, 1400, (ports, 2))
    faulty = np.hstack([rng.random((ports, 2)) < 0.02, rng.random((ports, COUNTER_COUNT - 6)) < 0.002])
    past_s = rng.uniform(1e5, 1e7, (ports, 1))
    counters = np.zeros((ports, COUNTER_COUNT))
    counters[:, 2:4] = load_bps / 8 * past_s
    counters[:, 0:2] = counters[:, 2:4] / packet_bytes
    counters = np.floor(counters)
    phase_s = np.sort(rng.uniform(0, INTERVAL_S, ports // PORTS_PER_SWITCH + 1))[rows // PORTS_PER_SWITCH]
    batches = []
    for sweep in range(sweeps):
        octets = load_bps / 8 * INTERVAL_S * rng.lognormal(0, 0.4, (ports, 2))
        rise = np.zeros((ports, COUNTER_COUNT))
        rise[:, 2:4], rise[:, 0:2] = octets, octets / packet_bytes
        rise[:, 4:10] = faulty[:, :6] * rng.poisson(20, (ports, 6))
        rise = np.floor(rise)
        counters = counters + rise
        at_s = START_S + sweep * INTERVAL_S + phase_s + rng.normal(0, 1e-3, ports)
        rates = SampleRates(
            rows,
            at_s,
            np.full(ports, INTERVAL_S),
            rise / INTERVAL_S,
            rise[:, 2:4] * 8 / INTERVAL_S / 10e9 * 100,
            np.zeros(ports, np.uint8),
            np.zeros(ports, np.uint16),
            np.zeros(ports, np.uint16),
        )
        whole = RatedSamples(Samples(rows, at_s, at_s - START_S + 1e6, counters.astype(np.uint64)), rates)
        batches += [
            RatedSamples(whole.samples.take(part), whole.rates.take(part))
            for part in (slice(start, start + BATCH_SAMPLES) for start in range(0, ports, BATCH_SAMPLES))
        ]
    return batches


def size_of(*directories: Path) -> int:
    return sum(path.stat().st_size for directory in directories for path in directory.iterdir())


def by_sink(directory: Path, ports: PortRows, batches: Sequence[RatedSamples], *, with_csv: bool) -> HistorySink:
    settings = HistorySettings(csv=with_csv, backlog_rows=1 << 40)
    sink = HistorySink(directory, settings, ports, LOGGER)
    for batch in batches:
        sink.write(batch)
        while sink.waiting_rows > WAITING_ROWS:
            time.sleep(0.001)
    sink.close()
    return sink


def counter_rows(ports: PortRows, batches: Sequence[RatedSamples]) -> Iterator[tuple[Any, ...]]:
    """Rows of plain Python values, for the peers."""
    for batch in batches:
        names = [ports.name(row)[:2] for row in batch.samples.rows.tolist()]
        for at_s, name, counters in zip(
            batch.samples.at_s.tolist(), names, batch.samples.counters.tolist(), strict=True
        ):
            yield (at_s, *name, *counters)


def by_csv_module(path: Path, ports: PortRows, batches: Sequence[RatedSamples]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("timestamp", "dpid", "port_no", *COUNTERS))
        writer.writerows(counter_rows(ports, batches))


def by_sqlite(path: Path, ports: PortRows, batches: Sequence[RatedSamples]) -> None:
    columns = ", ".join(f"{name} INTEGER" for name in COUNTERS)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(f"CREATE TABLE counters (timestamp REAL, dpid INTEGER, port_no INTEGER, {columns})")
        for batch in batches:
            with database:
                database.executemany(
                    f"INSERT INTO counters VALUES ({', '.join('?' * (3 + COUNTER_COUNT))})",
                    counter_rows(ports, [batch]),
                )


def by_plain_parquet(path: Path, ports: PortRows, batches: Sequence[RatedSamples]) -> None:
    """Counters as pyarrow writes them when nothing is said: one row group per batch, dictionaries, snappy."""
    writer = None
    for batch in batches:
        names = np.array([ports.name(row)[:2] for row in batch.samples.rows.tolist()], np.uint64)
        table = pa.table(
            {
                "timestamp": batch.samples.at_s,
                "dpid": names[:, 0],
                "port_no": names[:, 1],
                **{name: np.ascontiguousarray(batch.samples.counters[:, name.column]) for name in COUNTERS},
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def processor_s(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


def measure_files(ports: PortRows, batches: Sequence[RatedSamples], repeats: int) -> list[Measurement]:
    times: dict[str, list[float]] = {}
    sizes: dict[str, list[float]] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as name:
            measure_once(Path(name), ports, batches, times, sizes)
    return [
        *(Measurement(contender, "us per port sample", values) for contender, values in times.items()),
        *(Measurement(contender, "bytes per counter sample", values) for contender, values in sizes.items()),
    ]


def measure_once(
    root: Path,
    ports: PortRows,
    batches: Sequence[RatedSamples],
    times: dict[str, list[float]],
    sizes: dict[str, list[float]],
) -> None:
    samples = sum(len(batch.samples) for batch in batches)
    parquet, both = root / "parquet", root / "both"
    peer_csv, peer_db, peer_parquet = root / "peer.csv", root / "peer.db", root / "peer.parquet"
    contenders: dict[str, Callable[[], object]] = {
        "Parquet, counters and rates": lambda: by_sink(parquet, ports, batches, with_csv=False),
        "Parquet and CSV, counters and rates": lambda: by_sink(both, ports, batches, with_csv=True),
        "peer: csv module, counters": lambda: by_csv_module(peer_csv, ports, batches),
        "peer: sqlite3, counters": lambda: by_sqlite(peer_db, ports, batches),
        "peer: pyarrow as it comes, counters": lambda: by_plain_parquet(peer_parquet, ports, batches),
    }
    for contender, act in contenders.items():
        times.setdefault(contender, []).append(processor_s(act) / samples * 1e6)
    written = {
        "Parquet, counters": size_of(parquet / RecordKind.COUNTERS),
        "Parquet, counters and rates": size_of(parquet / RecordKind.COUNTERS, parquet / RecordKind.RATES),
        "CSV, counters": sum(path.stat().st_size for path in (both / RecordKind.COUNTERS).glob("*.csv")),
        "peer: csv module, counters": peer_csv.stat().st_size,
        "peer: sqlite3, counters": peer_db.stat().st_size,
        "peer: pyarrow as it comes, counters": peer_parquet.stat().st_size,
    }
    for contender, size_bytes in written.items():
        sizes.setdefault(contender, []).append(size_bytes / (samples * COUNTER_COUNT))
    start = time.perf_counter()
    found = read_history(parquet, RecordKind.RATES, since_s=0, until_s=1e10, ports=[(1, 1)])
    times.setdefault("reading one port back", []).append((time.perf_counter() - start) / samples * 1e6)
    assert found.num_rows == samples // len(ports)


def measure_scrape(ports: PortRows, batches: Sequence[RatedSamples], repeats: int) -> list[Measurement]:
    sink = PrometheusSink(PrometheusSettings(port=0), ports, Overview, dict, LOGGER)

    def write_all() -> None:
        for batch in batches:
            sink.write(batch)

    try:
        taken = [processor_s(write_all) for _ in range(repeats)]
        scrapes, longest, peers = [], [], []
        for _ in range(repeats):
            start = before = time.perf_counter()
            pauses = []
            for _piece in sink.exposition():
                now = time.perf_counter()
                pauses.append(now - before)
                before = now
            scrapes.append(before - start)
            longest.append(max(pauses) * 1e3)
            if importlib.util.find_spec("prometheus_client") is not None:
                peers.append(scrape_of_peer(ports, batches))
    finally:
        sink.close()
    samples = sum(len(batch.samples) for batch in batches)
    found = [
        Measurement("taking samples in for the scrape", "us per port sample", [t / samples * 1e6 for t in taken]),
        Measurement(f"scrape of {len(ports)} ports", "s", scrapes),
        Measurement("its longest piece", "ms", longest),
    ]
    return [*found, Measurement("peer: prometheus_client, counters alone", "s", peers)] if peers else found


def scrape_of_peer(ports: PortRows, batches: Sequence[RatedSamples]) -> float:
    """Seconds in which prometheus_client makes the same counters into text."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily
    from prometheus_client.exposition import generate_latest

    counters = np.zeros((len(ports), COUNTER_COUNT), np.uint64)
    for batch in batches:
        counters[batch.samples.rows] = batch.samples.counters
    labels = [[str(part) for part in ports.name(row)] + ["switch"] for row in range(len(ports))]

    class Collector:
        def collect(self) -> Iterator[Any]:
            for counter in COUNTERS:
                family = CounterMetricFamily(
                    f"vsrt_{counter}", "A counter.", labels=["dpid", "port_no", "port", "class"]
                )
                for names, value in zip(labels, counters[:, counter.column].tolist(), strict=True):
                    family.add_metric(names, value)
                yield family

    registry = CollectorRegistry()
    registry.register(Collector())
    start = time.perf_counter()
    generate_latest(registry)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ports", type=int, default=9600)
    parser.add_argument("--sweeps", type=int, default=60)
    parser.add_argument("--scrape-ports", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    ports = make_ports(args.ports)
    found = measure_files(ports, make_batches(args.ports, args.sweeps, args.seed), args.repeats)
    many = make_ports(args.scrape_ports)
    found += measure_scrape(many, make_batches(args.scrape_ports, 1, args.seed), args.repeats)
    report(found, as_json=args.json, source="performance_output")


if __name__ == "__main__":
    main()
