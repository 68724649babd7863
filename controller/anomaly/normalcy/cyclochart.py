"""The period of a series from its cyclochart: how alike the columns of its footprint are at each cycle length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.normalcy.footprint import Footprint, similar_columns
from controller.anomaly.normalcy.series import Floats
from controller.anomaly.normalcy.settings import Settings

Bools = NDArray[np.bool_]


class PeriodSeries(NamedTuple):
    """The multiples of one peak of the cyclochart."""

    units: int
    positive: int
    negative: int
    similarity_pct: float

    @property
    def strength(self) -> int:
        """Peaks among the multiples less those that are none."""
        return self.positive - self.negative


@dataclass(frozen=True, slots=True)
class Cyclochart:
    """How alike columns are at cycles of 1, 2, ... time units, float64[cycles] in percent.

    `similarity_pct` is the article's: the share of periodic columns of a cycle. The fewer times a cycle is repeated
    the more of it chance gives. `pairs_pct` is the share of similar pairs among columns that lie whole cycles apart,
    which does not depend on the repeats, and `all_pairs_pct` that among all columns.
    """

    similarity_pct: Floats
    pairs_pct: Floats
    all_pairs_pct: float

    def beyond_chance_pct(self) -> Floats:
        """Return how much of what all pairs leave open the pairs of a cycle have, float64[cycles], 100 at most."""
        left_pct = 100.0 - self.all_pairs_pct
        if left_pct <= 0:
            return np.zeros(len(self.pairs_pct))
        shares: Floats = 100.0 * (self.pairs_pct - self.all_pairs_pct) / left_pct
        return shares


class CycleColumns(NamedTuple):
    """The columns of a footprint at one place of the cycle each.

    `columns` int64[cycle, repeats], `inside` bool of the same shape (the column is within the footprint), `alike`
    bool (the column is like the group's reference), `periodic` bool[cycle].
    """

    columns: NDArray[np.int64]
    inside: Bools
    alike: Bools
    periodic: Bools


def groups(similar: Bools, cycle: int, quality_pct: float) -> CycleColumns:
    """Put columns that lie a cycle apart together and find each group's reference.

    The reference is the column that most others are like; the article takes the first, which one bad first day
    spoils. A group is periodic where the columns like its reference are `quality_pct` of all, missing ones counted.

    Parameters
    ----------
    similar
        bool[columns, columns] as `footprint.similar_columns` returns it.
    cycle
        Columns in a cycle, at least 1.
    quality_pct
        0 to 100.
    """
    count = len(similar)
    repeats = max(1, -(-count // cycle))
    columns = np.arange(cycle)[:, None] + cycle * np.arange(repeats)[None, :]
    inside = columns < count
    held = np.minimum(columns, count - 1)
    alike = similar[held[:, :, None], held[:, None, :]] & inside[:, :, None] & inside[:, None, :]
    votes = alike.sum(axis=2)
    reference = votes.argmax(axis=1)
    like_reference = alike[np.arange(cycle), reference]
    members = inside.sum(axis=1)
    periodic = (members >= 2) & (votes.max(axis=1) >= quality_pct / 100 * members - 1e-9)
    return CycleColumns(columns, inside, like_reference, periodic)


def cyclochart(columns: Footprint, similar: Bools, settings: Settings) -> Cyclochart:
    """Return the cyclochart at every cycle length of whole time units that fits in twice.

    Groups of which the footprint holds one column, or which are empty throughout, are left out of the similarity, and
    pairs of two empty columns out of the pairs.
    """
    parts, present = columns.frame.parts, similar.diagonal()
    cycles = range(1, -(-len(columns) // parts) // 2 + 1)
    similarity = [_periodic_pct(similar, present, parts * units, settings.quality_pct) for units in cycles]
    lags = range(0, len(columns), parts)
    alike = np.array([similar.diagonal(lag).sum() for lag in lags], np.float64)
    pairs = np.array([(present[lag:] | present[: len(present) - lag]).sum() for lag in lags], np.float64)
    of_cycle = [100.0 * alike[units::units].sum() / max(1.0, pairs[units::units].sum()) for units in cycles]
    there, missing = float(present.sum()), float((~present).sum())
    all_pairs = there * (there - 1) + 2 * there * missing
    all_pct = 100.0 * float(similar.sum() - present.sum()) / all_pairs if all_pairs else 0.0
    return Cyclochart(np.array(similarity), np.array(of_cycle), all_pct)


def _periodic_pct(similar: Bools, present: Bools, cycle: int, quality_pct: float) -> float:
    found = groups(similar, cycle, quality_pct)
    held = np.minimum(found.columns, len(present) - 1)
    counted = (found.inside.sum(axis=1) >= 2) & (present[held] & found.inside).any(axis=1)
    return 100.0 * float(found.periodic[counted].mean()) if counted.any() else 0.0


def peaks(chart: Cyclochart, tolerance_pct: float, floor_pct: float) -> list[int]:
    """Return the cycle lengths, in time units, at which the cyclochart has a local maximum.

    It is a maximum of what is beyond chance, and above the floor. Going either way, something lower by more than the
    tolerance comes before anything higher by more. Beyond the short end stands 0; the long end counts as lower.
    """
    levels = np.concatenate(([0.0], chart.beyond_chance_pct()))
    found = []
    for units in range(1, len(levels)):
        level = levels[units]
        before, after = levels[:units][::-1], levels[units + 1 :]
        if level <= floor_pct or not _lower_first(before, level, tolerance_pct, False):
            continue
        if _lower_first(after, level, tolerance_pct, True):
            found.append(units)
    return found


def _lower_first(levels: Floats, level: float, tolerance: float, at_end: bool) -> bool:
    lower = np.flatnonzero(levels < level - tolerance)
    higher = np.flatnonzero(levels > level + tolerance)
    if not len(lower):
        return at_end and not len(higher)
    return not len(higher) or bool(lower[0] < higher[0])


def period_series(peak_units: list[int], similarity_pct: Floats) -> list[PeriodSeries]:
    """Return the series of multiples of every peak, with positive and negative factor."""
    longest, known = len(similarity_pct), set(peak_units)
    found = []
    for units in peak_units:
        multiples = range(units, longest + 1, units)
        positive = sum(multiple in known for multiple in multiples)
        found.append(PeriodSeries(units, positive, len(multiples) - positive, float(similarity_pct[units - 1])))
    return found


def choose_period(candidates: list[PeriodSeries], min_similarity_pct: float) -> int:
    """Return the period in time units, 0 for none.

    Order of choice: strength, fewer negatives, similarity, shorter; what is left must pass the floor. The order is
    the article's, its example of seven days is met by it (confidence high).
    """
    if not candidates:
        return 0
    best = min(candidates, key=lambda s: (-s.strength, s.negative, -s.similarity_pct, s.units))
    return best.units if best.similarity_pct > min_similarity_pct else 0


def shortest_equal(units: int, chart: Cyclochart, tolerance_pct: float) -> int:
    """Return the shortest divisor of a period that is as similar beyond chance, within the tolerance.

    Data with a T-cycle has every multiple of it, but where one odd day falls into a group of few repeats the
    multiples of T are no peaks and T loses strength. Not in the article.
    """
    levels = chart.beyond_chance_pct()
    wanted = levels[units - 1] - tolerance_pct
    return next(d for d in range(1, units + 1) if units % d == 0 and levels[d - 1] >= wanted)


@dataclass(frozen=True, slots=True)
class Cycle:
    """What the period detector found: the period in time units (0: none) and the columns grouped by it."""

    units: int
    chart: Cyclochart
    grouped: CycleColumns | None

    @property
    def periodic(self) -> bool:
        """Whether there is a period."""
        return self.units > 0


def find_cycle(columns: Footprint, settings: Settings, similar: Bools | None = None) -> Cycle:
    """Detect the period of a footprint; one of which two whole cycles are there."""
    if similar is None:
        similar = similar_columns(columns, settings.closeness)
    chart = cyclochart(columns, similar, settings)
    found = peaks(chart, settings.peak_tolerance_pct, settings.min_similarity_pct)
    units = choose_period(period_series(found, chart.similarity_pct), settings.min_similarity_pct)
    if not units:
        return Cycle(0, chart, None)
    units = shortest_equal(units, chart, settings.peak_tolerance_pct)
    return Cycle(units, chart, groups(similar, units * columns.frame.parts, settings.quality_pct))


def kept_columns(found: CycleColumns, present: Bools) -> Bools:
    """Tell which columns of each group its bounds are taken from, bool[cycle, repeats].

    Of a periodic group those like its reference, of any other all that hold points.
    """
    held = np.minimum(found.columns, len(present) - 1)
    there = found.inside & present[held]
    kept: Bools = np.where(found.periodic[:, None], found.alike & there, there)
    return kept
