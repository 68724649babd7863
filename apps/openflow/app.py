"""What every app shares: it feeds one core with events and performs the effects that come back.

From `begin` to `end` nothing but the loop of its app touches a core, whatever the framework's concurrency, so a core
needs no lock. Apps that program switches share one loop, that of the switches' connections; others have one each.
Other threads send events, or `ask`; apps tell each other things by events of `apps.openflow.bus` only.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from apps.alarm_reports import OUTPUT_FAILED, AlarmReports
from apps.environment import environment_path
from apps.exporters.endpoint import Endpoint, Source, close_endpoint, open_endpoint
from apps.exporters.exposition import Metric
from apps.exporters.figures import app_figures
from apps.exporters.http_server import Page
from apps.monitor_settings import prometheus_settings
from apps.openflow import decode, questions, start_line
from apps.openflow.app_core import Core
from apps.openflow.bus import AlarmReported, TableSuspected
from apps.openflow.collector import collect_seldom
from apps.openflow.descriptions import ask_description, read_description
from apps.openflow.framework import (
    DATAPATHS,
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    SOUTHBOUND,
    SWITCHES,
    BaseApp,
    Event,
    apps_of_process,
    hub,
    new_reactor,
    ofp_event,
    running_apps,
    set_ev_cls,
)
from apps.openflow.lead_follower import LeadFollower
from apps.openflow.packet_turn import PacketTaker, feed_packets
from apps.openflow.questions import QuestionEvent
from apps.openflow.reactor import Reactor
from apps.openflow.recorder import Recorder
from apps.openflow.southbound import Answer
from apps.registry import APPS
from apps.switch_names import remembered_names
from apps.table_checks import TableChecks
from controller.datapath.core import OwnerTold
from controller.effects import (
    ApplyEdits,
    EntriesLost,
    Notice,
    RequestFlows,
    RequestResources,
    RequestRole,
    RequestTables,
    SendPacket,
    TableSurveyed,
)
from controller.events import (
    CheckRequested,
    DeadlineReached,
    PacketReceived,
    SwitchDescription,
    SwitchDisconnected,
    TableChanged,
)
from controller.histogram import Histogram
from controller.kernel.notices import NoticeLimiter
from controller.rules.lowering import LOWERINGS, Lowering
from controller.rules.of13_resources import NO_CHANGE, encode_resource_request
from controller.snapshot.names import Names

if TYPE_CHECKING:
    from apps.policy_file import InForce
    from controller.config.policy import Policy

DROPPED_PER_LINE = 1000
"""Events that are not taken in have a line of the log for each so many."""

HANDLER_FAILED = "handler-failed"
"""A fault of ours: an event was not handled to its end, and the app goes on."""

EVENT_DROPPED = "event-dropped"
"""The app was not told something: it has been so busy that too much waits for it."""

TICK_S = 0.5
"""How often files are looked after, the policy file first."""

TELLERS = tuple(spec.name for spec in APPS.values() if spec.is_shown)
"""The apps whose notices operators see, the one that rather tells of connections first."""


class App(PacketTaker, BaseApp):
    """An OpenFlow application around one core; subclasses make `self.core`."""

    OFP_VERSIONS: ClassVar[list[int]] = [1, 4]
    core: Core
    """Made by the subclass before `start`; its transaction ids carry `core.xid_tag` in their upper 8 bits."""
    policy_file: InForce
    """Made by the subclass; it says where the process serves Prometheus."""
    takes_events = True
    """Whether the core is given what the app is fed with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notices: Counter[str] = Counter()
        self.turns = Histogram()
        self.reactor = self.loop()
        self._source = Source(self.name.lower(), self.figures, self._want_figures, lambda: self.reactor.backlog)
        self._endpoint: Endpoint | None = None
        self.pages: dict[str, Page] = {}
        self.names = Names()
        self._datapaths: dict[int, Any] = {}
        self._recorder: Recorder | None = None
        self.is_started = False
        self._ended, self._left = Event(), Event()
        self._tick_s = math.inf
        self._core_due_s: float | None = None
        self._is_due_known = False
        self._reports = AlarmReports(self.name.lower(), self.report)
        self._perform: dict[type, Callable[[Any], None]] = {
            ApplyEdits: self._apply_edits,
            SendPacket: self._send_packet,
            RequestFlows: self._request_flows,
            RequestResources: self._request_resources,
            RequestRole: self._request_role,
            RequestTables: lambda effect: self._say(effect.dpid, lambda to: to.encode_tables_request(effect.xid)),
            Notice: self.notice,
        }
        self._chosen: dict[tuple[type, str | None], list[Callable[[Any], None]]] = {}

    def loop(self) -> Reactor:
        """Return the loop on which the app handles its events."""
        return new_reactor(self.name)

    def start(self) -> Any:
        """Begin on the loop; all loops begin to run when the last app of the process is started."""
        start_line.announce()
        collect_seldom()
        self._offer_figures()
        self.reactor.call(self._join)
        self.is_started = True
        apps = [self, *(app for app in apps_of_process() if isinstance(app, App) and app is not self)]
        if all(app.is_started for app in apps):
            for reactor in (SWITCHES, *(app.reactor for app in apps)):
                reactor.start()

    def get_handlers(self, ev: Any, state: str | None = None) -> list[Callable[[Any], None]]:
        """Return the handlers of an event in a connection's state: the framework's answer, looked up once."""
        question = (ev.__class__, state)
        handlers = self._chosen.get(question)
        if handlers is None:
            found = super().get_handlers(ev, state)
            handlers = self._chosen[question] = list(found)
        return handlers

    def stop(self) -> None:
        """End what runs beside the loop, then leave the loop when it has done all that waits."""
        self.is_active = False
        self._ended.set()
        if self._endpoint is not None:
            self._endpoint.sources.pop(self._source.app, None)
            for path in self.pages:
                self._endpoint.pages.pop(path, None)
            close_endpoint(self._endpoint)
            self._endpoint = None
        if self.reactor.has_begun:  # else the app has nothing to leave: another one refused to start
            self.reactor.call(self._leave)
            self._left.wait()
        hub.joinall(self.threads)

    def pause(self, duration_s: float) -> None:
        """Wait, no longer than until the app is to end; for threads beside its loop."""
        self._ended.wait(duration_s)

    def begin(self) -> None:
        """Take over what an earlier run kept; called on the app's own loop before the first event."""

    def end(self) -> None:
        """Leave everything where it belongs; called on the app's own loop after the last event."""

    def ticked(self) -> None:
        """Look after files; called every `TICK_S` on the app's own loop, where the app says what to do."""

    def figures(self) -> list[Metric]:
        """Return what Prometheus is told of this app; called on its own loop when there is a scrape."""
        return app_figures(self._source.app, self.turns, self.notices, self.policy_file.reading)

    def record(self, now: float, **start: Any) -> None:
        """Record from here on, where that is asked for, the core made at `now` of these arguments."""
        path = environment_path("VSRT_RECORD")
        if path is not None:
            self._recorder = Recorder(path, self.name.lower(), self.logger)
            self._recorder.write(now, "start", start)

    def _look_after_files(self) -> None:
        self.ticked()
        if self._recorder is not None:
            self._reports.look_at(OUTPUT_FAILED, "recording", self._recorder.fault)

    def feed(self, event: Any) -> None:
        """Give the core one event, and perform what it asks for."""
        now = time.monotonic()
        if self._recorder is not None:
            self._recorder.write(now, "event", event)
        effects = self.core.handle(event, now)
        if effects:
            self.perform(effects)

    @property
    def is_recorded(self) -> bool:
        """Whether each event is recorded."""
        return self._recorder is not None

    def perform(self, effects: Iterable[Any]) -> None:
        """Carry out effects in order."""
        perform = self._perform
        for effect in effects:
            perform[type(effect)](effect)

    def report(self, report: Any) -> None:
        """Tell the app that keeps the alarms, where it runs, of something that is wrong, or is over."""
        self.send_event_to_observers(AlarmReported(report))

    def ask(self, answer: Callable[[], Any], begin_s: float | None = None) -> Any:
        """Run `answer` on the app's own loop from another thread and return what it returns.

        Unanswered where the loop is too busy: the question is taken back unless it has begun in time (`begin_s`).
        """
        question = QuestionEvent(answer, questions.BEGIN_S if begin_s is None else begin_s)
        if not self.reactor.call(self._turn, question.run):
            question.take_back()
        return question.wait()

    def notice(self, notice: Notice) -> None:
        """Count and log a notice."""
        self.notices[notice.kind] += 1
        self.logger.info("%s: %s", notice.kind, self.names.spoken(notice.text))

    def use_names(self, policy: Policy, names: Names | None = None) -> None:
        """Call switches (in a core's `names`, if it has some) as the policy does, else as they called themselves."""
        self.names = self.names if names is None else names
        self.names.configure(policy.switches, policy.labels)
        for dpid, description in remembered_names(self.logger).items():
            self.names.described(dpid, description)

    def described(self, dpid: int, description: SwitchDescription) -> None:
        """Take what a switch says of itself, once per connection; an app that shows switches says what to do."""
        self.names.described(dpid, description.datapath)

    def is_shut_out(self, datapath: Any) -> bool:
        """Tell whether the app is not to know of a switch that connects yet."""
        return False

    def let_in(self, datapath: Any) -> None:
        """Know of a switch that has connected; on the loop."""
        self._datapaths[datapath.id] = datapath
        self.feed(decode.switch_connected(datapath))

    def has_connection(self, dpid: int) -> bool:
        """Tell whether the app knows of a switch's connection."""
        return dpid in self._datapaths

    def _say(self, dpid: int, encode: Callable[[Lowering], bytes]) -> None:
        """Send a switch what `encode` makes of something in its version of OpenFlow, while it is connected."""
        datapath = self._datapaths.get(dpid)
        if datapath is not None:
            datapath.send(encode(LOWERINGS[datapath.ofproto.OFP_VERSION]))

    def _apply_edits(self, effect: ApplyEdits) -> None:
        self._say(effect.dpid, lambda lowering: lowering.encode_batch(effect))

    def _send_packet(self, effect: SendPacket) -> None:
        self._say(effect.dpid, lambda lowering: lowering.encode_packet_out(*effect[1:], self.core.xid_tag << 24))

    def _request_flows(self, effect: RequestFlows) -> None:
        self._say(effect.dpid, lambda lowering: lowering.encode_flow_stats_request(*effect[1:]))

    def _request_resources(self, effect: RequestResources) -> None:
        self._say(effect.dpid, lambda _lowering: encode_resource_request(effect.kind, effect.xid))

    def _request_role(self, effect: RequestRole) -> None:
        role, generation_id = effect.role or NO_CHANGE, effect.generation_id
        self._say(effect.dpid, lambda lowering: lowering.encode_role_request(role, generation_id, effect.xid))

    # The loop

    @property
    def deadline_s(self) -> float | None:
        """When `due` is to be called; the core is asked once for all that it took since it was asked last."""
        if not self._is_due_known:
            self._is_due_known = True
            try:
                self._core_due_s = self.core.next_deadline()
            except Exception:
                self._core_due_s = None
                self.failed("its next deadline")
        deadline = self._core_due_s
        return self._tick_s if deadline is None or self._tick_s < deadline else deadline

    def due(self) -> None:
        """Do what is due, the core's deadline or a look at files."""
        now = time.monotonic()
        if self._core_due_s is not None and now >= self._core_due_s:
            self._turn(self.feed, DeadlineReached())
        if now >= self._tick_s:
            self._tick_s = now + TICK_S
            self._turn(self._look_after_files)

    def _join(self) -> None:
        if type(self).ticked is not App.ticked:
            self._tick_s = time.monotonic() + TICK_S
        self._turn(self.begin)
        self.reactor.add(self)

    def _leave(self) -> None:
        self.reactor.remove(self)
        self._turn(self.end)
        if self.reactor is not SWITCHES:
            self.reactor.end()
        self._left.set()

    def _turn(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do one thing on the loop: measured, and outlived where it fails. The next deadline may be another then."""
        began_s = time.perf_counter()
        try:
            work(*arguments)
        except Exception:
            self.failed(type(arguments[0]).__name__ if arguments else work.__name__)
        finally:
            self.turns.observe(time.perf_counter() - began_s)
            self._is_due_known = False

    def failed(self, what: str) -> None:
        """Count and log what was not done to its end."""
        self.notices[HANDLER_FAILED] += 1
        self.logger.exception("%s: The handling of %s failed.", self.name, what)

    def _send_event(self, ev: Any, state: str | None) -> None:
        """Take an event of the framework's bus, whose senders call this; without waiting."""
        if not self.reactor.call(self._take, ev, state):
            self.notices[EVENT_DROPPED] += 1
            if self.notices[EVENT_DROPPED] % DROPPED_PER_LINE == 1:
                text = "%s: %s is not taken in: %d events wait already (%d were not so far)."
                self.logger.error(
                    text, self.name, type(ev).__name__, self.reactor.backlog, self.notices[EVENT_DROPPED]
                )

    def _take(self, event: Any, state: str | None) -> None:
        if self._left.is_set():
            return
        for handler in self.get_handlers(event, state):
            self._turn(handler, event)

    def _offer_figures(self) -> None:
        """Add this app's figures to the page that the process serves Prometheus, where there is to be one."""
        settings = prometheus_settings(self.policy_file.reading.policy.monitor)
        if settings is not None:
            self._endpoint = open_endpoint(settings.host, settings.port, self.logger)
            self._endpoint.sources[self._source.app] = self._source
            self._endpoint.pages |= self.pages

    def _want_figures(self) -> bool:
        """Have the loop make the figures; False, without waiting, where it takes no more work."""
        return self.reactor.call(self._turn, self._source.publish)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state_changed(self, event: Any) -> None:
        datapath: Any = event.datapath
        if event.state == MAIN_DISPATCHER:
            if not self.is_shut_out(datapath):
                self.let_in(datapath)
            return
        dpid: int = datapath.id
        reason: str | None = datapath.connection.cut_because
        if self._datapaths.get(dpid) is datapath:
            del self._datapaths[dpid]
            if reason is not None and self._tells_of_connections():
                text = (
                    f"The connection of switch {dpid} was cut: {reason}. The switch is read afresh when it is back."
                )
                self.notice(Notice("switch-cut-off", text, (("dpid", dpid),)))
            self.feed(SwitchDisconnected(dpid))

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def _description_wanted(self, event: Any) -> None:
        ask_description(event.datapath, self.core.xid_tag << 24)

    @set_ev_cls(ofp_event.EventOFPDescStatsReply, MAIN_DISPATCHER)
    def _described(self, event: Any) -> None:
        self.described(event.msg.datapath.id, read_description(event.msg))

    def _tells_of_connections(self) -> bool:
        """Tell whether this is the one app of the process that tells what befell a connection."""
        running = running_apps()
        teller = next((name for name in TELLERS if name in running), running[0] if running else None)
        return teller in (None, self.name.lower())

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port_changed(self, event: Any) -> None:
        if not self.is_shut_out(event.msg.datapath):
            self.feed(decode.port_changed(event.msg))


class TableKeeper(LeadFollower, App):
    """An app whose core keeps flow entries on switches; `_EVENTS` names `TableSuspected`.

    Where one finds entries of its own missing, the others look at the same switch at once.
    """

    takes_lldp = False
    takes_ipv4_groups = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table_checks = TableChecks(self)
        self._refusals = NoticeLimiter()
        self._perform[EntriesLost] = self._entries_lost
        self._perform[TableSurveyed] = self.table_checks.surveyed

    def loop(self) -> Reactor:
        """Return the loop of the switches' connections."""
        return SWITCHES

    def is_shut_out(self, datapath: Any) -> bool:
        """Tell whether another controller leads, or may lead still: the app then knows of no switch."""
        gate = SOUTHBOUND.gate
        return gate is not None and gate.is_shut(datapath)

    def connected_switches(self) -> list[int]:
        """Return the switches that are connected; on the loop."""
        return sorted(self._datapaths)

    def later(self, work: Callable[[], None]) -> bool:
        """Have work done on the loop when what goes on there has ended; False where the loop takes no more work."""
        return self.reactor.call(self._turn, work)

    def packets_received(self, events: Sequence[PacketReceived]) -> None:
        """Take packet-ins that came together, in one turn."""
        self._turn(feed_packets, self, events)

    def switch_refused(self, host: str, reason: str) -> None:
        """Count, and tell of, a switch that was not let in; the same of a host once in a while."""
        self._turn(self._switch_refused, host, reason)

    def _switch_refused(self, host: str, reason: str) -> None:
        if self._refusals.passes((host, reason), time.monotonic()):
            text = f"A switch that connected from {host} was refused: {reason}."
            self.notice(Notice("switch-refused", text))
        else:
            self.notices["switch-refused"] += 1

    def answered(self, event: Answer) -> None:
        """Take the answer to a message of the app's."""
        self._turn(self.feed, event)

    def measured(self, work: Callable[[Any], None], event: Any) -> None:
        """Do work of what the apps share as a turn of this one."""
        self._turn(work, event)

    def told(self, told: OwnerTold) -> None:
        """Take what concerns the app of what a switch confirmed, or told."""
        self._turn(self._told, told)

    def _told(self, told: OwnerTold) -> None:
        if told.effects:
            self.perform(told.effects)
        self.feed(TableChanged(told.dpid, told.was_read))

    def _join(self) -> None:
        super()._join()
        SOUTHBOUND.add(self, self.core.xid_tag)
        DATAPATHS.add(self, self.core.xid_tag)

    def _leave(self) -> None:
        DATAPATHS.remove(self)
        SOUTHBOUND.remove(self)
        super()._leave()

    def _look_after_files(self) -> None:
        super()._look_after_files()
        self._reports.look_at(OUTPUT_FAILED, "recording-datapath", DATAPATHS.recording_fault(self))

    def _entries_lost(self, effect: EntriesLost) -> None:
        """Have the others look at the same switch."""
        self.send_event_to_observers(TableSuspected(effect.dpid, self.name))

    @set_ev_cls(TableSuspected)
    def _table_suspected(self, event: Any) -> None:
        if event.finder != self.name:
            self.feed(CheckRequested(event.dpid))


__all__ = ["TICK_S", "App", "Core", "TableKeeper"]
