"""Settings of the querier, of ports with multicast routers, and of what is reported there."""

from __future__ import annotations

from dataclasses import dataclass

from controller.config.declarations import (
    SettingType,
    integer,
    number,
    optional_integer,
    optional_number,
    other,
)
from controller.config.terms import SwitchPort
from controller.wire.addresses import parse_ip


@dataclass(frozen=True, slots=True)
class Querier:
    """The controller's own IGMP and MLD querier (RFC 9776, 8; RFC 9777, 9)."""

    enabled: bool = other(SettingType.BOOLEAN, True, "Whether the controller sends queries at all.")
    robustness: int = integer(2, 1, 7, "", "Robustness variable: one more than the losses in a row that do no harm.")
    query_interval_s: float = number(125, 1, 31744, "s", "Time between general queries.")
    response_interval_s: float = number(
        10, 0.1, 3174.4, "s", "Time over which hosts spread their answers; below `query_interval_s`."
    )
    last_member_interval_s: float = number(
        1, 0.1, 3174.4, "s", "Time to answer a query about one group, sent when a host leaves it."
    )
    last_member_count: int | None = optional_integer(
        1, 255, "", "Queries sent when a host leaves; `robustness` where absent."
    )
    startup_interval_s: float | None = optional_number(
        0.1, 3174.4, "s", "Time between the first general queries; a quarter of `query_interval_s` where absent."
    )
    startup_count: int | None = optional_integer(
        1, 255, "", "Number of first general queries; `robustness` where absent."
    )
    igmp_version: int = integer(3, 1, 3, "", "Version of the IGMP queries; below 3 hosts report no sources.")
    mld_version: int = integer(2, 1, 2, "", "Version of the MLD queries; below 2 hosts report no sources.")
    address_v4: bytes = other(
        SettingType.IPV4,
        bytes(4),
        "Source of IGMP queries. The lower address wins an election; with 0.0.0.0 any other querier wins.",
    )
    address_v6: bytes = other(
        SettingType.IPV6_LINK_LOCAL,
        parse_ip("fe80::ffff:ffff:ffff:fffe"),
        "Source of MLD queries. The lower address wins an election.",
    )
    accept_others: bool | frozenset[SwitchPort] = other(
        SettingType.BOOLEAN_OR_PORTS,
        False,
        "Ports where queries of others count, beside those of hosts that a rule with role `router` allows.",
    )


@dataclass(frozen=True, slots=True)
class RouterPorts:
    """Ports that lead to multicast routers and so get every group, but where they get what is asked for."""

    learn: bool | frozenset[SwitchPort] = other(
        SettingType.BOOLEAN_OR_PORTS,
        False,
        "Ports that queries and PIM hellos turn into router ports, whoever sends them.",
    )
    static: frozenset[SwitchPort] = other(SettingType.PORTS, frozenset[SwitchPort](), "Ports that always are.")
    on_request: bool | frozenset[SwitchPort] = other(
        SettingType.BOOLEAN_OR_PORTS,
        False,
        "Router ports that get a group only while a router there reports membership of it, as proxies do (RFC 4605).",
    )
    on_join: bool | frozenset[SwitchPort] = other(
        SettingType.BOOLEAN_OR_PORTS,
        False,
        "Router ports that get a group only while a router there has joined it by PIM, is asked for it by another's "
        "join, or reports membership of it. That of the designated router gets every group.",
    )
    pim_join_interval_s: float = number(
        60, 1, 600, "s", "Time after which routers repeat their PIM joins, the longest among them (RFC 7761, 4.11)."
    )


@dataclass(frozen=True, slots=True)
class Proxy:
    """Reports of the controller in place of its hosts' (RFC 4605, RFC 9776, 5; RFC 9777, 6)."""

    router_ports: bool | frozenset[SwitchPort] = other(
        SettingType.BOOLEAN_OR_PORTS,
        False,
        "Router ports where the controller reports what all members want together, and answers the routers' queries.",
    )
    address_v4: bytes = other(
        SettingType.IPV4, bytes(4), "Source of IGMP reports; 0.0.0.0 for none (RFC 9776, 4.2.14)."
    )
    vlan_addresses_v4: tuple[bytes, ...] = other(
        SettingType.IPV4_IN_VLANS,
        (),
        "Source of IGMP reports in some VLANs, such as `10.0.20.250@20`; `address_v4` in the others.",
    )
    address_v6: bytes = other(
        SettingType.IPV6_LINK_LOCAL, parse_ip("fe80::ffff:ffff:ffff:fffe"), "Source of MLD reports."
    )
