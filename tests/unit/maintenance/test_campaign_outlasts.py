"""A campaign goes on over restarts of its controller, and over what was told and not heard."""

from __future__ import annotations

import pytest

from campaign_bench import ME, SETTINGS, Bench
from controller.maintenance.checks import CampaignRefused
from controller.maintenance.model import Step


def test_another_controller_goes_on_wherever_the_first_one_was() -> None:
    bench = Bench()
    for step in (Step.DRAINING, Step.HOOK, Step.BACK, Step.SOAKING, Step.DONE):
        if step is Step.BACK:
            bench.campaign.hook_begins(bench.first_at(Step.HOOK), ME)
            bench.restart()
            (work,) = bench.campaign.at(Step.HOOK)
            assert work.is_claimed
            bench.campaign.hook_ended(work.dpid, ME, "")
        dpid = bench.first_at(step)
        bench.restart()
        assert [work.dpid for work in bench.campaign.at(step)] == [dpid]
    assert "maintenance-failed" not in bench.kinds()


def test_a_switch_that_restarted_while_no_controller_was_there_is_back() -> None:
    bench = Bench(restarts=True)
    dpid = bench.upgraded()
    bench.restart()
    bench.until(lambda: bench.campaign.record.works[dpid].step is Step.SOAKING)


def test_a_switch_in_use_again_is_waited_for_when_the_controller_is_back() -> None:
    bench = Bench()
    dpid = bench.upgraded()
    bench.until(lambda: bool(bench.campaign.at(Step.SOAKING)))
    bench.restart()
    bench.fabric.goes_down(dpid, in_s=0, for_s=5)
    bench.look(3)
    (work,) = bench.campaign.at(Step.SOAKING)
    assert (work.dpid, work.reason) == (dpid, "it is not connected")
    bench.until(lambda: work.reason != "it is not connected")
    bench.look(SETTINGS.soak_s - 2)
    assert work.step is Step.SOAKING
    bench.fabric.goes_down(dpid, in_s=0, for_s=5)
    bench.look(3)
    assert (work.step, work.reason) == (Step.FAILED, "it was back, but now it is not connected")


def test_a_switch_in_use_again_that_stays_away_from_a_new_controller_has_failed() -> None:
    bench = Bench()
    dpid = bench.upgraded()
    bench.until(lambda: bool(bench.campaign.at(Step.SOAKING)))
    bench.restart()
    bench.fabric.goes_down(dpid, in_s=0, for_s=1e6)
    bench.look(SETTINGS.soak_s + SETTINGS.back_limit_s + 2)
    work = bench.campaign.record.works[dpid]
    assert (work.step, work.failed_at) == (Step.FAILED, Step.SOAKING)


def test_an_upgrade_may_begin_again_where_nobody_heard_that_it_may() -> None:
    bench = Bench(restarts=True)
    dpid = bench.first_at(Step.HOOK)
    bench.campaign.hook_begins(dpid, ME)
    bench.campaign.disconnected(dpid)
    bench.campaign.hook_begins(dpid, ME)
    bench.campaign.hook_ended(dpid, ME, "")
    bench.look(10)
    work = bench.campaign.record.works[dpid]
    assert (work.step, work.reason) == (Step.BACK, "it has not lost its connection since its upgrade began")


def test_an_upgrade_whose_begin_the_log_lost_ends_all_the_same() -> None:
    bench = Bench(restarts=True)
    dpid = bench.first_at(Step.HOOK)
    bench.restart()
    bench.campaign.hook_ended(dpid, ME, "")
    bench.until(lambda: bench.campaign.record.works[dpid].step is Step.SOAKING)


def test_the_end_of_an_upgrade_may_be_told_twice() -> None:
    bench = Bench()
    dpid = bench.first_at(Step.HOOK)
    bench.campaign.hook_begins(dpid, ME)
    bench.campaign.hook_ended(dpid, ME, "")
    work = bench.campaign.record.works[dpid]
    for step in (Step.BACK, Step.SOAKING, Step.DONE):
        bench.until(lambda: work.step is step)  # noqa: B023
        assert bench.campaign.hook_ended(dpid, ME, "") == []
        assert work.step is step
    with pytest.raises(CampaignRefused, match="is done, and not to be upgraded now"):
        bench.campaign.hook_ended(dpid, ME, "exit status 1")
    bench = Bench()
    dpid = bench.first_at(Step.HOOK)
    bench.campaign.hook_begins(dpid, ME)
    assert len(bench.campaign.hook_ended(dpid, ME, "exit status 1")) == 1
    assert bench.campaign.hook_ended(dpid, ME, "exit status 1") == []
    assert bench.campaign.record.failures == 1


def test_a_drain_that_the_log_lost_is_wanted_again() -> None:
    bench = Bench()
    dpid = bench.first_at(Step.DRAINING)
    bench.fabric.turn(dpid, False)
    bench.restart()
    bench.look()
    assert bench.fabric.drained() == {dpid}
