"""What is done about the number of monitors: who is drained and who has its part again, with a real program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.cluster.scaling_orders import ScalingOrders
from apps.cluster.scaling_work import ScalingWork, WorkTold
from controller.cluster.draining import draining
from controller.cluster.monitor_states import MonitorState
from controller.scaling.advised import Advised
from patience import wait_until

PATIENCE_S = 20.0


def waited(reached: Callable[[], Any]) -> None:
    """Wait until something is so, for what this process and those it began have to do."""
    wait_until(reached, os.getpid(), PATIENCE_S)


def state(*, divides: bool = False, drained: bool = False, leaving: int = 0, switches: int = 10) -> MonitorState:
    # A switch that nobody is connected to stays whose it was.
    polled = (1, 0) if drained else (switches, 100)
    return MonitorState(divides, drained, "", 30, *polled, leaving, 33.3)


def done(orders: ScalingOrders, advised: Advised, chosen: list[str]) -> list[str]:
    """Have an advice done once; return what went wrong."""
    told: list[WorkTold] = []
    work = ScalingWork(orders, lambda: False, told.append, (0.0, 0.0))
    work.begin(advised, chosen)
    waited(lambda: work.waiting is None)
    (outcome,) = told
    return list(outcome.problems)


class Ordered:
    """Orders over monitors that obey at once."""

    def __init__(self, tmp_path: Path, **states: MonitorState) -> None:
        self.states = dict(states)
        self.asked: list[tuple[str, str]] = []
        self.path = tmp_path / "ran"
        drained = "os.environ['VSRT_SCALING_DRAINED']"
        program = f"import os, sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + '|' + {drained})"
        self.orders = ScalingOrders(self.order, lambda: self.states, (sys.executable, "-c", program, str(self.path)))

    def order(self, order: Any, name: str) -> dict[str, Any]:
        is_drain = order is draining
        self.asked.append(("drain" if is_drain else "undrain", name))
        self.states[name] = state(drained=is_drain)
        return {"monitor": name}

    def does(self, advised: Advised, *spare: str) -> list[str]:
        return done(self.orders, advised, self.orders.chosen(advised, frozenset(spare)))

    def ran(self) -> str:
        return self.path.read_text() if self.path.exists() else ""


def change(monitors: int, wanted: int) -> Advised:
    known = Advised(7, 300, monitors, 0, 1, load=1.5, usage=0.5, lateness=0.01, scarcest="processor")
    return known._replace(wanted=wanted, wanted_pace=1, is_ordered=True)


def test_the_program_is_told_how_many_there_shall_be(tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, m1=state(divides=True), m2=state())
    assert ordered.does(change(2, 4)) == []
    assert (ordered.ran(), ordered.asked) == ("monitors 4|", [])


def test_a_monitor_that_was_drained_takes_its_part_again_before_one_is_started(tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, m1=state(divides=True), m2=state(), m3=state(drained=True))
    assert ordered.does(change(2, 3), "m3") == []
    assert (ordered.ran(), ordered.asked) == ("", [("undrain", "m3")])


def test_a_monitor_that_an_operator_drained_is_left_alone(tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, m1=state(divides=True), m2=state(), m3=state(drained=True))
    assert ordered.does(change(2, 3)) == []
    assert (ordered.ran(), ordered.asked) == ("monitors 3|", [])


def test_one_is_drained_before_the_program_ends_it_and_never_the_one_that_divides(tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, m1=state(), m2=state(), m3=state(divides=True))
    assert ordered.does(change(3, 2)) == []
    assert (ordered.ran(), ordered.asked) == ("monitors 2|m2", [("drain", "m2")])


class Reluctant(Ordered):
    """Orders over monitors of which those that are named refuse to be drained for so many times."""

    def __init__(self, tmp_path: Path, refusals: dict[str, int], **states: MonitorState) -> None:
        super().__init__(tmp_path, **states)
        self.refusals = refusals
        given = self.order, lambda: self.states, self.orders.command
        self.orders = ScalingOrders(*given, drain_limit_s=0.4, retry_s=0.01)

    def order(self, order: Any, name: str) -> dict[str, Any]:
        if order is draining and self.refusals.get(name, 0) > 0:
            self.refusals[name] -= 1
            return {"error": f"{name} is not drained.", "refused": True}
        return super().order(order, name)


def test_a_drain_that_fails_is_tried_again(tmp_path: Path) -> None:
    ordered = Reluctant(tmp_path, {"m2": 3}, m1=state(divides=True), m2=state(), m3=state())
    assert done(ordered.orders, change(3, 1), ["m3", "m2"]) == []
    assert ordered.asked == [("drain", "m3"), ("drain", "m2")], "no monitor is drained twice"
    assert ordered.ran() == "monitors 1|m3 m2"


def test_where_one_cannot_be_drained_all_have_their_part_again(tmp_path: Path) -> None:
    """Else some would stay drained that nobody ends, and no later advice would be about them."""
    ordered = Reluctant(tmp_path, {"m2": 1_000_000}, m1=state(divides=True), m2=state(), m3=state())
    assert done(ordered.orders, change(3, 1), ["m3", "m2"]) == ["m2 is not drained."]
    assert ordered.asked == [("drain", "m3"), ("undrain", "m3"), ("undrain", "m2")]
    assert not any(each.drained for each in ordered.states.values())
    assert ordered.ran() == ""


def test_one_that_keeps_its_switches_has_its_part_again(tmp_path: Path) -> None:
    ordered = Reluctant(tmp_path, {}, m1=state(divides=True), m2=state())
    stuck = dict(ordered.states)
    given = ordered.order, lambda: {**ordered.states, "m2": stuck["m2"]}, ("x",)
    orders = ScalingOrders(*given, drain_limit_s=0.2, retry_s=0.01)
    assert done(orders, change(2, 1), ["m2"]) == ["m2 still has switches 0.2 s after it was drained."]
    assert ordered.asked == [("drain", "m2"), ("undrain", "m2")]


def test_one_that_neither_is_drained_nor_has_its_part_again_is_said() -> None:
    silent = {"error": "The monitors' store does not answer.", "refused": True}
    states = {"m1": state(divides=True), "m2": state()}
    orders = ScalingOrders(lambda order, name: silent, lambda: states, ("x",), drain_limit_s=0.05, retry_s=0.01)
    assert done(orders, change(2, 1), ["m2"]) == [
        "The monitors' store does not answer.",
        "m2 may be drained still. The monitors' store does not answer.",
    ]


def test_without_a_program_no_monitor_is_started(tmp_path: Path) -> None:
    orders = ScalingOrders(lambda order, name: {}, lambda: {"m1": state(divides=True)}, ())
    assert done(orders, change(1, 2), []) == ["No program is named that starts monitors (scaling.command)."]
