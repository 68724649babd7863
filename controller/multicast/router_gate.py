"""What the policy, and discovery, say of a host that sends queries or PIM hellos."""

from __future__ import annotations

from controller.config.policy import DEFAULT_RULE
from controller.membership.events import HostRef, RouterVerdict
from controller.multicast.gate import Gate


class RouterGate:
    """Judges routers by the rules of role `router`, none whose address is known to be another's."""

    def __init__(self, gate: Gate) -> None:
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
