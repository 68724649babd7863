"""The monitor app: `ryu-manager apps/monitor.py`, or `vsrt run monitor`; alone or beside the other apps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from apps.actions import logged
from apps.alarm_reports import OUTPUT_FAILED
from apps.exporters.registry import build_sinks
from apps.exporters.sink import Overview, RatedSamples, ShareState, SwitchAnswering
from apps.monitor_settings import output_settings
from apps.monitor_share import MonitorShare
from apps.openflow.bus import (
    AlarmReported,
    CountersMeasured,
    ErrorsCounted,
    LinksMeasured,
    PortsMeasured,
    RollUpsMeasured,
)
from apps.openflow.declared import DeclaredApp
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import (
    MAIN_DISPATCHER,
    hub,
    ofp_event,
    run_aside,
    running_apps,
    set_ev_cls,
    watch_connections,
)
from apps.openflow.role import RoleRequests
from apps.openflow.stats_app import StatsApp
from apps.ovsdb import Ovsdb, OvsdbFault, SwitchUse
from apps.policy_file import PolicyReading
from apps.state_dir import ActionLog, own_state_dir
from apps.status_server import QuestionRefused
from controller.allocation.events import ports_rated
from controller.anomaly.live_events import ports_sampled
from controller.anomaly.live_normalcy_core import ports_rolled_up
from controller.config.policy import Policy
from controller.effects import Notice
from controller.maintenance.errors import ErrorsMeasured
from controller.multicast.events import LoadsMeasured
from controller.performance.alarms import LINK_DOWN
from controller.performance.effects import EventsRaised, ResetCounters, RollUpsClosed, SamplesRated
from controller.performance.event_texts import event_text
from controller.performance.events import EventState, PortEvent, PortSeverity
from controller.performance.poller import SwitchTurned
from controller.performance.poller_core import MonitorChanged, MonitorCore
from controller.performance.poller_sections import EVENT_SEVERITIES, MonitorSections
from controller.performance.poller_view import ACTIONS, CHANGES, VIEWS, Console, QuestionInvalid
from controller.performance.shared_polls import PollsStopped, SharedMonitorCore, SwitchesHeld

ECHO_INTERVAL_S, UNANSWERED_ECHOES = 60.0, 3
"""Polls tell soon enough that a switch is silent; echoes only clear away dead connections."""

OVSDB_INTERVAL_S = 5.0
"""Open vSwitch brings its own statistics up to date this often."""

SCRAPE_BEGIN_S = 0.5
"""A scrape goes on without what the loop has not begun to tell by then."""


class MonitorApp(DeclaredApp, FabricApp, StatsApp):
    """Feeds the monitor's core, and hands what comes out to files, Prometheus, logs, console and trees.

    It never changes a flow entry. `core.poller` decides which switches are polled.
    """

    _EVENTS: ClassVar[list[type]] = [
        *(LinksMeasured, ErrorsCounted, PortsMeasured, CountersMeasured, RollUpsMeasured, AlarmReported)
    ]
    core: MonitorCore
    actions: ActionLog

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        watch_connections(ECHO_INTERVAL_S, UNANSWERED_ECHOES)
        policy = self.policy_file.reading.policy
        settings = policy.monitor
        self._roles = RoleRequests(settings.role, self.core.xid_tag)
        self._use: dict[int, SwitchUse] = {}
        self.sections = MonitorSections(
            self.core, self._cpu_and_memory, time.monotonic(), self.names, lambda: "alarms" in running_apps()
        )
        directory = own_state_dir()
        try:
            self._ovsdb = Ovsdb(settings.ovsdb) if settings.ovsdb else None
            self.share = self._own_share(policy) if settings.share != "none" else None
            outputs = output_settings(settings)
            self.sinks = build_sinks(
                outputs,
                directory,
                self.core.ports,
                self.logger,
                self._overview,
                partial(self.ask, begin_s=SCRAPE_BEGIN_S),
                self.sections.names.spoken,
                self.share.name if self.share is not None else "",
            )
        except ValueError as error:
            raise SystemExit(f"vsrt: monitor: {error}") from error
        self._perform.update(
            {
                SamplesRated: self._samples_rated,
                EventsRaised: self._events_raised,
                LoadsMeasured: lambda effect: self.send_event_to_observers(LinksMeasured(effect)),
                ErrorsMeasured: lambda effect: self.send_event_to_observers(ErrorsCounted(effect)),
                ResetCounters: self._reset_counters,
                RollUpsClosed: self._roll_ups_closed,
                SwitchTurned: lambda effect: self.sections.turned(effect.dpid, effect.up, time.time()),
            }
        )
        if self.share is not None:
            self._perform[SwitchesHeld] = self.share.held
            self._perform[PollsStopped] = self.share.stopped
        sections, orders = self.sections.by_name(), {}
        self.log_actions()
        if self.share is not None:
            self.pages |= self.share.pages
            sections = {**sections, **self.share.sections()}
            orders = self.share.orders(partial(self.reactor.call, self._turn), self.actions)
        self.console = Console(self.core, self._change, time.monotonic, self._state, self.names)
        asked = {name: partial(self._answer, action) for name, action in ACTIONS.items()}
        self.offer(
            {name: partial(view, self.console) for name, view in VIEWS.items()},
            {**asked, **{name: partial(self._logged, name) for name in CHANGES}, **orders},
            sections,
            self._refresh,
        )

    def _refresh(self) -> None:
        self.sections.refresh(time.monotonic())
        if self.share is not None:
            self.share.refresh()

    def start(self) -> Any:
        """Run, and ask Open vSwitch how busy it is where the policy says so."""
        thread = super().start()
        if self.share is not None:
            self.share.start()
        if self._ovsdb is not None:
            self.threads.append(hub.spawn(self._watch_use, self._ovsdb))
        return thread

    def end(self) -> None:
        """Leave everything on disk."""
        super().end()
        if self.share is not None:
            self.share.close()
        self.sinks.close()

    def policy_was_read(self, reading: PolicyReading) -> None:
        """Go by another policy, with as long between polls as is advised."""
        if self.share is not None and not reading.errors:
            self.share.configure(reading.policy.scaling)
            monitor = self.share.scaling.paced(reading.policy.monitor)
            reading = reading._replace(policy=replace(reading.policy, monitor=monitor))
        super().policy_was_read(reading)

    def feed(self, event: Any) -> None:
        """Give the core one event, and have readers told what it changes."""
        super().feed(event)
        self.sections.happened(event)

    def notice(self, notice: Notice) -> None:
        """Count and log a notice, and make an event of it."""
        super().notice(notice)
        self.sections.noticed(notice, time.time())

    # Effects.

    def _samples_rated(self, effect: SamplesRated) -> None:
        epochs = self.core.epochs_of(effect.samples.rows) if isinstance(self.core, SharedMonitorCore) else None
        self.sinks.write(RatedSamples(effect.samples, effect.rates, effect.write, epochs))
        self.sections.rated(effect.rates)
        cpu_pct = {dpid: use.cpu_pct for dpid, use in self._use.items() if use.cpu_pct is not None}
        if self.observers.get(PortsMeasured):
            self.send_event_to_observers(PortsMeasured(ports_rated(effect.rates, self.core.ports, cpu_pct)))
        if self.observers.get(CountersMeasured):
            self.send_event_to_observers(CountersMeasured(ports_sampled(effect.rates, self.core.ports, cpu_pct)))

    def _roll_ups_closed(self, effect: RollUpsClosed) -> None:
        rollups = effect.rollups
        self.sinks.roll_up(rollups)
        normalcy = self.policy_file.reading.policy.anomaly.normalcy
        if normalcy.enabled and rollups.step_s == normalcy.point_s and self.observers.get(RollUpsMeasured):
            told = ports_rolled_up(rollups, self.core.ports)
            self.send_event_to_observers(RollUpsMeasured(rollups.step_s, told))

    def _events_raised(self, effect: EventsRaised) -> None:
        self.sections.raised(effect)
        for event in effect.events:
            self.sinks.event(event)
            self._report(event)
            self.logger.info("%s", self.sections.names.spoken(event_text(event)))

    def _report(self, event: PortEvent) -> None:
        """Report a condition of a port that matters; links that are down are found by the alarms themselves."""
        if event.severity < PortSeverity.WARNING or event.counter == LINK_DOWN:
            return
        subject = f"{event.dpid}:{event.port_no}:{event.counter}"
        if event.state is EventState.RAISED:
            text, severity = event_text(event), EVENT_SEVERITIES[event.severity]
            self._reports.holds("port-event", subject, severity, text, event.dpid, event.port_no)
        else:
            self._reports.over("port-event", subject)

    def _reset_counters(self, effect: ResetCounters) -> None:
        text = (
            f"Counter {effect.counter} of port {effect.dpid}:{effect.port_no} is near its maximum, where it stops:"
            " reset it at the switch, for OpenFlow has no message that does."
        )
        self.notice(Notice("counter-sticks", text))

    # What comes in.

    def _feed_later(self, event: Any) -> None:
        self.reactor.call(self._turn, self.feed, event)

    @set_ev_cls(
        [
            ofp_event.EventOFPPortStatsReply,
            ofp_event.EventOFPQueueStatsReply,
            ofp_event.EventOFPGroupStatsReply,
            ofp_event.EventOFPMeterStatsReply,
            ofp_event.EventOFPTableStatsReply,
        ],
        MAIN_DISPATCHER,
    )
    def _stats_received(self, event: Any) -> None:
        self.take_stats(event.msg)

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def _role_wanted(self, event: Any) -> None:
        self._roles.connected(event.datapath)

    @set_ev_cls(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def _role_told(self, event: Any) -> None:
        self._roles.replied(event.msg)

    # Time.

    def ticked(self) -> None:
        """Look after files, and how the outputs fare."""
        super().ticked()
        for name, state in self.sinks.states().items():
            text = f"An output cannot be written: {'; '.join(state.faults)}." if state.faults else None
            self._reports.look_at(OUTPUT_FAILED, name, text)

    def _own_share(self, policy: Policy) -> MonitorShare:
        def hear(heard: Any) -> None:
            self.reactor.call(self._turn, self._heard_advice, heard)

        return MonitorShare(policy, self._feed_later, self.logger, self._busyness, hear)

    def _busyness(self) -> Any:
        """Return how busy this monitor is; on any thread, for a loop that is late is what is looked for."""
        from apps.cluster.scaling_thread import Busyness

        fill = max((state.fill for state in self.sinks.states().values()), default=0.0)
        load = self.core.poller.schedule.load.reading()
        return Busyness(load, time.process_time(), self.core.settings.outstanding, fill)

    def _heard_advice(self, heard: Any) -> None:
        if self.share is None:
            return
        for told in heard.events:
            self.logger.info("%s: %s", told.kind, told.text)
            self.sections.events.add(time.time(), told.kind, told.text, severity=told.severity, state=told.state)
        settings = self.share.scaling.heard(heard, self.core.settings)
        if settings is not None:
            self._change(settings)

    def _change(self, settings: Any) -> None:
        self.feed(MonitorChanged(settings))

    def _watch_use(self, ovsdb: Ovsdb) -> None:
        faulty = False
        while self.is_active:
            read: list[SwitchUse] = []
            try:
                run_aside(partial(_read, ovsdb, read))
                self._use = {dpid: use for use in read for dpid in use.dpids}
                faulty = False
            except OvsdbFault as error:
                self._use = {}
                if not faulty:
                    self.logger.error("%s", error)
                faulty = True
            self.pause(OVSDB_INTERVAL_S)

    # What others ask.

    def _overview(self) -> Overview:
        schedule, core, use = self.core.poller.schedule, self.core, self._use
        offset_s = core.at_s(0.0)
        nothing = SwitchUse((), None, None)
        switches = tuple(
            SwitchAnswering(
                switch.dpid,
                str(switch.kind),
                switch.up,
                None if switch.answered_s is None else switch.answered_s + offset_s,
                use.get(switch.dpid, nothing).cpu_pct,
                use.get(switch.dpid, nothing).memory_pct,
            )
            for switch in list(schedule.switches.values())
        )
        share = None if self.share is None else ShareState(*self.share.figures)
        advice = None if self.share is None else self.share.advice
        return Overview(switches, {**schedule.counters, **core.poller.counters}, share, advice)

    def _cpu_and_memory(self) -> dict[int, tuple[float | None, float | None]]:
        return {dpid: (use.cpu_pct, use.memory_pct) for dpid, use in self._use.items()}

    def _logged(self, name: str, asked: Mapping[str, Any]) -> Any:
        return logged(self.actions, name, asked, lambda fields, _by: self._answer(ACTIONS[name], fields))

    def _answer(self, action: Callable[[Console, Mapping[str, Any]], Any], asked: Mapping[str, Any]) -> Any:
        try:
            return action(self.console, asked)
        except QuestionInvalid as error:
            field = str(error).partition(":")[0]
            raise QuestionRefused(str(error), field if field in asked else None) from None

    def _state(self) -> dict[str, Any]:
        overview = self._overview()
        return {
            "switches": [switch._asdict() for switch in overview.switches],
            "polls": dict(overview.polls),
            "outputs": {name: state._asdict() for name, state in self.sinks.states().items()},
        }


def _read(ovsdb: Ovsdb, read: list[SwitchUse]) -> None:
    read.append(ovsdb.read())
