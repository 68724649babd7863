"""Paths after a restart of the controller, while links that led from switch to switch are not found again."""

from __future__ import annotations

import pytest

from controller.rules.model import Output
from controller.unicast.holdings import AWAITED_BOUND_S, AWAITED_S, AwaitedLinks
from topology.events import LinkUp, PortRole, PortRoleChanged

from .reaching import assert_reachable

AGGREGATION = 20100
"""A switch in the middle that connects late."""


@pytest.fixture
def returned(fabric, make_bench):
    """A new controller with all switches but one, which is late, and its links; the former one, hosts and cables."""
    old, hosts, cables = fabric
    new = make_bench()
    new.rules, new.other_end = old.rules, dict(old.other_end)
    for dpid in sorted(new.rules.keys() - {AGGREGATION}):
        new.switch(dpid)
    for host in hosts:
        new.feed(host)
    new.edits = 0
    for cable in cables:
        for end in (cable[:2], cable[2:]):
            if end[0] != AGGREGATION:  # discovery knows of a port that it led to a switch
                new.feed(PortRoleChanged(*end, PortRole.TRUNK))
    for cable in cables:
        if AGGREGATION not in (cable[0], cable[2]):
            new.link(cable)
    return new, old, hosts, cables


def goes_round(new) -> bool:
    """Tell whether no switch sends to the late one."""
    at_late = [end for end, far in new.other_end.items() if far[0] == AGGREGATION]
    last = ((dpid, rule.actions[-1]) for dpid, rule in new.host_rules() if rule.actions)
    return not {(dpid, action.port_no) for dpid, action in last if isinstance(action, Output)} & set(at_late)


def test_a_switch_that_connects_later_than_others_changes_no_path(returned):
    new, old, hosts, cables = returned
    expected = old.host_rules()
    new.run(AWAITED_S - 0.5)
    assert new.edits == 0
    assert_reachable(old, hosts)
    new.switch(AGGREGATION)
    for cable in cables:
        if AGGREGATION in (cable[0], cable[2]):
            new.link(cable)
    new.run(0.1)
    assert_reachable(new, hosts)
    assert new.edits == 0
    new.run(31.0)
    assert new.host_rules() == expected


def test_paths_go_round_a_switch_that_does_not_connect(returned):
    new, _old, hosts, _cables = returned
    new.run(AWAITED_S - 0.5)
    assert not goes_round(new)
    new.run(0.6)
    assert_reachable(new, hosts)
    assert goes_round(new)


def test_paths_wait_on_while_links_are_found(returned):
    """On a busy machine that takes its time."""
    new, _old, _hosts, cables = returned
    late = [cable for cable in cables if AGGREGATION in (cable[0], cable[2])]
    new.run(AWAITED_S - 0.5)
    new.switch(AGGREGATION)
    for cable in late[:-1]:
        new.link(cable)
        new.run(AWAITED_S - 0.5)
        assert new.edits == 0
    new.run(0.6)
    assert new.edits > 0


def test_paths_wait_as_long_as_links_are_found_and_entries_from_before_stay():
    waits, now, gone_s = AwaitedLinks(), 100.0, 130.0
    for port_no in range(100):
        waits.follow(PortRoleChanged(1, port_no, PortRole.TRUNK), now)
    waits.connected(1, now, gone_s)
    waits.told(1, True, now)
    port_no = 0
    while (until_s := waits.until_s(now)) is not None:
        assert now < until_s <= min(now + AWAITED_S, gone_s - AWAITED_BOUND_S)
        now, port_no = now + AWAITED_S - 0.5, port_no + 1
        waits.follow(LinkUp(2, port_no, 1, port_no, 1e9), now)
    assert gone_s - AWAITED_BOUND_S <= now < gone_s - AWAITED_BOUND_S + AWAITED_S


def test_paths_wait_for_no_link_that_was_not_there_before():
    waits = AwaitedLinks()
    waits.follow(PortRoleChanged(1, 1, PortRole.TRUNK), 100.0)
    waits.connected(1, 100.0, 130.0)
    waits.told(1, True, 100.0)
    waits.follow(LinkUp(2, 7, 3, 7, 1e9), 102.0)
    assert waits.until_s(102.0) == 100.0 + AWAITED_S


def test_paths_wait_for_nothing_once_entries_from_before_have_gone():
    waits = AwaitedLinks()
    waits.follow(PortRoleChanged(1, 1, PortRole.TRUNK), 100.0)
    waits.connected(1, 100.0, None)
    waits.told(1, True, 100.0)
    assert waits.until_s(100.0) is None


@pytest.mark.parametrize("what", ["another link", "its port", "another switch"])
def test_paths_follow_at_once_where_the_fabric_is_another_than_it_was(returned, what):
    new, _old, hosts, cables = returned
    of_late = next(cable for cable in cables if AGGREGATION in (cable[0], cable[2]))
    other = next(cable for cable in cables if cable[0] == 20200)
    if what == "another link":
        new.link(other, up=False)
    elif what == "its port":
        end = of_late[:2] if of_late[2] == AGGREGATION else of_late[2:]
        new.feed(PortRoleChanged(*end, PortRole.DOWN))
    else:
        new.down(30000)
    new.run(0.1)
    assert_reachable(new, hosts)
    assert goes_round(new)


def test_paths_of_a_fabric_without_entries_from_before_wait_for_nothing(make_bench, make_host, make_fattree):
    bench = make_bench()
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    one, other = make_host(1, *ends[0]), make_host(2, *ends[-1])
    bench.feed(PortRoleChanged(30000, 77, PortRole.TRUNK))
    for host in (one, other):
        bench.feed(host)
    bench.run(0.1)
    bench.meet([one, other])
    assert_reachable(bench, [one, other])
