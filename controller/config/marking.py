"""What the code points and queues of packets follow from, out of a policy."""

from __future__ import annotations

from typing import NamedTuple

from controller.config.policy import LinkAggregation, Policy, Role, Rule, Tenant
from controller.config.service_class_settings import OFF, QUEUEING
from controller.config.service_classes import ServiceClass
from controller.config.terms import SwitchPort


class Marking(NamedTuple):
    """Who gets which code point; at the ports of `trust` everybody's stays. Nothing is marked unless it `is_used`.

    With `has_queues` packets wait in the queue of their class too, at every port that they leave by.
    """

    is_used: bool = False
    classes: tuple[ServiceClass, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    trust: frozenset[SwitchPort] = frozenset()
    link_aggregations: tuple[LinkAggregation, ...] = ()
    has_queues: bool = False


def marking_of(policy: Policy) -> Marking:
    """Return what a policy says of code points and queues; of one that marks nothing, that alone."""
    if policy.queues.mode == OFF:
        return Marking()
    queues = policy.queues
    has_queues = queues.mode in QUEUEING
    return Marking(True, policy.classes, policy.tenants, queues.trust, policy.link_aggregations, has_queues)


def as_rule(service_class: ServiceClass) -> Rule:
    """Return who and what a class is about, as rules say it."""
    return Rule(
        service_class.name,
        service_class.groups,
        frozenset((Role.SENDER,)),
        allow=True,
        any_host=service_class.any_host or not (service_class.tenants or service_class.hosts),
        tenants=service_class.tenants,
        hosts=service_class.hosts,
        line=service_class.line,
    )
