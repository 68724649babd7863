"""`vsrt show`: what a running controller knows of groups, members, senders, rules and routers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from apps.cli.common import OperationFailed, emit_json, emit_table
from apps.cli.perf_console import add_socket, answer_of, socket_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("what", choices=tuple(TABLES), metavar="WHAT", help=f"one of: {', '.join(TABLES)}")
    add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Ask the controller and print its answer."""
    path = socket_path(args)
    answer = answer_of(path, {"show": args.what})
    if isinstance(answer, dict) and "error" in answer:
        raise OperationFailed(f"{path}: {answer['error']}")
    if args.json:
        emit_json(answer)
    else:
        emit_table(*TABLES[args.what](answer))
    return 0


Table = tuple[tuple[str, ...], Iterator[tuple[object, ...]]]


def _status(status: dict[str, Any]) -> Table:
    counts = {name: value for name, value in status.items() if name != "counters"}
    return ("NAME", "VALUE"), iter((counts | status["counters"]).items())


def _groups(groups: list[dict[str, Any]]) -> Table:
    def rows() -> Iterator[tuple[object, ...]]:
        for group in groups:
            state = "unsupported" if group["unsupported"] else f"{len(group['links'])} links"
            yield group["group"], "tree", "", "", "", state
            for role in ("members", "refused"):
                for member in group[role]:
                    sources = f"{member['mode']} {','.join(member['sources'])}" if member["sources"] else "any source"
                    yield group["group"], ROLES[role], *_host(member), sources
            for sender in group["senders"]:
                verdict = "sender" if sender["admitted"] else "refused sender"
                rate = f"{sender['rate_bps'] / 1e6:.3f} Mbit/s, rule {sender['rule']}"
                yield group["group"], verdict, *_host(sender), rate

    return ("GROUP", "WHAT", "PORT", "MAC", "IP", "DETAIL"), rows()


ROLES = {"members": "member", "refused": "refused member"}


def _host(entry: dict[str, Any]) -> tuple[str, str, str]:
    return f"{entry['dpid']}:{entry['port_no']}", entry["mac"], entry["ip"] or "-"


def _rules(rules: list[dict[str, Any]]) -> Table:
    return ("RULE", "ALLOWED", "DENIED"), ((rule["rule"], rule["allow"], rule["deny"]) for rule in rules)


def _routers(routers: dict[str, Any]) -> Table:
    def rows() -> Iterator[tuple[object, ...]]:
        for querier in routers["queriers"]:
            what = f"querier of IPv{querier['family']}"
            if querier["address"] is None:
                yield what, "-", "this controller" if querier["ours"] else "nobody"
            else:
                yield what, f"{querier['dpid']}:{querier['port_no']}", querier["address"]
        for port in routers["router_ports"]:
            yield f"router port of IPv{port['family']}", f"{port['dpid']}:{port['port_no']}", ""

    return ("WHAT", "PORT", "WHO"), rows()


TABLES: dict[str, Callable[[Any], Table]] = {
    "status": _status,
    "groups": _groups,
    "rules": _rules,
    "routers": _routers,
}
"""How each answer is shown where no JSON is asked for."""
