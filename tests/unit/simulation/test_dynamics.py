"""What each event changes, and that loads, reachability and rules stay exact over any stream of events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.rules.compile import SwitchDuty, channel_duties, differences, lower_to_1_3
from controller.simulation.dynamics import Dynamics, EventKind, EventOutcome, GroupEvent, homes_of
from controller.simulation.dynamics_record import Record, play, utilisations_pct
from controller.trees.algorithms import ALGORITHMS
from controller.trees.network import switch_graph
from topology.generators import make
from topology.graph import Graph, NodeKind

AVALANCHE = make("avalanche24")
HOSTS = AVALANCHE.hosts()
SWITCHES = switch_graph(AVALANCHE)
AGGREGATION = SWITCHES.nodes(NodeKind.AGGREGATION)[0]
CORE = next(node for node in SWITCHES.neighbours(AGGREGATION) if SWITCHES.kind(node) is NodeKind.CORE)
LINKS = [(link.u, link.v) for link in SWITCHES.links()]


def dynamics(algorithm="vsrt", graph=AVALANCHE, **options):
    return Dynamics(switch_graph(graph), homes_of(graph), algorithm, **options)


def join(group, member, time_s=0.0, **more):
    return GroupEvent(time_s, EventKind.JOIN, group, member, **more)


def leave(group, member, time_s=0.0):
    return GroupEvent(time_s, EventKind.LEAVE, group, member)


def link(kind, u, v, time_s=0.0):
    return GroupEvent(time_s, kind, u=u, v=v)


def hosts_at(node, graph=AVALANCHE):
    return [host for host, home in homes_of(graph).items() if home == node]


def test_members_of_one_switch_are_counted_and_only_the_first_and_last_change_the_tree():
    world = dynamics()
    tors = SWITCHES.nodes(NodeKind.TOR)
    first, second = hosts_at(tors[0])[:2]
    (far,) = hosts_at(tors[1])[:1]
    assert world.step(join("g", first)) == EventOutcome(rules_put=1)
    assert world.step(join("g", far)) == EventOutcome(trees_changed=1, links_added=2, rules_put=3)
    assert world.step(join("g", second)) == EventOutcome(rules_put=1)
    assert world.step(join("g", second)) == EventOutcome(applied=False)
    assert world.step(leave("g", first)) == EventOutcome(rules_put=1)
    assert world.step(leave("g", first)) == EventOutcome(applied=False)
    assert world.step(leave("g", second)) == EventOutcome(
        trees_changed=1, links_removed=2, rules_put=1, rules_removed=2
    )
    assert world.step(leave("g", far)) == EventOutcome(rules_removed=1)
    assert world.forest.loads.max_utilisation() == 0.0
    assert not any(world.entries.values())


def test_a_failed_link_reports_trees_and_members_and_its_return_restores_them():
    graph = make("tree", {"depth": 2, "fanout": 2})
    world = dynamics(graph=graph)
    one, other, near, far = graph.hosts()
    home, root = homes_of(graph)[far], next(iter(switch_graph(graph).neighbours(homes_of(graph)[far])))
    for member in (one, other, far):
        world.step(join("g", member))
    down = world.step(link(EventKind.LINK_DOWN, home, root))
    assert (down.trees_changed, down.members_cut_off, down.members_restored) == (1, 1, 0)
    assert world.cut_off() == 1 and world.step(link(EventKind.LINK_DOWN, root, home)) == EventOutcome(applied=False)
    assert world.step(join("g", near)).members_cut_off == 1
    up = world.step(link(EventKind.LINK_UP, root, home))
    assert (up.trees_changed, up.members_cut_off, up.members_restored) == (1, 0, 2)
    assert world.cut_off() == 0 and world.loads_are_exact()


def test_a_member_that_joins_where_others_wait_is_cut_off_from_the_start():
    world = dynamics()
    tor, other = SWITCHES.nodes(NodeKind.TOR)[:2]
    waiting, later = hosts_at(tor)[:2]
    for near in SWITCHES.neighbours(tor):
        world.step(link(EventKind.LINK_DOWN, tor, near))
    for member in hosts_at(other)[:2]:
        world.step(join("g", member))
    assert world.step(join("g", waiting)).members_cut_off == 1
    assert world.step(join("g", later)).members_cut_off == 1
    assert world.cut_off() == 2
    assert world.step(leave("g", waiting)).members_cut_off == 0
    assert world.cut_off() == 1
    assert world.step(link(EventKind.LINK_UP, tor, SWITCHES.neighbours(tor)[0])).members_restored == 1


def test_a_switch_takes_its_links_with_it_and_brings_back_those_that_have_not_failed_themselves():
    world = dynamics()
    aggregation = SWITCHES.nodes(NodeKind.AGGREGATION)[0]
    near = SWITCHES.neighbours(aggregation)
    world.step(link(EventKind.LINK_DOWN, aggregation, near[0]))
    assert world.step(GroupEvent(1, EventKind.SWITCH_DOWN, u=aggregation)).applied
    assert aggregation not in world.forest.graph
    assert world.step(GroupEvent(1, EventKind.SWITCH_DOWN, u=aggregation)) == EventOutcome(applied=False)
    world.step(link(EventKind.LINK_DOWN, aggregation, near[1]))
    world.step(link(EventKind.LINK_UP, aggregation, near[0]))
    world.step(GroupEvent(2, EventKind.SWITCH_UP, u=aggregation))
    assert set(world.forest.graph.neighbours(aggregation)) == set(near) - {near[1]}
    assert world.forest.graph.kind(aggregation) is NodeKind.AGGREGATION


def test_what_the_fabric_does_not_have_is_our_own_misuse():
    for event in (
        join("g", "nobody"),
        link(EventKind.LINK_DOWN, HOSTS[0], "x"),
        GroupEvent(0, EventKind.SWITCH_UP, u="x"),
    ):
        with pytest.raises(KeyError):
            dynamics().step(event)


def test_the_peak_is_the_highest_utilisation_ever_seen():
    world = dynamics()
    a, b = (hosts_at(tor)[0] for tor in SWITCHES.nodes(NodeKind.TOR)[:2])
    for key in range(2):
        world.step(join(key, a, rate_bps=4e6))
        world.step(join(key, b))
    assert world.peak_utilisation == pytest.approx(0.4)
    world.step(join(0, hosts_at(SWITCHES.nodes(NodeKind.TOR)[0])[1], rate_bps=9e6))
    for key in range(2):
        world.step(leave(key, b))
    assert world.forest.loads.max_utilisation() == 0.0
    assert world.peak_utilisation == pytest.approx(0.9)
    assert world.peak_entries == 2


picks = st.integers(0, 1000)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.integers(0, 2), picks),
        st.tuples(st.just("join"), st.integers(0, 2), picks),
        st.tuples(st.just("leave"), st.integers(0, 2), picks),
        st.tuples(st.sampled_from(["link_down", "link_up", "switch_down", "switch_up"]), st.just(0), picks),
    ),
    min_size=8,
    max_size=60,
)


def event_of(word, group, pick, number, world):
    kind = EventKind(word)
    if kind is EventKind.LEAVE:
        present = sorted(m for here in world.members.get(group, {}).values() for m in here)
        return leave(group, present[pick % len(present)] if present else HOSTS[0], number)
    if kind is EventKind.JOIN:
        return join(group, HOSTS[pick % len(HOSTS)], number, rate_bps=float(pick) * 1e3)
    if "link" in word:
        return link(kind, *LINKS[pick % len(LINKS)], number)
    return GroupEvent(number, kind, u=SWITCHES.nodes()[pick % len(SWITCHES)])


def compiled(world, key, group=b"\xef\x01\x02\x03"):
    """The entries of a group as the live controller compiles them, per switch."""
    tree = world.forest.tree(key)
    if tree is None:
        return {}
    number = {node: i for i, node in enumerate(SWITCHES.nodes())}
    hosts = {host: 1000 + i for i, host in enumerate(HOSTS)}
    neighbours = {number[n]: {number[m] for m in near} for n, near in tree.adjacent.items()}
    members = {
        number[node]: {None: [hosts[host] for host in here]} for node, here in world.members.get(key, {}).items()
    }
    duties = channel_duties(neighbours, lambda u, v: v, members, (None,))
    rules = {dpid: lower_to_1_3(group, SwitchDuty(0, channels, ()), 7) for dpid, channels in duties.items()}
    return {dpid: entries for dpid, entries in rules.items() if entries}


@pytest.mark.parametrize(("algorithm", "rebalances"), [*((name, False) for name in ALGORITHMS), ("vsrt", True)])
@settings(max_examples=60)
@given(steps=steps)
def test_every_outcome_is_what_the_states_before_and_after_differ_in(algorithm, rebalances, steps):
    world = dynamics(algorithm, rebalances=rebalances)
    keys = range(3)
    for number, (word, group, pick) in enumerate(steps):
        event = event_of(word, group, pick, number, world)
        before = {key: compiled(world, key) for key in keys}
        links = {key: set(map(frozenset, world.forest.tree(key).links())) for key in keys if world.forest.tree(key)}
        served = reached(world)
        joined = {(group, event.member)} if word == "join" else set()
        outcome = world.step(event)
        assert world.loads_are_exact()
        after = {key: compiled(world, key) for key in keys}
        now = {key: set(map(frozenset, world.forest.tree(key).links())) for key in keys if world.forest.tree(key)}
        moved = [key for key in keys if links.get(key, set()) != now.get(key, set())]
        assert outcome.trees_changed == len(moved)
        assert outcome.links_added == sum(len(now.get(key, set()) - links.get(key, set())) for key in moved)
        assert outcome.links_removed == sum(len(links.get(key, set()) - now.get(key, set())) for key in moved)
        present = {(key, m) for key, places in world.members.items() for here in places.values() for m in here}
        if outcome.applied:
            assert outcome.members_cut_off == len(((served | joined) & present) - reached(world))
        assert outcome.members_restored == len((reached(world) & present) - served - joined)
        assert world.cut_off() == len(present - reached(world))
        puts = removes = 0
        for key in keys:
            alive = {link for link in links.get(key, ()) if world.forest.graph.has_link(*link)}
            beside = (
                key in moved and links.get(key, set()) - now.get(key, set()) and loops(now.get(key, set()) | alive)
            )
            for dpid in before[key].keys() | after[key].keys():
                old, new = before[key].get(dpid, {}), after[key].get(dpid, {})
                if beside:
                    puts, removes = puts + len(new), removes + len(old)
                else:
                    put, gone = differences(old, new)
                    puts, removes = puts + len(put), removes + len(gone)
        assert (outcome.rules_put, outcome.rules_removed) == (puts, removes)
        counts = [0] * len(SWITCHES)
        for key in keys:
            for dpid, entries in after[key].items():
                counts[dpid] += len(entries)
        assert [world.entries.get(node, 0) for node in SWITCHES.nodes()] == counts
        assert world.peak_entries >= max(counts)
        assert world.peak_utilisation >= world.forest.loads.max_utilisation()
    for key, places in list(world.members.items()):
        for here in list(places.values()):
            for member in list(here):
                world.step(leave(key, member))
    assert not world.members and not any(world.forest.loads.bps) and not any(world.entries.values())


def reached(world):
    return {
        (key, member)
        for key, places in world.members.items()
        for node, here in places.items()
        if node in world.forest.tree(key).adjacent
        for member in here
    }


def loops(links):
    graph = Graph()
    for node in set().union(*links) if links else ():
        graph.add_node(node)
    parts = len(graph)
    root = {node: node for node in graph.nodes()}
    for pair in links:
        u, v = pair
        u, v = root[u], root[v]
        if u == v:
            return True
        root = {node: v if r == u else r for node, r in root.items()}
        parts -= 1
    return False


def test_rebalancing_lowers_the_busiest_link_after_a_failure():
    busiest = []
    for rebalances in (False, True):
        world = dynamics(rebalances=rebalances)
        for key in range(12):
            for place, tor in enumerate(SWITCHES.nodes(NodeKind.TOR)[::2]):
                world.step(join(key, hosts_at(tor)[place % 2], rate_bps=(1 + key % 3) * 1e5))
        world.step(link(EventKind.LINK_DOWN, AGGREGATION, CORE))
        world.step(link(EventKind.LINK_UP, AGGREGATION, CORE))
        busiest.append(world.forest.loads.max_utilisation())
    assert busiest[1] < busiest[0]


def test_a_record_sums_up_per_kind_and_samples_the_fabric():
    a, b, c = (hosts_at(tor)[0] for tor in SWITCHES.nodes(NodeKind.TOR)[:3])
    events = [
        join("g", a, 0.0, rate_bps=5e6),
        join("g", b, 1.0),
        join("g", b, 2.0),
        join("g", c, 3.0),
        leave("g", b, 4.0),
    ]
    world = dynamics()
    told = []
    record = play(world, events, told.append)
    assert len(record) == 5 and told == [1, 2, 3, 4, 5]
    summary = record.summary()
    assert set(summary) == {"join", "leave"}
    assert (summary["join"]["count"], summary["join"]["ignored"]) == (4, 1)
    assert summary["join"]["links_added"]["total"] == sum(record.counts["links_added"]) > 2
    assert summary["join"]["links_added"]["max"] == max(record.counts["links_added"])
    assert summary["leave"]["links_removed"]["total"] == 1
    assert [sample.max_pct for sample in record.samples] == [0.0, 50.0, 50.0, 50.0, 50.0]
    assert record.samples[-1].groups == 1
    used = utilisations_pct(world)
    assert len(used) == len(LINKS) and np.count_nonzero(used) == world.forest.tree("g").size
    assert Record().summary() == {}
    assert play(world, []).samples == []
