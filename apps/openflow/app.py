"""What every app shares: it feeds one core with events and performs the effects that come back.

An app owns its core alone: from `begin` to `end` nothing but its own event loop touches it, whatever the framework's
concurrency, so a core needs no lock. Other threads send events, or `ask`; apps tell each other things by events of
`apps.openflow.bus` only.
"""

from __future__ import annotations

import gc
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from apps.environment import environment_path
from apps.exporters.endpoint import Endpoint, Source, close_endpoint, open_endpoint
from apps.exporters.exposition import Metric
from apps.exporters.figures import app_figures
from apps.monitor_settings import prometheus_settings
from apps.openflow import aside, decode, questions, start_line
from apps.openflow.aside import Aside, AsideEvent
from apps.openflow.bus import AlarmReported, TableSuspected, TopologyChanged
from apps.openflow.descriptions import ask_description, read_description
from apps.openflow.framework import (
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    BaseApp,
    Event,
    EventBase,
    hub,
    ofp_event,
    running_apps,
    set_ev_cls,
)
from apps.openflow.questions import Asked
from apps.openflow.recorder import Recorder
from apps.openflow.turns import Turns
from controller.effects import ApplyEdits, EntriesLost, Notice, RequestFlows, SendPacket
from controller.events import CheckRequested, DeadlineReached, SwitchDisconnected
from controller.rules.lowering import LOWERINGS

if TYPE_CHECKING:
    from apps.policy_file import PolicyFile

HANDLER_FAILED = "handler-failed"
"""A fault of ours: an event was not handled to its end, and the app goes on."""

EVENT_DROPPED = "event-dropped"
"""Another app was not told something: it has been so busy that too much waits for it."""

LONGEST_SLEEP_S = 1.0

TICK_S = 0.5
"""How often files are looked after, the policy file first."""

TELLERS = ("multicast", "monitor")
"""The apps whose notices operators see, the one that rather tells of connections first."""

COLLECTOR_THRESHOLDS = (50_000, 5, 100)
"""Of Python's cyclic collector, whose defaults double the cost of a join: cores make many objects that stay, and what
they drop goes by reference counts."""


class Core(Protocol):
    """A pure core: events in, effects out, and the moment it next wants to be woken."""

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of the transaction ids that are this core's own."""

    def handle(self, event: Any, now: float) -> Iterable[Any]:
        """Take one event and return what is to be done."""

    def next_deadline(self) -> float | None:
        """Return the time at which `DeadlineReached` is due, None for never."""


class Woken(EventBase):  # type: ignore[misc]
    """The sleeper's word to its app that a deadline has come."""


class Ticked(EventBase):  # type: ignore[misc]
    """The clock's word to its app that it is time to look after files."""


class FiguresWanted(EventBase):  # type: ignore[misc]
    """A scrape's word to an app that Prometheus wants its figures."""


class App(BaseApp):  # type: ignore[misc]
    """An OpenFlow application around one core; subclasses make `self.core`."""

    OFP_VERSIONS: ClassVar[list[int]] = [1, 4]
    core: Core
    """Made by the subclass before `start`; its transaction ids carry `core.xid_tag` in their upper 8 bits."""
    policy_file: PolicyFile
    """Made by the subclass; it says where the process serves Prometheus."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notices: Counter[str] = Counter()
        self.turns = Turns()
        self._source = Source(self.name.lower(), self.figures, self._want_figures, self.events.qsize)
        self._endpoint: Endpoint | None = None
        self._aside = Aside(super().send_event_to_observers)
        self._datapaths: dict[int, Any] = {}
        self._recorder: Recorder | None = None
        self._wake = Event()
        self._ended = Event()
        self._perform: dict[type, Callable[[Any], None]] = {
            ApplyEdits: self._apply_edits,
            SendPacket: self._send_packet,
            RequestFlows: self._request_flows,
            Notice: self.notice,
        }
        self._chosen: dict[tuple[type, str | None], list[Callable[[Any], None]]] = {}
        self._deadline: float | None = None
        self._sleep_until = -math.inf
        self._woken_under_way = False

    def start(self) -> Any:
        """Start the event loop and the sleeper beside it."""
        start_line.announce()
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        gc.freeze()
        self._offer_figures()
        thread = super().start()
        self.threads.append(hub.spawn(self._sleep))
        if type(self).ticked is not App.ticked:
            self.threads.append(hub.spawn(self._tick))
        return thread

    def get_handlers(self, ev: Any, state: str | None = None) -> list[Callable[[Any], None]]:
        """Return the handlers of an event in a connection's state: the framework's answer, looked up once."""
        question = (ev.__class__, state)
        handlers = self._chosen.get(question)
        if handlers is None:
            handled = f"The handling of {type(ev).__name__}"
            handlers = self._chosen[question] = [
                self.turns.timed(partial(self._attempt, handled, handler))
                for handler in super().get_handlers(ev, state)
            ]
        return handlers

    def _attempt(self, what: str, work: Callable[..., None], *arguments: Any) -> None:
        """Do a part of the loop's work; a failure is told and counted, where os-ken's loop would end for it."""
        try:
            work(*arguments)
        except Exception:
            self.notices[HANDLER_FAILED] += 1
            self.logger.exception("%s: %s failed.", self.name, what)

    def stop(self) -> None:
        """End the sleeper, then the event loop."""
        self.is_active = False
        self._wake.set()
        self._ended.set()
        if self._endpoint is not None:
            self._endpoint.sources.pop(self._source.app, None)
            close_endpoint(self._endpoint)
            self._endpoint = None
        super().stop()

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
        return app_figures(self._source.app, self.turns.seconds, self.notices, self.policy_file)

    def record(self, now: float, **start: Any) -> None:
        """Record from here on, where that is asked for, the core made at `now` of these arguments."""
        path = environment_path("VSRT_RECORD")
        if path is not None:
            self._recorder = Recorder(path, type(self).__name__.lower(), self.logger)
            self._recorder.write(now, "start", start)

    def feed(self, event: Any) -> None:
        """Give the core one event, perform what it asks for, and keep its next deadline."""
        now = time.monotonic()
        if self._recorder is not None:
            self._recorder.write(now, "event", event)
        try:
            self.perform(self.core.handle(event, now))
        finally:
            self._keep_deadline()

    def perform(self, effects: Iterable[Any]) -> None:
        """Carry out effects in order."""
        perform = self._perform
        for effect in effects:
            perform[type(effect)](effect)

    def send_event_to_observers(self, ev: Any, state: str | None = None) -> None:
        """Send an event to the apps that follow it: waits for room in their queues, but for those sent aside."""
        if not isinstance(ev, AsideEvent):
            super().send_event_to_observers(ev, state)
        elif not self._aside.put(ev):
            self.notices[EVENT_DROPPED] += 1
            text = "%s: %s is not told to other apps: %d events wait for them already."
            self.logger.error(text, self.name, type(ev).__name__, aside.ASIDE_EVENTS)

    def report(self, report: Any) -> None:
        """Tell the app that keeps the alarms, where it runs, of something that is wrong, or is over."""
        self.send_event_to_observers(AlarmReported(report))

    def ask(self, answer: Callable[[], Any], begin_s: float | None = None) -> Any:
        """Run `answer` on the app's own loop from another thread and return what it returns.

        Unanswered where the loop is too busy: the question is taken back unless it has begun in time (`begin_s`).
        """
        question = Asked(answer, questions.BEGIN_S if begin_s is None else begin_s)
        if not self._events_sem.acquire(timeout=question.begin_s):  # as the framework does, but not for ever
            question.take_back()
        self.events.put((question, None))
        return question.wait()

    def notice(self, notice: Notice) -> None:
        """Count and log a notice."""
        self.notices[notice.kind] += 1
        self.logger.info("%s: %s", notice.kind, notice.text)

    def _apply_edits(self, effect: ApplyEdits) -> None:
        datapath = self._datapaths.get(effect.dpid)
        if datapath is not None:
            datapath.send(LOWERINGS[datapath.ofproto.OFP_VERSION].encode_batch(effect))

    def _send_packet(self, effect: SendPacket) -> None:
        datapath = self._datapaths.get(effect.dpid)
        if datapath is not None:
            lowering = LOWERINGS[datapath.ofproto.OFP_VERSION]
            datapath.send(lowering.encode_packet_out(effect.ports, effect.data, self.core.xid_tag << 24))

    def _request_flows(self, effect: RequestFlows) -> None:
        datapath = self._datapaths.get(effect.dpid)
        if datapath is not None:
            lowering = LOWERINGS[datapath.ofproto.OFP_VERSION]
            datapath.send(lowering.encode_flow_stats_request(effect.xid, effect.cookie, effect.cookie_mask))

    def _event_loop(self) -> None:
        self._attempt("The beginning of its loop", self.begin)
        self._attempt("The look at the first deadline", self._keep_deadline)
        super()._event_loop()
        self._attempt("The end of its loop", self.end)

    def _keep_deadline(self) -> None:
        """Hand the sleeper the core's next deadline, after anything that may have changed it."""
        deadline = self._deadline = self.core.next_deadline()
        if deadline is not None and deadline < self._sleep_until:
            self._sleep_until = -math.inf
            self._wake.set()

    def _sleep(self) -> None:
        """Send the loop word of each deadline; the loop hands them over, since the core is the loop's alone."""
        while self.is_active:
            self._sleep_until = math.inf  # a deadline that is set from here on wakes
            now, deadline = time.monotonic(), self._deadline
            if self._woken_under_way:
                self._sleep_until, deadline = -math.inf, None  # the loop's answer wakes, whatever deadlines come
            wake_s = now + LONGEST_SLEEP_S if deadline is None else min(deadline, now + LONGEST_SLEEP_S)
            if wake_s > now:
                self._sleep_until = min(self._sleep_until, wake_s)
                self._wake.wait(wake_s - now)
                self._wake.clear()
            if deadline is not None and time.monotonic() >= deadline:
                self._woken_under_way = True
                self.send_event(self.name, Woken())

    def _offer_figures(self) -> None:
        """Add this app's figures to the page that the process serves Prometheus, where there is to be one."""
        settings = prometheus_settings(self.policy_file.policy.monitor)
        if settings is not None:
            self._endpoint = open_endpoint(settings.host, settings.port, self.logger)
            self._endpoint.sources[self._source.app] = self._source

    def _want_figures(self) -> bool:
        """Have the loop make the figures; False, without waiting, where it takes no more events."""
        if not self._events_sem.acquire(blocking=False):
            return False
        self.events.put((FiguresWanted(), None))
        return True

    def _tick(self) -> None:
        while self.is_active:
            self.pause(TICK_S)
            self.send_event(self.name, Ticked())

    @set_ev_cls(Ticked)
    def _ticked(self, _event: Any) -> None:
        self.ticked()
        self._keep_deadline()

    @set_ev_cls(Woken)
    def _woken(self, _event: Any) -> None:
        try:
            self.feed(DeadlineReached())
        finally:
            self._woken_under_way = False
            self._wake.set()

    @set_ev_cls(FiguresWanted)
    def _figures_wanted(self, _event: Any) -> None:
        self._source.publish()

    @set_ev_cls(Asked)
    def _asked(self, event: Any) -> None:
        event.run()
        self._keep_deadline()

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state_changed(self, event: Any) -> None:
        datapath: Any = event.datapath
        if event.state == MAIN_DISPATCHER:
            self._datapaths[datapath.id] = datapath
            self.feed(decode.switch_connected(datapath))
            return
        dpid: int = datapath.id
        reason: str | None = datapath.cut_because
        if self._datapaths.get(dpid) is datapath:
            del self._datapaths[dpid]
            if reason is not None and self._tells_of_connections():
                text = (
                    f"The connection of switch {dpid} was cut: {reason}. The switch is read afresh when it is back."
                )
                self.notice(Notice("switch-cut-off", text, (("dpid", dpid),)))
            self.feed(SwitchDisconnected(dpid))

    def _tells_of_connections(self) -> bool:
        """Tell whether this is the one app of the process that tells what befell a connection."""
        running = running_apps()
        teller = next((name for name in TELLERS if name in running), running[0] if running else None)
        return teller in (None, self.name.lower())

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def _packet_received(self, event: Any) -> None:
        self.feed(decode.packet_received(event.msg))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _port_changed(self, event: Any) -> None:
        self.feed(decode.port_changed(event.msg))

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def _barrier_replied(self, event: Any) -> None:
        if event.msg.xid >> 24 == self.core.xid_tag:
            self.feed(decode.barrier_replied(event.msg))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def _edit_failed(self, event: Any) -> None:
        if event.msg.xid >> 24 == self.core.xid_tag:
            self.feed(decode.edit_failed(event.msg))

    @set_ev_cls([ofp_event.EventOFPFlowStatsReply], MAIN_DISPATCHER)
    def _flow_stats_received(self, event: Any) -> None:
        if event.msg.xid >> 24 == self.core.xid_tag:
            self.feed(decode.flow_stats_received(event.msg))


class TableKeeper(App):
    """An app whose core keeps flow entries on switches; `_EVENTS` names `TableSuspected`.

    Where one finds entries of its own missing, the others look at the same switch at once.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._perform[EntriesLost] = self._entries_lost

    def _entries_lost(self, effect: EntriesLost) -> None:
        self.send_event_to_observers(TableSuspected(effect.dpid, self.name))

    @set_ev_cls(TableSuspected)
    def _table_suspected(self, event: Any) -> None:
        if event.finder != self.name:
            self.feed(CheckRequested(event.dpid))


class FabricApp(App):
    """An app whose core follows the fabric that discovery finds."""

    @set_ev_cls(TopologyChanged)
    def _topology_changed(self, event: Any) -> None:
        for change in event.changes:
            self.feed(change)

    def described(self, dpid: int, description: str) -> None:
        """Take what a switch says of itself, once per connection; an app that shows switches says what to do."""

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def _description_wanted(self, event: Any) -> None:
        ask_description(event.datapath, self.core.xid_tag << 24)

    @set_ev_cls(ofp_event.EventOFPDescStatsReply, MAIN_DISPATCHER)
    def _described(self, event: Any) -> None:
        self.described(event.msg.datapath.id, read_description(event.msg))


__all__ = ["TICK_S", "App", "Core", "FabricApp", "TableKeeper"]
