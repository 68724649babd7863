"""Histories of faults, by seed, and that they find what is wrong; `benchmarks/cluster_histories.py` has more."""

from __future__ import annotations

import pytest
from cluster_histories import MIDDLE, history
from cluster_members import Node, Switch

from controller.cluster.engine import Committed, Silent
from controller.cluster.member import MemberCore
from controller.cluster.place import PlaceCore
from controller.events import ControllerRole, EditFailed, RoleReplied
from controller.rules.fake import FakeSwitch
from controller.rules.pipeline import OPENFLOW_1_0

EMPTIED, EMPTIED_SEEDS = 0.3, range(8, 19)
"""Share of faults with which the store is emptied, and seeds of which some draw an election below the last epoch."""


@pytest.mark.parametrize("first", range(1, 25, 6))
def test_what_must_hold_does(first: int):
    for seed in range(first, first + 6):
        history(seed)


def test_what_must_hold_does_in_a_larger_fabric():
    history(1, MIDDLE)


def test_what_must_hold_does_where_the_store_is_emptied_while_leaders_end():
    for seed in EMPTIED_SEEDS:
        history(seed, emptied=EMPTIED)


def test_a_leader_that_takes_its_lease_for_the_lead_at_a_switch_without_generations_is_found(
    monkeypatch: pytest.MonkeyPatch,
):
    def ask(place: PlaceCore, ofp_version: int, _now: float) -> ControllerRole:
        is_asked = ofp_version != OPENFLOW_1_0 or place._has_lease
        return ControllerRole.MASTER if is_asked else ControllerRole.SLAVE

    monkeypatch.setattr(PlaceCore, "_role_by_version", ask)
    assert not all_hold(range(20, 32))


def all_hold(seeds: range, emptied: float = 0.0) -> bool:
    try:
        for seed in seeds:
            history(seed, emptied=emptied)
    except AssertionError:
        return False
    return True


def test_a_leader_that_asks_switches_without_generations_before_the_others_answered_is_found(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(PlaceCore, "_await_answer", lambda _place, _dpid, _now: None)
    assert not all_hold(EMPTIED_SEEDS, EMPTIED)


def test_a_switch_that_minds_no_generation_is_found(monkeypatch: pytest.MonkeyPatch):
    def any_role(switch: FakeSwitch, effect) -> EditFailed | RoleReplied:
        switch.generation_id = effect.generation_id
        switch.role = effect.role or switch.role
        return RoleReplied(switch.dpid, effect.xid, switch.role, switch.generation_id)

    monkeypatch.setattr(FakeSwitch, "_role_answer", any_role)
    monkeypatch.setattr(MemberCore, "_role_lost", lambda _member, _event, _now: None)
    assert not all_hold(EMPTIED_SEEDS, EMPTIED)


def test_two_masters_of_a_switch_are_found(monkeypatch: pytest.MonkeyPatch):
    take = Switch.take

    def take_and_forget_others(switch: Switch, connection, effect, epoch):
        roles = {name: each.role for name, each in switch.connections.items() if each is not connection}
        answers = take(switch, connection, effect, epoch)
        for name, role in roles.items():
            switch.connections[name].role = role
        return answers

    monkeypatch.setattr(Switch, "take", take_and_forget_others)
    assert not all_hold(range(1, 20))


def test_an_action_that_was_answered_too_soon_is_found(monkeypatch: pytest.MonkeyPatch):
    def act(node: Node, number: int) -> None:
        node.world.acknowledged(number, node.world.now)

    monkeypatch.setattr(Node, "act", act)
    assert not all_hold(range(1, 3))


def test_a_member_that_takes_silence_for_an_election_is_found(monkeypatch: pytest.MonkeyPatch):
    answered = MemberCore._answered

    def believe(member: MemberCore, event, now: float) -> None:
        if type(event.reply) is Silent:
            event = event._replace(reply=Committed(1_000_000))
        answered(member, event, now)

    monkeypatch.setattr(MemberCore, "_answered", believe)
    assert not all_hold(range(1, 20))
