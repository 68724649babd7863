"""Hosts with Linux's own VLAN devices and bonding driver, as an operator's servers have them: those of a guest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest

from apps.emulation import guest_image
from apps.emulation.guest import KernelGuest
from apps.emulation.namespace import private_network
from apps.emulation.network import EmulatedFabric
from guest_hosts import guest_as_hosts, legs_in_step
from patience import HeldUp, wait_until
from required import leave_out
from topology.graph import Graph, NodeKind
from topology.mn import HOST_PREFIX
from vlan_hosts import named

pytestmark = [pytest.mark.emulation, pytest.mark.each_framework]

RATE_BPS, PACKETS_PER_S = 2e6, 200
LOST_WITH_A_LEG = 60
"""Of a stream, but for what comes while the controller, the switches and the guest have no processor."""

IN_STEP_S = 60.0
"""What LACP has to take a leg in or out: the guest's kernel looks at it once a second, and is emulated."""

SENDERS = {10: (1, "h1"), 20: (2, "h2"), 0: (3, "h3")}
"""The number of the stream of each domain, and the host at s2 that sends it."""

TRUNK, ONE_SWITCH, TWO_SWITCHES = "h4", "h5", "h6"
"""The guest's hosts: at a trunk port of s1, on a bond with two legs to s1, on one with legs to s1 and s2."""

INTERFACES = {TRUNK: "eth0", ONE_SWITCH: "one", TWO_SWITCHES: "two"}
LEGS = {TRUNK: ["g0"], ONE_SWITCH: ["g1", "g2"], TWO_SWITCHES: ["g3", "g4"]}
BONDS = (ONE_SWITCH, TWO_SWITCHES)
CABLES = {
    **{"h1": [("s2", 1)], "h2": [("s2", 2)], "h3": [("s2", 3)], TRUNK: [("s1", 1)]},
    **{ONE_SWITCH: [("s1", 2), ("s1", 3)], TWO_SWITCHES: [("s1", 4), ("s2", 4)]},
}

POLICY = """\
version: 1
default: allow
multicast: {querier: {query_interval_s: 20, response_interval_s: 1, last_member_interval_s: 0.2}}
link_aggregations:
  one: {mode: lacp, ports: [{dpid: 1, port: 2}, {dpid: 1, port: 3}]}
  two: {mode: lacp, ports: [{dpid: 1, port: 4}, {dpid: 2, port: 4}]}
vlans:
  ports:
    - {ports: [{dpid: 2, port: 1}], access: 10}
    - {ports: [{dpid: 2, port: 2}], access: 20}
    - {ports: [{dpid: 1, port: 1}], trunk: [10, 20], native: untagged}
    - {ports: [{dpid: 1, port: 4}, {dpid: 2, port: 4}], trunk: [10], native: untagged}
"""


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    graph = Graph()
    for name in ("s1", "s2"):
        graph.add_node(name, NodeKind.TOR)
    graph.add_node("s3", NodeKind.AGGREGATION)
    for tor in ("s1", "s2"):
        graph.add_link(tor, "s3", 10, None)
    for host, ends in CABLES.items():
        graph.add_node(host, NodeKind.HOST)
        for number, (tor, port_no) in enumerate(ends):
            graph.add_link(tor, host, port_no, number)
    return graph, {}


@pytest.fixture(scope="module")
def policy_between() -> str:
    return POLICY


@pytest.fixture(scope="module")
def guest() -> Iterator[KernelGuest]:
    if (why := guest_image.hindrance()) is not None:
        leave_out(why)
    with private_network():
        guest = KernelGuest([tap for taps in LEGS.values() for tap in taps])
        guest.start()
    try:
        yield guest
    finally:
        guest.close()


@pytest.fixture(scope="module")
def brought_up(guest: KernelGuest) -> Callable[[EmulatedFabric], AbstractContextManager[None]]:
    is_set_up: list[bool] = []

    def bring_up(fabric: EmulatedFabric) -> AbstractContextManager[None]:
        if not is_set_up:
            set_up(guest, fabric)
            is_set_up.append(True)
        return guest_as_hosts(guest, fabric, LEGS)

    return bring_up


def set_up(guest: KernelGuest, fabric: EmulatedFabric) -> None:
    """Have the guest's interfaces be those of its hosts, by what an operator would type."""
    guest.wait_booted()
    commands = []
    for number, (host, interface) in enumerate(INTERFACES.items()):
        node = fabric.node(host)
        if host in BONDS:
            commands.append(f"link add {interface} type bond mode 802.3ad miimon 100 xmit_hash_policy layer3+4")
            commands += [f"link set eth{int(tap[1:])} master {interface}" for tap in LEGS[host]]
        commands.append(f"link set {interface} address {node.MAC()} up")
        commands.append(f"address add {node.IP()}/{HOST_PREFIX} dev {interface} metric {100 + number}")
    for parent, vlan_id in (("eth0", 10), ("eth0", 20), ("two", 10)):
        commands.append(f"link add link {parent} name {parent}.{vlan_id} type vlan id {vlan_id}")
        commands.append(f"link set {parent}.{vlan_id} up")
        commands.append(f"address add 10.0.{vlan_id}.{4 if parent == 'eth0' else 6}/32 dev {parent}.{vlan_id}")
    for command in commands:
        guest.run("ip", *command.split())
    guest.write("/proc/sys/net/ipv4/conf/all/accept_local", "1")  # its hosts hear each other


class KernelHosts:
    """The fabric with the guest's hosts: their sockets are called by their interfaces."""

    def __init__(self, live: Any, guest: KernelGuest) -> None:
        self.live = live
        self.guest = guest

    def join(self, group: str, *interfaces: str) -> None:
        for interface in interfaces:
            self.guest.receiver.ask("join", name=f"{interface} {group}", interface=interface, group=group)

    def received(self) -> dict[str, Any]:
        """Return what each socket of the guest and of other hosts has received, once nothing more arrives."""
        fabric, receiver = self.live.fabric, self.guest.receiver
        return fabric.settled(received=lambda: receiver.ask("report") | fabric.received())

    def assert_received(self, owed: Mapping[int, Sequence[str]], phases: Mapping[int, int]) -> None:
        """Each socket has what was sent of its stream, once, and nothing of others.

        `owed` has the sockets of each stream; of each of the `phases` so many packets may be lost.
        """
        sent = self.guest.sender.ask("report") | self.live.fabric.sent()
        seen = self.received()
        for stream, names in owed.items():
            for name in names:
                assert {int(key.partition(":")[0]) for key in seen[name]["streams"]} == {stream}, name
                for phase, may_be_lost in phases.items():
                    tally = seen[name]["streams"][f"{stream}:{phase}"]
                    count = sent[str(stream)]["phases"][str(phase)]["sent"]
                    print(f"{name}, phase {phase}: {count - tally['received']} of {count} packets lost")
                    assert count > 0
                    assert tally["duplicates"] == 0, name
                    assert 0 <= count - tally["received"] <= max(may_be_lost, self.live.overruns()), name

    def stream(self, group: str, *domains: int) -> None:
        """Have the sender of each domain send (phase 0), and wait until it is known there."""
        for vlan_id in domains:
            number, host = SENDERS[vlan_id]
            self.live.fabric.open_stream(number, host, group, RATE_BPS, pattern="constant")
            self.live.fabric.send(0, streams=[number])
            self.wait_sender(named(group, vlan_id))

    def open_stream(self, number: int, group: str, interface: str, vlan_id: int = 0) -> None:
        """Have an interface of the guest send (phase 0), and wait until it is known as a sender in its domain."""
        sender = self.guest.sender
        sender.ask("open", stream=number, interface=interface, group=group, rate_bps=RATE_BPS, pattern="constant")
        sender.ask("phase", phase=0, duration_s=None, streams=[number])
        self.wait_sender(named(group, vlan_id))

    def send(self, phase: int, duration_s: float | None = None) -> None:
        """Go over to a phase on all streams, and where it has a duration wait for its end."""
        for sender in (self.live.fabric.sender, self.guest.sender):
            sender.ask("phase", phase=phase, duration_s=duration_s, streams=[])
        if duration_s is not None:
            for sender in (self.live.fabric.sender, self.guest.sender):
                sender.ask("wait", timeout_s=duration_s + 15)

    def halt(self) -> None:
        """End all streams."""
        for sender in (self.live.fabric.sender, self.guest.sender):
            sender.ask("halt")

    def wait_sender(self, name: str) -> None:
        def known(groups: list[dict[str, Any]]) -> bool:
            return any(document["group"] == name and document["senders"] for document in groups)

        self.live.controller.wait_until("groups", known)
        self.live.wait_ready()

    def wait_legs(self, *places: int) -> None:
        """Wait until these legs of each bond work, to its kernel and to the controller, and no other."""
        for host in BONDS:
            working = {f"eth{LEGS[host][place][1:]}" for place in places}
            in_step = partial(legs_in_step, self.guest, INTERFACES[host])
            wait_until(lambda in_step=in_step, working=working: in_step() == working, self.guest.pid, IN_STEP_S)
        away = sum(len(LEGS[host]) - len(places) for host in BONDS)
        self.live.wait_ready(edge_ports=self.live.fabric.host_link_count() - away)


@pytest.fixture
def hosts(live: Any, guest: KernelGuest) -> Iterator[KernelHosts]:
    found = KernelHosts(live, guest)
    found.wait_legs(0, 1)
    yield found
    guest.receiver.ask("clear")
    guest.sender.ask("clear")


def test_each_vlan_device_is_a_member_in_its_own_vlan(hosts: KernelHosts, group: str) -> None:
    hosts.join(group, "eth0", "eth0.10", "eth0.20", "two.10")
    for vlan_id, members in ((0, {TRUNK}), (10, {TRUNK, TWO_SWITCHES}), (20, {TRUNK})):
        hosts.live.wait_members(named(group, vlan_id), members)
    hosts.stream(group, 10, 20, 0)
    hosts.send(1, 0.5)
    members = {1: ("eth0.10", "two.10"), 2: ("eth0.20",), 3: ("eth0",)}
    hosts.assert_received(
        {number: [f"{name} {group}" for name in names] for number, names in members.items()}, {1: 0}
    )
    hosts.guest.receiver.ask("leave", name=f"eth0.10 {group}")
    hosts.live.wait_members(named(group, 10), {TWO_SWITCHES})
    hosts.live.wait_members(named(group, 20), {TRUNK})


def test_what_a_vlan_device_sends_stays_in_its_vlan(hosts: KernelHosts, group: str) -> None:
    for vlan_id, (_, host) in SENDERS.items():
        hosts.live.fabric.join(host, group)
        hosts.live.wait_members(named(group, vlan_id), {host})
    hosts.join(group, "two.10", "two")
    hosts.live.wait_members(named(group, 10), {"h1", TWO_SWITCHES})
    hosts.open_stream(9, group, "eth0.10", vlan_id=10)
    hosts.send(1, 0.5)
    hosts.assert_received({9: [f"h1 {group}", f"two.10 {group}"]}, {1: 0})
    seen = hosts.received()
    assert [seen[f"{name} {group}"]["streams"] for name in ("h2", "h3", "two")] == [{}, {}, {}]


def test_bonds_get_and_send_one_copy_whichever_leg_works(hosts: KernelHosts, group: str) -> None:
    """Both bonds get a stream of h3's, and send one each to it, while one leg of theirs after the other is pulled."""
    to_h3 = {8: (ONE_SWITCH, f"{group}8"), 9: (TWO_SWITCHES, f"{group}9")}
    owed = {number: [f"h3 {own_group}"] for number, (_, own_group) in to_h3.items()}
    owed[3] = [f"{INTERFACES[host]} {group}" for host in BONDS]
    hosts.join(group, *(INTERFACES[host] for host in BONDS))
    hosts.live.wait_members(group, set(BONDS))
    hosts.stream(group, 0)
    for number, (host, own_group) in to_h3.items():
        hosts.live.join(own_group, "h3")
        hosts.open_stream(number, own_group, INTERFACES[host])
        for leg in LEGS[host]:
            hosts.guest.receiver.ask("tap", name=leg, interface=f"eth{leg[1:]}")
    hosts.send(1, 0.5)
    hosts.assert_received(owed, {1: 0})
    for phase, place in ((2, 0), (5, 1)):
        hosts.send(phase)
        held_up = HeldUp(hosts.live.controller.pid, hosts.live.fabric.ovs.vswitchd_pid, hosts.guest.pid)
        for host in BONDS:
            hosts.guest.pull(LEGS[host][place])
        hosts.wait_legs(1 - place)
        may_be_lost = LOST_WITH_A_LEG + int(held_up.seconds() * PACKETS_PER_S)
        hosts.send(phase + 1, 0.5)
        hosts.send(phase + 2)
        for host in BONDS:
            hosts.guest.put_back(LEGS[host][place])
        hosts.wait_legs(0, 1)
        hosts.halt()
        hosts.assert_received(owed, {phase: may_be_lost, phase + 1: 0, phase + 2: 0})
    own = {own_group for _, own_group in to_h3.values()}
    heard = hosts.received()
    assert not any(own & set(heard[leg]["groups"]) for host in BONDS for leg in LEGS[host]), "it came back"
