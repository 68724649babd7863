"""`vsrt simulate --background`: what load meets that is placed beside the traffic of others."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from apps.cli.common import InputError, emit_table

if TYPE_CHECKING:
    from controller.simulation.background import BesideOthers
    from controller.simulation.data_centre import DataCentre
    from controller.simulation.groups import SimulatedGroups

MOST_GROUPS = 10_000
TITLES = ("load", "placed by", "others use %", "on busy cables %", "busiest cable %")
VIEWS = {"unaware": "nothing", "last": "the newest minute", "metric": "port metrics"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--background",
        type=float,
        metavar="PCT",
        help="others use so much of the cables: what trees and unicast meet that are placed unaware of it, by the "
        "newest minute and by port metrics",
    )


def check(args: argparse.Namespace) -> None:
    """Raise InputError for a value out of range."""
    if args.background is None:
        return
    if not 0 < args.background <= 100:
        raise InputError(f"--background: {args.background:g} is not above 0 and at most 100")
    if args.groups > MOST_GROUPS:
        raise InputError(f"--background: is for at most {MOST_GROUPS:,} groups")


def run_background(
    background_pct: float,
    centre: DataCentre,
    runs: Sequence[tuple[int, SimulatedGroups]],
    draw: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Return the document under ``background``: means over the seeds and groups of `runs`."""
    from controller.simulation.background import Background, LoadView, paths_beside, trees_beside

    found: dict[str, dict[str, list[BesideOthers]]] = {
        load: {view.value: [] for view in LoadView} for load in ("trees", "paths")
    }
    done, total = 0, len(runs) * len(LoadView)
    for seed, groups in runs:
        background = Background(centre, background_pct, seed)
        for view in LoadView:
            found["trees"][view.value].append(trees_beside(centre, groups, background, view, seed))
            found["paths"][view.value].append(paths_beside(centre, groups, background, view))
            done += 1
            draw("background", done, total)
    return {
        "mean_pct": background_pct,
        **{
            load: {
                view: {name: mean(getattr(each, name) for each in results) for name in results[0]._fields}
                for view, results in by_view.items()
            }
            for load, by_view in found.items()
        },
    }


def print_background(document: dict[str, Any]) -> None:
    """Print it as a table."""
    print(f"Others use {document['mean_pct']:g} % of the cables on average; the hour after load was placed:")
    emit_table(
        TITLES,
        [
            (load, VIEWS[view], *(f"{figures[name]:.1f}" for name in ("meets_pct", "busy_pct", "max_pct")))
            for load in ("trees", "paths")
            for view, figures in document[load].items()
        ],
    )
