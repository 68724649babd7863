"""`vsrt allocate pool`: the pool with room on the least loaded array, or the part of the fabric that has room."""

from __future__ import annotations

import argparse

from apps.cli.allocate_input import read_as
from apps.cli.allocate_live import add_live, age, ask_allocator, check_source, live_request
from apps.cli.common import InputError, emit_json, emit_table
from controller.allocation.documents import answer_pools, read_pools
from controller.allocation.fabric_domains import LEVELS
from controller.allocation.pools import choose_pool

HELP = "choose the pool with room on the least loaded array, or the pod of the running fabric"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the request."""
    add_live(parser, "request (JSON): size, arrays with their ports, pools")
    parser.add_argument("--by", choices=LEVELS, help="with --live: what is a pool of the fabric (default: pod)")


def run(args: argparse.Namespace) -> int:
    """Print the pool, and every pool with what speaks for or against it; 1 where none fits."""
    check_source(args)
    if args.by is not None and (not args.live or args.input is not None):
        raise InputError("--by: not with --input" if args.live else "--by: only with --live")
    if args.live:
        return _live(args)
    request = read_as(args.input, read_pools)
    found = choose_pool(request.pools, request.metrics, request.size_gb, request.matches)
    document = answer_pools(request, found)
    if args.json:
        emit_json(document)
    else:
        emit_table(
            ("pool", "array", "free_gb", "array_metric", "taken", "reason"),
            (
                (
                    each["id"],
                    each["array"],
                    f"{each['free_gb']:g}",
                    f"{each['array_metric']:.2f}",
                    "yes" if each["id"] == document["pool"] else "no",
                    each["reason"],
                )
                for each in document["pools"]
            ),
        )
    return 0 if found.pool is not None else 1


def _live(args: argparse.Namespace) -> int:
    question = live_request(args) if args.by is None else {**live_request(args), "by": args.by}
    found = ask_allocator(args, "allocate-pool", question)
    if args.json:
        emit_json(found)
    else:
        print(age(found["measured"]))
        emit_table(
            (found["by"], "ports", "usable", "free %", "metric", "taken", "reason"),
            (
                (
                    each["id"],
                    str(each["ports"]),
                    str(each["usable"]),
                    f"{each['free_pct']:.1f}",
                    f"{each['metric']:.2f}",
                    "yes" if each["id"] == found["pool"] else "no",
                    each["reason"],
                )
                for each in found["pools"]
            ),
        )
        if found["without"]:
            print(f"{found['without']} ports are in no {found['by']}")
    return 0 if found["pool"] is not None else 1
