"""The app `discovery`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec

SECRET_BYTES = 32
"""Of the key by which discovery knows its own LLDP frames."""


def _core() -> CoreSpec:
    from controller.discovery import settings
    from controller.discovery.core import DiscoveryCore
    from controller.discovery.journal import HostsFollowed, HostsRead

    return CoreSpec(
        lambda policy, _at_s: {"settings": settings.of_policy(policy)},
        lambda start, _now, datapath: DiscoveryCore(start["settings"], start["secret"], datapath),
        lambda policy: settings.DiscoveryChanged(settings.of_policy(policy)),
        (settings, HostsRead, HostsFollowed),
        SECRET_BYTES,
        DiscoveryCore,
    )


APP = AppSpec("discovery", "switches, links and hosts", _core, keeps_entries=True, rank=30)
