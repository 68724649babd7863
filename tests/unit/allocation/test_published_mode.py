"""Mode `vipr` beside a plain model of the published behaviour, with sets in place of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.allocation.candidates import Candidates, Mode
from controller.allocation.selection import Wish, select

LEVELS = ("director_type", "engine", "director", "cpu", "switch")
ROW = st.tuples(
    st.integers(0, 9),
    st.booleans(),
    *(st.sampled_from([None, *names]) for names in ("AB", "123", "wxyz", "45678", "st")),
)


def published(rows: list[Any], count: int) -> list[int]:
    """The picks of a model that holds, for each level, the ports of each entity and the entities used."""
    ports_of = [{row[2 + place]: set() for row in rows if row[2 + place]} for place in range(len(LEVELS))]
    for place, entities in enumerate(ports_of):
        for number, row in enumerate(rows):
            if row[2 + place]:
                entities[row[2 + place]].add(number)
    used: list[set[str]] = [set() for _ in LEVELS]
    taken: list[int] = []
    while len(taken) < count:
        left = {number for number, row in enumerate(rows) if row[1]} - set(taken)
        if not left:
            break
        for entities, marks in zip(ports_of, used, strict=True):
            unused = [ports for entity, ports in entities.items() if entity not in marks]
            if unused:
                left = (left & set().union(*unused)) or left
            elif entities:
                marks.clear()
        best = min(left, key=lambda number: (rows[number][0], number))
        taken.append(best)
        for place, marks in enumerate(used):
            if rows[best][2 + place]:
                marks.add(rows[best][2 + place])
    return taken


@given(st.lists(ROW, min_size=1, max_size=14), st.integers(1, 14))
def test_picks_are_those_of_the_published_behaviour(rows: list[Any], count: int):
    candidates = Candidates(
        list(range(len(rows))),
        np.array([row[0] for row in rows], np.float64),
        np.zeros(len(rows)),
        np.array([row[1] for row in rows], np.bool_),
        {level: [row[2 + place] for row in rows] for place, level in enumerate(LEVELS)},
    )
    found = select(candidates, Wish(count, allow_fewer=True, mode=Mode.VIPR)).ports
    assert list(found) == published(rows, count)
