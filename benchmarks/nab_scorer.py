"""The scoring rule of the Numenta Anomaly Benchmark, from its published description.

A. Lavin, S. Ahmad, "Evaluating Real-time Anomaly Detection Algorithms - the Numenta Anomaly Benchmark", ICMLA 2015,
doi:10.1109/ICMLA.2015.141, section II: a detection in a labelled window counts once, by the earliest one, weighted
by a sigmoid of its position; every detection outside counts against, less so shortly behind a window; a window
without any costs a full point. One threshold for all files, the one with the highest sum; 0 is the score of a
detector that says nothing, 100 that of a perfect one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Profile(NamedTuple):
    """Weights of a detection in a window, of one outside and of a window without any."""

    true_positive: float = 1.0
    false_positive: float = 0.11
    false_negative: float = 1.0


STANDARD = Profile()
REWARD_LOW_FP = Profile(1.0, 0.22, 1.0)
REWARD_LOW_FN = Profile(1.0, 0.11, 2.0)

PROBATION_SHARE, PROBATION_ROWS = 0.15, 5000


class ScoredFile(NamedTuple):
    """One file's detector output: a score per row, and the first and last row of each labelled window, in order."""

    scores: NDArray[np.float64]
    windows: Sequence[tuple[int, int]]


class Result(NamedTuple):
    """Normalised score, the threshold it is reached at, windows found and detections outside of them."""

    score: float
    threshold: float
    found: int
    windows: int
    false_positives: int


def sigmoid(position: float) -> float:
    """Return the weight at a position relative to a window, -1 its start, 0 its end: 2 / (1 + e^(5y)) - 1."""
    return -1.0 if position > 3.0 else 2.0 / (1.0 + math.exp(5.0 * position)) - 1.0


def probation(rows: int) -> int:
    """Return how many rows at a file's start are not scored."""
    return math.floor(PROBATION_SHARE * min(rows, PROBATION_ROWS))


def row_weights(file: ScoredFile, profile: Profile = STANDARD) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what a detection at each row is worth and the number of its window, -1 outside."""
    rows = len(file.scores)
    weights, window_of = np.full(rows, -profile.false_positive), np.full(rows, -1)
    best = sigmoid(-1.0)
    starts = [first for first, _ in file.windows] + [rows]
    for number, (first, last) in enumerate(file.windows):
        width = last - first + 1
        for row in range(first, last + 1):
            weights[row] = profile.true_positive * sigmoid(-(last - row + 1) / width) / best
            window_of[row] = number
        for row in range(last + 1, starts[number + 1]):
            weights[row] = profile.false_positive * sigmoid((row - last) / max(1, width - 1))
    return weights, window_of


def raw_scores(files: Sequence[ScoredFile], thresholds: Sequence[float], profile: Profile) -> list[Result]:
    """Return the sum over all files, not normalised, at each threshold (a row is detected from it on)."""
    found = []
    prepared = [(file, *row_weights(file, profile), probation(len(file.scores))) for file in files]
    for threshold in thresholds:
        total, hits, windows, outside = 0.0, 0, 0, 0
        for file, weights, window_of, start in prepared:
            rows = np.flatnonzero(file.scores[start:] >= threshold) + start
            numbers = window_of[rows]
            total += float(weights[rows[numbers < 0]].sum())
            outside += int((numbers < 0).sum())
            seen = set(numbers[numbers >= 0].tolist())
            for number in range(len(file.windows)):
                inside = rows[numbers == number]
                total += float(weights[inside].max()) if len(inside) else -profile.false_negative
            hits, windows = hits + len(seen), windows + len(file.windows)
        found.append(Result(total, threshold, hits, windows, outside))
    return found


def score(files: Sequence[ScoredFile], profile: Profile = STANDARD, threshold: float | None = None) -> Result:
    """Return the normalised score at a threshold, or at the best one where None is given; files hold a window at
    least.

    Raises ValueError where no file has a window.
    """
    windows = sum(len(file.windows) for file in files)
    if not windows:
        raise ValueError("no labelled windows")
    thresholds = [threshold] if threshold is not None else _candidates(files)
    best = max(raw_scores(files, thresholds, profile), key=lambda result: result.score)
    return best._replace(score=normalised(best.score, windows, profile))


def normalised(raw: float, windows: int, profile: Profile = STANDARD) -> float:
    """Return a sum of scores over files with so many windows on the scale of 0 (says nothing) to 100 (perfect)."""
    nothing, perfect = -profile.false_negative * windows, profile.true_positive * windows
    return 100.0 * (raw - nothing) / (perfect - nothing)


def held_out_score(folders: Sequence[Sequence[ScoredFile]], profile: Profile = STANDARD) -> float:
    """Return the normalised score where each folder's threshold is the one that is best for the others."""
    raw, windows = 0.0, 0
    for number, own in enumerate(folders):
        others = [file for place, folder in enumerate(folders) if place != number for file in folder]
        threshold = score(others, profile).threshold
        raw += raw_scores(own, [threshold], profile)[0].score
        windows += sum(len(file.windows) for file in own)
    return normalised(raw, windows, profile)


def _candidates(files: Sequence[ScoredFile], most: int = 200) -> list[float]:
    """Return the scores that occur, thinned out evenly, and one above all."""
    values = np.unique(np.concatenate([file.scores for file in files]))
    if len(values) > most:
        values = np.unique(np.concatenate([np.quantile(values, np.linspace(0, 1, most)), values[-most:]]))
    return [*values.tolist(), math.inf]
