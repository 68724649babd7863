"""The app `monitor`, and how its core is made of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.app_spec import AppSpec, CoreSpec, Start

if TYPE_CHECKING:
    from controller.datapath.core import DatapathCore


def _core() -> CoreSpec:
    from controller.performance.poller import StatsReceived
    from controller.performance.poller_core import MonitorChanged, MonitorCore
    from controller.performance.shared_polls import SharedMonitorCore, SharesConfirmed, SharesLeft, SharesTaken

    def make(start: Start, now: float, _datapath: DatapathCore | None) -> MonitorCore:
        core = SharedMonitorCore if start["monitor"].share == "cluster" else MonitorCore
        return core(start["monitor"], now, start["at_s"])

    return CoreSpec(
        lambda policy, at_s: {"monitor": policy.monitor, "at_s": at_s},
        make,
        lambda policy: MonitorChanged(policy.monitor),
        (StatsReceived, MonitorChanged, SharesConfirmed, SharesLeft, SharesTaken),
        core=MonitorCore,
    )


APP = AppSpec("monitor", "what ports and links carry", _core, is_shown=True, is_usual=True, rank=40)
