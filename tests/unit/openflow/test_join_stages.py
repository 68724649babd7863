"""The benchmark of a join's stages: what it times is there, and each stage has its own time alone."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("os_ken")

import join_stages
from join_stages import ELSEWHERE, STAGES, Spent, StageClock, beyond_rest, find


@pytest.mark.parametrize("name", [name for names in STAGES.values() for name in names])
def test_what_a_stage_is_timed_by_is_there(name: str) -> None:
    _, _, found = find(name)
    assert callable(found.fget if isinstance(found, property) else found)


def test_a_stage_has_its_time_without_that_of_those_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(join_stages, "time", SimpleNamespace(thread_time=lambda: now))
    clock = StageClock()
    clock.thread = threading.get_ident()

    def work(seconds: float) -> None:
        nonlocal now
        now += seconds

    def outer() -> None:
        work(1.0)
        inner()
        work(2.0)

    inner = clock.timed(lambda: work(10.0), "trees")
    clock.timed(outer, "groups")()
    work(100.0)
    assert clock.spent_s["trees"] == 10.0 and clock.spent_s["groups"] == 3.0 and clock.spent_s[ELSEWHERE] == 0.0
    inner()
    assert clock.spent_s["trees"] == 20.0 and clock.spent_s[ELSEWHERE] == 100.0


def test_what_goes_on_at_rest_is_no_part_of_a_join() -> None:
    def at(past_s: float, stage_s: float, loop_s: float, other_s: float) -> Spent:
        return Spent(past_s, {"trees": stage_s}, 0.0, {1: loop_s, 2: other_s})

    idle, began, ended = at(0.0, 0.0, 0.0, 0.0), at(10.0, 1.0, 2.0, 0.5), at(14.0, 1.4 + 0.2, 2.8 + 1.0, 0.7 + 0.1)
    found = beyond_rest((idle, began), (began, ended), 1000)
    assert found["trees"] == pytest.approx(200.0)
    assert found["the loop, with looks at the clock"] == pytest.approx(1000.0)
    assert found["other threads: the log, other apps"] == pytest.approx(100.0)
