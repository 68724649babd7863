"""ARP and neighbour discovery by proxy, relays and their bounds, and packets that missed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.discovery.settings import DiscoverySettings
from controller.rules.pipeline import LOCATION, UNICAST
from controller.unicast.relays import MAX_HOMES_COUNT
from controller.unicast.settings import UnicastSettings
from controller.wire.addresses import ALL_NODES_V6, BROADCAST_MAC, group_mac, solicited_node
from controller.wire.arp import encode_arp
from controller.wire.ethernet import encode_ethernet
from controller.wire.frame import decode
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Arp, Neighbour
from controller.wire.udp import encode_udp
from topology.events import HostGone, HostLearnt, PortRole, PortRoleChanged

CABLES = [(1, 1, 2, 1), (2, 2, 3, 1), (3, 2, 1, 2)]
ENDS = [(dpid, port_no) for dpid in (1, 2, 3) for port_no in (5, 6)]
STRANGER = b"\x02\0\0\0\x77\x77"


@pytest.fixture
def hosts(make_host):
    return [make_host(n, *end) for n, end in enumerate(ENDS, 1)]


@pytest.fixture
def bench(make_bench, hosts):
    bench = make_bench()
    bench.build(CABLES, ENDS)
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    return bench


def end(host):
    return (host.dpid, host.port_no)


def arp(host, target_ip, eth_dst=BROADCAST_MAC, sender_ip=None):
    sender_ip = host.addresses[0] if sender_ip is None else sender_ip
    return encode_arp(Arp(host.mac, eth_dst, 1, host.mac, sender_ip, bytes(6), target_ip))


def arp_answer(host, asker):
    return encode_arp(Arp(host.mac, asker.mac, 2, host.mac, host.addresses[0], asker.mac, asker.addresses[0]))


def solicit(host, target, source=None, eth_dst=None):
    source = host.addresses[1] if source is None else source
    group = solicited_node(target)
    mac = host.mac if any(source) else None
    return encode_neighbour(Neighbour(host.mac, eth_dst or group_mac(group), source, group, True, target, mac))


def advertise(host, asker=None, router=False):
    if asker is None:
        packet = Neighbour(
            host.mac, group_mac(ALL_NODES_V6), host.addresses[1], ALL_NODES_V6, False, host.addresses[1], host.mac
        )
    else:
        packet = Neighbour(
            host.mac, asker.mac, host.addresses[1], asker.addresses[1], False, host.addresses[1], host.mac
        )
    frame = encode_neighbour(packet)
    if router:
        flagged = bytearray(frame)
        flagged[58] |= 0x80
        checksum = int.from_bytes(flagged[56:58], "big") - 0x8000
        flagged[56:58] = (checksum if checksum > 0 else checksum + 0xFFFF).to_bytes(2, "big")
        frame = bytes(flagged)
        assert isinstance(decode(frame), Neighbour)
    return frame


def targets(sent):
    return {(packet.dpid, port_no) for packet in sent for port_no in packet.ports}


def test_arp_for_a_known_host_is_answered_by_proxy(bench, hosts):
    (answer,) = bench.frame(end(hosts[0]), arp(hosts[0], hosts[3].addresses[0]))
    assert (answer.dpid, answer.ports) == (hosts[0].dpid, (hosts[0].port_no,))
    assert decode(answer.data) == Arp(
        hosts[3].mac, hosts[0].mac, 2, hosts[3].mac, hosts[3].addresses[0], hosts[0].mac, hosts[0].addresses[0]
    )


def test_no_answer_before_the_entries_there_and_back_are_in_place(make_bench, hosts):
    bench = make_bench()
    bench.build(CABLES, ENDS)
    bench.hold = []
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    assert bench.frame(end(hosts[0]), arp(hosts[0], hosts[3].addresses[0])) == []
    bench.confirm()
    (answer,) = bench.sent
    assert decode(answer.data).sender_mac == hosts[3].mac


@pytest.mark.parametrize("slow", [1, 2, 3])
@pytest.mark.parametrize("latecomer", ["asker", "responder"])
def test_an_answer_waits_for_every_switch_there_and_back(make_bench, make_host, slow, latecomer):
    """Whoever's entries are new, those to the asker or those to the responder, and whichever switch is last."""
    bench = make_bench()
    bench.build([(1, 1, 2, 1), (2, 2, 3, 1)], [(1, 5), (3, 5)])
    asker, responder = make_host(1, 1, 5), make_host(2, 3, 5)
    bench.feed(responder if latecomer == "asker" else asker)
    bench.run(0.1)
    bench.hold = []
    bench.feed(asker if latecomer == "asker" else responder)
    bench.run(0.1)
    assert bench.frame(end(asker), arp(asker, responder.addresses[0])) == []
    while prompt := [reply for reply in bench.hold if reply.dpid != slow]:
        bench.hold.remove(prompt[0])
        bench.feed(prompt[0])
    assert bench.sent == [], f"switch {slow} has confirmed nothing yet"
    bench.confirm()
    assert [decode(packet.data).sender_mac for packet in bench.sent] == [responder.mac]


def test_an_asker_that_is_not_learnt_yet_is_answered_once_it_is(bench, make_host, hosts):
    asker = make_host(9, 1, 5)
    assert bench.frame(end(asker), arp(asker, hosts[3].addresses[0])) == []
    bench.feed(asker)
    bench.run(0.1)
    assert [decode(packet.data).target_mac for packet in bench.sent] == [asker.mac]


def test_an_asker_that_is_learnt_after_a_restart_is_answered_though_no_entry_is_missing(bench, make_bench, hosts):
    asker, responder = hosts[0], hosts[5]
    bench.meet([asker, responder])
    new = make_bench()
    new.rules, new.other_end = bench.rules, bench.other_end
    new.build(CABLES, ENDS)
    for host in hosts[1:]:
        new.feed(host)
    new.run(0.1)
    new.edits = 0
    assert new.frame(end(asker), arp(asker, responder.addresses[0])) == []
    new.feed(asker)
    new.run(0.1)
    assert [decode(packet.data).sender_mac for packet in new.sent] == [responder.mac]
    assert new.edits == 0


def test_arp_for_an_unknown_host_goes_to_all_other_edge_ports_and_its_answer_back(bench, hosts):
    missing = hosts[3]
    bench.feed(HostGone(*missing[:3]))
    bench.run(0.1)
    question = arp(hosts[0], missing.addresses[0])
    sent = bench.frame(end(hosts[0]), question)
    assert targets(sent) == set(ENDS) - {end(hosts[0])}
    assert {packet.data for packet in sent} == {question}
    assert bench.frame(end(missing), arp_answer(missing, hosts[0])) == [], "not before it can be reached"
    bench.feed(missing)
    bench.run(0.1)
    (answer,) = bench.sent[len(sent) :]
    assert answer.data == arp_answer(missing, hosts[0])
    assert targets([answer]) == {end(hosts[0])}


def test_an_answer_of_a_host_that_is_never_learnt_gets_through_late(bench, hosts, make_host):
    bench.frame(end(hosts[0]), arp(hosts[0], b"\x0a\x09\x09\x09"))
    odd = make_host(9, 2, 5)._replace(addresses=(b"\x0a\x09\x09\x09",))
    before = len(bench.sent)
    bench.frame(end(odd), arp_answer(odd, hosts[0]))
    assert len(bench.sent) == before
    bench.run(5.0)
    assert [packet.data for packet in bench.sent[before:]] == [arp_answer(odd, hosts[0])]


def test_a_unicast_question_goes_to_its_holder_and_is_not_answered_for_it(bench, hosts):
    question = arp(hosts[0], hosts[3].addresses[0], eth_dst=hosts[3].mac)
    (passed,) = bench.frame(end(hosts[0]), question)
    assert (targets([passed]), passed.data) == ({end(hosts[3])}, question)
    (answer,) = bench.frame(end(hosts[3]), arp_answer(hosts[3], hosts[0]))
    assert targets([answer]) == {end(hosts[0])}


def test_an_address_probe_goes_to_the_holder_alone_or_to_all(bench, hosts, make_host):
    new = make_host(9, 2, 5)
    probe = arp(new, hosts[0].addresses[0], sender_ip=bytes(4))
    assert targets(bench.frame(end(new), probe)) == {end(hosts[0])}
    assert targets(bench.frame(end(new), arp(new, b"\x0a\x09\0\0", sender_ip=bytes(4)))) == set(ENDS) - {end(new)}
    assert bench.frame(end(hosts[0]), arp(hosts[0], hosts[0].addresses[0], sender_ip=bytes(4))) == []


def test_neighbour_solicitations_reach_the_holder_and_then_are_answered_by_proxy(bench, hosts):
    target = hosts[3].addresses[1]
    question = solicit(hosts[0], target)
    (passed,) = bench.frame(end(hosts[0]), question)
    assert (targets([passed]), passed.data) == ({end(hosts[3])}, question)
    (answer,) = bench.frame(end(hosts[3]), advertise(hosts[3], hosts[0]))
    assert targets([answer]) == {end(hosts[0])}
    (proxied,) = bench.frame(end(hosts[1]), solicit(hosts[1], target))
    assert targets([proxied]) == {end(hosts[1])}
    answer = decode(proxied.data)
    assert (answer.solicitation, answer.target, answer.mac, answer.eth_dst) == (
        False,
        target,
        hosts[3].mac,
        hosts[1].mac,
    )
    assert proxied.data[58] == 0x60, "solicited and override, no router"


def test_a_router_answers_for_itself(bench, hosts):
    target = hosts[3].addresses[1]
    bench.frame(end(hosts[3]), advertise(hosts[3], hosts[0], router=True))
    question = solicit(hosts[1], target)
    (passed,) = bench.frame(end(hosts[1]), question)
    assert (targets([passed]), passed.data) == ({end(hosts[3])}, question)


def test_duplicate_address_detection_hears_the_holder_and_nobody_else(bench, hosts, make_host):
    new = make_host(9, 2, 5)
    taken = hosts[3].addresses[1]
    assert targets(bench.frame(end(new), solicit(new, taken, source=bytes(16)))) == {end(hosts[3])}
    (defence,) = bench.frame(end(hosts[3]), advertise(hosts[3]))
    assert targets([defence]) == {end(new)}
    free = b"\xfe\x80" + bytes(12) + b"\x09\x09"
    assert targets(bench.frame(end(new), solicit(new, free, source=bytes(16)))) == set(ENDS) - {end(new)}
    bench.run(10.0)
    assert bench.frame(end(hosts[0]), solicit(hosts[0], hosts[0].addresses[1], source=bytes(16))) == []


def test_announcements_are_relayed_once_they_hold(bench, hosts):
    owner, heir = hosts[0], hosts[4]
    address = owner.addresses[0]
    assert targets(bench.frame(end(owner), arp(owner, address))) == set(ENDS) - {end(owner)}
    frame = arp(heir, address, sender_ip=address)
    assert bench.frame(end(heir), frame) == []
    bench.feed(owner._replace(addresses=()))
    before = len(bench.sent)
    bench.feed(heir._replace(addresses=(*heir.addresses, address)))
    assert targets(bench.sent[before:]) == set(ENDS) - {end(heir)}


def test_false_senders_are_neither_answered_nor_relayed(bench, hosts):
    liar = hosts[0]
    for frame in (
        arp(liar, hosts[3].addresses[0], sender_ip=hosts[1].addresses[0]),
        arp(hosts[1], hosts[3].addresses[0]),
        arp(liar, b"\x0a\x09\x09\x09", sender_ip=hosts[1].addresses[0]),
        encode_arp(
            Arp(liar.mac, BROADCAST_MAC, 1, hosts[1].mac, hosts[1].addresses[0], bytes(6), hosts[3].addresses[0])
        ),
        encode_arp(
            Arp(liar.mac, hosts[3].mac, 2, liar.mac, hosts[1].addresses[0], hosts[3].mac, hosts[3].addresses[0])
        ),
    ):
        assert bench.frame(end(liar), frame) == []
    bench.run(10.0)
    assert bench.sent == []
    assert bench.core.counters["resolution-spoofed"] == 5


def test_nothing_is_answered_at_ports_that_are_not_for_hosts(bench, hosts):
    assert bench.frame((1, 1), arp(hosts[0], hosts[3].addresses[0])) == []
    bench.feed(PortRoleChanged(1, 5, PortRole.UNKNOWN))
    assert bench.frame((1, 5), arp(hosts[0], hosts[3].addresses[0])) == []


def test_hosts_behind_one_port_are_left_to_themselves(bench, make_host, hosts):
    neighbour = make_host(9, *end(hosts[0]))
    bench.feed(neighbour)
    bench.run(0.1)
    assert bench.frame(end(hosts[0]), arp(hosts[0], neighbour.addresses[0])) == []


def test_tagged_questions_and_packets_are_left(bench, hosts):
    for frame in (arp(hosts[0], hosts[3].addresses[0]), udp(hosts[0], hosts[3])):
        assert bench.frame(end(hosts[0]), frame)
        assert bench.frame(end(hosts[0]), frame[:12] + b"\x81\0\0\x05" + frame[12:]) == []


def udp(source, target, eth_dst=None):
    return encode_udp(source.mac, source.addresses[0], target.addresses[0], b"x", eth_dst=eth_dst or target.mac)


def test_a_packet_that_missed_is_delivered_once(bench, hosts):
    frame = udp(hosts[0], hosts[3])
    (delivered,) = bench.frame(end(hosts[0]), frame)
    assert (targets([delivered]), delivered.data) == ({end(hosts[3])}, frame)
    assert bench.frame(end(hosts[3]), udp(hosts[0], hosts[3])) == [], "a false sender"


def test_an_unknown_destination_is_dropped_and_looked_for_now_and_then(bench, hosts):
    bench.feed(HostGone(*hosts[3][:3]))
    bench.run(0.1)
    sent = bench.frame(end(hosts[0]), udp(hosts[0], hosts[3]))
    assert targets(sent) == set(ENDS) - {end(hosts[0])}
    question = decode(sent[0].data)
    assert (question.target_ip, question.sender_ip) == (hosts[3].addresses[0], bytes(4))
    assert bench.frame(end(hosts[0]), udp(hosts[0], hosts[3])) == []
    bench.run(1.5)
    assert bench.frame(end(hosts[1]), udp(hosts[1], hosts[3])) != []
    assert bench.frame((2, 5), sent[0].data) == [], "the question does not go round"


def test_a_port_that_floods_unknown_hosts_is_guarded_for_a_while(bench, hosts):
    base = bench.host_rules()
    for n in range(3000):
        target = hosts[3]._replace(
            mac=STRANGER[:4] + n.to_bytes(2, "big"), addresses=(b"\x0b\0" + n.to_bytes(2, "big"),)
        )
        bench.frame(end(hosts[0]), udp(hosts[0], target))
    guards = {(dpid, rule) for dpid, rule in bench.host_rules() - base if rule.hard_timeout_s}
    assert {rule.key.table for _dpid, rule in guards} == {UNICAST, LOCATION}
    for dpid, guard in guards:
        assert (dpid, guard.key.match.in_port, guard.actions) == (*end(hosts[0]), ())
        others = [rule.key for _dpid, rule in base if rule.key.table == guard.key.table]
        hosts_or_labels = [key.priority for key in others if key.match.eth_dst and key.match.eth_dst[0] & 1 == 0]
        assert guard.key.priority < min(hosts_or_labels), "known hosts are served all the while"
    limits = UnicastSettings()
    assert len(bench.sent) <= 3 * limits.relay_burst_count
    bench.run(1.5)
    assert bench.host_rules() & guards == set()
    assert bench.frame(end(hosts[1]), udp(hosts[1], hosts[3])) != []


def test_broadcasts_go_to_all_other_edge_ports_and_do_not_go_round(bench, hosts):
    frame = encode_udp(STRANGER, bytes(4), b"\xff" * 4, b"discover", eth_dst=BROADCAST_MAC)
    sent = bench.frame(end(hosts[0]), frame)
    assert targets(sent) == set(ENDS) - {end(hosts[0])}
    assert bench.frame(end(hosts[2]), frame) == [], "a wire between two edge ports makes no loop"
    assert bench.frame(end(hosts[2]), encode_ethernet(BROADCAST_MAC, hosts[0].mac, 0x0800, frame[14:])) == []
    assert bench.frame((1, 1), frame) == []


def test_relays_are_bounded_per_port(bench, hosts):
    for n in range(1000):
        bench.frame(end(hosts[0]), arp(hosts[0], b"\x0c\0" + n.to_bytes(2, "big")))
    limits = UnicastSettings()
    assert len(bench.sent) <= 3 * (limits.relay_burst_count + 1)
    assert bench.core.counters["relay-limit"] > 0
    assert bench.core.counters["ask-limit"] > 0
    assert bench.frame(end(hosts[1]), arp(hosts[1], hosts[3].addresses[0])) != []
    bench.run(10.0)
    before = len(bench.sent)
    assert len(bench.frame(end(hosts[0]), arp(hosts[0], b"\x0c\0\0\0"))) + before > before


def broadcast(mac):
    return encode_udp(mac, bytes(4), b"\xff" * 4, b"discover", eth_dst=BROADCAST_MAC)


def test_a_port_that_makes_up_senders_takes_no_place_of_others_beyond_its_bound(make_bench):
    """What is not relayed cannot come back from elsewhere, so nothing has to be remembered of it."""
    bench = make_bench(
        UnicastSettings(relay_burst_count=2, relay_rate_per_s=1.0, miss_burst_count=2 * MAX_HOMES_COUNT)
    )
    bench.build(CABLES, ENDS)
    first, second, third = ENDS[:3]
    for n in range(MAX_HOMES_COUNT):
        bench.frame(first, broadcast(b"\x02\xee" + n.to_bytes(4, "big")))
    assert bench.core.counters["relay-limit"] == MAX_HOMES_COUNT - 2
    assert bench.frame(first, broadcast(STRANGER)) == []
    assert targets(bench.frame(second, broadcast(STRANGER))) == set(ENDS) - {second}
    assert bench.frame(third, broadcast(STRANGER)) == [], "it came back"


def test_a_sender_whose_broadcast_was_over_the_bound_of_all_ports_is_heard_at_its_next_port(make_bench):
    bench = make_bench(UnicastSettings(relay_total_burst_count=4, relay_total_rate_per_s=4.0))
    bench.build(CABLES, ENDS)
    first, second, third = ENDS[:3]
    assert bench.frame(first, broadcast(b"\x02\xee\0\0\0\1"))
    assert bench.frame(first, broadcast(STRANGER)) == []
    bench.run(2.0)
    assert bench.frame(second, broadcast(STRANGER))
    assert bench.frame(third, broadcast(STRANGER)) == [], "it came back"


def test_ports_that_send_much_to_everybody_leave_relays_to_the_others(make_bench, make_host, make_fattree):
    cables, ends = make_fattree(8)
    bench = make_bench()
    bench.build(cables, ends)
    hosts = [make_host(n, *place) for n, place in enumerate(ends, 1)]
    for host in hosts:
        bench.feed(host)
    bench.run(0.1)
    loud, quiet = hosts[:8], hosts[-1]
    heard = []
    for n in range(20):
        for m in range(50):
            bench.run(1 / 50)
            for host in loud:
                bench.frame(end(host), arp(host, bytes((12, n, m, host.port_no))))
        heard.append(bool(bench.frame(end(quiet), arp(quiet, bytes((13, 0, 0, n))))))
    assert bench.core.counters["relay-limit"] > 0
    assert all(heard)


ANY_ENDS = st.sampled_from([*ENDS, (1, 1), (9, 9), (1, 0xFFFFFFFE)])
PAUSES_S = st.sampled_from([0.0, 0.01, 4.0])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_bytes_raise(make_bench, make_host, data):
    bench = make_bench()
    bench.build(CABLES, ENDS)
    hosts = [make_host(n, *where) for n, where in enumerate(ENDS, 1)]
    for host in hosts[:3]:
        bench.feed(host)
    seeds = [
        arp(hosts[0], hosts[1].addresses[0]),
        arp(hosts[0], hosts[0].addresses[0]),
        arp_answer(hosts[1], hosts[0]),
        solicit(hosts[0], hosts[1].addresses[1]),
        advertise(hosts[1]),
        advertise(hosts[1], hosts[0]),
        udp(hosts[0], hosts[5]),
    ]
    frames = st.sampled_from(seeds) | st.binary(max_size=90)
    for _ in range(10):
        frame = bytearray(data.draw(frames))
        for _ in range(data.draw(st.integers(0, 3))):
            if frame:
                frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
        where = data.draw(ANY_ENDS)
        bench.frame(where, bytes(frame))
        bench.run(data.draw(PAUSES_S))
    assert all(isinstance(host, HostLearnt) for host in bench.core.fabric.hosts())


def test_nobody_makes_a_host_answer_more_than_its_port_may_say(bench, hosts):
    """Its answers count towards the guard of its port, which would drop its own ARP and ND too."""
    victim, asked = hosts[-1], 0
    for n in range(3000):
        asker = hosts[n % 4]
        probe = (
            arp(asker, victim.addresses[0], sender_ip=bytes(4))
            if n % 2
            else arp(asker, victim.addresses[0], victim.mac)
        )
        asked += len(bench.frame(end(asker), probe))
        bench.run(0.001)
    guard = DiscoverySettings()
    assert 100 < asked < guard.guard_burst_count
    assert bench.core.counters["question-limit"] > 0
    assert bench.frame(end(hosts[0]), arp(hosts[0], victim.addresses[0])) != [], "the proxy answers all the while"


def packets_that_teach_nothing():
    host = HostLearnt(STRANGER, 1, 5, (b"\x0a\0\x77\x77",))
    other = host._replace(mac=STRANGER[:5] + b"\x78", addresses=(b"\x0a\0\x77\x78",))
    sound = udp(host, other)
    yield "of the controller's own address", sound[:6] + UnicastSettings().controller_mac + sound[12:]
    yield "with a false checksum", sound[:24] + b"\0\0" + sound[26:]
    yield "from a group", sound[:6] + b"\3" + sound[7:]
    yield "to an Ethernet group", b"\3" + sound[1:]


@pytest.mark.parametrize("frame", [pytest.param(frame, id=name) for name, frame in packets_that_teach_nothing()])
def test_a_flood_of_packets_to_unknown_hosts_is_cut_whatever_they_look_like(bench, hosts, frame):
    base = bench.host_rules()
    for _ in range(1000):
        bench.frame(end(hosts[0]), frame)
    guards = bench.host_rules() - base
    assert {(guard.key.match.in_port, guard.actions) for _, guard in guards} == {(hosts[0].port_no, ())}


def test_who_asks_before_its_port_is_known_to_lead_to_hosts_is_not_told_of(bench, hosts):
    bench.feed(PortRoleChanged(1, 5, PortRole.UNKNOWN))
    assert bench.frame((1, 5), arp(hosts[0], hosts[5].addresses[0])) == []
    assert (bench.notices, bench.core.counters["resolution-early"]) == ([], 1)
    assert bench.frame((1, 1), arp(hosts[0], hosts[5].addresses[0])) == []
    assert [notice.kind for notice in bench.notices] == ["resolution-off-edge"], "a trunk is another thing"
    bench.feed(PortRoleChanged(1, 5, PortRole.EDGE))
    bench.feed(hosts[0])
    bench.run(0.1)
    assert bench.frame((1, 5), arp(hosts[0], hosts[5].addresses[0])) != []
