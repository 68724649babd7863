"""Which VLANs a port is in: the index against a search of all entries, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config.terms import Labelled, SwitchPort
from controller.config.vlans import UNTAGGED_ONLY, Conflict, PortVlans, VlanEntry, Vlans

STORAGE, VIDEO = PortVlans(10, frozenset()), PortVlans(10, frozenset({20}))

DPIDS, PORTS, TIERS = range(1, 4), range(1, 4), ("tor", "core", None)
ELSEWHERE, OTHER_PORT = 9, 7
"""A switch and a port that no entry lists and that have no labels."""

SAID = st.sampled_from([UNTAGGED_ONLY, STORAGE, VIDEO, PortVlans(None, frozenset({20, 30}))])
LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), min_size=1).map(
    lambda labels: tuple(labels.items())
)
PLACES = st.builds(SwitchPort, st.sampled_from(DPIDS), st.sampled_from(PORTS))
ENTRIES = (
    st.builds(VlanEntry, SAID, ports=st.lists(PLACES, min_size=1, max_size=3).map(tuple))
    | st.builds(VlanEntry, SAID, switches=st.lists(st.sampled_from(DPIDS), min_size=1, max_size=2).map(tuple))
    | st.builds(VlanEntry, SAID, labels=LABELS)
    | st.builds(VlanEntry, SAID, tier=st.sampled_from(("tor", "core")))
)
LABELLED = st.dictionaries(
    st.tuples(st.sampled_from(DPIDS), st.sampled_from([None, *PORTS])), LABELS, max_size=8
).map(lambda found: tuple(Labelled(*place, labels) for place, labels in found.items()))


def about(vlans: Vlans, dpid: int, port_no: int, tier: str | None) -> Iterator[tuple[int, PortVlans]]:
    """Yield how specific each entry about a port is (0 the most), and what it says, by looking at all of them."""
    labels = {(labelled.dpid, labelled.port_no): dict(labelled.labels) for labelled in vlans.labels}
    own, of_switch = labels.get((dpid, port_no), {}), labels.get((dpid, None), {})
    for entry in vlans.entries:
        if (dpid, port_no) in entry.ports:
            yield 0, entry.vlans
        if entry.labels and set(entry.labels) <= {**of_switch, **own}.items():
            yield 1 if own.keys() & dict(entry.labels).keys() else 2, entry.vlans
        if dpid in entry.switches:
            yield 3, entry.vlans
        if tier is not None and entry.tier == tier:
            yield 4, entry.vlans


@settings(max_examples=500)
@given(st.builds(Vlans, default=SAID, entries=st.lists(ENTRIES, max_size=6).map(tuple), labels=LABELLED))
def test_the_most_specific_entry_decides_and_two_that_differ_are_a_conflict(vlans: Vlans):
    decided, disputed = set(), False
    for dpid in (*DPIDS, ELSEWHERE):
        for port_no in (*PORTS, OTHER_PORT):
            for tier in TIERS:
                found = sorted(about(vlans, dpid, port_no, tier), key=lambda entry: entry[0])
                deciding = [said for rank, said in found if rank == found[0][0]] or [vlans.default]
                disputed = disputed or len(set(deciding)) > 1
                decided.add(deciding[0])
                assert vlans.of(dpid, port_no, tier) == deciding[0]
    assert bool(vlans.conflicts) == disputed
    assert vlans.is_used or decided == {UNTAGGED_ONLY}
    for first, second, _ in vlans.conflicts:
        assert vlans.entries[first].vlans != vlans.entries[second].vlans


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ({"ports": (SwitchPort(1, 2),)}, "port 1:2"),
        ({"switches": (5,)}, "switch 5"),
        ({"labels": (("a", "x"),)}, "port 3:1"),
        ({"tier": "tor"}, "tier tor"),
    ],
)
def test_a_conflict_names_what_it_is_about(where: dict[str, Any], place: str):
    entries = (VlanEntry(STORAGE, **where), VlanEntry(STORAGE, **where), VlanEntry(VIDEO, **where))
    vlans = Vlans(entries=entries, labels=(Labelled(3, 1, (("a", "x"),)),))
    assert vlans.conflicts == (Conflict(0, 2, place),)


def test_nothing_is_used_where_nothing_is_said():
    assert not Vlans().is_used
    assert Vlans().all_vlans() == frozenset()
    assert Vlans().of(1, 2, "tor") == Vlans().of(1, 2, None) == UNTAGGED_ONLY
    assert not Vlans(names=((10, "storage"),)).is_used
    assert not Vlans(entries=(VlanEntry(UNTAGGED_ONLY, switches=(1,)),)).is_used
    assert not Vlans(entries=(VlanEntry(STORAGE, labels=(("a", "x"),)),)).is_used  # which no port has
    assert Vlans(entries=(VlanEntry(STORAGE, tier="core"),)).is_used
    assert Vlans(default=STORAGE).is_used


def test_vlans_of_a_port_and_of_all_ports():
    trunk = PortVlans(None, frozenset({30, 31}))
    assert VIDEO.vlans() == {10, 20}
    assert UNTAGGED_ONLY.vlans() == {0}
    assert trunk.vlans() == {30, 31}
    vlans = Vlans(names=((40, "lab"),), default=VIDEO, entries=(VlanEntry(trunk, tier="tor"),))
    assert vlans.all_vlans() == {10, 20, 30, 31, 40}
    assert [vlans.name(vlan_id) for vlan_id in (40, 10, 0)] == ["lab", "10", "untagged"]


def test_lines_and_what_is_derived_make_no_difference():
    entry = VlanEntry(STORAGE, ports=(SwitchPort(1, 2),), line=3)
    assert Vlans(entries=(entry,)) == Vlans(entries=(VlanEntry(STORAGE, ports=(SwitchPort(1, 2),), line=9),))
    assert Vlans(entries=(entry,)) != Vlans(entries=(entry,), default=VIDEO)
    assert hash(Vlans(entries=(entry,))) == hash(Vlans(entries=(entry,)))
