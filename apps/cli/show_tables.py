"""What can be shown of a running controller: where each table's documents come from, and how they become rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from apps.cli.called import SnapshotNames
from apps.cli.perf_console import percent, scaled
from apps.cli.show_cells import Fields, Row, labels, place, role, text, vlans
from apps.cli.show_classes import class_rows, queue_rows
from apps.cli.show_cluster import MEMBER_TITLES, cluster_rows
from apps.cli.show_groups import alias_rows, group_rows, member_rows, refusal_rows, rows_of_group, sender_rows
from apps.cli.show_runs import RUN_TITLES, run_rows
from apps.cli.show_scaling import SCALING_TITLES, scaling_rows
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
from controller.snapshot.reader import Document, DocumentCopy, Snapshot

PLACES = frozenset({"switch", "port"})
"""Documents are at a switch or a port, and can be chosen by it."""


CANDIDATE_PLACES = 3
"""Resources that are named of a policy that was found."""


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


def _flow_tables(fields: Fields, called: SnapshotNames) -> Iterator[Row]:
    names = ("table", "capacity", "pinned", "entries", "groups", "groups_out", "hits", "faults", "state")
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


OPENFLOW = {1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}
"""Versions of OpenFlow by the number that stands for them on the wire."""


def _switches(switch: Fields, called: SnapshotNames) -> Iterator[Row]:
    away = switch.get("connected") is False
    state = [
        f"not connected since {called.clock(switch['disconnected_s'])}"
        if switch.get("disconnected_s")
        else "not connected"
    ]
    state = state if away else []
    state += ["drained"] if switch.get("drained") else []
    state += ["not in sync"] if switch.get("in_sync") is False and not away else []
    state += ["counters unanswered"] if switch.get("up") is False and not away else []
    version = text(OPENFLOW.get(switch.get("ofp_version") or 0, switch.get("ofp_version")))
    cpu, memory = percent(switch.get("cpu_pct")), percent(switch.get("memory_pct"))
    yield (
        place(switch, called),
        text(switch.get("tier")),
        text(switch.get("fabric")),
        f"{version} by TLS" if switch.get("encrypted") else version,
        cpu,
        memory,
        ", ".join(state) or "up",
        labels(switch),
    )


def _links(link: Fields, called: SnapshotNames) -> Iterator[Row]:
    ends = (called.label(link.get(f"dpid_{end}"), link.get(f"port_{end}")) for end in "ab")
    yield *ends, scaled(link.get("capacity_bps"), "bit/s"), text(link.get("state")), called.clock(link.get("since_s"))


def _ports(port: Fields, called: SnapshotNames) -> Iterator[Row]:
    rates = (scaled(port.get(f"{way}_bps")) for way in ("rx", "tx"))
    busy = (percent(port.get(f"{way}_utilisation_pct")) for way in ("rx", "tx"))
    bad = (scaled(_total(port, f"rx_{what}_pps", f"tx_{what}_pps")) for what in ("errors", "dropped"))
    metric, score = port.get("port_metric"), port.get("score")
    yield (
        place(port, called),
        text(port.get("name")),
        role(port),
        vlans(port),
        *rates,
        *busy,
        *bad,
        "disqualified" if port.get("disqualified") else text(metric),
        "-" if score is None else f"{score:.2f}",
        labels(port),
    )


def _total(fields: Fields, *names: str) -> float | None:
    known = [fields[name] for name in names if fields.get(name) is not None]
    return sum(known) if known else None


def _events(event: Fields, called: SnapshotNames) -> Iterator[Row]:
    words = (text(event.get(name)) for name in ("severity", "source", "kind", "state"))
    yield (
        called.clock(event.get("time_s")),
        *words,
        place(event, called),
        text(event.get("group")),
        text(event.get("text")),
    )


def _routers(router: Fields, called: SnapshotNames) -> Iterator[Row]:
    for querier in router.get("queriers") or ():
        where = f" in fabric {querier['fabric']}" if querier.get("fabric") else ""
        what = f"querier of IPv{querier['family']}{_in_vlan(querier)}{where}"
        if querier["address"] is None:
            yield what, "-", "this controller" if querier["ours"] else "nobody"
        else:
            yield what, place(querier, called), querier["address"]
    if "family" in router:
        yield f"router port of IPv{router['family']}{_in_vlan(router)}", place(router, called), _why_router(router)


def _in_vlan(fields: Fields) -> str:
    return f" in VLAN {fields['vlan']}" if fields.get("vlan") else ""


def _why_router(router: Fields) -> str:
    heard = ", ".join(router.get("routers") or ()) or "-"
    how = "static" if router.get("static") else heard
    how = f"{how}, gets what it asks for" if router.get("on_request") else how
    if joined := router.get("joined"):
        how += f", joined {joined['group_count']} group{'s' * (joined['group_count'] != 1)}"
    if reported := router.get("reported"):
        protocol, count = "IGMP" if router["family"] == 4 else "MLD", reported["group_count"]
        how += f", is reported {count} group{'s' * (count != 1)} in {protocol}v{reported['version']}"
    return how


def _routers_document(found: Sequence[Fields]) -> dict[str, Any]:
    queriers = [querier for fields in found for querier in fields.get("queriers") or ()]
    return {"queriers": queriers, "router_ports": [fields for fields in found if "family" in fields]}


def _alarms(alarm: Fields, called: SnapshotNames) -> Iterator[Row]:
    flaps = alarm.get("occurrences") or 1
    what = f"{alarm.get('text')}" + (f" It came {flaps} times." if flaps > 1 else "")
    yield (
        text(alarm.get("severity")),
        called.clock(alarm.get("since_s")),
        text(alarm.get("key")),
        text(alarm.get("acknowledged_by")),
        what,
    )
    for consequence in alarm.get("consequences") or ():
        yield "", "", "", "", f"- {consequence.get('text')}"


def _cleared_alarms(alarm: Fields, called: SnapshotNames) -> Iterator[Row]:
    severity, since, *rest = next(_alarms(alarm, called))
    yield severity, since, called.clock(alarm.get("cleared_s")), *rest


def _anomalies(anomaly: Fields, called: SnapshotNames) -> Iterator[Row]:
    words = (text(anomaly.get(name)) for name in ("peer_group", "metric"))
    score = anomaly.get("score")
    yield (
        text(anomaly.get("rank")),
        place(anomaly, called) if "dpid" in anomaly else text(anomaly.get("member")),
        *words,
        called.clock(anomaly.get("since_s")),
        "-" if score is None else f"{score:.2f}",
        text(anomaly.get("verdict")),
        text(anomaly.get("text")),
    )


def _allocations(decision: Fields, called: SnapshotNames) -> Iterator[Row]:
    steps = decision.get("steps") or ()
    start: Row = called.clock(decision.get("time_s")), text(decision.get("ports"))
    reasons: list[object] = [f"{step.get('chosen')}: {step.get('reason')}" for step in steps]
    for reason in reasons or [_shortage(decision.get("error"))]:
        yield *start, reason
        start = "", ""


def _shortage(error: object) -> object:
    if not isinstance(error, Mapping):
        return text(error)
    return ", ".join(f"{name}: {value}" for name, value in error.items())


def _staged(decision: Fields, called: SnapshotNames) -> Iterator[Row]:
    errors = decision.get("errors") or ()
    if decision.get("would_be") != "alike" or decision.get("loaded_s") is not None:
        where = place(decision, called) if decision.get("dpid") is not None else "-"
        asked = (text(decision.get(name)) for name in ("would_be", "role", "group", "source"))
        who = (text(decision.get("mac")), text(decision.get("ip")))
        rules = (text(decision.get("rule")), text(decision.get("staged_rule")), text(decision.get("count")))
        yield *asked, where, *who, *rules
    elif not errors:
        yield "no file", text(decision.get("path"))
    yield from (("fault", fault) for fault in errors)


def _candidate(candidate: Fields, called: SnapshotNames) -> Iterator[Row]:
    if candidate.get("state") == "search":
        if fault := candidate.get("fault"):
            yield "fault", fault
        if candidate.get("searched_s") is None:
            yield "no search yet", text(candidate.get("path"))
        return
    where = candidate.get("told_by") or candidate.get("resources") or ()
    shown, count = ", ".join(where[:CANDIDATE_PLACES]), candidate.get("resource_count") or 0
    more = "" if candidate.get("told_by") or count <= CANDIDATE_PLACES else f" and {count - CANDIDATE_PLACES} more"
    numbers = (text(candidate.get(name)) for name in ("resource_count", "deviation_count", "near_count"))
    properties = ", ".join(candidate.get("properties") or ())
    yield candidate["id"], candidate.get("state"), properties, shown + more, *numbers


def _policy(policy: Fields, called: SnapshotNames) -> Iterator[Row]:
    yield "file", text(policy.get("path"))
    yield "read", called.clock(policy.get("loaded_s"))
    yield from (("fault", fault) for fault in policy.get("errors") or ())
    yield from enumerate((policy.get("text") or "").splitlines(), 1)


_PORT_TITLES = (
    "PORT",
    "NAME",
    "ROLE",
    "VLANS",
    "RX BIT/S",
    "TX BIT/S",
    "RX %",
    "TX %",
    "ERRORS/S",
    "DROPPED/S",
    "METRIC",
    "SCORE",
    "LABELS",
)

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
        ("SWITCH", "TABLE", "ROOM FOR", "PINNED", "ENTRIES", "GROUPS", "OUT", "HITS", "FAULTS", "STATE", "TENANTS"),
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
        _switches,
        _of("switches"),
        frozenset({"switch", "select"}),
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
        _links,
        _of("links"),
        PLACES | {"select"},
    ),
    "ports": Table("ports and their rates", ("ports",), _PORT_TITLES, _ports, _of("ports"), PLACES | {"select"}),
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
        _events,
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
    "staged": Table(
        "who a staged policy would refuse, or admit, instead",
        ("staged",),
        ("WOULD BE", "ROLE", "GROUP", "SOURCE", "PORT", "MAC", "IP", "RULE NOW", "RULE THEN", "TIMES"),
        _staged,
        _of("staged"),
        PLACES | {"group"},
    ),
    "candidates": Table(
        "policies that the configuration seems to follow, found in its changes",
        ("candidates",),
        ("ID", "STATE", "PROPERTIES", "ON", "RESOURCES", "DEVIATE", "NEAR"),
        _candidate,
        _of("candidates"),
    ),
    "routers": Table(
        "queriers, and ports with multicast routers",
        ("routers",),
        ("WHAT", "PORT", "WHO"),
        _routers,
        _of("routers"),
        PLACES,
        document=_routers_document,
    ),
    "alarms": Table(
        "what is wrong now, the gravest first, with what follows from it",
        ("alarms",),
        ("SEVERITY", "SINCE (UTC)", "KEY", "ACKNOWLEDGED BY", "TEXT"),
        _alarms,
        _made("alarms", gravest_first),
        PLACES | {"severity"},
    ),
    "cleared-alarms": Table(
        "alarms that are over, the newest last",
        ("cleared-alarms",),
        ("SEVERITY", "SINCE (UTC)", "UNTIL (UTC)", "KEY", "ACKNOWLEDGED BY", "TEXT"),
        _cleared_alarms,
        _of("cleared-alarms"),
        PLACES | {"severity"},
        newest_last=True,
    ),
    "anomalies": Table(
        "ports that behave unlike their peers",
        ("anomalies",),
        ("RANK", "MEMBER", "PEERS", "METRIC", "SINCE (UTC)", "SCORE", "VERDICT", "TEXT"),
        _anomalies,
        _of("anomalies"),
        PLACES,
    ),
    "allocations": Table(
        "what was allocated and why, the newest last",
        ("allocations",),
        ("TIME (UTC)", "PORTS", "REASON"),
        _allocations,
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
    "policy": Table("the policy file in force", ("policy",), ("LINE", "TEXT"), _policy, _of("policy"), one=True),
}
"""Tables by the name that users, the API and the feed have for them."""
