"""The metrics of the controller itself: multicast, switches and links, alarms, and how its apps fare."""

from __future__ import annotations

from apps.exporters.exposition import MetricFamily, counter, gauge, histogram

BUILD_INFO = gauge("vsrt_build_info", "Always 1; version of the controller, its OpenFlow framework and Python.")
PROCESS_START = gauge("process_start_time_seconds", "When the process began, since 1970-01-01 UTC.")

TURNS = histogram(
    "vsrt_app_turn_seconds", "Time for which an event, or packets that came together, held the loop of an app."
)
BACKLOG = gauge("vsrt_app_backlog_events", "Events that wait for the loop of an app.")
AGE = gauge("vsrt_app_metrics_age_seconds", "Age of an app's figures; it grows while the app's loop is held up.")
NOTICES = counter("vsrt_app_notices_total", "Notices of an app, by kind.")
COUNTED = counter("vsrt_app_counted_total", "Frames and more that an app refused or left out, by kind.")
POLICY_OK = gauge(
    "vsrt_policy_last_load_successful", "1 where the policy file could be used when the app last read it, else 0."
)
POLICY_LOADED = gauge(
    "vsrt_policy_last_load_success_timestamp_seconds", "When the policy file was read that an app goes by."
)
FLOW_ENTRIES = gauge(
    "vsrt_switch_flow_entries",
    "Flow entries of an app that the switch confirmed; absent while it is not connected.",
)
WAITING_ENTRIES = gauge(
    "vsrt_switch_waiting_flow_entries",
    "Flow entries of an app that a full table of the switch has no room for; absent while it is not connected.",
)

GROUPS = gauge("vsrt_multicast_groups", "Groups with members or senders, link scope left out.")
MEMBERS = gauge("vsrt_multicast_members", "Admitted memberships of hosts, link scope left out.")
SENDERS = gauge("vsrt_multicast_senders", "Admitted senders, one for each group that a host sends to.")
VLAN_GROUPS = gauge("vsrt_vlan_groups", "Groups with members or senders, by VLAN.")
VLAN_MEMBERS = gauge("vsrt_vlan_members", "Admitted memberships of hosts, by VLAN.")
VLAN_SENDERS = gauge("vsrt_vlan_senders", "Admitted senders, by VLAN.")
DECISIONS = counter(
    "vsrt_admission_decisions_total", "Decisions about joins, senders and routers, by rule and verdict (allow, deny)."
)
TREE_CHANGES = counter("vsrt_tree_changes_total", "Changes that gave a tree other links or other switches.")
ALIASES = gauge("vsrt_aliases", "Further trees that groups have, those that are being taken away too.")
ALIAS_POOL = gauge("vsrt_alias_pool", "Further trees that all groups together may have.")
ALIAS_MOVES = counter("vsrt_alias_moves_total", "Further trees given to groups, by algorithm (goal, efficiency).")
GROUPS_OUT = gauge("vsrt_groups_out", "Groups that have no flow entries, to save room, and are a packet away.")
GROUPS_COVERED = gauge(
    "vsrt_groups_covered",
    "Silent groups under covering trees, which have flow entries at the switches of their hosts alone.",
)
MAINTENANCE = gauge("vsrt_maintenance_switches", "Switches of the last campaign of maintenance, by step.")
GROUP_SWAPS = counter("vsrt_group_swaps_total", "Groups that went into and out of the flow tables, by direction.")
GROUP_FAULTS = counter(
    "vsrt_group_faults_total",
    "Packets of known senders to groups that were out, by what became of them (carried, dropped).",
)
TABLE_CAPACITY = gauge(
    "vsrt_flow_table_capacity", "Entries that a flow table has room for, where that is known and groups may be out."
)
TABLE_ENTRIES = gauge(
    "vsrt_flow_table_entries",
    "Entries of a flow table where groups may be out, by kind: of groups that may leave, and others (pinned).",
)
STAGED_DECISIONS = gauge(
    "vsrt_staged_decisions",
    "Decisions that the staged policy would make otherwise, by verdict (refused, admitted, beyond those told), or "
    "has made alike since it was read.",
)
TENANT_ENTRIES = gauge(
    "vsrt_tenant_flow_table_entries",
    "Entries of all flow tables that a tenant has (held), and is entitled to (entitled), where tenants share tables.",
)
SWAP_SLOTS = gauge(
    "vsrt_swap_slots",
    "Slots for groups that may be out of the flow tables which a tenant has (taken), and those kept for it (kept).",
)
TREE_REPAIRS = counter("vsrt_tree_repairs_total", "Changes of trees after a link or switch was lost.")
JOIN_LATENCY = histogram(
    "vsrt_join_latency_seconds",
    "From a report taken in hand to the barrier reply that confirms the last flow entry which its join needed.",
)
JOINS_UNMEASURED = counter(
    "vsrt_joins_unmeasured_total", "Joins whose latency is not known: the switch was lost, or too many waited."
)

CLASS_INDEX = gauge(
    "vsrt_class_performance_index",
    "How far a service class is from its goal at the port where it is farthest: above 1 it is missed; 1000 at most.",
)
CLASS_MISSING = gauge(
    "vsrt_class_missing_bits_per_second", "What ports lack for the goal of a service class, summed over all of them."
)
CLASS_PORTS = gauge("vsrt_class_ports", "Ports by which packets of a service class, or of its importance, were sent.")

FABRICS = gauge("vsrt_fabrics", "Fabrics, which no link joins to each other.")

SWITCH_INFO = gauge(
    "vsrt_switch_info", "Always 1; what a switch and its fabric are called, and its OpenFlow version."
)
SWITCH_CONNECTED = gauge(
    "vsrt_switch_connected", "1 where the switch is connected, 0 where it was and is not; absent once forgotten."
)
SWITCH_IN_SYNC = gauge("vsrt_switch_in_sync", "1 where the switch holds what multicast wants of it, confirmed.")

DISCOVERY_FRAMES = counter(
    "vsrt_discovery_frames_total",
    "Frames that discovery sent, by urgency: suspect, tour, new, again, echo, quick (asked every interval) and slow.",
)
SILENT_FAILURE = gauge(
    "vsrt_discovery_silent_failure_seconds",
    "Within what time a failure that no port status tells of is found, in a fabric of this size.",
)

LINKS = gauge("vsrt_links", "Known links by state: up, failed or moved.")
LINK_UP = gauge("vsrt_link_up", "1 where a known link between switches is up, or stands by, else 0.")
ALARMS = gauge("vsrt_alarms", "Open alarms, by severity.")

CLUSTER_LEADER = gauge("vsrt_cluster_leader", "1 where this controller leads, 0 where it follows.")
CLUSTER_EPOCH = gauge("vsrt_cluster_epoch", "The last epoch that this controller knows of.")
CLUSTER_MEMBERS = gauge("vsrt_cluster_members", "Members of the cluster at the moment.")
CLUSTER_ENGINE_UP = gauge("vsrt_cluster_engine_up", "1 where the cluster's store answers, 0 where it is silent.")
CLUSTER_TAKE_OVERS = counter("vsrt_cluster_take_overs_total", "Times that this process has taken the lead.")
CLUSTER_TAKE_OVER = gauge(
    "vsrt_cluster_take_over_seconds",
    "Time from the last election of this controller until its apps knew the last switch; absent before.",
)
CLUSTER_LAG = gauge(
    "vsrt_cluster_journal_lag_seconds",
    "For how long the entry of the logs has waited that waits longest: for the store, where this controller leads, "
    "for its cores, where it follows; 0 where none waits.",
)
CLUSTER_REFUSED = counter("vsrt_cluster_refused_total", "Roles that switches refused, or took from this one.")

FAMILIES: tuple[MetricFamily, ...] = (
    BUILD_INFO,
    PROCESS_START,
    TURNS,
    BACKLOG,
    AGE,
    NOTICES,
    COUNTED,
    POLICY_OK,
    POLICY_LOADED,
    FLOW_ENTRIES,
    WAITING_ENTRIES,
    GROUPS,
    MEMBERS,
    SENDERS,
    VLAN_GROUPS,
    VLAN_MEMBERS,
    VLAN_SENDERS,
    DECISIONS,
    TREE_CHANGES,
    TREE_REPAIRS,
    JOIN_LATENCY,
    JOINS_UNMEASURED,
    ALIASES,
    ALIAS_POOL,
    ALIAS_MOVES,
    GROUPS_OUT,
    GROUPS_COVERED,
    MAINTENANCE,
    GROUP_SWAPS,
    GROUP_FAULTS,
    TABLE_CAPACITY,
    TABLE_ENTRIES,
    STAGED_DECISIONS,
    TENANT_ENTRIES,
    SWAP_SLOTS,
    CLASS_INDEX,
    CLASS_MISSING,
    CLASS_PORTS,
    FABRICS,
    SWITCH_INFO,
    SWITCH_CONNECTED,
    SWITCH_IN_SYNC,
    DISCOVERY_FRAMES,
    SILENT_FAILURE,
    LINKS,
    LINK_UP,
    ALARMS,
    CLUSTER_LEADER,
    CLUSTER_EPOCH,
    CLUSTER_MEMBERS,
    CLUSTER_ENGINE_UP,
    CLUSTER_TAKE_OVERS,
    CLUSTER_TAKE_OVER,
    CLUSTER_LAG,
    CLUSTER_REFUSED,
)
"""All of them, in the order in which they are served."""
