"""Members that share a fabric: who leads, and what follows at switches; with faults one at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cluster_histories import World
from cluster_members import KEYS, Node
from simulated_store import DEADLINE_S

from controller.cluster.effects import Leading, StoreRequest, TellOperators
from controller.cluster.engine import Committed, KeyChange, KeyPage, KeyValue, LeaseGone, LeaseGranted
from controller.cluster.events import (
    Answered,
    ControllerBeat,
    ControllerGone,
    ControllerStopped,
    HandOverWanted,
    KeysChanged,
    PeerGone,
    PeerHeard,
    RoleLost,
)
from controller.cluster.keys import EPOCH_BOUND, Leader, read_epoch, read_leader
from controller.cluster.member import MemberCore
from controller.cluster.member_settings import MemberSettings, Standing
from controller.cluster.memory_engine import RequestFault
from controller.events import ControllerRole, DeadlineReached, RoleWanted
from simulated_world import cut_off_from_switches, leader, until


def another_leads(world: World, former: Node) -> Callable[[], bool]:
    return lambda: any(node is not former for node in world.leaders())


def epoch_of(node: Node) -> int:
    assert node.member.epoch is not None
    return node.member.epoch


def test_one_leads_and_is_master_of_all_switches(world: World):
    first = leader(world)
    assert first.member.standing is Standing.LEADER
    others = [node for node in world.nodes.values() if node is not first]
    assert all(node.member.standing is Standing.FOLLOWER for node in others)
    assert {node.member.view.leader for node in world.nodes.values()} == {
        Leader(first.name, first.incarnation, epoch_of(first), first.name)
    }
    assert first.member.view.members() == ("c1", "c2", "c3")
    roles = {
        node.name: ControllerRole.MASTER if node is first else ControllerRole.SLAVE for node in world.nodes.values()
    }
    for switch in world.switches.values():
        assert {name: connection.role for name, connection in switch.connections.items()} == roles
        assert switch.master_epoch == epoch_of(first)
    assert world.told == {"leader-elected": 3}


def test_nothing_changes_while_nothing_happens(world: World):
    first, epoch = leader(world), epoch_of(leader(world))
    world.run(world.now + 30.0)
    assert world.leaders() == [first] and epoch_of(first) == epoch
    assert world.told == {"leader-elected": 3}
    world.check()


def test_a_leader_that_is_killed_is_followed_at_once(world: World):
    first, epoch = leader(world), epoch_of(leader(world))
    first.kill()
    assert until(world, another_leads(world, first)) < 0.5
    assert epoch_of(leader(world)) == epoch + 1
    until(world, world.is_settled)
    first.start()
    world.run(world.now + 5.0)
    assert world.leaders() != [first] and world.is_settled()
    world.check()


def test_a_leader_that_stops_is_challenged_and_steps_down_before_it_writes_again(world: World):
    first = leader(world)
    first.is_stopped = True
    assert until(world, another_leads(world, first)) < 1.0
    until(
        world,
        lambda: all(switch.master_epoch == epoch_of(leader_of(world, first)) for switch in world.switches.values()),
    )
    first.resume()
    until(world, lambda: first.member.epoch is None, 1.0)
    until(world, world.is_settled)
    assert world.told["stepped-down"] == 1
    world.check()


def leader_of(world: World, former: Node) -> Node:
    return next(node for node in world.leaders() if node is not former)


def test_a_leader_that_the_store_does_not_hear_is_told_by_the_switches(world: World):
    first = leader(world)
    first.engine.fault = RequestFault.REQUEST_LOST
    first.is_cut_from_peers = True
    assert until(world, another_leads(world, first)) < 1.5
    until(world, lambda: first.member.epoch is None, 2.0)
    assert first.engine.fault is RequestFault.REQUEST_LOST, "only switches can have told it"
    first.engine.fault = None
    until(world, world.is_settled)
    world.check()


def test_a_leader_that_is_heard_keeps_the_lead_until_its_lease_ends(world: World):
    first = leader(world)
    first.engine.fault = RequestFault.REQUEST_LOST
    assert 2.0 < until(world, another_leads(world, first)) < 4.0


def test_members_that_do_not_hear_each_other_leave_the_lead_where_it_is(world: World):
    first, epoch = leader(world), epoch_of(leader(world))
    for node in world.nodes.values():
        node.is_cut_from_peers = True
    world.run(world.now + 30.0)
    assert world.leaders() == [first] and epoch_of(first) == epoch


def test_while_the_store_is_silent_the_leader_goes_on_and_nobody_else_is_elected(world: World):
    first, epoch = leader(world), epoch_of(leader(world))
    world.store.be_silent(20.0)
    until(world, lambda: not first.leading.has_lease)
    world.run(world.now + 10.0)
    assert world.leaders() == [first] and epoch_of(first) == epoch
    assert first.leading.epoch == epoch and not first.leading.has_lease
    assert world.told["engine-unreachable"] == 3
    until(world, lambda: first.leading.has_lease, 15.0)
    assert epoch_of(first) == epoch
    until(world, lambda: world.told["engine-unreachable"] == 6, 2.0)


def test_a_leader_lost_while_the_store_is_silent_is_followed_when_it_answers(world: World):
    first = leader(world)
    world.store.be_silent(5.0)
    first.kill()
    world.run(world.now + 4.9)
    assert world.leaders() == []
    assert until(world, another_leads(world, first)) < 0.1 + 2 * DEADLINE_S


def test_nobody_leads_before_the_store_has_answered():
    world = World(3)
    world.store.be_silent(8.0)
    world.run(7.9)
    assert world.leaders() == []
    assert all(
        connection.role is ControllerRole.SLAVE
        for switch in world.switches.values()
        for connection in switch.connections.values()
    )
    until(world, world.is_settled)


def test_a_store_that_was_emptied_has_the_same_leader_in_a_later_epoch(world: World):
    first, epoch = leader(world), epoch_of(leader(world))
    world.fault_store_emptied(first, 0.0)
    until(world, lambda: epoch_of(first) > epoch)
    until(world, world.is_settled)
    assert world.leaders() == [first] and first.leading.has_lease
    assert (world.told["store-emptied"], world.told["stepped-down"]) == (1, 0)
    world.check()


def test_a_store_that_was_emptied_when_its_leader_was_gone_has_another_one(world: World):
    first, epoch = leader(world), epoch_of(leader(world))
    first.kill()
    world.fault_store_emptied(first, 0.0)
    until(world, another_leads(world, first), 3.0)
    assert epoch_of(leader(world)) > epoch
    until(world, world.is_settled)
    world.check()


def test_a_member_that_knows_of_no_epoch_learns_of_them_from_switches(world: World):
    epoch = epoch_of(leader(world))
    for node in world.nodes.values():
        node.kill()
    world.store.empty()
    world.run(world.now + 1.0)
    for switch in world.switches.values():
        switch.fake.generation_id = epoch + 100_000
    for node in world.nodes.values():
        node.start()
    until(world, world.is_settled)
    assert epoch_of(leader(world)) > epoch + 100_000


def test_a_stranger_that_takes_a_switch_is_outdone(world: World):
    first, epoch = leader(world), epoch_of(leader(world))
    world.switches[2].fake.generation_id = epoch + 7
    world.switches[2].connections[first.name].role = ControllerRole.SLAVE
    until(world, lambda: first.member.epoch is None, 2.0)
    until(world, world.is_settled)
    assert epoch_of(leader(world)) == epoch + 8


@pytest.mark.parametrize("to", ["c1", "c2", "c3"])
def test_the_lead_is_handed_over_to_whom_it_was_meant_for(world: World, to: str):
    first = leader(world)
    first.give(HandOverWanted(to))
    if first.name == to:
        assert world.told["hand-over-refused"] == 1
        return
    assert until(world, lambda: [node.name for node in world.leaders()] == [to]) < 0.3
    until(world, world.is_settled)
    assert world.told["stepped-down"] == 1


def test_a_hand_over_that_is_seen_before_the_store_has_answered_is_told_as_one(world: World):
    first = leader(world)
    to = next(node.name for node in world.nodes.values() if node is not first)
    first.give(HandOverWanted(to))
    seen = (KeyChange(KEYS.leader, None, 1 << 40), KeyChange(KEYS.successor, to, 1 << 40))
    effects = first.member.handle(KeysChanged(first.watch_number, seen), world.now)
    assert any(type(told) is TellOperators and told.text.endswith(f"it handed over to {to}.") for told in effects)


def test_the_lead_is_not_handed_over_to_who_is_not_there(world: World):
    first = leader(world)
    first.give(HandOverWanted("c9"))
    next(node for node in world.nodes.values() if node is not first).give(HandOverWanted())
    assert world.told["hand-over-refused"] == 2
    world.run(world.now + 5.0)
    assert world.leaders() == [first]


def test_when_the_one_that_was_named_is_gone_another_leads(world: World):
    first = leader(world)
    named = next(node for node in world.nodes.values() if node is not first)
    named.is_stopped = True
    first.give(HandOverWanted(named.name))
    epoch = epoch_of(first)

    def led_anew() -> bool:
        return any(node is not named and node.member.epoch not in (None, epoch) for node in world.leaders())

    assert 1.0 < until(world, led_anew) < 1.5


def test_a_lead_that_changed_often_of_late_is_kept():
    world = World(7, members=6)
    world.run(3.0)
    for to in ("c3", "c4", "c5", "c6"):
        leader(world).give(HandOverWanted(to))
        until(world, lambda to=to: [node.name for node in world.leaders()] == [to])
    first, changed_s = leader(world), world.now
    cut_off_from_switches(world, first, {1, 2})
    until(world, another_leads(world, first), 70.0)
    assert world.now - changed_s > 30.0


def test_a_leader_whose_loop_stands_still_gives_way(world: World):
    first = leader(world)
    first.idle_s = 16.0
    assert until(world, another_leads(world, first)) < 0.5
    until(world, world.is_settled)
    assert first.name not in leader(world).member.view.members()
    first.idle_s = 0.0
    until(world, lambda: first.name in leader(world).member.view.members())


def test_the_more_often_the_lead_changed_the_longer_nobody_takes_it():
    world = World(11, members=8)
    world.run(3.0)
    gaps_s = []
    for _ in range(6):
        former = leader(world)
        former.is_stopped = True
        gaps_s.append(until(world, another_leads(world, former), 20.0))
        former.kill()
        until(world, world.is_settled)
    assert max(gaps_s[:2]) < 1.0 and 1.0 < gaps_s[-2] < gaps_s[-1] - 1.0
    world.run(world.now + 61.0)
    leader(world).kill()
    assert until(world, lambda: bool(world.leaders())) < 0.5


# One member alone, told what to hear


class Alone:
    """A member, and what it asks."""

    def __init__(self) -> None:
        self.now = 100.0
        self.member = MemberCore(MemberSettings("f", "me", "me-1"), self.now)
        self.asked: list[StoreRequest] = []
        self.roles: list[RoleWanted] = []
        self.leading = Leading(None, None, False, 0.0)
        self.give(ControllerBeat(0.0))

    def give(self, event: object) -> None:
        for effect in self.member.handle(event, self.now):
            if type(effect) is StoreRequest:
                self.asked.append(effect)
            elif type(effect) is RoleWanted:
                self.roles.append(effect)
            elif type(effect) is Leading:
                self.leading = effect

    def answer(self, kind: str, reply: object) -> None:
        """Answer what was asked last of a kind."""
        asked = next(ask for ask in reversed(self.asked) if type(ask.request).__name__ == kind)
        self.asked.remove(asked)
        self.give(Answered(asked.number, reply))

    def join(self, *held: KeyValue) -> None:
        self.answer("GrantLease", LeaseGranted(5, 3))
        self.answer("Transaction", Committed(2))
        self.answer("ReadPage", KeyPage(9, held, False))

    def kinds(self) -> list[str]:
        return [type(ask.request).__name__ for ask in self.asked]


KEYS_OF_F = type(KEYS)("f")
OTHER = Leader("other", "other-1", 4, "10.0.0.2:7000")
HELD = (KeyValue(KEYS_OF_F.epoch, "4", 8), KeyValue(KEYS_OF_F.leader, OTHER.text(), 8, 3))


def test_its_first_word_to_switches_is_slave():
    alone = Alone()
    assert alone.roles == [RoleWanted(ControllerRole.SLAVE, 0)]
    alone.join(*HELD)
    assert alone.roles[1:] == [RoleWanted(ControllerRole.SLAVE, 4)]


def test_a_refusal_counts_only_of_a_leader_that_was_heard():
    alone = Alone()
    alone.join(*HELD)
    alone.give(PeerGone("other-1"))
    assert alone.kinds() == []
    alone.give(PeerHeard("other-1"))
    alone.give(PeerGone("other-0"))
    assert alone.kinds() == []
    alone.give(PeerGone("other-1"))
    assert alone.kinds() == ["Transaction"] and alone.member.standing is Standing.CANDIDATE


def test_an_answer_to_what_was_asked_before_is_nobody_s():
    alone = Alone()
    alone.join()
    alone.give(Answered(999, LeaseGone()))
    assert alone.member.standing is Standing.CANDIDATE
    alone.answer("Transaction", Committed(10))
    assert alone.member.standing is Standing.LEADER
    assert alone.roles[-1].role is ControllerRole.MASTER


def test_without_its_lease_it_leads_no_more():
    alone = Alone()
    alone.join()
    alone.answer("Transaction", Committed(10))
    alone.now += 0.9
    alone.give(ControllerBeat(0.0))
    alone.now += 0.2
    alone.give(DeadlineReached())
    alone.answer("KeepLease", LeaseGone())
    assert alone.leading.epoch is not None and not alone.leading.has_lease
    alone.answer("ReadPage", KeyPage(11, (KeyValue(KEYS_OF_F.epoch, "7", 10),), False))
    assert alone.member.epoch is None and alone.roles[-1].role is ControllerRole.SLAVE


@pytest.mark.parametrize(
    "event", [ControllerGone(), ControllerStopped(), None], ids=["it ended", "it was stopped", "it says nothing"]
)
def test_without_its_controller_it_leaves_the_lease(event: object):
    alone = Alone()
    alone.join()
    alone.answer("Transaction", Committed(10))
    alone.now += 0.2 if event else 1.0
    alone.give(event or DeadlineReached())
    assert alone.member.epoch is None and alone.kinds() == ["RevokeLease"]
    alone.give(ControllerBeat(0.0))
    assert alone.kinds() == ["RevokeLease", "ReadPage"], "no new lease before the old one is gone"


def test_the_end_of_a_former_lease_is_not_that_of_the_present_one():
    alone = Alone()
    alone.answer("GrantLease", LeaseGranted(5, 3))
    registering = next(ask for ask in alone.asked if type(ask.request).__name__ == "Transaction")
    alone.now += 1.1
    alone.give(ControllerBeat(0.0))
    alone.answer("KeepLease", LeaseGone())
    alone.answer("GrantLease", LeaseGranted(6, 3))
    alone.give(Answered(registering.number, LeaseGone()))
    assert alone.member.lease == 6


def test_a_leader_that_hands_over_answers_no_challenge():
    alone = Alone()
    alone.join(KeyValue(f"{KEYS_OF_F.members}other", OTHER.text(), 7, 3))
    alone.answer("Transaction", Committed(10))
    alone.give(HandOverWanted("other"))
    (asked,) = alone.asked
    alone.give(KeysChanged(alone.member._watch, (KeyChange(KEYS_OF_F.challenge, "other", 11),)))
    assert alone.asked == [asked]
    alone.give(Answered(asked.number, Committed(12)))
    assert alone.member.epoch is None


def test_generations_that_are_no_epochs_are_left_alone():
    alone = Alone()
    alone.join(*HELD)
    alone.give(RoleLost(1, EPOCH_BOUND + 5))
    alone.give(PeerHeard("other-1"))
    alone.give(PeerGone("other-1"))
    assert '"epoch": 5' in alone.asked[-1].request.edits[1].value  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", '{"member": 1, "incarnation": "", "epoch": 1, "peer": ""}'])
def test_a_leader_that_makes_no_sense_is_none(text: str):
    assert read_leader(text) is None


def test_what_the_keys_say_is_read_as_it_was_written():
    assert read_leader(OTHER.text()) == OTHER
    assert [read_epoch(text) for text in ("0", "12", "", "-1", "x", "9" * 30, "１")] == [0, 12, 0, 0, 0, 0, 0]


def test_a_leader_that_is_challenged_gives_way_when_its_controller_is_silent(world: World):
    first = leader(world)
    challenged = world.now
    first.is_cut_from_peers = True
    controller = first.give

    def without_beats(event: object) -> None:
        if type(event) is not ControllerBeat:
            controller(event)

    first.give = without_beats
    until(world, another_leads(world, first))
    assert world.now - challenged < 0.85  # silence_s 0.5, then the challenge and its way: not twice silence_s
    assert world.told["stepped-down"] == 1
