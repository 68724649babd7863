"""The app `anomaly`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec


def _core() -> CoreSpec:
    from controller.anomaly.live import AnomalyCore
    from controller.anomaly.live_events import AnomalyChanged

    return CoreSpec(
        lambda policy, _at_s: {"settings": policy.anomaly, "poll_s": policy.monitor.longest_interval_s()},
        lambda start, _now, _datapath: AnomalyCore(start["settings"], start["poll_s"]),
        lambda policy: AnomalyChanged(policy.anomaly, policy.monitor.longest_interval_s()),
    )


APP = AppSpec("anomaly", "ports unlike their peers", _core, needs=("discovery",), is_usual=True, rank=70)
