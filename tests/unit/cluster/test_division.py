"""Who polls which switch, by what monitors are connected to."""

from __future__ import annotations

import random

import pytest

from controller.cluster.division import IMBALANCE, divide


def totals(loads: dict[str, dict[int, float]], division: dict[int, str]) -> dict[str, float]:
    found = dict.fromkeys(loads, 0.0)
    for dpid, owner in division.items():
        found[owner] += loads[owner][dpid]
    return found


def drawn(seed: int, switches: int, monitors: int, each: int) -> dict[str, dict[int, float]]:
    """Monitors that are connected to some of the switches: every switch to so many of them."""
    chance = random.Random(seed)
    loads: dict[str, dict[int, float]] = {f"m{number}": {} for number in range(monitors)}
    for dpid in range(1, switches + 1):
        load = float(chance.choice((24, 48, 48, 96, 384)))
        for name in chance.sample(sorted(loads), each):
            loads[name][dpid] = load
    return loads


def test_without_monitors_nobody_has_anything():
    assert divide({}, {1: "gone"}) == {}
    assert divide({"a": {}}, {1: "a"}) == {}


def test_orphans_go_to_the_least_loaded_the_largest_first():
    loads = {name: {1: 100.0, 2: 60.0, 3: 50.0, 4: 10.0} for name in "ab"}
    assert divide(loads, {}) == {1: "a", 2: "b", 3: "b", 4: "a"}


def test_only_who_is_connected_has_a_switch():
    loads = {"a": {1: 10.0, 2: 10.0}, "b": {3: 10.0}}
    assert divide(loads, {1: "b", 3: "a"}) == {1: "a", 2: "a", 3: "b"}


def test_what_stands_is_kept_up_to_five_per_cent_of_imbalance():
    loads = {name: dict.fromkeys(range(40), 1.0) for name in "ab"}
    owners = {dpid: "a" if dpid < 21 else "b" for dpid in range(40)}
    assert divide(loads, owners) == owners
    owners = {dpid: "a" if dpid < 24 else "b" for dpid in range(40)}
    division = divide(loads, owners)
    assert sum(division[dpid] != owners[dpid] for dpid in owners) == 3


def test_of_those_that_a_dead_monitor_had_no_other_moves():
    loads = drawn(1, 1000, 10, 10)
    owners = divide(loads, {})
    del loads["m3"]
    division = divide(loads, owners)
    moved = {dpid for dpid in owners if division[dpid] != owners[dpid]}
    assert moved == {dpid for dpid, owner in owners.items() if owner == "m3"}


def test_a_monitor_that_comes_gets_its_part():
    loads = drawn(1, 1000, 10, 10)
    former = {name: switches for name, switches in loads.items() if name != "m3"}
    division = divide(loads, divide(former, {}))
    found = totals(loads, division)
    mean = sum(found.values()) / len(found)
    assert all(abs(total / mean - 1) <= IMBALANCE for total in found.values())


def test_who_is_left_without_switches_keeps_those_that_no_other_can_poll():
    loads = {"a": {1: 10.0, 2: 10.0}, "b": {2: 10.0}}
    owners = {1: "a", 2: "a"}
    assert divide(loads, owners, {"a"}) == {1: "a", 2: "b"}
    assert divide(loads, owners, {"a", "b"}) == owners


@pytest.mark.parametrize("seed", range(30))
def test_a_division_stands_until_something_changes(seed: int):
    chance = random.Random(seed)
    loads = drawn(seed, chance.randrange(1, 60), chance.randrange(3, 8), 3)
    reserve = set(chance.sample(sorted(loads), chance.randrange(0, 3)))
    owners = {dpid: chance.choice(sorted(loads)) for dpid in range(1, 60, 2)}
    division = divide(loads, owners, reserve)
    assert division.keys() == {dpid for switches in loads.values() for dpid in switches}
    assert all(dpid in loads[owner] for dpid, owner in division.items())
    assert divide(loads, division, reserve) == division


def test_a_switch_that_leaves_both_as_they_were_the_other_way_round_stays():
    """Their sums are alike but for the last bits, which hang on the order in which switches are counted."""
    weights = {3: 2.2, 24: 3.1, 7: 5.4, 18: 5.4, 25: 3.1, 22: 2.2, 31: 2.2}
    owners = {dpid: "b" if dpid in (18, 25, 22) else "a" for dpid in weights}
    division = divide(dict.fromkeys("ab", weights), owners)
    assert divide(dict.fromkeys("ab", weights), division) == division
