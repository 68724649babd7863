"""What another policy would have decided about those that an audit log has."""

from __future__ import annotations

from typing import Any, NamedTuple

from controller.admission import Admission, Decision, Host, Role
from controller.config.policy import Policy
from controller.kernel.domains import address_of, domain_of
from controller.policy_discovery.observations import Asked, Observations
from controller.wire.addresses import format_ip, format_mac


class Otherwise(NamedTuple):
    """A host, role, group and source of which the policies decide otherwise: what was last, and what would be."""

    asked: Asked
    staged: Decision
    days: int


class Comparison(NamedTuple):
    """How much both policies decide alike, and who would be refused, or admitted, instead."""

    alike: int
    refused: tuple[Otherwise, ...]
    admitted: tuple[Otherwise, ...]


def compare(observed: Observations, staged: Policy) -> Comparison:
    """Return what a policy would decide otherwise, of each host by its addresses and the port where it was last."""
    admission = Admission(staged)
    alike = 0
    found: dict[bool, list[Otherwise]] = {True: [], False: []}
    for pair in (*observed.received.values(), *observed.sent.values()):
        asked = pair.newest
        host = Host(asked.mac, asked.address, *asked.port, known=tuple(sorted(observed.hosts[asked.mac].addresses)))
        group = asked.group
        decision = admission.explain(host, address_of(group), Role(asked.role), asked.source, domain_of(group))
        if decision.admit == asked.admit:
            alike += 1
        else:
            found[decision.admit].append(Otherwise(asked, decision, len(pair.days)))
    for some in found.values():
        some.sort(key=lambda one: (one.asked.role, domain_of(one.asked.group), one.asked.group, one.asked.mac))
    return Comparison(alike, tuple(found[False]), tuple(found[True]))


def comparison_document(found: Comparison) -> dict[str, Any]:
    """Return a comparison as a document that JSON can write."""

    def told(some: tuple[Otherwise, ...]) -> list[dict[str, Any]]:
        return [
            {
                "role": one.asked.role,
                "group": format_ip(one.asked.group),
                "source": None if one.asked.source is None else format_ip(one.asked.source),
                "host": {
                    "mac": format_mac(one.asked.mac),
                    "ip": None if one.asked.address is None else format_ip(one.asked.address),
                    "dpid": one.asked.port.dpid,
                    "port_no": one.asked.port.port_no,
                },
                "rule": one.asked.rule,
                "staged_rule": one.staged.rule,
                "reason": one.staged.reason,
                "last_s": one.asked.time_s,
                "days": one.days,
            }
            for one in some
        ]

    return {"alike": found.alike, "refused": told(found.refused), "admitted": told(found.admitted)}
