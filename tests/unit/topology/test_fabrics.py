"""Which switches are in one fabric follows each link, and is at any time what a search from nothing finds."""

from itertools import pairwise
from random import Random

import pytest

from topology.events import LinkDown, LinkUp, SwitchDown, SwitchUp
from topology.live import LiveFabric


def _searched(live):
    """Return the fabrics of a live fabric as sets of switches, found from nothing."""
    left, found = set(live.switches()), []
    while left:
        reached, front = set(), [left.pop()]
        while front:
            node = front.pop()
            if node not in reached:
                reached.add(node)
                front += live.graph.neighbours(node)
        left -= reached
        found.append(reached)
    return sorted(found, key=min)


def _check(live):
    found = [fabric.switches for fabric in live.fabrics]
    assert found == _searched(live)
    assert [fabric.dpid for fabric in live.fabrics] == [min(switches) for switches in found]
    assert len(live.fabrics) == len(found)
    for switches in found:
        for dpid in switches:
            assert live.fabrics.of(dpid).switches is next(s for s in found if dpid in s)


def _line(*dpids):
    live = LiveFabric()
    for dpid in dpids:
        live.apply(SwitchUp(dpid, 4))
    for dpid, other in pairwise(dpids):
        live.apply(LinkUp(dpid, 2, other, 1, 1e9))
    return live


def test_a_switch_without_links_is_a_fabric_of_its_own_and_a_link_joins_two():
    live = LiveFabric()
    live.apply(SwitchUp(7, 4))
    live.apply(SwitchUp(3, 4))
    assert [fabric.dpid for fabric in live.fabrics] == [3, 7]
    assert not live.fabrics.is_one(3, 7)
    version = live.fabrics.version
    live.apply(LinkUp(3, 1, 7, 1, 1e9))
    assert [fabric.switches for fabric in live.fabrics] == [{3, 7}]
    assert live.fabrics.is_one(3, 7) and live.fabrics.version > version


def test_the_last_cable_between_two_parts_splits_them_and_one_beside_it_does_not():
    live = _line(1, 2, 3, 4)
    live.apply(LinkUp(2, 12, 3, 11, 1e9))
    version = live.fabrics.version
    live.apply(LinkDown(2, 2, 3, 1))
    assert len(live.fabrics) == 1 and live.fabrics.version == version
    live.apply(LinkDown(2, 12, 3, 11))
    assert [fabric.switches for fabric in live.fabrics] == [{1, 2}, {3, 4}]
    assert not live.fabrics.is_one(1, 4) and live.fabrics.is_one(3, 4)


def test_a_switch_that_goes_may_leave_as_many_fabrics_as_it_had_neighbours():
    live = LiveFabric()
    for dpid in range(1, 7):
        live.apply(SwitchUp(dpid, 4))
    for port_no, other in enumerate((1, 2, 4, 5, 6), 1):
        live.apply(LinkUp(3, port_no, other, 1, 1e9))
    live.apply(LinkUp(4, 2, 6, 2, 1e9))
    live.apply(SwitchDown(3))
    assert [fabric.switches for fabric in live.fabrics] == [{1}, {2}, {4, 6}, {5}]
    assert live.fabrics.of(3) is None and not live.fabrics.is_one(3, 1)


@pytest.mark.parametrize("seed", range(8))
def test_after_any_changes_the_fabrics_are_those_that_a_search_finds(seed):
    random, live, cables = Random(seed), LiveFabric(), {}
    for _ in range(600):
        chance = random.random()
        if chance < 0.25:
            live.apply(SwitchUp(random.randrange(1, 15), 4))
        elif chance < 0.32 and live.switches():
            live.apply(SwitchDown(random.choice(live.switches())))
        elif chance < 0.65:
            dpid, other = random.sample(range(1, 15), 2)
            link = LinkUp(dpid, random.randrange(1, 4), other, random.randrange(1, 4), 1e9)
            cables[link[:4]] = link
            live.apply(link)
        elif cables:
            live.apply(LinkDown(*cables.pop(random.choice(sorted(cables)))[:4]))
        _check(live)
