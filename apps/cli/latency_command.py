"""`vsrt latency`: where time goes between the running controller and its switches, and on the way of a join."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from apps.cli.called import SECTIONS, SnapshotNames
from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.cli.perf_console import add_socket, ask_socket, socket_path
from apps.cli.progress import ProgressBar
from apps.cli.snapshot_socket import SocketSource, user_name
from apps.end_signals import EndSignals
from controller.durations import parse_duration
from controller.profiles.latencies import JOIN_SEGMENTS

UNKNOWN = "this controller measures no latency"
LOOK_S = 0.5
SHORTEST_S, LONGEST_S = 0.5, 86_400.0
TITLES = (
    *("SWITCH", "ECHO P50 MS", "P99", "BARRIERS", "P50 MS", "P99"),
    *("JOINS", "MEAN MS", "LOOP", "CORE", "EDITS", "BARRIER", "JOIN P99 MS"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how long, and which switch."""
    parser.epilog = (
        "An echo goes to the switch and back four times a second. A barrier is from when edits were sent to when the "
        "switch had confirmed them. A join begins when its report is there for the controller's loop to take and "
        "ends when the host's own switch has confirmed its port; LOOP (until the loop took it), CORE (until that was "
        "decided), EDITS (until they were sent) and BARRIER add up to its mean. Before a join its packet-in takes "
        "about half an echo, and longer where the switch's agent is busy. Joins are those that come while it "
        "measures: `vsrt storm` makes some. Status 1: no controller answers, or a connected switch answered no echo."
    )
    parser.add_argument("--for", dest="for_s", default="10s", metavar="TIME", help="30s, 5m, 2h (default: 10s)")
    parser.add_argument("--switch", metavar="SWITCH", help="only this one, by name or datapath id")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, and tell; a signal ends it before its time."""
    for_s = parse_duration(args.for_s)
    if for_s is None or not SHORTEST_S <= for_s <= LONGEST_S:
        raise InputError(f"--for: {args.for_s[:64]!r} is no duration such as 10s, 5m or 2h, from 500ms to 24h")
    snapshot = next(SocketSource(socket_path(args)).follow(SECTIONS))
    called = SnapshotNames(snapshot)
    chosen = None if args.switch is None else called.switch(args.switch, "--switch")
    document = _measure(args, for_s)
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
    joined = [each for each in switches if each["join"] is not None]
    count = sum(each["join"]["count"] for each in joined)
    if not count:
        return None

    def mean_ms(of: Sequence[Mapping[str, Any]]) -> float:
        return round(float(sum(each["count"] * each["mean_ms"] for each in of) / count), 6)

    segments = {name: mean_ms([each["segments"][name] for each in joined]) for name in JOIN_SEGMENTS}
    return {
        "count": count,
        "mean_ms": mean_ms([each["join"] for each in joined]),
        "max_ms": max(each["join"]["max_ms"] for each in joined),
        "segments": segments,
    }


def _print(document: Mapping[str, Any]) -> None:
    if not document["switches"]:
        print("no switch is connected")
        return
    emit_table(TITLES, [_row(each) for each in document["switches"]])
    joins = document["joins"]
    if joins is None:
        print(f"no join that changed anything in {document['lasted_s']:.1f} s")
    else:
        way = " + ".join(f"{name} {joins['segments'][name]:.3f}" for name in JOIN_SEGMENTS)
        are = "1 join took" if joins["count"] == 1 else f"{joins['count']:,} joins took"
        print(f"{are} {joins['mean_ms']:.3f} ms on average = {way}; the longest {joins['max_ms']:.3f} ms")
    for each in document["switches"]:
        if each["unanswered_echoes"]:
            print(f"{each['switch']} left {each['unanswered_echoes']:,} echoes unanswered until the next was due")
    if document["missed"]:
        print(f"{document['missed']:,} times found no room")


def _row(each: Mapping[str, Any]) -> tuple[str, ...]:
    echo, barrier, join = each["echo"], each["barrier"], each["join"]
    return (
        each["switch"],
        *(_cell(echo, name) for name in ("p50_ms", "p99_ms")),
        "-" if barrier is None else f"{barrier['count']:,}",
        *(_cell(barrier, name) for name in ("p50_ms", "p99_ms")),
        "-" if join is None else f"{join['count']:,}",
        _cell(join, "mean_ms"),
        *(_cell(each["segments"][name], "mean_ms") for name in JOIN_SEGMENTS),
        _cell(join, "p99_ms"),
    )


def _cell(times: Mapping[str, Any] | None, name: str) -> str:
    return "-" if times is None else f"{times[name]:.3f}"
