"""What the queues of ports follow from, out of a policy."""

from __future__ import annotations

from typing import NamedTuple

from controller.config.policy import Policy
from controller.config.service_class_settings import GOAL, QUEUEING
from controller.config.service_classes import ServiceClass


class QueueSettings(NamedTuple):
    """The mode of queues, the servers by which they are set up, and what their rates follow from.

    `port_capacity_bps` stands for the speed of ports to hosts, as `monitor.port_capacity_bps`; 0 takes that.
    """

    mode: str
    floor_pct: float
    interval_s: float
    servers: tuple[str, ...]
    classes: tuple[ServiceClass, ...]
    port_capacity_bps: float

    @property
    def has_queues(self) -> bool:
        """Whether ports have queues."""
        return self.mode in QUEUEING

    @property
    def follows_goals(self) -> bool:
        """Whether the rates of queues follow goals."""
        return self.mode == GOAL


def of_policy(policy: Policy) -> QueueSettings:
    """Return what a policy says of queues."""
    queues = policy.queues
    return QueueSettings(
        queues.mode,
        queues.floor_pct,
        queues.interval_s,
        queues.ovsdb,
        policy.classes,
        policy.monitor.port_capacity_bps,
    )


class QueuesChanged(NamedTuple):
    """The operator wants other queues from here on."""

    settings: QueueSettings
