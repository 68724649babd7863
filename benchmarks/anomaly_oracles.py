"""Series whose category is known: what share of them is told rightly, and the figures that the formulas must give.

With `--sensitivity` each constant that decides a category is changed by itself, and the share told instead.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from measure import Summary, print_json, print_table, summarise
from numpy.typing import NDArray

from apps.cli.batch import on_cores
from apps.cli.normalcy_batch import Points, fit_many
from controller.anomaly.normalcy.settings import DAY_S, Settings
from controller.anomaly.normalcy.stability import relative_change
from controller.anomaly.normalcy.trendy import width_of
from controller.anomaly.normalcy.variability import variability_pct

Floats = NDArray[np.float64]
INTERVAL_S, DAYS = 300.0, 30
POINTS = int(DAYS * DAY_S / INTERVAL_S)
ROW = np.arange(POINTS)
AT_S = 1.7e9 // DAY_S * DAY_S + INTERVAL_S * ROW.astype(np.float64)
DAY = AT_S / DAY_S % 1
WEEKDAY = AT_S // DAY_S % 7 < 5
FIGURE_POINTS = 20_000
FACTORS = (0.5, 0.75, 0.9, 1.1, 1.25, 1.5)
LOST_SHARE = 0.2
"""Kinds of which more than so many are told wrongly by some value are named."""

DECISIVE = (
    *("closeness", "quality_pct", "min_similarity_pct", "peak_tolerance_pct", "outlier_quantile"),
    *("smoothing_points", "multinomial_max_values", "multinomial_min_frequent", "multinomial_h1_pct"),
    *("multinomial_h2_pct", "multinomial_h3_pct", "transient_stay", "transient_between"),
    *("transient_between_density", "transient_parts", "transient_min_between", "transient_min_share"),
    *("transient_max_modes", "transient_hole_pct", "transient_epsilon", "semi_constant_outlier_pct"),
    *("semi_constant_recent_share", "trend_pct", "trend_fit", "trend_recent_share", "hole_factor"),
    *("dense_max_gap_pct", "corrupted_gap_pct", "density_epsilon", "stability_pct", "variability_pct"),
)
"""Settings that decide a category or a period."""


class Kind(NamedTuple):
    """How a series is drawn, and what must be told of it."""

    draw: Callable[[np.random.Generator], Points]
    category: str
    period_s: float = 0.0


def _whole(values: Callable[[np.random.Generator], Floats]) -> Callable[[np.random.Generator], Points]:
    return lambda rng: (AT_S, values(rng))


def _noise(rng: np.random.Generator) -> Floats:
    return rng.normal(size=POINTS)


def _by_hour(at_work: float, else_: float) -> Floats:
    return np.where((DAY >= 0.375) & (DAY < 0.75), at_work, else_) * 1.0


def _part(keep: Callable[[np.random.Generator], NDArray[np.bool_]]) -> Callable[[np.random.Generator], Points]:
    def drawn(rng: np.random.Generator) -> Points:
        kept = keep(rng)
        return AT_S[kept], _noise(rng)[kept]

    return drawn


KINDS: dict[str, Kind] = {
    "white noise": Kind(_whole(_noise), "high-variability"),
    "daily wave": Kind(_whole(lambda rng: 50 + 20 * np.sin(2 * np.pi * DAY) + _noise(rng)), "low-variability", DAY_S),
    "office hours, weekends off": Kind(
        _whole(lambda rng: 10 + 30 * WEEKDAY * np.exp(-(((DAY - 0.5) / 0.12) ** 2)) + _noise(rng)),
        "high-variability",
        7 * DAY_S,
    ),
    "states at random": Kind(
        _whole(lambda rng: rng.choice([1.0, 2.0, 3.0, 9.0], POINTS, p=[0.6, 0.3, 0.08, 0.02])), "multinomial"
    ),
    "states by the hour": Kind(
        _whole(lambda rng: _by_hour(*rng.choice(90, 2, replace=False).tolist())),
        "multinomial",
        DAY_S,
    ),
    "modes at random times": Kind(
        _whole(lambda rng: 50.0 * (np.cumsum(rng.random(POINTS) < 0.03) % 2) + _noise(rng)), "transient"
    ),
    "modes by the hour": Kind(
        _whole(lambda rng: np.where((DAY >= 0.375) & (DAY < 0.75), 80.0, 20.0) + _noise(rng)), "transient", DAY_S
    ),
    "rare errors": Kind(
        _whole(lambda rng: np.where(rng.random(POINTS) < 0.02, rng.integers(1, 5, POINTS), 0) * 1.0), "semi-constant"
    ),
    "outliers by the hour": Kind(
        _whole(lambda rng: np.where((DAY >= 0.125) & (DAY < 0.375), 10 * rng.random(POINTS), 3.5)),
        "semi-constant",
        DAY_S,
    ),
    "linear trend": Kind(_whole(lambda rng: 0.01 * ROW + 2 * _noise(rng)), "trendy: linear"),
    "linear trend with a daily wave": Kind(
        _whole(lambda rng: 0.01 * ROW + 15 * np.sin(2 * np.pi * DAY) + _noise(rng)),
        "trendy: linear",
        DAY_S,
    ),
    "one change of level": Kind(
        _whole(lambda rng: rng.uniform(6, 20) * (rng.uniform(0.25, 0.75) * POINTS > ROW) + _noise(rng)),
        "high-variability",
    ),
    "log-linear trend": Kind(_whole(lambda rng: 20 * np.log(1 + ROW) + 13 * _noise(rng)), "trendy: log-linear"),
    "exponential trend": Kind(_whole(lambda rng: np.exp(ROW / 500) + _noise(rng)), "trendy: non-linear"),
    "three of ten points": Kind(_part(lambda rng: rng.random(POINTS) < 0.3), "sparse"),
    "two weeks away, then back": Kind(_part(lambda _: (ROW < 1500) | (ROW > 5500)), "high-variability"),
    "away until just now": Kind(_part(lambda _: (ROW < 1500) | (ROW > 8000)), "corrupted"),
}


def judge(count: int, jobs: int, seed: int) -> dict[str, dict[str, object]]:
    """Return for each kind how many of `count` series have the right category, and how many of these the period."""
    found = {}
    for number, (name, kind) in enumerate(KINDS.items()):
        series = [kind.draw(np.random.default_rng((seed, number, draw))) for draw in range(count)]
        told = fit_many(series, Settings(), on_cores(jobs))
        named = [f"{one.category}: {one.kind}" if ":" in kind.category else one.category for one in told]
        right = [one for one, category in zip(told, named, strict=True) if category == kind.category]
        others = sorted({category for category in named if category != kind.category})
        found[name] = {
            "category": kind.category,
            "told so": len(right) / count,
            "with its period": sum(one.period_s == kind.period_s for one in right) / max(1, len(right)),
            "told instead": ", ".join(others) or "-",
        }
    return found


def sensitivity(count: int, jobs: int, seed: int) -> dict[str, list[object]]:
    """Return what is told rightly, category and period, as each constant is a multiple of its default.

    A row has the default, the share of all series for each of `FACTORS`, "-" where the constant may not be that, and
    the kinds that are told wrongly most.
    """
    series: list[Points] = []
    kinds: list[str] = []
    for number, (name, kind) in enumerate(KINDS.items()):
        series += [kind.draw(np.random.default_rng((seed, number, draw))) for draw in range(count)]
        kinds += [name] * count
    rows: dict[str, list[object]] = {}
    for constant in DECISIVE:
        default = getattr(Settings(), constant)
        row: list[object] = [default]
        lost: dict[str, int] = {}
        for factor in FACTORS:
            value: Any = round(factor * default) if isinstance(default, int) else factor * default
            try:
                settings = replace(Settings(), **{constant: value})
            except ValueError:
                row.append("-")
                continue
            told = fit_many(series, settings, on_cores(jobs))
            wrong = [name for name, one in zip(kinds, told, strict=True) if not _is_right(KINDS[name], one)]
            row.append(1 - len(wrong) / len(series))
            for name in wrong:
                lost[name] = max(lost.get(name, 0), wrong.count(name))
        most = sorted(lost, key=lambda name: -lost[name])
        row.append(", ".join(name for name in most[:2] if lost[name] > LOST_SHARE * count) or "-")
        rows[constant] = row
    return rows


def _is_right(kind: Kind, told: Any) -> bool:
    named = f"{told.category}: {told.kind}" if ":" in kind.category else told.category
    return named == kind.category and (not kind.period_s or told.period_s == kind.period_s)


def figures(count: int, seed: int) -> Iterator[tuple[str, str, Summary]]:
    """Yield what the formulas give for series whose figure is known: what, the figure, and the one found."""
    rngs = [np.random.default_rng((seed, draw)) for draw in range(count)]
    white = [rng.normal(size=FIGURE_POINTS) for rng in rngs]
    yield "variability R of white noise", "86 %", summarise([variability_pct(one) for one in white])
    slow = [_autoregressive(0.947, one) for one in white]
    yield "variability R at a lag-1 correlation of 0.947", "20 %", summarise([variability_pct(one) for one in slow])
    half = FIGURE_POINTS // 2
    changes = [100 * float(relative_change(one[None, :half], one[None, half:] + 1.1)[0]) for one in white]
    yield "relative change at a shift of 1.1 sigma", "70 %", summarise(changes)
    for a, sigmas in ((10.0, "2"), (30.0, "3")):
        widths = [width_of(one, Settings(trend_a=a)) / float(one.std()) for one in white]
        yield f"width in sigma that a = {a:g} picks", sigmas, summarise(widths)


def _autoregressive(correlation: float, steps: Floats) -> Floats:
    values = np.zeros(len(steps))
    for row in range(1, len(steps)):
        values[row] = correlation * values[row - 1] + steps[row]
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sensitivity", action="store_true", help="change each constant by itself")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.sensitivity:
        rows = sensitivity(args.count, args.jobs, args.seed)
        if args.json:
            print_json(rows)
        else:
            heads = ("constant", "default", *(f"x {factor:g}" for factor in FACTORS), "mostly lost")
            print_table(heads, [(name, *row) for name, row in rows.items()])
        return
    judged = judge(args.count, args.jobs, args.seed)
    measured = list(figures(min(args.count, 20), args.seed))
    if args.json:
        print_json({"categories": judged, "figures": {name: found for name, _, found in measured}})
        return
    columns = list(next(iter(judged.values())))
    print_table(("series", *columns), [(name, *(row[key] for key in columns)) for name, row in judged.items()])
    print()
    print_table(
        ("figure", "expected", "median", "min", "max"),
        [(name, known, found.median, found.minimum, found.maximum) for name, known, found in measured],
    )


if __name__ == "__main__":
    main()
