"""How far each stretch of series is from the nearest one before it, by stumpy; run by a Python that has stumpy.

    python benchmarks/left_profiles.py SERIES.npz SCORES.npz

Reads arrays from a .npz, each with the length of its stretches behind a bar in its name, and writes one score a row.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def left_scores(values: Floats, length: int) -> Floats:
    """Return, for the row that a stretch ends with, its z-normalised distance from the nearest before it, 0 to 1.

    Stretches that overlap by more than three quarters are no neighbours, as stumpy has it. 0 where there is none.
    """
    import stumpy

    found = np.zeros(len(values))
    if len(values) < 4 * length:
        return found
    nearest = stumpy.stump(values, m=length).left_I_.astype(np.int64)
    stretches = np.lib.stride_tricks.sliding_window_view(values, length)
    spread = stretches.std(axis=1)
    middle = stretches.mean(axis=1)
    known = np.flatnonzero(nearest >= 0)
    for start in range(0, len(known), 4096):
        one = known[start : start + 4096]
        other = nearest[one]
        product = (stretches[one] * stretches[other]).mean(axis=1) - middle[one] * middle[other]
        scale = spread[one] * spread[other]
        alike = np.where(
            scale > 1e-12, product / np.maximum(scale, 1e-12), (spread[one] < 1e-9) == (spread[other] < 1e-9)
        )
        found[one + length - 1] = np.sqrt(np.clip((1 - alike) / 2, 0, 1))
    return found


def main() -> None:
    """Score what the first file holds into the second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", type=Path, help="the file that is read")
    parser.add_argument("scores", type=Path, help="the file that is written")
    arguments = parser.parse_args()
    given = np.load(arguments.series)
    scores = {name: left_scores(given[name], int(name.rpartition("|")[2])) for name in given.files}
    np.savez(arguments.scores, **scores)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
