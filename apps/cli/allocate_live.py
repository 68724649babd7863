"""Questions to the allocator of the running controller: the arguments, the request, and how ports are shown."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apps.cli.allocate_input import read_json
from apps.cli.common import InputError
from apps.cli.perf_console import add_console, ask
from controller.allocation.live_request import ROLES, TYPES

LINE_BYTES = 65536
"""Longer questions are not read."""

OLD_S = 60.0
_SOURCE = ("socket", "url", "token_file", "ca")
_WORDS = ("count", "type", "role", "size_pct", "allow_down")


def add_live(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the request, as a file or for the running controller in words."""
    source = parser.add_argument_group("request")
    source.add_argument("--input", type=Path, metavar="FILE", help=f"{what}; needed without --live")
    live = parser.add_argument_group("from measured load")
    live.add_argument("--live", action="store_true", help="ask the running controller (with `allocator`)")
    live.add_argument("--count", type=int, metavar="N", help="ports wanted (in place of --input)")
    add_where(live)
    live.add_argument("--size-pct", type=float, metavar="P", help="what one port will carry, %% (default: 1)")
    live.add_argument("--allow-down", action="store_true", default=None, help="also ports whose link is down")
    add_console(parser)


def add_where(parser: Any) -> None:
    """Declare which ports are meant."""
    parser.add_argument("--type", choices=TYPES, help="ports to hosts, or of a class of switches (all)")
    parser.add_argument("--role", choices=ROLES, help="what is behind the port (all)")


def where(args: argparse.Namespace) -> dict[str, str]:
    """Return which ports are meant, as the controller is asked."""
    return {name: value for name in ("type", "role") if (value := getattr(args, name)) is not None}


def check_source(args: argparse.Namespace) -> None:
    """Raise InputError where arguments do not go together."""
    words, where_asked = (
        [f"--{name.replace('_', '-')}" for name in names if getattr(args, name) is not None]
        for names in (_WORDS, _SOURCE)
    )
    if not args.live and (words or where_asked):
        raise InputError(f"{(words + where_asked)[0]}: only with --live")
    if not args.live and args.input is None:
        raise InputError("--input: missing (or --live)")
    if args.live and args.input is not None and words:
        raise InputError(f"{words[0]}: not with --input")


def live_request(args: argparse.Namespace) -> dict[str, Any]:
    """Return the request, empty where none is given; InputError where the file holds no object."""
    if args.input is not None:
        document = read_json(args.input)
        if not isinstance(document, dict):
            raise InputError(f"{args.input}: request: expected an object")
        for key in ("do", "show", "port"):
            if key in document:
                raise InputError(f"{args.input}: request.{key}: unknown field")
        return document
    found = {
        name: value for name in ("count", "size_pct", "allow_down") if (value := getattr(args, name)) is not None
    }
    selector = where(args)
    return {**found, "ports": selector} if selector else found


def ask_allocator(args: argparse.Namespace, action: str, question: Mapping[str, Any]) -> Any:
    """Ask the allocator; the file's name stands in front of what is wrong in it."""
    if len(json.dumps({"do": action, **question})) >= LINE_BYTES:
        raise InputError(f"{args.input}: a request to the controller has at most {LINE_BYTES} bytes; select by type")
    try:
        return ask(args, action, question, "allocator")
    except InputError as error:
        raise InputError(f"{args.input}: {error}" if getattr(args, "input", None) else str(error)) from None


def age(measured: Mapping[str, Any]) -> str:
    """Return of how many ports there is a metric, with a word where the monitor is silent."""
    ago_s = measured["last_sample_s_ago"]
    text = f"{measured['valid']} of {measured['ports']} ports have a valid metric"
    if ago_s is None:
        return f"{text}; the monitor has told nothing since the start"
    return f"{text}; the monitor is silent for {ago_s:.0f} s" if ago_s > OLD_S else text
