"""Fabrics that no link joins have nothing in common: queriers, queries, routers, first packets are of one alone."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from controller.config.multicast_settings import Proxy
from controller.config.policy import NamedFabric, Policy
from controller.config.settings import Limits, Multicast, Querier, RouterPorts
from controller.events import PacketReceived
from controller.membership.querier import FAMILIES
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import format_mac
from controller.wire.dpids import format_dpid
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import PimHello, Query, RecordType, Report
from topology.events import HostGone, HostLearnt
from topology.generators.draft import Draft
from topology.graph import NodeKind
from topology.host_names import numbered

from .conftest import World

ROUTED = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True, querier=Querier(accept_others=True), router_ports=RouterPorts(learn=True)),
)
LEFT, RIGHT = ("h1", "h2", "h3", "h4"), ("h5", "h6", "h7", "h8")


def chain():
    """Return four switches in a row with two hosts each."""
    draft = Draft(1e9)
    names = [draft.switch(NodeKind.TOR) for _ in range(4)]
    for name in names:
        draft.hosts(name, 2)
    for name, following in itertools.pairwise(names):
        draft.link(name, following)
    return draft.graph


@pytest.fixture
def world():
    """The chain, cut in the middle: h1 to h4 are in one fabric, h5 to h8 in another."""
    world = World(chain(), ROUTED)
    world.cut(2, 3)
    world.advance(2.0)
    return world


def tell(world, name, frame):
    """Have a host send a frame to the controller; return the hosts whose ports were sent something for it."""
    outs = len(world.packet_outs)
    world.feed(PacketReceived(*world.hosts[name].place, frame))
    places = {place for place, sent in world.packet_outs[outs:] if sent == frame}
    return {host.name for host in world.hosts.values() if host.place in places}


def query(world, name, family=4):
    host = world.hosts[name]
    source = host.v4 if family == 4 else host.v6
    return encode(Query(family, 3 if family == 4 else 2, host.mac, source, None, (), 10.0, False, 2, 125.0))


def asked(world, seconds, family=4):
    """Return the hosts that the controller sends a query of its own to within some time."""
    outs = len(world.packet_outs)
    world.advance(seconds)
    places = {place for place, found in world.queries(outs) if found.family == family}
    return {host.name for host in world.hosts.values() if host.place in places}


def queriers(world, family=4):
    """Return the addresses of the queriers that are other routers, by the switch where each is heard."""
    return {e.other.dpid: e.other.address for e in world.core.membership.queriers.elections(family)}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_querier_silences_the_controller_in_its_own_fabric_alone(world, family):
    assert tell(world, "h2", query(world, "h2", family)) == {"h1", "h3", "h4"}
    assert asked(world, 200.0, family) == set(RIGHT)
    assert not world.core.membership.querier(family, 1).is_ours
    assert world.core.membership.querier(family, 4).is_ours


def test_each_fabric_elects_a_querier_of_its_own(world):
    tell(world, "h2", query(world, "h2"))
    assert tell(world, "h7", query(world, "h7")) == {"h5", "h6", "h8"}, "it loses to nobody in its own fabric"
    hosts = world.hosts
    assert queriers(world) == {1: hosts["h2"].v4, 4: hosts["h7"].v4}
    assert tell(world, "h4", query(world, "h4")) == set(), "h2 has the lower address"
    assert asked(world, 100.0) == set()


def test_the_lower_of_two_queriers_stays_when_their_fabrics_are_joined(world):
    tell(world, "h2", query(world, "h2"))
    tell(world, "h7", query(world, "h7"))
    world.mend(2, 3)
    world.advance(2.0)
    assert queriers(world) == {1: world.hosts["h2"].v4}
    assert tell(world, "h2", query(world, "h2")) == {*LEFT, *RIGHT} - {"h2"}
    assert tell(world, "h7", query(world, "h7")) == set()


def test_a_fabric_without_a_querier_has_that_of_the_one_that_it_joins(world):
    tell(world, "h2", query(world, "h2"))
    world.mend(2, 3)
    world.advance(2.0)
    assert asked(world, 200.0) == set()
    assert not world.core.membership.querier(4, 4).is_ours


def test_the_part_that_is_cut_off_from_its_querier_is_asked_by_the_controller(world):
    world.mend(2, 3)
    world.advance(2.0)
    tell(world, "h2", query(world, "h2"))
    world.cut(2, 3)
    assert asked(world, 3.0) == set(RIGHT)
    assert queriers(world) == {1: world.hosts["h2"].v4}


def test_a_link_that_blinks_changes_no_querier(world):
    world.mend(2, 3)
    world.advance(2.0)
    tell(world, "h2", query(world, "h2"))
    world.cut(2, 3)
    world.advance(0.5)
    world.mend(2, 3)
    assert asked(world, 100.0) == set()
    assert queriers(world) == {1: world.hosts["h2"].v4}


def test_routers_hear_reports_and_each_other_in_their_own_fabric(world):
    for name in ("h2", "h7"):
        host = world.hosts[name]
        tell(world, name, encode(PimHello(4, host.mac, host.v4, 105.0)))
    host = world.hosts["h4"]
    hello = encode(PimHello(4, host.mac, host.v4, 105.0))
    assert tell(world, "h4", hello) == {"h2"}
    outs = len(world.packet_outs)
    world.join("h1")
    reported = {place for place, frame in world.packet_outs[outs:] if isinstance(decode(frame), Report)}
    assert reported == {world.hosts["h2"].place, world.hosts["h4"].place}


def test_the_first_packet_of_a_sender_reaches_no_other_fabric(world):
    for name in ("h2", "h3", "h7"):
        world.join(name)
    world.settle()
    assert world.send("h1") == {"h2": 1, "h3": 1}
    world.settle()
    assert world.send("h1") == {"h2": 1, "h3": 1}
    assert world.send("h8") == {"h7": 1}


def test_a_restarted_controller_knows_the_querier_of_each_fabric(world):
    tell(world, "h2", query(world, "h2"))
    tell(world, "h7", query(world, "h7"))
    world.advance(1.0)
    before = queriers(world)
    world.restart()
    world.connect_all()
    assert queriers(world) == before
    assert asked(world, 100.0) == set()


# What fabrics are called, and what is told of them

NAMED = replace(ROUTED, fabrics=(NamedFabric("left", (1, 2), 3), NamedFabric("right", (9, 4), 4)))


def told(world):
    """Return the texts of the notices about fabrics since the last time."""
    found = [notice.text for notice in world.notices if notice.kind.startswith("fabric-")]
    world.notices.clear()
    return found


def shown(world):
    return {dpid: world.core.router_view.fabric_of(dpid) for dpid in world.switches}


@pytest.fixture
def named(world):
    """The same with names, after the time in which a controller finds its fabrics."""
    world.feed(PolicyLoaded(NAMED))
    world.advance(60.0)
    world.notices.clear()
    return world


def test_fabrics_have_the_names_of_the_policy_or_those_of_their_lowest_switches(world):
    assert shown(world) == {dpid: format_dpid(1 if dpid < 3 else 3) for dpid in (1, 2, 3, 4)}
    world.feed(PolicyLoaded(NAMED))
    assert shown(world) == {1: "left", 2: "left", 3: "right", 4: "right"}
    assert world.core.status_view.status()["fabrics"] == 2


def test_a_name_goes_by_the_first_of_its_switches_that_is_there(named):
    named.disconnect(4)
    named.advance(2.0)
    assert shown(named)[3] == format_dpid(3), "none of the switches of its name is there"
    named.cut(1, 2)
    named.advance(2.0)
    assert shown(named)[1] == "left"
    assert shown(named)[2] == format_dpid(2)


def test_a_fabric_that_gets_another_name_changes_no_flow_entry_and_no_querier(named):
    tell(named, "h7", query(named, "h7"))
    named.join("h2")
    named.settle()
    named.send("h3")
    named.settle()
    applied, asked_by = named.applied, queriers(named)
    assert dict(named.send("h3")) == {"h2": 1}
    for names in ((NamedFabric("west", (1, 2), 3), NamedFabric("left", (3, 4), 4)), ()):
        named.feed(PolicyLoaded(replace(NAMED, fabrics=names)))
        named.settle()
        assert named.applied == applied and queriers(named) == asked_by
        assert dict(named.send("h3")) == {"h2": 1}
        one, other = [fabric.name for fabric in names] or [format_dpid(1), format_dpid(3)]
        assert shown(named) == {1: one, 2: one, 3: other, 4: other}


def test_a_fabric_without_a_name_whose_lowest_switch_leaves_is_called_by_the_next_and_goes_on(world):
    world.join("h4")
    world.join("h8")
    for sender in ("h3", "h7"):
        world.send(sender)
        world.settle()
    others = [world.rules()[dpid] for dpid in (3, 4)]
    world.disconnect(1)
    for _ in world.steps():
        assert dict(world.send("h3")) == {"h4": 1} and dict(world.send("h7")) == {"h8": 1}
    world.advance(5.0)
    assert shown(world)[2] == format_dpid(2) and shown(world)[3] == format_dpid(3)
    assert [world.rules()[dpid] for dpid in (3, 4)] == others, "the other fabric is not touched"


def test_a_join_and_a_split_are_told_once_each(named):
    named.mend(2, 3)
    named.advance(5.0)
    assert told(named) == [
        "Fabric left and fabric right are one now, as a link joins them: it is fabric left.",
        "The names left and right of the policy file are of one fabric: it is called left.",
    ]
    named.cut(2, 3)
    named.advance(5.0)
    assert told(named) == [
        "No link joins switch 3 and switch 4 to the rest of fabric left any more: this is fabric right now."
    ]


def test_a_fabric_that_falls_into_three_is_told_twice_and_a_blink_not_at_all(named):
    named.mend(2, 3)
    named.advance(5.0)
    told(named)
    named.cut(2, 3)
    named.advance(0.3)
    named.mend(2, 3)
    named.advance(5.0)
    assert told(named) == []
    named.cut(1, 2)
    named.cut(3, 4)
    named.advance(5.0)
    texts = told(named)
    assert len(texts) == 2 and all("any more" in text for text in texts)
    assert any("switch 4 to the rest of fabric left any more: this is fabric right now" in text for text in texts)


def test_a_controller_that_has_just_started_tells_of_no_join():
    world = World(chain(), NAMED)
    world.advance(5.0)
    assert told(world) == ["The names left and right of the policy file are of one fabric: it is called left."]


def test_two_names_of_one_fabric_are_a_finding(named):
    assert not [one for one in named.core.findings.search() if one and one["kind"] == "fabric-named-twice"]
    named.mend(2, 3)
    (found,) = (one for one in named.core.findings.search() if one and one["kind"] == "fabric-named-twice")
    assert found["text"] == "The fabric right on line 4 of the policy file is the fabric left: links join them."


def test_queriers_are_shown_with_their_fabrics(named):
    tell(named, "h7", query(named, "h7"))
    queriers_of = [
        (one["family"], one["ours"], one["fabric"]) for one in named.core.router_view.queriers()["queriers"]
    ]
    assert queriers_of == [(4, True, None), (4, False, "right"), (6, True, None)]


def reported(world, act, seconds=3.0):
    """Return which changes a proxied router at each port is told of while something is done and followed."""
    outs, at = len(world.packet_outs), {host.place: host.name for host in world.hosts.values()}
    act()
    world.advance(seconds)
    found = [(at[place], decode(frame)) for place, frame in world.packet_outs[outs:]]
    told = {(name, record.type) for name, packet in found if isinstance(packet, Report) for record in packet.records}
    return {(name, kind) for name, kind in told if kind is not RecordType.MODE_IS_EXCLUDE}


def test_a_proxied_router_is_told_of_the_members_of_its_own_fabric_alone():
    proxied = replace(ROUTED, multicast=replace(ROUTED.multicast, proxy=Proxy(router_ports=True)))
    world = World(chain(), proxied)
    world.cut(2, 3)
    world.advance(2.0)
    for name in ("h4", "h8"):
        host = world.hosts[name]
        tell(world, name, encode(PimHello(4, host.mac, host.v4, 600.0)))
    world.advance(5.0)
    wanted, unwanted = RecordType.CHANGE_TO_EXCLUDE, RecordType.CHANGE_TO_INCLUDE
    world.advance(30.0)
    assert reported(world, lambda: world.join("h1")) == {("h4", wanted)}
    assert reported(world, lambda: world.join("h5")) == {("h8", wanted)}
    assert reported(world, lambda: world.leave("h5")) == {("h8", unwanted)}
    assert reported(world, lambda: world.mend(2, 3), 10.0) == {("h8", wanted)}
    assert reported(world, lambda: world.join("h6")) == set()
    assert reported(world, lambda: world.leave("h1")) == set()
    assert reported(world, lambda: world.cut(2, 3), 10.0) == {("h4", unwanted)}
    assert reported(world, lambda: world.leave("h6")) == {("h8", unwanted)}


def test_a_start_takes_nothing_back_at_a_proxied_router_before_the_links_are_known():
    proxied = replace(ROUTED, multicast=replace(ROUTED.multicast, proxy=Proxy(router_ports=True)))
    world = World(chain(), proxied)
    host = world.hosts["h8"]
    tell(world, "h8", encode(PimHello(4, host.mac, host.v4, 600.0)))
    world.join("h1")
    world.advance(5.0)
    world.restart()
    for dpid in world.switches:
        assert reported(world, lambda dpid=dpid: world.connect(dpid), 0.5) <= {("h8", RecordType.CHANGE_TO_EXCLUDE)}
    assert reported(world, world.connect_all, 30.0) == set()


# One MAC address in two fabrics


@pytest.fixture
def twins(world):
    """The world with h7 having the MAC and IP addresses of h2, which is in the other fabric."""
    one, other = world.hosts["h2"], world.hosts["h7"]
    world.feed(HostGone(other.mac, other.dpid, other.port_no))
    shared = world.hosts["h7"] = other._replace(mac=one.mac, v4=one.v4, v6=one.v6)
    world.feed(HostLearnt(numbered(one.mac, 2), shared.dpid, shared.port_no, (one.v4, one.v6)))
    return world


def test_members_and_senders_of_two_fabrics_with_one_mac_address_are_two(twins):
    for name in ("h2", "h4", "h7"):
        twins.join(name)
    twins.settle()
    assert twins.send("h1") == {"h2": 1, "h4": 1} and twins.send("h8") == {"h7": 1}
    assert twins.send("h7") == {} and twins.send("h2") == {"h4": 1}
    twins.leave("h7")
    twins.advance(3.0)
    assert twins.send("h8") == {} and twins.send("h1") == {"h2": 1, "h4": 1}
    counted = {*twins.core.counters, *twins.core.senders.counters}
    assert not {"spoofed-sender", "report-elsewhere", "spoofed-report"} & counted


def test_a_report_from_where_a_host_of_another_fabric_is_not_does_not_wait(world):
    """That h2 is known to be in one fabric says nothing of a host with its MAC address in the other."""
    former = world.hosts["h7"]
    world.feed(HostGone(former.mac, *former.place))
    world.hosts["h7"] = former._replace(mac=world.hosts["h2"].mac)
    world.join("h2")
    world.join("h7")
    world.settle()
    assert world.send("h8") == {"h7": 1} and world.send("h1") == {"h2": 1}
    world.learn(world.hosts["h2"])
    assert world.send("h8") == {"h7": 1}, "that it is confirmed to be there takes nothing from the other"


def test_a_shared_mac_address_is_guarded_within_each_fabric(twins):
    stranger = twins.hosts["h5"]._replace(mac=twins.hosts["h7"].mac, v4=twins.hosts["h7"].v4)
    twins.hosts["h5"] = stranger
    twins.join("h5")
    twins.join("h8")
    twins.settle()
    assert twins.send("h7") == {"h8": 1}
    assert twins.send("h5") == {}
    assert twins.core.senders.counters["spoofed-sender"] == 1
    assert twins.core.counters["report-elsewhere"] == 1


def test_hosts_with_one_mac_address_are_shown_apart(twins):
    own = twins.hosts["h2"].mac
    shown = twins.core.sections.hosts.changes(0, 100)["put"]
    places = {text: (found["mac"], found["dpid"]) for text, found in shown.items() if found["mac"] == format_mac(own)}
    assert places == {format_mac(own): (format_mac(own), 1), f"{format_mac(own)}~2": (format_mac(own), 4)}
