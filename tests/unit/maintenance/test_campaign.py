"""A campaign: what it begins, waits for and gives up."""

from __future__ import annotations

import json

import pytest
from maintained_fabrics import MaintainedFabric, MaintenanceRun, Odds, switches_of
from maintenance_campaigns import run_campaign

from campaign_bench import ME, SETTINGS, Bench
from controller.config.maintenance_settings import Maintenance
from controller.maintenance.campaign import HOOK_SLACK_S
from controller.maintenance.checks import CampaignRefused
from controller.maintenance.model import (
    CampaignState,
    MaintenanceOrder,
    Step,
    read_work,
    work_value,
)
from topology.generators import make


def test_a_switch_goes_through_its_steps() -> None:
    bench = Bench()
    bench.look()
    (core,) = bench.campaign.at(Step.DRAINING)
    assert core.group.tier == "core"
    assert bench.fabric.drained() == {core.dpid}
    assert bench.upgraded() == core.dpid
    assert core.step is Step.BACK
    assert bench.fabric.drained() == {core.dpid}
    bench.until(lambda: core.step is Step.SOAKING)
    assert bench.fabric.drained() == set()
    bench.until(lambda: core.step is Step.DONE)
    assert core.took_s is not None
    assert bench.kinds() == ["maintenance-drained", "maintenance-done"]


def test_nothing_else_begins_before_the_first_one_is_done() -> None:
    bench = Bench()
    bench.upgraded()
    bench.until(lambda: bool(bench.campaign.at(Step.SOAKING)))
    assert len(bench.campaign.at(Step.WAITING)) == 19
    assert bench.campaign.waits_for == "the switches in work are to be done first"


def test_a_whole_campaign_ends_and_nothing_stays_drained() -> None:
    fabric = MaintainedFabric(switches_of(make("fattree", {"k": 4})), SETTINGS, Odds(), 1)
    order = MaintenanceOrder(tuple(sorted(fabric.groups)), disruptive=True, hook_limit_s=60, restarts=True)
    run = MaintenanceRun(fabric, order)
    assert run.run() is CampaignState.DONE
    assert (len(run.campaign.at(Step.DONE)), fabric.drained(), fabric.broken) == (20, set(), [])
    assert [told.kind for told in fabric.told if told.is_bad] == []


def test_a_failed_upgrade_halts_the_campaign_and_the_switch_stays_drained() -> None:
    bench = Bench()
    dpid = bench.upgraded("exit status 3")
    bench.look(300)
    assert bench.campaign.state is CampaignState.HALTED
    assert bench.fabric.drained() == {dpid}
    assert bench.kinds() == ["maintenance-drained", "maintenance-failed", "maintenance-halted"]
    assert bench.told[1].text == (
        f"The maintenance of switch {dpid} has failed while it was upgraded: the upgrade failed: exit status 3. "
        "It stays drained."
    )


def test_resume_tries_again_what_failed() -> None:
    bench = Bench()
    dpid = bench.upgraded("exit status 3")
    bench.look()
    bench.campaign.resume(None)
    assert bench.upgraded() == dpid
    bench.until(lambda: len(bench.campaign.at(Step.DONE)) == 1)
    assert bench.campaign.state is CampaignState.RUNNING


def test_a_failed_switch_that_is_left_out_stays_drained_and_the_others_go_on() -> None:
    bench = Bench()
    dpid = bench.upgraded("exit status 3")
    bench.look()
    bench.campaign.skip(dpid)
    bench.campaign.resume(None)
    assert bench.upgraded() != dpid
    assert dpid in bench.fabric.drained()


def test_more_failures_may_be_allowed_but_groups_have_their_rest() -> None:
    bench = Bench(Maintenance(soak_s=1, failures=2))
    dpid = bench.upgraded("exit status 3")
    other = bench.upgraded()
    groups = bench.fabric.groups
    assert groups[other] != groups[dpid]  # of its own plane there is one left, which is to stay


def test_a_switch_that_does_not_come_back_fails_in_time() -> None:
    bench = Bench()
    dpid = bench.first_at(Step.HOOK)
    bench.fabric.goes_down(dpid, 0, 1e9)
    bench.upgraded()
    bench.look(SETTINGS.back_limit_s + 2)
    assert bench.campaign.record.works[dpid].step is Step.FAILED
    assert "while it was waited for: after 600 s it is not connected" in bench.told[-2].text


def test_a_switch_without_a_link_it_had_is_not_back() -> None:
    bench = Bench()
    dpid = bench.first_at(Step.HOOK)
    bench.fabric.goes_down(dpid, 0, 5, without_link=True)
    bench.look(20)
    bench.upgraded()
    bench.look(5)
    work = bench.campaign.record.works[dpid]
    assert work.step is Step.BACK
    assert work.reason.startswith("its link from port ")
    bench.fabric.mend(dpid)
    bench.until(lambda: work.step is Step.SOAKING)


def test_a_switch_that_is_to_restart_is_not_back_before_it_was_away() -> None:
    bench = Bench(restarts=True)
    dpid = bench.upgraded()
    bench.look(30)
    work = bench.campaign.record.works[dpid]
    assert work.reason == "it has not lost its connection since its upgrade began"
    bench.fabric.goes_down(dpid, 0, 3)
    bench.until(lambda: work.step is Step.SOAKING)


def test_a_switch_that_goes_while_it_is_watched_is_drained_again() -> None:
    bench = Bench()
    dpid = bench.upgraded()
    bench.until(lambda: bool(bench.campaign.at(Step.SOAKING)))
    bench.fabric.goes_down(dpid, 0, 100)
    bench.look(2)
    assert bench.campaign.record.works[dpid].step is Step.FAILED
    assert bench.fabric.drained() == {dpid}


def test_an_upgrade_that_nobody_begins_fails_in_time() -> None:
    bench = Bench(hook_limit_s=60.0)
    dpid = bench.first_at(Step.HOOK)
    bench.look(60 + HOOK_SLACK_S + 1)
    assert bench.campaign.record.works[dpid].step is Step.FAILED
    assert "nobody has begun its upgrade" in bench.told[-2].text


def test_a_busy_switch_is_not_quiet_and_fails_in_time() -> None:
    bench = Bench()
    bench.look()
    (work,) = bench.campaign.at(Step.DRAINING)
    bench.fabric.busiest_port = lambda _dpid: (3, 2e6)  # type: ignore[method-assign]
    bench.look(10)
    assert work.reason == "its port 3 still carries 2,000,000 bit/s"
    bench.look(SETTINGS.quiet_limit_s)
    assert work.step is Step.FAILED


def test_a_command_that_takes_over_begins_the_upgrade_anew_and_the_former_one_is_refused() -> None:
    bench = Bench()
    dpid = bench.first_at(Step.HOOK)
    bench.campaign.hook_begins(dpid, ME)
    bench.campaign.resume("another")
    with pytest.raises(CampaignRefused, match="another command"):
        bench.campaign.hook_ended(dpid, ME, "")
    bench.campaign.hook_begins(dpid, "another")
    bench.campaign.hook_ended(dpid, "another", "")
    assert bench.campaign.record.works[dpid].step is Step.BACK


def test_pause_begins_nothing_and_resume_goes_on() -> None:
    bench = Bench()
    bench.upgraded()
    bench.campaign.pause()
    bench.until(lambda: bool(bench.campaign.at(Step.DONE)))
    bench.look(100)
    assert len(bench.campaign.at(Step.WAITING)) == 19
    bench.campaign.resume(None)
    bench.first_at(Step.DRAINING)


def test_abort_takes_back_what_is_drained_for_nothing() -> None:
    bench = Bench()
    bench.first_at(Step.DRAINING)
    bench.do(bench.campaign.abort())
    bench.look()
    assert bench.campaign.state is CampaignState.ABORTED
    assert bench.fabric.drained() == set()


def test_abort_lets_an_upgrade_come_to_its_end() -> None:
    bench = Bench()
    dpid = bench.first_at(Step.HOOK)
    bench.campaign.hook_begins(dpid, ME)
    bench.do(bench.campaign.abort())
    bench.look(5)
    assert bench.campaign.state is CampaignState.ABORTING
    assert bench.fabric.drained() == {dpid}
    bench.do(bench.campaign.hook_ended(dpid, ME, ""))
    bench.until(lambda: bench.campaign.is_over)
    assert bench.fabric.drained() == set()
    assert bench.campaign.record.works[dpid].step is Step.DONE


@pytest.mark.parametrize(
    ("at_s", "begins"),
    [(21 * 3600, False), (22 * 3600, True), (3600, True), (6 * 3600 - 601, True), (6 * 3600 - 500, False)],
)
def test_only_what_is_expected_to_end_inside_the_window_begins(at_s: int, begins: bool) -> None:
    bench = Bench(window=(22 * 3600, 6 * 3600))
    bench.second_of_day = at_s
    bench.look()
    assert bool(bench.campaign.at(Step.DRAINING)) is begins
    assert begins or "inside the window" in bench.campaign.waits_for


def test_a_switch_that_cannot_begin_says_why_and_fails_in_time() -> None:
    bench = Bench()
    bench.fabric.busy_pct = 79.0
    bench.look(10)
    assert bench.campaign.waits_for.endswith(" would leave a link 84 % busy, and 80 % is allowed")
    bench.look(SETTINGS.preflight_limit_s)
    assert bench.campaign.state is CampaignState.HALTED
    assert bench.fabric.drained() == set()
    assert "It stays drained" not in bench.told[0].text


def test_a_switch_that_an_operator_has_drained_is_left_alone() -> None:
    bench = Bench()
    cores = {dpid for dpid, group in bench.fabric.groups.items() if group.tier == "core"}
    for dpid in cores:
        bench.fabric.turn(dpid, True)
    bench.look(60)
    assert not bench.campaign.at(Step.DRAINING)
    assert "can spare no switch" in bench.campaign.waits_for


@pytest.mark.parametrize(
    ("settings", "order", "field"),
    [
        (SETTINGS, {"switches": ()}, "switches"),
        (SETTINGS, {"switches": (99,)}, "switches"),
        (SETTINGS, {"disruptive": False}, "disruptive"),
        (Maintenance(min_ready_pct=100), {}, "min_ready_pct"),
    ],
)
def test_what_could_never_end_is_refused(settings: Maintenance, order: dict[str, object], field: str) -> None:
    with pytest.raises(CampaignRefused) as refusal:
        Bench(settings, **order)
    assert refusal.value.field == field


@pytest.mark.parametrize("seed", range(1000, 1004))
def test_campaigns_with_failures_keep_every_limit(seed: int) -> None:
    outcome = run_campaign(seed)
    assert not outcome.broken
    assert outcome.refused or outcome.done + outcome.skipped == outcome.switches
    assert outcome.waves <= outcome.least_waves + 1


def test_a_campaign_that_breaks_its_limits_is_found_out() -> None:
    allowed, wanted = (
        Maintenance(min_ready_pct=0, max_concurrent=9, soak_s=0),
        Maintenance(max_concurrent=2, soak_s=0),
    )
    fabric = MaintainedFabric(switches_of(make("fattree", {"k": 4})), allowed, Odds(), 1)
    run = MaintenanceRun(fabric, MaintenanceOrder(tuple(sorted(fabric.groups)), disruptive=True, hook_limit_s=20))
    look = run.campaign.look
    run.campaign.look = lambda view, _settings, at: look(view, allowed, at)  # type: ignore[method-assign]
    fabric.settings = wanted
    run.run()
    assert any("switches in work" in text for text in fabric.broken)
    assert any(text.startswith("group ") for text in fabric.broken)


def soaking(bench: Bench, before: dict[tuple[int, int], float] | None) -> int:
    """Have a switch be watched whose ports had these errors before it was drained."""
    bench.fabric.errors_before = lambda _dpid, _ends: before  # type: ignore[method-assign]
    bench.upgraded()
    return bench.first_at(Step.SOAKING)


def test_more_errors_than_before_fail_a_switch_and_nothing_new_begins() -> None:
    bench = Bench()
    dpid = soaking(bench, {(1, 1): 2.0})
    bench.fabric.erring.add(dpid)
    bench.until(lambda: bench.campaign.state is CampaignState.HALTED)
    work = bench.campaign.record.works[dpid]
    assert (work.step, work.failed_at) == (Step.FAILED, Step.SOAKING)
    before = 2 if dpid == 1 else 0
    assert f"its port 1 has 5 errors in a second, and had {before} at most before" in bench.told[-2].text
    assert dpid in bench.fabric.drained(), "it stays drained"
    bench.fabric.erring.discard(dpid)
    bench.campaign.resume(None)
    bench.until(lambda: work.step is Step.DONE)


def test_as_many_errors_as_before_are_no_failure() -> None:
    bench = Bench()
    bench.fabric.errors_since = lambda dpid, _ends, _since_s: {(dpid, 1): 5.0}  # type: ignore[method-assign]
    bench.fabric.errors_before = lambda dpid, _ends: {(dpid, 1): 4.95}  # type: ignore[method-assign]
    dpid = bench.upgraded()
    bench.until(lambda: bench.campaign.record.works[dpid].step is Step.DONE)


def test_a_switch_is_watched_until_its_errors_are_known_and_fails_where_they_never_are() -> None:
    bench = Bench()
    dpid = soaking(bench, {})
    bench.fabric.errors_since = lambda _dpid, _ends, _since_s: None  # type: ignore[method-assign]
    bench.look(SETTINGS.soak_s + 5)
    work = bench.campaign.record.works[dpid]
    assert (work.step, work.reason) == (Step.SOAKING, "its errors were not counted twice since it is in use")
    bench.look(SETTINGS.back_limit_s)
    assert work.step is Step.FAILED
    assert "its errors were not counted" in work.reason


def test_where_nobody_measures_errors_are_not_asked_for() -> None:
    bench = Bench()
    bench.fabric.errors_since = lambda _dpid, _ends, _since_s: None  # type: ignore[method-assign]
    dpid = soaking(bench, None)
    bench.until(lambda: bench.campaign.record.works[dpid].step is Step.DONE, for_s=30)


def test_the_log_has_the_errors_and_does_without_them_where_an_earlier_version_wrote() -> None:
    bench = Bench()
    dpid = soaking(bench, {(3, 2): 0.5})
    value = json.loads(json.dumps(work_value(bench.campaign.record.works[dpid])))
    assert read_work(value).errors == {(3, 2): 0.5}
    del value["errors"]
    assert read_work(value).errors is None
