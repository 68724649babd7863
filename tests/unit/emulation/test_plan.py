from __future__ import annotations

import pytest

from apps.emulation.plan import (
    AVALANCHE_RATES_BPS,
    GroupPlan,
    ReceiverPlan,
    SenderPlan,
    avalanche_plan,
    forced_lost_pct,
)
from topology.generators import make
from topology.graph import Graph, NodeKind


def two_hosts(capacity_bps: float) -> Graph:
    graph = Graph()
    graph.add_node("s", NodeKind.TOR)
    for name in ("a", "b", "c"):
        graph.add_node(name, NodeKind.HOST)
        graph.add_link("s", name, capacity_bps=capacity_bps)
    return graph


def group(address: str, sender: str, rate_bps: float, *receivers: str) -> GroupPlan:
    return GroupPlan(address, (SenderPlan(sender, rate_bps),), tuple(ReceiverPlan(name) for name in receivers))


def test_avalanche_plan_is_the_articles_experiment() -> None:
    graph = make("avalanche24")
    seen_sizes, seen_rates = set(), set()
    for seed in range(40):
        plan = avalanche_plan(graph, seed)
        assert len({entry.group for entry in plan.groups}) == 6
        for entry in plan.groups:
            members = [sender.host for sender in entry.senders] + [receiver.host for receiver in entry.receivers]
            assert len(entry.senders) == 1
            assert len(set(members)) == len(members)
            assert set(members) <= set(graph.hosts())
            seen_sizes.add(len(members))
            seen_rates.add(entry.senders[0].rate_bps)
        joins = [(entry.group, receiver.host) for entry, receiver in plan.joins()]
        assert sorted(joins) == sorted((e.group, r.host) for e in plan.groups for r in e.receivers)
    assert seen_sizes == {3, 4, 5, 6}
    assert seen_rates == set(AVALANCHE_RATES_BPS)


def test_avalanche_plan_repeats_under_its_seed() -> None:
    graph = make("avalanche24")
    one, same, other = (avalanche_plan(graph, seed) for seed in (7, 7, 8))
    assert (one.groups, one.join_order) == (same.groups, same.join_order)
    assert one.groups != other.groups


@pytest.mark.parametrize(
    ("groups", "expected_pct"),
    [
        ([group("1", "a", 8e6, "b", "c")], 0.0),
        ([group("1", "a", 8e6, "c"), group("2", "b", 8e6, "c")], 100 * 6 / 16),  # c gets 16 on a link of 10
        ([group("1", "a", 8e6, "b"), group("2", "a", 8e6, "c")], 100 * 6 / 16),  # a sends 16 on a link of 10
        ([group("1", "a", 20e6, "b"), group("2", "c", 5e6, "b")], 100 * 15 / 25),  # both: 10 + 5 arrive at b's 10
        ([], 0.0),
    ],
)
def test_loss_forced_by_the_hosts_links(groups: list[GroupPlan], expected_pct: float) -> None:
    assert forced_lost_pct(two_hosts(10e6), groups) == pytest.approx(expected_pct)


def test_what_a_filter_keeps_out_is_not_counted() -> None:
    senders = (SenderPlan("a", 8e6), SenderPlan("b", 8e6))
    both = GroupPlan("1", senders, (ReceiverPlan("c"),))
    assert forced_lost_pct(two_hosts(10e6), [both]) == pytest.approx(100 * 6 / 16)
    for receiver in (ReceiverPlan("c", include=("a",)), ReceiverPlan("c", exclude=("b",))):
        assert forced_lost_pct(two_hosts(10e6), [GroupPlan("1", senders, (receiver,))]) == 0.0


def test_a_receiver_does_not_want_its_own_packets() -> None:
    assert not ReceiverPlan("a").wants("a")
    assert ReceiverPlan("a").wants("b")
