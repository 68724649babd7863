"""`vsrt allocate explain`: why a port was taken, or was not."""

from __future__ import annotations

import argparse
from typing import Any

from apps.cli.allocate_input import add_input, read_as
from apps.cli.common import InputError, emit_json, emit_table
from controller.allocation.request import PortRequest, explain, read_request
from controller.allocation.selection import Selection, TooFewPortsError, select

HELP = "tell why a port was taken, or was not"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the request and the port."""
    add_input(parser, "request (JSON) as for `vsrt allocate ports`")
    parser.add_argument("--port", required=True, metavar="ID", help="the port that is asked about")


def run(args: argparse.Namespace) -> int:
    """Print what became of the port, and what spoke against it at each pick."""
    request = read_as(args.input, read_request)
    names = {str(name): name for name in (*request.candidates.ids, *request.candidates.excluded)}
    if args.port not in names:
        raise InputError(f"--port: {args.port!r} is not among the ports of {args.input}")
    selection, note = _selected(request)
    verdict, passed = explain(request.candidates, selection, request.wish, names[args.port])
    document: dict[str, Any] = {
        "port": names[args.port],
        "chosen": names[args.port] in selection.ports,
        "reason": verdict,
        "steps": [{"pick": index, **each._asdict()} for index, each in enumerate(passed, 1)],
        "note": note,
    }
    if args.json:
        emit_json(document)
        return 0
    print(f"{args.port}: {verdict}" + (f" ({note})" if note else ""))
    if passed:
        emit_table(
            ("pick", "chosen", "why not this one"), ((s["pick"], s["chosen"], s["reason"]) for s in document["steps"])
        )
    return 0


def _selected(request: PortRequest) -> tuple[Selection, str]:
    """Return the selection; where there are too few ports, all that could be allocated, and a word about it."""
    try:
        return select(*request), ""
    except TooFewPortsError as error:
        return select(request.candidates, request.wish.fewer()), str(error)
