"""The whole `vsrt diagnose` on a file of a day: seconds, and the most memory of all its processes together."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import Measurement, report

GROUPS = (768, 768, 384, 384)
DAY_SAMPLES = 5760
INTERVAL_S = 15.0
START_S = 1_767_225_600
ROWS_AT_ONCE = 480
LOOK_S = 0.05


class Cost(NamedTuple):
    """What a run took."""

    elapsed_s: float
    peak_mib: float


def write_day(path: Path, seed: int) -> None:
    """Write a day of samples in long form, all members of a time together, of which one is slow for three hours."""
    members = [f"m{group}-{number:03d}" for group, count in enumerate(GROUPS) for number in range(count)]
    groups = np.repeat(np.arange(len(GROUPS), dtype=np.int32), GROUPS)
    values = np.random.default_rng(seed).gamma(2, 3, (DAY_SAMPLES, len(members)))
    values[3000:3720, 5] += 20
    writer = None
    for first in range(0, DAY_SAMPLES, ROWS_AT_ONCE):
        at_s = START_S + INTERVAL_S * np.arange(first + 1, first + ROWS_AT_ONCE + 1)
        table = pa.table(
            {
                "timestamp": np.repeat(at_s, len(members)),
                "member": _texts(np.tile(np.arange(len(members), dtype=np.int32), ROWS_AT_ONCE), members),
                "peer_group": _texts(np.tile(groups, ROWS_AT_ONCE), [f"g{number}" for number in range(len(GROUPS))]),
                "metric": _texts(np.zeros(len(members) * ROWS_AT_ONCE, np.int32), ["await"]),
                "value": values[first : first + ROWS_AT_ONCE].ravel(),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _texts(codes: np.ndarray, names: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(codes, names)


def cost_of(command: list[str], output: Path) -> Cost:
    """Run a command and watch the memory of it and its children, shared pages shared out among them."""
    start = time.perf_counter()
    with output.open("w") as file:
        process = subprocess.Popen(command, stdout=file)
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(_shared_out_kib, _with_children(process.pid))))
            time.sleep(LOOK_S)
    elapsed_s = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}")
    return Cost(elapsed_s, peak / 1024)


def _with_children(pid: int) -> list[int]:
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _with_children(int(child))
    except OSError:
        return found
    return found


def _shared_out_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parquet, text, limits = (Path(folder) / name for name in ("day.parquet", "day.csv", "limits.json"))
        write_day(parquet, args.seed)
        duckdb.sql(f"copy (select * from '{parquet}') to '{text}' (format csv)")
        diagnose = [sys.executable, "-m", "apps.cli.main", "diagnose", "--json", "--input"]
        trained = ["--train", f"{START_S}:{START_S + 43_200}", "--save-thresholds", str(limits)]
        subprocess.run([*diagnose, str(parquet), *trained], check=True, stdout=subprocess.DEVNULL)
        runs = {
            "Parquet, all cores": [*diagnose, str(parquet)],
            "Parquet, one process": [*diagnose, str(parquet), "--jobs", "1"],
            "Parquet, thresholds of an earlier day": [*diagnose, str(parquet), "--thresholds", str(limits)],
            "CSV, all cores": [*diagnose, str(text)],
        }
        costs: dict[str, list[Cost]] = {name: [] for name in runs}
        for _ in range(args.repeats):
            for name, command in runs.items():
                costs[name].append(cost_of(command, Path(folder) / "found.json"))
    measured = [Measurement(f"{name}: elapsed", "s", [one.elapsed_s for one in of]) for name, of in costs.items()]
    measured += [
        Measurement(f"{name}: most memory", "MiB", [one.peak_mib for one in of]) for name, of in costs.items()
    ]
    report(measured, as_json=args.json, source="anomaly_peers_command")


if __name__ == "__main__":
    main()
