"""Which process of a test run gets which module."""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path

from lanes import LIVE_FOLDER, LONGEST, UNHURRIED, Lanes

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"^pytestmark = .*\bunhurried\b", re.MULTILINE)


class Process:
    """A process of a test run, which is told the numbers of its tests."""

    shutting_down = False

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += numbers


def lanes(tests: list[str], count: int) -> tuple[Lanes, list[Process]]:
    found = Lanes.__new__(Lanes)
    found.numnodes, found.log = count, print
    processes = [Process() for _ in range(count)]
    found.workqueue = OrderedDict()
    for test in tests:
        found.workqueue.setdefault(test.split("::")[0], {})[test] = False
    found.assigned_work = {process: {} for process in processes}
    found.registered_collections = dict.fromkeys(processes, tests)
    for process in processes:
        found._assign_work_unit(process)
    return found, processes


UNIT = [f"tests/unit/test_{number}.py::test_{part}" for number in range(4) for part in range(2)]
LIVE = [f"tests/emulation/test_{number}_live.py::test_it" for number in range(4)]


def test_half_of_the_processes_have_live_modules_while_there_are_others() -> None:
    found, (first, second, third, fourth) = lanes(UNIT + LIVE, 4)
    assert [process.given for process in (first, second, third, fourth)] == [[8], [9], [0, 1], [2, 3]]
    found.mark_test_complete(first, 8)
    assert first.given == [8, 10], "its lane goes on"
    found.mark_test_complete(third, 0)
    assert third.given == [0, 1, 4, 5], "it cannot begin its last test without the one after it"
    found.mark_test_complete(third, 1)
    assert third.given == [0, 1, 4, 5], "two are left to it"


def test_all_processes_have_what_is_left() -> None:
    assert [process.given for process in lanes(LIVE, 4)[1]] == [[0], [1], [2], [3]]
    assert [process.given for process in lanes(UNIT, 2)[1]] == [[0, 1], [2, 3]]
    assert lanes(UNIT[:2] + LIVE, 1)[1][0].given == [0, 1]


def test_of_an_odd_number_the_larger_half_computes() -> None:
    assert [process.given for process in lanes(UNIT + LIVE, 5)[1]] == [[8], [9], [0, 1], [2, 3], [4, 5]]


def test_one_of_five_has_live_modules_that_count_no_packets() -> None:
    long = next(name for name in LONGEST if name in UNHURRIED)
    waits = [f"{name}::test_it" for name in (long, min(UNHURRIED - set(LONGEST)))]
    found, processes = lanes([*UNIT, *LIVE, *waits], 5)
    assert [process.given for process in processes] == [[8], [9], [12], [0, 1], [2, 3]]
    found.mark_test_complete(processes[2], 12)
    assert processes[2].given == [12, 13], "its lane goes on"
    found.mark_test_complete(processes[2], 13)
    assert processes[2].given[2:] == [4, 5], "and then it computes"
    assert [process.given for process in lanes([*UNIT, *waits, *LIVE[:1]], 4)[1]] == [[8], [10], [0, 1], [2, 3]]


def test_those_that_count_no_packets_are_the_ones_that_are_marked() -> None:
    modules = {path: path.read_text() for path in (ROOT / LIVE_FOLDER).glob("test_*.py")}
    marked = {str(path.relative_to(ROOT)) for path, text in modules.items() if MARK.search(text)}
    assert marked == UNHURRIED


def test_the_longest_live_modules_begin_first() -> None:
    assert all((ROOT / name).is_file() for name in LONGEST)
    counting = [name for name in LONGEST if name not in UNHURRIED]
    long = [f"{name}::test_it" for name in reversed(counting[:2])]
    assert [process.given for process in lanes([*LIVE, *long, *UNIT], 4)[1]][:2] == [[5], [4]]
