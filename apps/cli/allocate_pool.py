"""`vsrt allocate pool`: the pool with room on the least loaded array."""

from __future__ import annotations

import argparse

from apps.cli.allocate_input import add_input, read_as
from apps.cli.common import emit_json, emit_table
from controller.allocation.documents import answer_pools, read_pools
from controller.allocation.pools import choose_pool

HELP = "choose the pool with room on the least loaded array"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the input file."""
    add_input(parser, "request (JSON): size, arrays with their ports, pools")


def run(args: argparse.Namespace) -> int:
    """Print the pool, and every pool with what speaks for or against it; 1 where none fits."""
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
