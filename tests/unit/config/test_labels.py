"""The section `labels`: of which switches and ports, and every fault with its line."""

from __future__ import annotations

import json

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.terms import Labelled


def fault_of(text: str) -> tuple[int, str, str]:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    (error,) = caught.value.errors
    return error.line, error.field, error.message


def test_switches_and_ports_have_labels_by_name_and_by_any_id():
    policy = load_policy("""\
version: 1
labels:
  3: {pod: 2, rack: b7}
  leaf1: {pod: "02", edge: true}
  "leaf1:7": {room: a.1}
  0x1a: {pod: 1.5}
  "0000a2f1c3d4e5f6": {pod: x}
  "00:00:a2:f1:c3:d4:e5:f7:2": {pod: y}
  3:1: {room: b}
switches: {leaf1: {dpid: 9}}
""")
    assert policy.labels == (
        Labelled(3, None, (("pod", "2"), ("rack", "b7"))),
        Labelled(9, None, (("pod", "02"), ("edge", "true"))),
        Labelled(9, 7, (("room", "a.1"),)),
        Labelled(0x1A, None, (("pod", "1.5"),)),
        Labelled(0xA2F1C3D4E5F6, None, (("pod", "x"),)),
        Labelled(0xA2F1C3D4E5F7, 2, (("pod", "y"),)),
        Labelled(3, 1, (("room", "b"),)),
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("leaf9: {pod: 2}", "no switch of that name"),
        ('"leaf9:1": {pod: 2}', "no switch of that name"),
        ('"3:0": {pod: 2}', "is not within"),
        ('"3:eth1": {pod: 2}', "expected a whole number"),
        ("3: [pod]", "expected a mapping of labels"),
        ("3: {tier: core}", "is known of every switch"),
        ("3: {-pod: 2}", "cannot name a label"),
        ("3: {pod: b 7}", "cannot be the value of a label"),
        ("3: {pod: }", "expected a value of a label, found nothing"),
        ("3: {pod: [1]}", "expected a value of a label, found a list"),
        ("3: {" + "p" * 64 + ": 1}", "cannot name a label"),
        ("3: {pod: " + "p" * 64 + "}", "cannot be the value of a label"),
        ("3: {" + ", ".join(f"p{number}: 1" for number in range(33)) + "}", "at most 32"),
    ],
)
def test_faults_have_their_line(entry: str, message: str):
    line, at, text = fault_of(f"version: 1\nlabels:\n  {entry}\n")
    assert line == 3
    assert at.startswith("labels")
    assert message in text


def test_the_same_switch_twice_names_the_first_line():
    line, _, text = fault_of("version: 1\nlabels:\n  3: {pod: 2}\n  0x3: {pod: 3}\n")
    assert (line, text) == (4, "the same has labels already, on line 3")


def test_there_is_a_bound():
    document = {"version": 1, "labels": {str(dpid): {} for dpid in range(1, 65538)}}
    assert "at most 65536" in fault_of(json.dumps(document))[2]
