"""How much Python's cyclic collector looks at while every loop waits for it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from apps.openflow.collector import COLLECTOR_THRESHOLDS

LOOKED_AT = 15_000
"""Objects that the collector may look at in one go: some milliseconds of work."""


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """How many objects each collection looked at."""
    found: list[int] = []

    def begins(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            found.append(sum(len(gc.get_objects(generation)) for generation in range(info["generation"] + 1)))

    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.callbacks.append(begins)
    try:
        yield found
    finally:
        gc.callbacks.remove(begins)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def test_a_collection_looks_at_few_objects_however_many_a_fabric_has(collections: list[int]) -> None:
    kept = [[number] for number in range(300_000)]
    assert len(kept) == 300_000
    assert len(collections) > 10
    assert max(collections) <= LOOKED_AT


def test_the_collector_looks_at_each_new_object_once(collections: list[int]) -> None:
    kept = [[number] for number in range(300_000)]
    assert len(kept) == 300_000
    assert sum(collections) < 1.1 * len(kept)


def test_what_refers_to_itself_and_is_not_used_any_more_is_collected(collections: list[int]) -> None:
    class Ring:
        def __init__(self) -> None:
            self.itself = self

    gone: list[int] = []
    for _ in range(30_000):
        weakref.finalize(Ring(), gone.append, 1)
    assert len(gone) > 10_000
    assert collections
