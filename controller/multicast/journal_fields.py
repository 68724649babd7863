"""The fields of the log's values that this version writes and reads, by subject; others are another version's."""

from __future__ import annotations

from collections.abc import Mapping

from controller.foreign_fields import KnownFields
from controller.maintenance.model import MaintenanceOrder

_ROUTERS = (
    "record family address mac dpid port_no robustness query_interval_s remaining_s routers asks dr_priority group "
    "joins prunes router source upstream holds_in_s"
)
_ROUTER_KINDS = frozenset(("querier", "router", "pim-joins"))


def _names(text: str, *more: str) -> frozenset[str]:
    return frozenset((*text.split(), *more))


JOURNAL_FIELDS: Mapping[str, KnownFields] = {
    "static-member": KnownFields(_names("dpid port_no group")),
    "router-port": KnownFields(_names("dpid port_no family")),
    "drain": KnownFields(_names("dpid")),
    "pin": KnownFields(_names("group")),
    "label": KnownFields(_names("dpid port_no key value")),
    "address": KnownFields(_names("pool name address")),
    "maintenance": KnownFields(_names("order runner groups state phase failures", *MaintenanceOrder._fields)),
    "maintenance-switch": KnownFields(
        _names("dpid group step failed_at reason claimed hosts away links took_s errors")
    ),
    "switch": KnownFields(_names("dpid ofp_version edge_ports trunk_ports")),
    "link": KnownFields(_names("ends capacity_bps")),
    "routers": KnownFields(_names(f"records {_ROUTERS}"), _ROUTER_KINDS),
    "vlan-routers": KnownFields(_names(f"vlan records {_ROUTERS}"), _ROUTER_KINDS),
    "tree": KnownFields(_names("group tree_version links out apart")),
    "alias": KnownFields(_names("group number tree_version links out")),
    "heard": KnownFields(
        _names(
            "group members senders record dpid port_no mac ip known spoofed mode group_s sources excluded leaving "
            "v1_s older_s address admitted rule rate_bps alias"
        ),
        frozenset(("member", "group")),
    ),
}
