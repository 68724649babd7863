"""The examples of property tests are the same whatever ran before."""

from __future__ import annotations

import sys
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st

UNUSUAL = 987_654_321_987


def drawn():
    """Return the numbers that a property test is tried with."""
    numbers = []

    @settings(max_examples=400, database=None, derandomize=True)
    @given(st.integers())
    def collect(number):
        numbers.append(number)

    collect()
    return numbers


def test_examples_do_not_depend_on_the_modules_loaded_before(tmp_path, monkeypatch):
    first = drawn()
    path = tmp_path / "unusual.py"
    path.write_text(f"NUMBERS = [{', '.join(str(UNUSUAL + number) for number in range(300))}]\n")
    module = ModuleType("unusual")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "unusual", module)
    assert drawn() == first
