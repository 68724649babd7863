"""`vsrt normalcy fit`: category, period and bounds of series."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apps.cli.batch import add_batch_arguments, batch
from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.normalcy_batch import WORTH_CORES, Addition, advance_many, fit_many
from apps.cli.normalcy_input import add_input_arguments, read_series, settings_of
from apps.cli.normalcy_model import Model, write_model
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import Series, make_series
from controller.anomaly.normalcy.settings import DAY_S
from controller.anomaly.series import SeriesName

SEVERAL_INTERVALS = ("multinomial", "transient")
"""Categories of which more is told than the lowest and highest normal value."""

HELP = "category, period and bounds per time slot, projected ahead"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare input, horizon, model and plots."""
    add_input_arguments(parser)
    add_output_arguments(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="keep what was found, for `normalcy update`"
    )


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is told of the series that were fitted, and where the work is done."""
    parser.add_argument(
        "--ahead-s", type=float, metavar="SECONDS", help="how far bounds are projected (default: a period, or a day)"
    )
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write the bounds over each series as PNG and SVG")
    add_batch_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Fit every series and print what was found."""
    settings = settings_of(args.set)
    check_output_arguments(args)
    series = read_series(args)
    with batch(args, "series, some at a time", worth_it=len(series) >= WORTH_CORES) as run_all:
        if args.output is None:
            found = fit_many([(one.at_s, one.values) for one in series], settings, run_all)
        else:
            states = advance_many([Addition(None, one.at_s, one.values) for one in series], settings, run_all)
            found = [state.normalcy for state in states]
            named = {one.name: state for one, state in zip(series, states, strict=True)}
            write_model(args.output, Model(settings, named))
    points = [make_series(one.at_s, one.values, settings) for one in series]
    show(args, [one.name for one in series], points, found)
    return 0


def check_output_arguments(args: argparse.Namespace) -> None:
    """Refuse a horizon that is none."""
    if args.ahead_s is not None and not 0 < args.ahead_s < math.inf:
        raise InputError(f"--ahead-s: expected seconds above 0, found {args.ahead_s:g}")


def show(
    args: argparse.Namespace, names: Sequence[SeriesName], points: Sequence[Series], found: Sequence[SeriesNormalcy]
) -> None:
    """Print the normalcy of series, and draw it where asked for."""
    if args.plot is not None:
        from apps.cli.normalcy_plot import write_plots

        titles = [_title(name, args.input) for name in names]
        for path in write_plots(args.plot, list(zip(titles, points, found, strict=True))):
            if not args.json:
                print(path)
    documents = [
        document(name, of_name, normalcy, args.ahead_s)
        for name, of_name, normalcy in zip(names, points, found, strict=True)
    ]
    if args.json:
        emit_json(documents[0] if len(documents) == 1 else {"series": documents})
    elif len(documents) == 1:
        _print_one(documents[0])
    else:
        rows = [(d["member"], d["metric"], d["category"], d["period_s"] or "-", d["reason"]) for d in documents]
        emit_table(("member", "metric", "category", "period_s", "reason"), rows)


def document(name: SeriesName, points: Series, normalcy: SeriesNormalcy, ahead_s: float | None) -> dict[str, Any]:
    """Return the JSON document of one series; `t` is the start of a slot in epoch seconds."""
    bounds: list[dict[str, Any]] = []
    if len(points):
        slot_s = normalcy.bounds.slot_s if normalcy.bounds else 0.0
        end_s = float(points.at_s[-1])
        start_s = math.floor(end_s / slot_s) * slot_s + slot_s if slot_s else end_s
        at_s, lower, upper = normalcy.project(start_s, start_s + (ahead_s or normalcy.period_s or DAY_S))
        bounds = [
            {"t": t, "lower": low, "upper": high}
            for t, low, high in zip(at_s.tolist(), lower.tolist(), upper.tolist(), strict=True)
        ]
        if normalcy.category in SEVERAL_INTERVALS and normalcy.bounds is not None:
            for bound in bounds:
                bound["normal"] = normalcy.bounds.normal(bound["t"])
    return {
        "member": name.member,
        "peer_group": name.peer_group,
        "metric": name.metric,
        "category": normalcy.category,
        "kind": normalcy.kind,
        "periodic": normalcy.periodic,
        "period_s": normalcy.period_s or None,
        "start_up": normalcy.start_up,
        "points": len(points),
        "left_out": normalcy.counts._asdict(),
        "longest_gap_s": normalcy.longest_gap_s,
        "bounds": bounds,
        "reason": normalcy.reason,
    }


def _title(name: SeriesName, path: Path) -> str:
    return path.stem if name.member in ("", "value") else f"{path.stem} {name.member} {name.metric}"


def _print_one(found: dict[str, Any]) -> None:
    print(f"category: {found['category']}{' (' + found['kind'] + ')' if found['kind'] else ''}")
    print(f"period: {found['period_s']:g} s" if found["periodic"] else "period: none")
    print(f"reason: {found['reason']}")
    emit_table(
        ("t", "lower", "upper"), [(f"{b['t']:.0f}", f"{b['lower']:g}", f"{b['upper']:g}") for b in found["bounds"]]
    )
