"""Ports whose other ends speak LACP, and which no link aggregation group of the policy names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from controller.config.policy import LinkAggregation
from controller.kernel.ports import End
from controller.wire.addresses import format_mac
from controller.wire.packets import LacpEnd

QUIET_S = 60
"""How long the LACP of such a port is kept away after each data unit."""

PORTS_BOUND = 4096
"""Ports that are remembered; what is heard at further ones is counted alone."""

LEGS_AT_MOST = 16
_AGGREGATOR = tuple[bytes, int]


class UndeclaredBonds:
    """Knows by system and key which ports look like legs of one bond.

    `counted` takes a kind, the port, what it does and the time.
    """

    def __init__(self, groups: tuple[LinkAggregation, ...], counted: Callable[[str, End, str, float], None]) -> None:
        self._counted = counted
        self._named: frozenset[End] = frozenset()
        self._partners: dict[End, _AGGREGATOR] = {}
        self.use(groups)

    def use(self, groups: Iterable[LinkAggregation]) -> None:
        """Go by other groups."""
        self._named = frozenset((port.dpid, port.port_no) for group in groups for port in group.ports)
        for end in self._partners.keys() & self._named:
            del self._partners[end]

    def heard(self, end: End, actor: LacpEnd, now: float) -> bool:
        """Take in who speaks LACP at a port, and tell whether no group names it."""
        if end in self._named:
            return False
        partner = (actor.system, actor.key)
        if self._partners.get(end) != partner:
            if end not in self._partners and len(self._partners) >= PORTS_BOUND:
                self._counted("lacp-undeclared", end, "receives LACP, and no link aggregation group names it", now)
                return True
            self._partners[end] = partner
            self._counted("lacp-undeclared", end, self._text(partner), now)
        return True

    def ends(self) -> Iterable[End]:
        """Return the ports that are remembered."""
        return self._partners.keys()

    def gone(self, end: End) -> None:
        """Forget a port that is down, or none any more."""
        self._partners.pop(end, None)

    def _text(self, partner: _AGGREGATOR) -> str:
        system, key = partner
        text = f"receives LACP of the system {format_mac(system)} (key {key}), and no link aggregation group names it"
        legs = sorted(end for end, other in self._partners.items() if other == partner)
        if len(legs) < 2:
            return text
        named = ", ".join(f"{dpid}:{port_no}" for dpid, port_no in legs[:LEGS_AT_MOST])
        ports = ", ".join(f"{{dpid: {dpid}, port: {port_no}}}" for dpid, port_no in legs[:LEGS_AT_MOST])
        line = f"bond-{system.hex()}-{key}: {{mode: lacp, ports: [{ports}]}}"
        return f"{text}; ports {named} look like one bond, which this line under link_aggregations declares: {line}"
