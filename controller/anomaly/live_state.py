"""What the live comparison keeps over restarts: what it learnt of each member, and its open anomalies."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import MemberKey, OpenAnomaly
from controller.anomaly.live_members import NO_ROW
from controller.anomaly.live_windows import chain_of

STATE_VERSION = 3
_ARRAYS = ("windows", "largest", "largest_own", "recent", "quiet", "accumulator", "reference", "usual")
_OPEN_FIELDS = tuple(field for field in OpenAnomaly._fields if field != "key")
BINS_AT_MOST = 100_000


class AnomalyStateError(ValueError):
    """State that makes no sense; the text says what of it."""


class MemberState(NamedTuple):
    """A member as it is kept: `learnt` are its rows of the arrays one behind the other, `opened` JSON or None."""

    dpid: int
    port_no: int
    peer_group: str
    learnt: bytes
    opened: str | None


class BinsState(NamedTuple):
    """The bins learnt of a metric of a group, float64 one behind the other."""

    peer_group: str
    metric: str
    sizes: bytes


class AnomalyState(NamedTuple):
    """All or some of what is kept; `chain` says what it holds for."""

    chain: str
    members: tuple[MemberState, ...]
    bins: tuple[BinsState, ...]
    forgotten: tuple[MemberKey, ...] = ()


def changes(core: AnomalyCore, limit: int) -> AnomalyState:
    """Return what changed and was not returned yet, of at most `limit` members."""
    keys = [key for key, _ in zip(core.dirty, range(limit), strict=False)]
    members = []
    for key in keys:
        del core.dirty[key]
        row = core.members.row(key)
        group = None if row == NO_ROW else core.members.groups[row]
        if group is not None:
            opened = core.open.get(key)
            text = None if opened is None else json.dumps([getattr(opened, field) for field in _OPEN_FIELDS])
            members.append(MemberState(*key, group, _packed(core, row, group), text))
    groups = {member.peer_group for member in members}
    bins = tuple(
        BinsState(group, metric, np.array(sizes, "<f8").tobytes())
        for group in sorted(groups)
        for metric, sizes in core.learning.bins(group).items()
    )
    forgotten, core.forgotten = tuple(core.forgotten), []
    return AnomalyState(core.chain, tuple(members), bins, forgotten)


def all_changed(core: AnomalyCore) -> None:
    """Have everything returned by `changes` once more."""
    core.dirty.update(dict.fromkeys(key for key in core.members.keys if key is not None))


def restore(core: AnomalyCore, state: AnomalyState) -> int:
    """Take what an earlier run learnt, before any event, and return of how many members.

    What holds for another chain is left out, group by group, but for open anomalies, which are cleared when their
    members are well.
    AnomalyStateError where it is damaged; nothing is taken then.
    """
    checked = [(member, *_unpacked(core, member, state.chain)) for member in state.members]
    sizes = [(*each[:2], _sizes(each)) for each in state.bins]
    for group, metric, found in sizes:
        if _holds(core, state.chain, group):
            core.learning.restore_bins(group, metric, found)
    taken = 0
    for member, arrays, opened in checked:
        row = core.add_member((member.dpid, member.port_no))
        if row == NO_ROW:
            continue
        taken += 1
        core.members.groups[row] = member.peer_group
        for name, table in _learnt(core, member.peer_group).items() if arrays else ():
            table[row] = arrays[name]
        if opened is not None:
            core.open[opened.key] = opened
            if not opened.part_of:
                core.faults.told[opened.key] = opened
    return taken


def _holds(core: AnomalyCore, chain: str, group: str) -> bool:
    """Return whether what was learnt with a chain holds for a peer group at present."""
    return chain_of(chain, group) == chain_of(core.chain, group)


def _learnt(core: AnomalyCore, group: str) -> dict[str, NDArray[Any]]:
    """Return views of the arrays, with as many samples of the own past as the windows of a peer group have."""
    found = {name: getattr(core.learning, name) for name in _ARRAYS}
    found["reference"] = found["reference"][:, :, : core.learning.groups.of(group).window_samples]
    return found


def _packed(core: AnomalyCore, row: int, group: str) -> bytes:
    return b"".join(np.asarray(array[row]).tobytes() for array in _learnt(core, group).values())


def _unpacked(
    core: AnomalyCore, member: MemberState, chain: str
) -> tuple[dict[str, NDArray[Any]], OpenAnomaly | None]:
    name = f"{member.dpid}:{member.port_no}"
    opened = None if member.opened is None else _opened(member)
    if not _holds(core, chain, member.peer_group):
        return {}, opened
    arrays: dict[str, NDArray[Any]] = {}
    place = 0
    for field, table in _learnt(core, member.peer_group).items():
        shape = table.shape[1:]
        count = int(np.prod(shape))
        size = count * table.itemsize
        if place + size > len(member.learnt):
            raise AnomalyStateError(f"{name}: {len(member.learnt)} bytes are too few")
        arrays[field] = np.frombuffer(member.learnt, table.dtype, count, place).reshape(shape)
        place += size
    if place != len(member.learnt):
        raise AnomalyStateError(f"{name}: {len(member.learnt)} bytes, expected {place}")
    for field, array in arrays.items():
        negative = field != "reference" and bool((array < 0).any())
        if negative or not np.isfinite(array).all():
            raise AnomalyStateError(f"{name}: {field} makes no sense")
    return arrays, opened


def _opened(member: MemberState) -> OpenAnomaly:
    try:
        values = json.loads(str(member.opened))
        found = OpenAnomaly((member.dpid, member.port_no), *values)
        named = ("member", "peer_group", "metric", "text", "other_end", "part_of")
        texts = all(isinstance(getattr(found, field), str) for field in named)
        if texts and np.isfinite(float(found.since_s)) and np.isfinite(float(found.score)):
            return found
    except (TypeError, ValueError):
        pass
    raise AnomalyStateError(f"{member.dpid}:{member.port_no}: its open anomaly makes no sense")


def _sizes(bins: BinsState) -> list[float]:
    if len(bins.sizes) % 8 or len(bins.sizes) > 8 * BINS_AT_MOST:
        raise AnomalyStateError(f"{bins.peer_group}: bins of {bins.metric}: {len(bins.sizes)} bytes")
    found = np.frombuffer(bins.sizes, "<f8")
    if not (np.isfinite(found) & (found > 0)).all():
        raise AnomalyStateError(f"{bins.peer_group}: bins of {bins.metric} are not positive")
    return [float(size) for size in found]
