"""`vsrt latency`: where time goes between the running controller and its switches, and on the way of a join."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.cli.latency_ways import known_group, named_hops, print_hops, print_ways, ways_of
from apps.cli.perf_console import add_socket, ask_socket, socket_path
from apps.cli.progress import ProgressBar
from apps.cli.show_selection import read_group
from apps.cli.snapshot_socket import SocketSource, user_name
from apps.end_signals import EndSignals
from controller.durations import parse_duration
from controller.profiles.latencies import JOIN_SEGMENTS, JOIN_WAY

UNKNOWN = "this controller measures no latency"
LOOK_S = 0.5
SHORTEST_S, LONGEST_S = 0.5, 86_400.0
TITLES = (
    *("SWITCH", "ECHO P50 MS", "P99", "BARRIERS", "P50 MS", "P99"),
    *("JOINS", "WHOLE MS", "PACKET-IN", "LOOP", "CORE", "EDITS", "ECHO", "SWITCH", "JOIN P99 MS"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how long, and which switch."""
    parser.epilog = (
        "An echo goes to the switch and back four times a second. A barrier is from when edits were sent to when the "
        "switch had confirmed them. The whole of a join is from when its report left the host's switch to when "
        "that has confirmed the port: PACKET-IN (half an echo), LOOP (until the controller's loop took it), CORE "
        "(until that was decided), EDITS (until they were sent), ECHO (their way, and that of the answer) and SWITCH "
        "(what the switch did beyond) add up to it. Joins are those that come while it measures: `vsrt storm` makes "
        "some. A hop is what is left of the way of a frame that discovery sends over a cable, less half an echo of "
        "both switches. Status 1: no controller answers, or a connected switch answered no echo."
    )
    parser.add_argument("--for", dest="for_s", default="10s", metavar="TIME", help="30s, 5m, 2h (default: 10s)")
    parser.add_argument("--switch", metavar="SWITCH", help="only this one, by name or datapath id")
    parser.add_argument("--hops", action="store_true", help="every hop between switches, by its port")
    parser.add_argument("--group", metavar="ADDRESS", help="the ways of a group's packets, hop by hop")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, and tell; a signal ends it before its time."""
    for_s = parse_duration(args.for_s)
    if for_s is None or not SHORTEST_S <= for_s <= LONGEST_S:
        raise InputError(f"--for: {args.for_s[:64]!r} is no duration such as 10s, 5m or 2h, from 500ms to 24h")
    group = None if args.group is None else read_group(args.group, "--group")
    source = SocketSource(socket_path(args))
    called = SnapshotNames(next(source.follow(SECTIONS)))
    chosen = None if args.switch is None else called.switch(args.switch, "--switch")
    if group is not None:
        known_group(group, next(source.follow(("groups",), beside=SECTIONS)))
    document = _measure(args, for_s)
    if group is not None:
        snapshot = next(source.follow(("groups",), beside=SECTIONS))
        document["ways"] = ways_of(group, snapshot, document["hops"], document["switches"], called)
    document["hops"] = named_hops(document["hops"], called, chosen)
    document["switches"] = [
        {"switch": called.label(each["dpid"]), **each}
        for each in document["switches"]
        if chosen is None or each["dpid"] == chosen
    ]
    if chosen is not None and not document["switches"]:
        raise OperationFailed(f"{called.label(chosen)} was not connected")
    document["joins"] = _joins(document["switches"])
    if args.json:
        emit_json(document)
    else:
        _print(document)
        print_hops(document["hops"], are_all=args.hops)
        if group is not None:
            print_ways(group, document["ways"])
    silent = [each for each in document["switches"] if each["echo"] is None]
    return 1 if silent or not document["switches"] else 0


def _measure(args: argparse.Namespace, for_s: float) -> dict[str, Any]:
    begun = ask_socket(args, {"do": "latency-start", "by": user_name()}, UNKNOWN)
    bar = ProgressBar()
    begun_s = time.monotonic()
    try:
        with EndSignals() as signals:
            while (past_s := time.monotonic() - begun_s) < for_s and not signals.asked:
                bar.draw("latency, seconds", int(past_s), int(for_s))
                ask_socket(args, {"do": "latency-look", "id": begun["id"]}, UNKNOWN)
                signals.wait(min(LOOK_S, for_s - past_s))
    finally:
        bar.clear()
    return dict(ask_socket(args, {"do": "latency-stop", "id": begun["id"], "by": user_name()}, UNKNOWN))


def _joins(switches: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the means over the joins of all switches, whose segments add up to the whole; None without joins."""
    joined = [each for each in switches if each["way"] is not None]
    count = sum(each["join"]["count"] for each in joined)
    if not count:
        return None
    way = {
        name: round(sum(each["join"]["count"] * each["way"][name] for each in joined) / count, 6)
        for name in (*JOIN_WAY, "whole")
    }
    longest_ms = max(each["join"]["max_ms"] for each in joined)
    segments = {
        name: round(sum(each["join"]["count"] * each["segments"][name]["mean_ms"] for each in joined) / count, 6)
        for name in JOIN_SEGMENTS
    }
    mean_ms = round(sum(each["join"]["count"] * each["join"]["mean_ms"] for each in joined) / count, 6)
    return {"count": count, "mean_ms": mean_ms, "max_ms": longest_ms, "segments": segments, "way": way}


def _print(document: Mapping[str, Any]) -> None:
    if not document["switches"]:
        print("no switch is connected")
        return
    emit_table(TITLES, [_row(each) for each in document["switches"]])
    joins = document["joins"]
    if joins is None:
        print(f"no join that changed anything in {document['lasted_s']:.1f} s")
    else:
        way = " + ".join(f"{name.replace('_', '-')} {joins['way'][name]:.3f}" for name in JOIN_WAY)
        are = "1 join took" if joins["count"] == 1 else f"{joins['count']:,} joins took"
        print(f"{are} {joins['way']['whole']:.3f} ms on average = {way}")
        print(f"the longest took {joins['max_ms']:.3f} ms from when the controller could take its report")
    for each in document["switches"]:
        if each["unanswered_echoes"]:
            print(f"{each['switch']} left {each['unanswered_echoes']:,} echoes unanswered until the next was due")
    if document["missed"]:
        print(f"{document['missed']:,} times found no room")


def _row(each: Mapping[str, Any]) -> tuple[str, ...]:
    echo, barrier, join, way = each["echo"], each["barrier"], each["join"], each["way"]
    return (
        each["switch"],
        *(_cell(echo, name) for name in ("p50_ms", "p99_ms")),
        "-" if barrier is None else f"{barrier['count']:,}",
        *(_cell(barrier, name) for name in ("p50_ms", "p99_ms")),
        "-" if join is None else f"{join['count']:,}",
        *(_cell(way, name) for name in ("whole", *JOIN_WAY)),
        _cell(join, "p99_ms"),
    )


def _cell(times: Mapping[str, Any] | None, name: str) -> str:
    return "-" if times is None else f"{times[name]:.3f}"
