"""The app `multicast`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec


def _core() -> CoreSpec:
    from controller.log import LogEntry, LogEntryKind
    from controller.maintenance.errors import ErrorsMeasured
    from controller.maintenance.model import MaintenanceOrder
    from controller.multicast import events
    from controller.multicast.core import MulticastCore
    from controller.service_classes.pool import FlowsUsed

    return CoreSpec(
        lambda policy, _at_s: {"policy": policy},
        lambda start, now, datapath: MulticastCore(start["policy"], now, datapath),
        events.PolicyLoaded,
        (events, LogEntry, LogEntryKind, MaintenanceOrder, FlowsUsed, ErrorsMeasured),
        core=MulticastCore,
    )


APP = AppSpec(
    "multicast",
    "groups, their members, senders and trees",
    _core,
    needs=("discovery", "alarms"),
    keeps_entries=True,
    is_shown=True,
    is_usual=True,
    rank=10,
)
