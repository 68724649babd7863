"""What the keys of a Faucet configuration come to that have no place of their own in a policy."""

from __future__ import annotations

from typing import NamedTuple

from controller.migration.report import Outcome


class KeyMeaning(NamedTuple):
    """What becomes of a key: `what` says why, and `todo` what to do where it is impossible."""

    outcome: Outcome
    what: str
    todo: str = ""


def _taken(what: str) -> KeyMeaning:
    return KeyMeaning(Outcome.TAKEN, what)


def _impossible(what: str, todo: str) -> KeyMeaning:
    return KeyMeaning(Outcome.IMPOSSIBLE, what, todo)


_OWN = _taken("how Faucet itself works; the controller needs nothing in its place")
_ROUTING = _impossible("the controller does not route between VLANs", "keep a router on a trunk port of these VLANs")
_DROPPED = _taken("such frames go nowhere here either")

TOP: dict[str, KeyMeaning] = {
    "version": _taken("the version of Faucet's file format"),
    "routers": _ROUTING,
    "meters": _impossible("no meters for hosts", "limit rates by `limits` and `queues`, or at the hosts"),
}

SWITCH: dict[str, KeyMeaning] = {
    "hardware": _taken("switches say themselves what they can do"),
    "lldp_beacon": _taken("discovery sends LLDP of its own out of every port"),
    "drop_bpdu": _DROPPED,
    "drop_broadcast_source_address": _DROPPED,
    "drop_spoofed_faucet_mac": _DROPPED,
    "drop_lldp": _taken("LLDP goes to the controller alone"),
    "egress_pipeline": _OWN,
    "dot1x": _impossible("no 802.1X", "authenticate at another switch, or name hosts in tenants"),
    "metrics_rate_limit_sec": _OWN,
}
SWITCH |= dict.fromkeys(
    (
        *("arp_neighbor_timeout", "nd_neighbor_timeout", "cache_update_guard_time", "combinatorial_port_flood"),
        *("cookie", "fast_advertise_interval", "faucet_dp_mac", "global_vlan", "group_table", "group_table_routing"),
        *("high_priority", "highest_priority", "low_priority", "lowest_priority", "idle_dst", "ignore_learn_ins"),
        *("ignore_subconf", "learn_ban_timeout", "learn_jitter", "max_host_fib_retry_count", "advertise_interval"),
        *(
            "max_hosts_per_resolve_cycle",
            "max_resolve_backoff_time",
            "max_wildcard_table_size",
            "min_wildcard_table_size",
        ),
        *("minimum_ip_size_check", "multi_out", "priority_offset", "proactive_learn_v4", "proactive_learn_v6"),
        *(
            "strict_packet_in_cookie",
            "table_sizes",
            "targeted_gw_resolution",
            "use_classification",
            "use_idle_timeout",
        ),
        *("ofchannel_log", "packetin_pps", "slowpath_pps", "port_table_scale_factor", "drop_spoofed_faucet_mac_v6"),
    ),
    _OWN,
)

SWITCH_IF_FALSE: dict[str, KeyMeaning] = dict.fromkeys(
    ("drop_bpdu", "drop_broadcast_source_address", "drop_spoofed_faucet_mac", "drop_lldp"),
    _impossible("such frames are dropped here always", "do without them, or run their protocol on the switches"),
)
"""Keys of a switch whose value `false` is another thing than `true`."""

PORT: dict[str, KeyMeaning] = {
    "opstatus_reconf": _OWN,
    "lldp_beacon": _taken("discovery sends LLDP of its own out of every port"),
    "lldp_peer_mac": _OWN,
    "receive_lldp": _taken("LLDP is read at every port"),
    "lacp_active": _taken("LACP is spoken at every leg of a group with mode lacp"),
    "lacp_passthrough": _OWN,
    "lacp_resp_interval": _OWN,
    "lacp_collect_and_distribute": _OWN,
    "lacp_unselected": _OWN,
    "lacp_selected": _OWN,
    "lacp_standby": _OWN,
    "lacp_port_priority": _OWN,
    "lacp_port_id": _OWN,
    "restricted_bcast_arpnd": _OWN,
    "max_lldp_lost": _OWN,
    "count_untag_vlan_miss": _OWN,
    "loop_protect": _taken("what is flooded follows a spanning tree of the fabric's links"),
    "loop_protect_external": _taken("what is flooded follows a spanning tree of the fabric's links"),
    "unicast_flood": _taken("a packet to a host that nobody knows is looked for by the controller, and not flooded"),
    "mirror": _impossible(
        "no mirror ports", "have the switch mirror: an OVSDB template with a Mirror, or its own command line"
    ),
    "output_only": _impossible(
        "a port that only sends", "deny its hosts every group by a rule, and filter at the host"
    ),
    "permanent_learn": _impossible(
        "the first MAC address at a port is not held for ever",
        "name the host by its MAC address and its port in a tenant, and write rules for that",
    ),
    "coprocessor": _impossible(
        "no coprocessor ports", "give the program a port of its own, and it joins what it needs"
    ),
    "dot1x": _impossible("no 802.1X", "authenticate at another switch, or name hosts in tenants"),
    "dot1x_acl": _impossible("no 802.1X", "authenticate at another switch, or name hosts in tenants"),
    "dot1x_mab": _impossible("no 802.1X", "authenticate at another switch, or name hosts in tenants"),
    "dot1x_dyn_acl": _impossible("no 802.1X", "authenticate at another switch, or name hosts in tenants"),
    "override_output_port": _impossible("no port that all packets are sent to", "cable the host where it should be"),
    "hairpin_unicast": _impossible("no packet goes back to its own port", "do without it, or have the host relay"),
}
"""Keys of a port. `hairpin` and `enabled` say something by their value alone."""

VLAN: dict[str, KeyMeaning] = dict.fromkeys(
    ("faucet_vips", "faucet_mac", "routes", "minimum_ip_size_check", "edge_learn_stack_root", "dhcp_relay"), _ROUTING
)
VLAN |= dict.fromkeys(
    (
        *("bgp_as", "bgp_connect_mode", "bgp_local_address", "bgp_neighbor_addresses", "bgp_neighbor_as", "bgp_port"),
        *("bgp_neighbour_addresses", "bgp_neighbour_as", "bgp_routerid", "bgp_server_addresses"),
    ),
    _impossible("the controller speaks no BGP", "keep a router on a trunk port of these VLANs"),
)
VLAN |= dict.fromkeys(
    ("proactive_arp_limit", "proactive_nd_limit", "targeted_gw_resolution", "minimum_ip_size_check"), _OWN
)
VLAN["unicast_flood"] = PORT["unicast_flood"]
VLAN["max_hosts"] = _impossible("no limit of hosts by VLAN", "limit them by port: `limits.hosts_per_port`")

UNKNOWN = _impossible(
    "the key is not one that this command knows of Faucet's", "look up what it does, and write that by hand"
)
