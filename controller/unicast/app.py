"""The app `unicast`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec


def _core() -> CoreSpec:
    from controller.multicast.events import LoadsMeasured
    from controller.service_classes.pool import AliasesUsed
    from controller.unicast import settings, weights
    from controller.unicast.core import UnicastCore

    return CoreSpec(
        lambda policy, _at_s: {"settings": settings.of_policy(policy)},
        lambda start, _now, datapath: UnicastCore(start["settings"], datapath),
        lambda policy: settings.UnicastChanged(settings.of_policy(policy)),
        (settings, weights, LoadsMeasured, AliasesUsed),
        core=UnicastCore,
    )


APP = AppSpec(
    "unicast", "shortest paths between hosts", _core, needs=("discovery",), keeps_entries=True, is_usual=True, rank=20
)
