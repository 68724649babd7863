"""What a controller does by its place: nothing at switches before they have confirmed it as master."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cluster.effects import Leading
from controller.cluster.engine import KeyCondition
from controller.cluster.place import (
    ANSWERS_S,
    TOGETHER_S,
    BeginAnew,
    ConfirmLead,
    Course,
    HearReports,
    LetIn,
    PlaceCore,
    Renew,
    SidecarLost,
    TakenOver,
    TakeOver,
)
from controller.datapath.core import DatapathCore, OwnerTold
from controller.datapath.roles import ROLE_TIMEOUT_S
from controller.effects import RequestRole, RoleDenied
from controller.events import (
    ControllerRole,
    DeadlineReached,
    EditFailed,
    PacketReceived,
    RoleReplied,
    RoleWanted,
    SwitchConnected,
    SwitchDisconnected,
    TableChanged,
)

MASTER, SLAVE = ControllerRole.MASTER, ControllerRole.SLAVE
FENCE = KeyCondition("epoch", 5, "7")
IGMP = bytes.fromhex("01005e000016 0200000000 01 0800 46c00028 0000 4000 01 02 0000 0a000001 e0000016 94040000")
STALE = (11, 0)

SURE_S = 1e9
"""A time until which it is known that nobody else leads."""


class Place:
    """The core of a place over that of switches, and what it has asked for."""

    def __init__(self) -> None:
        self.datapath = DatapathCore(0xA0)
        self.core = PlaceCore(3.0, self.datapath)
        self.now = 100.0
        self.did: list[Any] = []

    def feed(self, event: Any) -> list[Any]:
        """Give it an event, and it and the switches what follows; return what its app is to do."""
        self.did = []
        self._perform(self.core.handle(event, self.now))
        return self.did

    def switch_says(self, event: Any) -> list[Any]:
        self.did = []
        self._perform(self.datapath.handle(event, self.now))
        return self.did

    def _perform(self, effects: Any) -> None:
        for effect in effects:
            if type(effect) is RoleWanted:
                self._perform(self.datapath.handle(effect, self.now))
            elif type(effect) is OwnerTold:
                self._perform(self.core.handle(TableChanged(effect.dpid, effect.was_read), self.now))
            self.did.append(effect)

    def connect(self, dpid: int = 1, version: int = 4) -> list[Any]:
        wanted = self.core.role_at(dpid, version, self.now)
        if wanted is not None:
            self._perform(self.datapath.handle(wanted, self.now))
        return self.feed(SwitchConnected(dpid, version, ()))

    def asked(self) -> list[tuple[ControllerRole | None, int]]:
        return [(effect.role, effect.generation_id) for effect in self.did if type(effect) is RequestRole]

    def confirm(self, role: ControllerRole, generation_id: int | None, dpid: int = 1) -> list[Any]:
        return self.switch_says(RoleReplied(dpid, self.xid(dpid), role, generation_id))

    def xid(self, dpid: int = 1) -> int:
        xid = self.datapath.datapath(dpid).role_xid
        assert xid is not None
        return xid

    def elect(self, epoch: int = 7) -> list[Any]:
        return [
            *self.feed(RoleWanted(MASTER, epoch)),
            *self.feed(Leading(epoch, FENCE, True, self.now + 0.1)),
        ]


@pytest.fixture
def place() -> Place:
    place = Place()
    place.feed(RoleWanted(SLAVE, 0))
    place.feed(Leading(None, None, False, 0.0))
    return place


def of_kind(effects: list[Any], kind: type) -> list[Any]:
    return [effect for effect in effects if type(effect) is kind]


def test_who_follows_is_slave_and_hears_reports_alone(place: Place):
    place.connect()
    assert place.asked() == [(SLAVE, 0)]
    did = place.confirm(SLAVE, 6)
    assert (of_kind(did, HearReports), of_kind(did, LetIn)) == ([HearReports(1)], [])
    place.feed(RoleWanted(SLAVE, 7))
    assert place.asked() == [(SLAVE, 7)]
    assert of_kind(place.confirm(SLAVE, 7), HearReports) == []
    assert place.core.switches == {1: False}


def test_apps_know_of_a_switch_when_all_is_read_and_it_has_confirmed_its_master(place: Place):
    place.connect()
    place.confirm(SLAVE, 6)
    report = PacketReceived(1, 3, IGMP)
    place.feed(report)
    place.feed(PacketReceived(1, 3, b"\xff" * 60))
    place.now += 1.0
    did = place.elect()
    assert of_kind(did, TakeOver) == [TakeOver(7, FENCE)]
    assert place.core.course is Course.TAKING_OVER
    assert of_kind(place.confirm(MASTER, 7), LetIn) == []
    assert of_kind(place.feed(TakenOver(7)), LetIn) == [LetIn((1,), (report,))]
    assert (place.core.course, place.core.switches) == (Course.LEADING, {1: True})
    place.connect(2)
    assert place.asked() == [(MASTER, 7)]
    assert of_kind(place.confirm(MASTER, 7, 2), LetIn) == [LetIn((2,), ())]


def test_switches_are_let_in_together_with_reports_in_their_order(place: Place):
    reports = tuple(PacketReceived(dpid, 3, IGMP) for dpid in (2, 1, 2))
    for dpid in (1, 2):
        place.connect(dpid)
    for report in reports:
        place.feed(report)
    place.elect()
    place.confirm(MASTER, 7)
    assert of_kind(place.feed(TakenOver(7)), LetIn) == []
    assert of_kind(place.confirm(MASTER, 7, 2), LetIn) == [LetIn((1, 2), reports)]


def test_a_switch_that_confirms_no_master_is_waited_for_a_moment(place: Place):
    for dpid in (1, 2):
        place.connect(dpid)
    place.elect()
    place.confirm(MASTER, 7)
    assert of_kind(place.feed(TakenOver(7)), LetIn) == []
    place.now += ANSWERS_S
    assert of_kind(place.feed(DeadlineReached()), LetIn) == []
    place.now += TOGETHER_S - ANSWERS_S
    assert place.core.next_deadline() == place.now
    assert of_kind(place.feed(DeadlineReached()), LetIn) == [LetIn((1,), ())]
    assert of_kind(place.confirm(MASTER, 7, 2), LetIn) == [LetIn((2,), ())]


def test_nobody_waits_for_a_switch_that_is_gone(place: Place):
    for dpid in (1, 2):
        place.connect(dpid)
    place.elect()
    place.confirm(MASTER, 7)
    place.feed(TakenOver(7))
    assert of_kind(place.feed(SwitchDisconnected(2)), LetIn) == [LetIn((1,), ())]


def test_a_take_over_of_another_epoch_lets_nobody_in(place: Place):
    place.connect()
    place.elect()
    place.confirm(MASTER, 7)
    assert of_kind(place.feed(TakenOver(6)), LetIn) == []
    assert place.core.course is Course.TAKING_OVER


def test_reports_are_kept_for_five_seconds(place: Place):
    place.connect()
    place.feed(PacketReceived(1, 3, IGMP))
    place.now += 6.0
    place.feed(PacketReceived(1, 4, IGMP))
    place.elect()
    place.feed(TakenOver(7))
    assert of_kind(place.confirm(MASTER, 7), LetIn) == [LetIn((1,), (PacketReceived(1, 4, IGMP),))]


@pytest.mark.parametrize(
    "told", [RoleWanted(SLAVE, 7), Leading(None, None, False, 0.0), Leading(9, FENCE, True, SURE_S)]
)
def test_who_leads_no_more_begins_anew(place: Place, told: Any):
    place.connect()
    place.elect()
    place.confirm(MASTER, 7)
    place.feed(TakenOver(7))
    (anew,) = of_kind(place.feed(told), BeginAnew)
    assert not anew.why.endswith(".")
    assert place.core.course is Course.LEAVING
    assert of_kind(place.feed(told), BeginAnew) == []


def test_who_goes_on_in_a_later_epoch_has_the_store_given_what_it_lost(place: Place):
    place.connect()
    place.elect()
    place.confirm(MASTER, 7)
    place.feed(TakenOver(7))
    place.feed(RoleWanted(MASTER, 9))
    assert place.asked() == [(MASTER, 9)]
    fence = KeyCondition("epoch", 2, "9")
    assert place.feed(Leading(9, fence, True, SURE_S, 7)) == [Renew(9, fence)]
    place.confirm(MASTER, 9)
    assert (place.core.course, place.core.epoch, place.core.switches) == (Course.LEADING, 9, {1: True})
    assert of_kind(place.feed(Leading(11, fence, True, SURE_S, 8)), BeginAnew)


def test_who_was_just_elected_does_not_go_on_in_a_later_epoch(place: Place):
    place.elect()
    assert of_kind(place.feed(Leading(9, FENCE, True, SURE_S, 7)), BeginAnew)


def test_a_switch_that_is_back_is_let_in_anew(place: Place):
    place.connect()
    place.elect()
    place.confirm(MASTER, 7)
    place.feed(TakenOver(7))
    place.feed(SwitchDisconnected(1))
    place.connect()
    assert place.core.switches == {1: False}
    assert of_kind(place.confirm(MASTER, 7), LetIn) == [LetIn((1,), ())]


def test_the_process_beside_may_be_away_for_the_time_of_its_lease(place: Place):
    place.connect()
    place.elect()
    place.confirm(MASTER, 7)
    place.feed(TakenOver(7))
    place.feed(SidecarLost())
    assert place.core.next_deadline() == place.now + 3.0
    place.now += 2.0
    place.feed(Leading(7, FENCE, True, SURE_S))
    place.now += 5.0
    assert of_kind(place.feed(DeadlineReached()), BeginAnew) == []
    place.feed(SidecarLost())
    place.now += 3.0
    assert len(of_kind(place.feed(DeadlineReached()), BeginAnew)) == 1


def test_switches_without_generations_are_left_while_the_lease_is_not_confirmed(place: Place):
    place.connect(1, 1)
    place.connect(2, 4)
    place.elect()
    place.feed(TakenOver(7))
    place.confirm(MASTER, None, 1)
    place.confirm(MASTER, 7, 2)
    did = place.feed(Leading(7, FENCE, False, 0.0))
    assert of_kind(did, RoleWanted) == [RoleWanted(SLAVE, 7, 1)]
    assert of_kind(did, BeginAnew) == []
    place.connect(3, 1)
    assert place.asked() == [(SLAVE, 7)]
    assert not of_kind(place.feed(Leading(7, FENCE, True, 0.0)), RoleWanted)
    did = place.feed(Leading(7, FENCE, True, SURE_S))
    assert of_kind(did, RoleWanted) == [RoleWanted(MASTER, 7, 1), RoleWanted(MASTER, 7, 3)]
    assert not of_kind(place.feed(Leading(7, FENCE, True, 0.0)), RoleWanted)  # who is master stays so


def test_a_switch_without_generations_is_asked_by_who_leads_for_sure(place: Place):
    """Another one may be master by then, whom the switch would leave for who asked last."""
    place.connect(1, 1)
    place.connect(2, 4)
    assert of_kind(place.elect(), RoleWanted) == [RoleWanted(MASTER, 7, 2)]
    assert of_kind(place.confirm(MASTER, 7, 2), RoleWanted) == [RoleWanted(MASTER, 7, 1)]
    place.feed(TakenOver(7))
    place.confirm(MASTER, None, 1)
    place.feed(SwitchDisconnected(1))
    place.now += 0.1
    did = place.connect(1, 1)
    assert place.asked() == [(SLAVE, 7)]
    assert of_kind(did, ConfirmLead) == [ConfirmLead()]
    place.now += 0.2
    assert of_kind(place.feed(DeadlineReached()), ConfirmLead) == [ConfirmLead()]
    assert not of_kind(place.feed(Leading(7, FENCE, True, place.now)), RoleWanted)  # the answer came late
    did = place.feed(Leading(7, FENCE, True, place.now + 0.1))
    assert of_kind(did, RoleWanted) == [RoleWanted(MASTER, 7, 1)]
    assert place.core.next_deadline() is None
    place.now += 1.0
    place.feed(RoleWanted(SLAVE, 7))
    assert not of_kind(place.feed(DeadlineReached()), ConfirmLead)


def test_switches_without_generations_are_asked_at_once_where_there_are_no_others(place: Place):
    place.connect(1, 1)
    assert of_kind(place.elect(), RoleWanted) == [RoleWanted(MASTER, 7, 1)]


def test_switches_without_generations_are_asked_when_all_others_have_confirmed_their_master(place: Place):
    for dpid, version in ((1, 1), (2, 4), (3, 4), (4, 4)):
        place.connect(dpid, version)
    place.elect()
    assert of_kind(place.confirm(MASTER, 7, 2), RoleWanted) == []
    assert of_kind(place.feed(SwitchDisconnected(3)), RoleWanted) == []
    assert of_kind(place.confirm(MASTER, 7, 4), RoleWanted) == [RoleWanted(MASTER, 7, 1)]
    assert place.core.next_deadline() is None


def test_a_switch_that_has_been_asked_is_waited_for_a_moment_before_those_without_generations(place: Place):
    for dpid, version in ((1, 1), (2, 4), (3, 4)):
        place.connect(dpid, version)
    place.elect()
    place.confirm(MASTER, 7, 2)
    place.now += ANSWERS_S
    assert place.core.next_deadline() == place.now
    did = place.feed(DeadlineReached())
    assert (of_kind(did, ConfirmLead), of_kind(did, RoleWanted)) == ([ConfirmLead()], [])
    did = place.feed(Leading(7, FENCE, True, place.now + 0.1))
    assert of_kind(did, RoleWanted) == [RoleWanted(MASTER, 7, 1)]


def test_a_refusal_keeps_switches_without_generations_from_being_asked_in_an_epoch_of_before(place: Place):
    """Where the store was emptied the epoch may be below that of their last master, which they do not know."""
    for dpid, version in ((1, 1), (2, 4)):
        place.connect(dpid, version)
    place.elect()
    did = place.switch_says(EditFailed(2, place.xid(2), *STALE))
    for _ in range(3):
        place.now += ANSWERS_S
        did += place.feed(DeadlineReached())
        did += place.feed(Leading(7, FENCE, True, place.now + 0.1))
    did += place.connect(3, 1)
    assert of_kind(did, RoleWanted) == []
    did = place.confirm(SLAVE, 12, 2)
    assert of_kind(did, RoleDenied) == [RoleDenied(2, 12)]
    place.now += ANSWERS_S
    did = place.feed(DeadlineReached())
    did += place.feed(Leading(7, FENCE, True, place.now + 0.1))
    did += place.feed(RoleWanted(SLAVE, 7))
    assert of_kind(did, RoleWanted) == [RoleWanted(SLAVE, 7)]
    assert place.core.next_deadline() is None


def test_a_switch_that_is_asked_again_after_its_refusal_is_waited_for_a_moment(place: Place):
    """One that refused and then says nothing more keeps nobody waiting for good."""
    for dpid, version in ((1, 1), (2, 4)):
        place.connect(dpid, version)
    place.elect()
    place.switch_says(EditFailed(2, place.xid(2), *STALE))
    place.now += ROLE_TIMEOUT_S
    place.switch_says(DeadlineReached())
    assert (MASTER, 7) in place.asked()
    place.feed(DeadlineReached())
    did = place.feed(Leading(7, FENCE, True, place.now + 0.1))
    assert of_kind(did, RoleWanted) == [RoleWanted(MASTER, 7, 1)]


def test_a_switch_without_generations_that_connects_waits_for_others_that_do(place: Place):
    place.connect(2, 4)
    place.elect()
    place.confirm(MASTER, 7, 2)
    place.feed(TakenOver(7))
    place.feed(SwitchDisconnected(2))
    place.connect(2, 4)
    place.feed(Leading(7, FENCE, True, SURE_S))
    place.connect(1, 1)
    assert place.asked() == [(SLAVE, 7)]
    assert of_kind(place.confirm(MASTER, 7, 2), RoleWanted) == [RoleWanted(MASTER, 7, 1)]


def test_in_a_later_epoch_switches_without_generations_go_on_and_new_ones_wait(place: Place):
    place.connect(1, 1)
    place.connect(2, 4)
    place.elect()
    place.confirm(MASTER, 7, 2)
    place.confirm(MASTER, None, 1)
    place.feed(TakenOver(7))
    did = place.feed(RoleWanted(MASTER, 9))
    did += place.feed(Leading(9, FENCE, True, SURE_S, 7))
    assert of_kind(did, RoleWanted) == [RoleWanted(MASTER, 9, 2)]
    assert of_kind(place.connect(3, 1), RoleWanted) == []
    assert of_kind(place.confirm(MASTER, 9, 2), RoleWanted) == [RoleWanted(MASTER, 9, 3)]


def test_who_is_told_the_same_epoch_again_waits_for_no_answer(place: Place):
    """Another process beside the controller goes on in the epoch; who has confirmed it is not asked again."""
    place.connect(2, 4)
    place.elect()
    place.confirm(MASTER, 7, 2)
    place.feed(TakenOver(7))
    place.elect()
    assert place.asked() == []
    place.connect(1, 1)
    assert place.asked() == [(MASTER, 7)]


def test_a_switch_that_knows_of_a_later_generation_is_not_written(place: Place):
    place.connect()
    place.elect()
    place.feed(TakenOver(7))
    place.switch_says(EditFailed(1, place.xid(), *STALE))
    assert place.asked() == [(None, 0)]
    assert place.core.switches == {1: False}
