"""`vsrt trace inspect`: what a capture holds, by group: rates, sizes, dispersion, gaps, who sends and who joins."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.cli.capture_input import CaptureInput
from apps.cli.common import emit_json, emit_table
from controller.captures.figures import CaptureFigures

HELP = "tell what a capture holds, by group"

TITLES = (
    *("GROUP", "FRAMES", "FRAMES/S", "MBIT/S", "PEAK MBIT/S", "MEAN BYTES", "DISPERSION"),
    *("GAP P50 MS", "P99 MS", "MAX MS", "SENDERS", "MEMBERS", "JOINS", "LEAVES"),
)
WINDOW_S = "0.1"
"""The window of which the table has peak and dispersion; JSON has those of others too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file."""
    parser.epilog = (
        "PEAK and DISPERSION (variance over mean of the frames in a window: 0 of a constant rate, 1 of a Poisson "
        "one) are of windows of 0.1 s. MEMBERS are hosts that ask for the group in the capture. Status 1: the file "
        "is cut or damaged; what is told is of the frames before that place, which is told too."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="pcap or pcapng, compressed by gzip or not")
    parser.add_argument(
        "--groups", type=positive, metavar="N", help="only the N groups with most bytes (default: all)"
    )
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write plots of the busiest groups there")


def run(args: argparse.Namespace) -> int:
    """Read the file and tell; 1 where it is cut or damaged."""
    capture = CaptureInput(args.file)
    figures = CaptureFigures()
    for frame in capture.frames():
        figures.count(frame)
    document = {"file": str(args.file), **figures.document(), "shortened": capture.shortened_count, "damage": None}
    kept = document["groups"][: args.groups]
    left_out = len(document["groups"]) - len(kept)
    document["groups"] = kept
    damage = capture.damage
    if damage is not None:
        document["damage"] = {
            "offset_bytes": damage.offset_bytes,
            "frame": damage.frame_number,
            "reason": damage.reason,
        }
    if args.plot is not None:
        from apps.cli.trace_plots import write_plots

        document["plots"] = [str(path) for path in write_plots(args.plot, figures, args.file.name)]
    if args.json:
        emit_json(document)
    else:
        _print(document, left_out)
    if damage is not None:
        print(f"vsrt: {args.file}: {damage}", file=sys.stderr)
    return 0 if damage is None else 1


def _print(document: Mapping[str, Any], left_out: int) -> None:
    began = datetime.fromtimestamp(document["first_s"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    of = f" of {document['lasted_s']:,.3f} s from {began}" if document["frames"] else ""
    print(
        f"{document['frames']:,} frames{of}: {document['reports']:,} reports, {document['queries']:,} queries, "
        f"{document['other']:,} of nothing that is counted here"
    )
    if document["groups"]:
        emit_table(TITLES, [_row(group) for group in document["groups"]])
    for count, what in (
        (left_out, "groups are left out"),
        (document["shortened"], "frames were captured in part; sizes are of what was on the wire"),
        (sum(document["malformed"].values()), f"frames break their protocol: {_listed(document['malformed'])}"),
        (sum(group["backward"] for group in document["groups"]), "frames have a time before that in front of them"),
        (document["uncounted"], "frames of further groups or senders found no room"),
        (document["missed_joins"], "joins and leaves found no room"),
    ):
        if count:
            print(f"{count:,} {what}")
    for path in document.get("plots", ()):
        print(path)


def _row(group: Mapping[str, Any]) -> tuple[str, ...]:
    gaps = group["gaps"] or {}
    return (
        group["group"],
        f"{group['frames']:,}",
        _cell(group["rate_pps"], 1),
        _cell(group["rate_bps"], 3, 1e-6),
        _cell(group["peak_bps"].get(WINDOW_S), 3, 1e-6),
        _cell(group["size_bytes"]["mean"], 0),
        _cell(group["dispersion"][WINDOW_S], 2),
        *(_cell(gaps.get(name), 3) for name in ("p50_ms", "p99_ms", "max_ms")),
        f"{len(group['senders']):,}",
        f"{group['hosts']:,}",
        f"{group['joins']:,}",
        f"{group['leaves']:,}",
    )


def _cell(value: float | None, digits: int, factor: float = 1.0) -> str:
    return "-" if value is None else f"{value * factor:,.{digits}f}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def positive(text: str) -> int:
    """Return a number from 1 of an argument."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return value
