"""`vsrt check`: what switches hold against what they shall, and what else does not fit together; repairs if asked."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import InputError, OperationFailed, emit_json, emit_table, printable
from apps.cli.progress import ProgressBar
from apps.cli.reach import add_source, open_source
from apps.cli.snapshot_source import Action, SnapshotSource
from apps.registry import TABLE_APPS
from controller.snapshot.reader import Snapshot

POLL_S = 0.1
STALLED_S = 30.0
"""So long without a further report, and the check is given up."""

SETTLE_S, SETTLES = 0.5, 20
"""How long after a repair, and how often at most, it is looked whether the switches have confirmed it."""

KINDS = ("missing", "extra", "altered")

_STATES = {
    "disconnected": "is not connected",
    "being-read": "is being read since it connected: ask again in a moment",
    "unanswered": "did not tell its entries in time",
    "unreadable": "told entries that cannot be read",
    "replaced": "was asked by another check",
}
"""What is said of a switch that could not be checked."""

FINDINGS = (
    ("discovery", Action({"do": "check-discovery-findings"}, "GET", "/checks/discovery/findings")),
    ("multicast", Action({"do": "check-findings"}, "GET", "/checks/findings")),
)
"""What is asked for what does not fit together, by the app that knows it."""

Report = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Status 0: everything holds, or does after the repair; 1: something differs or could not be read; 2: bad "
        "words. Without --repair nothing is changed. Entries that are not this controller's (foreign) are listed and "
        "never touched. Over the API it takes an operator's token."
    )
    parser.add_argument("--switch", metavar="SWITCH", help="only this switch: name or datapath id")
    parser.add_argument("--repair", action="store_true", help="have entries that differ put right")
    parser.add_argument(
        "--force", action="store_true", help="repair also where more than 5 %% of an app's entries at a switch differ"
    )
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Check, repair if asked, and say what was found."""
    source = open_source(args)
    snapshot = next(source.follow(("status", *SECTIONS)))
    called = SnapshotNames(snapshot)
    status = snapshot.section("status").documents.get("status")
    running = status.fields.get("apps", TABLE_APPS) if status is not None else TABLE_APPS
    apps = [app for app in TABLE_APPS if app in running]
    if not apps:
        raise OperationFailed("no app that keeps flow entries runs in this controller")
    fields: dict[str, Any] = {} if args.switch is None else {"dpid": _known(args.switch, called, snapshot, running)}
    found = _settled_reports(source, apps, fields)
    repairs: list[Report] = []
    left = found
    if args.repair:
        for report in found:
            if _differs(report):
                order = {"dpid": report["dpid"], "repair": True, "force": args.force}
                repairs += _reports(source, [report["app"]], order)
        left = _after(source, apps, fields, repairs) if repairs else found
    findings = [finding for app, asked in FINDINGS if app in running for finding in _findings(source, asked)]
    clean = bool(found) and not findings and not any(_differs(report) or report["state"] != "read" for report in left)
    if args.json:
        emit_json({"clean": clean, "tables": found, "repairs": repairs, "left": left, "findings": findings})
    else:
        _print(found, repairs, left, findings, called)
    return 0 if clean else 1


def _known(text: str, called: SnapshotNames, snapshot: Snapshot, running: Iterable[str]) -> int:
    """Return the datapath id of a switch; InputError where none such is known, by apps that know which there are."""
    dpid, known = called.switch(text, "--switch"), snapshot.section("switches").documents
    if str(dpid) not in known and (known or "multicast" in running):
        raise InputError(f"--switch: no switch {text} is known, connected or not")
    return dpid


def _findings(source: SnapshotSource, asked: Action) -> list[Report]:
    """Return what else does not fit together; the controller looks for it in small steps."""
    began_s = time.monotonic()
    while True:
        answer = source.do(asked)
        if answer["done"]:
            return list(answer["findings"])
        if time.monotonic() > began_s + STALLED_S:
            raise OperationFailed("the controller does not come to the end of its look at members and settings")
        time.sleep(POLL_S)


def _differs(report: Report) -> bool:
    return any(report.get(kind, {}).get("count") for kind in KINDS)


def _settled_reports(source: SnapshotSource, apps: Iterable[str], fields: Mapping[str, Any]) -> list[Report]:
    """Return a report of each switch and app; a switch that is being read since it connected is waited for."""
    for _ in range(SETTLES):
        found = _reports(source, apps, fields)
        if not any(report["state"] == "being-read" for report in found):
            break
        time.sleep(SETTLE_S)
    return found


def _after(
    source: SnapshotSource, apps: Iterable[str], fields: Mapping[str, Any], repairs: Iterable[Report]
) -> list[Report]:
    """Return what there is after the repairs, when the switches have confirmed them or do not come to it."""
    refused = {(report["app"], report["dpid"]) for report in repairs if report.get("repair") == "needs-force"}
    for _ in range(SETTLES):
        found = _settled_reports(source, apps, fields)
        waits = any(
            report.get("pending") or (_differs(report) and (report["app"], report["dpid"]) not in refused)
            for report in found
        )
        if not waits:
            break
        time.sleep(SETTLE_S)
    return found


def _reports(source: SnapshotSource, apps: Iterable[str], fields: Mapping[str, Any]) -> list[Report]:
    """Have apps check their tables and return what they report of each switch."""
    query = {name: value if name != "dpid" else hex(value) for name, value in fields.items()}
    query = {name: str(value).lower() for name, value in query.items()}
    found: list[Report] = []
    for app in apps:
        path = f"/checks/{app}" + (f"?{urlencode(query)}" if query else "")
        number = source.do(Action({"do": f"check-{app}", **fields}, "POST", path))["number"]
        found += _followed(source, app, number)
    return sorted(found, key=lambda report: (report["dpid"], TABLE_APPS.index(report["app"])))


def _followed(source: SnapshotSource, app: str, number: int) -> Iterator[Report]:
    """Yield the reports of a check as they come in; OperationFailed where they stay away."""
    bar = ProgressBar()
    try:
        yield from _heard(source, app, number, bar)
    finally:
        bar.clear()


def _heard(source: SnapshotSource, app: str, number: int, bar: ProgressBar) -> Iterator[Report]:
    after, heard_s = 0, time.monotonic()
    while True:
        question = {"do": f"check-{app}-report", "number": number, "after": after}
        answer = source.do(Action(question, "GET", f"/checks/{app}/{number}?after={after}"))
        yield from answer["reports"]
        after += len(answer["reports"])
        bar.draw(f"switches read for {app}", after, answer["switches"])
        if answer["done"]:
            return
        if answer["reports"]:
            heard_s = time.monotonic()
            continue
        if time.monotonic() > heard_s + STALLED_S:
            raise OperationFailed(f"the check of {app} does not go on: {after} of {answer['switches']} switches")
        time.sleep(POLL_S)


def _print(
    found: list[Report], repairs: list[Report], left: list[Report], findings: list[Report], called: SnapshotNames
) -> None:
    columns = ("desired", "held")
    rows = []
    for report in found:
        if report["state"] != "read":
            continue
        counts = [report[kind]["count"] for kind in (*KINDS, "foreign")]
        rows.append((called.label(report["dpid"]), report["app"], *(report[name] for name in columns), *counts))
    emit_table(("SWITCH", "APP", "DESIRED", "HELD", *(kind.upper() for kind in (*KINDS, "foreign"))), rows)
    for report in found:
        place = f"{called.label(report['dpid'])} {report['app']}"
        if report["state"] != "read":
            reason = f" ({report['reason']})" if "reason" in report else ""
            print(printable(f"{place}: the switch {_STATES.get(report['state'], report['state'])}{reason}"))
            continue
        for line in _lines(report):
            print(printable(f"{place}: {line}"))
    for report in repairs:
        print(printable(f"{called.label(report['dpid'])} {report['app']}: {_repaired(report, left)}"))
    for finding in findings:
        print(printable(finding["text"]))
    if not any(report["state"] == "read" for report in left):
        print("no switch was read")
    elif not findings and not any(_differs(report) for report in left):
        print("everything that was read is as it shall be")


def _lines(report: Report) -> Iterator[str]:
    """Yield what differs, entry by entry, and what waits."""
    for kind in (*KINDS, "foreign"):
        entries = report[kind]["entries"]
        for entry in entries:
            place = f"table {entry['table']}, priority {entry['priority']}, {entry['match']}"
            holds = f", but {_does(entry['holds'])}" if "holds" in entry else ""
            yield f"{kind}: {place} -> {_does(entry)}{holds}"
        if report[kind]["count"] > len(entries):
            yield f"{kind}: {report[kind]['count'] - len(entries)} more"
    for name, text in (
        ("pending", "edits under way, which are not compared"),
        ("kept", "entries of an earlier run, kept until its hosts had time to report"),
        ("no_room", "entries wait for room in a full table"),
        ("refused", "entries that the switch refuses"),
    ):
        if report[name]:
            yield f"{report[name]} {text}"


def _does(entry: Report) -> str:
    return f"{entry['actions']} ({entry['cookie']})"


def _repaired(report: Report, left: Iterable[Report]) -> str:
    if report["state"] != "read":
        return f"not repaired, the switch {_STATES.get(report['state'], report['state'])}"
    if report["repair"] is None:
        return "nothing to repair any more"
    if report["repair"] == "needs-force":
        return "not repaired: more than 5 % of the entries differ; --force does it all the same"
    same = (other for other in left if (other["app"], other["dpid"]) == (report["app"], report["dpid"]))
    if any(_differs(other) or other["state"] != "read" for other in same):
        return "repaired, but something differs still"
    return f"repaired {sum(report[kind]['count'] for kind in KINDS)} entries"
