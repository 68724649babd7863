"""A campaign as a state machine: what becomes of each of its switches, one look at the fabric after the other.

Whatever is known is looked at anew each time, so a campaign goes on from what the log has of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.checks import (
    CampaignRefused,
    Preflight,
    check_order,
    errors_of,
    far_ends,
    why_errors_rose,
    why_not_quiet,
)
from controller.maintenance.groups import RedundancyGroup
from controller.maintenance.model import (
    DAY_S,
    ENDED,
    IN_WORK,
    OUT,
    CampaignOutput,
    CampaignRecord,
    CampaignState,
    CampaignTold,
    DrainWanted,
    FabricView,
    MaintenanceOrder,
    Step,
    SwitchWork,
    links_at,
)
from controller.maintenance.schedule import next_switches, phase_ends, widths

HOOK_SLACK_S = 30.0
"""How much longer than the upgrade may take its end is waited for: the program that runs it ends it in time."""

TRIES = 4
"""Switches of which it is looked whether they can be done without, in one look at the fabric."""

PAST_HOOK = (Step.BACK, Step.SOAKING, Step.DONE)
"""The steps of a switch whose upgrade went well."""


class Moment(NamedTuple):
    """When the fabric is looked at: seconds of a clock that only goes on, and the second of the day."""

    now: float
    second_of_day: int


class Campaign:
    """A campaign over some switches of a fabric.

    Attributes
    ----------
    record
        What it is and how far it has come.
    waits_for
        Why nothing new begins now; empty where something has begun or is not to.
    changed
        The datapath ids of switches that are otherwise than before, 0 for the campaign itself; whoever keeps the log
        takes them from here.
    """

    def __init__(self, record: CampaignRecord) -> None:
        self.record = record
        self.waits_for = ""
        self.changed: dict[int, None] = {}
        self._blocked_since_s: float | None = None
        self._refused: dict[int, int] = {}
        self._awaited: set[int] = set()
        self._steps: Mapping[Step, Callable[[SwitchWork, FabricView, Maintenance, float], list[CampaignOutput]]] = {
            Step.DRAINING: self._drain,
            Step.HOOK: self._await_hook,
            Step.BACK: self._await_back,
            Step.SOAKING: self._soak,
        }

    @classmethod
    def begun(
        cls,
        order: MaintenanceOrder,
        runner: str,
        groups: Mapping[int, RedundancyGroup],
        view: FabricView,
        settings: Maintenance,
    ) -> Campaign:
        """Return a new campaign; `groups` are those of all switches. CampaignRefused where it could never end."""
        check_order(order, groups, view, settings)
        homes = set(view.homes())
        works = {dpid: SwitchWork(dpid, groups[dpid], has_hosts=dpid in homes) for dpid in sorted(order.switches)}
        concerned = {work.group for work in works.values()}
        members = {dpid: group for dpid, group in groups.items() if group in concerned}
        campaign = cls(CampaignRecord(order, runner, members, works=works))
        campaign.changed = dict.fromkeys([0, *works])
        return campaign

    @classmethod
    def resumed(cls, record: CampaignRecord) -> Campaign:
        """Return the campaign that another controller, or an earlier run of this one, has left in the log.

        All connections have ended since, so of a switch that is being upgraded nobody knows whether its own did, and
        one that was in use again has not failed before it was there.
        """
        campaign = cls(record)
        campaign._awaited.update(work.dpid for work in campaign.at(Step.SOAKING))
        for work in campaign.at(Step.HOOK, Step.BACK):
            work.was_away = work.was_away or work.is_claimed or work.step is Step.BACK
        return campaign

    # What it says

    @property
    def state(self) -> CampaignState:
        """What becomes of it."""
        return self.record.state

    @property
    def is_over(self) -> bool:
        """Whether nothing more follows."""
        return self.record.state in ENDED

    def at(self, *steps: Step) -> list[SwitchWork]:
        """Return the switches that are at one of some steps."""
        return [work for work in self.record.works.values() if work.step in steps]

    def holds(self, dpid: int) -> bool:
        """Tell whether the campaign wants a switch drained."""
        work = self.record.works.get(dpid)
        if self.is_over or work is None:
            return False
        return work.step in OUT or (work.step is Step.FAILED and work.failed_at is not Step.WAITING)

    @property
    def phase_ends(self) -> tuple[int, ...]:
        """After how many switches each phase ends; those left out do not count."""
        return phase_ends(len(self.record.works) - len(self.at(Step.SKIPPED)))

    # What operators, and the program that upgrades, say

    def pause(self) -> None:
        """Begin nothing new."""
        self._require(CampaignState.RUNNING, CampaignState.PAUSED)
        self._turn(CampaignState.PAUSED)

    def resume(self, runner: str | None) -> None:
        """Go on, and try again what failed; `runner` is who upgrades from now on, None for who does already."""
        self._require(CampaignState.RUNNING, CampaignState.PAUSED, CampaignState.HALTED)
        if runner is not None and runner != self.record.runner:
            self.record.runner = runner
            for work in self.at(Step.HOOK):
                self._restart(work, Step.HOOK)
        for work in self.at(Step.FAILED):
            self._restart(work, Step.BACK if work.failed_at is Step.SOAKING else work.failed_at or Step.WAITING)
        self.record.failures = 0
        self._blocked_since_s = None
        self._turn(CampaignState.RUNNING)

    def skip(self, dpid: int) -> None:
        """Leave a switch out that waits or has failed; one that has failed stays drained."""
        self._require(*(state for state in CampaignState if state not in ENDED))
        work = self._work(dpid)
        if work.step not in (Step.WAITING, Step.FAILED):
            raise CampaignRefused(
                "dpid", f"switch {dpid} is {work.step}: only one that waits or has failed can be left out"
            )
        self._enter(work, Step.SKIPPED, work.reason)

    def abort(self) -> list[CampaignOutput]:
        """Begin nothing new, take back what is drained for nothing, and end when what is in work has ended."""
        self._require(*(state for state in CampaignState if state not in ENDED))
        self._turn(CampaignState.ABORTING)
        outputs: list[CampaignOutput] = []
        for work in self.at(Step.DRAINING, Step.HOOK):
            if not work.is_claimed:
                self._enter(work, Step.WAITING)
                outputs.append(DrainWanted(work.dpid, False))
        return outputs

    def hook_begins(self, dpid: int, runner: str) -> None:
        """Take it that the upgrade of a switch begins, anew where that was told before: the answer may be lost."""
        work = self._upgraded(dpid, runner)
        self._restart(work, Step.HOOK)
        work.is_claimed, work.was_away = True, False

    def hook_ended(self, dpid: int, runner: str, fault: str) -> list[CampaignOutput]:
        """Take it that the upgrade of a switch has ended, well where `fault` is empty; it may be told twice.

        Where nobody knows that it began, the log had lost that, and who saw whether the switch was away is gone.
        """
        work = self._upgraded(dpid, runner, *((Step.FAILED,) if fault else PAST_HOOK))
        if work.step is not Step.HOOK:
            return []
        work.was_away = work.was_away or not work.is_claimed
        work.is_claimed = False
        if fault:
            return [self._fail(work, f"the upgrade failed: {fault}")]
        self._enter(work, Step.BACK)
        return []

    def disconnected(self, dpid: int) -> None:
        """Take it that the connection of a switch has ended."""
        work = self.record.works.get(dpid)
        if work is not None and work.step in (Step.HOOK, Step.BACK) and not work.was_away:
            work.was_away = True
            self.changed[dpid] = None

    # What happens by itself

    def look(self, view: FabricView, settings: Maintenance, at: Moment) -> list[CampaignOutput]:
        """Look at the fabric, and return what is to be done."""
        if self.is_over:
            return []
        outputs: list[CampaignOutput] = []
        for work in self.at(*IN_WORK):
            if work.since_s is None:
                work.since_s = at.now
            outputs += self._kept(work, view)
            outputs += self._steps[work.step](work, view, settings, at.now)
        if self.record.failures >= settings.failures and self.state is CampaignState.RUNNING:
            self._turn(CampaignState.HALTED)
            text = f"The campaign is halted, for {self.record.failures} switches have failed: nothing new begins."
            outputs.append(CampaignTold("maintenance-halted", text, is_bad=True))
        self.waits_for = ""
        if self.state is CampaignState.RUNNING:
            outputs += self._begin_some(view, settings, at)
        outputs += self._end()
        return outputs

    def _kept(self, work: SwitchWork, view: FabricView) -> list[CampaignOutput]:
        """Have a switch drained, or not, as its step wants it, whoever thought otherwise."""
        wanted = work.step in OUT
        return [] if (work.dpid in view.drained()) is wanted else [DrainWanted(work.dpid, wanted)]

    def _drain(self, work: SwitchWork, view: FabricView, settings: Maintenance, now: float) -> list[CampaignOutput]:
        reason = why_not_quiet(work, view, settings)
        if self._lasts(work, reason, settings.quiet_s, now):
            self._enter(work, Step.HOOK)
            return [
                CampaignTold("maintenance-drained", f"Switch {work.dpid} is quiet: it can be upgraded.", work.dpid)
            ]
        return self._late(work, settings.quiet_limit_s, now)

    def _await_hook(
        self, work: SwitchWork, _view: FabricView, _settings: Maintenance, now: float
    ) -> list[CampaignOutput]:
        work.reason = "it is being upgraded" if work.is_claimed else "nobody has begun its upgrade"
        return self._late(work, self.record.order.hook_limit_s + HOOK_SLACK_S, now)

    def _await_back(
        self, work: SwitchWork, view: FabricView, settings: Maintenance, now: float
    ) -> list[CampaignOutput]:
        reason = self._why_not_back(work, view)
        if self._lasts(work, reason, settings.quiet_s, now):
            self._enter(work, Step.SOAKING)
            return [DrainWanted(work.dpid, False)]
        return self._late(work, settings.back_limit_s, now)

    def _why_not_back(self, work: SwitchWork, view: FabricView) -> str:
        if self.record.order.restarts and not work.was_away:
            return "it has not lost its connection since its upgrade began"
        if trouble := view.trouble(work.dpid):
            return f"it {trouble}"
        missing = sorted(set(work.links).difference(links_at(view.graph, work.dpid)))
        away = [link for link in missing if self._is_there(link[2])]
        if away:
            more = f", and {len(away) - 1} more" if len(away) > 1 else ""
            return "its link from port {1} to port {2}:{3} is missing".format(*away[0]) + more
        return ""

    def _is_there(self, dpid: int) -> bool:
        """Tell whether a neighbour is to be there: not while it is in work itself."""
        work = self.record.works.get(dpid)
        return work is None or work.step not in (Step.HOOK, Step.BACK, Step.FAILED)

    def _soak(self, work: SwitchWork, view: FabricView, settings: Maintenance, now: float) -> list[CampaignOutput]:
        assert work.since_s is not None
        reason = self._why_not_back(work, view)
        if not reason and work.dpid in self._awaited:
            self._awaited.remove(work.dpid)
            work.since_s = now
        if rise := why_errors_rose(work, view, settings.errors_per_s):
            return [self._fail(work, rise), DrainWanted(work.dpid, True)]
        is_awaited = work.dpid in self._awaited
        if reason and not is_awaited and (view.absence(work.dpid) or not view.trouble(work.dpid)):
            return [self._fail(work, f"it was back, but now {reason}"), DrainWanted(work.dpid, True)]
        if not reason and errors_of(work, view) is None:
            reason = "its errors were not counted twice since it is in use"
        if not reason and now >= work.since_s + settings.soak_s:
            work.took_s = None if work.began_s is None else now - work.began_s
            self._enter(work, Step.DONE)
            return [CampaignTold("maintenance-done", f"Switch {work.dpid} is done and in use.", work.dpid)]
        work.reason = reason or "it is in use and watched"
        return self._late(work, settings.soak_s + settings.back_limit_s, now)

    def _lasts(self, work: SwitchWork, reason: str, lasting_s: float, now: float) -> bool:
        """Tell whether a switch has been as it should for so long."""
        work.reason = reason
        if reason:
            work.quiet_since_s = None
            return False
        if work.quiet_since_s is None:
            work.quiet_since_s = now
        return now >= work.quiet_since_s + lasting_s

    def _late(self, work: SwitchWork, limit_s: float, now: float) -> list[CampaignOutput]:
        assert work.since_s is not None
        if now < work.since_s + limit_s:
            return []
        return [self._fail(work, f"after {limit_s:g} s {work.reason or 'it is as it should only now and then'}")]

    # What is begun

    def _begin_some(self, view: FabricView, settings: Maintenance, at: Moment) -> list[CampaignOutput]:
        waiting = self.at(Step.WAITING)
        if not waiting:
            return []
        done = len(self.at(Step.DONE, Step.FAILED))
        begun = done + len(self.at(*IN_WORK))
        ends = self.phase_ends
        while self.record.phase < len(ends) - 1 and done >= ends[self.record.phase]:
            self.record.phase += 1
            self.changed[0] = None
        room = min(
            settings.max_concurrent - len(self.at(*IN_WORK)), ends[min(self.record.phase, len(ends) - 1)] - begun
        )
        rank = min(work.group.rank for work in self.at(Step.WAITING, *IN_WORK))
        blocked = self._why_none(room, rank, waiting, at)
        begun_now: list[SwitchWork] = []
        reasons: dict[int, str] = {}
        if not blocked:
            begun_now = self._chosen(
                [work for work in waiting if work.group.rank == rank], room, view, settings, reasons
            )
            for work in begun_now:
                work.links = links_at(view.graph, work.dpid)
                work.errors = view.errors_before(work.dpid, far_ends(work))
                work.began_s = at.now
                self._enter(work, Step.DRAINING)
        outputs: list[CampaignOutput] = [DrainWanted(work.dpid, True) for work in begun_now]
        if begun_now or self.at(*IN_WORK) or blocked:
            self._blocked_since_s = None
            self.waits_for = blocked or next(iter(reasons.values()), "")
            return outputs
        self.waits_for = next(iter(reasons.values()), "its redundancy group can spare none")
        if self._blocked_since_s is None:
            self._blocked_since_s = at.now
        if at.now >= self._blocked_since_s + settings.preflight_limit_s:
            first = self.record.works[next(iter(reasons), waiting[0].dpid)]
            self._blocked_since_s = None
            return [self._fail(first, f"after {settings.preflight_limit_s:g} s {self.waits_for}")]
        return outputs

    def _why_none(self, room: int, rank: int, waiting: list[SwitchWork], at: Moment) -> str:
        """Say why no switch may begin, whichever; empty where one may."""
        if room <= 0:
            return "the switches in work are to be done first"
        if all(work.group.rank != rank for work in waiting):
            return "the tier before is to be done first"
        window = self.record.order.window
        if window is not None:
            start_s, end_s = window
            length_s = (end_s - start_s) % DAY_S or DAY_S
            gone_s = (at.second_of_day - start_s) % DAY_S
            expected_s = self.expected_s
            if gone_s + expected_s > length_s:
                return f"a switch takes {expected_s:.0f} s, and would not be done inside the window"
        return ""

    @property
    def expected_s(self) -> float:
        """How long a switch is expected to take, by what was said and by those that are done."""
        took = [work.took_s for work in self.record.works.values() if work.took_s is not None]
        return max(took, default=self.record.order.expected_s)

    def _chosen(
        self, waiting: list[SwitchWork], room: int, view: FabricView, settings: Maintenance, reasons: dict[int, str]
    ) -> list[SwitchWork]:
        """Return the switches to begin, and why others are not; those that were refused before are asked last."""
        by_group: dict[RedundancyGroup, list[int]] = {}
        for work in sorted(waiting, key=lambda work: (self._refused.get(work.dpid, 0), work.dpid)):
            by_group.setdefault(work.group, []).append(work.dpid)
        spare, width = self._spare(by_group, view, settings)
        for group, count in spare.items():
            if count <= 0:
                reasons[by_group[group][0]] = f"group {group.name} can spare no switch now"
        out = {work.dpid for work in self.at(*OUT, Step.FAILED)}
        preflight = Preflight(view, settings, self.record.order, out)

        def may_begin(dpid: int) -> bool:
            reason = preflight.why_not(dpid)
            if reason:
                self._refused[dpid] = self._refused.get(dpid, 0) + 1
                reasons[dpid] = f"switch {dpid} {reason}"
            return not reason

        chosen = next_switches(by_group, spare, width, room, may_begin, TRIES)
        return [self.record.works[dpid] for dpid in chosen]

    def _spare(
        self, groups: Mapping[RedundancyGroup, list[int]], view: FabricView, settings: Maintenance
    ) -> tuple[dict[RedundancyGroup, int], dict[RedundancyGroup, int]]:
        """Return how many switches each group can spare now, and at best."""
        sizes = Counter(self.record.groups.values())
        members = [(dpid, its) for dpid, its in self.record.groups.items() if its in groups]
        ready = Counter(its for dpid, its in members if self._is_ready(dpid, view))
        width = widths({group: sizes[group] for group in groups}, settings.min_ready_pct)
        return {group: ready[group] - (sizes[group] - width[group]) for group in groups}, width

    def _is_ready(self, dpid: int, view: FabricView) -> bool:
        work = self.record.works.get(dpid)
        is_free = work is None or work.step in (Step.WAITING, Step.DONE, Step.SKIPPED)
        return is_free and dpid not in view.drained() and view.trouble(dpid) is None

    # How it ends

    def _end(self) -> list[CampaignOutput]:
        if self.at(*IN_WORK):
            return []
        if self.state is CampaignState.ABORTING:
            self._turn(CampaignState.ABORTED)
            failed = [work.dpid for work in self.at(Step.FAILED)]
            left = f" Drained still: {', '.join(map(str, failed))}." if failed else ""
            return [CampaignTold("maintenance-aborted", f"The campaign was aborted.{left}", is_bad=True)]
        if self.at(Step.WAITING):
            return []
        if count := len(self.at(Step.FAILED)):
            if self.state is not CampaignState.RUNNING:
                return []
            self._turn(CampaignState.HALTED)
            text = f"The campaign is halted: all is done but for {count} switches that have failed."
            return [CampaignTold("maintenance-halted", text, is_bad=True)]
        self._turn(CampaignState.DONE)
        count = len(self.at(Step.DONE))
        return [CampaignTold("maintenance-ended", f"The campaign has ended: {count} switches are done.")]

    def _fail(self, work: SwitchWork, reason: str) -> CampaignTold:
        work.failed_at, work.is_claimed = work.step, False
        self._enter(work, Step.FAILED, reason)
        work.failed_at = work.failed_at or Step.WAITING
        self.record.failures += 1
        self.changed[0] = None
        stays = "" if work.failed_at is Step.WAITING else " It stays drained."
        text = f"The maintenance of switch {work.dpid} has failed while {_DOING[work.failed_at]}: {reason}.{stays}"
        return CampaignTold("maintenance-failed", text, work.dpid, is_bad=True)

    def _enter(self, work: SwitchWork, step: Step, reason: str = "") -> None:
        work.step, work.reason = step, reason
        work.since_s = work.quiet_since_s = None
        self.changed[work.dpid] = None

    def _restart(self, work: SwitchWork, step: Step) -> None:
        work.failed_at, work.is_claimed = None, False
        self._enter(work, step)

    def _turn(self, state: CampaignState) -> None:
        self.record.state = state
        self.changed[0] = None

    def _require(self, *states: CampaignState) -> None:
        if self.state not in states:
            raise CampaignRefused("state", f"the campaign is {self.state}")

    def _work(self, dpid: int) -> SwitchWork:
        work = self.record.works.get(dpid)
        if work is None:
            raise CampaignRefused("dpid", f"switch {dpid} is no part of the campaign")
        return work

    def _upgraded(self, dpid: int, runner: str, *others: Step) -> SwitchWork:
        if self.is_over:
            raise CampaignRefused("state", f"the campaign is {self.state}")
        if runner != self.record.runner:
            raise CampaignRefused("runner", "another command upgrades the switches of this campaign now")
        work = self._work(dpid)
        if work.step not in (Step.HOOK, *others):
            raise CampaignRefused("dpid", f"switch {dpid} is {work.step}, and not to be upgraded now")
        return work


_DOING = {
    Step.WAITING: "it waited to begin",
    Step.DRAINING: "it was drained",
    Step.HOOK: "it was upgraded",
    Step.BACK: "it was waited for",
    Step.SOAKING: "it was watched",
}
