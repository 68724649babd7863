"""What monitors that share the switches are about, as whoever knows the keys of the store sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from controller.cluster.share_records import ShareView


class MonitorState(NamedTuple):
    """A monitor.

    Attributes
    ----------
    divides
        Whether it is the one that says who polls what.
    drained
        Whether it is to have no switches but those that no other is connected to.
    metrics
        Where its metrics are scraped, ``HOST:PORT``; '' for nowhere.
    connected, switches, ports
        Switches that it is connected to; those of them that it polls, and their ports.
    leaving
        Switches that are another's next, and that it has not said it polls no more.
    load_pct
        Its part of what all monitors poll in a second, in percent; None where nobody polls anything.
    """

    divides: bool
    drained: bool
    metrics: str
    connected: int
    switches: int
    ports: int
    leaving: int
    load_pct: float | None


class MonitorsSeen(NamedTuple):
    """The monitors, by name, and how many switches that one is connected to are polled by none."""

    states: Mapping[str, MonitorState]
    unowned: int


def seen_of(view: ShareView) -> MonitorsSeen:
    """Return what the keys of monitors say."""
    return MonitorsSeen(monitor_states(view), len(view.unowned()))


def monitor_states(view: ShareView) -> dict[str, MonitorState]:
    """Return the monitors that are there, by name."""
    monitors, drained, manager = view.monitors(), view.drained(), view.manager
    names = {monitor.incarnation: name for name, monitor in monitors.items()}
    switches, ports, leaving = Counter[str](), Counter[str](), Counter[str]()
    load: dict[str, float] = dict.fromkeys(monitors, 0.0)
    for dpid, share in view.shares().items():
        owner = names.get(share.incarnation)
        if share.former in names:
            leaving[names[share.former]] += 1
        if owner is None:
            continue
        polled = monitors[owner].switches.get(dpid)
        if polled is not None:  # of a switch that nobody is connected to the last share stays
            switches[owner] += 1
            ports[owner] += polled.ports
            load[owner] += polled.ports_per_s
    whole = sum(load.values())
    return {
        name: MonitorState(
            manager is not None and manager.incarnation == monitor.incarnation,
            name in drained,
            monitor.metrics,
            len(monitor.switches),
            switches[name],
            ports[name],
            leaving[name],
            round(100 * load[name] / whole, 1) if whole else None,
        )
        for name, monitor in monitors.items()
    }
