import numpy as np
import pytest

from controller.simulation.data_centre import DataCentre
from controller.simulation.sizes import wve_sizes
from controller.simulation.workload import Workload, WorkloadError, generate
from topology.generators import make
from topology.graph import Graph, NodeKind


@pytest.fixture(scope="module")
def portland():
    return DataCentre(make("portland-p6"))


@pytest.fixture(scope="module")
def small():
    return DataCentre(make("fattree", {"k": 4}))


def members_of(groups):
    return np.add.reduceat(groups.members_at, groups.offsets[:-1])


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("placement", ["uniform", "tenant"])
@pytest.mark.parametrize("sizes", ["uniform", "wve"])
def test_the_same_seed_gives_the_same_groups_and_another_one_others(portland, sizes, placement):
    workload = Workload(vms=5000, groups=200, sizes=sizes, placement=placement)
    assert same(generate(portland, workload, 3), generate(portland, workload, 3))
    assert not same(generate(portland, workload, 3), generate(portland, workload, 4))


def test_sizes_and_rates_keep_to_their_ranges_and_spread_over_them(portland):
    groups = generate(portland, Workload(groups=5000), 1)
    sizes = members_of(groups)
    assert (sizes.min(), sizes.max()) == (3, 20)
    assert abs(sizes.mean() - 11.5) < 0.3
    assert groups.rates_bps.min() >= 1e5
    assert groups.rates_bps.max() <= 1e7
    assert abs(groups.rates_bps.mean() / 5.05e6 - 1) < 0.05
    assert abs(np.bincount(groups.terminals).std() / np.bincount(groups.terminals)[1:].mean()) < 1.0


def test_no_switch_is_twice_in_a_group_and_all_are_tors(small):
    groups = generate(small, Workload(vms=64, groups=300), 2)
    for start, stop in zip(groups.offsets, groups.offsets[1:], strict=False):
        terminals = groups.terminals[start:stop]
        assert len(set(terminals.tolist())) == len(terminals) > 0
    assert {small.graph.kind(small.switches[i]) for i in set(groups.terminals.tolist())} == {NodeKind.TOR}


@pytest.mark.parametrize("size", [1, 8, 16])
def test_members_are_different_machines_however_few_there_are(size):
    graph = Graph()
    for tor in range(16):
        graph.add_node(f"t{tor}", NodeKind.TOR)
        graph.add_node(f"h{tor}", NodeKind.HOST)
        graph.add_link(f"t{tor}", f"h{tor}")
    centre = DataCentre(graph)
    one_each = Workload(vms=16, groups=500, group_size=(size, size))
    groups = generate(centre, one_each, 5)
    assert set(members_of(groups).tolist()) == {size}
    if size == 16:
        # All sixteen machines are members of every group, so all groups have the same switches.
        first = set(groups.terminals[: groups.offsets[1]].tolist())
        for start, stop in zip(groups.offsets, groups.offsets[1:], strict=False):
            assert set(groups.terminals[start:stop].tolist()) == first


def test_every_machine_is_a_member_equally_often(small):
    groups = generate(small, Workload(vms=4000, groups=20_000, group_size=(3, 3)), 7)
    per_tor = np.bincount(np.repeat(groups.terminals, groups.members_at), minlength=len(small.switches))
    busy = per_tor[per_tor > 0]
    assert len(busy) == 8
    assert busy.max() / busy.min() < 1.25


def test_sizes_like_wve_have_the_published_figures():
    sizes = wve_sizes(np.random.default_rng(11), 400_000, 3, 20)
    assert sizes.min() == 5
    assert abs(sizes.mean() - 60) < 1
    assert abs((sizes < 61).mean() - 0.8) < 0.005
    assert abs((sizes > 700).mean() - 0.006) < 0.001


def test_groups_of_a_tenant_are_in_few_racks_of_one_pod(portland):
    spread = generate(portland, Workload(groups=1000), 1)
    local = generate(portland, Workload(groups=1000, placement="tenant"), 1)
    pods = portland.pods()

    def pods_per_group(groups):
        pairs = set(zip(groups.group_of_terminal().tolist(), pods[groups.terminals].tolist(), strict=True))
        return len(pairs) / len(groups)

    assert pods_per_group(local) < 1.5 < 4 < pods_per_group(spread)
    assert np.diff(local.offsets).mean() < 0.8 * np.diff(spread.offsets).mean()


def test_a_group_has_no_more_members_than_its_tenant_has_machines(portland):
    groups = generate(portland, Workload(vms=2000, groups=300, sizes="wve", placement="tenant"), 9)
    assert members_of(groups).max() <= 2000


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("vms", {"vms": 0}),
        ("groups", {"groups": 0}),
        ("groups", {"groups": 10**9}),
        ("groups", {"vms": 10**7, "groups": 30, "group_size": (10**7, 10**7)}),
        ("group_size", {"group_size": (5, 3)}),
        ("group_size", {"group_size": (0, 3)}),
        ("group_size", {"vms": 19}),
        ("sizes", {"sizes": "normal"}),
        ("placement", {"placement": "nowhere"}),
        ("rate_bps", {"rate_bps": (-1.0, 5.0)}),
        ("rate_bps", {"rate_bps": (1.0, float("nan"))}),
        ("rate_bps", {"rate_bps": (2.0, 1.0)}),
        ("rate_bps", {"rate_bps": (0.0, float("inf"))}),
    ],
)
def test_the_field_at_fault_is_named(small, field, changes):
    with pytest.raises(WorkloadError) as caught:
        generate(small, Workload()._replace(**changes), 0)
    assert caught.value.field == field


def test_a_fabric_without_hosts_or_with_a_host_at_no_switch_takes_no_machines(small):
    with pytest.raises(WorkloadError, match=r"hosts: .* none"):
        generate(DataCentre(small.graph.copy()), Workload(), 0)
    graph = make("avalanche24")
    graph.add_node("spare", NodeKind.HOST)
    with pytest.raises(WorkloadError, match="hosts: spare"):
        generate(DataCentre(graph), Workload(vms=50), 0)


def test_pods_come_from_the_graph_or_from_its_shape():
    graph = make("fattree", {"k": 4})
    named = DataCentre(graph)
    bare = Graph()
    for node in graph.nodes():
        bare.add_node(node, graph.kind(node))
    for link in graph.links():
        bare.add_link(*link)
    tors = [i for i, node in enumerate(named.switches) if graph.kind(node) is NodeKind.TOR]

    def partition(centre):
        pods = centre.pods()
        return {frozenset(i for i in tors if pods[i] == pod) for pod in set(pods[tors].tolist())}

    assert partition(named) == partition(DataCentre(bare))
    assert len(partition(named)) == 4
