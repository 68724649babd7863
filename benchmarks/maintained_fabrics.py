"""A fabric whose switches are upgraded by a campaign, in its own time, with what can go wrong; and what may never be.

Switches take a while to be quiet, upgrades fail, hang or leave a switch away for ever, links stay away, switches fail
by themselves, the controller and the command that upgrades are killed, and operators pause, skip and try again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from math import floor
from random import Random
from typing import NamedTuple

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.campaign import HOOK_SLACK_S, Campaign, Moment
from controller.maintenance.checks import CampaignRefused
from controller.maintenance.groups import RedundancyGroup, redundancy_groups
from controller.maintenance.model import (
    IN_WORK,
    CampaignOutput,
    CampaignState,
    CampaignTold,
    MaintenanceOrder,
    Step,
    campaign_value,
    read_campaign,
    read_work,
    work_value,
)
from topology.graph import Graph, Link, NodeId, NodeKind

TICK_S = 1.0
LONGEST_S = 400_000.0
POLL_S = 10.0
"""How often the switches' counters are polled."""


class Odds(NamedTuple):
    """How likely something is: per upgrade what begins with `hook`, `never`, `wrong`; per second the others."""

    hook_fails: float = 0.0
    hook_hangs: float = 0.0
    never_back: float = 0.0
    wrongly_cabled: float = 0.0
    errors_rise: float = 0.0
    crash_per_s: float = 0.0
    restart_per_s: float = 0.0
    runner_killed_per_s: float = 0.0
    pause_per_s: float = 0.0


def switches_of(graph: Graph) -> Graph:
    """Return a fabric of datapath ids: without hosts, the switches that have some of kind ``TOR``."""
    homes = {node for node in graph.switches() if any(n in graph.hosts() for n in graph.neighbours(node))}
    numbers: dict[NodeId, int] = {node: number for number, node in enumerate(graph.switches(), start=1)}
    fabric = Graph()
    ports: Counter[int] = Counter()
    for node, dpid in numbers.items():
        fabric.add_node(dpid, NodeKind.TOR if node in homes else NodeKind.SWITCH)
    for link in graph.links():
        if link.u in numbers and link.v in numbers:
            a, b = numbers[link.u], numbers[link.v]
            ports[a] += 1
            ports[b] += 1
            fabric.add_link(a, b, ports[a], ports[b], link.capacity_bps)
    return fabric


class MaintainedFabric:
    """The fabric as a campaign sees it (`FabricView`), and what becomes of it."""

    def __init__(self, whole: Graph, settings: Maintenance, odds: Odds, seed: int) -> None:
        self.whole = whole
        self.settings = settings
        self.odds = odds
        self.random = Random(seed)
        self.graph = whole.copy()
        self.groups: dict[int, RedundancyGroup] = {int(str(d)): g for d, g in redundancy_groups(whole).items()}
        self.now = 0.0
        self.busy_pct = 50.0
        self._drained: set[int] = set()
        self._busy_until_s: dict[int, float] = {}
        self._down_from_s: dict[int, float] = {}
        self._down_until_s: dict[int, float] = {}
        self._missing: set[Link] = set()
        self._is: tuple[frozenset[int], frozenset[Link]] = (frozenset(), frozenset())
        self._homes = frozenset(int(str(node)) for node in whole.nodes(NodeKind.TOR))
        self.erring: set[int] = set()
        self.broken: list[str] = []
        self.told: list[CampaignTold] = []

    # What the campaign asks

    def homes(self) -> Iterable[int]:
        """Return the switches with hosts."""
        return self._homes

    def absence(self, dpid: int) -> str | None:
        """Say that a switch is away."""
        return None if dpid in self.graph else "is not connected"

    def trouble(self, dpid: int) -> str | None:
        """Say that a switch is away or busy."""
        if self._busy_until_s.get(dpid, 0.0) > self.now and dpid in self.graph:
            return "has edits under way"
        return self.absence(dpid)

    def drained(self) -> set[int]:
        """Return the drained switches."""
        return self._drained

    def transit(self, dpid: int) -> int:
        """Return that trees lead through while the switch is busy."""
        return int(self._busy_until_s.get(dpid, 0.0) > self.now)

    def busiest_port(self, _dpid: int) -> tuple[int, float]:
        """Return that nothing is measured."""
        return 0, 0.0

    def errors_before(self, dpid: int, far_ends: Iterable[tuple[int, int]]) -> dict[tuple[int, int], float] | None:
        """Return that ports had none before."""
        return {}

    def errors_since(
        self, dpid: int, far_ends: Iterable[tuple[int, int]], since_s: float
    ) -> dict[tuple[int, int], float] | None:
        """Return the errors of a switch that was upgraded badly, once it was polled twice."""
        if self.now < since_s + 2 * POLL_S:
            return None
        return {(dpid, 1): 5.0} if dpid in self.erring else {}

    def utilisation_pct(self, out: frozenset[int]) -> float | None:
        """Return a load that grows with what is out."""
        return self.busy_pct + 5.0 * len(out)

    # What becomes of it

    def turn(self, dpid: int, drained: bool) -> None:
        """Drain a switch, or no longer; that takes a while at it and beside it."""
        (self._drained.add if drained else self._drained.discard)(dpid)
        for node in (dpid, *(self.graph.neighbours(dpid) if dpid in self.graph else ())):
            self._busy_until_s[int(str(node))] = self.now + self.random.uniform(0.0, 5.0)

    def goes_down(self, dpid: int, in_s: float, for_s: float, *, without_link: bool = False) -> None:
        """Have a switch away after a while, for a while."""
        self._down_from_s[dpid] = self.now + in_s
        self._down_until_s[dpid] = self.now + in_s + for_s
        if without_link:
            neighbour = self.whole.neighbours(dpid)[0]
            self._missing.add(self.whole.link(dpid, neighbour))

    def mend(self, dpid: int) -> None:
        """Have a switch back as it should."""
        self._down_until_s[dpid] = self.now
        self.erring.discard(dpid)
        self._missing = {link for link in self._missing if dpid not in (link.u, link.v)}

    def is_going(self, dpid: int) -> bool:
        """Tell whether a switch is away, or about to be."""
        return dpid in self._down_until_s

    def pass_time(self) -> list[int]:
        """Let a tick pass; return the switches that went away in it."""
        self.now += TICK_S
        gone = [dpid for dpid, at_s in self._down_from_s.items() if at_s <= self.now]
        for dpid in gone:
            del self._down_from_s[dpid]
        for dpid in [dpid for dpid, until_s in self._down_until_s.items() if until_s <= self.now]:
            self._down_until_s.pop(dpid)
            self._down_from_s.pop(dpid, None)
        away = set(self._down_until_s) - set(self._down_from_s)
        now_is = (frozenset(away), frozenset(self._missing))
        if now_is == self._is:
            return gone
        self._is = now_is
        graph = self.whole.subgraph([node for node in self.whole.switches() if node not in away])
        for link in self._missing:
            if graph.cable(link.u, link.v, link.u_port) is not None:
                graph.remove_link(link.u, link.v, link.u_port)
        self.graph = graph
        return gone


class MaintenanceRun:
    """A campaign over such a fabric, held against its limits with each switch that it begins."""

    def __init__(self, fabric: MaintainedFabric, order: MaintenanceOrder) -> None:
        self.fabric = fabric
        self.order = order
        self.runner = "runner-0"
        self.campaign = Campaign.begun(order, self.runner, fabric.groups, fabric, fabric.settings)
        self.restarts = self.resumed = self.killed = 0
        self.begun: list[int] = []
        self._runs: dict[int, tuple[float, str]] = {}
        self._runner_from_s = 0.0
        self._resume_at_s: float | None = None
        self._log: dict[int, str] = {}
        self._ended: set[int] = set()
        self._keep()

    def run(self) -> CampaignState:
        """Let time go on until the campaign is over, and return how it ended."""
        fabric = self.fabric
        while not self.campaign.is_over and fabric.now < LONGEST_S:
            for dpid in fabric.pass_time():
                self.campaign.disconnected(dpid)
            self._mishaps()
            self._upgrade()
            self._operate()
            moment = Moment(fabric.now, int(fabric.now) % 86400)
            self._perform(self.campaign.look(fabric, fabric.settings, moment))
            self._look_at_waits()
            done_badly = fabric.erring.intersection(work.dpid for work in self.campaign.at(Step.DONE))
            if done_badly:
                fabric.broken.append(f"switches {sorted(done_badly)} are done with more errors than before")
            self._keep()
        if not self.campaign.is_over:
            fabric.broken.append(f"it does not end: {self.campaign.waits_for}")
        return self.campaign.state

    def _perform(self, outputs: Iterable[CampaignOutput]) -> None:
        for output in outputs:
            if isinstance(output, CampaignTold):
                self.fabric.told.append(output)
            elif output.drained:
                if self.campaign.record.works[output.dpid].step is Step.DRAINING and output.dpid not in self.begun:
                    self._held_against(output.dpid)
                    self.begun.append(output.dpid)
                self.fabric.turn(output.dpid, True)
            else:
                self.fabric.turn(output.dpid, False)

    def _held_against(self, dpid: int) -> None:
        """Find what a switch that is begun breaks; it counts as out already, and so do those begun with it."""
        fabric, record = self.fabric, self.campaign.record
        settings, works = fabric.settings, record.works
        in_work = {each for each, work in works.items() if work.step in IN_WORK}
        group = fabric.groups[dpid]
        members = [each for each, its in fabric.groups.items() if its == group]
        least = floor(len(members) * settings.min_ready_pct / 100 + 1e-9)
        failed = {each for each, work in works.items() if work.step is Step.FAILED}
        unready = {each for each in members if each in in_work | failed | fabric.drained() or fabric.absence(each)}
        if len(members) - len(unready) < least:
            fabric.broken.append(f"group {group.name} has {len(members) - len(unready)} of {least} in use")
        if len(in_work) > settings.max_concurrent:
            fabric.broken.append(f"{len(in_work)} switches in work")
        earlier = [e for e, w in works.items() if w.group.rank < group.rank and w.step in (Step.WAITING, *IN_WORK)]
        if earlier:
            fabric.broken.append(f"switch {dpid} before those of an earlier tier: {earlier}")
        out = {
            each for each, work in works.items() if work.step in IN_WORK and work.step is not Step.SOAKING
        } | failed
        out |= fabric.drained() | {dpid}
        if _parts(fabric.graph, out) > _parts(fabric.graph, set()):
            fabric.broken.append(f"without {sorted(out)} hosts do not reach each other")
        skipped = sum(work.step is Step.SKIPPED for work in works.values())
        count = len(works) - skipped
        begun = sum(work.step not in (Step.WAITING, Step.SKIPPED) for work in works.values())
        self._ended.update(work.dpid for work in self.campaign.at(Step.DONE, Step.FAILED))
        ended = len(self._ended)
        for end in (1, -(-count // 10), -(-count // 5)):
            if begun > end > ended:
                fabric.broken.append(f"{begun} begun while a phase of {end} has {ended} done")
        if record.failures >= settings.failures:
            fabric.broken.append(f"switch {dpid} begun after {record.failures} failures")
        if fabric.busy_pct + 5.0 * len(out) > settings.max_utilisation_pct + 5.0 * len(failed):
            fabric.broken.append("a link would be too busy")

    def _look_at_waits(self) -> None:
        settings = self.fabric.settings
        limits: Mapping[Step, float] = {
            Step.DRAINING: settings.quiet_limit_s,
            Step.HOOK: self.order.hook_limit_s + HOOK_SLACK_S,
            Step.BACK: settings.back_limit_s,
            Step.SOAKING: settings.soak_s + settings.back_limit_s,
        }
        for work in self.campaign.at(*IN_WORK):
            if work.since_s is not None and self.fabric.now > work.since_s + limits[work.step] + TICK_S:
                self.fabric.broken.append(f"switch {work.dpid} is {work.step} for too long")
            if work.since_s is not None and not work.reason and work.quiet_since_s is None:
                self.fabric.broken.append(f"switch {work.dpid} is {work.step}, and it is not said what for")

    def _mishaps(self) -> None:
        fabric, odds, random = self.fabric, self.fabric.odds, self.fabric.random
        if random.random() < odds.crash_per_s * TICK_S:
            dpid = random.choice(sorted(fabric.groups))
            if not fabric.is_going(dpid):
                fabric.goes_down(dpid, 0.0, random.uniform(5.0, 300.0))
        if random.random() < odds.restart_per_s * TICK_S:
            self._restart()
        if random.random() < odds.runner_killed_per_s * TICK_S:
            self.killed += 1
            self._runs.clear()
            self.runner = f"runner-{self.killed}"
            self._runner_from_s = fabric.now + random.uniform(1.0, 60.0)

    def _keep(self) -> None:
        """Have the log know what changed."""
        for dpid in self.campaign.changed:
            record = self.campaign.record
            self._log[dpid] = json.dumps(work_value(record.works[dpid]) if dpid else campaign_value(record))
        self.campaign.changed.clear()

    def _restart(self) -> None:
        """Have another controller go on from the log."""
        self.restarts += 1
        record = read_campaign(json.loads(self._log[0]))
        for dpid, text in sorted(self._log.items()):
            if dpid:
                record.works[dpid] = read_work(json.loads(text))
        self.campaign = Campaign.resumed(record)

    def _upgrade(self) -> None:
        """Be the command that runs the upgrades."""
        fabric, odds, random = self.fabric, self.fabric.odds, self.fabric.random
        if fabric.now < self._runner_from_s:
            return
        if self.runner != self.campaign.record.runner and not self.campaign.is_over:
            if self.campaign.state not in (CampaignState.RUNNING, CampaignState.PAUSED):
                return
            for failed in self.campaign.at(Step.FAILED):
                fabric.mend(
                    failed.dpid
                )  # whoever has another command go on tries these again, and so sees after them
            self.campaign.resume(self.runner)
        for work in self.campaign.at(Step.HOOK):
            if not work.is_claimed:
                self.campaign.hook_begins(work.dpid, self.runner)
                drawn = random.random()
                lasts_s = random.uniform(1.0, self.order.hook_limit_s)
                fault = "exit status 1" if drawn < odds.hook_fails else ""
                if odds.hook_fails <= drawn < odds.hook_fails + odds.hook_hangs:
                    lasts_s, fault = self.order.hook_limit_s, "it did not end in time"
                self._runs[work.dpid] = (fabric.now + lasts_s, fault)
                for_s = 1e9 if random.random() < odds.never_back else random.uniform(1.0, 60.0)
                wrongly = random.random() < odds.wrongly_cabled
                if odds.errors_rise and random.random() < odds.errors_rise:
                    fabric.erring.add(work.dpid)
                fabric.goes_down(work.dpid, random.uniform(0.0, lasts_s), for_s, without_link=wrongly)
        for dpid, (end_s, fault) in list(self._runs.items()):
            if fabric.now >= end_s:
                del self._runs[dpid]
                try:
                    self._perform(self.campaign.hook_ended(dpid, self.runner, fault))
                except CampaignRefused:
                    continue  # it came too late

    def _operate(self) -> None:
        """Be the operator: see after what has failed, and go on."""
        fabric, campaign, random = self.fabric, self.campaign, self.fabric.random
        if random.random() < fabric.odds.pause_per_s * TICK_S and campaign.state is CampaignState.RUNNING:
            campaign.pause()
        if campaign.state not in (CampaignState.HALTED, CampaignState.PAUSED):
            self._resume_at_s = None
            return
        if self._resume_at_s is None:
            self._resume_at_s = fabric.now + random.uniform(1.0, 600.0)
        if fabric.now < self._resume_at_s:
            return
        self._resume_at_s = None
        for work in campaign.at(Step.FAILED):
            fabric.mend(work.dpid)
            if random.random() < 0.2:
                campaign.skip(work.dpid)
                fabric.turn(work.dpid, False)
        self.resumed += 1
        campaign.resume(self.runner)


def _parts(graph: Graph, out: set[int]) -> int:
    """Return into how many parts the switches with hosts fall that are in use without some."""
    root: dict[NodeId, NodeId] = {node: node for node in graph.switches() if node not in out}

    def find(node: NodeId) -> NodeId:
        while root[node] != node:
            node = root[node]
        return node

    for link in graph.links():
        if link.u in root and link.v in root:
            root[find(link.u)] = find(link.v)
    return len({find(node) for node in graph.nodes(NodeKind.TOR) if node in root})
