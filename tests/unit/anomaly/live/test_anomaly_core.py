from __future__ import annotations

from copy import deepcopy
from functools import cache

import pytest

from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import WHOLE_SWITCH, AnomalyChanged, MemberKey, OpenAnomaly, RetrainAsked
from controller.anomaly.live_faults import FaultReporter
from controller.anomaly.live_members import member_name
from controller.anomaly.live_state import all_changed, changes, restore
from controller.anomaly.live_view import AnomalySections
from controller.config.anomaly_settings import Anomaly
from controller.snapshot.events import State
from sampled_fabric import EDGE_PORT, START_S, SampledFabric
from topology.events import LinkDown, LinkUp

QUICK = Anomaly(
    interval_s=1,
    smoothing_samples=4,
    window_samples=12,
    shift_samples=4,
    confirm_windows=2,
    learning_windows=15,
    least_windows=6,
    newcomer_windows=10,
    hold_off_windows=3,
)
LEARNT_S = 100.0


def watched(fabric: SampledFabric, settings: Anomaly = QUICK) -> AnomalyCore:
    core = AnomalyCore(settings, fabric.poll_s)
    for event in fabric.events():
        core.handle(event, 0.0)
    return core


@cache
def _learnt_once() -> tuple[SampledFabric, AnomalyCore]:
    fabric = SampledFabric()
    core = watched(fabric)
    fabric.feed(core, LEARNT_S)
    return fabric, core


def after_learning() -> tuple[SampledFabric, AnomalyCore]:
    """The usual fabric and a core that has watched it for `LEARNT_S`, its own copies for each test."""
    return deepcopy(_learnt_once())


def opened(key: MemberKey, verdict: str, score: float) -> OpenAnomaly:
    return OpenAnomaly(key, member_name(key), "peers", "metric", 0.0, score, verdict, "It is unlike them.")


def raised(effects: list) -> set[str]:
    return {effect.anomaly.member for effect in effects if effect.state is State.RAISED}


def of_ports(effects: list) -> list:
    return [effect for effect in effects if effect.anomaly.key[1] != WHOLE_SWITCH]


def test_a_calm_fabric_raises_nothing():
    fabric = SampledFabric()
    core = watched(fabric)
    assert fabric.feed(core, 400) == []
    assert core.tally["windows"] > 1000
    assert core.open == {}


def test_the_port_whose_cable_loses_packets_is_named_and_cleared_when_it_loses_none():
    fabric, core = after_learning()
    fabric.lossy[2, 1] = 0.1
    effects = fabric.feed(core, 40)
    assert raised(effects) == {"2:1"}
    (anomaly,) = core.open.values()
    assert (anomaly.metric, anomaly.verdict, anomaly.peer_group) == ("lost_pct", "component fault", "tor uplinks")
    assert START_S + LEARNT_S <= anomaly.since_s <= START_S + LEARNT_S + 20
    assert anomaly.score > 5
    fabric.lossy.clear()
    effects = fabric.feed(core, 60)
    assert [(effect.state, effect.anomaly.member) for effect in effects] == [(State.CLEARED, "2:1")]
    assert core.open == {}


def test_a_cable_that_always_lost_packets_is_named_too():
    fabric = SampledFabric()
    fabric.lossy[103 - 2, 3] = 0.1
    core = watched(fabric)
    assert raised(fabric.feed(core, 200)) == {"101:3"}


def test_errors_are_a_fault_and_load_is_a_difference():
    fabric, core = after_learning()
    fabric.errors_per_s[3, 2] = 5.0
    fabric.extra_pps[1, 2] = 200_000.0
    fabric.feed(core, 40)
    verdicts = {anomaly.member: (anomaly.metric, anomaly.verdict) for anomaly in core.open.values()}
    assert verdicts["3:2"] == ("errors_per_s", "component fault")
    assert verdicts["1:2"] == ("tx_utilisation_pct", "load difference")


def test_both_ends_of_a_cable_are_told_as_one_fault():
    fabric, core = after_learning()
    fabric.extra_pps[1, 2] = 200_000.0
    (turned,) = of_ports(fabric.feed(core, 40))
    assert set(core.open) >= {(1, 2), (102, 1)}
    main = turned.anomaly
    (part,) = {(1, 2), (102, 1)} - {main.key}
    assert (turned.anomaly.key, main.other_end, core.open[part].part_of) == (
        main.key,
        f"{part[0]}:{part[1]}",
        main.member,
    )
    sections = AnomalySections(core)
    sections.turned([turned])
    (shown,) = (found for found in sections.document()["anomalies"] if found["port_no"] is not None)
    assert (shown["member"], shown["other_end"]) == (main.member, f"{part[0]}:{part[1]}")
    assert shown["text"].endswith(f" The other end of its cable, {part[0]}:{part[1]}, is unlike its peers too.")
    fabric.extra_pps.clear()
    effects = of_ports(fabric.feed(core, 60))
    assert [(one.state, one.anomaly.key) for one in effects] == [(State.CLEARED, main.key)]
    assert core.open == core.faults.told == {}


def test_a_faulty_component_at_the_other_end_of_what_was_told_is_told_too():
    fabric, core = after_learning()
    fabric.extra_pps[1, 2] = 200_000.0
    fabric.feed(core, 40)
    (main,) = core.faults.told.keys() & {(1, 2), (102, 1)}
    (part,) = {(1, 2), (102, 1)} - {main}
    fabric.errors_per_s[part] = 50.0
    (turned,) = fabric.feed(core, 40)
    assert (turned.state, turned.anomaly.key, turned.anomaly.verdict) == (State.RAISED, part, "component fault")
    ranked = [shown["member"] for shown in AnomalySections(core).document()["anomalies"]]
    assert ranked[0] == f"{part[0]}:{part[1]}"
    assert f"{main[0]}:{main[1]}" in ranked


def test_who_fell_silent_comes_before_those_that_took_over_its_traffic():
    fabric = SampledFabric(leaves=4, spines=4, pps=20_000.0)
    core = watched(fabric)
    fabric.feed(core, LEARNT_S)
    fabric.extra_pps[1, 1] = fabric.extra_pps[101, 1] = -20_000.0
    for spine in (2, 3):
        fabric.extra_pps[1, spine] = fabric.extra_pps[100 + spine, 1] = 40_000.0
    effects = fabric.feed(core, 40)
    shown = AnomalySections(core).document()["anomalies"]
    assert {effect.anomaly.member for effect in effects} == {found["member"] for found in shown}
    assert [found["rank"] for found in shown] == list(range(1, len(shown) + 1))
    ends = [{found["member"], found["other_end"]} for found in shown if found["port_no"] is not None]
    assert ends[0] == {"1:1", "101:1"} and shown[0]["member"] in ends[0]
    assert {"1:2", "102:1"} in ends and {"1:3", "103:1"} in ends and len(ends) == 3
    assert shown[0]["score"] < shown[1]["score"]


def silenced(fabric: SampledFabric, pps: float, *cables: tuple[int, int]) -> None:
    """Have the cables between a leaf and a spine carry no more than `pps`."""
    for leaf, spine in cables:
        for key in ((leaf, spine), (100 + spine, leaf)):
            fabric.extra_pps[key] = pps - fabric.pps


@pytest.mark.parametrize(("left_pps", "told"), [(0.0, True), (50.0, True), (200.0, False)])
def test_a_cable_that_carries_less_than_a_tenth_of_its_usual_is_told_once_as_silent(left_pps: float, told: bool):
    fabric, core = after_learning()
    silenced(fabric, left_pps, (2, 1))
    effects = of_ports(fabric.feed(core, 40))
    if not told:
        assert effects == []
        return
    (anomaly,) = (effect.anomaly for effect in effects)
    assert {anomaly.member, anomaly.other_end} == {"2:1", "101:2"}
    assert (anomaly.metric, anomaly.verdict, anomaly.is_silent) == ("silent_pct", "load difference", True)
    assert "fell silent: it carries " in anomaly.text
    fabric.extra_pps.clear()
    assert [effect.state for effect in of_ports(fabric.feed(core, 60))] == [State.CLEARED]


def test_where_all_cables_fall_silent_none_is_told():
    fabric, core = after_learning()
    silenced(fabric, 10.0, *((leaf, spine) for leaf in fabric.leaves for spine in (1, 2)))
    assert fabric.feed(core, 60) == []


def test_a_cable_that_was_silent_again_and_again_while_it_was_learnt_is_not_told():
    fabric = SampledFabric()
    core = watched(fabric)
    for second in range(int(LEARNT_S)):
        fabric.extra_pps.clear()
        if second % 40 < 20:
            silenced(fabric, 0.0, (2, 1))
        assert fabric.feed(core, 1) == []
    silenced(fabric, 0.0, (2, 1))
    assert fabric.feed(core, 40) == []


def test_of_two_peers_the_one_that_goes_on_is_not_told():
    fabric = SampledFabric(leaves=2, spines=1)
    core = watched(fabric)
    fabric.feed(core, LEARNT_S)
    silenced(fabric, 0.0, (2, 1))
    (told,) = of_ports(fabric.feed(core, 40))
    assert told.anomaly.member in {"2:1", "101:2"}
    assert not core.open.keys() & {(1, 1), (101, 1)}


def test_what_a_cable_usually_carries_is_kept_over_a_restart():
    fabric, core = after_learning()
    all_changed(core)
    again = watched(fabric)
    restore(again, changes(core, 1000))
    silenced(fabric, 0.0, (2, 1))
    (told,) = of_ports(fabric.feed(again, 40))
    assert told.anomaly.metric == "silent_pct"


def test_a_switch_that_only_carries_more_is_told_with_its_port():
    faults, key = FaultReporter(), (1, 2)
    ports = {key: opened(key, "load difference", 3.0)}
    assert [one.anomaly.key for one in faults.settle(dict(ports), {}, 0.0)] == [key]
    both = {**ports, (1, WHOLE_SWITCH): opened((1, WHOLE_SWITCH), "load difference", 9.0)}
    assert faults.settle(both, {}, 1.0) == []
    assert both[1, WHOLE_SWITCH].part_of == "1:2"
    alone = {(1, WHOLE_SWITCH): both[1, WHOLE_SWITCH]}
    told = [(one.state, one.anomaly.member) for one in faults.settle(alone, {}, 2.0)]
    assert told == [(State.CLEARED, "1:2"), (State.RAISED, "switch 1")]
    broken = {**ports, (1, WHOLE_SWITCH): opened((1, WHOLE_SWITCH), "component fault", 2.0)}
    assert [one.anomaly.key for one in FaultReporter().settle(broken, {}, 0.0)] == [key, (1, WHOLE_SWITCH)]


def test_a_switch_is_compared_by_its_cpu():
    fabric = SampledFabric(leaves=6)
    fabric.cpu_pct = dict.fromkeys(fabric.leaves, 20.0)
    core = watched(fabric)
    fabric.feed(core, LEARNT_S)
    fabric.cpu_pct[4] = 90.0
    assert raised(fabric.feed(core, 40)) == {"switch 4"}
    assert core.open[4, WHOLE_SWITCH].verdict == "component fault"


def test_bursts_that_the_two_ends_of_a_cable_see_at_different_times_are_no_loss():
    fabric = SampledFabric(poll_s=2.0)
    core = watched(fabric, QUICK)
    for second in range(120):
        fabric.extra_pps[2, 1] = 5000.0 if second % 10 < 3 else 0.0
        assert [one for one in fabric.feed(core, 2) if one.anomaly.metric == "lost_pct"] == []


@cache
def _almost_idle_once() -> tuple[SampledFabric, AnomalyCore]:
    fabric = SampledFabric(leaves=3, pps=2.0)
    core = watched(fabric)
    fabric.feed(core, 60.0)
    return fabric, core


@pytest.mark.parametrize("late", [101, 2])
@pytest.mark.parametrize("polls", [1, 3, 5, 7, 9])
def test_a_burst_on_an_almost_idle_cable_that_one_end_counts_late_is_no_loss(polls: int, late: int):
    fabric, core = deepcopy(_almost_idle_once())
    found = []
    for _ in range(4):
        fabric.extra_pps[2, 1] = 80.0
        fabric.late = {late}
        found += fabric.feed(core, 1)
        fabric.extra_pps.clear()
        found += fabric.feed(core, polls - 1)
        fabric.late.clear()
        found += fabric.feed(core, 7)
    assert [one.anomaly.text for one in found if one.anomaly.metric == "lost_pct"] == []


def test_what_a_cable_loses_is_told_though_one_end_is_often_polled_late():
    fabric, core = after_learning()
    fabric.lossy[2, 1] = 0.1
    found = []
    for _ in range(8):
        fabric.late = {101}
        found += fabric.feed(core, 3)
        fabric.late.clear()
        found += fabric.feed(core, 5)
    assert "2:1" in raised(found)


def test_a_switch_that_falls_silent_is_unknown_and_not_anomalous():
    fabric, core = after_learning()
    fabric.silent = {2}
    assert fabric.feed(core, 60) == []
    fabric.silent = set()
    assert fabric.feed(core, 100) == []


def test_an_open_anomaly_of_a_member_that_is_gone_is_cleared_when_it_is_forgotten():
    fabric = SampledFabric()
    settings = Anomaly(**{**{name: getattr(QUICK, name) for name in QUICK.__slots__}, "forget_s": 60})
    core = watched(fabric, settings)
    fabric.feed(core, LEARNT_S)
    fabric.lossy[2, 1] = 0.1
    assert raised(fabric.feed(core, 30)) == {"2:1"}
    fabric.silent = {2}
    assert [one.state for one in fabric.feed(core, 40)] == []
    assert [one.state for one in fabric.feed(core, 60)] == [State.CLEARED]
    assert core.members.row((2, 1)) == -1
    assert core.tally["forgotten"] == 4


def test_members_that_come_later_are_compared_among_themselves_until_they_have_been_there_long_enough():
    fabric = SampledFabric(leaves=6)
    fabric.silent = {5, 6}
    core = watched(fabric)
    fabric.feed(core, LEARNT_S)
    fabric.silent = set()
    fabric.feed(core, 30)
    assert core.group_of(core.members.row((5, 1))) == "new in tor uplinks"
    fabric.feed(core, 60)
    assert core.group_of(core.members.row((5, 1))) == "tor uplinks"
    assert core.open == {}


def test_one_member_alone_is_compared_with_its_own_past():
    fabric = SampledFabric(leaves=1, spines=1)
    core = watched(fabric)
    fabric.feed(core, LEARNT_S)
    fabric.lossy[1, 1] = 0.3
    assert "1:1" in raised(fabric.feed(core, 40))
    assert core.open[1, 1].verdict == "component fault"


def test_a_silent_fabric_of_constant_series_raises_nothing():
    fabric = SampledFabric(pps=0.0)
    core = watched(fabric)
    assert fabric.feed(core, 200) == []


def test_a_clock_that_is_set_begins_windows_anew_and_forgets_no_threshold():
    fabric, core = after_learning()
    learnt = core.learning.windows.sum()
    fabric.now_s -= 86400
    assert fabric.feed(core, 60) == []
    assert core.tally["clock-steps"] == 1
    assert core.learning.windows.sum() >= learnt


def test_members_beyond_the_bound_are_refused_and_counted():
    fabric = SampledFabric()
    settings = Anomaly(**{**{name: getattr(QUICK, name) for name in QUICK.__slots__}, "members": 5})
    core = watched(fabric, settings)
    fabric.feed(core, 30)
    assert len(core.members) == 5
    assert core.tally["members-over-limit"] > 0


def test_retraining_learns_anew():
    _, core = after_learning()
    core.handle(RetrainAsked("tor uplinks"), 0.0)
    uplinks, edges = core.members.row((1, 1)), core.members.row((1, EDGE_PORT))
    assert core.learning.windows[uplinks].max() == 0
    assert core.learning.windows[edges].max() > 0


@pytest.mark.parametrize(("change", "kept"), [({"margin": 2.0}, True), ({"window_samples": 10}, False)])
def test_settings_of_another_chain_have_thresholds_learnt_anew(change: dict, kept: bool):
    fabric, core = after_learning()
    settings = Anomaly(**{**{name: getattr(QUICK, name) for name in QUICK.__slots__}, **change})
    core.handle(AnomalyChanged(settings, fabric.poll_s), 0.0)
    assert (core.learning.windows.max() > 0) == kept
    assert fabric.feed(core, 120) == []


def test_a_cable_that_is_pulled_and_put_back_is_no_loss():
    fabric, core = after_learning()
    core.handle(LinkDown(2, 1, 101, 2), 0.0)
    fabric.feed(core, 20)
    core.handle(LinkUp(2, 1, 101, 2, 1e9), 0.0)
    fabric.feed(core, 60)
    assert core.open == {}


def test_what_is_shown_names_groups_anomalies_and_the_persistent():
    fabric = SampledFabric()
    core = watched(fabric)
    sections = AnomalySections(core)
    fabric.feed(core, LEARNT_S)
    fabric.lossy[2, 1] = 0.1
    sections.turned(fabric.feed(core, 40))
    sections.refresh()
    document = sections.document()
    assert [found["member"] for found in document["anomalies"]] == ["2:1"]
    assert " % are lost on the cable; of its " in document["anomalies"][0]["text"]
    assert document["persistent"][-1]["ranking"][0]["member"] == "2:1"
    groups = {found["peer_group"]: found["members"] for found in document["peer_groups"]}
    assert groups == {
        "tor uplinks": 8,
        "aggregation downlinks": 8,
        "tor edge ports": 4,
        "tor switches": 4,
        "aggregation switches": 2,
    }
    put = sections.by_name()["ports"].changes(0, 100)["put"]
    assert put["2:1"]["verdict"] == "component fault" and put["2:1"]["score"] > 1
    assert put["3:1"]["verdict"] is None
    (event,) = sections.by_name()["events"].changes(0, 10)["put"].values()
    assert (event["state"], event["dpid"], event["port_no"], event["severity"]) == ("raised", 2, 1, "warning")
    assert set(sections.by_name()["anomalies"].changes(0, 10)["put"]) == {"2:1"}
