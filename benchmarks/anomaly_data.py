"""Public data sets as metric files, for `vsrt diagnose` and `vsrt normalcy`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from anomaly_peers import asd_series, fabric_series

from controller.anomaly.series import RawSeries


def write_long(path: Path, series: list[RawSeries]) -> None:
    """Write series as Parquet in long form, series by series."""
    lengths = [len(one.at_s) for one in series]
    columns: dict[str, pa.Array] = {"timestamp": pa.array(np.concatenate([one.at_s for one in series]))}
    for field in ("member", "peer_group", "metric"):
        names = sorted({getattr(one.name, field) for one in series})
        codes = np.repeat([names.index(getattr(one.name, field)) for one in series], lengths).astype(np.int32)
        columns[field] = pa.DictionaryArray.from_arrays(codes, names)
    columns["value"] = pa.array(np.concatenate([one.values for one in series]))
    pq.write_table(pa.table(columns), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("fabric", "asd"))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of the data set")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    if args.what == "fabric":
        write_long(args.output, fabric_series(args.data))
        return
    series, _, test_from_s = asd_series(args.data)
    write_long(args.output, series)
    print(f"the training part ends at {test_from_s:.0f}")


if __name__ == "__main__":
    main()
