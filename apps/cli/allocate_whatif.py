"""`vsrt allocate whatif`: a day replayed under several ways to choose ports."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from apps.cli.common import InputError, emit_json, emit_table
from apps.cli.progress import ProgressBar
from controller.allocation.parameters import ParameterError, read_parameters
from controller.allocation.whatif import POLICIES, Day, Spread, attached_day, replay, skewed_day
from controller.config.settings import MINUTES_ABOVE

HELP = "replay a day of samples and requests under several ways to choose ports"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the day, the policies and the plot."""
    parser.add_argument("--samples", type=Path, metavar="FILE", help="timestamp,port,utilisation_pct[,attached]")
    parser.add_argument("--requests-file", type=Path, metavar="FILE", help="timestamp,count,load_pct,duration_s")
    parser.add_argument("--ports-file", type=Path, metavar="FILE", help="levels and ports with components (JSON)")
    parser.add_argument(
        "--requests", type=int, default=2000, metavar="N", help="of a made-up day (default: %(default)s)"
    )
    parser.add_argument("--policies", default=",".join(POLICIES), metavar="A,B,...", help="default: %(default)s")
    parser.add_argument(
        "--interval-s", type=float, default=300, metavar="S", help="between polls (default: %(default)s)"
    )
    parser.add_argument(
        "--average-minutes",
        type=int,
        default=60,
        metavar="N",
        help="time over which samples are averaged (default: 60)",
    )
    parser.add_argument("--penalty-factor", type=float, default=1.5, metavar="F", help="default: %(default)s")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="decides a made-up day, and chance (default: 1)"
    )
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write port-spread.png and .svg there")


def run(args: argparse.Namespace) -> int:
    """Print how evenly ports are used under each policy."""
    policies = [name.strip() for name in args.policies.split(",")]
    for name in policies:
        if name not in POLICIES:
            raise InputError(f"--policies: unknown policy {name!r}; known: {', '.join(POLICIES)}")
    if not 1 <= args.interval_s <= 86400:
        raise InputError(f"--interval-s: {args.interval_s:g} is not within 1 and 86400")
    if not 0 <= args.penalty_factor <= 100:
        raise InputError(f"--penalty-factor: {args.penalty_factor:g} is not within 0 and 100")
    if not 1 <= args.requests <= 1_000_000:
        raise InputError(f"--requests: {args.requests} is not within 1 and 1000000")
    try:
        parameters = read_parameters({"days_to_average_utilization": MINUTES_ABOVE + args.average_minutes})
    except ParameterError:
        raise InputError(f"--average-minutes: {args.average_minutes} is not from 1 on") from None
    days = _days(args)
    progress = ProgressBar()

    def replayed(number: int) -> dict[str, Spread]:
        spreads: dict[str, Spread] = {}
        for name in policies:
            progress.draw("policies", number * len(policies) + len(spreads), len(policies) * len(days))
            spreads[name] = replay(days[number], name, parameters, args.penalty_factor, args.seed)
        return spreads

    spreads = [replayed(number) for number in range(len(days))]
    progress.clear()
    document, *others = (_document(day, found) for day, found in zip(days, spreads, strict=True))
    if others:
        (document["attached_day"],) = others
    if args.plot is not None:
        from apps.cli.allocate_plot import write_plot

        document["plots"] = [str(path) for path in write_plot(args.plot, spreads[0], days[0].interval_s)]
    if args.json:
        emit_json(document)
        return 0
    if others:
        print("A day on which attachments do not tell which ports are hot:")
    _print(document)
    if others:
        print("\nA day on which what ports carry follows from what is attached:")
        _print(others[0])
    return 0


def _days(args: argparse.Namespace) -> list[Day]:
    """Return the day of the files that are given, or the two that are made up."""
    if (args.samples is None) != (args.requests_file is None):
        raise InputError("--samples and --requests-file: one needs the other")
    if args.samples is None:
        return [
            make(requests=args.requests, interval_s=args.interval_s, seed=args.seed)
            for make in (skewed_day, attached_day)
        ]
    from apps.cli.allocate_day import read_day

    return [read_day(args.samples, args.requests_file, args.ports_file, args.interval_s)]


def _document(day: Day, spreads: dict[str, Spread]) -> dict[str, Any]:
    return {
        "background_p99_pct": float(np.percentile(np.minimum(day.background_pct, 100), 99)),
        "policies": {name: _figures(spread) for name, spread in spreads.items()},
    }


def _print(document: dict[str, Any]) -> None:
    titles = list(next(iter(document["policies"].values())))
    emit_table(
        ("policy", *titles),
        ((name, *(f"{figures[key]:.3g}" for key in titles)) for name, figures in document["policies"].items()),
    )
    print(f"p99 of what the ports carry without the requests: {document['background_p99_pct']:.1f} %")


def _figures(spread: Spread) -> dict[str, float | int]:
    return {
        "p99_pct": spread.p99_pct,
        "mean_pct": spread.mean_pct,
        "p99_over_mean": spread.p99_over_mean,
        "gini": float(spread.gini.mean()),
        "saturated_pct": spread.saturated_share * 100,
        "refused": spread.refused,
    }
