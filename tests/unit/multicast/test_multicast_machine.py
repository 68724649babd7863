"""Anything may happen, in any order, while switches are slow: packets never circle, never arrive twice, and what is
quiet is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.config.policy import Policy
from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.settings import Limits, Multicast, Querier
from controller.config.terms import parse_prefix
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import is_link_scope_group, parse_ip
from controller.wire.packets import RecordType

ANY = parse_ip("239.1.1.1")
SSM = parse_ip("232.1.1.1")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True, querier=Querier(enabled=False)),
)
T = RecordType


def aliases(count):
    """Return what gives each group so many trees beside its own."""
    groups = (parse_prefix("239.0.0.0/8"), parse_prefix("232.0.0.0/8"))
    return Aliases(mode="static", static=tuple(StaticTrees(each, count) for each in groups)) if count else Aliases()


HOSTS = st.integers(0, 23)


class Events(RuleBasedStateMachine):
    """Members, senders and failures over one fabric; `wanted` is what each host has asked for last."""

    make_world: Callable[..., Any]

    alias_counts = st.sampled_from([0])

    @initialize(
        graph=st.sampled_from(["fattree", "leaf-spine", "ring", "avalanche24", "tree", "bundles"]),
        version=st.sampled_from([1, 4]),
        seed=st.integers(0, 1000),
        data=st.data(),
    )
    def start(self, graph, version, seed, data):
        self.policy = replace(POLICY, aliases=aliases(data.draw(self.alias_counts)))
        multicast = replace(POLICY.multicast, seed=seed)
        self.world = self.make_world(graph, replace(self.policy, multicast=multicast), version, seed=seed)
        self.names = list(self.world.hosts)
        self.any: dict[str, frozenset[str]] = {}
        self.ssm: dict[str, frozenset[str]] = {}
        self.senders: set[tuple[str, bytes]] = set()
        self.gone: set[int] = set()

    def host(self, number):
        return self.names[number % len(self.names)]

    def lives(self, name):
        return self.world.hosts[name].dpid not in self.gone

    # Hosts

    @rule(number=HOSTS, excluded=st.none() | HOSTS)
    def join(self, number, excluded):
        name = self.host(number)
        if not self.lives(name):
            return
        out = frozenset() if excluded is None else frozenset({self.host(excluded)})
        sources = [self.world.hosts[source].v4 for source in out]
        self.world.record(name, T.CHANGE_TO_EXCLUDE, ANY, *sources)
        self.any[name] = out

    @rule(number=HOSTS)
    def leave(self, number):
        name = self.host(number)
        if self.lives(name) and name in self.any:
            self.world.leave(name, ANY)
            del self.any[name]

    @rule(number=HOSTS, source=HOSTS)
    def join_source(self, number, source):
        name, source = self.host(number), self.host(source)
        if self.lives(name):
            self.world.record(name, T.ALLOW_NEW_SOURCES, SSM, self.world.hosts[source].v4)
            self.ssm[name] = self.ssm.get(name, frozenset()) | {source}

    @rule(number=HOSTS, source=HOSTS)
    def leave_source(self, number, source):
        name, source = self.host(number), self.host(source)
        if self.lives(name) and source in self.ssm.get(name, ()):
            self.world.record(name, T.BLOCK_OLD_SOURCES, SSM, self.world.hosts[source].v4)
            self.ssm[name] -= {source}

    @rule(number=HOSTS, group=st.sampled_from([ANY, SSM]))
    def start_sending(self, number, group):
        name = self.host(number)
        if self.lives(name):
            self.senders.add((name, group))
            self.check_copies(name, group)

    # The fabric

    @rule(data=st.data())
    def cut(self, data):
        links = sorted(sorted(pair) for pair in self.world.links if pair not in self.world.down_links)
        links = [pair for pair in links if not self.gone & set(pair)]
        if links:
            self.world.cut(*data.draw(st.sampled_from(links)))

    @precondition(lambda self: self.world.down_links)
    @rule(data=st.data())
    def mend(self, data):
        pair = data.draw(st.sampled_from(sorted(sorted(pair) for pair in self.world.down_links)))
        if not self.gone & set(pair):
            self.world.mend(*pair)

    @rule(data=st.data())
    def lose_switch(self, data):
        dpid = data.draw(st.sampled_from(sorted(self.world.switches)))
        if dpid not in self.gone and len(self.gone) < 2:
            self.gone.add(dpid)
            self.world.disconnect(dpid)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def regain_switch(self, data):
        dpid = data.draw(st.sampled_from(sorted(self.gone)))
        self.gone.discard(dpid)
        self.world.reconnect(dpid)

    @rule(data=st.data())
    def drain(self, data):
        dpid = data.draw(st.sampled_from(sorted(self.world.switches)))
        drained = self.world.core.switches.drained
        if dpid in drained:
            self.world.do("switch-undrain", dpid=dpid)
        elif dpid not in self.gone and len(drained) < 3:
            self.world.do("switch-drain", dpid=dpid)

    @rule(seed=st.integers(0, 1000))
    def move_trees(self, seed):
        multicast = replace(POLICY.multicast, seed=seed)
        self.policy = replace(self.policy, multicast=multicast)
        self.world.feed(PolicyLoaded(self.policy))

    @rule(data=st.data())
    def give_other_aliases(self, data):
        self.policy = replace(self.policy, aliases=aliases(data.draw(self.alias_counts)))
        self.world.feed(PolicyLoaded(self.policy))

    # Time

    @rule(count=st.integers(1, 30))
    def some_edits(self, count):
        for _, _step in zip(range(count), self.world.steps(), strict=False):
            self.check_all_copies()

    @rule()
    def all_edits(self):
        self.world.settle()
        self.check_all_copies(exactly=True)
        self.world.settle()
        self.check_all_copies(exactly=True)

    # What must hold

    def wants(self, name, sender, group):
        if name == sender or not self.lives(name):
            return False
        if group == ANY:
            return name in self.any and sender not in self.any[name]
        return sender in self.ssm.get(name, ())

    def check_copies(self, sender, group, exactly=False):
        got = self.world.send(sender, group)
        assert all(count == 1 for count in got.values()), (sender, got)
        if exactly:
            part = self.component(self.world.hosts[sender].dpid)
            expected = {
                name for name in self.names if self.wants(name, sender, group) and self.world.hosts[name].dpid in part
            }
            tree = self.world.core.forest.tree(group)
            if tree is None or not tree.detached:
                assert set(got) == expected, (sender, set(got) ^ expected)
            else:
                assert set(got) <= {name for name in self.names if self.wants(name, sender, group)}

    def check_all_copies(self, exactly=False):
        for sender, group in sorted(self.senders):
            if self.lives(sender):
                self.check_copies(sender, group, exactly)

    @invariant()
    def counts_are_those_of_the_tables(self):
        if hasattr(self, "world"):
            core, found = self.world.core, self.world.core.figures.all()
            members = [m for m in core.membership.members() if m.admitted and not is_link_scope_group(m.group)]
            senders = [s for group in core.plane.groups.values() for s in group.senders.values() if s.admitted]
            assert (found.member_count, found.sender_count) == (len(members), len(senders))

    @rule(allow=st.booleans())
    def judge_anew(self, allow):
        self.world.feed(PolicyLoaded(replace(self.policy, default_allow=allow)))
        self.world.feed(PolicyLoaded(self.policy))

    def component(self, dpid):
        links = [pair for pair in self.world.links if pair not in self.world.down_links and not pair & self.gone]
        found, queue = {dpid}, [dpid]
        while queue:
            here = queue.pop()
            for pair in links:
                if here in pair:
                    (there,) = (dpid for dpid in pair - {here} if dpid > 0)
                    if there not in found:
                        found.add(there)
                        queue.append(there)
        return found

    def teardown(self):
        if hasattr(self, "world"):
            for dpid in sorted(self.gone):
                self.gone.discard(dpid)
                self.world.settle()
                self.world.reconnect(dpid)
            self.world.settle()
            for pair in sorted(sorted(pair) for pair in self.world.down_links):
                self.world.mend(*pair)
            self.all_edits()
            assert self.world.refused_edits() == []


class AliasedEvents(Events):
    """The same where groups have several trees, now more and now fewer."""

    alias_counts = st.integers(0, 4)


@pytest.mark.parametrize("events", [Events, AliasedEvents])
def test_events_in_any_order(make_world, events):
    events.make_world = staticmethod(make_world)
    machine = events.TestCase
    machine.settings = settings(
        max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    machine().runTest()
