"""Runs of `vsrt simulate`: every algorithm over the same groups, seed after seed, timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean, stdev
from time import perf_counter
from typing import Any, NamedTuple

from apps.cli.loads_file import LinkLoad
from apps.cli.progress import ProgressBar
from controller.simulation.aliases import place_aliased
from controller.simulation.data_centre import DataCentre, Floats, Ints
from controller.simulation.groups import SimulatedGroups
from controller.simulation.outcome import AlgorithmFigures, least_max_pct, optimal_sizes, outcome, utilisation_pct
from controller.simulation.placement import CutOff, connected, place_trees
from controller.simulation.switch_state import TableUse, state_of_placed
from controller.simulation.trees import TreeLinks
from controller.trees.algorithms import DEFAULT_ALGORITHM

MAX_POINTS = 12
"""Numbers of groups for which the maximum is found, at most."""

STATE_GROUPS = 20_000
"""Groups up to which the flow entries of every switch are counted."""

NAMED = 10
"""Disconnected members that are named, at most."""


class AlgorithmRun(NamedTuple):
    """What one algorithm gave."""

    outcome: AlgorithmFigures
    build_s: float
    load_bps: Ints
    utilisation_pct: Floats
    tree_links: Ints
    switch_state: TableUse | None
    aliases_used: int | None = None


class SeedRun(NamedTuple):
    """All algorithms over the groups of one seed."""

    seed: int
    groups: SimulatedGroups
    cut_off: list[CutOff]
    lower_bound_pct: float
    algorithms: dict[str, AlgorithmRun]


class MaximumByCount(NamedTuple):
    """Utilisation of the busiest link in percent when only the first groups are there, and its lower bound."""

    counts: list[int]
    algorithms: dict[str, list[float]]
    lower_bound: list[float]


def run_seed(
    centre: DataCentre,
    groups: SimulatedGroups,
    algorithms: Sequence[str],
    seed: int,
    bar: ProgressBar,
    aliases: int | None = None,
) -> SeedRun:
    """Build the trees of `groups` by every algorithm, with at most so many aliases where a number is given."""
    groups, cut_off = connected(centre, groups)
    bound = least_max_pct(centre, groups)
    optimum = optimal_sizes(centre, groups)
    runs = {}
    for name in algorithms:
        if aliases is not None:
            runs[name] = _aliased(centre, groups, name, seed, aliases, bound)
            continue
        # The default makes loads without links: these are asked for beside the time that is measured.
        links: list[TreeLinks] | None = [] if len(groups) <= STATE_GROUPS and name != DEFAULT_ALGORITHM else None
        start = perf_counter()
        trees = place_trees(centre, groups, name, seed, _drawing(bar, name, len(groups)), links)
        build_s = perf_counter() - start
        if len(groups) <= STATE_GROUPS and links is None:
            links = []
            place_trees(centre, groups, name, seed, links=links)
        utilisation = utilisation_pct(centre, trees)
        figures = outcome(trees, utilisation, optimum, bound)
        state = None if links is None else state_of_placed(centre, groups, links)
        runs[name] = AlgorithmRun(figures, build_s, trees.load_bps, utilisation, trees.tree_links, state)
    bar.clear()
    return SeedRun(seed, groups, cut_off, bound, runs)


def _aliased(
    centre: DataCentre, groups: SimulatedGroups, name: str, seed: int, aliases: int, bound_pct: float
) -> AlgorithmRun:
    """Build trees and aliases by an algorithm; an alias counts as a tree of its own."""
    start = perf_counter()
    found = place_aliased(centre, groups, name, seed, aliases, bound_pct)
    build_s = perf_counter() - start
    utilisation = utilisation_pct(centre, found.trees)
    figures = outcome(found.trees, utilisation, optimal_sizes(centre, found.groups), bound_pct)
    return AlgorithmRun(
        figures, build_s, found.trees.load_bps, utilisation, found.trees.tree_links, None, aliases_used=found.used
    )


def _drawing(bar: ProgressBar, what: str, total: int) -> Callable[[int], None]:
    return lambda done: bar.draw(what, done, total)


def maximum_by_count(centre: DataCentre, run: SeedRun, bar: ProgressBar) -> MaximumByCount:
    """Find the busiest link for growing numbers of groups, each number placed anew."""
    total = len(run.groups)
    points = min(MAX_POINTS, total)
    counts = sorted({max(1, round(total * 0.01 ** (1 - i / max(1, points - 1)))) for i in range(points)} | {total})
    found: dict[str, list[float]] = {name: [] for name in run.algorithms}
    bounds = []
    for count in counts:
        part = run.groups.part(0, count)
        bounds.append(least_max_pct(centre, part))
        for name, before in run.algorithms.items():
            if count == total:
                found[name].append(before.outcome.max_pct)
                continue
            trees = place_trees(centre, part, name, run.seed, _drawing(bar, f"{name}, {count:,} groups", count))
            found[name].append(float(utilisation_pct(centre, trees).max(initial=0.0)))
    bar.clear()
    return MaximumByCount(counts, found, bounds)


def link_loads(centre: DataCentre, run: SeedRun) -> list[LinkLoad]:
    """Return what every algorithm's trees put on every link."""
    return [
        LinkLoad(name, u, v, bps, pct)
        for name, result in run.algorithms.items()
        for (u, v), bps, pct in zip(
            centre.cables, result.load_bps.tolist(), result.utilisation_pct.tolist(), strict=True
        )
    ]


def figures(run: SeedRun, name: str) -> dict[str, float | None]:
    """Return an algorithm's figures by the names that `--json` has for them."""
    result = run.algorithms[name]
    count = len(run.groups)
    speed = count / result.build_s if result.build_s else None
    found = {**result.outcome._asdict(), "build_s": result.build_s, "groups_per_s": speed}
    return found if result.aliases_used is None else {**found, "aliases_used": result.aliases_used}


def document(runs: Sequence[SeedRun], names: Sequence[str], centre: DataCentre) -> dict[str, Any]:
    """Return the document of `--json`; over several seeds it holds means, and the standard deviations beside them."""
    rows = {name: [figures(run, name) for run in runs] for name in runs[0].algorithms}
    result: dict[str, Any] = {
        "groups": len(runs[0].groups),
        "members": mean(int(run.groups.members_at.sum()) for run in runs),
        "switches": len(centre.switches),
        "links": len(centre.cables),
        "seeds": [run.seed for run in runs],
        "lower_bound_pct": mean(run.lower_bound_pct for run in runs),
        "algorithms": {name: _over_seeds(row, mean) for name, row in rows.items()},
        "switch_state": {
            name: None if found.switch_state is None else found.switch_state.summary()
            for name, found in runs[0].algorithms.items()
        },
        "disconnected": _disconnected(runs[0], names),
    }
    if len(runs) > 1:
        result["standard_deviation"] = {name: _over_seeds(row, stdev) for name, row in rows.items()}
    return result


def _over_seeds(
    rows: Sequence[dict[str, float | None]], combine: Callable[[list[float]], float]
) -> dict[str, float | None]:
    combined: dict[str, float | None] = {}
    for field in rows[0]:
        values = [value for row in rows if (value := row[field]) is not None]
        combined[field] = combine(values) if len(values) == len(rows) else None
    return combined


def _disconnected(run: SeedRun, names: Sequence[str]) -> dict[str, Any]:
    return {
        "members": sum(cut.members for cut in run.cut_off),
        "groups": len({cut.group for cut in run.cut_off}),
        "first": [
            {"group": names[cut.group] if names else cut.group, "switch": cut.switch, "members": cut.members}
            for cut in run.cut_off[:NAMED]
        ],
    }
