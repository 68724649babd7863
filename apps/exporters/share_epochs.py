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


class EpochsSeen:
    """Which rows count, told of slices whose rows are in the order of their times, and later than those before."""

    def __init__(self) -> None:
        self._latest: dict[int, int] = {}

    def counted(
        self, at_us: NDArray[np.int64], dpid: NDArray[np.uint64], epoch: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which rows of a slice count, as `counted_rows` has it.

        Parameters
        ----------
        at_us, dpid, epoch
            The rows; the epoch of one without is -1, and it counts.
        """
        keep = np.ones(len(at_us), np.bool_)
        encoded = pa.array(dpid).dictionary_encode()
        place, dpids = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        before = np.array([self._latest.get(each, -1) for each in dpids], np.int64)
        latest = before.copy()
        np.maximum.at(latest, place, epoch)
        changed = latest != before
        self._latest |= zip(np.array(dpids, object)[changed].tolist(), latest[changed].tolist(), strict=True)
        low = np.flatnonzero((epoch < latest[place]) & (epoch >= 0))
        if not len(low):
            return keep
        concerned = np.flatnonzero(np.isin(place, np.unique(place[low])))
        first: dict[int, list[tuple[int, int]]] = {
            int(each): [(int(before[each]), int(np.iinfo(np.int64).min))] for each in np.unique(place[concerned])
        }
        for at in concerned[_rises(place[concerned], epoch[concerned])].tolist():
            if epoch[at] > first[place[at]][-1][0]:
                first[place[at]].append((int(epoch[at]), int(at_us[at])))
        pairs, of_pair = np.unique(np.stack([place[low], epoch[low]]), axis=1, return_inverse=True)
        ends_us = [min(at for later, at in first[of] if later > than) for of, than in pairs.T.tolist()]
        keep[low] = at_us[low] < np.array(ends_us, np.int64)[of_pair.reshape(-1)]
        return keep


def _rises(place: NDArray[np.int32], epoch: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are the first of a switch, or have another epoch than the row of the switch before."""
    order = np.argsort(place, kind="stable")
    other = np.append(True, (place[order][1:] != place[order][:-1]) | (epoch[order][1:] != epoch[order][:-1]))
    rises = np.zeros(len(place), np.bool_)
    rises[order[other[: len(order)]]] = True
    return rises
