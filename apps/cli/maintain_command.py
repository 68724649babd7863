"""`vsrt maintain`: every switch of a fabric in turn, drained, upgraded and watched, so that streams go on."""

from __future__ import annotations

import argparse
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import InputError, emit_json, emit_table, printable
from apps.cli.maintain_runner import HOOK_HELP, SECTION, Hook, Runner, read_hook, sentence
from apps.cli.reach import add_source, open_source
from apps.cli.snapshot_source import Action, SnapshotSource
from controller.maintenance.model import LONGEST_STEP_S, USUAL
from controller.snapshot.reader import Snapshot
from controller.snapshot.selectors import SelectorInvalid, parse_selector, selected, unknown_keys

_WINDOW = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])\Z")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Status 0: done; 1: refused, halted or aborted; 2: bad words. The campaign is the controller's and goes on "
        "without the command, up to the next upgrade: `vsrt maintain resume --hook PROGRAM` goes on with those."
    )
    verbs = parser.add_subparsers(required=True, metavar="plan|start|status|pause|resume|skip|abort")
    plan = verbs.add_parser("plan", help="say in which order it would go, and what speaks against it")
    start = verbs.add_parser("start", help="begin a campaign, and upgrade each switch when it is drained")
    for command in (plan, start):
        _add_order(command)
    start.add_argument("--hook", metavar="PROGRAM", required=True, help=HOOK_HELP)
    resume = verbs.add_parser("resume", help="go on after a pause or a failure, or after the command was killed")
    resume.add_argument("--hook", metavar="PROGRAM", help=f"upgrade from here on: {HOOK_HELP}")
    skip = verbs.add_parser("skip", help="leave a switch out that waits or has failed")
    skip.add_argument("switch", metavar="SWITCH", help="name or datapath id")
    for name, command, run_verb in (
        ("plan", plan, _plan),
        ("start", start, _start),
        ("status", verbs.add_parser("status", help="say where each switch is"), _status),
        ("pause", verbs.add_parser("pause", help="begin no other switch; those in work come to their end"), _turn),
        ("resume", resume, _resume),
        ("skip", skip, _skip),
        ("abort", verbs.add_parser("abort", help="begin no other switch, and end when those in work have"), _turn),
    ):
        add_source(command)
        command.set_defaults(run_verb=run_verb, verb=name)


def _add_order(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("switches", metavar="SWITCH", nargs="*", help="switches by name or datapath id; else all")
    parser.add_argument("--select", metavar="SELECTOR", help="those with these labels, such as tier=core,pod=2")
    parser.add_argument(
        "--disruptive",
        action="store_true",
        help="also switches whose hosts have no other and lose packets",
    )
    parser.add_argument("--window", metavar="HH:MM-HH:MM", help="begin only what ends inside, in local time")
    parser.add_argument(
        "--expected",
        metavar="S",
        type=float,
        default=USUAL.expected_s,
        help="how long a switch takes (%(default)g s)",
    )
    parser.add_argument(
        "--hook-limit",
        metavar="S",
        type=float,
        default=USUAL.hook_limit_s,
        help="how long the program may take (%(default)g s)",
    )
    parser.add_argument(
        "--restarts", action="store_true", help="a switch is back only when it has lost its connection meanwhile"
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    return int(args.run_verb(args))


def action(verb: str, **fields: Any) -> Action:
    """Return what the controller is to do."""
    query = {name: _in_query(value) for name, value in fields.items()}
    path = f"/maintenance/{verb}" + (f"?{urlencode(query)}" if query else "")
    return Action({"do": f"maintenance-{verb}", **fields}, "POST", path)


def _in_query(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if value is None or isinstance(value, bool):
        return "true" if value else "" if value is None else "false"
    return str(value)


def _order(args: argparse.Namespace, source: SnapshotSource) -> tuple[dict[str, Any], SnapshotNames]:
    snapshot = next(source.follow(SECTIONS))
    called = SnapshotNames(snapshot)
    if args.switches and args.select is not None:
        raise InputError("--select: not with switches by name")
    dpids = [called.switch(text, "SWITCH") for text in args.switches] or _selected(args.select, snapshot)
    for name, value in (("--expected", args.expected), ("--hook-limit", args.hook_limit)):
        if not 1 <= value <= LONGEST_STEP_S:
            raise InputError(f"{name}: {value:g} s is not from 1 to {LONGEST_STEP_S:g}")
    order = {
        "switches": sorted(set(dpids)),
        "disruptive": args.disruptive,
        "window": _window(args.window),
        "expected_s": args.expected,
        "hook_limit_s": args.hook_limit,
        "restarts": args.restarts,
    }
    return order, called


def _selected(text: str | None, snapshot: Snapshot) -> list[int]:
    switches = snapshot.section("switches")
    documents = [document for document in switches.documents.values() if "dpid" in document.fields]
    if text is not None:
        try:
            terms = parse_selector(text)
        except SelectorInvalid as error:
            raise InputError(f"--select: {error}") from None
        ports = snapshot.section("ports")
        if unknown := unknown_keys(documents, terms, switches, ports):
            raise InputError(f"--select: no switch has {unknown[0]}")
        documents = selected(documents, terms, switches, ports)
        if not documents:
            raise InputError(f"--select: {text} matches no switch")
    return [int(document.fields["dpid"]) for document in documents]


def _window(text: str | None) -> list[int] | None:
    if text is None:
        return None
    match = _WINDOW.match(text)
    if match is None:
        raise InputError(f"--window: {text!r} is no window such as 22:00-06:00")
    start_h, start_min, end_h, end_min = map(int, match.groups())
    window = [3600 * start_h + 60 * start_min, 3600 * end_h + 60 * end_min]
    if window[0] == window[1]:
        raise InputError("--window: it begins when it ends")
    return window


def _plan(args: argparse.Namespace) -> int:
    source = open_source(args)
    order, called = _order(args, source)
    plan = source.do(action("plan", **order))
    if args.json:
        emit_json(plan)
        return 0 if plan["refused"] is None else 1
    rows = [
        (number, plan["groups"][str(wave[0])].rpartition("-")[0], ", ".join(map(called.label, wave)))
        for number, wave in enumerate(plan["waves"], start=1)
    ]
    emit_table(("WAVE", "TIER", "SWITCHES"), rows)
    print(f"{plan['switches']} switches in {len(rows)} waves, about {plan['expected_s'] / 60:.0f} min")
    if plan["disruptive"]:
        print(printable(f"hosts without another switch: {', '.join(map(called.label, plan['disruptive']))}"))
    if plan["refused"] is not None:
        print(printable(f"it would be refused: {plan['refused']}"))
    return 0 if plan["refused"] is None else 1


def _start(args: argparse.Namespace) -> int:
    hook = _hook(args)
    source = open_source(args)
    order, called = _order(args, source)
    runner = secrets.token_hex(8)
    source.do(action("start", **order, runner=runner))
    return _follow(args, source, hook, runner, called, args.hook_limit)


def _resume(args: argparse.Namespace) -> int:
    hook = None if args.hook is None else _hook(args)
    source = open_source(args)
    runner = "" if hook is None else secrets.token_hex(8)
    answer = source.do(action("resume", runner=runner))
    if hook is None:
        return _said(args, answer)
    called = SnapshotNames(next(source.follow(SECTIONS)))
    return _follow(args, source, hook, runner, called, answer["hook_limit_s"])


def _hook(args: argparse.Namespace) -> Hook:
    try:
        return read_hook(args.hook)
    except ValueError as error:
        raise InputError(f"--hook: {error}") from None


def _follow(
    args: argparse.Namespace, source: SnapshotSource, hook: Hook, runner: str, called: SnapshotNames, limit_s: float
) -> int:
    """Upgrade switches as they are drained, until the campaign has come to its end or cannot go on."""
    running = Runner(lambda verb, fields: source.do(action(verb, **fields)), hook, runner, limit_s, called)
    ended = running.run(lambda: open_source(args))
    if args.json:
        emit_json({"campaign": ended.campaign, "switches": list(ended.switches)})
    else:
        print(printable(ended.text))
    return 0 if ended.campaign.get("state") == "done" and not ended.is_replaced else 1


def _turn(args: argparse.Namespace) -> int:
    return _said(args, open_source(args).do(action(args.verb)))


def _skip(args: argparse.Namespace) -> int:
    source = open_source(args)
    called = SnapshotNames(next(source.follow(SECTIONS)))
    return _said(args, source.do(action("skip", dpid=called.switch(args.switch, "SWITCH"))))


def _said(args: argparse.Namespace, campaign: Mapping[str, Any]) -> int:
    if args.json:
        emit_json(campaign)
    else:
        print(printable(sentence(campaign)))
    return 0


def _status(args: argparse.Namespace) -> int:
    section = next(open_source(args).follow((SECTION,))).section(SECTION)
    documents = [document.fields for document in section.documents.values()]
    campaign = next((fields for fields in documents if "dpid" not in fields), None)
    switches = sorted((fields for fields in documents if "dpid" in fields), key=lambda fields: fields["dpid"])
    if args.json:
        emit_json({"campaign": campaign, "switches": switches})
    elif campaign is None:
        print("there was no campaign")
    else:
        emit_table(("SWITCH", "GROUP", "STEP", "WHY"), _rows(switches))
        print(printable(sentence(campaign)))
    return 0


def _rows(switches: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    for fields in switches:
        yield fields["name"], fields["redundancy_group"], fields["step"], fields["reason"]
