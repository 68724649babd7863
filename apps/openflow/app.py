"""What every app shares: it feeds one core with events and performs the effects that come back.

An app owns its core alone. Events reach it one at a time on its own event loop, whatever the framework's
concurrency, so a core needs no lock; apps tell each other things by `BusEvent` only.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

from apps.openflow import decode
from apps.openflow.bus import TopologyChanged
from apps.openflow.framework import (
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    BaseApp,
    Event,
    EventBase,
    hub,
    ofp_event,
    set_ev_cls,
)
from apps.openflow.recorder import Recorder
from controller.effects import ApplyEdits, Notice, RequestFlows, SendPacket
from controller.events import DeadlineReached, SwitchDisconnected
from controller.rules.lowering import LOWERINGS

LONGEST_SLEEP_S = 1.0

TICK_S = 0.5
"""How often files are looked after, the policy file first."""

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


class Asked(EventBase):  # type: ignore[misc]
    """A question from another thread: `answer` runs on the app's own loop and fills `replies`."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        super().__init__()
        self.answer = answer
        self.replies = hub.Queue()


class App(BaseApp):  # type: ignore[misc]
    """An OpenFlow application around one core; subclasses make `self.core`."""

    OFP_VERSIONS: ClassVar[list[int]] = [1, 4]
    core: Core
    """Made by the subclass before `start`; its transaction ids carry `core.xid_tag` in their upper 8 bits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notices: Counter[str] = Counter()
        self._datapaths: dict[int, Any] = {}
        self._recorder: Recorder | None = None
        self._wake = Event()
        self._perform: dict[type, Callable[[Any], None]] = {
            ApplyEdits: self._apply_edits,
            SendPacket: self._send_packet,
            RequestFlows: self._request_flows,
            Notice: self.notice,
        }
        self._chosen: dict[tuple[type, str | None], list[Callable[[Any], None]]] = {}
        self._sleep_until = 0.0
        self._woken_pending = False

    def start(self) -> Any:
        """Start the event loop and the sleeper beside it."""
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        gc.freeze()
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
            handlers = self._chosen[question] = list(super().get_handlers(ev, state))
        return handlers

    def stop(self) -> None:
        """End the sleeper, then the event loop."""
        self.is_active = False
        self._wake.set()
        super().stop()

    def ticked(self) -> None:
        """Look after files; called every `TICK_S` on the app's own loop, where the app says what to do."""

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
        self.perform(self.core.handle(event, now))
        deadline = self.core.next_deadline()
        if deadline is not None and deadline < self._sleep_until:
            self._sleep_until = deadline
            self._wake.set()

    def perform(self, effects: Iterable[Any]) -> None:
        """Carry out effects in order."""
        perform = self._perform
        for effect in effects:
            perform[type(effect)](effect)

    def ask(self, answer: Callable[[], Any], timeout_s: float = 5.0) -> Any:
        """Run `answer` on the app's own loop from another thread and return what it returns."""
        question = Asked(answer)
        self.send_event(self.name, question)
        reply, error = question.replies.get(timeout=timeout_s)
        if error is not None:
            raise error
        return reply

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

    def _sleep(self) -> None:
        while self.is_active:
            now = time.monotonic()
            deadline = None if self._woken_pending else self.core.next_deadline()
            self._sleep_until = now + LONGEST_SLEEP_S if deadline is None else min(deadline, now + LONGEST_SLEEP_S)
            if self._sleep_until > now:
                self._wake.wait(self._sleep_until - now)
                self._wake.clear()
            if deadline is not None and time.monotonic() >= deadline:
                self._woken_pending = True
                self.send_event(self.name, Woken())

    def _tick(self) -> None:
        while self.is_active:
            hub.sleep(TICK_S)
            self.send_event(self.name, Ticked())

    @set_ev_cls(Ticked)
    def _ticked(self, _event: Any) -> None:
        self.ticked()

    @set_ev_cls(Woken)
    def _woken(self, _event: Any) -> None:
        self._woken_pending = False
        self.feed(DeadlineReached())
        self._wake.set()

    @set_ev_cls(Asked)
    def _asked(self, event: Any) -> None:
        try:
            event.replies.put((event.answer(), None))
        except Exception as error:  # it is the asker's, on whose thread it is raised
            event.replies.put((None, error))

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state_changed(self, event: Any) -> None:
        datapath: Any = event.datapath
        if event.state == MAIN_DISPATCHER:
            self._datapaths[datapath.id] = datapath
            self.feed(decode.switch_connected(datapath))
            return
        dpid: int = datapath.id
        if self._datapaths.get(dpid) is datapath:
            del self._datapaths[dpid]
            self.feed(SwitchDisconnected(dpid))

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


class FabricApp(App):
    """An app whose core follows the fabric that discovery finds."""

    @set_ev_cls(TopologyChanged)
    def _topology_changed(self, event: Any) -> None:
        for change in event.changes:
            self.feed(change)


def environment_path(name: str) -> str | None:
    """Return the path in an environment variable, None where it is unset or empty."""
    return os.environ.get(name) or None


__all__ = ["TICK_S", "App", "Core", "FabricApp", "environment_path"]
