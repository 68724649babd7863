"""Which hosts of each tenant send to and receive which groups, since when."""

from __future__ import annotations

from typing import Any

from apps.dashboard.lists import members, senders
from apps.tenants.hosts import NEEDED, TenantHosts, policy_in
from controller.snapshot.reader import Document, Fields, Snapshot, with_hexadecimal

SECTIONS = ("groups", *NEEDED)


def connections(snapshot: Snapshot) -> list[Document]:
    """Return each host that is served or admitted as a sender, once per tenant, by tenant and place.

    A host of no tenant comes last, with null for its tenant; so does a port with static members, which has no MAC
    address. PolicyUnreadable where the policy cannot be read.
    """
    tenants = TenantHosts(
        policy_in(snapshot), (document.fields for document in snapshot.section("hosts").documents.values())
    )
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in snapshot.section("groups").in_order():
        vlan = group.fields.get("vlan")
        for what, told in (("receives", members(group)), ("sends", senders(group))):
            for who in told:
                if who.get("served") is False:
                    continue
                key = who.get("mac"), who["dpid"], who["port_no"], vlan
                host = found.get(key)
                if host is None:
                    host = found[key] = _host(who, vlan)
                _connect(host, what, group.id, who)
    rows = [
        (tenant, *key[1:], key[0] or "", host)
        for key, host in found.items()
        for tenant in tenants.of(host) or (None,)
    ]
    rows.sort(key=lambda row: (row[0] is None, row[0] or "", *row[1:3], row[3] or 0, row[4]))
    return [
        Document(id_, with_hexadecimal({"id": id_, "tenant": tenant, **host}))
        for tenant, dpid, port_no, vlan, mac, host in rows
        for id_ in [f"{tenant or '-'}/{dpid}:{port_no}/{mac or '-'}{f'@{vlan}' if vlan else ''}"]
    ]


def _host(who: Fields, vlan: int | None) -> dict[str, Any]:
    place_of = {"mac": who.get("mac"), "ips": [], "dpid": who["dpid"], "port_no": who["port_no"], "vlan": vlan}
    return {**place_of, "receives": [], "sends": [], "rate_bps": 0, "since_s": None}


def _connect(host: dict[str, Any], what: str, group: str, who: Fields) -> None:
    """Add a group to what a host receives or sends, once for all addresses that it does so with."""
    if who.get("ip") and who["ip"] not in host["ips"]:
        host["ips"].append(who["ip"])
    since_s, rate_bps = who.get("since_s"), who.get("rate_bps") or 0
    host["since_s"] = _earlier(host["since_s"], since_s)
    host["rate_bps"] += rate_bps
    groups = host[what]
    if not groups or groups[-1]["group"] != group:
        groups.append({"group": group, "since_s": None, **({"rate_bps": 0} if what == "sends" else {"static": True})})
    groups[-1]["since_s"] = _earlier(groups[-1]["since_s"], since_s)
    if what == "sends":
        groups[-1]["rate_bps"] += rate_bps
    else:
        groups[-1]["static"] &= who["static"]


def _earlier(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)
