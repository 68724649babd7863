"""Monitors that give their switches to others before they are serviced: what is put, and when it is refused."""

from __future__ import annotations

from collections.abc import Mapping

from controller.cluster.engine import Delete, PutKey, Transaction
from controller.cluster.keys import Keys
from controller.cluster.share_records import MonitorRecord, ShareView
from controller.wire.dpids import format_dpid

NAMED = 8
"""Switches that are named in a refusal, at most; of the others it says how many."""


class DrainRefused(ValueError):  # noqa: N818
    """A monitor is not drained, or is not drained no longer; the text, for who asked, says why."""


def draining(keys: Keys, view: ShareView, monitor: str) -> Transaction | None:
    """Return what leaves a monitor without switches; None where it is drained already.

    It is done only where none was drained since `view`, so that no two that rely on each other are drained at once.

    Raises
    ------
    DrainRefused
        Where there is no such monitor, or switches of its own would have no other.
    """
    monitors, drained = view.monitors(), view.drained()
    record = _there(monitors, monitor)
    if monitor in drained:
        return None
    rest = {name: each for name, each in monitors.items() if name != monitor and name not in drained}
    reached = {dpid for each in rest.values() for dpid in each.switches}
    alone = sorted(record.switches.keys() - reached)
    if alone:
        named = ", ".join(map(format_dpid, alone[:NAMED]))
        more = f" and {len(alone) - NAMED} others" if len(alone) > NAMED else ""
        raise DrainRefused(
            f"{monitor} is not drained: no other monitor that is not drained is connected to {len(alone)} of its "
            f"{len(record.switches)} switches ({named}{more})."
        )
    conditions = (view.condition(f"{keys.monitors}{monitor}"), view.condition(keys.drains))
    puts = PutKey(f"{keys.drained}{monitor}", record.incarnation), PutKey(keys.drains, monitor)
    return Transaction(conditions, puts)


def undraining(keys: Keys, view: ShareView, monitor: str) -> Transaction | None:
    """Return what has a monitor take its part again, None where it does; DrainRefused where it is not there."""
    _there(view.monitors(), monitor)
    if monitor not in view.drained():
        return None
    key = f"{keys.drained}{monitor}"
    return Transaction((view.condition(key),), (Delete(key),))


def _there(monitors: Mapping[str, MonitorRecord], monitor: str) -> MonitorRecord:
    record = monitors.get(monitor)
    if record is None:
        raise DrainRefused(f"There is no monitor {monitor!r}: there are {', '.join(sorted(monitors)) or 'none'}.")
    return record
