"""`vsrt doctor`: what an operator should know of a running controller before relying on it, and what to do then."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import OperationFailed, emit_json, emit_table
from apps.cli.doctor_latency import costly_settings
from apps.cli.perf_console import scaled
from apps.cli.reach import add_source, open_source
from controller.rules.pipeline import OPENFLOW_1_0
from controller.snapshot.reader import Snapshot

_ALLOWS_ALL = re.compile(r"^default:\s*[\"']?allow\b", re.MULTILINE)


class Finding(NamedTuple):
    """Something to know. `dpids` are the switches that it is about, none where it is about the whole."""

    kind: str
    text: str
    advice: str
    dpids: tuple[int, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Status 0: nothing to tell; 1: something is; 2: bad words. Nothing is changed. What differs in the tables of "
        "switches `vsrt check` finds."
    )
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Read what the controller tells, and say what of it is to be looked at."""
    source = open_source(args)
    snapshot = next(source.follow(("status", *SECTIONS), beside=("policy", "alarms", "classes", "tables", "runs")))
    if not snapshot.section("status").documents:
        raise OperationFailed("the controller does not tell its status yet: ask again in a moment")
    called = SnapshotNames(snapshot)
    found = [finding for look in LOOKS for finding in look(snapshot, called)]
    if args.json:
        emit_json({"healthy": not found, "findings": [finding._asdict() for finding in found]})
    elif found:
        emit_table(("FINDING", "WHAT IT IS", "WHAT TO DO"), (finding[:3] for finding in found))
    else:
        print("nothing to tell: all switches are connected, in sync, and speak OpenFlow over TLS")
    return 1 if found else 0


def _switches(snapshot: Snapshot, is_meant: Callable[[Mapping[str, Any]], bool]) -> tuple[int, ...]:
    documents = (document.fields for document in snapshot.section("switches").documents.values())
    return tuple(sorted(fields["dpid"] for fields in documents if "dpid" in fields and is_meant(fields)))


def _are(dpids: tuple[int, ...], called: SnapshotNames, does: str, do: str) -> str:
    """Return a sentence about one switch, or about several."""
    names = ", ".join(called.label(dpid) for dpid in dpids)
    return f"Switch {names} {does}." if len(dpids) == 1 else f"{len(dpids)} switches {do}: {names}."


def _no_switches(snapshot: Snapshot, _called: SnapshotNames) -> Iterator[Finding]:
    if not _switches(snapshot, lambda _fields: True):
        text = "No switch has connected."
        yield Finding("no-switches", text, "Point the switches at this controller, and look at the firewall between.")


def _away(snapshot: Snapshot, called: SnapshotNames) -> Iterator[Finding]:
    dpids = _switches(snapshot, lambda fields: fields.get("connected") is False)
    if dpids:
        text = _are(dpids, called, "is not connected", "are not connected")
        advice = (
            "Look at the switch and its way here; `vsrt do forget` takes it off the lists where it is gone for good."
        )
        yield Finding("not-connected", text, advice, dpids)


def _not_in_sync(snapshot: Snapshot, called: SnapshotNames) -> Iterator[Finding]:
    dpids = _switches(snapshot, lambda fields: fields.get("connected") is True and fields.get("in_sync") is False)
    if dpids:
        text = _are(dpids, called, "does not hold what it should", "do not hold what they should")
        advice = "Ask again in a moment; `vsrt check` tells what differs if it stays so."
        yield Finding("not-in-sync", text, advice, dpids)


def _plain_tcp(snapshot: Snapshot, called: SnapshotNames) -> Iterator[Finding]:
    dpids = _switches(snapshot, lambda fields: fields.get("encrypted") is False)
    if dpids:
        text = _are(dpids, called, "speaks OpenFlow over plain TCP", "speak OpenFlow over plain TCP")
        advice = "Who is on the way can read and change what it is told: docs/how-to/encrypt-openflow.md."
        yield Finding("plain-tcp", text, advice, dpids)


def _openflow_1_0(snapshot: Snapshot, called: SnapshotNames) -> Iterator[Finding]:
    dpids = _switches(snapshot, lambda fields: fields.get("ofp_version") == OPENFLOW_1_0)
    if dpids:
        text = _are(dpids, called, "speaks OpenFlow 1.0", "speak OpenFlow 1.0")
        advice = "It carries no IPv6: have it speak 1.3 if it can."
        yield Finding("openflow-1.0", text, advice, dpids)


def _policy(snapshot: Snapshot, _called: SnapshotNames) -> Iterator[Finding]:
    document = snapshot.section("policy").documents.get("policy")
    fields = {} if document is None else document.fields
    if fields.get("errors"):
        text = f"The policy file on disk has {len(fields['errors'])} faults, and the one before is in force."
        yield Finding("policy-faulty", text, "`vsrt policy check FILE` names each with its line.")
    if document is not None and not fields.get("path"):
        text = "The controller runs without a policy file: nobody may receive or send."
        yield Finding("no-policy", text, "Write one: docs/how-to/write-a-policy.md.")
    elif _ALLOWS_ALL.search(fields.get("text") or ""):
        text = "The policy admits every host that no rule is about (default: allow)."
        yield Finding("default-allow", text, "Write rules, then set `default: deny`: docs/how-to/write-a-policy.md.")


def _latency(snapshot: Snapshot, _called: SnapshotNames) -> Iterator[Finding]:
    document = snapshot.section("policy").documents.get("policy")
    fields = {} if document is None else document.fields
    for each in costly_settings(fields.get("text") or ""):
        place = f"{fields.get('path') or 'policy'}:{each.line}: " if each.line else ""
        yield Finding("latency", f"{place}{each.field}: {each.cost}.", f"{each.cure}.")
    for document in snapshot.section("runs").documents.values():
        run = document.fields
        if (run.get("run"), run.get("state")) == ("profile", "running"):
            text = f"The profile {run.get('name')} runs, and a join takes a tenth longer meanwhile."
            yield Finding("latency", text, "`vsrt profile stop` ends it before its time.")


def _alarms(snapshot: Snapshot, _called: SnapshotNames) -> Iterator[Finding]:
    alarms = [document.fields for document in snapshot.section("alarms").documents.values()]
    waiting = [fields for fields in alarms if not fields.get("acknowledged_by")]
    if waiting:
        are = "1 alarm is" if len(waiting) == 1 else f"{len(waiting)} alarms are"
        text = f"{are} open that nobody has acknowledged."
        yield Finding("alarms", text, "`vsrt show alarms` lists them with what follows from each.")


def _classes(snapshot: Snapshot, called: SnapshotNames) -> Iterator[Finding]:
    documents = [document.fields for document in snapshot.section("classes").in_order()]
    missed = [fields for fields in documents if (fields.get("index") or 0) > 1 and fields.get("dpid") is not None]
    if missed:
        places = (called.label(fields["dpid"], fields["port_no"]) for fields in missed)
        said = (
            f"{fields['service_class']} (index {fields['index']:g} at {place})"
            for fields, place in zip(missed, places, strict=True)
        )
        miss = "1 service class misses its" if len(missed) == 1 else f"{len(missed)} service classes miss their"
        advice = "`vsrt show classes` tells what ports lack: set the goal lower, or take load off the port."
        yield Finding("goal-missed", f"{miss} goal: {', '.join(said)}.", advice, _distinct(missed))
    lacking = [fields for fields in documents if fields.get("missing_bps")]
    if lacking:
        said = (f"{scaled(fields['missing_bps'], 'bit/s')} for {fields['service_class']}" for fields in lacking)
        text = f"Ports lack capacity for goals: {', '.join(said)}."
        advice = "`vsrt show queues` names the ports; what classes of more importance need they have first."
        yield Finding("goal-infeasible", text, advice)


def _tables(snapshot: Snapshot, called: SnapshotNames) -> Iterator[Finding]:
    documents = [document.fields for document in snapshot.section("tables").in_order()]
    short = [fields for fields in documents if fields.get("state") == "low"]
    if short:
        dpids = _distinct(short)
        names = ", ".join(called.label(dpid) for dpid in dpids)
        text = f"Flow tables have less than 1 % of their entries free: {names}."
        advice = "`vsrt show tables` tells what is in; where `thrashing` comes with it, the tables are too small."
        yield Finding("tables-short", text, advice, dpids)


def _distinct(documents: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    return tuple(sorted({fields["dpid"] for fields in documents}))


LOOKS: tuple[Callable[[Snapshot, SnapshotNames], Iterator[Finding]], ...] = (
    *(_no_switches, _away, _not_in_sync, _plain_tcp, _openflow_1_0),
    *(_policy, _alarms, _classes, _tables, _latency),
)
"""What is looked at, in the order in which it is told."""
