from __future__ import annotations

from collections import deque

import pytest

from controller.effects import ApplyEdits, EntriesLost, Notice, RequestFlows, RequestResources, TableSurveyed
from controller.events import DeadlineReached, EditFailed, SwitchConnected, SwitchDisconnected
from controller.rules.fake import FakeSwitch
from controller.rules.installer import Installer
from controller.rules.model import is_own

TAG = 0x5602


class World:
    """An installer and fake switches, with every message on the way until somebody delivers it."""

    def __init__(
        self, *, switches=3, hold_unknown=False, capacity=1000, keeps_resources=False, resource_capacity=1000
    ):
        self.installer = Installer(TAG, 0xA2, hold_unknown=hold_unknown, keeps_resources=keeps_resources)
        self.switches = {
            dpid: FakeSwitch(dpid, 1 if dpid == 1 else 4, capacity=capacity, resource_capacity=resource_capacity)
            for dpid in range(1, switches + 1)
        }
        self.connected = set()
        self.to_switch = {dpid: deque() for dpid in self.switches}
        self.to_controller = {dpid: deque() for dpid in self.switches}
        self.notices = []
        self.lost = []
        self.surveyed = []
        self.sent = []
        self.refuse = {}
        self.now = 100.0
        self.check = lambda: None
        self.in_order = list

    def perform(self, effects):
        for effect in effects:
            if isinstance(effect, Notice):
                self.notices.append(effect)
                continue
            if isinstance(effect, EntriesLost):
                self.lost.append(effect.dpid)
                continue
            if isinstance(effect, TableSurveyed):
                self.surveyed.append(effect.document)
                continue
            self.sent.append(effect)
            assert self.installer.owns_xid(effect.first_xid if isinstance(effect, ApplyEdits) else effect.xid)
            assert effect.dpid in self.connected
            self.to_switch[effect.dpid].append(effect)
            under_way = [e for e in self.to_switch[effect.dpid] if isinstance(e, ApplyEdits)]
            assert len(under_way) <= 1, "two batches under way at one switch"

    def change(self, *stages, drain_s=0.0, drains=(), is_patient=False):
        self.perform(self.installer.change(stages, self.now, drain_s, drains=drains, is_patient=is_patient))

    def connect(self, dpid):
        self.connected.add(dpid)
        version = self.switches[dpid].ofp_version
        self.perform(self.installer.handle(SwitchConnected(dpid, version, ()), self.now))

    def disconnect(self, dpid):
        self.connected.discard(dpid)
        self.to_switch[dpid].clear()
        self.to_controller[dpid].clear()
        self.perform(self.installer.handle(SwitchDisconnected(dpid), self.now))

    def step_switch(self, dpid):
        """Let a switch carry out one message, edit by edit."""
        effect = self.to_switch[dpid].popleft()
        switch = self.switches[dpid]
        if isinstance(effect, RequestFlows | RequestResources):
            self.to_controller[dpid].extend(switch.respond(effect, self.now))
            return
        numbered = list(enumerate(effect.edits, effect.first_xid))
        for xid, edit in self.in_order(numbered):
            error = self.refuse.get(dpid) or switch.apply(edit, self.now)
            if error is not None:
                self.to_controller[dpid].append(EditFailed(dpid, xid, *error))
            self.check()
        last = effect.first_xid + len(effect.edits)
        self.to_controller[dpid].append(switch.respond(effect._replace(edits=(), first_xid=last))[0])

    def step_controller(self, dpid):
        self.perform(self.installer.handle(self.to_controller[dpid].popleft(), self.now))

    def deliver(self, *dpids):
        """Deliver what is on the way to and from these switches, or all, until nothing is."""
        dpids = dpids or tuple(self.switches)
        while any(self.to_switch[d] or self.to_controller[d] for d in dpids):
            for dpid in dpids:
                while self.to_switch[dpid]:
                    self.step_switch(dpid)
                while self.to_controller[dpid]:
                    self.step_controller(dpid)

    def pass_time(self, seconds):
        """Let time pass, with every deadline in it."""
        end = self.now + seconds
        while True:
            due = self.installer.next_deadline()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            self.perform(self.installer.handle(DeadlineReached(), self.now))
            later = self.installer.next_deadline()
            assert later is None or later > self.now, "a deadline that does not move"
        self.now = end

    def settle(self, limit=200):
        """Deliver everything and let time pass until the installer waits for nothing."""
        for _ in range(limit):
            self.deliver()
            due = self.installer.next_deadline()
            if due is None:
                return
            self.pass_time(max(due - self.now, 0.0))
        raise AssertionError("the installer never comes to rest")

    def assert_in_sync(self):
        for dpid, switch in self.switches.items():
            groups = {key: held for key, held in switch.resources.items() if is_own(key, TAG)}
            assert groups == self.installer.resources_desired(dpid) == self.installer.resources_installed(dpid)
            ours = {key: rule for key, rule in switch.rules.items() if rule.cookie >> 48 == TAG}
            assert ours == dict(self.installer.desired(dpid)), f"switch {dpid}"
            assert dict(self.installer.installed(dpid)) == ours
            assert self.installer.in_sync(dpid)
            assert self.installer.pending(dpid) == 0
        assert self.installer.plan_count == 0


@pytest.fixture(scope="session")
def make_world():
    """Makes an installer with fake switches; all connected and read, unless `connect` is false."""

    def make(*, connect=True, **options):
        world = World(**options)
        if connect:
            for dpid in world.switches:
                world.connect(dpid)
            world.deliver()
            world.sent.clear()
        return world

    return make
