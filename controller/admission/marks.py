"""Which code point the packets of a sender get where they enter the fabric: that of its service class (RFC 2474)."""

from __future__ import annotations

from typing import TypeAlias

from controller.admission.host import HostLike
from controller.config.policy import Policy, Role, Rule
from controller.config.rule_index import RuleIndex
from controller.config.service_class_settings import OFF
from controller.config.service_classes import ServiceClass
from controller.kernel.aggregations import aggregations_of

UNMARKED_DSCP = 0
"""The code point of who is in no class, or in one without a code point: best effort (RFC 2474, 4.1)."""

_Said: TypeAlias = tuple[object, ...]

_NOTHING: _Said = ()


class Marks:
    """The code points that a policy gives; none where `queues.mode` is off, nor at ports of `queues.trust`.

    A host behind a link aggregation group is asked about with the port that stands for all of its legs.
    """

    def __init__(self, policy: Policy) -> None:
        self._said = _said(policy)
        self._compile(policy)

    @property
    def are_used(self) -> bool:
        """Whether packets are marked at all."""
        return self._said != _NOTHING

    def replace(self, policy: Policy) -> bool:
        """Go by another policy from now on; False where it says nothing else of code points."""
        said = _said(policy)
        if said == self._said:
            return False
        self._said = said
        self._compile(policy)
        return True

    def dscp(self, host: HostLike, group: bytes) -> int | None:
        """Return the code point of what a host sends to a group (4 or 16 bytes); None where it is left as it is."""
        if not self.are_used or (host.dpid, host.port_no) in self._trusted:
            return None
        found = self.class_of(host, group)
        return UNMARKED_DSCP if found is None or found.dscp is None else found.dscp

    def class_of(self, host: HostLike, group: bytes) -> ServiceClass | None:
        """Return the first class that is about what a host sends to a group, None where there is none."""
        about = self._index.of_group(group, Role.SENDER)
        about &= self._index.of_host(host.mac, host.ip, host.dpid, host.port_no, host.known)
        return self._classes[(about & -about).bit_length() - 1] if about else None

    def _compile(self, policy: Policy) -> None:
        self._classes = policy.classes
        self._index = RuleIndex(tuple(map(_as_rule, policy.classes)), policy.tenants)
        homes = aggregations_of(policy.link_aggregations).homes
        ports = [(port.dpid, port.port_no) for port in policy.queues.trust]
        self._trusted = frozenset(homes.get(port, port) for port in ports)


def _said(policy: Policy) -> _Said:
    """Return all that code points follow from, nothing where packets are not marked."""
    if policy.queues.mode == OFF:
        return _NOTHING
    return policy.classes, policy.tenants, policy.queues.trust, policy.link_aggregations


def _as_rule(service_class: ServiceClass) -> Rule:
    """Return who and what a class is about, as rules say it."""
    return Rule(
        service_class.name,
        service_class.groups,
        frozenset((Role.SENDER,)),
        allow=True,
        any_host=service_class.any_host or not (service_class.tenants or service_class.hosts),
        tenants=service_class.tenants,
        hosts=service_class.hosts,
    )
