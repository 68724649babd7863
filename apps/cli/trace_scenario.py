"""`vsrt trace scenario`: makes a scenario file for `vsrt emulate` of a capture."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import yaml

from apps.cli.capture_input import CaptureInput, whole_frames
from apps.cli.common import InputError, emit_json, read_topology
from apps.cli.trace_inspect import positive
from apps.cli.whole_files import write_whole_text
from controller.captures.cast import CaptureCast, CastImpossible
from controller.captures.figures import CaptureFigures

HELP = "make a scenario of a capture for `vsrt emulate`"

LARGEST_K = 16
"""Of the FatTree that is taken where no topology is given: 1,024 hosts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, the fabric, and who receives."""
    parser.epilog = (
        "Each sender and each host that reports in the capture is played by a host of the fabric. Who was a member "
        "when the first packet came is one from the start; who joins or leaves later does so in the scenario too. "
        "`vsrt emulate SCENARIO --replay FILE` sends packets of the same sizes at the same times, "
        "`vsrt emulate SCENARIO` at the mean rates."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="pcap or pcapng, compressed by gzip or not")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there (default: standard output)")
    parser.add_argument(
        "--topology", type=Path, metavar="FILE", help="fabric (default: the smallest FatTree with room for all)"
    )
    parser.add_argument("--groups", type=positive, metavar="N", help="only the N groups with most bytes")
    parser.add_argument(
        "--receivers",
        type=positive,
        default=0,
        metavar="N",
        help="hosts that receive each group for which nobody asks in the capture (default: such groups are left out)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which hosts play whom (default: 1)")


def run(args: argparse.Namespace) -> int:
    """Read the capture and write the scenario."""
    document, notes = scenario_of(args.file, args.topology, args.receivers, args.groups, args.seed)
    text = f"# Of {args.file.name}: vsrt emulate SCENARIO --replay {args.file.name}\n" + yaml.safe_dump(
        document, sort_keys=False, default_flow_style=None, width=110
    )
    for note in notes:
        print(f"vsrt: {args.file}: {note}", file=sys.stderr)
    if args.output is not None:
        write_whole_text(args.output, text)
    if args.json:
        emit_json({"scenario": document, "notes": notes, "output": args.output and str(args.output)})
    elif args.output is None:
        sys.stdout.write(text)
    return 0


def scenario_of(
    path: Path, topology: Path | None, receivers: int, groups: int | None, seed: int
) -> tuple[dict[str, Any], list[str]]:
    """Return the scenario of a capture, and notes on what is otherwise in it; InputError where there can be none."""
    figures = CaptureFigures()
    for frame in whole_frames(CaptureInput(path)):
        figures.count(frame)
    try:
        cast = CaptureCast(figures, receivers, groups)
        described, hosts = _fabric(topology, cast.player_count)
        return cast.document(described, random.Random(seed).sample(hosts, len(hosts))), cast.notes
    except CastImpossible as error:
        raise InputError(f"{path}: {error}") from None


def _fabric(topology: Path | None, player_count: int) -> tuple[dict[str, Any], list[str]]:
    if topology is not None:
        return {"file": str(topology.resolve())}, [str(host) for host in read_topology(topology).graph.hosts()]
    from topology.generators import make

    k = next((k for k in range(4, LARGEST_K + 1, 2) if k**3 // 4 >= player_count), LARGEST_K)
    return {"name": "fattree", "k": k}, [str(host) for host in make("fattree", {"k": k}).hosts()]
