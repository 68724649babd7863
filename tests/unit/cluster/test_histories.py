"""Histories of faults, by seed, and that they find what is wrong; `benchmarks/cluster_histories.py` has more."""

from __future__ import annotations

import pytest
from cluster_histories import history
from cluster_members import Node, Switch

from controller.cluster.engine import Committed, Silent
from controller.cluster.member import MemberCore
from controller.events import EditFailed, RoleReplied
from controller.rules.fake import FakeSwitch


@pytest.mark.parametrize("first", range(1, 25, 6))
def test_what_must_hold_does(first: int):
    for seed in range(first, first + 6):
        history(seed)


def all_hold(seeds: range) -> bool:
    try:
        for seed in seeds:
            history(seed)
    except AssertionError:
        return False
    return True


def test_a_switch_that_minds_no_generation_is_found(monkeypatch: pytest.MonkeyPatch):
    def any_role(switch: FakeSwitch, effect) -> EditFailed | RoleReplied:
        switch.generation_id = effect.generation_id
        switch.role = effect.role or switch.role
        return RoleReplied(switch.dpid, effect.xid, switch.role, switch.generation_id)

    monkeypatch.setattr(FakeSwitch, "_role_answer", any_role)
    monkeypatch.setattr(MemberCore, "_role_lost", lambda _member, _event, _now: None)
    assert not all_hold(range(1, 20))


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
