"""The discovery app: finds switches, links and hosts for the other apps, which load it themselves."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar

from apps.openflow.app import App
from apps.openflow.bus import TopologyChanged
from apps.openflow.framework import watch_connections
from apps.policy_file import PolicyFile
from controller.config.policy import Policy
from controller.discovery.core import DiscoveryCore
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from topology.events import TOPOLOGY_EVENTS

SECRET_BYTES = 32


class Discovery(App):
    """Feeds the discovery core and tells the other apps what changed in the fabric."""

    _EVENTS: ClassVar[list[type]] = [TopologyChanged]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        watch_connections()
        self.policy_file = PolicyFile(self.logger)
        settings = _settings(self.policy_file.load())
        secret = os.urandom(SECRET_BYTES)
        self.core: DiscoveryCore = DiscoveryCore(settings, secret)
        self.record(time.monotonic(), settings=settings, secret=secret)

    def ticked(self) -> None:
        """Follow the policy file."""
        policy = self.policy_file.poll()
        if policy is not None:
            self.feed(DiscoveryChanged(_settings(policy)))

    def perform(self, effects: Any) -> None:
        """Carry out effects; topology events among them go to the other apps, in order."""
        changes = tuple(effect for effect in effects if isinstance(effect, TOPOLOGY_EVENTS))
        if not changes:
            super().perform(effects)
            return
        super().perform([effect for effect in effects if not isinstance(effect, TOPOLOGY_EVENTS)])
        self.send_event_to_observers(TopologyChanged(changes))


def _settings(policy: Policy) -> DiscoverySettings:
    return DiscoverySettings(
        lldp_interval_s=policy.discovery.lldp_interval_s,
        missed_count=policy.discovery.missed_count,
        switch_grace_s=policy.discovery.switch_grace_s,
        link_capacity_bps=policy.discovery.link_capacity_bps,
        host_timeout_s=policy.unicast.host_timeout_s,
        hosts_per_port=policy.limits.hosts_per_port,
        addresses_per_host=policy.limits.addresses_per_host,
    )
