"""How often Python's cyclic collector looks at what a controller has."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTOR_THRESHOLDS = (12_000, -1, 3_000)
"""Of Python's cyclic collector: no loop goes on meanwhile, so it looks at 12,000 new objects at most, and at each of
them once: below 0 it takes the second generation with the first every time, and what is still there counts as old. At
all objects it looks once for 36 million that stay; by default it would do so often enough to double the cost of a
join."""


@contextmanager
def without_collections() -> Iterator[None]:
    """Load modules, of which all stays, without looking again and again for what may go: an eighth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def collect_seldom() -> None:
    """Go by these from here on, and look no more at what there is already."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.freeze()
