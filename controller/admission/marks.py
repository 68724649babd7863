"""Which code point and queue the packets of a host get: those of its service class (RFC 2474 for code points)."""

from __future__ import annotations

from typing import NamedTuple

from controller.admission.host import HostLike
from controller.config.code_points import dscp_of, least_important, queue_of_class
from controller.config.marking import Marking, as_rule
from controller.config.rule_index import RuleIndex
from controller.config.service_classes import ServiceClass
from controller.kernel.aggregations import aggregations_of


class Mark(NamedTuple):
    """The service class of packets, None where they are in none, the code point that they get and their queue.

    The code point is None where they keep the one that they have, the queue where there are no queues.
    """

    service_class: str | None
    dscp: int | None
    queue_id: int | None = None


UNMARKED = Mark(None, None)


class Marks:
    """The code points and queues that a policy gives.

    A host behind a link aggregation group is asked about with the port that stands for all of its legs.
    """

    def __init__(self, marking: Marking) -> None:
        self._marking = marking
        self._compile()

    @property
    def are_used(self) -> bool:
        """Whether packets are marked at all."""
        return self._marking.is_used

    def replace(self, marking: Marking) -> bool:
        """Go by another policy from now on; False where it says nothing else of code points and queues."""
        if marking == self._marking:
            return False
        self._marking = marking
        self._compile()
        return True

    def marks_port(self, dpid: int, port_no: int) -> bool:
        """Tell whether packets get a code point at a port; at others they keep the one that they have."""
        return self._marking.is_used and (dpid, port_no) not in self._trusted

    def of(self, host: HostLike, group: bytes) -> Mark:
        """Return the mark of what a host sends to a group (4 or 16 bytes)."""
        if not self._marking.is_used:
            return UNMARKED
        found = self._first(self._index.of_group(group) & self._about(host))
        return self._mark(found, host)

    def of_unicast(self, host: HostLike) -> Mark:
        """Return the mark of what a host sends to other hosts."""
        if not self._marking.is_used:
            return UNMARKED
        return self._mark(self._first(self._without_groups & self._about(host)), host)

    def queue_of_group(self, group: bytes) -> int | None:
        """Return the queue of a group that nobody sends to: that of the first class about it whoever sends."""
        if not self._marking.has_queues:
            return None
        return queue_of_class(self._first(self._index.of_group(group) & self._of_any_host))

    def queues_onward(self) -> dict[int, int]:
        """Return the queue of each code point for packets to one host behind the switch where they entered.

        Packets of classes that share a code point cannot be told apart there: the queue is that of the least
        important one. Best effort counts as a class of its own, of what is in no class.
        """
        if not self._marking.has_queues:
            return {}
        least = least_important(self._marking.classes)
        return {dscp: queue_of_class(service_class) for dscp, service_class in least.items()}

    def _mark(self, found: ServiceClass | None, host: HostLike) -> Mark:
        dscp = dscp_of(found) if self.marks_port(host.dpid, host.port_no) else None
        queue_id = queue_of_class(found) if self._marking.has_queues else None
        return Mark(None if found is None else found.name, dscp, queue_id)

    def _about(self, host: HostLike) -> int:
        return self._index.of_host(host.mac, host.ip, host.dpid, host.port_no, host.known)

    def _first(self, about: int) -> ServiceClass | None:
        return self._marking.classes[(about & -about).bit_length() - 1] if about else None

    def _compile(self) -> None:
        marking = self._marking
        rules = tuple(map(as_rule, marking.classes))
        self._index = RuleIndex(rules, marking.tenants)
        self._of_any_host = sum(1 << number for number, rule in enumerate(rules) if rule.any_host)
        self._without_groups = sum(1 << number for number, each in enumerate(marking.classes) if not each.groups)
        homes = aggregations_of(marking.link_aggregations).homes
        ports = [(port.dpid, port.port_no) for port in marking.trust]
        self._trusted = frozenset(homes.get(port, port) for port in ports)
