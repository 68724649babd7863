"""Packet-ins that came together are taken as they would be one after the other."""

from __future__ import annotations

import random

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast, Querier
from controller.events import PacketReceived
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, Query, RecordType, Report

KINDS = (RecordType.CHANGE_TO_EXCLUDE, RecordType.MODE_IS_EXCLUDE, RecordType.CHANGE_TO_INCLUDE)
STRICT = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=20.0, unknown_packets_per_second_per_port=10.0),
    multicast=Multicast(fast_leave=True, querier=Querier(enabled=False)),
)


def group(number):
    return bytes((239, 1, 1, number))


def packet(rng, world):
    """Draw what some host sends: a report, data, a query, or something broken."""
    host = world.hosts[rng.choice(sorted(world.hosts))]
    said = rng.random()
    if said < 0.6:
        records = (GroupRecord(rng.choice(KINDS), group(rng.randrange(6))),)
        version = 2 if said > 0.55 and records[0].type is not RecordType.CHANGE_TO_EXCLUDE else 3
        frame = encode(Report(4, version, host.mac, host.v4, records))
    elif said < 0.85:
        frame = world.data(host.name, group(rng.randrange(6)))
    elif said < 0.9:
        frame = encode(Query(4, 3, host.mac, host.v4, None, (), 10.0, False, 2, 125.0))
    else:
        frame = world.data(host.name)[: rng.randrange(60)]
    return PacketReceived(host.dpid, host.port_no, frame)


@pytest.mark.parametrize("policy", [None, STRICT], ids=["open", "limits"])
@pytest.mark.parametrize("seed", range(4))
def test_they_have_the_effects_of_one_after_the_other(make_world, policy, seed):
    given = () if policy is None else (policy,)
    one_by_one, together = (make_world("leaf-spine", *given, seed=seed) for _ in range(2))
    rng = random.Random(seed)
    effect_count = 0
    for _ in range(60):
        events = [packet(rng, one_by_one) for _ in range(rng.randrange(1, 17))]
        expected = [effect for event in events for effect in one_by_one.core.handle(event, one_by_one.now)]
        effects = []
        together.core.packets_received(iter(events), together.now, effects)
        assert effects == expected
        effect_count += len(effects)
        for world in (one_by_one, together):
            world.perform_all(expected)
            world.settle()
            world.advance(0.25)
    assert effect_count > 200
    tables = [
        {dpid: dict(switch.rules) for dpid, switch in world.switches.items()} for world in (one_by_one, together)
    ]
    assert tables[0] == tables[1]


def test_groups_that_wait_for_room_are_served_after_the_last(make_world):
    world = make_world("leaf-spine", Policy(default_allow=True, limits=Limits(groups=1), multicast=STRICT.multicast))
    world.join("h1", group(1))
    world.join("h3", group(2))
    world.settle()
    host = world.hosts["h1"]
    left = Report(4, 3, host.mac, host.v4, (GroupRecord(RecordType.CHANGE_TO_INCLUDE, group(1)),))
    effects = []
    world.core.packets_received(iter([PacketReceived(host.dpid, host.port_no, encode(left))]), world.now, effects)
    world.perform_all(effects)
    world.advance(5.0)
    world.settle()
    assert list(world.core.plane.groups) == [group(2)]


def test_the_iterator_stands_behind_one_that_fails(make_world, monkeypatch):
    world = make_world("leaf-spine")
    host = world.hosts["h1"]
    events = [
        PacketReceived(
            host.dpid,
            host.port_no,
            encode(Report(4, 3, host.mac, host.v4, (GroupRecord(KINDS[0], group(number)),))),
        )
        for number in range(3)
    ]
    take = world.core.frames.packet_received

    def failing(event, now):
        if event is events[1]:
            raise RuntimeError("a defect")
        take(event, now)

    monkeypatch.setattr(world.core.frames, "packet_received", failing)
    left, effects = iter(events), []
    with pytest.raises(RuntimeError, match="a defect"):
        world.core.packets_received(left, world.now, effects)
    world.core.packets_received(left, world.now, effects)
    world.perform_all(effects)
    assert list(world.core.plane.groups) == [group(0), group(2)]
