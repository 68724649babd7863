"""What the code points of packets follow from, out of a policy."""

from __future__ import annotations

from typing import NamedTuple

from controller.config.policy import LinkAggregation, Policy, Tenant
from controller.config.service_class_settings import OFF
from controller.config.service_classes import ServiceClass
from controller.config.terms import SwitchPort


class Marking(NamedTuple):
    """Who gets which code point; at the ports of `trust` everybody's stays. Nothing is marked unless it `is_used`."""

    is_used: bool = False
    classes: tuple[ServiceClass, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    trust: frozenset[SwitchPort] = frozenset()
    link_aggregations: tuple[LinkAggregation, ...] = ()


def marking_of(policy: Policy) -> Marking:
    """Return what a policy says of code points; of one that marks nothing, that alone."""
    if policy.queues.mode == OFF:
        return Marking()
    return Marking(True, policy.classes, policy.tenants, policy.queues.trust, policy.link_aggregations)
