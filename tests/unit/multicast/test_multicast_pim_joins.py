"""Routers that join groups of each other by PIM through the fabric: their ports get these, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.multicast_settings import Querier, RouterPorts
from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import PacketReceived
from controller.membership.settings import MembershipSettings
from controller.multicast import view
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.packets import PimGroup, PimHello, PimJoinPrune, PimSource

GROUP = parse_ip("239.1.2.3")
OTHER = parse_ip("239.1.2.4")
JOINS_HEARD_S = MembershipSettings().joins_heard_s
LIMITS = Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
ROUTED = Multicast(fast_leave=True, querier=Querier(accept_others=True), router_ports=RouterPorts(learn=True))
FAST = Policy(default_allow=True, limits=LIMITS, multicast=ROUTED)


def hello(world, name, holdtime_s):
    host = world.hosts[name]
    return encode(PimHello(4, host.mac, host.v4, holdtime_s))


def tell(world, name, frame):
    world.feed(PacketReceived(*world.hosts[name].place, frame))


def joining(world, name, upstream, group, kind="joins"):
    """Have a router send a join, or a prune, to another one."""
    host, asked = world.hosts[name], world.hosts[upstream]
    named = (PimSource(asked.v4, True, True),)
    listed = PimGroup(group, 32, named if kind == "joins" else (), named if kind == "prunes" else ())
    tell(world, name, encode(PimJoinPrune(4, host.mac, host.v4, asked.v4, 210.0, (listed,))))


@pytest.fixture
def joined(make_world, version):
    """Routers h4, h12 and h16, the last of which is the designated one, whose ports get what is joined there."""
    ports = RouterPorts(learn=True, on_join=True)
    world = make_world("fattree", replace(FAST, multicast=replace(ROUTED, router_ports=ports)), version)
    for name in ("h4", "h12", "h16"):
        tell(world, name, hello(world, name, 600.0))
    world.join("h9")
    world.join("h9", OTHER)
    world.settle()
    assert world.send("h1") == {"h9": 1, "h4": 1, "h12": 1, "h16": 1}, "until they had time to say what they joined"
    world.advance(JOINS_HEARD_S)
    assert world.send("h1") == {"h9": 1, "h16": 1}
    return world


def test_a_router_port_on_join_gets_the_groups_that_its_router_joined(joined):
    joining(joined, "h4", "h12", GROUP)
    joined.settle()
    assert joined.send("h1") == {"h9": 1, "h4": 1, "h12": 1, "h16": 1}
    assert joined.send("h1", OTHER) == {"h9": 1, "h16": 1}
    joining(joined, "h4", "h12", GROUP, "prunes")
    joined.settle()
    assert joined.send("h1") == {"h9": 1, "h16": 1}


def test_a_group_without_members_goes_to_the_router_that_joined_it(joined):
    joining(joined, "h4", "h16", GROUP)
    joined.leave("h9")
    joined.settle()
    joined.send("h1")
    joined.settle()
    assert joined.send("h1") == {"h4": 1, "h16": 1}
    joined.advance(210.0)
    assert joined.send("h1") == {"h16": 1}


def test_a_restart_keeps_what_routers_joined(joined):
    joining(joined, "h4", "h12", GROUP)
    joined.settle()
    joined.restart()
    joined.connect_all()
    joined.settle()
    assert joined.send("h1") == {"h9": 1, "h4": 1, "h12": 1, "h16": 1}
    joined.advance(JOINS_HEARD_S)
    assert joined.send("h1", OTHER) == {"h9": 1, "h16": 1}
    assert joined.send("h1") == {"h9": 1, "h4": 1, "h12": 1, "h16": 1}


def test_a_policy_that_says_nothing_of_joins_any_more_gives_routers_every_group(joined):
    joined.feed(PolicyLoaded(FAST))
    joined.settle()
    assert joined.send("h1") == {"h9": 1, "h4": 1, "h12": 1, "h16": 1}
    assert [port["joined"] for port in view.routers(joined.core)["router_ports"]] == [None] * 3
