"""Hosts in VLANs, registered for another or not, and behind link aggregation groups, in any order of events.

Nobody gets a packet of another domain, or twice, and what is quiet is right.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from controller.config.policy import LinkAggregation
from controller.config.registrations import Registration, Registrations
from controller.config.settings import Multicast, Querier
from controller.config.terms import SwitchPort, parse_prefix
from controller.config.vlans import PortVlans
from controller.kernel.domains import in_domain
from controller.multicast.events import PolicyLoaded
from controller.wire.packets import RecordType
from topology.events import HostGone, PortRole, PortRoleChanged

from .conftest import GRAPHS, GROUP, OPEN, World
from .vlan_world import VlanWorld, vlans_of

KINDS = (
    PortVlans(0, frozenset()),
    PortVlans(10, frozenset()),
    PortVlans(20, frozenset()),
    PortVlans(None, frozenset((10, 20))),
    PortVlans(10, frozenset((20,))),
)
BONDED = "h1"
SOURCE = 20
HOSTS = st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5])
"""By number; the first is the one with several legs."""
DOMAINS = st.sampled_from([10, 10, 10, 0, 20])
LEG_PORT = 10


class EdgeWorld(VlanWorld):
    """Three ToRs with two hosts each, whose ports are of `kinds`; `h1` has more legs, at ports 10 of `leg_dpids`.

    A leg that is down gets nothing and says nothing. `registered` are the domains that get the group from `SOURCE`.
    """

    def __init__(self, graph: str, kinds, leg_dpids, seed: int, registered=frozenset()) -> None:
        plain = World(GRAPHS[graph](), start=False)
        names = list(plain.hosts)
        first = plain.hosts[BONDED].place
        extra = [(dpid, LEG_PORT + number) for number, dpid in enumerate(leg_dpids)]
        self.legs = (first, *extra)
        self.down_legs = set()
        self.port_vlans = {plain.hosts[name].place: kind for name, kind in zip(names, kinds, strict=True)}
        self.port_vlans |= dict.fromkeys(extra, self.port_vlans[first])
        vlans = vlans_of({place: kind for place, kind in self.port_vlans.items() if kind != KINDS[0]})
        bond = LinkAggregation("bond", "static", tuple(SwitchPort(*leg) for leg in self.legs))
        lines = (Registration(SOURCE, (parse_prefix("239.1.2.0/24"),), registered),) if registered else ()
        multicast = Multicast(fast_leave=True, querier=Querier(enabled=False), seed=seed)
        policy = replace(
            OPEN,
            vlans=vlans,
            registrations=Registrations(lines),
            link_aggregations=(bond,) if extra else (),
            multicast=multicast,
        )
        World.__init__(self, GRAPHS[graph](), policy, seed=seed, start=False)
        for dpid, port_no in extra:
            self.switches[dpid].ports.add(port_no)
        for switch in self.switches.values():
            self.lay_vlans(switch)
        self.connect_all()
        for leg in extra:
            self.feed(PortRoleChanged(*leg, PortRole.EDGE))
        self.settle()

    def at(self):
        return super().at() | {leg: None if leg in self.down_legs else BONDED for leg in self.legs}

    def utter(self, place, frame):
        assert place not in self.down_legs
        return super().utter(place, frame)

    def inject_by(self, leg, action):
        """Have the bonded host do something by a leg."""
        host = self.hosts[BONDED]
        self.hosts[BONDED] = host._replace(dpid=leg[0], port_no=leg[1])
        try:
            return action()
        finally:
            self.hosts[BONDED] = host

    def up_legs(self):
        return [leg for leg in self.legs if leg not in self.down_legs]

    def reconnect(self, dpid):
        self.lay_vlans(self.switches[dpid])
        super().reconnect(dpid)


class EdgeEvents(RuleBasedStateMachine):
    """`members` holds which host has joined in which domain, `senders` who sends there."""

    @initialize(
        graph=st.sampled_from(["leaf-spine", "bundles"]),
        kinds=st.lists(st.sampled_from(KINDS), min_size=6, max_size=6),
        leg_dpids=st.sampled_from([(), (1,), (2,), (2, 3)]),
        seed=st.integers(0, 1000),
        registered=st.sampled_from([frozenset(), frozenset({10}), frozenset({0, 10})]),
    )
    def start(self, graph, kinds, leg_dpids, seed, registered):
        self.world = EdgeWorld(graph, kinds, leg_dpids, seed, registered)
        self.registered = registered
        self.names = list(self.world.hosts)
        self.members = set()
        self.senders = set()
        self.gone = set()
        self.flapped = False

    def pick(self, number, vlan_id):
        """Return a host, a domain of its port, that which is asked for if it is one, and the ports it speaks by."""
        name = self.names[number]
        domains = self.domains(name)
        places = self.world.up_legs() if name == BONDED else [self.world.hosts[name].place]
        return name, vlan_id if vlan_id in domains else min(domains), places

    def by(self, name, place, action):
        return self.world.inject_by(place, action) if name == BONDED else action()

    @rule(number=HOSTS, wanted=DOMAINS, leg=HOSTS)
    def join(self, number, wanted, leg):
        name, vlan_id, places = self.pick(number, wanted)
        if places:
            self.by(name, places[leg % len(places)], lambda: self.world.joins(name, GROUP, vlan_id))
            self.members.add((name, vlan_id))

    @rule(number=HOSTS, wanted=DOMAINS, leg=HOSTS)
    def leave(self, number, wanted, leg):
        name, vlan_id, places = self.pick(number, wanted)
        if places and (name, vlan_id) in self.members:
            leaves = RecordType.CHANGE_TO_INCLUDE
            self.by(name, places[leg % len(places)], lambda: self.world.tell(name, leaves, GROUP, vlan_id))
            self.members.discard((name, vlan_id))

    @rule(number=HOSTS, wanted=DOMAINS)
    def start_sending(self, number, wanted):
        name, vlan_id, places = self.pick(number, wanted)
        if places:
            self.senders.add((name, vlan_id))
            self.check_copies(name, vlan_id)

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
    def lose_spine(self, data):
        tors = {dpid for dpid, _ in self.world.port_vlans}
        dpid = data.draw(st.sampled_from(sorted(self.world.switches.keys() - tors)))
        if not self.gone:
            self.gone.add(dpid)
            self.world.disconnect(dpid)

    @precondition(lambda self: self.gone)
    @rule()
    def regain_spine(self):
        self.world.reconnect(self.gone.pop())

    @precondition(lambda self: len(self.world.legs) > 1)
    @rule(number=HOSTS)
    def lose_leg(self, number):
        world = self.world
        leg = world.legs[number % len(world.legs)]
        if leg in world.down_legs:
            return
        world.down_legs.add(leg)
        world.feed(PortRoleChanged(*leg, PortRole.DOWN))
        if not world.up_legs():
            name = in_domain(world.hosts[BONDED].mac, world.domain(BONDED))
            world.feed(HostGone(name, *leg))
            self.members -= {member for member in self.members if member[0] == BONDED}

    @precondition(lambda self: self.world.down_legs)
    @rule(number=HOSTS)
    def regain_leg(self, number):
        world = self.world
        leg = sorted(world.down_legs)[number % len(world.down_legs)]
        self.flapped = self.flapped or any(world.queues.values())
        is_first = not world.up_legs()
        world.down_legs.discard(leg)
        world.feed(PortRoleChanged(*leg, PortRole.EDGE))
        if is_first:
            world.learn(world.hosts[BONDED]._replace(dpid=leg[0], port_no=leg[1]))

    # Time

    @rule(count=st.integers(1, 30))
    def some_edits(self, count):
        for _, _step in zip(range(count), self.world.steps(), strict=False):
            self.check_all_copies()

    @rule()
    def all_edits(self):
        self.world.settle()
        self.flapped = False
        self.check_all_copies(exactly=True)
        self.world.settle()
        first = len(self.world.packet_outs)
        self.check_all_copies(exactly=True)
        assert self.world.packet_outs[first:] == [], "switches forward what senders send that are known"

    # What must hold

    def check_copies(self, name, vlan_id, exactly=False):
        number = self.names.index(name)
        for place in self.pick(number, vlan_id)[2]:
            got = self.by(name, place, lambda: self.world.sends(name, GROUP, vlan_id))
            assert all(count <= self.most(to) for (to, _), count in got.items()), (name, vlan_id, place, got)
            expected = {
                self.copy(member)
                for member in self.members
                if self.hears(member, vlan_id) and (member[0] != name or self.comes_back(member, vlan_id))
            }
            assert set(got) <= expected | self.lately(vlan_id), (name, vlan_id, place, got, expected)
            if exactly and self.is_whole():
                assert set(got) == expected, (name, vlan_id, place, got, expected)

    def most(self, name):
        """Return how many copies a host may get: by a leg that comes back sooner than it is replaced, another one."""
        return len(self.world.legs) if name == BONDED and self.flapped else 1

    def lately(self, vlan_id):
        """Return what whoever was a member may get until switches have done as told."""
        if not any(self.world.queues.values()):
            return set()
        members = ((name, domain) for name in self.names for domain in self.domains(name))
        return {self.copy(member) for member in members if self.hears(member, vlan_id)}

    def hears(self, member, vlan_id):
        """Tell whether a member is to get what is sent in a domain: in its own, or in the source of its own."""
        carrier = SOURCE if member[1] in self.registered else member[1]
        return carrier == vlan_id

    def comes_back(self, member, vlan_id):
        """Tell whether a member is to get what comes from its own port: in another domain, and from one cable."""
        return member[1] != vlan_id and (member[0] != BONDED or len(self.world.legs) == 1)

    def domains(self, name):
        return self.world.port_vlans[self.world.hosts[name].place].vlans()

    def copy(self, member):
        """Return a copy of a packet of a domain, as a host gets it: with the tag of its port, or without."""
        name, vlan_id = member
        untagged = self.world.port_vlans[self.world.hosts[name].place].untagged
        return name, () if vlan_id == untagged else (vlan_id,)

    def is_whole(self):
        """Tell whether all ToRs reach each other."""
        links = [pair for pair in self.world.links if pair not in self.world.down_links and not pair & self.gone]
        tors = {dpid for dpid, _ in self.world.port_vlans}
        found, queue = {1}, [1]
        while queue:
            here = queue.pop()
            for pair in links:
                if here in pair:
                    near = {dpid for dpid in pair if dpid > 0} - found
                    found |= near
                    queue += near
        return tors <= found

    def check_all_copies(self, exactly=False):
        for name, vlan_id in sorted(self.senders):
            self.check_copies(name, vlan_id, exactly)

    def teardown(self):
        if hasattr(self, "world"):
            while self.gone:
                self.regain_spine()
            for pair in sorted(sorted(pair) for pair in self.world.down_links):
                self.world.mend(*pair)
            self.all_edits()
            assert self.world.refused_edits() == []


def test_a_leg_that_comes_back_before_it_is_replaced_gets_no_tag():
    access, other = KINDS[1], KINDS[0]
    world = EdgeWorld("leaf-spine", [access, other, access, other, other, other], (2, 3), 2)
    world.joins(BONDED)
    world.sends("h3")
    world.settle()
    (leg,) = (
        leg for leg in world.legs if leg[1] in world.core.plane.groups[in_domain(GROUP, 10)].interests.get(leg[0], {})
    )
    for role in (PortRole.DOWN, PortRole.EDGE):
        world.feed(PortRoleChanged(*leg, role))
    for _ in world.steps():
        assert {tags for _, tags in world.sends("h3")} <= {()}
    assert world.sends("h3") == {(BONDED, ()): 1}


@pytest.mark.parametrize("leg_dpids", [(1,), (2,), (2, 3)])
def test_a_registered_receiver_gets_nothing_of_what_is_sent_behind_its_own_legs(leg_dpids):
    voice, trunk, other = KINDS[4], KINDS[3], KINDS[0]
    world = EdgeWorld("leaf-spine", [voice, other, trunk, other, other, trunk], leg_dpids, 0, frozenset({10}))
    for name in (BONDED, "h3"):
        world.joins(name, GROUP, 10)
    world.settle()
    for leg in (*world.legs, *world.legs):
        assert world.inject_by(leg, lambda: world.sends(BONDED, GROUP, SOURCE)) == {("h3", (10,)): 1}
        world.settle()
        assert world.sends("h6", GROUP, SOURCE) == {("h3", (10,)): 1, (BONDED, ()): 1}


@pytest.mark.parametrize("leg_dpids", [(1,), (2,), (2, 3)])
def test_a_registration_that_comes_and_goes_leaves_out_what_is_sent_behind_the_same_legs(leg_dpids):
    voice, trunk, other = KINDS[4], KINDS[3], KINDS[0]
    world = EdgeWorld("leaf-spine", [voice, other, trunk, other, other, trunk], leg_dpids, 0)
    world.joins(BONDED, GROUP, 10)
    world.sends(BONDED, GROUP, SOURCE)
    world.settle()
    line = Registration(SOURCE, (parse_prefix("239.1.2.0/24"),), frozenset({10}))
    for lines, vlan_id in (((line,), SOURCE), ((), 10), ((line,), SOURCE)):
        world.feed(PolicyLoaded(replace(world.core.policy, registrations=Registrations(lines))))
        world.settle()
        for leg in world.legs:
            assert world.inject_by(leg, lambda vlan_id=vlan_id: world.sends(BONDED, GROUP, vlan_id)) == {}
            world.settle()
        assert world.sends("h6", GROUP, vlan_id) == {(BONDED, ()): 1}
        world.settle()


def test_events_at_the_edge_in_any_order():
    machine = EdgeEvents.TestCase
    machine.settings = settings(
        max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    machine().runTest()
