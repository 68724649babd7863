"""Static members of the policy file: beside those of operators, over reloads and restarts, and what they wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.config.policy import Policy, StaticMember
from controller.config.settings import Limits, Multicast
from controller.config.terms import NamedSwitch, SwitchPort
from controller.effects import ActionRefused, ActionTaken
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from topology.events import PortRole, PortRoleChanged

NAME, OTHER = "239.1.2.3", "239.1.2.4"
GROUP = parse_ip(NAME)
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6, groups_per_port=8),
    multicast=Multicast(fast_leave=True),
)


def given(*places: tuple[int, int], policy: Policy = POLICY, group: str = NAME) -> Policy:
    """Return a policy that gives ports a group, each on a line of its own."""
    members = tuple(
        StaticMember(parse_ip(group), SwitchPort(*place), 12 + number) for number, place in enumerate(places)
    )
    return replace(policy, static_members=policy.static_members + members)


def place_of(world: Any, name: str) -> tuple[int, int]:
    return world.hosts[name].place


def static(world: Any, group: str = NAME) -> list[dict[str, Any]]:
    """Return what the group's document says of static members."""
    world.core.sections.refresh(world.now)
    answer = world.core.sections.groups.changes(0, 1000)["put"].get(group)
    return answer["static_members"] if answer else []


def do(world: Any, what: str, place: tuple[int, int], group: str = NAME) -> Any:
    return world.do(f"static-member-{what}", group=group, dpid=place[0], port_no=place[1])


def load(world: Any, policy: Policy) -> None:
    world.policy = policy
    world.feed(PolicyLoaded(policy))


def test_the_policy_gives_a_port_a_group_whatever_hosts_say(make_world, version):
    plan = make_world("fattree", POLICY, version)
    world = make_world("fattree", given(place_of(plan, "h9")), version)
    assert world.send("h1") == {"h9": 1}
    world.join("h9")
    world.leave("h9")
    world.settle()
    assert world.send("h1") == {"h9": 1}
    dpid, port_no = place_of(world, "h9")
    assert static(world) == [
        {"dpid": dpid, "port_no": port_no, "set_by": "policy", "served": True, "waiting_for": None}
    ]
    ports = world.core.sections.ports.changes(0, 1000)["put"]
    assert ports[f"{dpid}:{port_no}"]["static_members"] == [
        {"group": NAME, "set_by": "policy", "served": True, "waiting_for": None}
    ]


def test_a_reload_changes_only_the_difference_without_loss(make_world):
    world = make_world("fattree", POLICY)
    h2, h6, h9 = (place_of(world, name) for name in ("h2", "h6", "h9"))
    load(world, given(h2, h6))
    world.send("h1")
    world.settle()
    assert world.send("h1") == {"h2": 1, "h6": 1}
    applied = world.applied
    load(world, given(h6, h2))
    world.settle()
    assert world.applied == applied
    load(world, given(h6, h9))
    for _ in world.steps():
        assert world.send("h1")["h6"] == 1
    assert world.send("h1") == {"h6": 1, "h9": 1}


def test_both_sets_live_side_by_side(make_world):
    world = make_world("leaf-spine", POLICY)
    place = place_of(world, "h3")
    load(world, given(place))
    refusal = do(world, "remove", place)
    assert isinstance(refusal, ActionRefused)
    assert "static_members on line 12 of the policy file" in refusal.text
    assert isinstance(do(world, "add", place), ActionTaken)
    load(world, POLICY)
    world.settle()
    world.send("h1")
    world.settle()
    assert world.send("h1") == {"h3": 1}
    assert static(world)[0]["set_by"] == "operator"
    load(world, given(place))
    answer = do(world, "remove", place)
    assert isinstance(answer, ActionTaken)
    assert (answer.document["present"], answer.document["set_by"]) == (True, "policy")
    world.settle()
    assert world.send("h1") == {"h3": 1}
    load(world, POLICY)
    world.settle()
    assert world.send("h1") == {}


def test_it_waits_for_a_switch_and_a_port(make_world):
    world = make_world("leaf-spine", POLICY)
    place = place_of(world, "h3")
    world.disconnect(place[0])
    load(world, given(place, (77, 1)))
    waiting = {(at["dpid"], at["port_no"]): at["waiting_for"] for at in static(world)}
    assert waiting[place] == f"switch {place[0]:016x} is not connected"
    assert waiting[77, 1] == f"switch {77:016x} is not connected"
    world.now += 2
    world.core.sections.refresh(world.now)
    assert world.core.sections.status.changes(0, 10)["put"]["status"]["static_members_waiting"] == 2
    world.reconnect(place[0])
    world.settle()
    world.send("h1")
    world.settle()
    assert world.send("h1") == {"h3": 1}
    world.feed(PortRoleChanged(*place, PortRole.DOWN))
    assert static(world)[0]["waiting_for"] == f"port {place[0]:016x}:{place[1]} leads to no hosts yet"
    world.feed(PortRoleChanged(*place, PortRole.EDGE))
    world.settle()
    assert world.send("h1") == {"h3": 1}
    load(world, given((place[0], 99)))
    assert static(world)[0]["waiting_for"] == f"switch {place[0]:016x} has no port 99"


def test_a_switch_that_is_away_and_comes_back_serves_them_again(make_world, version):
    world = make_world("fattree", POLICY, version)
    place = place_of(world, "h9")
    load(world, given(place))
    world.send("h1")
    world.settle()
    world.disconnect(place[0])
    world.settle()
    assert not static(world)[0]["served"]
    world.reconnect(place[0])
    world.settle()
    world.send("h1")
    world.settle()
    assert world.send("h1") == {"h9": 1}


def test_it_waits_for_room_and_is_served_when_there_is_some(make_world):
    narrow = replace(POLICY, limits=replace(POLICY.limits, groups=1))
    world = make_world("leaf-spine", narrow)
    place = place_of(world, "h3")
    world.join("h1", parse_ip(OTHER))
    world.settle()
    load(world, given(place, policy=narrow))
    assert static(world)[0]["waiting_for"] == "1 groups have a tree, as many as limits.groups allows"
    world.leave("h1", parse_ip(OTHER))
    world.advance(1.0)
    assert static(world)[0]["served"]
    world.send("h2")
    world.settle()
    assert world.send("h2") == {"h3": 1}


def test_a_group_that_nobody_receives_gives_way(make_world):
    narrow = replace(POLICY, limits=replace(POLICY.limits, groups=1))
    world = make_world("leaf-spine", narrow)
    world.send("h1", parse_ip(OTHER))
    world.settle()
    load(world, given(place_of(world, "h3"), policy=narrow))
    world.settle()
    assert static(world)[0]["served"]
    assert len(world.core.forest) == 1


def test_it_waits_while_its_port_is_given_as_many_groups_as_it_may(make_world):
    narrow = replace(POLICY, limits=replace(POLICY.limits, groups_per_port=1))
    world = make_world("leaf-spine", narrow)
    place = place_of(world, "h3")
    load(world, given(place, policy=given(place, policy=narrow), group=OTHER))
    assert "as many as limits.groups_per_port allows" in static(world, OTHER)[0]["waiting_for"]
    load(world, given(place, policy=narrow, group=OTHER))
    world.settle()
    assert static(world, OTHER)[0]["served"]
    assert static(world) == []


def test_operators_may_name_a_switch_that_is_away_if_it_is_known(make_world):
    world = make_world("leaf-spine", POLICY)
    place = place_of(world, "h3")
    world.disconnect(place[0])
    answer = do(world, "add", place)
    assert isinstance(answer, ActionTaken)
    assert not answer.document["served"]
    assert answer.document["waiting_for"] == f"switch {place[0]:016x} is not connected"
    world.reconnect(place[0])
    world.settle()
    world.send("h1")
    world.settle()
    assert world.send("h1") == {"h3": 1}
    refusal = do(world, "add", (77, 1))
    assert isinstance(refusal, ActionRefused)
    assert refusal.field == "dpid"
    assert "neither switches nor topology of the policy file name it" in refusal.text
    load(world, replace(POLICY, switches=(NamedSwitch("leaf77", 77),)))
    answer = do(world, "add", (77, 1))
    assert isinstance(answer, ActionTaken)
    assert answer.document["waiting_for"] == "switch leaf77 is not connected"


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "no-journal"])
def test_a_restart_doubles_nothing_and_loses_nothing(make_world, journal):
    world = make_world("fattree", POLICY)
    h2, h9 = place_of(world, "h2"), place_of(world, "h9")
    load(world, given(h2, h9))
    assert isinstance(do(world, "add", h9), ActionTaken)
    world.send("h1")
    world.advance(1.0)
    assert world.send("h1") == {"h2": 1, "h9": 1}
    world.restart(journal=journal)
    world.connect_all()
    world.settle()
    assert world.send("h1") == {"h2": 1, "h9": 1}
    world.advance(90.0)
    assert world.send("h1") == {"h2": 1, "h9": 1}
    if journal:
        assert world.applied == 0
    assert len(static(world)) == 2
    load(world, POLICY)
    world.settle()
    assert world.send("h1") == ({"h9": 1} if journal else {})
