"""`vsrt topology`: makes fabrics and lists the kinds that can be made."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.cli.reach import add_source, open_source
from apps.cli.whole_files import write_whole_text
from controller.wire.dpids import format_dpid
from topology.files import FORMATS, format_of_name
from topology.files.node_link import document
from topology.generators import GENERATORS, make
from topology.generators.parameters import Number, Parameter, in_words
from topology.graph import Graph, NodeKind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; options for parameters follow from the registry of generators."""
    choices = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    maker = choices.add_parser(
        "make",
        help="write a fabric as node-link JSON, GraphML or an edge list",
        description="Write a fabric: node-link JSON to standard output, or to FILE in the format of its suffix.",
        epilog=f"Suffixes: {', '.join(_writable())}. Without a known one FILE is node-link JSON.",
    )
    maker.add_argument("name", metavar="NAME", help=f"kind of fabric: {', '.join(GENERATORS)}")
    for name, users in _parameters().items():
        first = next(iter(users.values()))
        maker.add_argument(
            _option(name),
            dest=name,
            type=number,
            metavar="N" if first.whole else "X",
            help=f"{first.help}: {first.bounds()} ({_defaults(users)})",
        )
    maker.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write")
    recorder = choices.add_parser(
        "record",
        help="write the live fabric as the one that is expected",
        description="Write the fabric of a running controller as section `topology` of a policy file.",
    )
    recorder.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write")
    add_source(recorder)
    choices.add_parser("list", help="list the kinds of fabrics and their parameters")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _defaults(users: dict[str, Parameter]) -> str:
    by_default: dict[Number, list[str]] = {}
    for user, parameter in users.items():
        by_default.setdefault(parameter.default, []).append(user)
    return "; ".join(f"default for {', '.join(names)}: {in_words(value)}" for value, names in by_default.items())


def number(text: str) -> Number:
    """Return what an option gives, whole where it is written so."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _parameters() -> dict[str, dict[str, Parameter]]:
    """Return the parameters of all generators: by name, then by generator."""
    found: dict[str, dict[str, Parameter]] = {}
    for user, generator in GENERATORS.items():
        for parameter in generator.parameters:
            found.setdefault(parameter.name, {})[user] = parameter
    return found


def _writable() -> list[str]:
    return [suffix for known in FORMATS.values() if known.write is not None for suffix in known.suffixes]


def run(args: argparse.Namespace) -> int:
    """Make a fabric, record the live one, or list the kinds."""
    return {"list": _list, "make": _make, "record": _record}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    if args.json:
        emit_json(
            {
                name: {
                    "help": generator.help,
                    "parameters": [
                        {"option": _option(parameter.name), **parameter._asdict()}
                        for parameter in generator.parameters
                    ],
                }
                for name, generator in GENERATORS.items()
            }
        )
        return 0
    rows = [
        (
            name,
            " ".join(f"{_option(p.name)} {in_words(p.default)}" for p in generator.parameters[:-1]),
            generator.help,
        )
        for name, generator in GENERATORS.items()
    ]
    emit_table(("NAME", "PARAMETERS", "FABRIC"), rows)
    print("Every kind takes --capacity-bps as well; `vsrt topology make --help` gives the bounds.")
    return 0


def _make(args: argparse.Namespace) -> int:
    given = {name: value for name in _parameters() if (value := getattr(args, name)) is not None}
    try:
        graph = make(args.name, given)
    except ValueError as error:
        raise InputError(str(error)) from None
    made = document(graph, {"name": args.name, **given})
    if args.output is None:
        emit_json(made)
        return 0
    _write(args.output, graph, made)
    if args.json:
        emit_json(made)
    else:
        _summary(args.output, graph)
    return 0


def _record(args: argparse.Namespace) -> int:
    snapshot = next(open_source(args).follow(("switches", "links")))
    switches = [document.fields for document in snapshot.section("switches").in_order()]
    links = [document.fields for document in snapshot.section("links").in_order()]
    dpids = [format_dpid(switch["dpid"]) for switch in switches if switch.get("connected") is not False]
    ends = [
        [{"dpid": format_dpid(link[f"dpid_{end}"]), "port": link[f"port_{end}"]} for end in "ab"]
        for link in links
        if link.get("state") in (None, "up")
    ]
    text = "".join(
        [
            f"topology:  # {len(dpids)} switches, {len(ends)} links\n  switches:\n",
            *(f'    - "{dpid}"\n' for dpid in dpids),
            "  links:\n",
            *("    - [" + ", ".join(_place(end) for end in pair) + "]\n" for pair in ends),
        ]
    )
    if not dpids:
        raise OperationFailed("no switch is connected")
    if args.output is not None:
        write_whole_text(args.output, text)
    if args.json:
        emit_json({"topology": {"switches": dpids, "links": ends}})
    elif args.output is None:
        print(text, end="")
    return 0


def _place(end: Mapping[str, Any]) -> str:
    return f'{{dpid: "{end["dpid"]}", port: {end["port"]}}}'


def _write(path: Path, graph: Graph, made: dict[str, Any]) -> None:
    name = format_of_name(path.name)
    if name is None or name == "node-link":
        text = json.dumps(made, allow_nan=False) + "\n"
    else:
        write = FORMATS[name].write
        if write is None:
            raise InputError(f"{path}: {name} files are read only; written are {', '.join(_writable())}")
        text = write(graph)
    write_whole_text(path, text)


def _summary(path: Path, graph: Graph) -> None:
    counts = Counter(graph.kind(node) for node in graph.nodes())
    hosts = set(graph.hosts())
    between_switches = sum(1 for link in graph.links() if link.u not in hosts and link.v not in hosts)
    rows: list[tuple[object, object]] = [(str(kind), counts[kind]) for kind in NodeKind if counts[kind]]
    rows += [("links between switches", between_switches), ("links to hosts", len(hosts))]
    emit_table((str(path), "COUNT"), rows)
