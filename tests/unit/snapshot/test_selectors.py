"""Selectors: what they choose of switches, ports, links and hosts, and where they are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from controller.snapshot.reader import DocumentCopy
from controller.snapshot.selectors import SelectorInvalid, parse_selector, selected, unknown_keys


def section(name: str, documents: dict[str, dict[str, Any]]) -> DocumentCopy:
    made = DocumentCopy(name)
    for id_, fields in documents.items():
        made.put("multicast", id_, fields, 1)
    return made


SWITCHES = section(
    "switches",
    {
        "1": {"dpid": 1, "name": "leaf1", "tier": "tor", "connected": True, "labels": {"pod": "1", "rack": "b7"}},
        "2": {"dpid": 2, "name": "leaf2", "tier": "tor", "connected": False, "labels": {"pod": "2"}},
        "9": {"dpid": 9, "name": None, "tier": "core", "connected": True, "drained": True, "in_sync": False},
    },
)
PORTS = section(
    "ports",
    {
        "1:1": {"dpid": 1, "port_no": 1, "name": "cam", "role": "edge", "labels": {"room": "a", "rack": "c1"}},
        "1:2": {"dpid": 1, "port_no": 2, "name": "up", "role": "trunk", "labels": {}},
        "9:1": {"dpid": 9, "port_no": 1, "name": "down", "role": "trunk"},
    },
)
LINKS = section(
    "links",
    {
        "1:2-9:1": {"dpid_a": 1, "port_a": 2, "dpid_b": 9, "port_b": 1},
        "1:3-2:3": {"dpid_a": 1, "port_a": 3, "dpid_b": 2, "port_b": 3, "state": "failed"},
    },
)
HOSTS = section("hosts", {"m1": {"mac": "m1", "dpid": 1, "port_no": 1}, "m2": {"mac": "m2", "dpid": 2, "port_no": 5}})


@pytest.mark.parametrize(
    ("what", "selector", "ids"),
    [
        (SWITCHES, "tier=tor", ["1", "2"]),
        (SWITCHES, "tier==tor , pod=2", ["2"]),
        (SWITCHES, "rack!=b7", ["2", "9"]),
        (SWITCHES, "dpid=0x9", ["9"]),
        (SWITCHES, "dpid!=0000000000000009", ["1", "2"]),
        (SWITCHES, "name=leaf1", ["1"]),
        (SWITCHES, "state=disconnected", ["2"]),
        (SWITCHES, "state=drained,state=not-in-sync,state=up", ["9"]),
        (PORTS, "pod=1", ["1:1", "1:2"]),
        (PORTS, "rack=b7", ["1:2"]),
        (PORTS, "room=a", ["1:1"]),
        (PORTS, "state=trunk,tier=core", ["9:1"]),
        (PORTS, "name=cam", ["1:1"]),
        (PORTS, "name=leaf1", ["1:1", "1:2"]),
        (LINKS, "pod=1,pod=2", ["1:3-2:3"]),
        (LINKS, "tier=core", ["1:2-9:1"]),
        (LINKS, "tier!=core", ["1:3-2:3"]),
        (LINKS, "state=up", ["1:2-9:1"]),
        (LINKS, "state=failed", ["1:3-2:3"]),
        (HOSTS, "room=a", ["m1"]),
        (HOSTS, "pod=2", ["m2"]),
        (HOSTS, "state=edge", ["m1"]),
        (HOSTS, "pod=7", []),
    ],
)
def test_what_is_chosen(what: DocumentCopy, selector: str, ids: list[str]):
    found = selected(what.in_order(), parse_selector(selector), SWITCHES, PORTS)
    assert [document.id for document in found] == ids


@pytest.mark.parametrize(
    ("selector", "position", "message"),
    [
        ("", 1, "expected a key"),
        ("tier=core,", 11, "expected a key"),
        ("tier=core,,pod=2", 11, "expected a key"),
        ("tier", 5, "expected = or !="),
        ("tier=core,pod", 14, "expected = or !="),
        ("tier=core,pod=", 15, "expected a value of pod"),
        ("pod=1=2", 4, "expected = or !="),
        ("pod>1", 4, "expected = or !="),
        ("pod=2, =3", 8, "expected a key"),
        ("pod=2,dpid=leaf1", 12, "is no datapath id"),
        (",".join(["pod=2"] * 33), 193, "at most 32 conditions"),
        ("pod=" + "2" * 1024, 1025, "at most 1024 characters"),
    ],
)
def test_faults_have_their_position(selector: str, position: int, message: str):
    with pytest.raises(SelectorInvalid, match=f"^position {position}: ") as caught:
        parse_selector(selector)
    assert message in str(caught.value)


def test_keys_that_nothing_has_are_told():
    assert unknown_keys(SWITCHES.in_order(), parse_selector("rakc=b7,pod=9"), SWITCHES, PORTS) == ["rakc"]
