"""What switches hold depends on membership, topology and policy, not on how things came to be so."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.wire.addresses import parse_ip
from controller.wire.packets import GroupRecord, RecordType, Report

GROUP = parse_ip("239.1.2.3")
SSM = parse_ip("232.1.2.3")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)
T = RecordType
HOSTS = [f"h{n}" for n in range(1, 10)]
MEMBERS = st.sets(st.sampled_from(HOSTS), max_size=6)
SENDERS = st.sets(st.sampled_from(HOSTS), max_size=3)


def outcome(world):
    world.settle()
    return world.rules()


def fill(world, members, senders, order):
    steps = [("join", name) for name in members] + [("send", name) for name in senders]
    for at in order:
        if at < len(steps):
            kind, name = steps[at]
            (world.join if kind == "join" else world.send)(name)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), members=MEMBERS, senders=SENDERS, version=st.sampled_from([1, 4]))
def test_any_order_of_members_and_senders(make_world, data, members, senders, version):
    """On a fabric with one path between any two switches the trees, and so all entries, are the same."""
    members, senders = sorted(members), sorted(senders)
    count = len(members) + len(senders)
    one = make_world("tree", POLICY, version)
    fill(one, members, senders, range(count))
    other = make_world("tree", POLICY, version, seed=1)
    visitors = data.draw(st.lists(st.sampled_from(HOSTS), max_size=4))
    for name in visitors:
        other.join(name)
    order = data.draw(st.permutations(range(count)))
    fill(other, members, senders, order)
    fill(other, members, senders, order[: count // 2])
    for name in visitors:
        if name not in members:
            other.leave(name)
    assert outcome(other) == outcome(one)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), members=MEMBERS, version=st.sampled_from([1, 4]))
def test_any_order_of_the_fabric(make_world, data, members, version):
    one = make_world("tree", POLICY, version)
    fill(one, sorted(members), ["h1"], range(20))
    other = make_world("tree", POLICY, version)
    fill(other, sorted(members), ["h1"], range(20))
    pairs = sorted(sorted(pair) for pair in other.links)
    for pair in data.draw(st.lists(st.sampled_from(pairs), max_size=4, unique_by=tuple)):
        other.cut(*pair)
        if data.draw(st.booleans()):
            other.settle()
    for pair in data.draw(st.permutations(sorted(sorted(pair) for pair in other.down_links))):
        other.settle()
        other.mend(*pair)
    assert outcome(other) == outcome(one)


def test_one_report_or_many(make_world):
    groups = [bytes((239, 1, 1, n)) for n in range(5)]
    one = make_world("tree", POLICY)
    host = one.hosts["h9"]
    records = tuple(GroupRecord(T.CHANGE_TO_EXCLUDE, group) for group in groups)
    one.report("h9", Report(4, 3, host.mac, host.v4, records))
    other = make_world("tree", POLICY)
    for group in reversed(groups):
        other.join("h9", group, version=2)
    assert outcome(one) == outcome(other)


def test_sources_in_any_order(make_world):
    worlds = [make_world("tree", POLICY) for _ in range(2)]
    sources = [worlds[0].hosts[name].v4 for name in ("h1", "h2", "h3")]
    worlds[0].record("h9", T.ALLOW_NEW_SOURCES, SSM, *sources)
    worlds[0].record("h5", T.ALLOW_NEW_SOURCES, SSM, sources[1])
    worlds[1].record("h5", T.ALLOW_NEW_SOURCES, SSM, sources[1], sources[0])
    for source in reversed(sources):
        worlds[1].record("h9", T.ALLOW_NEW_SOURCES, SSM, source)
    worlds[1].record("h5", T.BLOCK_OLD_SOURCES, SSM, sources[0])
    assert outcome(worlds[0]) == outcome(worlds[1])


def test_a_fabric_that_came_back_holds_what_it_held(make_world):
    """Where trees are a matter of choice, the choice that was made stays."""
    world = make_world("fattree", POLICY)
    for name in ("h2", "h6", "h9"):
        world.join(name)
    world.send("h1")
    before = outcome(world)
    world.join("h16")
    world.leave("h16")
    assert outcome(world) == before
