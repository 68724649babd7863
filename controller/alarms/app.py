"""The app `alarms`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec


def _core() -> CoreSpec:
    from controller.alarms import events
    from controller.alarms.core import AlarmCore
    from controller.alarms.known import Cable, End
    from controller.snapshot.events import Severity

    return CoreSpec(
        lambda policy, at_s: {"settings": policy.alarms, "topology": policy.topology, "at_s": at_s},
        lambda start, now, _datapath: AlarmCore(start["settings"], start["topology"], now, start["at_s"]),
        lambda policy: events.AlarmsChanged(policy.alarms, policy.topology),
        (events, Severity, Cable, End),
        core=AlarmCore,
    )


APP = AppSpec("alarms", "what is wrong now", _core, needs=("discovery",), rank=80)
