"""The core against a naive model that steps through wall time, source by source, over a small universe.

The model keeps for each host a plain mapping from what it is sent (a named source, or `REST` for all unnamed ones)
to the time when that ends; in EXCLUDE mode a source without an entry follows `REST`, unless it is in `out`.
"""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from controller.membership.core import MembershipCore
from controller.membership.events import InterestChanged, SendQuery
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.wire.packets import GroupRecord, Query, RecordType, Report

GROUP = b"\xef\x01\x01\x01"
SOURCES = [bytes((10, 1, 0, n)) for n in range(1, 4)]
REST = b"\x0a\x01\x00\xff"
EVERYTHING = [*SOURCES, REST]
HOSTS = [bytes((2, 0, 0, 0, 0, n)) for n in range(3)]
PORTS = [(1, 1), (1, 2)]
GMI, LMQT, STEP = 260.0, 2.0, 0.5
LIMITS = MembershipLimits(reports_per_second_per_port=1e6, report_burst=1e6)
T = RecordType


class NaiveHost:
    def __init__(self):
        self.open = False
        self.ends: dict[bytes, float] = {}
        self.out: set[bytes] = set()
        self.leaving = False

    def sent(self, what):
        if what in self.ends:
            return self.ends[what]
        if self.open and what not in self.out:
            return self.ends[REST]
        return -inf

    def apply(self, kind, named, now):
        """Return what the record gives up, to be asked for."""
        full = now + GMI
        if kind == T.BLOCK_OLD_SOURCES:
            asked = {s for s in named if self.sent(s) > -inf}
            for s in asked:
                self.ends.setdefault(s, self.sent(s))
            return asked
        if kind in (T.MODE_IS_EXCLUDE, T.CHANGE_TO_EXCLUDE):
            changing = kind == T.CHANGE_TO_EXCLUDE
            kept, out = {}, set()
            for s in named:
                if self.sent(s) == -inf:
                    out.add(s)
                elif s in self.ends or changing:
                    kept[s] = self.sent(s)
                else:
                    kept[s] = full
            self.open, self.leaving, self.out, self.ends = True, False, out, {**kept, REST: full}
            return set(kept) if changing else set()
        asked = set()
        if kind == T.CHANGE_TO_INCLUDE:
            asked = {s for s in self.ends if s not in named}
        for s in named:
            self.ends[s] = full
            self.out.discard(s)
        return asked

    def drop(self, asked):
        for s in asked:
            self.ends.pop(s, None)
            if self.open:
                self.out.add(s)
        if REST in asked:
            self.open, self.leaving, self.out = False, False, set()

    def tick(self, now):
        for s in [s for s, at in self.ends.items() if at <= now]:
            del self.ends[s]
            if self.open:
                self.out.add(s)
        if self.open and REST not in self.ends:
            self.open, self.leaving, self.out = False, False, set()


class NaivePort:
    def __init__(self, admits):
        self.hosts = {mac: NaiveHost() for mac in HOSTS}
        self.admits = admits

    def admitted(self, mac, what):
        host = self.hosts[mac]
        return self.admits(mac, None if host.open else what)

    def firmly_sent(self, mac, what, limit):
        host = self.hosts[mac]
        if not self.admitted(mac, what):
            return False
        at = host.ends.get(what, -inf)
        if host.open and not host.leaving and host.ends[REST] > limit:
            at = host.sent(what)
        return at > limit and not (what == REST and host.leaving)

    def report(self, mac, kind, named, now, asks, fast):
        host = self.hosts[mac]
        limit = now + LMQT
        asked = host.apply(kind, named, now)
        refused = {s for s in asked if not self.admitted(mac, s)}
        host.drop(refused)
        asked -= refused
        if not asked:
            return
        if fast:
            host.drop(asked)
            return
        others = [m for m in HOSTS if m != mac]

        def covered(what):
            return any(self.firmly_sent(m, what, limit) for m in others)

        if REST in asked:
            given_up = {s for s in EVERYTHING if s in asked or (s not in host.ends and s not in host.out)}
            if all(covered(s) for s in given_up):
                host.drop(asked)
                return
            host.leaving = True
        else:
            made_good = {s for s in asked if covered(s)}
            host.drop(made_good)
            asked -= made_good
        if asks:
            for s in asked:
                host.ends[s] = min(host.ends[s], limit)

    def lower(self, sources, limit):
        for host in self.hosts.values():
            for s in sources or [REST]:
                if s in host.ends:
                    host.ends[s] = min(host.ends[s], limit)

    def sent(self):
        return {
            what
            for what in EVERYTHING
            for mac, host in self.hosts.items()
            if host.sent(what) > -inf and self.admitted(mac, what)
        }


class AgainstTheModel(RuleBasedStateMachine):
    @initialize(fast=st.booleans(), lazy=st.booleans(), refused=st.sets(st.sampled_from([0, 1, 2])))
    def start(self, fast, lazy, refused):
        self.fast, self.lazy = fast, lazy
        self.now = 0.0
        self.other = -inf
        self.banned: set[tuple[bytes, bytes | None]] = {(HOSTS[n], None) for n in refused if n}
        self.core = MembershipCore(MembershipSettings(fast_leave=fast, accept_queriers=True), LIMITS, self.policy())
        self.ports = {key: NaivePort(lambda mac, what: (mac, what) not in self.banned) for key in PORTS}
        self.told: dict[tuple[int, int], object] = {}
        for key in PORTS:
            self.core.port_added(*key, 0.0)

    def policy(self):
        return lambda host, group, source: (host.mac, source) not in self.banned

    def take(self, effects):
        for effect in effects:
            if isinstance(effect, InterestChanged):
                key = (effect.dpid, effect.port_no)
                assert self.told.get(key) != effect.interest
                self.told[key] = effect.interest
            elif isinstance(effect, SendQuery):
                assert self.other <= self.now or effect.family == 6
        return effects

    @rule(
        port=st.sampled_from(PORTS),
        mac=st.sampled_from(HOSTS),
        kind=st.sampled_from(list(T)),
        named=st.sets(st.sampled_from(SOURCES)),
    )
    def report(self, port, mac, kind, named):
        report = Report(4, 3, mac, b"\x0a\x00\x00" + mac[5:], (GroupRecord(kind, GROUP, tuple(sorted(named))),))
        self.take(self.core.report_received(*port, report, self.now))
        self.ports[port].report(mac, kind, named, self.now, self.other <= self.now, self.fast)
        self.compare()
        again = self.core.report_received(*port, report, self.now)
        assert again == []

    @rule(port=st.sampled_from(PORTS), mac=st.sampled_from(HOSTS))
    def remove_host(self, port, mac):
        self.take(self.core.host_removed(mac, *port, self.now))
        self.ports[port].hosts[mac] = NaiveHost()

    @rule(
        port=st.sampled_from(PORTS),
        named=st.none() | st.sets(st.sampled_from(SOURCES)),
        response=st.sampled_from([0.5, 1.0]),
    )
    def other_querier(self, port, named, response):
        group = None if named is None else GROUP
        sources = tuple(sorted(named or ()))
        query = Query(4, 3, HOSTS[0], b"\x0a\x00\x00\x63", group, sources, response, False, 2, 125.0)
        self.other = self.now + 255.0
        self.take(self.core.query_received(*port, query, self.now))
        if group is not None:
            for naive in self.ports.values():
                naive.lower(sources, self.now + 2 * response)

    @rule(mac=st.sampled_from(HOSTS), source=st.none() | st.sampled_from(SOURCES))
    def change_policy(self, mac, source):
        self.take(self.core.on_deadline(self.now))
        self.banned ^= {(mac, source)}
        for effects in self.core.reconsider(self.policy()):
            self.take(effects)

    @rule(steps=st.one_of(st.integers(1, 6), st.sampled_from([100, 500, 600])))
    def pass_time(self, steps):
        end = self.now + steps * STEP
        while self.now < end:
            self.now += STEP
            for naive in self.ports.values():
                for host in naive.hosts.values():
                    host.tick(self.now)
            if not self.lazy:
                self.take(self.core.on_deadline(self.now))
                self.compare()
        self.take(self.core.on_deadline(end))

    @rule()
    def restart(self):
        records = self.core.snapshot(self.now)
        self.core = MembershipCore(
            MembershipSettings(fast_leave=self.fast, accept_queriers=True), LIMITS, self.policy()
        )
        self.told = {}
        self.take(self.core.restore(records, self.now))
        for key in PORTS:
            self.take(self.core.port_added(*key, self.now))

    @invariant()
    def compare(self):
        if not hasattr(self, "core"):
            return
        interests = {(i.dpid, i.port_no): i.interest for i in self.core.interests()}
        assert interests == {key: interest for key, interest in self.told.items() if interest is not None}
        for key, naive in self.ports.items():
            interest = interests.get(key)
            assert {what for what in EVERYTHING if interest is not None and interest.wants(what)} == naive.sent()


TestAgainstTheModel = AgainstTheModel.TestCase
TestAgainstTheModel.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)


class SilentHost:
    """A host of an older version: it answers a query after a delay unless another's report is heard before."""

    def __init__(self, version):
        self.version = version
        self.joined = False
        self.answer_at = inf
        self.spoke_last = False


@pytest.mark.parametrize("version", [1, 2])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["join", "leave", "vanish"]), st.integers(1, 400)), max_size=25
    ),
    delays=st.lists(st.floats(0.01, 0.99), min_size=4, max_size=4, unique=True),
)
def test_hosts_that_suppress_reports_never_cut_each_other_off(version, moves, delays):
    core = MembershipCore(MembershipSettings(), LIMITS, lambda host, group, source: True)
    hosts = [SilentHost(version) for _ in range(4)]
    now = 0.0
    wanted = False

    def hear(effects):
        nonlocal wanted
        for effect in effects:
            if isinstance(effect, InterestChanged):
                wanted = effect.interest is not None
            elif isinstance(effect, SendQuery) and effect.family == 4:
                for host, delay in zip(hosts, delays, strict=True):
                    if host.joined:
                        host.answer_at = min(host.answer_at, now + delay * effect.max_response_s)

    def send(n, kind):
        report = Report(
            4, hosts[n].version, bytes((2, 0, 0, 0, 1, n)), bytes((10, 0, 1, n)), (GroupRecord(kind, GROUP),)
        )
        hear(core.report_received(1, 1, report, now))

    def speak(n):
        for host in hosts:
            host.answer_at, host.spoke_last = inf, False
        hosts[n].spoke_last = True
        send(n, T.MODE_IS_EXCLUDE)

    def live_until(end):
        nonlocal now
        while True:
            deadline = core.next_deadline()
            first = min(range(4), key=lambda n: hosts[n].answer_at)
            at = min(inf if deadline is None else deadline, hosts[first].answer_at)
            if at > end:
                break
            now = at
            if hosts[first].answer_at <= now:
                speak(first)
            hear(core.on_deadline(now))
            assert wanted or not any(host.joined for host in hosts)
        now = end

    hear(core.port_added(1, 1, now))
    for n, move, pause in moves:
        host = hosts[n]
        if move == "join" and not host.joined:
            host.joined = True
            speak(n)
        elif host.joined and move != "join":
            host.joined, host.answer_at = False, inf
            if move == "leave" and version == 2:
                send(n, T.CHANGE_TO_INCLUDE)
        live_until(now + pause / 4)
    for host in hosts:
        host.joined, host.answer_at = False, inf
    live_until(now + 261)
    assert not wanted
    assert list(core.members()) == []
