"""The list `vlans.mvr`: what it may say, every fault with its line, and the index against a search of all lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config import PolicyInvalid, load_policy
from controller.config.read_registrations import MAX_REGISTERED_GROUPS, MAX_REGISTRATIONS
from controller.config.registrations import Registration, Registrations
from controller.config.terms import Prefix, mask_address, parse_prefix
from controller.kernel.domains import in_domain
from controller.wire.addresses import parse_name

BEFORE = """\
version: 1
vlans:
  names: {20: home, 30: shop, 100: tv}
  ports: [{switches: [1], trunk: [31, 32]}]
  mvr:
"""


def loaded(*lines: str) -> Registrations:
    return load_policy(BEFORE + "".join(f"    - {{{line}}}\n" for line in lines)).registrations


def faults_of(*lines: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        loaded(*lines)
    return [(error.line, error.field, error.message) for error in caught.value.errors]


def carried(registrations: Registrations, *names: str) -> list[str]:
    """Return those of some groups, by name, that come from another VLAN, as ``group@vlan from vlan``."""
    found = []
    for name in names:
        entry = registrations.registration(parse_name(name))
        if entry is not None:
            assert registrations.carrier(parse_name(name)) == in_domain(
                parse_name(name.partition("@")[0]), entry.source_vlan
            )
            found.append(f"{name} from {entry.source_vlan}")
    return found


def test_vlans_are_named_in_every_way():
    registrations = loaded(
        'source_vlan: tv, groups: [239.5.0.0/16, "ff1e:5::/32"], receiver_vlans: [20, shop, 31-32]',
        "source_vlan: 30, groups: [239.6.1.1], receiver_vlans: [untagged]",
    )
    (first, second) = registrations.entries
    assert (first.source_vlan, first.receiver_vlans, first.line) == (100, {20, 30, 31, 32}, 6)
    assert (second.source_vlan, second.receiver_vlans, second.line) == (30, {0}, 7)
    assert carried(
        registrations, "239.5.1.1@20", "239.5.1.1@100", "239.5.1.1@33", "239.5.1.1", "239.4.1.1@20", "ff1e:5::1@31"
    ) == ["239.5.1.1@20 from 100", "ff1e:5::1@31 from 100"]
    assert carried(registrations, "239.6.1.1", "239.6.1.1@20") == ["239.6.1.1 from 30"]
    assert list(registrations.asked_for_as(parse_name("239.5.1.1@100"))) == [
        parse_name(f"239.5.1.1@{vlan_id}") for vlan_id in (100, 20, 30, 31, 32)
    ]
    assert list(registrations.asked_for_as(parse_name("239.6.1.1@30"))) == list(
        map(parse_name, ("239.6.1.1@30", "239.6.1.1"))
    )
    assert list(registrations.asked_for_as(parse_name("239.9.1.1@100"))) == [parse_name("239.9.1.1@100")]


def test_nothing_is_registered_where_nothing_is_said():
    assert load_policy("version: 1\n").registrations == Registrations()
    assert not load_policy(BEFORE + "    []\n").registrations.is_used


def test_the_same_lines_elsewhere_are_the_same():
    line = "source_vlan: 100, groups: [239.5.1.1], receiver_vlans: [20]"
    assert loaded(line) == load_policy(BEFORE + f"\n\n    - {{{line}}}\n").registrations


def test_groups_within_each_other_may_go_to_different_vlans():
    registrations = loaded(
        "source_vlan: 100, groups: [239.0.0.0/8, 239.5.0.0/16], receiver_vlans: [20]",
        "source_vlan: 31, groups: [239.5.0.0/16], receiver_vlans: [30]",
    )
    assert carried(registrations, "239.5.1.1@20", "239.5.1.1@30", "239.6.1.1@30") == [
        "239.5.1.1@20 from 100",
        "239.5.1.1@30 from 31",
    ]


GOOD = {"source_vlan": "100", "groups": "[239.5.1.1]", "receiver_vlans": "[20]"}


@pytest.mark.parametrize(
    ("key", "value", "field", "message"),
    [
        ("source_vlan", "33", "", "no port is in VLAN 33, and the section gives it no name"),
        ("source_vlan", "0", "", "0 is not within 1 and 4094"),
        ("source_vlan", "[100]", "", "expected a VLAN, or its name, found a list"),
        ("source_vlan", "31-32", "", "expected a VLAN, or its name, found the text '31-32'"),
        ("source_vlan", "untagged", "", "expected a VLAN, or its name, found the text 'untagged'"),
        ("source_vlan", "hom", "", "no VLAN is called 'hom'; did you mean 'home'?"),
        ("groups", "[10.0.0.1]", "[0]", "'10.0.0.1' is not within the multicast addresses"),
        ("groups", '["fd00::/64"]', "[0]", "'fd00::/64' is not within the multicast addresses"),
        ("groups", "[239.5.1.1, 224.0.0.251]", "[1]", "'224.0.0.251' is link scope, which is never subject to"),
        ("groups", "[239.5.1.1/16]", "[0]", "has host bits set"),
        ("groups", "[5]", "[0]", "expected a group or prefix of groups, found the number '5'"),
        ("groups", "[]", "", "no groups, so that nothing is registered"),
        ("groups", "239.5.1.1", "", "expected a list of groups, found the text '239.5.1.1'"),
        ("receiver_vlans", "[20, 33]", "[1]", "no port is in VLAN 33, and the section gives it no name"),
        ("receiver_vlans", "[31-34]", "[0]", "no port is in VLAN 33, and the section gives it no name"),
        ("receiver_vlans", "[32-31]", "[0]", "the range 32-31 is upside down"),
        ("receiver_vlans", "[4095]", "[0]", "4095 is not within 1 and 4094"),
        ("receiver_vlans", "[shopp]", "[0]", "no VLAN is called 'shopp'; did you mean 'shop'?"),
        ("receiver_vlans", "[all]", "[0]", "expected a VLAN, its name, a range such as 30-35, or untagged"),
        ("receiver_vlans", "[]", "", "no receiver VLANs, so that nothing is registered"),
        ("receiver_vlans", "[20, 100]", "", "VLAN 100 is the source VLAN itself"),
    ],
)
def test_what_cannot_be_said(key: str, value: str, field: str, message: str):
    line = ", ".join(f"{name}: {text}" for name, text in {**GOOD, key: value}.items())
    ((at, where, text),) = faults_of(line)
    assert (at, where) == (6, f"vlans.mvr[0].{key}{field}")
    assert message in text


def test_a_missing_key_and_a_wrong_entry_are_told():
    assert faults_of("source_vlan: 100, groups: [239.5.1.1]") == [(6, "vlans.mvr[0].receiver_vlans", "missing")]
    with pytest.raises(PolicyInvalid, match=r"vlans\.mvr\[0\]: expected a mapping such as \{source_vlan: 100"):
        load_policy(BEFORE + "    - 100\n")


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (
            "source_vlan: 100, groups: [239.5.0.0/16], receiver_vlans: [20, 30]",
            "source_vlan: 31, groups: [239.4.1.1, 239.5.1.1], receiver_vlans: [30, 32]",
            "VLAN 30 gets 239.5.1.1, which the entry on line 6 overlaps, from VLAN 100 already",
        ),
        (
            "source_vlan: 100, groups: [239.5.1.1], receiver_vlans: [untagged]",
            "source_vlan: 100, groups: [239.4.1.1, 239.0.0.0/8], receiver_vlans: [untagged]",
            "the fabric's own domain gets 239.0.0.0/8, which the entry on line 6 overlaps, from VLAN 100 already",
        ),
        (
            "source_vlan: 100, groups: [239.5.1.1], receiver_vlans: [20]",
            "source_vlan: 20, groups: [239.4.1.1, 239.5.0.0/16], receiver_vlans: [30]",
            "VLAN 20 gets 239.5.0.0/16, which the entry on line 6 overlaps, from VLAN 100 itself",
        ),
        (
            'source_vlan: 20, groups: ["ff1e::/32"], receiver_vlans: [30]',
            'source_vlan: 100, groups: [239.4.1.1, "ff1e::1"], receiver_vlans: [20]',
            "VLAN 20 gets ff1e::1, which the entry on line 6 overlaps, from here, and gives it to others there",
        ),
    ],
)
def test_two_lines_that_do_not_go_together_are_a_fault_of_the_later_one(one: str, other: str, message: str):
    assert faults_of(one, other) == [(7, "vlans.mvr[1].groups[1]", message)]


def test_there_are_bounds():
    def text(lines: int, groups: int) -> str:
        entry = {"source_vlan": 1, "receiver_vlans": [2]}
        entries = [entry | {"groups": [f"239.{n >> 8}.{n & 255}.1"]} for n in range(1, lines)]
        last = entry | {"groups": [f"238.{n >> 8}.{n & 255}.1" for n in range(groups - lines + 1)]}
        return json.dumps({"version": 1, "vlans": {"names": {"1": "a", "2": "b"}, "mvr": [*entries, last]}})

    assert len(load_policy(text(MAX_REGISTRATIONS, MAX_REGISTERED_GROUPS)).registrations.entries) == MAX_REGISTRATIONS
    for lines, groups, message in (
        (MAX_REGISTRATIONS + 1, MAX_REGISTRATIONS + 1, "1025 entries; at most 1024 are supported"),
        (1, MAX_REGISTERED_GROUPS + 1, "4097 groups; at most 4096 are supported"),
    ):
        with pytest.raises(PolicyInvalid, match=message):
            load_policy(text(lines, groups))


ADDRESSES = st.sampled_from(
    [parse_name(text) for text in ("239.5.1.1", "239.5.2.1", "239.6.1.1", "ff1e::1", "ff1e::2")]
)
PREFIXES = st.tuples(ADDRESSES, st.sampled_from((8, 16, 24, 32))).map(
    lambda pair: Prefix(mask_address(pair[0], pair[1]), pair[1])
)
VLANS = st.integers(1, 5)
ENTRIES = st.builds(
    Registration,
    VLANS,
    st.lists(PREFIXES, min_size=1, max_size=2).map(tuple),
    st.frozensets(VLANS | st.just(0), min_size=1, max_size=3),
)


def text_of(entries: list[Registration]) -> str:
    def line(entry: Registration) -> dict[str, Any]:
        receivers = [vlan_id or "untagged" for vlan_id in sorted(entry.receiver_vlans)]
        groups = [str(prefix) for prefix in entry.groups]
        return {"source_vlan": entry.source_vlan, "groups": groups, "receiver_vlans": receivers}

    names = {str(vlan_id): f"v{vlan_id}" for vlan_id in range(1, 6)}
    return json.dumps({"version": 1, "vlans": {"names": names, "mvr": [line(entry) for entry in entries]}})


def clash(one: Registration, other: Registration) -> bool:
    """Tell whether two lines, or one by itself, say two things of a group."""
    if one is other:
        return one.source_vlan in one.receiver_vlans
    overlap = any(
        first.contains(second.network) or second.contains(first.network)
        for first in one.groups
        for second in other.groups
    )
    return overlap and bool({other.source_vlan, *other.receiver_vlans} & one.receiver_vlans)


@settings(max_examples=300)
@given(st.lists(ENTRIES, max_size=4), ADDRESSES)
def test_the_reader_refuses_what_has_no_one_answer_and_the_index_finds_what_a_search_finds(
    entries: list[Registration], address: bytes
):
    def giving(vlan_id: int) -> set[int]:
        """Return the positions of the lines that give a VLAN the group."""
        return {
            index
            for index, entry in enumerate(entries)
            if vlan_id in entry.receiver_vlans and any(prefix.contains(address) for prefix in entry.groups)
        }

    has_one_answer = not any(clash(one, other) for one in entries for other in entries)
    try:
        registrations = load_policy(text_of(entries)).registrations
    except PolicyInvalid:
        assert not has_one_answer
        return
    assert has_one_answer
    assert registrations == Registrations(tuple(entries))
    for vlan_id in range(6):
        found = giving(vlan_id)
        assert len(found) <= 1
        name = in_domain(address, vlan_id)
        sources = {entries[index].source_vlan for index in found}
        assert {registrations.carrier(name)} == ({in_domain(address, source) for source in sources} or {name})
        assert not any(giving(source) for source in sources)
        asked = set(registrations.asked_for_as(name)) - {name}
        assert asked == {
            in_domain(address, other)
            for other in range(6)
            if registrations.carrier(in_domain(address, other)) == name
        } - {name}


def test_an_entry_that_overlaps_itself_is_one():
    entry = Registration(100, (parse_prefix("239.5.0.0/16"), parse_prefix("239.5.1.1")), frozenset({20}))
    assert loaded("source_vlan: 100, groups: [239.5.0.0/16, 239.5.1.1], receiver_vlans: [20]").entries == (entry,)
