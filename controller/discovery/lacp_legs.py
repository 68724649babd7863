"""The ports that speak LACP: when they begin and end, what brings data units here, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from controller.config.policy import LinkAggregation
from controller.discovery.base_rules import lacp_rules, undeclared_rule
from controller.discovery.lacp import Lacp
from controller.discovery.ports import PortState
from controller.discovery.timers import Timer, TimerKind
from controller.discovery.undeclared_bonds import QUIET_S, UndeclaredBonds
from controller.effects import Edit, Notice, Put, Remove, SendPacket
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End
from controller.rules.model import FlowEntry
from controller.wire.packets import Lacpdu


class LacpLegsOwner(Protocol):
    """What the core around has done."""

    def emit(self, output: SendPacket) -> None:
        """Take a frame."""

    def install(self, dpid: int, edits: list[Edit], now: float) -> None:
        """Have flow entries put and removed."""

    def install_for_a_while(self, dpid: int, rule: FlowEntry) -> None:
        """Have a flow entry put that ends by itself."""

    def tell(self, notice: Notice) -> None:
        """Give a notice that is to be told each time."""

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count something odd, and tell of it now and then."""

    def role_may_differ(self, port: PortState, now: float) -> None:
        """Announce the role of a port, if it has changed."""


class LacpLegs:
    """Runs `lacp` for the ports that are up, of those that the policy has in groups in mode `lacp`.

    `ports` are kept by the owner; the owner calls `lacp.due` for the timers that are set in `deadlines`.
    """

    def __init__(
        self,
        groups: tuple[LinkAggregation, ...],
        ports: Mapping[End, PortState],
        deadlines: Deadlines[Timer],
        owner: LacpLegsOwner,
    ) -> None:
        self.lacp = Lacp(groups, self)
        self.undeclared = UndeclaredBonds(groups, owner.counted, self.lacp.group_of)
        self._ports = ports
        self._deadlines = deadlines
        self._owner = owner
        self._entered: set[End] = set()
        self.counted = owner.counted

    def use(self, groups: tuple[LinkAggregation, ...], now: float) -> None:
        """Go by other groups: ports of which other things are said begin anew."""
        self.undeclared.use(groups)
        for end in self.lacp.use(groups):
            self._bundled(end, end not in self.lacp.places, now)
            self.follow(end, now)

    def received(self, end: End, pdu: Lacpdu, now: float) -> None:
        """Take in what the other end of a port says; where no group names the port, it is kept quiet for a while."""
        if self.undeclared.heard(end, pdu.actor, now):
            self._owner.install_for_a_while(end[0], undeclared_rule(end[1], QUIET_S))
        else:
            self.lacp.received(end, pdu, now)

    def follow_switch(self, dpid: int, now: float) -> None:
        """Follow what became of a switch's ports, or that it is gone."""
        known = self.lacp.places.keys() | self._entered | set(self.undeclared.ends())
        for end in sorted(end for end in known if end[0] == dpid):
            self.follow(end, now)

    def follow(self, end: End, now: float) -> None:
        """Have a port speak LACP while it is up and the policy has it in a group that does."""
        port = self._ports.get(end)
        if port is None or not port.up:
            self.undeclared.gone(end)
        is_known = end in self.lacp.places and port is not None
        if is_known is not (end in self._entered):
            self._entered.symmetric_difference_update((end,))
            edits: list[Edit] = [Put(rule) if is_known else Remove(rule.key) for rule in lacp_rules(end[1])]
            self._owner.install(end[0], edits, now)
        if is_known and port is not None and port.up:
            self.lacp.up(end, now)
        else:
            self.lacp.down(end)

    # What the machines ask

    def send_lacpdu(self, end: End, frame: bytes) -> None:
        """Send a frame out of a port."""
        self._owner.emit(SendPacket(end[0], (end[1],), frame))

    def wake_lacp(self, end: End, due_s: float) -> None:
        """Have `Lacp.due` called for a port at a time, and at no other."""
        self._deadlines.set(Timer(TimerKind.LACP, end), due_s)

    def leg_works(self, end: End, works: bool, now: float) -> None:
        """Use a leg from now on, or no longer, and tell of it."""
        place = f"Port {end[0]}:{end[1]}"
        group = self.lacp.places[end].group
        text = f"{place} is a working leg of {group}: the other end is in step by LACP."
        leg = self.lacp.leg(end)
        if works and leg is not None and leg.is_impatient:
            text = (
                f"{text} It wants to hear of the controller each second and gives the leg up after 3 s without, as "
                "while the controller is away; with LACP's slow rate it does not."
            )
        if not works:
            text = f"{place} is no working leg of {group} any more: the other end is not in step by LACP."
        kind = "lacp-leg-up" if works else "lacp-leg-down"
        self._bundled(end, works, now)
        self._owner.tell(Notice(kind, text, (("dpid", end[0]), ("port_no", end[1]))))

    def _bundled(self, end: End, is_bundled: bool, now: float) -> None:
        port = self._ports.get(end)
        if port is not None and port.is_bundled is not is_bundled:
            port.is_bundled = is_bundled
            self._owner.role_may_differ(port, now)
