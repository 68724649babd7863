"""Traffic of others, as the monitor sees it, counts where trees are placed, and leaves what is accounted exact."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.graph import Link
from topology.loads import LinkLoads

CAPACITY_BPS = 1e7
BOTH = TreeRole.RECEIVER | TreeRole.SENDER


def background(loads: LinkLoads, u: str, v: str) -> int:
    return loads.background_bps[loads.index[u][v]]


def test_a_link_loaded_by_others_is_avoided_by_the_next_tree(lab):
    for busy in ("s0", "s1"):
        forest = Forest(lab.leaf_spine(leaves=2, spines=2))
        assert forest.loads.measured([("t0", None, busy, 4e8), (busy, None, "t1", 4e8)])
        for group in range(4):
            forest.join(group, "t0", TreeRole.SENDER)
            forest.join(group, "t1", TreeRole.RECEIVER)
            assert busy not in forest.tree(group).adjacent


def test_reservations_since_the_last_poll_come_on_top(lab):
    """A burst of joins between two polls does not herd onto the link that was idle at the last one."""
    forest = Forest(lab.leaf_spine(leaves=2, spines=2))
    forest.loads.measured([("t0", None, "s0", 3e7)])
    for group in range(50):
        forest.join(group, "t0", TreeRole.SENDER)
        forest.join(group, "t1", TreeRole.RECEIVER)
    over = [sum(s in tree.adjacent for tree in forest) for s in ("s0", "s1")]
    assert over == [10, 40]
    assert forest.loads.load_bps("t0", "s0") == forest.loads.load_bps("t0", "s1") == 40_000_000


def test_what_the_trees_carry_themselves_is_no_background(lab):
    forest = Forest(lab.leaf_spine(leaves=2, spines=1))
    forest.join("g", "t0", TreeRole.SENDER)
    forest.join("g", "t1", TreeRole.RECEIVER)
    forest.set_rate("g", "t0", 1e8)
    forest.loads.measured([("t0", None, "s0", 1e8)])
    forest.loads.measured([("t0", None, "s0", 1e8)])
    assert background(forest.loads, "t0", "s0") == 0
    forest.loads.measured([("t0", None, "s0", 3e8)])
    assert background(forest.loads, "t0", "s0") == 200_000_000
    assert forest.loads.load_bps("t0", "s0") == 300_000_000


def test_a_reservation_made_within_the_time_that_was_measured_is_kept_whole():
    loads = LinkLoads([Link("u", "v", capacity_bps=CAPACITY_BPS)])
    loads.measured([("u", None, "v", 2e6)])
    loads.add("u", "v", 1_000_000)
    loads.measured([("u", None, "v", 2e6)])
    assert loads.load_bps("u", "v") == 3_000_000
    loads.measured([("u", None, "v", 3e6)])
    assert loads.load_bps("u", "v") == 3_000_000


def test_noise_decides_nothing(lab):
    loads = LinkLoads([Link("u", "v", capacity_bps=CAPACITY_BPS)])
    assert not loads.measured([("u", None, "v", 99_999.0), ("v", None, "u", 0.0)])
    assert loads.max_utilisation() == 0.0


def test_a_link_that_is_not_seen_any_more_has_no_background():
    loads = LinkLoads([Link("u", "v", capacity_bps=CAPACITY_BPS)])
    loads.measured([("u", None, "v", 5e6)])
    assert loads.measured([("u", None, "v", 0.0)])
    assert loads.load_bps("u", "v") == 0
    assert not loads.measured([("u", None, "elsewhere", 5e6), ("nowhere", None, "v", 5e6)])


def test_a_removed_link_takes_its_background_along():
    loads = LinkLoads([Link("u", "v", capacity_bps=CAPACITY_BPS)])
    loads.measured([("u", None, "v", 5e6)])
    loads.remove_link("u", "v")
    loads.add_link(Link("w", "x", capacity_bps=CAPACITY_BPS))
    assert list(loads.directions()) == [("w", "x", 0), ("x", "w", 0)]
    loads.measured([("w", None, "x", 2e6)])
    assert loads.load_bps("w", "x") == 2_000_000


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("seen"), st.sampled_from(("t0", "t1", "t2")), st.floats(0, 2e9)),
            st.tuples(st.sampled_from(("join", "leave")), st.sampled_from(("t0", "t1", "t2")), st.integers(0, 3)),
        ),
        max_size=40,
    )
)
def test_accounted_load_stays_exact_whatever_is_measured(lab, steps):
    measured, plain = (Forest(lab.leaf_spine(leaves=3, spines=1)) for _ in range(2))
    for what, tor, value in steps:
        if what == "seen":
            measured.loads.measured([(tor, None, "s0", value), ("s0", None, tor, value / 2)])
            continue
        for forest in (measured, plain):
            getattr(forest, what)(value, tor, BOTH)
    backgrounds = measured.loads.background_bps
    accounted = [bps - background for bps, background in zip(measured.loads.bps, backgrounds, strict=True)]
    assert accounted == plain.loads.bps
    assert min(backgrounds) >= 0
