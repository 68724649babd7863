"""Live normalcy of ports: events raised and cleared, what is kept, forgotten ports, and what is shown."""

from __future__ import annotations

import numpy as np
import pytest

from controller.anomaly.live_normalcy_core import (
    METRIC_COUNT,
    METRICS,
    NormalcyChanged,
    NormalcyCore,
    NormalcyTurned,
    PortsRolledUp,
    ports_rolled_up,
)
from controller.anomaly.live_normalcy_state import NormalcyState, all_changed, changes, restore
from controller.anomaly.live_normalcy_view import NormalcySections, sentence
from controller.anomaly.live_state import AnomalyStateError
from controller.config.anomaly_settings import Normalcy
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps
from controller.snapshot.events import EventRing, State

DAY_S = 240.0
SETTINGS = Normalcy(enabled=True, day_s=DAY_S, least_days=2, confirm_points=3, hold_off_points=4, forget_s=600)
PORTS = ((1, 1), (1, 2), (2**63, 7))


def rolled_up(at_s: float, scale: float = 1.0, ports=PORTS) -> PortsRolledUp:
    values = np.tile([1e6, 2e6, 1000.0, 2000.0, 0.0, np.nan], (len(ports), 1))
    values[0] *= scale
    return PortsRolledUp(ports, np.full(len(ports), at_s), values)


def taught(days: float = 4) -> tuple[NormalcyCore, float]:
    core = NormalcyCore(SETTINGS)
    for second in range(int(days * DAY_S)):
        assert core.handle(rolled_up(1000.0 + second)) == ()
    return core, 1000.0 + days * DAY_S


def seen(core: NormalcyCore, start_s: float, seconds: int, scale: float = 1.0) -> list[NormalcyTurned]:
    return [turned for second in range(seconds) for turned in core.handle(rolled_up(start_s + second, scale))]


def test_what_leaves_its_bounds_is_raised_once_and_cleared_when_it_is_inside_for_long_enough():
    core, now_s = taught()
    raised = seen(core, now_s, 6, 3.0)
    assert {(turned.state, turned.excess.key) for turned in raised} == {(State.RAISED, (1, 1))}
    assert [turned.excess.metric for turned in raised] == [metric.name for metric in METRICS[:4]]
    assert {turned.at_s for turned in raised} == {now_s + 2} and raised[0].excess.since_s == now_s - 1
    text = sentence(State.RAISED, raised[0].excess)
    assert text.startswith("Port 1:1 receives 3e+06 bytes a second; at this hour ") and "is normal for it." in text
    assert seen(core, now_s + 6, 3) == []
    cleared = seen(core, now_s + 9, 1)
    assert [turned.state for turned in cleared] == [State.CLEARED] * 4 and not core.open
    assert (
        sentence(State.CLEARED, cleared[0].excess) == "Port 1:1 is within its normal bounds again (rx_bytes_per_s)."
    )
    assert (core.tally["raised"], core.tally["cleared"]) == (4, 4)


def test_bounds_and_what_is_open_outlast_a_restart():
    core, now_s = taught()
    seen(core, now_s, 6, 3.0)
    all_changed(core)
    kept = changes(core, 2)
    assert len(kept.ports) == 2 and len(core.dirty) == 1
    kept = kept._replace(ports=kept.ports + changes(core, 2).ports)
    assert max(len(port.learnt) for port in kept.ports) <= 2048 * METRIC_COUNT
    again = NormalcyCore(SETTINGS)
    assert restore(again, kept) == 3
    assert again.open == core.open
    assert seen(again, now_s + 6, 2, 3.0) == []
    first = again.row((1, 1))
    assert again.bounds.score[first] == core.bounds.score[core.row((1, 1))]
    assert {turned.state for turned in seen(again, now_s + 8, 4)} == {State.CLEARED}
    assert restore(NormalcyCore(Normalcy(enabled=True)), kept) == 0, "days of another length"


@pytest.mark.parametrize("damage", ["short", "long", "number", "order", "open", "time"])
def test_damaged_state_is_refused_whole(damage: str):
    core, _ = taught(2.5)
    all_changed(core)
    kept = changes(core, 10)
    port = kept.ports[0]
    broken = {
        "short": port._replace(learnt=port.learnt[:-1]),
        "long": port._replace(learnt=port.learnt + b"\0"),
        "number": port._replace(learnt=b"\xff" * 4 + port.learnt[4:]),
        "order": port._replace(learnt=np.float32(1e9).tobytes() + port.learnt[4:]),
        "open": port._replace(opened='[["no_metric", 1, 1, 1, 1, 1]]'),
        "time": port._replace(newest_s=float("nan")),
    }[damage]
    fresh = NormalcyCore(SETTINGS)
    with pytest.raises(AnomalyStateError, match="1:1: "):
        restore(fresh, NormalcyState(kept.chain, (*kept.ports[1:], broken)))
    assert fresh.ports == []


def test_a_port_that_is_gone_is_forgotten_and_its_rows_begin_anew():
    core, now_s = taught(2.5)
    seen(core, now_s, 4, 9.0)
    assert core.open
    turned = []
    for second in range(620):
        turned += core.handle(rolled_up(now_s + 4 + second, ports=PORTS[1:]))
    assert {each.state for each in turned} == {State.CLEARED} and core.ports == [(1, 2), (2**63, 7)]
    assert changes(core, 10).forgotten == ((1, 1),)
    core.handle(rolled_up(now_s + 700, ports=((5, 5),)))
    assert core.row((5, 5)) == 0 and not core.bounds.days[:, :METRIC_COUNT].any()


def test_ports_beyond_the_limit_are_counted_and_other_days_begin_anew():
    core = NormalcyCore(Normalcy(enabled=True, day_s=DAY_S, ports=2))
    core.handle(rolled_up(1000.0))
    assert core.ports == [(1, 1), (1, 2)] and core.tally["ports-over-limit"] == 1
    core, now_s = taught()
    seen(core, now_s, 6, 3.0)
    turned = core.handle(NormalcyChanged(Normalcy(enabled=True, day_s=480)))
    assert {each.state for each in turned} == {State.CLEARED} and not core.bounds.days.any()
    assert core.tally["learnt-anew"] == 1


def test_series_are_streamed_when_their_scores_or_bounds_change_and_the_furthest_outside_come_first():
    core, now_s = taught()
    sections = NormalcySections(core, EventRing("anomaly"))
    sections.refresh()
    whole = sections.series.changes(0, 1000)
    assert len(whole["put"]) == len(PORTS) * METRIC_COUNT
    quiet = seen(core, now_s, 1)
    sections.refresh()
    calm = sections.series.changes(whole["version"], 1000)
    assert quiet == []
    seen(core, now_s + 1, 1, 3.0)
    sections.refresh()
    told = sections.series.changes(calm["version"], 1000)
    assert {name for name, each in told["put"].items() if each["score"]} == {
        f"1:1:{metric.name}" for metric in METRICS[:4]
    }
    answer = sections.answer(None)
    assert [each["port_no"] for each in answer["series"][:4]] == [1] * 4 and answer["series"][0]["score"] > 0.2
    unknown = next(each for each in answer["series"] if each["metric"] == "dropped_per_s")
    assert (unknown["value"], unknown["score"], unknown["learnt_pct"]) == (None, None, 0.0)
    assert len(sections.answer((1, 2))["series"]) == METRIC_COUNT


def test_roll_ups_of_which_little_is_known_are_left_out():
    ports = PortRows(8)
    rows = [added.row for number in (1, 2) if (added := ports.add(3, number, f"p{number}", 1e9)) is not None]
    mean = np.arange(24, dtype=float).reshape(2, 12)
    mean[0, 4] = np.nan
    rollups = RollUps(
        60, np.array(rows, np.int32), np.array([120.0, 120.0]), mean, mean, mean, mean, np.ones(2, np.uint32),
        np.array([60.0, 29.0]),
    )  # fmt: skip
    found = ports_rolled_up(rollups, ports)
    assert found.ports == ((3, 1),) and found.at_s.tolist() == [180.0]
    assert found.values.tolist() == [[2.0, 3.0, 0.0, 1.0, 13.0, 5.0]]
