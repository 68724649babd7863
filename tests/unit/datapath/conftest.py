"""A world of apps that share switches."""

from __future__ import annotations

from collections import deque

from controller.config.edit_settings import Edits
from controller.datapath.core import DatapathCore, OwnerTold
from controller.datapath.lanes import Urgency
from controller.effects import ApplyEdits, EntriesLost, Notice, Put, RequestFlows
from controller.events import DeadlineReached, EditFailed, SwitchConnected, SwitchDisconnected
from controller.rules.fake import FakeSwitch
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey, Match, Output

TAGS = (0x5601, 0x5602, 0x5603)
SHARED_TAG = 0xA0


def entry(tag, number, port=1):
    return FlowEntry(FlowKey(0, tag & 0xF, Match(in_port=number)), (Output(port),), tag << 48 | number)


class SharedWorld:
    """Three installers over one datapath core, and switches whose messages wait until somebody delivers them."""

    def __init__(self, switches=1, capacity=1000, window=None, gathers=False):
        self.core = DatapathCore(SHARED_TAG, gathers)
        self.apps = {tag: Installer(tag, datapath=self.core) for tag in TAGS}
        if window is not None:
            self.core.use(Edits(window="fixed", at_once=window))
        self.switches = {
            dpid: FakeSwitch(dpid, 1 if dpid == 2 else 4, capacity=capacity) for dpid in range(1, switches + 1)
        }
        self.connected = set()
        self.to_switch = {dpid: deque() for dpid in self.switches}
        self.to_controller = {dpid: deque() for dpid in self.switches}
        self.told = []
        self.notices = []
        self.lost = []
        self.now = 100.0

    def perform(self, effects, app=None):
        for effect in effects:
            if isinstance(effect, OwnerTold):
                (tag,) = (tag for tag, app in self.apps.items() if app.xid_tag == effect.xid_tag)
                self.told.append((tag, effect.dpid, effect.was_read))
                self.perform(effect.effects, tag)
            elif isinstance(effect, EntriesLost):
                self.lost.append((app, effect.dpid))
            elif isinstance(effect, Notice):
                self.notices.append((app, effect.kind))
            else:
                assert effect.dpid in self.connected
                self.to_switch[effect.dpid].append(effect)
                batches = [sent for sent in self.to_switch[effect.dpid] if isinstance(sent, ApplyEdits)]
                assert len(batches) <= 1, "two batches under way at one switch"

    def change(self, tag, *edits, dpid=1, urgency=Urgency.PROMPT):
        self.perform(self.apps[tag].change([[(dpid, edit) for edit in edits]], self.now, 0.0, urgency), tag)

    def connect(self, dpid=1, tags=TAGS):
        self.connected.add(dpid)
        for tag in tags:
            event = SwitchConnected(dpid, self.switches[dpid].ofp_version, ())
            self.perform(self.apps[tag].handle(event, self.now), tag)

    def disconnect(self, dpid=1, tags=TAGS):
        self.connected.discard(dpid)
        self.to_switch[dpid].clear()
        self.to_controller[dpid].clear()
        for tag in tags:
            self.perform(self.apps[tag].handle(SwitchDisconnected(dpid), self.now), tag)

    def step(self, dpid=1):
        """Let a switch carry out what it was sent first, and return that."""
        effect = self.to_switch[dpid].popleft()
        switch = self.switches[dpid]
        if isinstance(effect, RequestFlows):
            self.to_controller[dpid].extend(switch.respond(effect, self.now))
            return effect
        xid = effect.first_xid - 1
        for xid, edit in enumerate(effect.edits, effect.first_xid):
            error = switch.apply(edit, self.now)
            if error is not None:
                self.to_controller[dpid].append(EditFailed(dpid, xid, *error))
        self.to_controller[dpid].append(switch.respond(effect._replace(edits=(), first_xid=xid + 1))[0])
        return effect

    def answer(self, dpid=1):
        """Take the first answer of a switch."""
        event = self.to_controller[dpid].popleft()
        if event.xid >> 24 == SHARED_TAG:
            self.perform(self.core.handle(event, self.now))
        else:
            tag = next(tag for tag in TAGS if self.apps[tag].owns_xid(event.xid))
            self.perform(self.apps[tag].handle(event, self.now), tag)

    def deliver(self):
        """Deliver everything; return what was sent."""
        sent = []
        while any(self.to_switch.values()) or any(self.to_controller.values()):
            for dpid in self.switches:
                while self.to_switch[dpid]:
                    sent.append(self.step(dpid))
                while self.to_controller[dpid]:
                    self.answer(dpid)
        return sent

    def deadlines(self):
        holders = [self.core, *self.apps.values()]
        return min((due for holder in holders if (due := holder.next_deadline()) is not None), default=None)

    def pass_time(self, seconds):
        end = self.now + seconds
        while (due := self.deadlines()) is not None and due <= end:
            self.now = max(self.now, due)
            self.perform(self.core.handle(DeadlineReached(), self.now))
            for tag, app in self.apps.items():
                self.perform(app.handle(DeadlineReached(), self.now), tag)
        self.now = end

    def settle(self):
        for _ in range(200):
            self.deliver()
            due = self.deadlines()
            if due is None:
                return
            self.pass_time(max(due - self.now, 0.0))
        raise AssertionError("nothing comes to rest")

    def assert_right(self, dpid=1):
        held = self.switches[dpid].rules
        for tag, app in self.apps.items():
            own = {key: rule for key, rule in held.items() if rule.cookie >> 48 == tag}
            assert dict(app.desired(dpid)) == own == dict(app.installed(dpid))
            assert app.in_sync(dpid)


def numbered(world, tag, count, **options):
    world.change(tag, *(Put(entry(tag, number)) for number in range(1, count + 1)), **options)
