"""The app `monitor`, and how its core is made of the policy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controller.app_spec import AppSpec, CoreSpec, Start

if TYPE_CHECKING:
    from controller.config.policy import Policy
    from controller.config.settings import Monitor
    from controller.datapath.core import DatapathCore


def _core() -> CoreSpec:
    from controller.performance.poller_core import MonitorChanged, MonitorCore
    from controller.performance.requests import StatsReceived
    from controller.performance.shared_polls import SharedMonitorCore, SharesConfirmed, SharesLeft, SharesTaken

    def make(start: Start, now: float, _datapath: DatapathCore | None) -> MonitorCore:
        core = SharedMonitorCore if start["monitor"].share == "cluster" else MonitorCore
        return core(start["monitor"], now, start["at_s"])

    def monitor_of(policy: Policy) -> Monitor:
        """Return the settings: where trees go by port metrics the monitor tells them nothing."""
        return replace(policy.monitor, feed_trees=False) if policy.allocation.trees else policy.monitor

    return CoreSpec(
        lambda policy, at_s: {"monitor": monitor_of(policy), "at_s": at_s},
        make,
        lambda policy: MonitorChanged(monitor_of(policy)),
        (StatsReceived, MonitorChanged, SharesConfirmed, SharesLeft, SharesTaken),
        core=MonitorCore,
    )


APP = AppSpec("monitor", "what ports and links carry", _core, is_shown=True, is_usual=True, rank=40)
