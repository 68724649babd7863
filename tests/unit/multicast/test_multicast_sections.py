"""The documents that operators follow say at any time what the core says when asked whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits
from controller.config.terms import Labelled, NamedSwitch
from controller.events import SwitchDescription, SwitchDisconnected
from controller.multicast.events import CountersResetAsked, PolicyLoaded
from controller.wire.addresses import format_mac

LIMITS = Limits(unknown_packets_per_second_per_port=1e6)


class Follower:
    """Holds the documents of a core's sections."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.versions: dict[str, int] = {}
        self.known: dict[str, dict[str, Any]] = {}
        self.moved: dict[str, set[str]] = {}

    def read(self) -> Follower:
        """Read all there is to read, and note in `moved` the ids of what changed."""
        sections = self.world.core.sections
        sections.refresh(self.world.now)
        self.moved = {}
        for name, section in sections.by_name().items():
            more = True
            while more:
                delta = json.loads(json.dumps(section.changes(self.versions.get(name, 0), 7)))
                known = self.known.setdefault(name, {})
                if delta["whole"]:
                    known.clear()
                known.update(delta["put"])
                for ident in delta["remove"]:
                    known.pop(ident, None)
                self.moved.setdefault(name, set()).update(delta["put"], delta["remove"])
                self.versions[name], more = delta["version"], delta["more"]
        return self

    def agrees(self) -> None:
        """What was followed is what a new reader gets, but for what is compared once a second only."""
        self.world.now += 1.0
        self.read()
        fresh = Follower(self.world).read()
        for name, documents in fresh.known.items():
            assert self.known[name] == documents, name


def description_of(datapath: str) -> SwitchDescription:
    return SwitchDescription("maker", "hardware", "software", "7", datapath)


def events(follower: Follower) -> list[tuple[str, str]]:
    return [(event["kind"], event["state"]) for event in follower.known["events"].values()]


def test_a_join_appears_and_a_leave_disappears(make_world):
    world = make_world("leaf-spine")
    follower = Follower(world).read()
    assert follower.known["groups"] == {}
    world.join("h1")
    world.join("h3")
    world.settle()
    follower.read()
    assert follower.moved["groups"] == {"239.1.2.3"}
    document = follower.known["groups"]["239.1.2.3"]
    assert document == json.loads(json.dumps(world.core.group_view.groups()[0]))
    assert document["size"] == 2
    world.join("h2")
    follower.read()
    assert follower.moved["groups"] == {"239.1.2.3"}
    assert follower.known["groups"]["239.1.2.3"]["size"] == 3
    world.join("h2")
    assert follower.read().moved["groups"] == set()
    follower.agrees()
    for name in ("h1", "h2", "h3"):
        world.leave(name)
    world.advance(5.0)
    follower.read()
    assert follower.known["groups"] == {}
    follower.agrees()


def test_a_second_member_of_a_port_is_told_too(make_world):
    world = make_world("leaf-spine")
    world.join("h1")
    follower = Follower(world).read()
    other = world.hosts["h1"]._replace(name="x", mac=b"\x02\0\0\0\x77\x77")
    world.hosts["x"] = other
    world.learn(other)
    world.join("x")
    assert follower.read().known["groups"]["239.1.2.3"]["size"] == 2


def test_a_refusal_is_a_document_of_the_group_an_event_and_counted_by_its_rule(make_world):
    world = make_world("leaf-spine", Policy(default_allow=False, limits=LIMITS))
    follower = Follower(world).read()
    world.join("h1")
    follower.read()
    host = world.hosts["h1"]
    (refused,) = follower.known["groups"]["239.1.2.3"]["refused"]
    assert refused["mac"] == format_mac(host.mac)
    (event,) = [event for event in follower.known["events"].values() if event["kind"] == "receiver-refused"]
    assert (event["dpid"], event["port_no"], event["group"]) == (host.dpid, host.port_no, "239.1.2.3")
    assert event["severity"] == "warning"
    world.now += 1.0
    counted = follower.read().known["rules"]["default"]
    assert (counted["rule"], counted["allow"], counted["deny"]) == ("default", 0, 1)
    follower.agrees()


def test_a_rule_says_since_when_it_is_counted(make_world):
    def rule(name: str) -> Rule:
        return Rule(name, (), frozenset({Role.ROUTER}), allow=True, any_host=True)

    def since(name: str) -> float:
        return follower.known["rules"][name]["since_s"] - world.core.sections.events.offset_s

    world = make_world("leaf-spine", Policy(rules=(rule("kept"), rule("gone")), limits=LIMITS))
    begun = world.now
    follower = Follower(world).read()
    assert since("kept") <= begun
    world.now += 100.0
    follower.read()
    world.now += 100.0
    world.feed(PolicyLoaded(Policy(rules=(rule("kept"), rule("new")), limits=LIMITS)))
    loaded = world.now
    world.now += 2.0
    follower.read()
    assert set(follower.known["rules"]) == {"kept", "new", "default"}
    assert (since("new"), since("kept") <= begun) == (loaded, True)
    world.feed(CountersResetAsked())
    follower.read()
    assert {since(name) for name in ("kept", "new", "default")} == {world.now}
    follower.agrees()


def test_a_flood_of_refusals_becomes_few_events(make_world):
    world = make_world("leaf-spine", Policy(default_allow=False, limits=LIMITS))
    for number in range(1000):
        world.send("h1", bytes((239, 7, number >> 8, number & 255)))
    follower = Follower(world).read()
    assert 100 < len(events(follower)) < 500
    assert world.core.counters["refusal-events-suppressed"] > 500


def test_the_fabric_is_followed_through_failures(make_world):
    world = make_world("leaf-spine")
    follower = Follower(world).read()
    assert {document["tier"] for document in follower.known["switches"].values()} == {"tor", "aggregation"}
    assert len(follower.known["links"]) == 6
    assert len(follower.known["hosts"]) == 6
    edges = [port for port in follower.known["ports"].values() if port["role"] == "edge"]
    assert len(edges) == 6
    pair = min(world.links, key=sorted)
    world.cut(*pair)
    world.settle()
    follower.read()
    assert len(follower.known["links"]) == 5
    follower.agrees()
    world.mend(*pair)
    dpid = world.hosts["h1"].dpid
    world.disconnect(dpid)
    world.settle()
    follower.read()
    assert not follower.known["switches"][str(dpid)]["connected"]
    assert not [port for port in follower.known["ports"].values() if port["dpid"] == dpid]
    follower.agrees()
    world.reconnect(dpid)
    world.settle()
    follower.read()
    assert follower.known["switches"][str(dpid)]["connected"]
    follower.agrees()


def test_what_is_back_before_it_is_an_alarm_is_told_with_its_ports_and_for_how_long(make_world):
    world = make_world("leaf-spine")
    follower = Follower(world).read()
    pair = min(world.links, key=sorted)
    (a, port_a), (b, port_b) = sorted(world.links[pair])
    world.cut(*pair)
    world.now += 0.5
    world.mend(*pair)
    gone = world.hosts["h1"].dpid
    links = sum(1 for link in world.links if gone in link)
    world.disconnect(gone)
    world.now += 0.8
    world.reconnect(gone)
    world.settle()
    texts = [event["text"] for event in follower.read().known["events"].values() if event["severity"] == "warning"]
    assert texts[0] == f"The link of port {a:016x}:{port_a} and port {b:016x}:{port_b} was down for 0.5 s."
    assert texts[1] == f"Switch {gone:016x} was gone for 0.8 s."
    assert len(texts) == 2 + links


def test_a_switch_that_is_connected_again_at_once_is_told_of_once(make_world):
    world = make_world("leaf-spine")
    world.settle()
    follower = Follower(world).read()
    dpid = world.hosts["h1"].dpid
    before = len(events(follower))
    world.feed(SwitchDisconnected(dpid))
    world.now += 0.4
    world.connect(dpid)
    world.settle()
    told = [event["text"] for event in follower.read().known["events"].values()][before:]
    assert told == [f"Switch {dpid:016x} forwarded without a connection for 0.4 s."]


def test_of_what_is_an_alarm_the_alarms_tell(make_world):
    world = make_world("leaf-spine")
    follower = Follower(world).read()
    pair = min(world.links, key=sorted)
    before = events(follower)
    world.cut(*pair)
    world.settle()
    world.now += 100.0
    world.mend(*pair)
    gone = world.hosts["h1"].dpid
    world.disconnect(gone)
    world.settle()
    world.now += 100.0
    world.reconnect(gone)
    world.settle()
    assert events(follower.read()) == before


def test_a_switch_told_as_not_in_sync_is_told_again_when_it_is(make_world):
    world = make_world("leaf-spine")
    follower = Follower(world).read()
    world.join("h1")
    world.send("h3")
    installer = world.core.installer
    behind = [dpid for dpid in world.core.fabric.switches() if not installer.in_sync(dpid)]
    assert behind
    for dpid in behind:
        world.core.sections.switch_changed(dpid)
    follower.read()
    assert not any(follower.known["switches"][str(dpid)]["in_sync"] for dpid in behind)
    world.settle()
    follower.agrees()
    assert all(document["in_sync"] for document in follower.known["switches"].values())


def test_rates_of_senders_reach_the_group(make_world):
    world = make_world("leaf-spine")
    world.join("h3")
    world.send("h1")
    world.advance(3.0)
    follower = Follower(world).read()
    for _ in range(50):
        world.send("h1")
    world.advance(2.0)
    follower.read()
    assert follower.known["groups"]["239.1.2.3"]["rate_bps"] > 0
    follower.agrees()


def test_events_are_the_newest_thousand(make_world):
    world = make_world("leaf-spine")
    log = world.core.sections.events
    for number in range(1500):
        log.add(world.now, "k", str(number))
    follower = Follower(world).read()
    assert [event["text"] for event in follower.known["events"].values()] == [str(n) for n in range(500, 1500)]
    log.add(world.now, "k", "new")
    follower.read()
    assert len(follower.moved["events"]) == 2
    assert len(follower.known["events"]) == 1000


@pytest.mark.parametrize("seed", range(6))
def test_who_follows_knows_what_there_is_whatever_happens(make_world, seed):
    world = make_world("fattree" if seed % 2 else "avalanche24", Policy(default_allow=True, limits=LIMITS), seed=seed)
    draw, names = world.random, list(world.hosts)
    follower, gone = Follower(world).read(), set()

    def alive() -> str:
        return draw.choice([name for name in names if world.hosts[name].dpid not in gone])

    def fail_or_mend() -> None:
        pairs = [pair for pair in world.links if not pair & gone]
        pair = draw.choice(sorted(pairs, key=sorted))
        (world.mend if pair in world.down_links else world.cut)(*sorted(pair))

    def lose_or_regain() -> None:
        dpid = draw.choice(sorted(world.switches))
        world.settle()
        if dpid in gone:
            gone.discard(dpid)
            world.reconnect(dpid)
        elif len(gone) < 2:
            gone.add(dpid)
            world.disconnect(dpid)

    def set_static() -> None:
        place = world.hosts[alive()]
        action = draw.choice(["static-member-add", "static-member-remove"])
        world.do(action, dpid=place.dpid, port_no=place.port_no, group=f"239.1.1.{draw.randrange(3)}")

    def set_router() -> None:
        place = world.hosts[alive()]
        action = draw.choice(["router-port-add", "router-port-remove"])
        world.do(action, dpid=place.dpid, port_no=place.port_no, family=4)

    def drain() -> None:
        action = draw.choice(["switch-drain", "switch-undrain"])
        world.do(action, dpid=draw.choice(sorted(world.switches)))

    def join() -> None:
        world.join(alive(), bytes((239, 1, 1, draw.randrange(3))))

    def leave() -> None:
        world.leave(alive(), bytes((239, 1, 1, draw.randrange(3))))

    def send() -> None:
        world.send(alive(), bytes((239, 1, 1, draw.randrange(3))))

    def load_policy() -> None:
        world.feed(PolicyLoaded(Policy(default_allow=draw.random() < 0.7, limits=LIMITS)))

    def wait() -> None:
        world.advance(draw.random() * 3)

    told = [set_static, set_router, drain, load_policy]
    happens = [join, join, join, leave, send, fail_or_mend, lose_or_regain, wait, *told]
    for _ in range(120):
        draw.choice(happens)()
        for _, _step in zip(range(draw.randrange(6)), world.steps(), strict=False):
            pass
        if draw.random() < 0.5:
            follower.read()
        if draw.random() < 0.2:
            follower.agrees()
    world.settle()
    follower.agrees()


def test_a_switch_that_is_gone_stays_as_disconnected_until_it_is_back(make_world):
    world = make_world("leaf-spine")
    world.settle()
    world.now += 1.0
    follower = Follower(world).read()
    assert follower.known["status"]["status"]["ready"]
    dpid = world.hosts["h1"].dpid
    before = follower.known["switches"][str(dpid)]
    world.disconnect(dpid)
    world.settle()
    world.now += 1.0
    document = follower.read().known["switches"][str(dpid)]
    assert (document["connected"], document["in_sync"]) == (False, False)
    assert document["disconnected_s"] is not None
    assert (document["dpid"], document["tier"]) == (dpid, before["tier"])
    status = follower.known["status"]["status"]
    assert not status["ready"]
    assert status["not_ready_reason"] == f"switch {dpid:016x} is not connected"
    assert status["in_sync"]
    follower.agrees()
    world.reconnect(dpid)
    world.settle()
    world.now += 1.0
    assert follower.read().known["status"]["status"]["ready"]
    assert follower.known["switches"][str(dpid)] == before
    follower.agrees()


def test_a_switch_keeps_its_tier_whose_links_fail_before_its_connection_ends(make_world):
    world = make_world("leaf-spine")
    world.settle()
    world.now += 1.0
    follower = Follower(world).read()
    dpid = next(
        int(dpid) for dpid, document in follower.known["switches"].items() if document["tier"] == "aggregation"
    )
    for a, b in [sorted(pair) for pair in world.links if dpid in pair]:
        world.cut(a, b)
        world.settle()
        world.now += 1.0
        assert follower.read().known["switches"][str(dpid)]["tier"] == "aggregation"
    world.disconnect(dpid)
    world.settle()
    world.now += 1.0
    assert follower.read().known["switches"][str(dpid)]["tier"] == "aggregation"
    follower.agrees()


def test_a_switch_without_a_connection_is_named_while_it_counts_as_there(make_world):
    world = make_world("leaf-spine")
    world.settle()
    dpid = world.hosts["h1"].dpid
    world.feed(SwitchDisconnected(dpid))
    world.now += 1.0
    follower = Follower(world).read()
    assert not follower.known["switches"][str(dpid)]["connected"]
    assert follower.known["status"]["status"]["not_ready_reason"] == f"switch {dpid:016x} is not connected"


def test_an_operator_forgets_a_switch_that_is_gone(make_world):
    world = make_world("leaf-spine")
    world.settle()
    dpid = world.hosts["h1"].dpid
    refused = world.do("switch-forget", dpid=dpid)
    assert refused.text == f"dpid: switch {dpid:016x} is part of the fabric; only one that is gone can be forgotten"
    world.disconnect(dpid)
    world.settle()
    follower = Follower(world).read()
    assert world.do("switch-forget", dpid=dpid).document == {"dpid": dpid, "forgotten": True}
    world.now += 1.0
    follower.read()
    assert str(dpid) not in follower.known["switches"]
    assert follower.known["status"]["status"]["ready"]
    assert world.do("switch-forget", dpid=dpid).text == f"dpid: there is no switch {dpid:016x}"
    follower.agrees()


def test_a_switch_is_called_what_it_calls_itself_and_what_the_policy_calls_it(make_world):
    world = make_world("leaf-spine")
    world.settle()
    first, second = sorted(world.switches)[:2]
    follower = Follower(world).read()
    assert follower.known["switches"][str(first)]["name"] is None
    world.core.sections.described(first, description_of("s1"))
    world.core.sections.described(second, description_of("s2"))
    follower.read()
    assert follower.moved["switches"] == {str(first), str(second)}
    assert [follower.known["switches"][str(dpid)]["name"] for dpid in (first, second)] == ["s1", "s2"]
    named = NamedSwitch("leaf1", first, ((1, "uplink"),))
    world.feed(PolicyLoaded(replace(world.core.policy, switches=(named,))))
    follower.read()
    assert [follower.known["switches"][str(dpid)]["name"] for dpid in (first, second)] == ["leaf1", "s2"]
    assert follower.known["ports"][f"{first}:1"]["name"] == "uplink"
    world.disconnect(first)
    world.settle()
    world.now += 1.0
    follower.read()
    assert follower.known["status"]["status"]["not_ready_reason"] == "switch leaf1 is not connected"
    assert follower.known["switches"][str(first)]["name"] == "leaf1"
    follower.agrees()
    world.reconnect(first)
    world.disconnect(first)
    world.reconnect(first)
    texts = {event["text"] for event in follower.read().known["events"].values()}
    assert any(text.startswith("Switch leaf1 was gone for ") for text in texts)


def test_labels_of_the_policy_are_in_documents_of_switches_and_ports(make_world):
    labelled = (Labelled(1, None, (("pod", "2"),)), Labelled(1, 1, (("room", "a"),)))
    world = make_world("leaf-spine", replace(Policy(default_allow=True), labels=labelled))
    sections = world.core.sections
    sections.refresh(world.now)
    assert sections.switches.changes(0, 100)["put"]["1"]["labels"] == {"pod": "2"}
    assert sections.switches.changes(0, 100)["put"]["2"]["labels"] == {}
    assert sections.ports.changes(0, 100)["put"]["1:1"]["labels"] == {"room": "a"}
    world.feed(PolicyLoaded(replace(Policy(default_allow=True), labels=(Labelled(2, None, (("pod", "3"),)),))))
    assert sections.switches.changes(0, 100)["put"]["2"]["labels"] == {"pod": "3"}
    world.disconnect(2)
    assert sections.switches.changes(0, 100)["put"]["2"]["labels"] == {"pod": "3"}
