"""`vsrt normalcy update`: a model with the points of another day; the past is not fitted again."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from apps.cli.batch import batch
from apps.cli.normalcy_batch import WORTH_CORES, Addition, advance_many
from apps.cli.normalcy_fit import add_output_arguments, check_output_arguments, show
from apps.cli.normalcy_input import add_file_arguments, read_series
from apps.cli.normalcy_model import read_model, write_model
from controller.anomaly.normalcy.rolling import RollingState
from controller.anomaly.normalcy.series import Series, make_series
from controller.anomaly.normalcy.settings import Settings

HELP = "carry a model of `normalcy fit -o` on with later points"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the model, the points and what is told."""
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="as `normalcy fit -o` wrote it")
    add_file_arguments(parser)
    add_output_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write it (default: in its place)")


def run(args: argparse.Namespace) -> int:
    """Add the points to the series that the model knows, start those that it does not, and print them all."""
    check_output_arguments(args)
    model = read_model(args.model)
    series = read_series(args)
    known = [model.series.get(one.name) for one in series]
    additions = [Addition(state, one.at_s, one.values) for one, state in zip(series, known, strict=True)]
    with batch(args, "series, some at a time", worth_it=len(series) >= WORTH_CORES) as run_all:
        states = advance_many(additions, model.settings, run_all)
    _tell(args.input, additions)
    updated = {one.name: state for one, state in zip(series, states, strict=True)}
    write_model(args.output or args.model, model._replace(series={**model.series, **updated}))
    points = [_held(state, model.settings) for state in states]
    show(args, list(updated), points, [state.normalcy for state in states])
    return 0


def _tell(path: Path, additions: list[Addition]) -> None:
    """Say what of the file is not in the series as it came."""
    old = sum(int((one.at_s <= one.state.at_s[-1]).sum()) for one in additions if one.state and len(one.state.at_s))
    new = sum(one.state is None for one in additions)
    if old:
        print(f"vsrt: {path}: {old} points are not later than the model's; they are left out", file=sys.stderr)
    if new:
        print(f"vsrt: {path}: {new} series are not in the model; they are fitted anew", file=sys.stderr)


def _held(state: RollingState, settings: Settings) -> Series:
    return replace(make_series(state.at_s, state.values, settings), counts=state.left_out)
