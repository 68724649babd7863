"""Rates summed up over seconds, minutes and hours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RollUps:
    """Roll-ups of one length, one entry for each port and period.

    Attributes
    ----------
    step_s
        The length of the period.
    rows
        int32[n], rows of `PortTable`.
    start_s
        float64[n], when the period began, a multiple of `step_s`.
    minimum, mean, maximum
        float64[n, 12], rates per second; the mean is weighted by time. NaN where no rate was known.
    total
        float64[n, 12], what was counted in the known time.
    count
        uint32[n], samples.
    covered_s
        float64[n], the known time; below `step_s` where there were gaps.
    """

    step_s: int
    rows: NDArray[np.int32]
    start_s: NDArray[np.float64]
    minimum: NDArray[np.float64]
    mean: NDArray[np.float64]
    maximum: NDArray[np.float64]
    total: NDArray[np.float64]
    count: NDArray[np.uint32]
    covered_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)
