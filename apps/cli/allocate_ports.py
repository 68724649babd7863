"""`vsrt allocate ports`: ports for a request, or ports and paths for several networks and hosts."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from apps.cli.allocate_input import read_json
from apps.cli.allocate_live import add_live, age, ask_allocator, check_source, live_request
from apps.cli.common import InputError, emit_json, emit_table
from controller.allocation.documents import answer_paths, read_paths
from controller.allocation.fields import RequestError
from controller.allocation.plan import TooFewPathsError, plan
from controller.allocation.request import answer, read_request
from controller.allocation.selection import TooFewPortsError, select

HELP = "allocate ports: redundancy first, then the least used"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the request."""
    add_live(parser, "request (JSON): ports and count, or networks and hosts")


def run(args: argparse.Namespace) -> int:
    """Print ports and the reason of every step; 1 where there are too few."""
    check_source(args)
    if args.live:
        return _live(args)
    document = read_json(args.input)
    try:
        if isinstance(document, dict) and "networks" in document:
            paths = read_paths(document)
            found = answer_paths(paths, plan(*paths))
        else:
            request = read_request(document)
            found = answer(request.candidates, select(*request))
    except RequestError as error:
        raise InputError(f"{args.input}: {error}") from None
    except TooFewPortsError as error:
        return _failed(args, error, requested=error.requested, allocated=error.allocated, available=error.available)
    except TooFewPathsError as error:
        numbers = {"requested": error.wanted, "allocated": error.found, "available": error.found}
        return _failed(args, error, host=error.host, **numbers)
    if args.json:
        emit_json(found)
        return 0
    _print(found)
    return 0


def _live(args: argparse.Namespace) -> int:
    found = ask_allocator(args, "allocate", live_request(args))
    if args.json:
        emit_json(found)
        return 1 if "error" in found else 0
    if "error" in found:
        numbers = found["error"]
        host = numbers.pop("host", None)
        few = (
            TooFewPathsError(host, numbers["requested"], numbers["allocated"])
            if host
            else TooFewPortsError(**numbers)
        )
        print(f"vsrt: {few}", file=sys.stderr)
        return 1
    print(age(found["measured"]))
    _print(found)
    for each in found["unmeasured"]:
        print(f"{each['id']}: {each['reason']}")
    return 0


def _failed(args: argparse.Namespace, error: Exception, **fields: str | int) -> int:
    if args.json:
        emit_json({"error": fields})
    print(f"vsrt: {args.input}: {error}", file=sys.stderr)
    return 1


def _print(found: dict[str, Any]) -> None:
    for name, each in found.get("networks", {"": found}).items():
        if name:
            print(f"network {name}")
        _print_steps(each)
    if "paths" in found:
        emit_table(("host", "initiator", "port"), ([path[key] for key in path] for path in found["paths"]))


def _print_steps(found: dict[str, Any]) -> None:
    picked = {step["chosen"] for step in found["steps"]}
    rows: list[tuple[object, ...]] = [(port, "", "allocated before") for port in found["ports"] if port not in picked]
    for step in found["steps"]:
        left = ", ".join(f"{level} {count}" for level, count in step["counts"].items())
        rows.append((step["chosen"], left, step["reason"]))
    rows += [(f"not {each['id']}", "", each["reason"]) for each in found["excluded"]]
    emit_table(("port", "candidates after each level", "reason"), rows)
