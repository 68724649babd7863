"""`vsrt normalcy --live`: bounds, newest value and score of every metric of the running controller's ports."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.perf_console import ask, scaled
from apps.cli.times import Clock
from controller.config.terms import MAX_PORT_NO
from controller.wire.dpids import looks_like_dpid, parse_dpid

TITLES = ("port", "metric", "lower", "upper", "value", "score", "learnt %", "outside since (UTC)")


def show(args: argparse.Namespace) -> int:
    """Print what is normal for the ports' metrics, those furthest outside first."""
    question: dict[str, Any] = {}
    if args.live:
        question["dpid"], question["port_no"] = _port(args.live)
    answer = ask(args, "normalcy", question, "anomaly")
    if args.json:
        emit_json(answer)
        return 0
    emit_table(TITLES, _rows(answer["series"]))
    if fault := answer["state"]["fault"]:
        print(f"Not kept over restarts: {answer['state']['path']} {fault}.")
    return 0


def _rows(series: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    clock = Clock()
    for each in series:
        lower = each["lower"]
        yield (
            f"{each['dpid']}:{each['port_no']}",
            each["metric"],
            scaled(None if lower is None else max(lower, 0.0)),
            scaled(each["upper"]),
            scaled(each["value"]),
            "-" if each["score"] is None else f"{each['score']:.3f}",
            f"{each['learnt_pct']:.0f}",
            clock(each["since_s"]),
        )


def _port(text: str) -> tuple[int, int]:
    switch, colon, port = text.rpartition(":")
    if colon and looks_like_dpid(switch) and port.isascii() and port.isdecimal() and len(port) <= 10:
        number = int(port)
        try:
            if 1 <= number <= MAX_PORT_NO:
                return parse_dpid(switch), number
        except ValueError:
            pass
    raise InputError(f"--live: {text!r} is no port, such as 3:1")
