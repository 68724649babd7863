"""Reports about tables: what differs is told entry by entry, and repaired only where that is asked for."""

from __future__ import annotations

import pytest

from controller.effects import Put, RequestFlows, TableSurveyed
from controller.events import CheckRequested, SurveyOrder
from controller.rules.cookies import cookie_of
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.survey import LISTED, SURVEY_TIMEOUT_S

TAG, OTHER_TAG = 0x5602, 0x5603
VERSIONS = pytest.mark.parametrize("dpid", [1, 2], ids=["OpenFlow 1.0", "OpenFlow 1.3"])
COUNT = 40


def rule(number, port=1, *, tag=TAG):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), (Output(port),), cookie_of(tag, number))


@pytest.fixture
def world(make_world):
    """Three switches with 40 entries each; switch 1 speaks OpenFlow 1.0."""
    world = make_world()
    world.reports = []
    perform = world.perform

    def keep(effects):
        world.reports += [effect for effect in effects if isinstance(effect, TableSurveyed)]
        perform([effect for effect in effects if not isinstance(effect, TableSurveyed)])

    world.perform = keep
    world.change([(dpid, Put(rule(number))) for dpid in world.switches for number in range(1, COUNT + 1)])
    world.deliver()
    world.sent.clear()
    return world


def order(world, dpid, number=1, **what):
    world.perform(world.installer.handle(CheckRequested(dpid, SurveyOrder(number, **what)), world.now))


def report(world, dpid, **what):
    order(world, dpid, **what)
    world.deliver()
    (told,) = world.reports
    world.reports.clear()
    assert (told.dpid, told.number) == (dpid, 1)
    return told.document


def corrupt(tables):
    """Take one entry away, alter one, and add one."""
    tables.remove(rule(3).key)
    tables.put(rule(5, 9))
    tables.put(rule(90))


def numbers(document, kind):
    assert document[kind]["count"] == len(document[kind]["entries"])
    return [entry["match"] for entry in document[kind]["entries"]]


@VERSIONS
def test_what_is_as_it_shall_be_is_told_so(world, dpid):
    document = report(world, dpid)
    assert document["state"] == "read"
    assert (document["desired"], document["confirmed"], document["held"]) == (COUNT, COUNT, COUNT)
    assert [document[kind]["count"] for kind in ("missing", "altered", "extra", "foreign")] == [0] * 4
    assert document["repair"] is None


@VERSIONS
def test_a_report_tells_what_differs_and_changes_nothing(world, dpid):
    corrupt(world.switches[dpid].tables)
    held = dict(world.switches[dpid].rules)
    for _ in range(2):
        document = report(world, dpid)
        assert numbers(document, "missing") == ["in_port=3"]
        assert numbers(document, "altered") == ["in_port=5"]
        assert numbers(document, "extra") == ["in_port=90"]
        (altered,) = document["altered"]["entries"]
        assert (altered["actions"], altered["holds"]["actions"]) == ("output:1", "output:9")
        assert altered["cookie"] == f"{rule(5).cookie:#018x}"
    assert world.switches[dpid].rules == held
    assert all(isinstance(effect, RequestFlows) for effect in world.sent)
    assert world.notices == [] and world.lost == []
    assert world.installer.in_sync(dpid)


@VERSIONS
def test_a_repair_puts_right_what_differs_and_no_more(world, dpid):
    tables = world.switches[dpid].tables
    tables.put(rule(7, 9))
    tables.put(rule(70, tag=OTHER_TAG))
    assert report(world, dpid, repair=True)["repair"] == "begun"
    assert sum(len(effect.edits) for effect in world.sent if not isinstance(effect, RequestFlows)) == 1
    world.assert_in_sync()
    assert rule(70, tag=OTHER_TAG) in world.switches[dpid].rules.values()
    assert [notice.kind for notice in world.notices] == ["entries-repaired"]
    assert report(world, dpid)["altered"]["count"] == 0


@VERSIONS
def test_a_repair_of_many_entries_must_be_forced(world, dpid):
    corrupt(world.switches[dpid].tables)
    held = dict(world.switches[dpid].rules)
    document = report(world, dpid, repair=True)
    assert document["repair"] == "needs-force"
    assert document["missing"]["count"] == 1
    assert world.switches[dpid].rules == held
    assert report(world, dpid, repair=True, force=True)["repair"] == "begun"
    world.assert_in_sync()


def test_five_percent_need_no_force(world):
    for number in (3, 4):
        world.switches[2].tables.remove(rule(number).key)
    assert report(world, 2, repair=True)["repair"] == "begun"


@VERSIONS
def test_entries_of_nobody_here_are_counted_and_listed_where_that_is_asked_for(world, dpid):
    strange = rule(60)._replace(cookie=0x1234)
    for other in (strange, rule(61, tag=OTHER_TAG), rule(62)._replace(hard_timeout_s=30)):
        world.switches[dpid].tables.put(other)
    assert report(world, dpid)["foreign"]["count"] == 0
    document = report(world, dpid, foreign=True, repair=True, force=True)
    assert numbers(document, "foreign") == ["in_port=60"]
    assert document["extra"]["count"] == 0
    assert strange in world.switches[dpid].rules.values()


def test_what_is_edited_while_a_switch_tells_its_entries_is_not_taken_for_a_difference(world):
    order(world, 2)
    world.step_switch(2)
    world.change([(2, Put(rule(3, 4)))], [(2, Put(rule(91)))])
    world.deliver()
    (told,) = world.reports
    assert [told.document[kind]["count"] for kind in ("missing", "altered", "extra")] == [0, 0, 0]
    assert told.document["pending"] >= 1


def test_a_short_put_beside_a_report_counts_as_edited(world):
    order(world, 2)
    world.perform(world.installer.put(((2, rule(3, 4)),), world.now))
    world.deliver()
    assert world.reports.pop().document["altered"]["count"] == 0
    assert report(world, 2)["altered"]["count"] == 0


def test_entries_that_a_full_table_has_no_room_for_are_told_apart(make_world, world):
    world.switches[2].capacity = COUNT
    world.change([(2, Put(rule(n))) for n in range(60, 64)])
    world.deliver()
    document = report(world, 2)
    assert (document["no_room"], document["missing"]["count"]) == (4, 0)


def test_unknown_entries_that_are_held_back_are_kept(make_world):
    world = make_world(hold_unknown=True)
    world.switches[2].tables.put(rule(9))
    world.disconnect(2)
    world.connect(2)
    world.deliver()
    told = []
    perform = world.perform
    world.perform = lambda effects: [
        told.append(e) if isinstance(e, TableSurveyed) else perform([e]) for e in effects
    ]
    order(world, 2, repair=True, force=True)
    world.deliver()
    assert (told[0].document["kept"], told[0].document["extra"]["count"]) == (1, 0)
    assert rule(9) in world.switches[2].rules.values()


def test_the_background_check_keeps_its_turn_beside_a_report(world):
    world.installer.check_every(60.0)
    corrupt(world.switches[2].tables)
    due_s = world.installer.next_deadline()
    assert report(world, 2)["missing"]["count"] == 1
    assert world.installer.next_deadline() == due_s
    world.now += 200.0
    for _ in range(4):
        world.pass_time(20.0)
        world.deliver()
    world.assert_in_sync()


@pytest.mark.parametrize("dpid", [2, 77])
def test_a_switch_without_a_connection_is_told_so(world, dpid):
    if dpid == 2:
        world.disconnect(2)
    order(world, dpid)
    assert world.reports.pop().document == {"dpid": dpid, "state": "disconnected"}


def test_a_switch_that_is_being_read_is_told_so(world):
    world.disconnect(2)
    world.connect(2)
    order(world, 2)
    assert world.reports.pop().document["state"] == "being-read"


def test_a_connection_that_ends_and_an_answer_that_stays_away_end_a_report(world):
    order(world, 2)
    world.disconnect(2)
    assert world.reports.pop().document["state"] == "disconnected"
    order(world, 3)
    world.to_switch[3].clear()
    world.pass_time(SURVEY_TIMEOUT_S)
    assert world.reports.pop().document["state"] == "unanswered"
    order(world, 3, 2)
    world.deliver()
    assert world.reports.pop().number == 2


def test_a_later_order_takes_the_place_of_an_earlier_one(world):
    order(world, 2, 1)
    order(world, 2, 2)
    world.deliver()
    assert [(told.number, told.document["state"]) for told in world.reports] == [(1, "replaced"), (2, "read")]


def test_a_malformed_answer_is_told_and_not_compared(world):
    order(world, 2, repair=True, force=True)
    world.step_switch(2)
    answer = world.to_controller[2].popleft()
    world.to_controller[2].append(answer._replace(message=answer.message[:-5]))
    world.deliver()
    told = world.reports.pop()
    assert told.document["state"] == "unreadable" and told.document["reason"]
    world.assert_in_sync()


def test_a_report_counts_more_than_it_lists(world):
    for number in range(100, 100 + LISTED + 7):
        world.switches[2].tables.put(rule(number))
    document = report(world, 2)
    assert document["extra"]["count"] == LISTED + 7
    assert len(document["extra"]["entries"]) == LISTED
