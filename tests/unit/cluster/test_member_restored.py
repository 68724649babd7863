"""A leader whose key went with a lease that could not be kept, for the store stood still: it puts it again."""

from __future__ import annotations

import pytest
from cluster_histories import World
from cluster_members import FABRIC, KEYS, Node
from simulated_store import DEADLINE_S

from controller.cluster.effects import StoreRequest, TellOperators
from controller.cluster.engine import (
    Committed,
    ConditionFailed,
    GrantLease,
    KeepLease,
    KeyChange,
    KeyCondition,
    KeyPage,
    KeyValue,
    LeaseGone,
    LeaseGranted,
    LeaseKept,
    PutKey,
    ReadPage,
    Silent,
    Transaction,
)
from controller.cluster.events import Answered, ConfirmWanted, ControllerBeat, KeysChanged
from controller.cluster.heard import FRESH_S
from controller.cluster.keys import Leader
from controller.cluster.member import RENEWAL_S, MemberCore
from controller.cluster.member_settings import MemberSettings
from controller.cluster.memory_engine import MemoryEngine, MemoryStore, RequestFault
from controller.events import DeadlineReached
from controller.snapshot.events import State

LEASE_S = 3.0
SILENCE_S = 0.5


def led(seed: int) -> tuple[World, Node, int]:
    """Return three members, the one that leads, and its epoch."""
    world = World(seed)
    world.run(10.0, world.is_settled)
    world.run(world.now + 1.0)
    (first,) = world.leaders()
    assert first.member.epoch is not None
    return world, first, first.member.epoch


def until_another_leads(world: World, first: Node) -> float:
    """Let time go on until a member other than `first` leads; return how long that took."""
    begun_s = world.now
    world.run(begun_s + 15.0, lambda: any(node is not first for node in world.leaders()))
    assert any(node is not first for node in world.leaders())
    return world.now - begun_s


@pytest.mark.parametrize("for_s", [LEASE_S + 0.6, 20.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_store_that_stands_still_costs_no_leader_its_epoch(seed: int, for_s: float):
    world, first, epoch = led(seed)
    world.store.stand_still(for_s)
    world.run(world.now + for_s - 0.1)
    assert world.leaders() == [first] and not first.leading.has_lease
    world.run(world.now + 5.0)
    assert world.leaders() == [first] and first.member.epoch == epoch and first.leading.has_lease
    assert world.told["stepped-down"] == 0 and world.told["leader-elected"] == 3, "its epoch is told once"
    assert world.told["engine-unreachable"] == 6
    held = world.store.get(KEYS.leader)
    assert held is not None and held.lease == first.member.lease
    assert world.is_settled()
    world.check()


def test_who_does_not_hear_the_leader_does_not_wait_for_it():
    world, first, epoch = led(7)
    for node in world.nodes.values():
        node.is_cut_from_peers = True
    world.run(world.now + 5.0)
    world.store.stand_still(6.0)
    world.run(world.now + 12.0)
    (now_leads,) = world.leaders()
    assert now_leads is not first and now_leads.member.epoch == epoch + 1
    assert world.told["stepped-down"] == 1


def test_a_leader_that_was_killed_while_the_store_stood_still_is_not_waited_for():
    world, first, _ = led(7)
    world.store.stand_still(6.0)
    world.run(world.now + 3.0)
    first.kill()
    world.run(world.now + 2.9)
    assert world.leaders() == []
    assert until_another_leads(world, first) < 0.1 + 2 * DEADLINE_S


@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_a_leader_that_ends_when_the_store_has_just_answered_again_is_followed_when_it_is_not_heard(ending: str):
    world, first, _ = led(7)
    world.store.stand_still(2.0)  # for less than the lease lasts
    world.run(world.now + 2.3)
    assert world.leaders() == [first]
    if ending == "kill":
        first.kill()
    else:
        first.is_stopped = True
    assert until_another_leads(world, first) < SILENCE_S + 0.5 < RENEWAL_S


def test_a_leader_that_dies_after_the_key_has_gone_is_not_waited_for_any_longer():
    world, first, epoch = led(7)
    world.store.stand_still(6.0)
    ends_s = world.now + 6.0
    world.run(ends_s - 0.05)
    first.engine.fault = RequestFault.REQUEST_LOST  # it hears nothing of the store, and puts no key
    world.run(ends_s + 0.5)
    assert world.leaders() == [first] and world.store.get(KEYS.leader) is None, "others leave it the time"
    first.kill()
    assert until_another_leads(world, first) < SILENCE_S + 0.2
    assert epoch + 1 in {node.member.epoch for node in world.leaders()}


def test_a_leader_that_does_not_put_its_key_is_waited_for_no_longer_than_that():
    world, first, _ = led(7)
    world.store.stand_still(6.0)
    ends_s = world.now + 6.0
    world.run(ends_s - 0.05)
    first.engine.fault = RequestFault.REQUEST_LOST
    until_another_leads(world, first)
    assert RENEWAL_S - 0.1 < world.now - ends_s < RENEWAL_S + 1.5


# One leader alone, told what to hear


class Lone:
    """A leader, and what it asks."""

    def __init__(self, *held: KeyValue, led_epoch: int = 0) -> None:
        self.now = 100.0
        settings = MemberSettings(FABRIC, "me", "me-1", highest_epoch=led_epoch, led_epoch=led_epoch)
        self.member = MemberCore(settings, self.now)
        self.asked: list[StoreRequest] = []
        self.told: list[TellOperators] = []
        self.fresh_until_s = 0.0
        self.give(ControllerBeat(0.0))
        self.answer(GrantLease, LeaseGranted(5, 3))
        self.answer(Transaction, Committed(2))
        self.answer(ReadPage, KeyPage(9, held, False))
        election = self.answer(Transaction, Committed(10))
        self.epoch = self.member.epoch
        self.fence = KeyCondition(KEYS.epoch, 10, str(self.epoch))
        self.key = next(edit for edit in election.edits if type(edit) is PutKey and edit.key == KEYS.leader)

    def give(self, event: object) -> None:
        for effect in self.member.handle(event, self.now):
            if type(effect) is StoreRequest:
                self.asked.append(effect)
            elif type(effect) is TellOperators:
                self.told.append(effect)

    def answer(self, kind: type, reply: object) -> Transaction:
        """Answer what was asked last of a kind, and return it."""
        asked = next(ask for ask in reversed(self.asked) if type(ask.request) is kind)
        self.asked.remove(asked)
        self.give(Answered(asked.number, reply))
        assert type(asked.request) is kind
        return asked.request

    def lose_key(self, *more: KeyChange) -> None:
        """Have the watch tell that its key is gone."""
        self.give(KeysChanged(self.member._watch, (KeyChange(KEYS.leader, None, 12), *more)))

    def restoration(self, lease: int) -> Transaction:
        conditions = self.fence, KeyCondition(KEYS.leader, 0), KeyCondition(KEYS.successor, 0)
        return Transaction(conditions, (PutKey(KEYS.leader, self.key.value, lease),))


def test_its_key_is_put_where_nobody_was_elected_or_named_since_it_went():
    lone = Lone()
    lone.lose_key()
    assert lone.answer(Transaction, LeaseGone()) == lone.restoration(5)
    lone.answer(GrantLease, LeaseGranted(6, 3))
    lone.answer(ReadPage, KeyPage(12, (KeyValue(*lone.fence[:1], str(lone.epoch), 10),), False))
    requests = [ask.request for ask in lone.asked]
    assert lone.restoration(6) in requests
    assert lone.member.epoch == lone.epoch


@pytest.mark.parametrize(
    "more",
    [
        KeyChange(KEYS.epoch, "99999999", 12),
        KeyChange(KEYS.epoch, None, 12),
        KeyChange(KEYS.successor, "other", 12),
    ],
    ids=["a later epoch", "no epoch", "another was named"],
)
def test_it_leads_no_more_where_another_may(more: KeyChange):
    lone = Lone()
    lone.lose_key(more)
    assert lone.member.epoch is None
    assert all(type(ask.request) is not Transaction for ask in lone.asked)


def test_what_the_store_has_instead_is_read():
    lone = Lone()
    lone.lose_key()
    other = Leader("other", "other-1", (lone.epoch or 0) + 1, "")
    held = (KeyValue(KEYS.epoch, str(other.epoch), 13), KeyValue(KEYS.leader, other.text(), 13, 9))
    lone.answer(Transaction, ConditionFailed(13, held))
    assert lone.member.epoch == lone.epoch
    lone.answer(ReadPage, KeyPage(13, held, False))
    assert lone.member.epoch is None


def test_without_an_answer_it_reads_whether_its_key_is_there():
    lone = Lone()
    lone.lose_key()
    lone.answer(Transaction, Silent("no answer"))
    lone.now += 0.6
    lone.give(ControllerBeat(0.0))
    held = (KeyValue(KEYS.epoch, str(lone.epoch), 10), KeyValue(KEYS.leader, lone.key.value, 13, 5))
    lone.answer(ReadPage, KeyPage(13, held, False))
    assert lone.member.epoch == lone.epoch
    assert all(type(ask.request) is not Transaction for ask in lone.asked)


def test_it_is_sure_to_lead_when_its_key_is_there_again_and_not_before():
    lone = Lone()
    lone.now += 0.05
    lone.give(ControllerBeat(0.0))
    lone.lose_key()
    assert lone.member._fresh_until_s <= lone.now
    lone.give(ConfirmWanted())
    assert [ask.request for ask in lone.asked if type(ask.request) is Transaction] == [lone.restoration(5)]
    lone.answer(Transaction, Committed(13))
    assert lone.member._fresh_until_s == lone.now + FRESH_S


def test_what_a_watch_tells_is_an_answer_of_the_store():
    lone = Lone()
    lone.now += 1.1
    lone.give(ControllerBeat(0.0))
    lone.answer(KeepLease, Silent("no answer"))
    lone.now += 0.4
    lone.give(ControllerBeat(0.0))
    lone.now += 0.7
    lone.give(DeadlineReached())
    assert [told.state for told in lone.told if told.kind == "engine-unreachable"] == [State.RAISED]
    lone.lose_key()
    assert [told.state for told in lone.told if told.kind == "engine-unreachable"] == [State.RAISED, State.CLEARED]


@pytest.mark.parametrize("behind", [0, 1])
def test_a_store_that_was_set_back_is_led_above_the_epoch_in_which_it_led_itself(behind: int):
    """Another leads in an epoch that was led in: who led then stands above it, for no switch tells the two apart."""
    other = Leader("other", "other-1", 40 - behind, "")
    held = KeyValue(KEYS.epoch, str(other.epoch), 8), KeyValue(KEYS.leader, other.text(), 8, 9)
    assert Lone(*held, led_epoch=40).epoch == 41


@pytest.mark.parametrize(("name", "epoch"), [("other", 41), ("me", 40)])
def test_who_leads_above_it_and_a_run_of_its_own_are_left_the_lead(name: str, epoch: int):
    other = Leader(name, "other-1", epoch, "")
    held = KeyValue(KEYS.epoch, str(epoch), 8), KeyValue(KEYS.leader, other.text(), 8, 9)
    with pytest.raises(StopIteration):  # it asks for no election
        Lone(*held, led_epoch=40)


# The twin


def test_while_a_store_stands_still_leases_end_and_what_it_is_asked_is_done_after_it():
    store = MemoryStore()
    engine = MemoryEngine(store)
    short, long = (engine.ask(GrantLease(ttl_s)) for ttl_s in (3, 9))
    assert type(short) is LeaseGranted and type(long) is LeaseGranted
    for granted in (short, long):
        engine.ask(Transaction((), (PutKey(f"/{granted.ttl_s}", "x", granted.lease),)))
    watch = engine.watch("/", store.revision)
    store.stand_still(5.0)
    store.advance(2.0)
    asked = [KeepLease(short.lease), KeepLease(long.lease), Transaction((), (PutKey("/late", "x"),))]
    assert {type(engine.ask(request)) for request in asked} == {Silent}
    store.advance(4.9)
    assert watch.take(0.0) is None and store.get("/late") is None
    store.advance(5.5)
    told = watch.take(0.0)
    assert [(change.key, change.value) for change in told.changes] == [("/3", None), ("/late", "x")]  # type: ignore[union-attr]
    assert type(engine.ask(KeepLease(short.lease))) is LeaseGone
    store.advance(13.9)  # it was kept when the store went on, 5 s after it was made
    assert type(engine.ask(KeepLease(long.lease))) is LeaseKept
