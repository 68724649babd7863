"""Rows of monitors that share the switches: which count where two of them polled one switch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

EPOCH = "share_epoch"


def counted_rows(table: pa.Table) -> NDArray[np.bool_]:
    """Return which rows count: of an epoch of a switch those before the first row of a later epoch.

    Parameters
    ----------
    table
        Rows with `timestamp`, `dpid` and `share_epoch`, in any order; those without an epoch count.
    """
    spans = table.group_by(["dpid", EPOCH]).aggregate([("timestamp", "min"), ("timestamp", "max")])
    spans = spans.filter(pc.is_valid(spans.column(EPOCH))).sort_by([("dpid", "ascending"), (EPOCH, "descending")])
    dpid, epoch = spans.column("dpid").to_numpy(), spans.column(EPOCH).to_numpy()
    first_us, last_us = (
        spans.column(name).to_numpy().astype(np.int64) for name in ("timestamp_min", "timestamp_max")
    )
    ends_us = np.full(len(dpid), np.iinfo(np.int64).max)
    for place in range(1, len(dpid)):
        if dpid[place] == dpid[place - 1]:
            ends_us[place] = min(first_us[place - 1], ends_us[place - 1])
    keep = np.ones(table.num_rows, np.bool_)
    late = np.flatnonzero(last_us >= ends_us)
    if not len(late):
        return keep
    row_dpid = table.column("dpid").to_numpy()
    row_epoch = pc.fill_null(table.column(EPOCH), -1).to_numpy()
    row_us = table.column("timestamp").cast(pa.int64()).to_numpy()
    chosen = np.flatnonzero(np.isin(row_dpid, dpid[late]))
    ends = {(int(dpid[place]), int(epoch[place])): int(ends_us[place]) for place in late}
    pairs, of_pair = np.unique(
        np.stack([row_dpid[chosen].astype(np.int64), row_epoch[chosen]]), axis=1, return_inverse=True
    )
    bound_us = np.array([ends.get((int(d) % (1 << 64), int(e)), np.iinfo(np.int64).max) for d, e in pairs.T])
    keep[chosen] = row_us[chosen] < bound_us[of_pair.reshape(-1)]
    return keep
