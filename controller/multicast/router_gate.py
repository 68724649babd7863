"""What the policy, and discovery, say of a host that sends queries or PIM hellos."""

from __future__ import annotations

from typing import Protocol

from controller.admission.admission import Admission
from controller.admission.host import Decision
from controller.config.policy import DEFAULT_RULE
from controller.membership.events import HostRef, RouterVerdict


class DomainGate(Protocol):
    """What is asked of the gate of a domain."""

    @property
    def admission(self) -> Admission:
        """What decides by the policy."""

    def is_spoofed(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether the MAC address is known to live elsewhere, or the IP address to be another's."""

    def spoofed(self, host: HostRef) -> Decision:
        """Return why a host with a false address is refused."""

    def known(self, mac: bytes, dpid: int, port_no: int) -> tuple[bytes, ...] | None:
        """Return the IP addresses that the MAC address holds at the port; None where it is not known there."""


class RouterGate:
    """Judges routers by the rules of role `router`, none whose address is known to be another's."""

    def __init__(self, gate: DomainGate) -> None:
        self._gate = gate

    def judge(self, host: HostRef) -> RouterVerdict | None:
        """Return what is decided, None where no rule is about the host."""
        gate = self._gate
        if gate.is_spoofed(*host[:4]):
            return RouterVerdict(*gate.spoofed(host))
        family = 4 if len(host.ip) == 4 else 6
        known = gate.known(host.mac, host.dpid, host.port_no) or ()
        decision, groups = gate.admission.decide_router(host._replace(known=known), family)
        if decision.rule == DEFAULT_RULE:
            return None
        allowed = None if not decision.admit or groups.holds_every_group(family) else groups
        return RouterVerdict(*decision, allowed)
