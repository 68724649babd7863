"""Whatever happens on the way, the outcome is that of the wiring; whatever the bytes, nothing raises."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.discovery.settings import DiscoverySettings
from controller.wire.arp import encode_arp
from controller.wire.lldp import encode_lldp
from controller.wire.packets import Arp
from topology.events import HostLearnt, LinkDown, LinkUp, PortRole, SwitchDown, SwitchUp

PORTS = tuple(range(1, 6))
CALM = DiscoverySettings(flap_burst_count=1000)


@st.composite
def wirings(draw):
    """Switches, and cables between random ports of them; every port has at most one."""
    count = draw(st.integers(2, 5))
    ends = draw(st.permutations([(dpid, port_no) for dpid in range(1, count + 1) for port_no in PORTS]))
    cables = draw(st.integers(1, min(8, len(ends) // 2)))
    return count, [(ends[2 * n], ends[2 * n + 1]) for n in range(cables)]


def expected_links(cables):
    return {(*min(a, b), *max(a, b)) for a, b in cables if a[0] != b[0]}


def found_links(world):
    return {(link.u, link.u_port, link.v, link.v_port) for link in world.fabric.graph.links()}


@settings(max_examples=100, deadline=None)
@given(wirings(), st.randoms(use_true_random=False))
def test_links_are_those_of_the_wiring_whatever_happened(make_world, wiring, random):
    count, cables = wiring
    world = make_world(CALM)
    for a, b in cables:
        world.cable(a, b)
    order = list(range(1, count + 1))
    random.shuffle(order)
    for dpid in order:
        world.connect(dpid, PORTS)
        world.run(random.choice([0.0, 0.02, 0.7]))
    for _ in range(random.randint(0, 12)):
        kind = random.choice(["link", "port", "switch", "run"])
        cable = random.choice(cables)
        if kind == "link":
            world.link(cable[0], up=False)
            world.run(random.choice([0.0, 0.1]))
            world.link(cable[0], up=True)
        elif kind == "port":
            world.port(cable[1], up=False)
            world.port(cable[1], up=True)
        elif kind == "switch":
            dpid = random.randint(1, count)
            world.disconnect(dpid)
            world.run(random.choice([0.0, 1.0, 11.0]))
            world.connect(dpid, PORTS)
        else:
            world.run(random.choice([0.01, 3.0]))
    world.run(10.0)
    assert found_links(world) == expected_links(cables)
    wired = {end for cable in cables for end in cable}
    looped = {end for cable in cables for end in cable if cable[0][0] == cable[1][0]}
    for dpid in range(1, count + 1):
        for port_no in PORTS:
            end = (dpid, port_no)
            role = PortRole.UNKNOWN if end in looped else PortRole.TRUNK if end in wired else PortRole.EDGE
            assert world.fabric.role(*end) is role, end
    assert world.core.fabric.snapshot() == world.fabric.snapshot()


@settings(max_examples=60, deadline=None)
@given(wirings(), st.randoms(use_true_random=False))
def test_events_come_in_an_order_that_makes_sense(make_world, wiring, random):
    """A link never outlives its switches, nor a host its port."""
    count, cables = wiring
    world = make_world(CALM)
    for a, b in cables:
        world.cable(a, b)
    for dpid in range(1, count + 1):
        world.connect(dpid, PORTS)
    world.run(1.0)
    free = [
        (dpid, port_no)
        for dpid in range(1, count + 1)
        for port_no in PORTS
        if world.fabric.role(dpid, port_no) is PortRole.EDGE
    ]
    for n, end in enumerate(free[:4]):
        mac = b"\x02\0\0\0\0" + bytes((n,))
        world.host(mac, end, b"\x0a\0\0" + bytes((n + 1,)))
        world.say(mac, b"\x0a\0\0" + bytes((n + 1,)))
    for _ in range(6):
        dpid = random.randint(1, count)
        world.disconnect(dpid)
        world.run(random.choice([0.1, 11.0]))
        world.connect(dpid, PORTS)
        world.port((dpid, random.choice(PORTS)), up=random.random() < 0.5)
        world.run(random.choice([0.0, 1.0]))
    switches: set[int] = set()
    links: set[tuple[int, ...]] = set()
    hosts: dict[bytes, int] = {}
    for event in world.events:
        if isinstance(event, SwitchUp):
            switches.add(event.dpid)
        elif isinstance(event, SwitchDown):
            assert event.dpid in switches
            assert not any(event.dpid in link[::2] for link in links)
            assert event.dpid not in hosts.values()
            switches.discard(event.dpid)
        elif isinstance(event, LinkUp):
            assert {event.dpid_a, event.dpid_b} <= switches
            links.add(event[:4])
        elif isinstance(event, LinkDown):
            links.remove(event)
        elif isinstance(event, HostLearnt):
            assert event.dpid in switches
            assert hosts.setdefault(event.mac, event.dpid) == event.dpid, "HostGone comes between two places"
        elif hasattr(event, "mac"):
            del hosts[event.mac]


ANY_ENDS = st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3), (9, 1), (1, 0xFFFFFFFE)])
PAUSES_S = st.sampled_from([0.0, 0.3, 2.0])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_bytes_raise(make_world, data):
    world = make_world(DiscoverySettings(hosts_per_port=4, addresses_per_host=2, challenges=2))
    world.cable((1, 1), (2, 1))
    world.connect(1)
    world.connect(2)
    world.run(1.0)
    mac = b"\x02\0\0\0\0\x01"
    seeds = [
        encode_lldp(1, 1, bytes(16)),
        encode_lldp(1 << 63, 0xFFFFFFFF, b"x"),
        encode_arp(Arp(mac, b"\xff" * 6, 1, mac, b"\x0a\0\0\1", bytes(6), b"\x0a\0\0\2")),
        *(packet.data for packet in world.sent[-2:]),
    ]
    frames = st.sampled_from(seeds) | st.binary(max_size=80)
    for _ in range(12):
        frame = bytearray(data.draw(frames))
        for _ in range(data.draw(st.integers(0, 3))):
            if frame:
                frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
        end = data.draw(ANY_ENDS)
        world.frame(end, bytes(frame))
        world.run(data.draw(PAUSES_S))
    assert world.links() <= {(1, 2)}
    for host in world.fabric.hosts():
        assert len(host.addresses) <= 2
        assert world.fabric.role(host.dpid, host.port_no) is PortRole.EDGE
