"""Addresses taken from pools: free ones by a plain search beside, names that keep theirs, and what operators hear."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from controller.config.policy import AddressPool, Policy
from controller.config.settings import Limits
from controller.config.terms import Prefix, mask_address, parse_group_prefix
from controller.effects import ActionRefused, ActionTaken
from controller.log import LogEntry, LogEntryKind, WriteLog
from controller.multicast import pool_addresses
from controller.multicast.actions import ActionInvalid, read_action
from controller.multicast.address_pools import AddressPools, TakenAddress
from controller.multicast.core import MulticastCore
from controller.multicast.events import LeadTaken, LogFollowed, PolicyLoaded
from controller.wire.addresses import format_ip, group_mac, parse_ip

LIMITS = Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)


def pool(name: str, *ranges: str) -> AddressPool:
    return AddressPool(name, tuple(map(parse_group_prefix, ranges)))


POLICY = Policy(
    default_allow=True,
    limits=LIMITS,
    pools=(pool("video", "239.10.0.0/29", "239.10.1.0/29"), pool("audio", "239.138.0.0/30")),
)


@pytest.fixture
def world(make_world: Any) -> Any:
    return make_world("leaf-spine", POLICY)


def take(world: Any, name: str, of: str = "video") -> str:
    outcome = world.do("address-take", pool=of, name=name)
    assert isinstance(outcome, ActionTaken), outcome
    return str(outcome.document["address"])


def release(world: Any, name: str, of: str = "video") -> None:
    assert isinstance(world.do("address-release", pool=of, name=name), ActionTaken)


def refused(outcome: Any) -> str:
    assert isinstance(outcome, ActionRefused), outcome
    return str(outcome.text)


def told(world: Any) -> list[tuple[str, str, str]]:
    events = world.core.sections.events.section.changes(0, 1000)["put"].values()
    return [(event["kind"], event["state"], event["text"]) for event in events]


# Which is free


def brute(pools: AddressPools, of: str, used: set[bytes]) -> bytes | None:
    """The lowest address that can be given, looked for one by one."""
    reserved = {group_mac(parse_ip(f"224.0.0.{number}")) for number in range(256)}
    macs = {group_mac(taken.address) for taken in pools.taken()} | reserved
    for prefix in pools.ranges(of) or ():
        first = int.from_bytes(prefix.network, "big")
        for number in range(first, first + (1 << 32 - prefix.length)):
            address = number.to_bytes(4, "big")
            if group_mac(address) not in macs and address not in used:
                return address
    return None


@pytest.mark.parametrize("number", range(30))
def test_the_lowest_is_given_whatever_was_taken_and_given_back(number: int):
    draw = random.Random(number)
    policy = [AddressPool(name, _ranges(draw, *highs)) for name, highs in (("a", (0, 10)), ("b", (128, 138, 20)))]
    pools, used, names = AddressPools(policy), set[bytes](), list[tuple[str, str]]()
    given = 0
    for step in range(400):
        if names and draw.random() < 0.3:
            pools.remove(*names.pop(draw.randrange(len(names))))
        elif draw.random() < 0.05:
            pools.use(policy if draw.random() < 0.5 else policy[:1])
        elif draw.random() < 0.2 and (wanted := brute(pools, "a", used)) is not None:
            used.symmetric_difference_update({draw.choice((wanted, *used))})
        else:
            of = draw.choice("ab")
            found = pools.next_free(of, used.__contains__)
            assert found == brute(pools, of, used)
            if found is not None:
                pools.put(TakenAddress(of, f"n{step}", found))
                names.append((of, f"n{step}"))
                given += 1
        macs = [group_mac(taken.address) for taken in pools.taken()]
        assert len(macs) == len(set(macs)) == len(pools) == len(names)
        for of in "ab":
            mine = [taken.address for taken in pools.taken() if taken.pool == of]
            assert (pools.takers(of), pools.count(of)) == (len(mine), sum(pools.has(of, each) for each in mine))
    assert given > 20


def _ranges(draw: random.Random, *highs: int) -> tuple[Prefix, ...]:
    """Ranges with link-scope MAC addresses among theirs, and some that have those of others."""
    found = []
    for high in highs:
        length = draw.choice((28, 23))
        network = parse_ip(f"{draw.choice((224, 238, 239))}.{high}.{draw.choice((0, 7))}.0")
        found.append(Prefix(mask_address(network, length), length))
    return tuple(found)


def test_a_great_range_is_no_work(monkeypatch: pytest.MonkeyPatch):
    pools = AddressPools([pool("a", "239.0.0.0/8"), pool("b", "ff15::/16")])
    for number in range(2000):
        for of in "ab":
            asked = 0

            def is_used(_address: bytes) -> bool:
                nonlocal asked
                asked += 1
                return False

            address = pools.next_free(of, is_used)
            assert address is not None
            assert asked == 1
            pools.put(TakenAddress(of, str(number), address))
    assert pools.address("a", "1999") == parse_ip("239.0.8.207")
    assert pools.address("b", "1999") == parse_ip("ff15::2:7cf")


# By name


def test_the_same_name_has_the_same_address_and_others_the_next(world: Any) -> None:
    assert [take(world, name) for name in ("cam1", "cam2", "cam1", "cam3")] == [
        *("239.10.0.0", "239.10.0.1", "239.10.0.0", "239.10.0.2")
    ]
    release(world, "cam1")
    assert take(world, "cam4") == "239.10.0.0"


def test_the_next_range_is_used_when_one_has_no_room(world: Any) -> None:
    assert [take(world, f"cam{number}") for number in range(10)][8:] == ["239.10.1.0", "239.10.1.1"]


def test_no_two_have_one_mac_address_whatever_their_pools(make_world: Any) -> None:
    policy = replace(POLICY, pools=(pool("a", "239.10.0.0/30"), pool("b", "239.138.0.0/29")))
    world = make_world("leaf-spine", policy)
    assert [take(world, str(number), "a") for number in range(2)] == ["239.10.0.0", "239.10.0.1"]
    assert take(world, "x", "b") == "239.138.0.2"
    assert take(world, "2", "a") == "239.10.0.3"


def test_a_group_with_members_or_senders_is_not_free_nor_one_with_its_mac_address(world: Any) -> None:
    world.join("h1", parse_ip("239.10.0.0"))
    world.join("h1", parse_ip("238.138.0.2"))
    world.send("h3", parse_ip("239.10.0.1"))
    world.settle()
    assert [take(world, name) for name in ("cam1", "cam2")] == ["239.10.0.3", "239.10.0.4"]
    world.leave("h1", parse_ip("238.138.0.2"))
    world.advance(5)
    assert take(world, "cam3") == "239.10.0.2"


def test_who_has_an_address_keeps_it_when_it_is_in_use(world: Any) -> None:
    assert take(world, "cam1") == "239.10.0.0"
    world.join("h1", parse_ip("239.10.0.0"))
    world.settle()
    assert take(world, "cam1") == "239.10.0.0"


def test_what_cannot_be_is_refused_with_its_reason(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(world.do("address-take", pool="radio", name="a")) == "pool: the policy file has no pool radio"
    assert "name: cam1 has no address" in refused(world.do("address-release", pool="video", name="cam1"))
    for number in range(4):
        take(world, str(number), "audio")
    assert refused(world.do("address-take", pool="audio", name="more")) == (
        "pool: 4 of the 4 addresses of the pool audio are taken"
    )
    release(world, "0", "audio")
    world.join("h1", parse_ip("239.138.0.0"))
    world.settle()
    assert "of the others are those of groups in use" in refused(world.do("address-take", pool="audio", name="more"))
    monkeypatch.setattr(pool_addresses, "SETTINGS_BOUND", 3)
    assert "as many as are kept" in refused(world.do("address-take", pool="video", name="more"))


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"pool": "7video", "name": "cam"}, "pool"),
        ({"pool": "video", "name": ".."}, "name"),
        ({"pool": "video", "name": "a/b"}, "name"),
        ({"pool": "video", "name": "x" * 64}, "name"),
        ({"pool": "video", "name": 7}, "name"),
        ({"pool": "video"}, "name"),
    ],
)
def test_what_makes_no_sense_names_its_field(fields: dict[str, Any], at: str) -> None:
    with pytest.raises(ActionInvalid) as caught:
        read_action("address-take", fields)
    assert caught.value.field == at


# Over restarts, reloads and other controllers


def test_an_address_outlasts_a_restart_a_reload_and_its_range(world: Any) -> None:
    assert (take(world, "cam1"), take(world, "cam2")) == ("239.10.0.0", "239.10.0.1")
    world.settle()
    world.restart()
    world.connect_all()
    assert (take(world, "cam2"), take(world, "cam3")) == ("239.10.0.1", "239.10.0.2")
    world.feed(PolicyLoaded(replace(POLICY, pools=(pool("video", "239.20.0.0/30"),))))
    assert (take(world, "cam2"), take(world, "cam4")) == ("239.10.0.1", "239.20.0.0")
    documents = world.core.addresses.section.changes(0, 100)["put"]
    assert {key: document["in_pool"] for key, document in documents.items()} == {
        "video/cam1": False,
        "video/cam2": False,
        "video/cam3": False,
        "video/cam4": True,
    }
    pools = world.core.addresses.pools_section.changes(0, 100)["put"]
    assert pools == {
        "video": {"pool": "video", "ranges": ["239.20.0.0/30"], "addresses": 4, "taken": 4, "outside": 3}
    }
    world.feed(PolicyLoaded(replace(POLICY, pools=())))
    assert take(world, "cam4") == "239.20.0.0"
    release(world, "cam4")
    assert refused(world.do("address-take", pool="video", name="cam4")) == "pool: the policy file has no pool video"
    world.settle()
    world.restart()
    assert sorted(taken.name for taken in world.core.addresses.taken()) == ["cam1", "cam2", "cam3"]


def test_a_log_that_is_written_anew_has_them(world: Any) -> None:
    take(world, "cam1")
    world.settle()
    world.core.pending_writes.begin_anew(world.now)
    world.advance(1)
    values = {entry.key: entry.value for entry in world.log.read() if entry.subject == "address"}
    assert values == {"address/video/cam1": {"pool": "video", "name": "cam1", "address": "239.10.0.0"}}


def test_another_controller_that_follows_has_them_and_goes_on(world: Any) -> None:
    for name in ("cam1", "cam2", "cam3"):
        take(world, name)
    world.settle()
    shadow = MulticastCore(POLICY, 0.0)
    shadow.handle(LogFollowed(world.log.read()), 1.0)
    shadow.handle(LogFollowed((LogEntry(LogEntryKind.DECISION, "address/video/cam1", None),)), 2.0)
    shadow.handle(LeadTaken(), 3.0)
    found = {taken.name: format_ip(taken.address) for taken in shadow.addresses.taken()}
    assert found == {"cam2": "239.10.0.1", "cam3": "239.10.0.2"}
    answers = shadow.handle(read_action("address-take", {"pool": "video", "name": "cam4"}), 4.0)
    assert [each.document["address"] for each in answers if isinstance(each, ActionTaken)] == ["239.10.0.0"]


@pytest.mark.parametrize(
    "value",
    [
        {"pool": "video", "name": "cam1"},
        {"pool": "video", "name": "cam1", "address": "10.0.0.1"},
        {"pool": "video", "name": "cam1", "address": "nowhere"},
        {"pool": "video", "name": "a/b", "address": "239.10.0.0"},
    ],
)
def test_an_address_of_the_log_that_cannot_be_read_is_counted_and_left_out(world: Any, value: dict[str, Any]) -> None:
    world.settle()
    world.log.write(WriteLog((LogEntry.of_record(LogEntryKind.DECISION, "address/video/cam1", value),)))
    world.restart()
    assert not list(world.core.addresses.taken())
    assert any(notice.kind == "journal-faulty" for notice in world.notices)


# What operators hear


def test_operators_hear_once_when_a_pool_becomes_almost_full_and_when_it_has_room(make_world: Any) -> None:
    world = make_world("leaf-spine", replace(POLICY, pools=(pool("a", "239.10.0.0/29", "239.10.1.0", "239.10.2.0"),)))
    for number in range(8):
        take(world, str(number), "a")
    assert not [event for event in told(world) if event[0] == "pool-almost-full"]
    take(world, "8", "a")
    take(world, "9", "a")
    release(world, "9", "a")
    release(world, "8", "a")
    assert [event for event in told(world) if event[0] == "pool-almost-full"] == [
        ("pool-almost-full", "raised", "9 of the 10 addresses of the pool a are taken: give it another range."),
        ("pool-almost-full", "cleared", "8 of the 10 addresses of the pool a are taken: there is room again."),
    ]


def test_another_policy_may_make_a_pool_almost_full_and_a_restart_tells_nobody_again(world: Any) -> None:
    for number in range(4):
        take(world, str(number))
    world.feed(PolicyLoaded(replace(POLICY, pools=(pool("video", "239.10.0.0/30"),))))
    assert told(world)[-1][:2] == ("pool-almost-full", "raised")
    world.settle()
    world.restart(policy=replace(POLICY, pools=(pool("video", "239.10.0.0/30"),)))
    world.connect_all()
    assert not [event for event in told(world) if event[0] == "pool-almost-full"]
    world.feed(PolicyLoaded(POLICY))
    assert told(world)[-1][:2] == ("pool-almost-full", "cleared")


def test_taking_and_giving_back_are_events_and_asking_again_is_none(world: Any) -> None:
    before = len(told(world))
    take(world, "cam1")
    take(world, "cam1")
    release(world, "cam1")
    assert told(world)[before:] == [
        ("address-taken", "happened", "The address 239.10.0.0 of the pool video is cam1's."),
        ("address-released", "happened", "The address 239.10.0.0 of the pool video is free: cam1 has given it back."),
    ]
