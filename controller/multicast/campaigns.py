"""Rolling maintenance in the controller: the fabric as a campaign sees it, and what it wants done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from controller.effects import ActionRefused, ActionTaken
from controller.log import LogEntry, LogEntryKind
from controller.maintenance.campaign import Campaign, Moment
from controller.maintenance.checks import CampaignRefused, check_order
from controller.maintenance.documents import CAMPAIGN, campaign_document, plan_document, work_document
from controller.maintenance.errors import ErrorsMeasured, PortErrors
from controller.maintenance.forecast import DrainForecast
from controller.maintenance.groups import redundancy_groups
from controller.maintenance.model import (
    CampaignOutput,
    DrainWanted,
    Step,
    campaign_value,
    read_campaign,
    read_work,
    work_value,
)
from controller.multicast.callbacks import Perform, PolicyInForce
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.events import (
    LoadsMeasured,
    MaintenanceHookSet,
    MaintenanceLooked,
    MaintenancePlanAsked,
    MaintenanceSkipAsked,
    MaintenanceStartAsked,
    MaintenanceTurnAsked,
)
from controller.multicast.groups import GroupPlane
from controller.multicast.operator import Operator
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.settings import forest_of
from controller.multicast.switches import Switches
from controller.rules.installer import Installer
from controller.snapshot.events import Severity
from controller.snapshot.log import DocumentLog
from topology.aggregations import Place
from topology.graph import Graph
from topology.live import LiveFabric

Record: TypeAlias = Mapping[str, Any]

MAINTENANCE, MAINTENANCE_SWITCH = "maintenance", "maintenance-switch"
"""What the log calls a campaign, and a switch of it."""


class MaintenanceView:
    """The fabric as it is, for a campaign; `behind` are the switches that another app has edits under way at."""

    def __init__(
        self,
        policy: PolicyInForce,
        fabric: LiveFabric,
        switches: Switches,
        plane: GroupPlane,
        installer: Installer,
    ) -> None:
        self._fabric = fabric
        self._switches = switches
        self._plane = plane
        self._installer = installer
        self._forecast = DrainForecast(plane.forest, fabric.graph, lambda graph: forest_of(policy(), graph))
        self._bps: dict[tuple[int, int], float] = {}
        self.errors = PortErrors()
        self.behind: Collection[int] = ()
        self.now = 0.0

    @property
    def graph(self) -> Graph:
        """The switches and the links between them."""
        return self._fabric.graph

    def loads_measured(self, event: LoadsMeasured) -> None:
        """Take what ports to other switches send."""
        for dpid, port_no, _, bps in event.loads:
            self._bps[dpid, port_no] = bps

    def homes(self) -> Iterable[int]:
        """Return the switches with ports to hosts: members, senders and routers are nowhere else."""
        return {dpid for dpid, _ in self._switches.edges if dpid in self._fabric.graph}

    def absence(self, dpid: int) -> str | None:
        """Say why a switch is not there."""
        if dpid not in self._switches.connected or self._fabric.ofp_version(dpid) is None:
            return "is not connected"
        return None if self._installer.is_read(dpid) else "is being read"

    def trouble(self, dpid: int) -> str | None:
        """Say why a switch is not there, or does not hold what it shall."""
        absence = self.absence(dpid)
        if absence is None and (dpid in self.behind or not self._installer.in_sync(dpid)):
            return "has edits under way"
        return absence

    def drained(self) -> Collection[int]:
        """Return the drained switches."""
        return self._switches.drained

    def transit(self, dpid: int) -> int:
        """Return how many trees lead through a switch."""
        forest = self._plane.forest
        if dpid not in forest.graph:
            return 0
        used = Counter(key for other in forest.graph.neighbours(dpid) for key in forest.groups_on(dpid, other))
        return sum(links > 1 for links in used.values())

    def busiest_port(self, dpid: int) -> tuple[int, float]:
        """Return the port to another switch that carries most, by either end."""
        found = (0, 0.0)
        if dpid in self.graph:
            for other in self.graph.neighbours(dpid):
                for link in self.graph.cables(dpid, other):
                    ends: tuple[Place, Place] = ((dpid, link.u_port or 0), (cast("int", link.v), link.v_port or 0))
                    bps = max(self._bps.get(end, 0.0) for end in ends)
                    if bps > found[1]:
                        found = (link.u_port or 0, bps)
        return found

    def errors_before(self, dpid: int, far_ends: Iterable[Place]) -> dict[Place, float] | None:
        """Return what errors there were lately, None where the switches at both ends are not polled."""
        ends = list(far_ends)
        if not all(map(self.errors.is_measured, {dpid, *(far for far, _ in ends)})):
            return None
        return self.errors.before(dpid, ends)

    def errors_since(self, dpid: int, far_ends: Iterable[Place], since_s: float) -> dict[Place, float] | None:
        """Return what errors there are."""
        return self.errors.since(dpid, far_ends, since_s)

    def utilisation_pct(self, out: frozenset[int]) -> float | None:
        """Return how busy the busiest link becomes."""
        return self._forecast.busiest_pct(out, self.now)


class Campaigns:
    """Has at most one campaign under way, and remembers the last.

    Attributes
    ----------
    campaign
        It, or None before the first.
    section
        Its document and those of its switches.
    view
        What it sees of the fabric.
    """

    def __init__(
        self,
        policy: PolicyInForce,
        view: MaintenanceView,
        operator: Operator,
        pending_writes: PendingWrites,
        feed: ChangeFeed,
        perform: Perform,
    ) -> None:
        self.campaign: Campaign | None = None
        self.view = view
        self.section: DocumentLog[int] = DocumentLog(self._shown, self._document, lambda key: str(key or CAMPAIGN))
        self._policy = policy
        self._operator = operator
        self._pending_writes = pending_writes
        self._feed = feed
        self._perform = perform
        self._told = ""
        self._followed: dict[int, Record] = {}
        self.handlers = {
            MaintenancePlanAsked: self._asked,
            MaintenanceStartAsked: self._asked,
            MaintenanceTurnAsked: self._asked,
            MaintenanceSkipAsked: self._asked,
            MaintenanceHookSet: self._asked,
            MaintenanceLooked: self._looked,
            ErrorsMeasured: self.view.errors.measured,
        }

    @property
    def is_under_way(self) -> bool:
        """Whether the fabric is to be looked at now and then."""
        return self.campaign is not None and not self.campaign.is_over

    def holds(self, dpid: int) -> bool:
        """Tell whether a campaign wants a switch drained."""
        return self.campaign is not None and self.campaign.holds(dpid)

    def counts(self) -> dict[str, int]:
        """Return how many switches of the campaign are at each step; empty without one."""
        campaign = self.campaign
        return {} if campaign is None else {step.value: len(campaign.at(step)) for step in Step}

    def switch_disconnected(self, dpid: int) -> None:
        """Take it that the connection of a switch has ended."""
        self.view.errors.forget(dpid)
        if self.campaign is not None:
            self.campaign.disconnected(dpid)

    # The log

    def keys(self) -> Iterator[int]:
        """Yield what the log has of the campaign: 0 for itself, and its switches."""
        if self.campaign is not None:
            yield 0
            yield from self.campaign.record.works

    def entry(self, key: int) -> LogEntry:
        """Return what the log is told of the campaign (0), or of a switch of it."""
        name = f"{MAINTENANCE_SWITCH}/{key}" if key else MAINTENANCE
        return LogEntry.of_record(LogEntryKind.DECISION, name, self._value(key))

    def _value(self, key: int) -> dict[str, Any] | None:
        if self.campaign is None:
            return None
        record = self.campaign.record
        if not key:
            return campaign_value(record)
        work = record.works.get(key)
        return None if work is None else work_value(work)

    def restore(self, value: Record | None, works: Iterable[Record]) -> None:
        """Go on with what an earlier run had; `works` are those of its switches."""
        self._followed = {0: value} if value is not None else {}
        self._followed |= {read_work(each).dpid: each for each in works}
        self._from_followed()

    def follow(self, key: int, value: Record | None) -> None:
        """Have the campaign (0), or a switch of it, as the log of the controller that leads has it."""
        if value is None:
            self._followed.pop(key, None)
        else:
            self._followed[key] = value
        self._from_followed()

    def _from_followed(self) -> None:
        value = self._followed.get(0)
        self.campaign = None
        if value is not None:
            record = read_campaign(value)
            for dpid in sorted(self._followed.keys() & set(record.order.switches)):
                record.works[dpid] = read_work(self._followed[dpid])
            self.campaign = Campaign.resumed(record)
        self.section.log.forget()

    # What operators and the command say

    def _asked(self, event: Any, now: float) -> None:
        self.view.now = now
        try:
            answer, outputs = self._act(event, now)
        except CampaignRefused as refusal:
            text = self._feed.names.spoken(f"{refusal.field}: {refusal}")
            self._perform([ActionRefused(refusal.field, text)])
            return
        self._do(outputs, now)
        self._keep(now)
        self._perform([ActionTaken(answer)])

    def _act(self, event: Any, now: float) -> tuple[dict[str, Any], list[CampaignOutput]]:
        settings = self._policy().maintenance
        if isinstance(event, MaintenancePlanAsked | MaintenanceStartAsked):
            found = redundancy_groups(self.view.graph)
            groups = {dpid: group for dpid, group in found.items() if isinstance(dpid, int)}
            order = event.order
            if isinstance(event, MaintenancePlanAsked):
                return plan_document(order, groups, self.view, settings), []
            if self.is_under_way:
                raise CampaignRefused("state", "a campaign is under way: abort it first")
            check_order(order, groups, self.view, settings)
            former = list(self.keys())
            self.campaign = Campaign.begun(order, event.runner, groups, self.view, settings)
            self.campaign.changed.update(dict.fromkeys(former))
            self._feed.events.add(
                now, "maintenance-started", f"The maintenance of {len(order.switches)} switches has begun."
            )
            return self._answer(), []
        campaign = self.campaign
        if campaign is None:
            raise CampaignRefused("state", "there is no campaign")
        outputs: list[CampaignOutput] = []
        match event:
            case MaintenanceTurnAsked(verb="pause"):
                campaign.pause()
            case MaintenanceTurnAsked(verb="resume", runner=runner):
                campaign.resume(runner or None)
            case MaintenanceTurnAsked():
                outputs = campaign.abort()
            case MaintenanceSkipAsked(dpid=dpid):
                campaign.skip(dpid)
            case MaintenanceHookSet(dpid=dpid, runner=runner, fault=None):
                campaign.hook_begins(dpid, runner)
            case MaintenanceHookSet(dpid=dpid, runner=runner, fault=fault):
                outputs = campaign.hook_ended(dpid, runner, str(fault))
        self._tell_of(event, now)
        return self._answer(), outputs

    def _tell_of(self, event: Any, now: float) -> None:
        match event:
            case MaintenanceTurnAsked(verb=verb):
                self._feed.events.add(now, f"maintenance-{verb}", f"An operator asks the campaign to {verb}.")
            case MaintenanceSkipAsked(dpid=dpid):
                text = f"An operator leaves switch {dpid} out of the campaign."
                self._feed.events.add(now, "maintenance-skip", text, dpid=dpid)
            case MaintenanceHookSet(dpid=dpid, fault=fault) if not fault:
                text = f"The upgrade of switch {dpid} has {'begun' if fault is None else 'ended'}."
                self._feed.events.add(now, "maintenance-hook", text, dpid=dpid)

    def _answer(self) -> dict[str, Any]:
        assert self.campaign is not None
        return campaign_document(self.campaign, self._feed.names.label)

    # What happens by itself

    def _looked(self, event: MaintenanceLooked, now: float) -> None:
        if self.campaign is None:
            return
        self.view.behind, self.view.now = frozenset(event.behind), now
        settings = self._policy().maintenance
        self._do(self.campaign.look(self.view, settings, Moment(now, event.second_of_day)), now)
        self._keep(now)

    def _do(self, outputs: Iterable[CampaignOutput], now: float) -> None:
        for output in outputs:
            if isinstance(output, DrainWanted):
                self._operator.turn_drain(output.dpid, output.drained, now)
            else:
                severity = Severity.WARNING if output.is_bad else Severity.INFO
                dpid = output.dpid or None
                self._feed.events.add(now, output.kind, output.text, severity=severity, dpid=dpid)

    def _keep(self, now: float) -> None:
        """Have the log and whoever looks know what changed."""
        campaign = self.campaign
        if campaign is None:
            return
        for key in campaign.changed:
            self._pending_writes.campaign_changed(key, now)
            self.section.touch(key)
        campaign.changed.clear()
        told = f"{campaign.waits_for} " + " ".join(work.reason for work in campaign.record.works.values())
        if told != self._told:
            self._told = told
            for key in self.keys():
                self.section.touch(key)

    def _shown(self) -> Iterable[int]:
        return list(self.keys())

    def _document(self, key: int) -> dict[str, Any] | None:
        if self.campaign is None:
            return None
        if not key:
            return self._answer()
        work = self.campaign.record.works.get(key)
        return None if work is None else work_document(work, self._feed.names.label)
