"""The app of a controller that is one of several: it keeps a process beside itself, and the others' place is its own.

Discovery loads it where the policy's section `cluster` names an engine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from apps.cluster.fabric_check import FabricCheck
from apps.cluster.lead import Followed, Lead
from apps.cluster.link import LinkLost, SidecarLink
from apps.cluster.log_feed import LogFeed
from apps.cluster.messages import Beat, Seen
from apps.cluster.metric_targets import PATH as TARGETS_PATH
from apps.cluster.metric_targets import MetricTargets
from apps.cluster.monitor_orders import MonitorOrders
from apps.cluster.monitor_watch import MonitorWatch
from apps.cluster.own_settings import HIGHEST, LED, listening_socket, own_settings
from apps.cluster.shared_policy import NotLeading, SharedPolicy
from apps.cluster.shown import ClusterSection, cluster_figures
from apps.cluster.take_over import LeadLogs, begin_lead, write_anew
from apps.exporters.exposition import Metric
from apps.openflow.app import App, TableKeeper
from apps.openflow.bus import AlarmReported, TableSuspected
from apps.openflow.declared import DeclaredApp
from apps.openflow.framework import DATAPATHS, SOUTHBOUND, apps_of_process, hub, run_aside
from apps.policy_file import PolicyReading, shares_fabric
from apps.state_dir import ActionLog
from apps.status_server import ENGINE_UNREACHABLE, QuestionRefused
from apps.system import become_anew, system_threading
from controller.cluster.effects import TellOperators
from controller.cluster.events import ConfirmWanted, FenceRefused, HandOverWanted, RoleLost
from controller.cluster.keys import EPOCH_BOUND
from controller.cluster.place import (
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
from controller.cluster.versions import VersionWritten, unknown_text
from controller.effects import Notice, RoleDenied
from controller.events import PacketReceived, RoleWanted
from controller.rules.async_messages import encode_async
from controller.snapshot.events import EventRing, Severity, State

END_S = 4.0
"""How long apps may take to end before a controller that led begins anew."""

HAND_OVER_S = 1.0
"""How long a leader that ends waits for another one to be named."""

READ_AGAIN_S = 0.2

LOOP_FULL_S = 0.1
"""How soon a loop that takes no more work is told again what was followed."""

POLICY_S = 5.0
"""How often it is looked whether the policy file says what the controllers share."""

_Outcome = TypeVar("_Outcome")


class ClusterApp(DeclaredApp, TableKeeper):
    """Keeps this controller's place among those of its fabric, and lets its apps at switches when it leads."""

    _EVENTS: ClassVar[list[type]] = [TableSuspected, AlarmReported]
    takes_ipv4_groups = False
    core: PlaceCore
    actions: ActionLog

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy = self.policy_file.reading.policy
        if not shares_fabric(policy):
            raise SystemExit("vsrt: cluster: the policy names no engine (cluster.engine)")
        self.told_events = EventRing("cluster", lambda text: self.names.spoken(text))
        self.told_events.offset_s = time.time() - time.monotonic()
        self.seen = Seen()
        self.take_overs = 0
        self.settings = own_settings(policy)
        self.link = SidecarLink(self.settings, listening_socket(), self._hear, self._beat, self.logger)
        fabric = self.settings.member.fabric
        self._feed = LogFeed(self.link, fabric, self._hand_followed, self._refuse_records)
        self._monitors = MonitorWatch(self.link, fabric, partial(self.reactor.call, self._turn))
        self._fabric = FabricCheck(fabric, self.settings.member.member, self._feed.journal.has_switch)
        self._no_part = ""
        self._lead: Lead | None = None
        self._written = VersionWritten()
        self._let_in: dict[int, Any] = {}
        self._marked_s: float | None = None
        self._floor = self.settings.member.highest_epoch
        self._resigned = system_threading.Event()
        self._is_ending = False
        self._secret = b""
        SOUTHBOUND.gate = self
        DATAPATHS.role_denied = self._role_denied
        self._perform |= {
            RoleWanted: DATAPATHS.want_role,
            TakeOver: lambda order: self.threads.append(hub.spawn(self._take_over, order)),
            Renew: lambda order: self.threads.append(hub.spawn(self._renew, order)),
            LetIn: self._let_apps_in,
            ConfirmLead: lambda _effect: self.link.say(ConfirmWanted()),
            HearReports: self._hear_reports,
            BeginAnew: lambda effect: self._begin_anew(effect.why),
        }
        self.denied_count = 0
        reader = self.policy_file.reader
        self._policy = SharedPolicy(
            *(self.link.ask, self.settings.member.fabric, self.policy_file.path),
            *(lambda: reader.file.reading, self._tell_later),
        )
        reader.gate = self
        me = self.settings.member
        self.shown = ClusterSection(me.member, me.peer)
        self.pages[TARGETS_PATH] = MetricTargets(self.link.ask, fabric).page
        self.log_actions()
        orders = MonitorOrders(self.link.ask, fabric, self.later, self.actions)
        self.offer(
            actions={"hand-over": self._hand_over, **orders.actions()},
            sections={
                "events": self.told_events.section,
                "cluster": self.shown.section,
                **self._monitors.sections(),
            },
            refresh=lambda: self.shown.refresh(
                self.core, self.seen, self._lag_s(), self._monitors.seen, (self._no_part, *self._fabric.problems())
            ),
        )

    def start(self) -> Any:
        """Run, with the process beside."""
        thread = super().start()
        self.link.start()
        self._feed.start()
        self._monitors.start()
        self.threads.append(hub.spawn(self._look_at_policies))
        return thread

    def stop(self) -> None:
        """Hand over, and end; the apps that write have ended before."""
        self._is_ending = True
        self._feed.close()
        self._monitors.close()
        if self.core.course is Course.LEADING:
            self.link.say(HandOverWanted())
            run_aside(self._wait_resigned)
        run_aside(self.link.close)
        super().stop()

    def _wait_resigned(self) -> None:
        self._resigned.wait(HAND_OVER_S)

    # Operators

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told of the cluster."""
        figures = cluster_figures(self.core, self.seen, self.take_overs, self.denied_count, self._lag_s())
        return [*super().figures(), *figures]

    def _lag_s(self) -> float:
        """Return for how long the entry has waited that waits longest, for the store or for the cores here."""
        now = time.monotonic()
        return max((app.log_lag_s(now) for app in self._apps()), default=0.0)

    def refusal(self) -> QuestionRefused | None:
        """Return why nothing can be set here now, None where it can."""
        leader = self.seen.leader
        if self._no_part:
            return QuestionRefused(self._no_part, reason="not-leader")
        if self.core.course is not Course.LEADING:
            who = "nobody leads at the moment" if leader is None else f"{leader.member} leads, ask there"
            return QuestionRefused(f"This controller follows: {who}.", reason="not-leader")
        if self.seen.is_store_silent:
            return QuestionRefused(
                "The cluster's store does not answer: nothing was done.", reason=ENGINE_UNREACHABLE
            )
        return None

    def ticked(self) -> None:
        """Look after files, and by which records the logs are written."""
        super().ticked()
        self._look_at_versions()
        self._look_at_fabric()

    def _hand_over(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Have another member lead: the one that is named, else the one that is connected to most switches."""
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        me, to = self.settings.member.member, asked.get("to", "")
        others = [name for name in self.seen.members if name != me]
        if not others:
            raise QuestionRefused("There is no other member that could lead.", "to")
        if to and to not in others:
            raise QuestionRefused(f"{to!r} is no other member: there are {', '.join(others)}.", "to")
        chosen = to or max(others, key=lambda name: self.seen.switches.get(name, 0))
        self.link.say(HandOverWanted(chosen))
        return {"to": chosen, "epoch": self.core.epoch}

    # The process beside, on threads of its link

    def _hear(self, message: Any) -> None:
        if type(message) is Seen:
            if message.leader is None or message.leader.incarnation != self._incarnation:
                self._resigned.set()
            else:
                self._resigned.clear()
        self.reactor.call(self._turn, self._heard, message)

    @property
    def _incarnation(self) -> str:
        return self.settings.member.incarnation

    def _beat(self) -> Beat:
        return Beat(self._idle_s(), frozenset(self._datapaths), not self._no_part)

    def _idle_s(self) -> float:
        """Return for how long the loop has made no progress, and have it say that it goes on."""
        now, marked_s = time.monotonic(), self._marked_s
        if marked_s is not None:
            return now - marked_s
        self._marked_s = now
        self.reactor.call(self._mark)
        return 0.0

    def _mark(self) -> None:
        self._marked_s = None

    # On the loop

    def _heard(self, message: Any) -> None:
        if type(message) is Seen:
            self.seen = message
            self.shown.saw(message, time.time())
            self._floor = max(self._floor, message.epoch)
            self._look_at_versions()
        elif type(message) is TellOperators:
            self._tell(message)
        elif type(message) is LinkLost:
            text = f"The process beside the controller has ended ({message.why}): it is started anew."
            self._tell(TellOperators("sidecar-lost", text, Severity.WARNING))
            self.feed(SidecarLost())
        else:
            self.feed(message)

    def _tell(self, told: TellOperators) -> None:
        self.notices[told.kind] += 1
        self.logger.info("%s: %s", told.kind, told.text)
        self.told_events.add(time.monotonic(), told.kind, told.text, severity=told.severity, state=told.state)

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, and make an event of it."""
        self._tell(TellOperators(notice.kind, notice.text, Severity.WARNING))

    def _hand_followed(self, followed: Followed) -> None:
        """Have the apps told what the controller that leads has in its logs; on the feed's thread."""
        while not self.reactor.call(self._turn, self._follow, followed) and not self._is_ending:
            time.sleep(LOOP_FULL_S)

    def _follow(self, followed: Followed) -> None:
        for app in self._apps():
            app.follow_logs(followed)

    def _refuse_records(self, version: int) -> None:
        """Lead no more, for the logs are of a program that this one knows nothing of; on the feed's thread."""
        told = TellOperators("records-unknown", unknown_text(version), Severity.CRITICAL, State.RAISED)
        self._no_part = told.text
        self.reactor.call(self._turn, self._tell, told)

    def _look_at_fabric(self) -> None:
        """Take no part in a cluster of another fabric."""
        for told in self._fabric.look(frozenset(self._datapaths), self.seen, self.core.course, time.monotonic()):
            self._tell(told)
        if self._fabric.other_fabric and not self._no_part:
            self._feed.close()
            self._no_part = self._fabric.other_fabric

    def _look_at_versions(self) -> None:
        """Write records that all members read; all of them anew, where one came that reads none as late as before."""
        before, leads = self._written.version, self.core.course is Course.LEADING
        if self._written.look(self.seen.records, time.monotonic()) and leads:
            for app in self._apps():
                app.write_log_anew()
        elif self._written.version > before and leads:
            later = f"All members read records of version {self._written.version}"
            text = f"{later}: the logs are written in it from now on."
            self._tell(TellOperators("records-raised", text, Severity.INFO))

    def _role_denied(self, denied: RoleDenied) -> None:
        self.denied_count += 1
        generation_id = denied.generation_id
        if generation_id is not None and generation_id < EPOCH_BOUND:
            self._floor = max(self._floor, generation_id)
        self.link.say(RoleLost(denied.dpid, generation_id))

    def is_shut(self, datapath: Any) -> bool:
        """Tell whether the apps do not know of a connection yet."""
        return self._let_in.get(datapath.id) is not datapath

    def withholds(self, event: PacketReceived) -> bool:
        """Keep a report of a switch that the apps do not know of."""
        datapath = self._datapaths.get(event.dpid)
        if datapath is not None and self._let_in.get(event.dpid) is datapath:
            return False
        self._turn(self.feed, event)
        return True

    def is_shut_out(self, datapath: Any) -> bool:
        """Know of every switch."""
        return False

    def let_in(self, datapath: Any) -> None:
        """Ask a switch for what is wanted before anything else."""
        wanted = self.core.role_at(datapath.id, datapath.ofproto.OFP_VERSION, time.monotonic())
        if wanted is not None:
            DATAPATHS.want_role(wanted)
        super().let_in(datapath)
        self._begin_to_lead()

    def packets_received(self, events: Sequence[PacketReceived]) -> None:
        """Leave packets to the apps."""

    def _apps(self) -> list[TableKeeper]:
        return [app for app in apps_of_process() if isinstance(app, TableKeeper) and app is not self]

    def _on_other_loops(self, work: Callable[[Any], None]) -> None:
        """Have something done with apps that follow the fabric on loops of their own."""
        for app in apps_of_process():
            if isinstance(app, App) and not isinstance(app, TableKeeper) and hasattr(app, "take_lead"):
                app.reactor.call(app._turn, work, app)

    def _let_apps_in(self, effect: LetIn) -> None:
        for datapath in filter(None, map(self._datapaths.get, effect.dpids)):
            self._let_in[datapath.id] = datapath
            for app in self._apps():
                app.measured(app.let_in, datapath)
            self._on_other_loops(partial(_let_in, datapath=datapath))
        for event in effect.reports:
            SOUTHBOUND.hand(event)

    def _hear_reports(self, effect: HearReports) -> None:
        datapath = self._datapaths.get(effect.dpid)
        if datapath is not None:
            datapath.send(encode_async(datapath.ofproto.OFP_VERSION, self.core.xid_tag << 24))

    # The policy, on threads

    def admits(self, reading: PolicyReading) -> str | None:
        """Have the store know a policy before it is in force, where this controller leads; return why it does not."""
        outcome: list[str | None] = []
        run_aside(partial(_append, outcome, partial(self._policy.admits, reading)))
        return outcome[0]

    def _look_at_policies(self) -> None:
        """Now and then compare the policy file with what the controllers share."""
        self.pause(POLICY_S)
        while self.is_active:
            run_aside(self._policy.look)
            self.pause(POLICY_S)

    def _tell_later(self, told: TellOperators) -> None:
        self.reactor.call(self._turn, self._tell, told)

    # Taking over

    def _take_over(self, order: TakeOver) -> None:
        """Take the logs over, on a thread, until that is done or nobody wants it any more."""
        begin = partial(begin_lead, self._logs(order.epoch), self._feed, order, self._policy)
        self._until_done(order.epoch, begin, self._taken)

    def _logs(self, epoch: int) -> LeadLogs:
        refused = partial(self.link.say, FenceRefused(epoch))
        return LeadLogs(self.link, self.settings.member.fabric, refused, lambda: self._written.version)

    def _renew(self, order: Renew) -> None:
        """Write the store anew, on a thread, until that has begun or nobody wants it any more."""

        def write() -> Lead:
            lead = write_anew(self._logs(order.epoch), order, self._secret)
            self._policy.renewed(self.policy_file.reader.in_force, order.fence)
            return lead

        self._until_done(order.epoch, write, self._go_on)

    def _until_done(self, epoch: int, ask: Callable[[], Lead], then: Callable[[Lead], None]) -> None:
        """Have the store asked until it answers, and `then` the loop do what follows, in this epoch alone."""
        while self.is_active and self.core.epoch == epoch and self.core.course is not Course.LEAVING:
            outcome: list[Lead] = []
            try:
                run_aside(partial(_append, outcome, ask))
            except NotLeading:
                self.link.say(FenceRefused(epoch))
                return
            except TimeoutError as error:
                self.logger.warning("The store does not say yet what there is (%s).", error)
                self.pause(READ_AGAIN_S)
            else:
                self.reactor.call(self._turn, then, outcome[0])
                return

    def _go_on(self, lead: Lead) -> None:
        """Have the apps write what they know where it is lost."""
        if lead.epoch == self.core.epoch:
            for app in self._apps():
                app.renew_lead(lead)

    def _taken(self, lead: Lead) -> None:
        """Know what there was."""
        self._lead, self._fabric.logged = lead, self._feed.journal.switches()
        self._begin_to_lead()

    def _begin_to_lead(self) -> None:
        """Have the apps know what there was, if it is of this fabric; when the last one does, they are let in."""
        lead = self._lead
        if lead is None or not self._fabric.is_log_of(self._datapaths):
            return
        self._lead, self._secret = None, lead.secret
        if lead.policy is not None:
            self.policy_file.reader.put_in_force(lead.policy)
        waited_for = self._apps()

        def taken(app: TableKeeper) -> None:
            waited_for.remove(app)
            if not waited_for:
                self.take_overs += 1
                self.feed(TakenOver(lead.epoch))

        self._on_other_loops(partial(_take_lead, lead=lead, then=_nothing))
        if not waited_for:
            self.feed(TakenOver(lead.epoch))
        for app in tuple(waited_for):
            _take_lead(app, lead, partial(taken, app))

    def _begin_anew(self, why: str) -> None:
        """End all apps and become a new process, which follows: nothing that this one knows is certain any longer.

        One that ends anyhow, having handed over, goes on ending; one that takes no part stays so.
        """
        if self._is_ending or self._fabric.other_fabric:
            return
        text = f"This controller begins anew as one who follows: {why}."
        self._tell(TellOperators("controller-begins-anew", text, Severity.WARNING))
        led_epoch = max(self.settings.member.led_epoch, self.core.epoch or 0)
        os.environ |= {HIGHEST: str(max(self._floor, led_epoch)), LED: str(led_epoch)}
        overdue = system_threading.Timer(END_S, become_anew)
        overdue.daemon = True
        overdue.start()
        # Who leaves is no member any more: it would be elected again.
        system_threading.Thread(target=self.link.close, daemon=True).start()
        hub.spawn(self._end_all)

    def _end_all(self) -> None:
        for app in apps_of_process():
            if hasattr(app, "policy_file"):
                try:
                    app.stop()
                except Exception:
                    self.logger.exception("%s did not end as it should", app.name)
        become_anew()


def _nothing() -> None:
    """Wait for nobody."""


def _take_lead(app: Any, lead: Lead, then: Callable[[], None]) -> None:
    """Have an app go by the policy that counts, and know what the leader before it has left."""
    app.policy_file.take(app.policy_was_read)
    app.take_lead(lead, then)


def _let_in(app: Any, datapath: Any) -> None:
    app.let_in(datapath)


def _append(outcome: list[_Outcome], read: Callable[[], _Outcome]) -> None:
    outcome.append(read())
