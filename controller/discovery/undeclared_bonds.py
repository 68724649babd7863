"""Ports whose other ends speak LACP, and which no link aggregation group of the policy names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from controller.config.policy import LinkAggregation
from controller.kernel.ports import End
from controller.wire.addresses import format_mac
from controller.wire.packets import LacpEnd

QUIET_S = 60
"""How long the LACP of such a port is kept away after each data unit."""

LATELY_S = 3.0 * QUIET_S
"""What was heard within this is told when somebody asks."""

PORTS_BOUND = 4096
"""Ports that are remembered; what is heard at further ones is counted alone."""

LEGS_AT_MOST = 16
_AGGREGATOR = tuple[bytes, int]


class UndeclaredBonds:
    """Knows by system and key which ports look like legs of one bond.

    `counted` takes a kind, the port, what it does and the time; `group_of` returns the group whose legs lead to a
    system with a key, None where none does.
    """

    def __init__(
        self,
        groups: tuple[LinkAggregation, ...],
        counted: Callable[[str, End, str, float], None],
        group_of: Callable[[bytes, int], str | None],
    ) -> None:
        self._counted = counted
        self._group_of = group_of
        self._named: frozenset[End] = frozenset()
        self._partners: dict[End, _AGGREGATOR] = {}
        self._heard_s: dict[End, float] = {}
        self.use(groups)

    def use(self, groups: Iterable[LinkAggregation]) -> None:
        """Go by other groups."""
        self._named = frozenset((port.dpid, port.port_no) for group in groups for port in group.ports)
        for end in self._partners.keys() & self._named:
            self.gone(end)

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
        self._heard_s[end] = now
        return True

    def findings(self, now: float) -> list[dict[str, Any]]:
        """Return what `vsrt check` tells: each system and key heard lately, with the line that declares the bond.

        A finding has `kind`, `text`, and `dpid` and `port_no` of the first port that hears it.
        """
        lately = [end for end, heard_s in self._heard_s.items() if now - heard_s <= LATELY_S]
        found = []
        for partner in dict.fromkeys(self._partners[end] for end in sorted(lately)):
            legs = [end for end in self._ends(partner) if end in lately]
            found.append(_finding(partner, legs, self._group_of(*partner)))
        return found

    def ends(self) -> Iterable[End]:
        """Return the ports that are remembered."""
        return self._partners.keys()

    def gone(self, end: End) -> None:
        """Forget a port that is down, or none any more."""
        self._partners.pop(end, None)
        self._heard_s.pop(end, None)

    def _ends(self, partner: _AGGREGATOR) -> list[End]:
        return sorted(end for end, other in self._partners.items() if other == partner)

    def _text(self, partner: _AGGREGATOR) -> str:
        text = f"receives {_lacp_of(partner)}, and no link aggregation group names it"
        group, legs = self._group_of(*partner), self._ends(partner)
        if group is not None:
            return f"{text}; {_moved(group)}"
        if len(legs) < 2:
            return text
        return f"{text}; ports {_listed(legs)} look like one bond, which {_declared(partner, legs)}"


def _finding(partner: _AGGREGATOR, legs: list[End], group: str | None) -> dict[str, Any]:
    lacp, is_one = _lacp_of(partner), len(legs) == 1
    text = f"Ports {_listed(legs)} receive {lacp}, and no link aggregation group names them"
    if is_one:
        text = f"Port {_listed(legs)} receives {lacp}, and no link aggregation group names it"
    if group is not None:
        text += f"; {_moved(group)}."
    elif is_one:
        text += f". With the port of the bond's other leg, once that is up, {_declared(partner, legs)}"
    else:
        text += f": they look like one bond, which {_declared(partner, legs)}"
    return {"kind": "lacp-undeclared", "text": text, "dpid": legs[0][0], "port_no": legs[0][1]}


def _lacp_of(partner: _AGGREGATOR) -> str:
    return f"LACP of the system {format_mac(partner[0])} (key {partner[1]})"


def _moved(group: str) -> str:
    return f"legs of the group {group} lead to the same: one of them was moved here, or one more is to be named there"


def _listed(legs: list[End]) -> str:
    return ", ".join(f"{dpid}:{port_no}" for dpid, port_no in legs[:LEGS_AT_MOST])


def _declared(partner: _AGGREGATOR, legs: list[End]) -> str:
    system, key = partner
    ports = ", ".join(f"{{dpid: {dpid}, port: {port_no}}}" for dpid, port_no in legs[:LEGS_AT_MOST])
    line = f"bond-{system.hex()}-{key}: {{mode: lacp, ports: [{ports}]}}"
    return f"this line under link_aggregations declares: {line}"
