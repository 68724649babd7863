"""The app `cluster`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec


def _core() -> CoreSpec:
    from controller.cluster.place import PlaceCore
    from controller.events import DeadlineReached

    return CoreSpec(
        lambda policy, _at_s: {"lease_s": policy.cluster.lease_s},
        lambda start, _now, datapath: PlaceCore(start["lease_s"], datapath),
        lambda _policy: DeadlineReached(),
    )


APP = AppSpec("cluster", "which of several controllers leads", _core, module="apps.cluster.app", rank=90)
