"""LACP at ports that no link aggregation group names: told once, with what would declare the bond."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.config.load import load_policy
from controller.config.policy import LinkAggregation
from controller.config.terms import SwitchPort
from controller.discovery import undeclared_bonds
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.discovery.undeclared_bonds import QUIET_S
from controller.events import PacketReceived
from controller.rules.model import OFPP_CONTROLLER, Output
from controller.wire.frame import decode
from controller.wire.lacp import ACTIVITY, AGGREGATION, encode_lacpdu
from controller.wire.packets import Lacpdu, LacpEnd

from .conftest import World

ONE, OTHER = (1, 3), (2, 3)
HOST, STRANGER = bytes.fromhex("020000000a00"), bytes.fromhex("020000000b00")
NOBODY = LacpEnd(0, bytes(6), 0, 0, 0, 0)


@pytest.fixture(params=[1, 4])
def world(request: pytest.FixtureRequest, make_world: Callable[..., World]) -> World:
    return started(make_world, request.param)


def started(make_world: Callable[..., World], version: int = 4, *groups: LinkAggregation) -> World:
    world = make_world(DiscoverySettings(link_aggregations=groups))
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid, version=version)
    world.run(1.0)
    return world


def speak(world: World, end: tuple[int, int], system: bytes = HOST, key: int = 9) -> None:
    actor = LacpEnd(0xFFFF, system, key, 0xFF, 1, ACTIVITY | AGGREGATION)
    world.feed(PacketReceived(*end, encode_lacpdu(Lacpdu(HOST, actor, NOBODY))))


def told(world: World) -> list[str]:
    return [notice.text for notice in world.notices if notice.kind == "lacp-undeclared"]


def kept_away(world: World, end: tuple[int, int]) -> list[float]:
    rules = world.rules[end[0]].values()
    return [
        rule.hard_timeout_s
        for rule in rules
        if (rule.key.match.eth_type, rule.key.match.in_port, rule.actions) == (0x8809, end[1], ())
    ]


def test_a_port_that_hears_lacp_and_is_in_no_group_is_told_of_once(world: World):
    assert any(
        rule.key.match.eth_type == 0x8809 and rule.actions == (Output(OFPP_CONTROLLER),)
        for rule in world.rules[1].values()
    )
    speak(world, ONE)
    assert told(world) == [
        "Port 1:3 receives LACP of the system 02:00:00:00:0a:00 (key 9), and no link aggregation group names it."
    ]
    assert kept_away(world, ONE) == [QUIET_S]
    for _ in range(3):
        world.run(QUIET_S)
        speak(world, ONE)
    assert len(told(world)) == 1
    assert not any(isinstance(decode(packet.data), Lacpdu) for packet in world.sent), "it is answered by nothing"


def test_ports_that_hear_one_system_and_key_are_shown_with_the_line_that_declares_them(world: World):
    speak(world, ONE)
    speak(world, OTHER)
    text = told(world)[-1]
    assert "ports 1:3, 2:3 look like one bond" in text
    line = text.split("declares: ")[1].removesuffix(".")
    (group,) = load_policy(f"version: 1\nlink_aggregations:\n  {line}\n").link_aggregations
    assert (group.mode, group.ports) == ("lacp", (SwitchPort(*ONE), SwitchPort(*OTHER)))
    world.feed(DiscoveryChanged(DiscoverySettings(link_aggregations=(group,))))
    before = len(told(world))
    world.run(20.0)
    speak(world, ONE)
    assert len(told(world)) == before
    assert any(isinstance(decode(packet.data), Lacpdu) for packet in world.sent), "it is a leg now"


@pytest.mark.parametrize("change", [{"system": STRANGER}, {"key": 10}])
def test_another_system_or_key_is_another_bond(world: World, change: dict[str, object]):
    speak(world, ONE)
    speak(world, OTHER, **change)
    assert len(told(world)) == 2
    assert not any("look like" in text for text in told(world))


def test_a_port_that_was_down_is_told_of_anew_and_stands_in_no_bond_meanwhile(world: World):
    speak(world, ONE)
    world.port(ONE, up=False)
    world.run(20.0)
    speak(world, OTHER)
    assert "look like" not in told(world)[-1]
    world.port(ONE, up=True)
    speak(world, ONE)
    assert len(told(world)) == 3
    assert "ports 1:3, 2:3 look like one bond" in told(world)[-1]


def test_a_leg_of_a_group_of_another_mode_is_declared(make_world: Callable[..., World]):
    world = started(make_world, 4, LinkAggregation("bond", "static", (SwitchPort(*ONE), SwitchPort(*OTHER))))
    speak(world, ONE)
    assert not told(world)


def found(world: World) -> list[dict[str, object]]:
    return world.core.lacp_legs.undeclared.findings(world.now)


def declared(text: object) -> tuple[LinkAggregation, ...]:
    line = str(text).split("declares: ")[1]
    return load_policy(f"version: 1\nlink_aggregations:\n  {line}\n").link_aggregations


def test_who_checks_is_told_of_each_bond_with_the_line_that_declares_it(world: World):
    assert not found(world)
    speak(world, OTHER)
    speak(world, ONE)
    speak(world, (1, 4), STRANGER)
    bond, lone = found(world)
    assert (bond["kind"], bond["dpid"], bond["port_no"]) == ("lacp-undeclared", *ONE)
    (group,) = declared(bond["text"])
    assert (group.mode, group.ports) == ("lacp", (SwitchPort(*ONE), SwitchPort(*OTHER)))
    assert (lone["dpid"], lone["port_no"]) == (1, 4) and "with the port of the bond's other leg" in str(
        lone["text"]
    ).lower()
    world.feed(DiscoveryChanged(DiscoverySettings(link_aggregations=(group,))))
    assert found(world) == [lone]


def test_who_checks_hears_of_no_bond_that_went_silent_or_whose_port_is_down(world: World):
    speak(world, ONE)
    speak(world, OTHER)
    world.run(2 * QUIET_S)
    speak(world, OTHER)
    world.run(2 * QUIET_S)
    (lone,) = found(world)
    assert (lone["dpid"], lone["port_no"]) == OTHER
    world.port(OTHER, up=False)
    world.run(20.0)
    assert not found(world)


def test_ports_are_remembered_up_to_a_bound(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(undeclared_bonds, "PORTS_BOUND", 1)
    speak(world, ONE)
    speak(world, OTHER)
    assert "look like" not in told(world)[-1]
    assert world.core.counters["lacp-undeclared"] == 2
