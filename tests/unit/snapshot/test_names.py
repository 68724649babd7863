"""What switches and ports are called: by the policy, by themselves, by their ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config.terms import NamedSwitch
from controller.events import Port
from controller.snapshot import names
from controller.snapshot.names import Names
from controller.wire.dpids import MAX_DPID, format_dpid, parse_dpid

LEAF, HEX = 0xA2F1C3D4E5F6, "0000a2f1c3d4e5f6"


def port(port_no: int, name: str) -> Port:
    return Port(port_no, name, bytes(6), True, 1e9)


@pytest.mark.parametrize(
    ("text", "dpid"),
    [
        (HEX, LEAF),
        (HEX.upper(), LEAF),
        ("00:00:a2:f1:c3:d4:e5:f6", LEAF),
        ("0xa2f1c3d4e5f6", LEAF),
        (str(LEAF), LEAF),
        ("26", 26),
        ("0000000000000026", 0x26),
        ("1234567890123456", 0x1234567890123456),
        ("18446744073709551615", MAX_DPID),
    ],
)
def test_a_datapath_id_is_read_in_every_usual_spelling(text: str, dpid: int) -> None:
    assert parse_dpid(text) == dpid


@pytest.mark.parametrize(
    "text", ["", "0", "0x", "0x0", "leaf1", "a2f1", "-1", "18446744073709551616", "0" * 16, "1 "]
)
def test_what_is_no_datapath_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no datapath id"):
        parse_dpid(text)


@given(st.integers(1, MAX_DPID))
def test_what_is_printed_is_read_again(dpid: int) -> None:
    assert parse_dpid(format_dpid(dpid)) == dpid
    assert parse_dpid(hex(dpid)) == dpid


def test_the_policy_names_first_then_the_switch_then_its_id() -> None:
    found = Names()
    assert (found.switch(LEAF), found.label(LEAF), found.label(LEAF, 3)) == (None, HEX, f"{HEX}:3")
    assert found.described(LEAF, " s1 ") == [LEAF]
    assert (found.switch(LEAF), found.label(LEAF, 3)) == ("s1", "s1:3")
    found.configure([NamedSwitch("leaf1", LEAF, ((3, "uplink"),))])
    found.ports_described(LEAF, [port(3, "s1-eth3"), port(4, "s1-eth4")])
    assert (found.switch(LEAF), found.port(LEAF, 3), found.port(LEAF, 4)) == ("leaf1", "uplink", "s1-eth4")
    found.port_described(LEAF, port(4, "s1-eth4"), True)
    assert found.port(LEAF, 4) is None
    found.configure([])
    assert (found.switch(LEAF), found.port(LEAF, 3)) == ("s1", "s1-eth3")


def test_a_description_that_two_switches_have_names_neither() -> None:
    found = Names()
    found.described(1, "br0")
    assert found.described(2, "br0") == [1, 2]
    assert (found.switch(1), found.switch(2)) == (None, None)
    assert found.described(2, "br1") == [1, 2]
    assert (found.switch(1), found.switch(2)) == ("br0", "br1")
    found.configure([NamedSwitch("br1", 3)])
    assert (found.switch(2), found.switch(3)) == (None, "br1")


@pytest.mark.parametrize(
    "text", ["", "None", "none", "12", HEX, "0x1a", "a/b", "x" * 65, "\x1b[31m", "a:1", "<b>", "é"]
)
def test_a_description_that_is_no_name_names_nothing(text: str) -> None:
    found = Names()
    found.described(LEAF, text)
    assert found.switch(LEAF) is None


def test_descriptions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "DESCRIBED_BOUND", 2)
    found = Names()
    for dpid in (1, 2, 3):
        found.described(dpid, f"s{dpid}")
    assert [found.switch(dpid) for dpid in (1, 2, 3)] == [None, "s2", "s3"]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("switch 1 is gone", "switch leaf1 is gone"),
        ("port 1:49: link down", "port leaf1:49: link down"),
        (f"Switch {LEAF} sent it", f"Switch {HEX} sent it"),
        ("a table of switch 1 is full", "a table of switch leaf1 is full"),
        ("port 7 of it, and export 1:2, stay", "port 7 of it, and export 1:2, stay"),
        ("the link of switch 1 and switch 2 is down", "the link of switch leaf1 and switch 0000000000000002 is down"),
    ],
)
def test_messages_of_cores_have_names_in_the_place_of_ids(text: str, spoken: str) -> None:
    assert Names([NamedSwitch("leaf1", 1)]).spoken(text) == spoken
