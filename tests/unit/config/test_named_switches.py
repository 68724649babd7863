"""The policy's section `switches`, and datapath ids in their usual spellings."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.terms import NamedSwitch, SwitchPort

NAMED = """
version: 1
switches:
  leaf1: {dpid: "0000a2f1c3d4e5f6", ports: {1: uplink, 0x2: cam 7}}
  spine 2: {dpid: 0x1a}
  tor.3: {dpid: 27}
multicast:
  router_ports:
    static:
      - {dpid: leaf1, port: 3}
      - {dpid: "00:00:a2:f1:c3:d4:e5:f6", port: 4}
      - {dpid: 0000a2f1c3d4e5f6, port: 5}
      - {dpid: "0000000000000010", port: 6}
      - {dpid: 179187153823222, port: 7}
"""


def test_switches_and_ports_have_names_that_ports_are_told_by() -> None:
    policy = load_policy(NAMED)
    assert policy.switches == (
        NamedSwitch("leaf1", 0xA2F1C3D4E5F6, ((1, "uplink"), (2, "cam 7"))),
        NamedSwitch("spine 2", 0x1A),
        NamedSwitch("tor.3", 27),
    )
    leaf = 0xA2F1C3D4E5F6
    assert policy.multicast.router_ports.static == {
        *(SwitchPort(leaf, port_no) for port_no in (3, 4, 5)),
        SwitchPort(0x10, 6),
        SwitchPort(179187153823222, 7),
    }


@pytest.mark.parametrize(
    ("text", "line", "field", "message"),
    [
        ("  leaf1: {}", 4, "switches.leaf1.dpid", "missing"),
        ("  leaf1: {dpid: 0}", 4, "switches.leaf1.dpid", "not within 1 and"),
        ("  leaf1: {dpid: '0x0'}", 4, "switches.leaf1.dpid", "is no datapath id"),
        ("  leaf1: {dpid: 0000000000000012}", 4, "switches.leaf1.dpid", "put it in quotes"),
        ("  leaf1: {dpid: 1, prots: {}}", 4, "switches.leaf1.prots", "did you mean"),
        ("  '12': {dpid: 1}", 4, "switches.12", "could not be taken for a datapath id"),
        ("  'a/b': {dpid: 1}", 4, "switches['a/b']", "cannot name a switch"),
        ("  a: {dpid: 1}\n  b: {dpid: '0x1'}", 5, "switches.b.dpid", "has a name already, on line 4"),
        ("  a: {dpid: 1, ports: {0: up}}", 4, "switches.a.ports.0", "not within 1 and"),
        ("  a: {dpid: 1, ports: {1: '7'}}", 4, "switches.a.ports.1", "cannot name a port"),
        ("  a: {dpid: 1, ports: {1: up, 2: up}}", 4, "switches.a.ports.2", "already the name of another port"),
    ],
)
def test_a_fault_is_told_with_its_place(text: str, line: int, field: str, message: str) -> None:
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(f"version: 1\n# names\nswitches:\n{text}\n")
    (error,) = caught.value.errors
    assert (error.line, error.field) == (line, field)
    assert message in error.message


def test_an_unknown_name_of_a_switch_is_told_with_the_one_that_was_meant() -> None:
    text = "version: 1\nswitches: {leaf1: {dpid: 1}}\ntenants: {a: [{dpid: leaf11, port: 1}]}\n"
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(text)
    assert "did you mean" in caught.value.errors[0].message
