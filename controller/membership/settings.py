"""What an operator may set of the membership core, and the timer values that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.wire.addresses import parse_ip

LATEST_VERSION = {4: 3, 6: 2}
"""The newest protocol version of each family: IGMPv3 and MLDv2."""

QUERIER_BELIEVED_S = 300.0
"""The other querier present interval is at most this, or ours if that is longer (RFC 9776 can encode 62 hours)."""

MEMBERSHIP_BELIEVED_S = 600.0
"""Likewise robustness times query interval, after which memberships end that no report refreshes.

It is above `QUERIER_BELIEVED_S` so that members may answer our own query when a querier has fallen silent.
"""

JOIN_BELIEVED_S = 600.0
"""The longest holdtime that is believed of a PIM join, 65535 (for ever) included, where none is due to be longer."""

JOIN_HOLDTIME_INTERVALS = 3.5
"""The holdtime of a PIM join in the intervals at which it is repeated (J/P_HoldTime: RFC 7761, 4.11)."""

JOINS_LATE_S = 10.0
"""How much later than its routers' interval a PIM join may come before a router is taken not to have joined."""

PortKey = tuple[int, int]
"""A datapath and one of its ports: (dpid, port_no)."""


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """Querier, leave and router port settings; intervals in seconds, names after RFC 9776, section 8.

    A `None` takes the RFC's default: a quarter of the query interval, or the robustness variable. `fast_leave`,
    `learn_router_ports`, `accept_queriers`, `router_ports_on_request`, `router_ports_on_join` and
    `proxied_router_ports` hold for every port (True), none (False) or the ports listed.
    The IPv4 query address 0.0.0.0 is the proxy querier's of RFC 4541, which yields to any other; the IPv6 default
    is the highest interface identifier of fe80::/64, which yields to nearly any. ValueError on a value out of range.
    """

    robustness: int = 2
    query_interval_s: float = 125.0
    response_interval_s: float = 10.0
    last_member_interval_s: float = 1.0
    last_member_count: int | None = None
    startup_interval_s: float | None = None
    startup_count: int | None = None
    igmp_version: int = 3
    mld_version: int = 2
    querier: bool = True
    query_address_v4: bytes = parse_ip("0.0.0.0")
    query_address_v6: bytes = parse_ip("fe80::ffff:ffff:ffff:fffe")
    accept_queriers: bool | frozenset[PortKey] = False
    fast_leave: bool | frozenset[PortKey] = False
    learn_router_ports: bool | frozenset[PortKey] = False
    static_router_ports: frozenset[PortKey] = frozenset()
    router_ports_on_request: bool | frozenset[PortKey] = False
    router_ports_on_join: bool | frozenset[PortKey] = False
    pim_join_interval_s: float = 60.0
    proxied_router_ports: bool | frozenset[PortKey] = False
    enforce_ssm: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.robustness <= 7:
            raise ValueError(f"robustness must be 1 to 7, not {self.robustness}")
        if not 0 < self.response_interval_s < self.query_interval_s <= 31744:
            raise ValueError("0 < response_interval_s < query_interval_s <= 31744 does not hold")
        if not 0 < self.pim_join_interval_s <= 600:
            raise ValueError(f"pim_join_interval_s must be above 0 and at most 600, not {self.pim_join_interval_s}")
        for name in ("last_member_interval_s", "startup_interval_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 3174.4:
                raise ValueError(f"{name} must be above 0 and at most 3174.4, not {value}")
        for name in ("last_member_count", "startup_count"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= 255:
                raise ValueError(f"{name} must be 1 to 255, not {value}")
        if not 1 <= self.igmp_version <= 3 or not 1 <= self.mld_version <= 2:
            raise ValueError("igmp_version must be 1 to 3 and mld_version 1 or 2")
        if len(self.query_address_v4) != 4 or self.query_address_v6[:8] != b"\xfe\x80" + bytes(6):
            raise ValueError("query_address_v4 must be an IPv4 address and query_address_v6 one of fe80::/64")

    def version(self, family: int) -> int:
        """Return the version of the queries of a family."""
        return self.igmp_version if family == 4 else self.mld_version

    def query_address(self, family: int) -> bytes:
        """Return the source address of our queries of a family, which is also our bid in the election."""
        return self.query_address_v4 if family == 4 else self.query_address_v6

    @property
    def joins_heard_s(self) -> float:
        """In this time routers that were there before us say what they have joined."""
        return self.pim_join_interval_s + JOINS_LATE_S

    @property
    def join_believed_s(self) -> float:
        """The longest holdtime that is believed of a PIM join: 600 s, or what is due at the routers' interval."""
        return max(JOIN_BELIEVED_S, JOIN_HOLDTIME_INTERVALS * self.pim_join_interval_s)

    @property
    def startup_query_interval_s(self) -> float:
        """The startup query interval (RFC 9776, 8.6)."""
        return self.query_interval_s / 4 if self.startup_interval_s is None else self.startup_interval_s

    @property
    def startup_query_count(self) -> int:
        """The startup query count (RFC 9776, 8.7)."""
        return self.robustness if self.startup_count is None else self.startup_count


@dataclass(frozen=True, slots=True)
class MembershipLimits:
    """Bounds of every table that reports and queries can grow; what exceeds one is refused, counted and noticed.

    `groups_per_port` and `groups_per_host` bound routable groups and `link_groups_per_port` the link-scope ones
    (solicited-node groups among them), so that neither crowds the other out. `sources_per_group` bounds the sources
    of a record; a host's state may hold twice as many while those given up run out. `states` bounds memberships,
    (host, group) pairs, overall. The port's rate holds for queries and PIM hellos too, a host's for the reports of a
    member. A report costs as many records as it has, or sources in them, but one, and an address that changed costs
    the number of memberships to judge anew. Whoever overdraws may send long reports again when that is paid off, so
    that no single report is too long.
    """

    groups_per_port: int = 64
    groups_per_host: int = 64
    link_groups_per_port: int = 256
    hosts_per_port: int = 256
    sources_per_group: int = 64
    states: int = 250_000
    reports_per_second_per_port: float = 100.0
    report_burst: float = 200.0
    reports_per_second_per_host: float = 100.0
    host_report_burst: float = 200.0
    records_per_second_per_port: float = 500.0
    record_burst: float = 1000.0
    records_per_second_per_host: float = 500.0
    host_record_burst: float = 1000.0
    routers_per_port: int = 16
    joins_per_port: int = 4096
    notice_interval_s: float = 10.0


class Timing(NamedTuple):
    """Timer values in force for one family, from our settings or the elected querier's (RFC 9776, section 8)."""

    robustness: int
    query_interval_s: float
    membership_s: float
    other_querier_s: float
    last_member_interval_s: float
    last_member_count: int
    last_member_time_s: float


def timing(settings: MembershipSettings, robustness: int = 0, query_interval_s: float = 0.0) -> Timing:
    """Return the timer values, with another querier's robustness and query interval where these are not zero.

    They are believed up to `MEMBERSHIP_BELIEVED_S` and `QUERIER_BELIEVED_S`, or up to our own values.
    """
    own_s = settings.robustness * settings.query_interval_s
    half_response_s = settings.response_interval_s / 2
    robustness = robustness or settings.robustness
    query_interval_s = query_interval_s or settings.query_interval_s
    count = settings.last_member_count or robustness
    silence_s = robustness * query_interval_s
    return Timing(
        robustness,
        query_interval_s,
        min(silence_s, max(own_s, MEMBERSHIP_BELIEVED_S)) + settings.response_interval_s,
        min(silence_s + half_response_s, max(own_s + half_response_s, QUERIER_BELIEVED_S)),
        settings.last_member_interval_s,
        count,
        count * settings.last_member_interval_s,
    )


def applies(setting: bool | frozenset[PortKey], key: PortKey) -> bool:
    """Tell whether a setting for all ports, none, or a set of ports holds for this one."""
    return setting if isinstance(setting, bool) else key in setting
