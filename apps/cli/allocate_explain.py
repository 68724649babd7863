"""`vsrt allocate explain`: why a port was taken, or was not."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from apps.cli.allocate_input import read_as
from apps.cli.allocate_live import add_live, ask_allocator, check_source, live_request
from apps.cli.common import InputError, emit_json, emit_table
from controller.allocation.candidates import Candidates, Mode, PortId
from controller.allocation.documents import read_paths
from controller.allocation.plan import plan
from controller.allocation.request import explain, read_request
from controller.allocation.selection import PortSelection, Wish, select

HELP = "tell why a port was taken, or was not"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the request and the port."""
    add_live(parser, "request (JSON) as for `vsrt allocate ports`; with --live it may be left out: the last one")
    parser.add_argument("--port", required=True, metavar="ID", help="the port that is asked about")


def run(args: argparse.Namespace) -> int:
    """Print what became of the port, and what spoke against it at each pick."""
    check_source(args)
    if args.live:
        document = ask_allocator(args, "allocate-explain", {"port": args.port, **live_request(args)})
        shown = _print(args, document)
        if not args.json:
            print("\n".join([*document["usage_steps"], f"metric: {document['measurement']}"]))
        return shown
    found = read_as(args.input, _read)
    places = {str(name): (name, each) for each in found for name in (*each.candidates.ids, *each.candidates.excluded)}
    if args.port not in places:
        raise InputError(f"--port: {args.port!r} is not among the ports of {args.input}")
    name, (candidates, selection, wish, note) = places[args.port]
    verdict, passed = explain(candidates, selection, wish, name)
    document = {
        "port": name,
        "chosen": name in selection.ports,
        "reason": verdict,
        "steps": [{"pick": index, **each._asdict()} for index, each in enumerate(passed, 1)],
        "note": note,
    }
    return _print(args, document)


def _print(args: argparse.Namespace, document: dict[str, Any]) -> int:
    if args.json:
        emit_json(document)
        return 0
    note = document["note"]
    print(f"{args.port}: {document['reason']}" + (f" ({note})" if note else ""))
    if document["steps"]:
        rows = ((step["pick"], step["chosen"], step["reason"]) for step in document["steps"])
        emit_table(("pick", "chosen", "why not this one"), rows)
    return 0


class _Answered(NamedTuple):
    """A selection that was asked for, with a word where it has too few ports."""

    candidates: Candidates
    selection: PortSelection
    wish: Wish
    note: str


def _read(document: Any) -> list[_Answered]:
    """Return the selection of a request, one for each network where it has several."""
    if isinstance(document, dict) and "networks" in document:
        paths = read_paths(document)
        found = plan(paths.networks, paths.hosts, replace(paths.rules, min_paths=0), paths.terms)
        return [
            _answered(network.candidates, found.networks[name], paths.terms.mode, network.previously_allocated)
            for name, network in paths.networks.items()
        ]
    request = read_request(document)
    selection = select(request.candidates, request.wish.fewer())
    return [_answered(request.candidates, selection, request.wish.mode, request.wish.previously_allocated)]


def _answered(candidates: Candidates, selection: PortSelection, mode: Mode, previous: Sequence[PortId]) -> _Answered:
    note = "" if selection.enough else f"{selection.requested} ports requested, {len(selection.ports)} allocated"
    return _Answered(candidates, selection, Wish(selection.requested, previously_allocated=previous, mode=mode), note)
