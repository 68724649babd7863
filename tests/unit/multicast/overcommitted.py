"""Fabrics whose tables have room for fewer groups than there are, and what is in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from controller.config.overcommit_settings import Capacities, Overcommit
from controller.effects import ActionTaken, ApplyEdits
from controller.wire.addresses import parse_ip

from .conftest import OPEN, leaf_spine

ROOM = 24
MEMBERS = ["h5", "h7"]


def group(number):
    return parse_ip(f"239.7.{number >> 8}.{number & 255}")


def policy(**settings):
    capacity = settings.pop("capacity", None)
    return replace(OPEN, overcommit=Overcommit(mode="swap", capacity=Capacities(default=capacity), **settings))


def overcommitted(make_world, version=4, room=ROOM, said=True, seed=0, **settings):
    """Return a world whose tables have room for `room` entries beside those that stay, which the policy says or not.

    The core knows of no entries but its own, as discovery is not there.
    """
    graph = leaf_spine(leaves=4, spines=2, hosts=2)
    bare = make_world(graph, OPEN, version)
    own = max(max(Counter(key.table for key in rules).values(), default=0) for rules in bare.rules().values())
    world = make_world(graph, policy(capacity=own + room if said else None, **settings), version, seed=seed)
    for switch in world.switches.values():
        stays = Counter(key.table for key in switch.rules)
        foreign = stays - Counter(key.table for key in world.rules()[switch.dpid])
        switch.table_capacity = own + room + max(foreign.values())
    return world


def joined(world, count):
    for number in range(count):
        for name in MEMBERS:
            world.join(name, group(number))
    world.settle()
    return world


def sender_of(number):
    return ("h1", "h2", "h3", "h4")[number % 4]


def assert_served(world, number):
    assert world.send(sender_of(number), group(number)) == Counter(MEMBERS), number


def inside(world):
    return [address for address, each in world.core.plane.groups.items() if not each.is_out]


def counted(world, name):
    return world.core.swapping.counters[name]


def asked(world, since):
    """Return which groups were asked for by queries of their own, at which ports, from a packet sent on."""
    return {(query.group, place) for place, query in world.queries(since) if query.group is not None}


def answer(world, since, hosts=MEMBERS):
    """Have hosts answer who were asked for a group."""
    for name, place in sorted(asked(world, since)):
        for host in hosts:
            if world.hosts[host].place == place:
                world.join(host, name)


def rules_of(world, address):
    return [rule for rules in world.rules().values() for rule in rules.values() if rule.key.match.ip_dst == address]


def edits_of(effects):
    return [edit for effect in effects if isinstance(effect, ApplyEdits) for edit in effect.edits]


def done(outcome):
    assert isinstance(outcome, ActionTaken), outcome
    return outcome.document
