"""A port that floods the controller with IGMP, MLD or PIM: its switch drops them, a second at a time, meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from controller.config.settings import Limits
from controller.config.vlans import PortVlans
from controller.effects import Effect, Notice
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.port_buckets import PortBuckets
from controller.rules.cookies import cookie_of
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, Match
from controller.rules.pipeline import (
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    IPPROTO_ICMPV6,
    IPPROTO_IGMP,
    IPPROTO_PIM,
    MLD_TYPES,
    MULTICAST_TAG,
    OPENFLOW_1_0,
    PRIORITY_MEMBERSHIP_PENALTY,
    SENDER_COOKIE_BIT,
)
from controller.rules.port_drops import drop_keys
from controller.wire.addresses import ALL_PIM_ROUTERS_V4, ALL_PIM_ROUTERS_V6
from topology.aggregations import Place

CUT_S = 1
"""How long a switch drops them at a time: with a robustness of two, answers lost to one cut come again long before a
membership ends (RFC 9776, 8.4)."""

QUIET_S = 2.0
"""A flood is over when there was no reason for another cut this long."""

LIMIT_MULTIPLE, LEAST_RATE_PER_S = 2.0, 20.0
"""Cut are ports beyond this multiple of the reports that are read, and beyond this rate."""

PROTOCOLS = {4: "IGMP", 6: "MLD"}
"""What the messages of a family are called; those of PIM to all routers count among them."""


class MembershipPolicer:
    """Budgets of membership messages per port, `budgets` by family, and which ports are cut off.

    The entries end by themselves. When a flood is over, `released` ports are to be asked for their members.
    """

    def __init__(self, installer: Installer, counters: Counter[str], limits: Limits, vlan_ports: VlanPorts) -> None:
        self._installer = installer
        self._vlan_ports = vlan_ports
        self._counters = counters
        self._versions: dict[int, int] = {}
        rate, burst = _budget(limits)
        self.budgets = {family: PortBuckets(rate, burst) for family in PROTOCOLS}
        self._floods: dict[tuple[Place, int], float] = {}

    def set_limits(self, limits: Limits) -> None:
        """Go by other limits from now on."""
        for buckets in self.budgets.values():
            buckets.set_rate(*_budget(limits))

    def switch_connected(self, dpid: int, ofp_version: int) -> None:
        """Take in which OpenFlow version a switch speaks."""
        self._versions[dpid] = ofp_version

    def port_removed(self, dpid: int, port_no: int) -> None:
        """Forget a port that leads to hosts no more."""
        for family, buckets in self.budgets.items():
            buckets.forget(dpid, port_no)
            self._floods.pop(((dpid, port_no), family), None)

    def overdrawn(self, dpid: int, port_no: int, family: int, now: float) -> list[Effect]:
        """Count a message for which a port has no budget left; return what cuts the port off, unless it is."""
        buckets = self.budgets[family]
        self._counters["membership-flood"] += 1
        if not buckets.cut_off(dpid, port_no, now, CUT_S):
            return []
        flood = ((dpid, port_no), family)
        effects: list[Effect] = []
        if flood not in self._floods:
            self._counters["port-guarded"] += 1
            text = (
                f"Port {dpid}:{port_no} receives over {buckets.rate_per_s:g} {PROTOCOLS[family]} messages a second: "
                "its switch drops them until that ends."
            )
            effects.append(Notice("port-guarded", text, _fields(flood)))
        self._floods.pop(flood, None)
        self._floods[flood] = now + CUT_S + QUIET_S
        version = self._versions.get(dpid, OPENFLOW_1_0)
        vlans = self._vlan_ports.of(dpid, port_no) if self._vlan_ports.is_used else None
        for rule in _cuts(version, vlans, port_no, family):
            effects += self._installer.transient(dpid, rule)
        return effects

    def next_deadline(self) -> float | None:
        """Return when a flood may be over, None where there is none."""
        return next(iter(self._floods.values()), None)

    def released(self, now: float) -> Iterable[tuple[Place, int, Notice]]:
        """Yield the ports and families whose flood is over."""
        for flood, over_s in list(self._floods.items()):
            if over_s > now:
                return
            del self._floods[flood]
            (dpid, port_no), family = flood
            text = f"The flood at port {dpid}:{port_no} has ended: its {PROTOCOLS[family]} messages are read again."
            yield (dpid, port_no), family, Notice("port-released", text, _fields(flood))


def _budget(limits: Limits) -> tuple[float, float]:
    rate = max(LIMIT_MULTIPLE * limits.reports_per_second_per_port, LEAST_RATE_PER_S)
    return rate, 2 * rate


def _fields(flood: tuple[Place, int]) -> tuple[tuple[str, object], ...]:
    (dpid, port_no), family = flood
    return ("dpid", dpid), ("port_no", port_no), ("family", family)


def _cuts(ofp_version: int, vlans: PortVlans | None, port_no: int, family: int) -> list[FlowEntry]:
    if family == 4:
        matches = [Match(port_no, eth_type=ETH_TYPE_IPV4, ip_proto=IPPROTO_IGMP)]
        matches.append(_pim(port_no, ETH_TYPE_IPV4, ALL_PIM_ROUTERS_V4))
    else:
        matches = [
            Match(port_no, eth_type=ETH_TYPE_IPV6, ip_proto=IPPROTO_ICMPV6, icmpv6_type=kind) for kind in MLD_TYPES
        ]
        matches.append(_pim(port_no, ETH_TYPE_IPV6, ALL_PIM_ROUTERS_V6))
    cookie = cookie_of(MULTICAST_TAG, "membership-flood") & ~SENDER_COOKIE_BIT
    return [
        FlowEntry(key, (), cookie, hard_timeout_s=CUT_S)
        for match in matches
        for key in drop_keys(ofp_version, vlans, PRIORITY_MEMBERSHIP_PENALTY, match)
    ]


def _pim(port_no: int, eth_type: int, routers: bytes) -> Match:
    return Match(port_no, eth_type=eth_type, ip_proto=IPPROTO_PIM, ip_dst=routers, ip_dst_prefix=8 * len(routers))
