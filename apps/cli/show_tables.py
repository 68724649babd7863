"""What can be shown of a running controller: where each table's documents come from, and how they become rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from apps.cli.called import SnapshotNames
from apps.cli.common import OperationFailed
from apps.cli.show_cells import Fields, Row, place, text
from apps.cli.show_classes import class_rows, queue_rows
from apps.cli.show_cluster import MEMBER_TITLES, cluster_rows
from apps.cli.show_connections import CONNECTION_TITLES, connection_rows
from apps.cli.show_fabric import PORT_TITLES, link_rows, port_rows, switch_rows
from apps.cli.show_groups import alias_rows, group_rows, member_rows, refusal_rows, rows_of_group, sender_rows
from apps.cli.show_happenings import alarm_rows, allocation_rows, anomaly_rows, cleared_alarm_rows, event_rows
from apps.cli.show_policy import candidate_rows, policy_rows, staged_rows
from apps.cli.show_routers import router_rows, routers_document
from apps.cli.show_runs import RUN_TITLES, run_rows
from apps.cli.show_scaling import SCALING_TITLES, scaling_rows
from apps.cli.show_unused import UNUSED_TITLES, unused_rows
from apps.cli.show_versions import VERSION_TITLES, version_rows
from apps.dashboard.lists import (
    classes_with_queues,
    fabrics,
    gravest_first,
    members,
    newest_first,
    of_groups,
    refusals,
    senders,
    with_aliases,
)
from apps.tenants.connections import SECTIONS as CONNECTION_SECTIONS
from apps.tenants.connections import connections
from apps.tenants.hosts import PolicyUnreadable
from apps.tenants.unused import SECTIONS as UNUSED_SECTIONS
from apps.tenants.unused import unused
from controller.snapshot.reader import Document, DocumentCopy, Snapshot

PLACES = frozenset({"switch", "port"})
"""Documents are at a switch or a port, and can be chosen by it."""


class Table(NamedTuple):
    """One kind of answer.

    `items` makes its documents of the `sections` that it needs, `rows` the rows of one document under `titles`;
    `by` names what documents can be chosen by; `one`: there is a single document.
    """

    about: str
    sections: tuple[str, ...]
    titles: tuple[str, ...]
    rows: Callable[[Fields, SnapshotNames], Iterable[Row]]
    items: Callable[[Snapshot], Sequence[Document]]
    by: frozenset[str] = frozenset()
    one: bool = False
    newest_last: bool = False
    document: Callable[[Sequence[Fields]], Any] = list


def _of(name: str) -> Callable[[Snapshot], Sequence[Document]]:
    return lambda snapshot: snapshot.section(name).in_order()


def _made(
    name: str, make: Callable[[DocumentCopy], Sequence[Document]], step: int = 1
) -> Callable[[Snapshot], Sequence[Document]]:
    return lambda snapshot: make(snapshot.section(name))[::step]


def _by_policy(make: Callable[[Snapshot], Sequence[Document]]) -> Callable[[Snapshot], Sequence[Document]]:
    def made(snapshot: Snapshot) -> Sequence[Document]:
        try:
            return make(snapshot)
        except PolicyUnreadable as fault:
            raise OperationFailed(str(fault)) from None

    return made


def _flow_tables(fields: Fields, called: SnapshotNames) -> Iterator[Row]:
    names = (
        "table",
        "capacity",
        "pinned",
        "entries",
        "groups",
        "groups_covered",
        "groups_out",
        "hits",
        "faults",
        "state",
    )
    tenants = fields.get("tenants") or ()
    shared = ", ".join(
        f"{each['tenant'] or 'others'} {each['entries']} of {each['entitled']:.0f}" for each in tenants
    )
    yield called.label(fields["dpid"]), *(text(fields.get(name)) for name in names), shared


def _plain(*names: str) -> Callable[[Fields, SnapshotNames], Iterable[Row]]:
    return lambda fields, _called: [tuple(text(fields.get(name)) for name in names)]


def _status(status: Fields, called: SnapshotNames) -> Iterator[Row]:
    for name, value in status.items():
        if name == "started_s":
            yield name, called.clock(value)
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{key}", text(number)) for key, number in value.items())
        elif name != "id":
            yield name, text(value)


TABLES: dict[str, Table] = {
    "status": Table("counts and counters", ("status",), ("NAME", "VALUE"), _status, _of("status"), one=True),
    "groups": Table(
        "a line for each group",
        ("groups",),
        ("GROUP", "VLAN", "MEMBERS", "STATIC", "SENDERS", "REFUSED", "RATE", "TREE"),
        group_rows,
        _of("groups"),
        PLACES | {"group"},
    ),
    "group": Table(
        "one group: its tree, members, senders and refusals",
        ("groups",),
        ("WHAT", "PORT", "MAC", "IP", "DETAIL"),
        rows_of_group,
        _of("groups"),
        one=True,
    ),
    "members": Table(
        "who is served which group",
        ("groups",),
        ("GROUP", "PORT", "MAC", "IP", "SOURCES"),
        member_rows,
        _made("groups", of_groups(members)),
        PLACES | {"group"},
    ),
    "senders": Table(
        "who sends to which group",
        ("groups",),
        ("GROUP", "PORT", "MAC", "IP", "RATE", "RULE"),
        sender_rows,
        _made("groups", of_groups(senders)),
        PLACES | {"group"},
    ),
    "connections": Table(
        "which hosts of each tenant receive and send which groups, since when",
        CONNECTION_SECTIONS,
        CONNECTION_TITLES,
        connection_rows,
        _by_policy(connections),
        PLACES | {"group", "tenant"},
    ),
    "classes": Table(
        "service classes: who sends in them, and how far they are from their goals",
        ("groups", "classes"),
        ("CLASS", "DSCP", "GROUPS", "SENDERS", "RATE", "QUEUE", "GOAL", "INDEX", "AT", "LACKS"),
        class_rows,
        lambda snapshot: classes_with_queues(snapshot.section("groups"), snapshot.section("classes")),
    ),
    "queues": Table(
        "queues of ports: what each is sure of and sends",
        ("queues",),
        ("PORT", "QUEUE", "CLASSES", "SURE OF", "SENDS", "DROPS/S", "INDEX", "LACKS"),
        queue_rows,
        _of("queues"),
        PLACES,
    ),
    "tables": Table(
        "flow tables that groups go in and out of: what there is room for, and what is in",
        ("tables",),
        (
            "SWITCH",
            "TABLE",
            "ROOM FOR",
            "PINNED",
            "ENTRIES",
            "GROUPS",
            "COVERED",
            "OUT",
            "HITS",
            "FAULTS",
            "STATE",
            "TENANTS",
        ),
        _flow_tables,
        _of("tables"),
        frozenset({"switch"}),
    ),
    "aliases": Table(
        "groups with further trees, and what moves these: queue and fullest link",
        ("groups",),
        ("GROUP", "TREES", "STATE", "SENDERS", "RATE", "QUEUE", "FULL %"),
        alias_rows,
        _made("groups", with_aliases),
        PLACES | {"group"},
    ),
    "switches": Table(
        "switches and their state",
        ("switches",),
        ("SWITCH", "TIER", "FABRIC", "OPENFLOW", "CPU %", "MEMORY %", "STATE", "LABELS"),
        switch_rows,
        _of("switches"),
        frozenset({"switch", "select"}),
    ),
    "versions": Table(
        "what each switch is, and which versions of OpenFlow, IGMP and MLD are in force there",
        ("versions",),
        VERSION_TITLES,
        version_rows,
        _of("versions"),
        frozenset({"switch"}),
    ),
    "fabrics": Table(
        "fabrics, which no link joins to each other",
        ("switches",),
        ("FABRIC", "SWITCHES", "CONNECTED", "IN SYNC"),
        _plain("fabric", "switches", "connected", "in_sync"),
        _made("switches", fabrics),
    ),
    "links": Table(
        "links between switches, those that are missing too",
        ("links",),
        ("PORT", "PORT", "CAPACITY", "STATE", "SINCE (UTC)"),
        link_rows,
        _of("links"),
        PLACES | {"select"},
    ),
    "ports": Table("ports and their rates", ("ports",), PORT_TITLES, port_rows, _of("ports"), PLACES | {"select"}),
    "hosts": Table(
        "hosts and where they are",
        ("hosts",),
        ("MAC", "PORT", "VLAN", "IP"),
        lambda host, called: [(host.get("mac"), place(host, called), text(host.get("vlan")), text(host.get("ips")))],
        _of("hosts"),
        PLACES | {"select"},
    ),
    "events": Table(
        "what happened, the newest last",
        ("events",),
        ("TIME (UTC)", "SEVERITY", "SOURCE", "KIND", "STATE", "PORT", "GROUP", "TEXT"),
        event_rows,
        _made("events", newest_first, -1),
        PLACES | {"group", "severity"},
        newest_last=True,
    ),
    "refusals": Table(
        "who asked for, or sent to, a group and was refused",
        ("groups",),
        ("GROUP", "ROLE", "PORT", "MAC", "IP", "DETAIL"),
        refusal_rows,
        _made("groups", of_groups(refusals)),
        PLACES | {"group"},
    ),
    "rules": Table(
        "how often each rule of the policy decided",
        ("rules",),
        ("RULE", "ALLOWED", "DENIED"),
        _plain("rule", "allow", "deny"),
        lambda snapshot: list(snapshot.section("rules").documents.values()),
    ),
    "unused": Table(
        "rules that never decided, tenants without hosts, addresses of pools that nobody uses",
        UNUSED_SECTIONS,
        UNUSED_TITLES,
        unused_rows,
        _by_policy(unused),
    ),
    "staged": Table(
        "who a staged policy would refuse, or admit, instead",
        ("staged",),
        ("WOULD BE", "ROLE", "GROUP", "SOURCE", "PORT", "MAC", "IP", "RULE NOW", "RULE THEN", "TIMES"),
        staged_rows,
        _of("staged"),
        PLACES | {"group"},
    ),
    "candidates": Table(
        "policies that the configuration seems to follow, found in its changes",
        ("candidates",),
        ("ID", "STATE", "PROPERTIES", "ON", "RESOURCES", "DEVIATE", "NEAR"),
        candidate_rows,
        _of("candidates"),
    ),
    "routers": Table(
        "queriers, and ports with multicast routers",
        ("routers",),
        ("WHAT", "PORT", "WHO"),
        router_rows,
        _of("routers"),
        PLACES,
        document=routers_document,
    ),
    "alarms": Table(
        "what is wrong now, the gravest first, with what follows from it",
        ("alarms",),
        ("SEVERITY", "SINCE (UTC)", "KEY", "ACKNOWLEDGED BY", "TEXT"),
        alarm_rows,
        _made("alarms", gravest_first),
        PLACES | {"severity"},
    ),
    "cleared-alarms": Table(
        "alarms that are over, the newest last",
        ("cleared-alarms",),
        ("SEVERITY", "SINCE (UTC)", "UNTIL (UTC)", "KEY", "ACKNOWLEDGED BY", "TEXT"),
        cleared_alarm_rows,
        _of("cleared-alarms"),
        PLACES | {"severity"},
        newest_last=True,
    ),
    "anomalies": Table(
        "ports that behave unlike their peers",
        ("anomalies",),
        ("RANK", "MEMBER", "PEERS", "METRIC", "SINCE (UTC)", "SCORE", "VERDICT", "TEXT"),
        anomaly_rows,
        _of("anomalies"),
        PLACES,
    ),
    "allocations": Table(
        "what was allocated and why, the newest last",
        ("allocations",),
        ("TIME (UTC)", "PORTS", "REASON"),
        allocation_rows,
        _made("allocations", newest_first, -1),
        newest_last=True,
    ),
    "cluster": Table(
        "controllers and monitors that share the fabric: who leads, who polls what, and what is wrong",
        ("cluster", "monitors"),
        MEMBER_TITLES,
        cluster_rows,
        lambda snapshot: [*snapshot.section("cluster").in_order(), *snapshot.section("monitors").in_order()],
    ),
    "scaling": Table(
        "how busy monitors that share the switches were, and how many there should be, the newest last",
        ("scaling",),
        SCALING_TITLES,
        scaling_rows,
        _of("scaling"),
        newest_last=True,
    ),
    "pools": Table(
        "pools of addresses of groups, and how many are taken",
        ("pools",),
        ("POOL", "RANGES", "ADDRESSES", "TAKEN", "OUTSIDE"),
        _plain("pool", "ranges", "addresses", "taken", "outside"),
        _of("pools"),
    ),
    "addresses": Table(
        "addresses that were taken from pools, and whose they are",
        ("addresses",),
        ("POOL", "NAME", "ADDRESS", "MAC", "IN POOL"),
        _plain("pool", "name", "address", "mac", "in_pool"),
        _of("addresses"),
    ),
    "runs": Table("a profile of the controller, a storm against it", ("runs",), RUN_TITLES, run_rows, _of("runs")),
    "policy": Table("the policy file in force", ("policy",), ("LINE", "TEXT"), policy_rows, _of("policy"), one=True),
}
"""Tables by the name that users, the API and the feed have for them."""
