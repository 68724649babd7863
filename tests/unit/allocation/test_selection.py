"""Selection: redundancy before usage, rounds, affinity, ports allocated before, and both modes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.allocation.candidates import Candidates, Mode
from controller.allocation.fields import RequestError
from controller.allocation.request import answer, explain, read_request
from controller.allocation.selection import Carried, TooFewPortsError, Wish, select


def port(name: str, usage: float | None = 0, connected: bool = True, volumes: float = 0, **components: str | None):
    return {"id": name, "usage": usage, "connected": connected, "volumes": volumes, "components": components}


def chosen(ports: list[dict[str, Any]], count: int, levels: str = "pod", **more: Any) -> list[str]:
    request = read_request({"levels": levels.split(), "ports": ports, "count": count, **more})
    return list(select(*request).ports)


PODS = [
    port("a1", 1, pod="a"),
    port("a2", 2, pod="a"),
    port("b1", 3, pod="b"),
    port("b2", 4, pod="b"),
    port("c1", 5, pod="c"),
    port("c2", 6, pod="c"),
]


def test_the_first_is_the_least_used_and_the_next_are_elsewhere():
    assert chosen(PODS, 3) == ["a1", "b1", "c1"]


def test_each_round_visits_every_entity_once():
    assert chosen(PODS, 6) == ["a1", "b1", "c1", "a2", "b2", "c2"]


def test_a_round_does_not_begin_where_the_last_one_ended():
    ports = [port("a1", 5, pod="a"), port("a2", 6, pod="a"), port("b1", 1, pod="b"), port("b2", 2, pod="b")]
    ports[0]["usage"] = 0
    assert chosen(ports, 3) == ["a1", "b1", "a2"]
    assert chosen(ports, 3, mode="vipr") == ["a1", "b1", "b2"]


def test_an_entity_whose_ports_are_all_taken_does_not_hold_a_round_up():
    ports = [port("a1", 0, pod="a"), port("b1", 1, pod="b"), port("b2", 2, pod="b"), port("b3", 3, pod="b")]
    assert chosen(ports, 4) == ["a1", "b1", "b2", "b3"]


def test_entities_of_ports_not_connected_count_in_mode_vipr_only():
    ports = [
        port("a1", 0, pod="a", switch="a1"),
        port("a2", 1, pod="a", switch="a2"),
        port("b1", 2, pod="b", switch="b1"),
        port("b2", 9, pod="b", switch="b2"),
        port("x", 0, connected=False, pod="x", switch="x"),
    ]
    steps = {
        mode: select(*read_request({"levels": ["pod"], "ports": ports, "count": 3, "mode": mode})).steps
        for mode in ("default", "vipr")
    }
    assert "new round" in steps["default"][2].filters[0].reason
    assert "no filter" in steps["vipr"][2].filters[0].reason
    assert "new round" not in steps["vipr"][2].filters[0].reason


def test_levels_are_looked_at_in_their_order():
    ports = [
        port("p", 0, plane="1", pod="x"),
        port("q", 1, plane="1", pod="y"),
        port("r", 9, plane="2", pod="x"),
    ]
    assert chosen(ports, 2, "plane pod") == ["p", "r"]
    assert chosen(ports, 2, "pod plane") == ["p", "q"]


def test_a_missing_or_null_component_does_not_filter():
    ports = [port("a1", 0, pod="a"), port("a2", 1, pod="a"), port("n", 0.5), port("b", 9, pod="b")]
    assert chosen(ports, 2) == ["a1", "n"]
    ports[2]["components"] = {"pod": None}
    assert chosen(ports, 2) == ["a1", "n"]
    assert chosen(ports, 2, mode="vipr") == ["a1", "b"]


def test_a_level_that_no_port_has_is_told():
    request = read_request({"levels": ["plane", "pod"], "ports": PODS, "count": 1})
    assert select(*request).steps[0].filters[0].reason == "no port has one"
    assert chosen(PODS, 2, "") == ["a1", "a2"]


def test_ports_without_metrics_come_last_and_by_volumes():
    ports = [port("x", None, volumes=3), port("y", None, volumes=2), port("z", 99, volumes=500)]
    assert chosen(ports, 3, "") == ["z", "y", "x"]


def test_in_mode_vipr_one_port_without_metrics_puts_all_back_to_volumes():
    ports = [port("x", 1, volumes=30), port("y", None, volumes=20), port("z", 99, volumes=5)]
    assert chosen(ports, 3, "", mode="vipr") == ["z", "y", "x"]


def test_ties_are_taken_in_input_order_and_told():
    request = read_request({"levels": [], "ports": [port("b", 1), port("a", 1), port("c", 2)], "count": 1})
    (step,) = answer(request.candidates, select(*request))["steps"]
    assert (step["chosen"], step["tied"]) == ("b", ["b", "a"])
    assert "input order" in step["reason"]


def test_ports_allocated_before_come_first_count_and_mark():
    assert chosen(PODS, 3, previously_allocated=["a2"]) == ["a2", "b1", "c1"]
    assert chosen(PODS, 1, previously_allocated=["c1", "a1"]) == ["c1", "a1"]


def test_used_entities_are_avoided_and_handed_on():
    request = read_request({"levels": ["pod"], "ports": PODS, "count": 1, "used": {"pod": ["a", "elsewhere"]}})
    found = select(*request)
    assert found.ports == ("b1",)
    assert set(found.carried.used["pod"]) == {"a", "b", "elsewhere"}


def test_affinity_prefers_entities_while_their_budget_lasts():
    ports = [
        port("m", 0, san="s1"),
        port("n", 1, san="s1"),
        port("o", 8, san="s2"),
        port("p", 9, san="s2"),
    ]
    affinity = {"level": "san", "budget": {"s2": 2}}
    assert chosen(ports, 3, "san", affinity=affinity) == ["o", "p", "m"]
    assert chosen(ports, 2, "san", affinity={"level": "san", "budget": {"s2": 1}}) == ["o", "m"]


def test_too_few_ports():
    with pytest.raises(TooFewPortsError) as caught:
        chosen([*PODS, port("x", connected=False)], 7)
    assert (caught.value.requested, caught.value.allocated, caught.value.available) == (7, 6, 6)
    assert len(chosen(PODS, 7, allow_fewer=True)) == 6


def test_every_pick_carries_its_candidates_after_each_level():
    request = read_request({"levels": ["pod"], "ports": PODS, "count": 2})
    document = answer(request.candidates, select(*request))
    assert document["steps"][1]["candidates"] == {"pod": ["b1", "b2", "c1", "c2"]}
    assert document["steps"][1]["counts"] == {"pod": 4}


@pytest.mark.parametrize(
    ("name", "verdict", "level", "words"),
    [
        ("a2", "not taken", "pod", "pod a left out"),
        ("c2", "not taken", None, "usage 6 %"),
        ("a1", "taken at pick 1", None, ""),
        ("x", "not connected", None, ""),
    ],
)
def test_why_a_port_was_not_taken(name: str, verdict: str, level: str | None, words: str):
    ports = [*PODS, port("x", connected=False)]
    request = read_request({"levels": ["pod"], "ports": ports, "count": 2})
    found, passed = explain(request.candidates, select(*request), request.wish, name)
    assert found.startswith(verdict)
    if words:
        assert passed[-1].level == level
        assert words in passed[-1].reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"network": "g"}, "in network g"),
        ({"virtual_arrays": ["v2"]}, "not in virtual array v1"),
        ({"status": "BAD"}, "status BAD"),
        ({"registered": False}, "not registered"),
        ({"front_end": False}, "not a front-end port"),
        ({"disqualified": True}, "over a ceiling"),
    ],
)
def test_ports_that_are_no_candidates_are_left_out_and_told(fields: dict[str, Any], reason: str):
    best = {**port("best", 0, pod="z"), **fields}
    document = {"levels": ["pod"], "ports": [best, *PODS], "count": 4, "network": "f", "virtual_array": "v1"}
    request = read_request(document)
    found = select(*request)
    assert "best" not in found.ports
    assert answer(request.candidates, found)["excluded"] == [{"id": "best", "reason": reason}]
    assert explain(request.candidates, found, request.wish, "best") == (f"no candidate: {reason}", [])
    before = read_request({**document, "previously_allocated": ["best"]})
    assert select(*before).ports[0] == "best"
    assert explain(before.candidates, select(*before), before.wish, "best") == ("allocated before this request", [])


def test_a_port_over_a_ceiling_is_told_whatever_else_is_known_of_it():
    ports = [{"id": "full", "usage": 0, "disqualified": True}, {"id": "free", "usage": 9}]
    assert chosen(ports, 1, "") == ["free"]


def test_ports_in_the_network_and_virtual_array_asked_for_are_candidates():
    best = {**port("best", 0), "network": "f", "virtual_arrays": ["v1", "v2"], "status": "UNKNOWN"}
    assert chosen([best, *PODS], 1, network="f", virtual_array="v1") == ["best"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": "2"}, "count"),
        ({"levels": ["pod", "rack", "pod"]}, "levels[2]"),
        ({"ports": [{"id": "a", "usage": 1, "components": {"pod": []}}]}, "ports[0].components.pod"),
        ({"levels": None}, "levels"),
        ({"mode": "fast"}, "mode"),
        ({"extra": 1}, "request.extra"),
        ({"ports": [port("a"), port("a")]}, "ports[1].id"),
        ({"ports": [{"id": "a"}]}, "ports[0].usage"),
        ({"ports": [port("a", -1)]}, "ports[0].usage"),
        ({"ports": [port("a", float("nan"))]}, "ports[0].usage"),
        ({"previously_allocated": ["a1", "zz"]}, "previously_allocated[1]"),
        ({"used": {"rack": []}}, "used.rack"),
        ({"affinity": {"level": "rack", "budget": {}}}, "affinity.level"),
        ({"affinity": {"level": "pod", "budget": {"a": -1}}}, "affinity.budget.a"),
    ],
)
def test_a_faulty_request_names_the_field(change: dict[str, Any], field: str):
    with pytest.raises(RequestError) as caught:
        read_request({"levels": ["pod"], "ports": PODS, "count": 1, **change})
    assert str(caught.value).startswith(f"{field}:")


LEVELS = ("plane", "pod", "switch")
PORTS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 3), st.integers(0, 2), st.integers(0, 4), st.booleans()),
    min_size=1,
    max_size=12,
)


def candidates(rows: list[tuple[int, int, int, int, bool]], order: list[int] | None = None) -> Candidates:
    """Ports with unlike usage where `order` is given, so that input order decides nothing."""
    order = list(range(len(rows))) if order is None else order
    return Candidates(
        [f"p{index}" for index in order],
        np.array([rows[index][0] + index / 100 for index in order], np.float64),
        np.zeros(len(rows)),
        np.array([rows[index][4] for index in order], np.bool_),
        {level: [f"{level}{rows[index][1 + place]}" for index in order] for place, level in enumerate(LEVELS)},
    )


@given(PORTS, st.integers(1, 12), st.sampled_from(Mode), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing_but_ties(rows: Any, count: int, mode: Mode, random: Any):
    order = list(range(len(rows)))
    random.shuffle(order)
    wish = Wish(count, allow_fewer=True, mode=mode)
    assert select(candidates(rows), wish).ports == select(candidates(rows, order), wish).ports


@given(PORTS, st.integers(1, 12), st.integers(0, 11), st.floats(0, 50))
def test_more_usage_never_makes_a_port_be_taken_earlier(rows: Any, count: int, which: int, more: float):
    """Among equals in redundancy: where the picks before it are the same, a busier port is not taken sooner."""
    which %= len(rows)
    before = candidates(rows)
    after = candidates(rows)
    after.usage_pct[which] += more
    wish = Wish(count, allow_fewer=True)
    first, second = select(before, wish).ports, select(after, wish).ports
    name = f"p{which}"
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=True)))
    if name in second and second.index(name) == same:
        assert name in first[: same + 1]


@given(PORTS, st.integers(1, 6))
def test_no_other_choice_covers_more_failure_domains_of_the_highest_level(rows: Any, count: int):
    connected = [row for row in rows if row[4]]
    found = select(candidates(rows), Wish(count, allow_fewer=True)).ports
    covered = {rows[int(name[1:])][1] for name in found}
    best = max(
        (len({row[1] for row in choice}) for choice in itertools.combinations(connected, min(count, len(connected)))),
        default=0,
    )
    assert len(covered) == best


@given(PORTS, st.integers(1, 12))
def test_rounds_keep_entities_of_the_highest_level_within_one(rows: Any, count: int):
    rows = [(usage, plane, pod, switch, True) for usage, plane, pod, switch, _ in rows]
    found = select(candidates(rows), Wish(count, allow_fewer=True)).ports
    taken = {plane: 0 for _, plane, *_ in rows}
    size = dict(taken)
    for _, plane, *_ in rows:
        size[plane] += 1
    for name in found:
        taken[rows[int(name[1:])][1]] += 1
    most = max(taken.values())
    assert all(most - 1 <= taken[plane] or taken[plane] == size[plane] for plane in taken)


def test_a_new_round_remembers_the_one_used_last_across_networks():
    first = read_request({"levels": ["pod"], "ports": PODS, "count": 3})
    carried = select(*first).carried
    again = select(first.candidates, Wish(1, carried=carried))
    assert carried.last == {"pod": "c"}
    assert again.ports == ("a1",)
    busy_elsewhere = read_request(
        {"levels": ["pod"], "ports": [port("c9", 0, pod="c"), port("a9", 9, pod="a")], "count": 1}
    )
    assert select(busy_elsewhere.candidates, Wish(1, carried=carried)).ports == ("a9",)
    assert select(busy_elsewhere.candidates, Wish(1, carried=Carried(carried.used))).ports == ("c9",)
