"""The arguments by which commands are told a fabric: a generator with its parameters, or a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from topology.files import parse
from topology.generators import GENERATORS, make
from topology.graph import Graph


def add_fabric_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument("--topology", default="fattree", choices=GENERATORS, help="(default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of it")
    parser.add_argument("--file", type=Path, help="a topology file instead")


def fabric_of(arguments: argparse.Namespace, **more: Any) -> Graph:
    """Return the fabric that is meant; `more` are parameters of the generator.

    OSError for a file that cannot be read, ValueError that says what is wrong for anything else.
    """
    if arguments.file is not None:
        return parse(arguments.file.read_bytes(), str(arguments.file)).graph
    given: dict[str, Any] = {}
    for text in arguments.set:
        name, found, value = text.partition("=")
        try:
            given[name] = float(value) if "." in value else int(value)
        except ValueError:
            found = ""
        if not found:
            raise ValueError(f"--set {text}: not NAME=NUMBER")
    return make(arguments.topology, {**given, **more})
