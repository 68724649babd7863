"""Several networks and hosts in one request, the NumPaths matcher, arrays and pools, reservation between polls."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.allocation.candidates import Candidates
from controller.allocation.plan import (
    CandidateNetwork,
    Initiator,
    PathRules,
    Requester,
    Terms,
    TooFewPathsError,
    paths_per_network,
    plan,
)
from controller.allocation.pools import ArrayPort, Pool, array_metric, choose_pool, match_num_paths
from controller.allocation.reservation import Reservations
from controller.allocation.selection import Affinity, Wish


def ports(prefix: str, directors: str, *previous: str) -> CandidateNetwork:
    n = len(directors)
    candidates = Candidates(
        [f"{prefix}{index}" for index in range(n)],
        np.zeros(n),
        np.zeros(n),
        np.ones(n, np.bool_),
        {"director": list(directors)},
    )
    return CandidateNetwork(candidates, previous)


def host(name: str, **initiators: int) -> Requester:
    return Requester(
        name,
        [Initiator(f"{name}-{network}{index}", network) for network, n in initiators.items() for index in range(n)],
    )


def test_paths_go_round_the_networks_as_far_as_initiators_take_them():
    assert paths_per_network(host("h", f=2, g=2), ["f", "g"], PathRules(4)) == {"f": 2, "g": 2}
    assert paths_per_network(host("h", f=1, g=4), ["f", "g"], PathRules(4)) == {"f": 1, "g": 3}
    assert paths_per_network(host("h", f=1), ["f", "g"], PathRules(4, per_initiator=2)) == {"f": 2, "g": 0}


def test_the_second_network_takes_the_directors_that_the_first_did_not():
    found = plan({"f": ports("f", "ab"), "g": ports("g", "ab")}, [host("h", f=1, g=1)], PathRules(2))
    assert found.networks["f"].ports == ("f0",)
    assert found.networks["g"].ports == ("g1",)


def test_ports_allocated_before_count_in_their_network():
    found = plan({"f": ports("f", "abc", "f2"), "g": ports("g", "abc")}, [host("h", f=1, g=1)], PathRules(2))
    assert found.networks["f"].ports == ("f2",)
    assert found.networks["g"].ports == ("g0",)


def test_an_affinity_holds_in_each_network():
    terms = Terms(affinity=Affinity("director", {"c": 1}))
    found = plan({"f": ports("f", "abc"), "g": ports("g", "abc")}, [host("h", f=1, g=1)], PathRules(2), terms)
    assert [each.ports for each in found.networks.values()] == [("f2",), ("g2",)]


def test_each_initiator_gets_ports_of_its_own_and_hosts_share_them_evenly():
    hosts = [host("h1", f=2), host("h2", f=2), host("h3", f=2)]
    found = plan({"f": ports("f", "aabb")}, hosts, PathRules(2))
    assert len(found.paths) == 6
    assert set(Counter(path.port for path in found.paths).values()) == {3}
    for each in hosts:
        own = [path for path in found.paths if path.host == each.name]
        assert len({path.port for path in own}) == len({path.initiator for path in own}) == 2


def test_a_network_gets_what_its_neediest_host_needs():
    found = plan({"f": ports("f", "abcd")}, [host("h1", f=1), host("h2", f=3)], PathRules(4))
    assert len(found.networks["f"].ports) == 3


def test_too_few_paths_name_the_host():
    with pytest.raises(TooFewPathsError) as caught:
        plan({"f": ports("f", "a")}, [host("h1", f=1), host("h2", g=1)], PathRules(2, min_paths=1))
    assert (caught.value.host, caught.value.found) == ("h2", 0)


GOOD = ArrayPort("p", 10, network="n")


@pytest.mark.parametrize(
    "bad",
    [
        ArrayPort("p", 10),
        ArrayPort("p", 10, network="n", registered=False),
        ArrayPort("p", 10, network="n", status="BAD"),
        ArrayPort("p", 10, network="n", front_end=False),
        ArrayPort("p", 10, network="n", disqualified=True),
    ],
)
def test_what_makes_a_port_unusable(bad: ArrayPort):
    assert not bad.usable
    assert match_num_paths([GOOD, bad], 1).matches
    assert not match_num_paths([GOOD, bad], 2).matches


def test_an_unknown_status_is_usable():
    assert ArrayPort("p", status="UNKNOWN", network="n").usable


def test_two_paths_need_two_failure_domains():
    one = [ArrayPort(name, network="n", components={"engine": "1"}) for name in "pq"]
    two = [*one, ArrayPort("r", network="n", components={"engine": "2"})]
    assert not match_num_paths(one, 2, ["engine"]).matches
    assert match_num_paths(one, 1, ["engine"]).matches
    assert match_num_paths(two, 2, ["engine"]).matches


def test_the_array_metric_is_the_mean_of_ports_in_service():
    off = ArrayPort("q", 90)
    full = ArrayPort("r", 30, network="n", disqualified=True)
    assert array_metric([GOOD, off, full, ArrayPort("s", None, network="n")]) == 20
    assert array_metric([off]) == array_metric([]) == 50


def test_the_pool_with_room_on_the_least_loaded_array_is_taken():
    pools = [Pool("big", "busy", 900), Pool("mid", "idle", 500), Pool("wide", "idle", 700), Pool("small", "best", 10)]
    found = choose_pool(pools, {"busy": 60, "idle": 20, "best": 1}, 100)
    assert found.pool is not None
    assert found.pool.name == "wide"
    assert [entry.pool.name for entry in found.ranked] == ["big", "wide", "mid", "small"]
    assert [entry.fits for entry in found.ranked] == [True, True, True, False]


def test_an_array_without_metric_counts_as_half_used():
    found = choose_pool([Pool("a", "x", 9), Pool("b", "y", 8)], {"x": 51}, 1)
    assert found.pool is not None
    assert found.pool.name == "b"


def test_no_pool_where_none_has_room_or_ports():
    pools = [Pool("a", "x", 9)]
    assert choose_pool(pools, {}, 10).pool is None
    assert choose_pool(pools, {}, 1, {"x": match_num_paths([], 1)}).pool is None


def fabric(pods: int, per_pod: int, usages: list[float]) -> Candidates:
    n = pods * per_pod
    return Candidates(
        [f"p{index}" for index in range(n)],
        np.array(usages),
        np.zeros(n),
        np.ones(n, np.bool_),
        {"pod": [f"pod{index // per_pod}" for index in range(n)]},
    )


def test_requests_between_two_polls_go_round_idle_failure_domains_as_one_does():
    candidates = fabric(8, 250, [0.0] * 2000)
    one = Reservations(1.5).place(candidates, Wish(1000), 100)
    cache = Reservations(1.5)
    many = [cache.place(candidates, Wish(1), 100).ports[0] for _ in range(1000)]
    assert many == list(one.ports)


def test_requests_between_two_polls_take_the_least_used_ports_whatever_others_took():
    usages = np.random.default_rng(1).uniform(0, 40, 2000)
    candidates = fabric(8, 250, usages.tolist())
    cache = Reservations(1.5)
    many = [cache.place(candidates, Wish(1), 100).ports[0] for _ in range(1000)]
    assert many == [f"p{index}" for index in np.argsort(usages)[:1000].tolist()]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 4))
def test_on_an_idle_fabric_requests_spread_over_all_ports_whatever_their_domains(pods: list[int], rounds: int):
    n = len(pods)
    levels = {"pod": [f"pod{pod}" for pod in pods]}
    candidates = Candidates([f"p{i}" for i in range(n)], np.zeros(n), np.zeros(n), np.ones(n, np.bool_), levels)
    cache = Reservations(1.5)
    taken = Counter(cache.place(candidates, Wish(1), 1).ports[0] for _ in range(rounds * n))
    assert set(taken.values()) == {rounds}


def test_requests_between_two_polls_do_not_herd():
    candidates = fabric(4, 4, [5.0] * 15 + [0.0])
    cache = Reservations(1.5)
    taken = Counter(cache.place(candidates, Wish(1), 2).ports[0] for _ in range(1000))
    assert max(taken.values()) - min(taken.values()) <= 2
    pods = Counter(int(name[1:]) // 4 for name in taken.elements())
    assert max(pods.values()) - min(pods.values()) <= 2


def test_a_poll_throws_the_reservations_away():
    candidates = fabric(1, 3, [0, 1, 2])
    cache = Reservations(2)
    assert cache.place(candidates, Wish(1), 5).ports == ("p0",)
    assert cache.reserved_pct(["p0", "p1"]).tolist() == [10, 0]
    assert cache.place(candidates, Wish(1), 5).ports == ("p1",)
    cache.refresh()
    assert cache.place(candidates, Wish(1), 5).ports == ("p0",)
