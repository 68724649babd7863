"""What is advised about the number of monitors, and again where the program fails: with real programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.cluster.scaling_orders import ScalingOrders
from apps.cluster.scaling_work import ScalingWork, WorkTold
from controller.cluster.draining import draining
from controller.cluster.monitor_states import MonitorState
from controller.scaling.advised import Advised, advice_text
from patience import wait_until

PATIENCE_S = 20.0

PROGRAM = """\
import os, sys
with open(sys.argv[1], "a") as told:
    told.write(" ".join([*sys.argv[2:], *os.environ["VSRT_SCALING_DRAINED"].split()]) + "\\n")
sys.exit("no host is free" if os.path.exists(sys.argv[1] + "-fails") else 0)
"""


def waited(reached: Callable[[], Any]) -> None:
    """Wait until something is so, for what this process and those it began have to do."""
    wait_until(reached, os.getpid(), PATIENCE_S)


def state(*, divides: bool = False, drained: bool = False) -> MonitorState:
    return MonitorState(divides, drained, "", 30, 1 if drained else 10, 0 if drained else 100, 0, 33.3)


def change(monitors: int, wanted: int, number: int = 7) -> Advised:
    known = Advised(number, 300, monitors, 0, 1, load=1.5, usage=0.5, lateness=0.01, scarcest="processor")
    return known._replace(wanted=wanted, wanted_pace=1, is_ordered=True)


class Worked:
    """Work over monitors that obey at once, with a program that fails while a file is there."""

    def __init__(self, tmp_path: Path, waits_s: tuple[float, float] = (0.01, 0.02), **states: MonitorState) -> None:
        self.states = dict(states)
        self.path, self.fails = tmp_path / "ran", tmp_path / "ran-fails"
        self.fails.touch()
        self.told: list[WorkTold] = []
        self.divides: bool | None = True
        argv = (sys.executable, "-c", PROGRAM, str(self.path))
        self.orders = ScalingOrders(self.order, lambda: self.states, argv)
        self.work = ScalingWork(self.orders, lambda: self.divides, self.told.append, waits_s)

    def order(self, order: Any, name: str) -> dict[str, Any]:
        self.states[name] = state(drained=order is draining)
        return {}

    def ran(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def failed(self, count: int) -> None:
        waited(lambda: sum(bool(each.problems) for each in self.told) >= count)

    def over(self) -> None:
        waited(lambda: self.work.waiting is None)


def three() -> dict[str, MonitorState]:
    return {"m1": state(divides=True), "m2": state(), "m3": state()}


def test_a_program_that_fails_is_tried_again_each_time_with_an_event_until_it_does_not(tmp_path: Path) -> None:
    worked = Worked(tmp_path, **three())
    worked.work.begin(change(3, 4), [])
    worked.failed(3)
    worked.fails.unlink()
    worked.over()
    ran = worked.ran()
    assert len(ran) >= 4 and set(ran) == {"monitors 4"}
    problems = [problem for each in worked.told for problem in each.problems]
    assert len(problems) == len(ran) - 1
    assert problems[0] == (
        f"{sys.executable} ended with 1: no host is free. It is tried again in 0.01 s, unless other advice comes."
    )
    last = worked.told[-1]
    assert (last.is_over, last.problems) == (True, ())
    assert last.advised.outcome == f"It was done at try {len(ran)}."
    assert any("Try 2 failed:" in advice_text(each.advised) for each in worked.told)


def test_waits_double_up_to_the_longest(tmp_path: Path) -> None:
    work = Worked(tmp_path, (5.0, 300.0)).work
    assert [work._wait_s(tries) for tries in (1, 2, 3, 6, 7, 8, 1_000_000)] == [5, 10, 20, 160, 300, 300, 300]


def test_where_enough_monitors_are_there_after_all_it_is_not_run_again(tmp_path: Path) -> None:
    worked = Worked(tmp_path, (0.3, 0.3), **three())
    worked.work.begin(change(3, 4), [])
    worked.failed(1)
    worked.states["m4"] = state()
    worked.over()
    assert worked.ran() == ["monitors 4"]
    assert worked.told[-1].advised.outcome == "Nothing is left to be done."


def test_one_that_polls_again_is_not_named_to_the_program(tmp_path: Path) -> None:
    """Somebody may have had it take its part again while the program was to be tried again."""
    worked = Worked(tmp_path, (0.3, 0.3), **three())
    worked.work.begin(change(3, 1), ["m3", "m2"])
    worked.failed(1)
    worked.states["m3"] = state()
    waited(lambda: len(worked.ran()) > 1)
    worked.states["m2"] = state()
    worked.over()
    assert worked.ran()[:2] == ["monitors 1 m3 m2", "monitors 1 m2"]
    assert not worked.work.ended


def test_who_divides_no_more_tries_nothing_again_and_a_silent_store_is_waited_for(tmp_path: Path) -> None:
    worked = Worked(tmp_path, **three())
    worked.divides = None
    worked.work.begin(change(3, 4), [])
    worked.failed(1)
    assert worked.work.waiting is not None
    worked.divides = False
    worked.over()
    assert worked.ran() == ["monitors 4"]


def test_while_it_is_held_nothing_is_run_and_while_it_runs_it_cannot_be_held(tmp_path: Path) -> None:
    worked = Worked(tmp_path, **three())
    gate = tmp_path / "gate"
    waits = (
        f"import os, time\nopen({str(worked.path)!r}, 'w')\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    )
    worked.orders.command = (sys.executable, "-c", waits)
    with worked.work.held() as is_free:
        assert is_free
        worked.work.begin(change(3, 4), [])
        assert not worked.told
    waited(worked.path.exists)
    with worked.work.held() as is_free:
        assert not is_free
    gate.touch()
    worked.over()


@pytest.mark.parametrize(
    ("advised", "chosen", "goes_on", "ran"),
    [
        (change(3, 4, 8), [], True, {"monitors 4"}),
        (change(3, 4, 8), ["m9"], False, {"monitors 4"}),
        (change(3, 5, 8), [], False, {"monitors 4"}),
        (change(3, 4, 8)._replace(wanted=None, gap="m2 told nothing of the interval."), [], True, {"monitors 4"}),
        (change(3, 4, 8)._replace(wanted_pace=2), [], False, {"monitors 4"}),
    ],
)
def test_the_same_advice_is_not_begun_anew_and_other_advice_ends_it(
    tmp_path: Path, advised: Advised, chosen: list[str], goes_on: bool, ran: set[str]
) -> None:
    worked = Worked(tmp_path, (600.0, 600.0), **three())
    worked.work.begin(change(3, 4), [])
    worked.failed(1)
    with worked.work.held() as is_free:
        assert is_free
        assert worked.work.goes_on(advised, chosen) is goes_on
    waiting = worked.work.waiting
    assert (waiting is not None) is goes_on
    if waiting is not None:
        assert waiting.number == (8 if advised.wanted else 7) and waiting.outcome.startswith("Try 1 failed:")
    worked.work.drop()
    assert set(worked.ran()) == ran


def test_another_program_takes_the_next_try(tmp_path: Path) -> None:
    worked = Worked(tmp_path, **three())
    worked.orders.command = (str(tmp_path / "deleted"),)
    worked.work.begin(change(3, 4), [])
    worked.failed(2)
    assert worked.ran() == [] and "No such file or directory" in worked.told[0].problems[0]
    worked.fails.unlink()
    worked.orders.command = (sys.executable, "-c", PROGRAM, str(worked.path))
    worked.over()
    assert worked.ran() == ["monitors 4"]


def test_those_that_were_drained_and_not_ended_are_named_again_later(tmp_path: Path) -> None:
    worked = Worked(tmp_path, m1=state(divides=True), m2=state(), m3=state(drained=True))
    worked.fails.unlink()
    worked.work.begin(change(2, 2), [], ["m3"])
    worked.over()
    assert worked.ran() == ["monitors 2 m3"] and worked.work.ended == {"m3"}
