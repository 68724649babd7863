"""The examples of property tests are the same whatever ran before, and a part of them where a run asks for that."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fewer_examples import divide_examples

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


@pytest.mark.parametrize(("divisor", "tried"), [(1, 60), (5, 12), (100, 1)])
def test_a_property_is_tried_with_a_part_of_its_examples(divisor, tried):
    numbers = []

    @settings(max_examples=60, database=None)
    @given(st.integers())
    def collect(number):
        numbers.append(number)

    items = [SimpleNamespace(obj=collect, cls=None)] * 2
    divide_examples(items, divisor)
    collect()
    assert len(numbers) == tried


@pytest.mark.parametrize(("divisor", "tried"), [(1, 60), (5, 12)])
def test_a_machine_is_run_with_a_part_of_its_sequences(divisor, tried):
    sequences = []

    class Machine(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            sequences.append(self)

        @rule(number=st.integers())
        def step(self, number):
            pass

    case = Machine.TestCase
    case.settings = settings(max_examples=60, database=None)
    divide_examples([SimpleNamespace(obj=case.runTest, cls=case)], divisor)
    case("runTest").runTest()
    assert len(sequences) == tried
