"""`vsrt allocate metric`: the metric of one port from its state, or of many from files of their counters."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from apps.cli.allocate_input import add_input, read_as
from apps.cli.common import InputError, emit_json, emit_table
from apps.fabric_file import FabricFile
from controller.allocation.book import NOT_AVAILABLE, PortBook
from controller.allocation.documents import metric_of_state
from controller.allocation.families import FAMILIES
from controller.config.faults import PolicyInvalid
from controller.config.load import load_policy
from controller.config.settings import Allocation

HELP = "show the metric of ports, and what disqualifies them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the input file and how to read counters."""
    add_input(parser, "state of a port (JSON); with --family samples of ports (CSV or JSON lines)")
    parser.add_argument("--family", choices=list(FAMILIES), help="the file has samples of ports of this family")
    parser.add_argument("--config", type=Path, metavar="FILE", help="policy file with the parameters of families")
    parser.add_argument(
        "--speed-gbps", type=float, metavar="N", help="speed of ports that the file tells none of, in Gbit/s"
    )
    parser.add_argument(
        "--poll-interval-s", type=float, default=0.0, metavar="S", help="samples sooner than this do not count"
    )
    parser.add_argument(
        "--collection-s",
        type=float,
        default=300.0,
        metavar="S",
        help="rates (vplex) of this time are averaged to one sample (default: %(default)g)",
    )


def run(args: argparse.Namespace) -> int:
    """Print metrics, usages and what disqualifies ports."""
    if args.family is not None:
        return _of_samples(args)
    found = read_as(args.input, metric_of_state)
    if args.json:
        emit_json(found)
        return 0
    for step in found["steps"]:
        print(step)
    print(f"disqualified: {'; '.join(found['reasons']) or 'no'}")
    return 0


def _of_samples(args: argparse.Namespace) -> int:
    from apps.cli.allocate_samples import Options, feed

    for name in ("speed_gbps", "poll_interval_s", "collection_s"):
        value = getattr(args, name)
        if value is not None and (not 0 <= value < 1e9 or (name == "collection_s" and value == 0)):
            raise InputError(f"--{name.replace('_', '-')}: {value:g} is out of range")
    book = PortBook(_settings(args.config), args.poll_interval_s)
    fed = feed(book, args.family, args.input, Options(args.speed_gbps, args.collection_s))
    ports: dict[str, dict[str, Any]] = {}
    for name, report in book.reports(fed.now_ms).items():
        found = book.assess(name, fed.now_ms)
        ports[name] = {
            **report,
            "usage": found.usage,
            "reasons": list(found.reasons),
            "samples": dict(fed.outcomes[name]),
        }
    if args.json:
        emit_json({"ports": ports})
        return 0
    emit_table(
        ("port", "metric", "port_busy", "cpu_busy", "usage", "initiators", "volumes", "disqualified", "samples"),
        (
            (
                name,
                _shown(port["port_allocation_metric"]),
                _shown(port["port_percent_busy"]),
                _shown(port["cpu_percent_busy"]),
                _shown(port["usage"]),
                port["initiator_load"],
                port["volume_load"],
                "; ".join(port["reasons"]) or "no",
                ", ".join(f"{count} {outcome}" for outcome, count in port["samples"].items()),
            )
            for name, port in ports.items()
        ),
    )
    return 0


def _shown(percent: float | None) -> str:
    return NOT_AVAILABLE if percent is None else f"{percent:.2f}"


def _settings(path: Path | None) -> Allocation:
    if path is None:
        return Allocation()
    try:
        return load_policy(path.read_bytes(), str(path), FabricFile(path).read).allocation
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except PolicyInvalid as error:
        raise InputError(str(error)) from None
