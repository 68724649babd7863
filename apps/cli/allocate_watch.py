"""`vsrt allocate watch`: metrics of the fabric's ports, refreshed on a terminal."""

from __future__ import annotations

import argparse
from typing import Any

from apps.cli.allocate_live import add_where, age, ask_allocator, where
from apps.cli.common import emit_table
from apps.cli.perf_console import add_console, add_list, arranged, asked_count, percent
from apps.cli.refresh import add_refresh, show_refreshed
from apps.cli.times import Clock, add_zone, clock_of
from controller.allocation.book import NOT_AVAILABLE

HELP = "the metrics of the running controller's ports, refreshed on a terminal"
TITLES = (
    "port",
    "name",
    "type",
    "role",
    "leads to",
    "metric",
    "busy %",
    "CPU %",
    "usage",
    "reserved",
    "hosts",
    "state",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_list(parser, "the most used ports", 20)
    add_zone(parser)
    add_where(parser)
    add_refresh(parser)
    add_console(parser)


def run(args: argparse.Namespace) -> int:
    """Print the most used ports, again and again on a terminal."""
    question = {"count": asked_count(args), **where(args)}
    clock = clock_of(args)

    def look() -> dict[str, Any]:
        answer = ask_allocator(args, "allocate-watch", question)
        return {**answer, "ports": arranged(args, answer["ports"])}

    show_refreshed(args, look, lambda answer: _show(answer, clock))
    return 0


def _show(answer: dict[str, Any], clock: Clock) -> None:
    print(f"{clock.told(answer['time'])}  {age(answer['measured'])}")
    for word in (answer["state"]["set_aside"], answer["state"]["fault"]):
        if word:
            print(word)
    emit_table(TITLES, map(_row, answer["ports"]))


def _row(port: dict[str, Any]) -> tuple[object, ...]:
    metric, usage = (
        NOT_AVAILABLE if port[key] is None else percent(port[key]) for key in ("port_allocation_metric", "usage")
    )
    up = [] if port["up"] else ["down"]
    return (
        port["id"],
        port["name"] or "-",
        port["type"],
        port["role"],
        port["components"].get("neighbour", "-"),
        metric,
        percent(port["port_percent_busy"]),
        percent(port["cpu_percent_busy"]),
        usage,
        percent(port["reserved_pct"]),
        port["initiator_load"],
        "; ".join([*up, *port["reasons"], port["measurement"]]),
    )
