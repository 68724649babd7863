"""Routers that join groups of each other by PIM through the fabric: their ports get these, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.multicast_settings import Querier, RouterPorts
from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import PacketReceived
from controller.membership.pim_joins import OVERRIDE_S
from controller.membership.settings import MembershipSettings
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.packets import PimGroup, PimHello, PimJoinPrune, PimSource

GROUP = parse_ip("239.1.2.3")
OTHER = parse_ip("239.1.2.4")
NEAR, FAR = parse_ip("192.168.1.5"), parse_ip("192.168.2.5")
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
    """Have a router send a join, or a prune, of any source to another one."""
    asks(world, name, upstream, group, **{kind: (shared(world, upstream),)})


def shared(world, rendezvous_point):
    """Return the source that stands for all of a shared tree."""
    return PimSource(world.hosts[rendezvous_point].v4, True, True)


def asks(world, name, upstream, group=GROUP, joins=(), prunes=()):
    """Have a router send joins and prunes to another one in one message."""
    host, asked = world.hosts[name], world.hosts[upstream]
    listed = PimGroup(group, 32, tuple(joins), tuple(prunes))
    tell(world, name, encode(PimJoinPrune(4, host.mac, host.v4, asked.v4, 210.0, (listed,))))
    world.settle()


def sends(world, name, source):
    """Have a router send on what it has of a source beyond; what it gets back is not counted the first time."""
    world.send(name, source=source)
    world.settle()
    return world.send(name, source=source)


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


def test_a_port_gets_of_a_group_the_sources_alone_that_its_router_joined(joined):
    asks(joined, "h4", "h12", joins=[PimSource(NEAR)])
    assert sends(joined, "h12", NEAR) == {"h9": 1, "h4": 1, "h16": 1}
    assert sends(joined, "h12", FAR) == {"h9": 1, "h16": 1}
    assert joined.send("h1") == {"h9": 1, "h16": 1}
    asks(joined, "h4", "h12", joins=[PimSource(FAR)])
    assert sends(joined, "h12", FAR) == {"h9": 1, "h4": 1, "h16": 1}
    asks(joined, "h4", "h12", prunes=[PimSource(NEAR)])
    assert sends(joined, "h12", NEAR) == {"h9": 1, "h16": 1}
    assert sends(joined, "h12", FAR) == {"h9": 1, "h4": 1, "h16": 1}
    asks(joined, "h4", "h12", joins=[shared(joined, "h12")])
    assert sends(joined, "h12", NEAR) == {"h9": 1, "h4": 1, "h16": 1}


def test_a_port_does_not_get_the_sources_that_its_router_pruned_from_the_shared_tree(joined):
    asks(joined, "h4", "h12", joins=[shared(joined, "h12")], prunes=[PimSource(NEAR, False, True)])
    assert sends(joined, "h12", NEAR) == {"h9": 1, "h16": 1}
    assert sends(joined, "h12", FAR) == {"h9": 1, "h4": 1, "h16": 1}
    asks(joined, "h4", "h16", joins=[PimSource(NEAR)])
    joined.advance(OVERRIDE_S)
    assert sends(joined, "h16", NEAR) == {"h9": 1, "h4": 1}, "by the tree of the source"
    asks(joined, "h4", "h16", prunes=[PimSource(NEAR)])
    assert sends(joined, "h16", NEAR) == {"h9": 1}
    asks(joined, "h4", "h12", joins=[PimSource(NEAR, False, True)])
    assert sends(joined, "h12", NEAR) == {"h9": 1, "h4": 1, "h16": 1}


def test_a_router_that_prunes_a_host_of_its_own_subnet_from_the_shared_tree_goes_on_hearing_it(joined):
    near = joined.hosts["h1"].v4
    asks(joined, "h4", "h12", joins=[shared(joined, "h12")], prunes=[PimSource(near, False, True)])
    joined.advance(OVERRIDE_S)
    assert joined.send("h1") == {"h9": 1, "h4": 1, "h12": 1, "h16": 1}


def test_what_was_joined_of_single_sources_counts_without_members_too(joined):
    asks(joined, "h4", "h12", joins=[PimSource(NEAR)])
    joined.leave("h9")
    joined.settle()
    assert sends(joined, "h12", NEAR) == {"h4": 1, "h16": 1}
    assert sends(joined, "h12", FAR) == {"h16": 1}
    joined.restart()
    joined.connect_all()
    joined.settle()
    joined.advance(JOINS_HEARD_S)
    assert sends(joined, "h12", NEAR) == {"h4": 1, "h16": 1}
    assert sends(joined, "h12", FAR) == {"h16": 1}
    joined.advance(210.0)
    assert sends(joined, "h12", NEAR) == {"h16": 1}


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
    assert [port["joined"] for port in joined.core.router_view.routers()["router_ports"]] == [None] * 3
