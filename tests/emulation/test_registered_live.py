"""Multicast VLAN registration on switches: one copy on the link to a switch, whatever VLANs its receivers are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from apps.emulation import traffic
from apps.emulation.namespace import network_of
from controller.wire.addresses import format_ip
from controller.wire.ethernet import without_tag
from controller.wire.frame import decode
from controller.wire.packets import Data
from topology.graph import Graph
from vlan_hosts import add_interfaces, join, named, port_lines

pytestmark = pytest.mark.emulation

RATE_BPS = 4e6  # 400 packets/s
SOURCE, HOME, SHOP = 100, 20, 30
ACCESS = {"h1": SOURCE, "h2": SOURCE, "h3": HOME, "h5": HOME, "h6": SHOP, "h7": SOURCE}
TRUNKS = {"h8": (HOME, SHOP)}
"""The VLANs of the hosts' ports; h4 is in the fabric's own domain."""

RECEIVERS = ("h2", "h3", "h4", "h5", "h6", "h7", "h8.20", "h8.30")
BEYOND = ("h5", "h6", "h7", "h8.20", "h8.30")
"""Receivers at s2, the far switch."""

MEMBERS = {HOME: {"h3", "h5", "h8"}, SHOP: {"h6", "h8"}, SOURCE: {"h2", "h7"}, 0: {"h4"}}
LINE = f"""\
  mvr:
    - {{source_vlan: tv, groups: [239.0.0.0/8, "ff1e::/16"], receiver_vlans: [home, {SHOP}, untagged]}}
"""
POLICY = """\
version: 1
default: allow
multicast: {querier: {query_interval_s: 20, response_interval_s: 1, last_member_interval_s: 0.2}}
vlans:
  names: {100: tv, 20: home}
  ports:
"""


@pytest.fixture(scope="module", params=["OpenFlow13", "OpenFlow10"])
def bench(wide_diamond: Graph, request: pytest.FixtureRequest) -> tuple[Graph, dict[str, Any]]:
    return wide_diamond, {"protocols": request.param}


@pytest.fixture
def registered(live: Any) -> Any:
    """The fabric with its ports in their VLANs, and the line that registers the others with the source VLAN."""
    live.set_policy(policy(live) + LINE)
    add_interfaces(live, TRUNKS)
    live.wait_ready()
    return live


def policy(live: Any) -> str:
    return POLICY + port_lines(live, ACCESS, TRUNKS)


def join_everywhere(live: Any, group: str) -> None:
    """Have all receivers join, those at a trunk port on the interface of their VLAN, and wait until they have."""
    join(live, group, *RECEIVERS)
    for vlan_id, hosts in MEMBERS.items():
        live.wait_members(named(group, vlan_id), hosts)


def known_sender(live: Any, group: str, vlan_id: int, host: str) -> dict[str, Any]:
    """Wait until a host is known as a sender of a group, and return what is said of it."""
    found: dict[str, Any] = {}

    def known(groups: list[dict[str, Any]]) -> bool:
        senders = [s for doc in groups if doc["group"] == named(group, vlan_id) for s in doc["senders"]]
        found.update(next((sender for sender in senders if sender["mac"] == live.mac(host)), {}))
        return bool(found)

    live.controller.wait_until("groups", known)
    live.wait_ready()
    return found


def start_stream(live: Any, group: str) -> None:
    """Have h1 send (phase 0), until it is known as a sender in the source VLAN."""
    live.fabric.open_stream(1, "h1", group, RATE_BPS, pattern="constant")
    live.fabric.send(0, streams=[1])
    assert known_sender(live, group, SOURCE, "h1")["admitted"]


@contextmanager
def uplinks(live: Any) -> Iterator[list[Any]]:
    """What comes and goes on the cables between s2 and the switches above it."""
    switch = live.fabric.node("s2")
    with ExitStack() as open_wires:
        wires = []
        for above in ("s3", "s4"):
            ((interface, _),) = switch.connectionsTo(live.fabric.node(above))
            with network_of(switch.pid):
                wires.append(open_wires.enter_context(traffic.open_wire(interface.name)))
        yield wires


def copies(wires: list[Any], group: str) -> Counter[tuple[int, bool]]:
    """Return how many frames of a group were on cables, by VLAN id and whether the switch sent them itself."""
    found: Counter[tuple[int, bool]] = Counter()
    for wire in wires:
        while True:
            try:
                frame, is_own = traffic.receive_frame(wire)
            except BlockingIOError:
                break
            tag, inner = without_tag(frame) or (0, frame)
            packet = decode(inner)
            if isinstance(packet, Data) and format_ip(packet.group) == group:
                found[tag, is_own] += 1
    return found


def assert_one_copy(live: Any, wires: list[Any], group: str) -> None:
    """One copy of each packet of phase 1 came down to s2, with the tag of the source VLAN, and none went up."""
    found = copies(wires, group)
    sent = live.fabric.sent()["1"]["phases"]["1"]["sent"]
    assert set(found) == {(SOURCE, False)}
    assert 0 <= sent - found[SOURCE, False] <= live.overruns()


def tags_seen(live: Any, host: str) -> set[str]:
    return set(live.fabric.settled()[f"tap {host}"]["groups"])


def test_one_copy_crosses_the_link_and_each_receiver_has_its_own_tag(registered: Any, group: str) -> None:
    live = registered
    join_everywhere(live, group)
    for host in ("h2", "h3", "h4", "h5", "h6", "h7", "h8"):
        live.fabric.tap(host)
    start_stream(live, group)
    live.halt()
    live.fabric.settled()
    with uplinks(live) as wires:
        live.send(1, 0.5)
        live.assert_all_received(1, *(f"{receiver} {group}" for receiver in RECEIVERS))
        assert_one_copy(live, wires, group)
    assert {host: tags_seen(live, host) for host in ("h2", "h3", "h4", "h5", "h6", "h7", "h8")} == {
        **{host: {group} for host in ("h2", "h3", "h4", "h5", "h6", "h7")},
        "h8": {f"{group}@20", f"{group}@30"},
    }
    document = live.document(f"{group}@{SOURCE}")
    assert [(vlan["vlan"], vlan["ports"]) for vlan in document["receiver_vlans"]] == [(None, 1), (20, 3), (30, 2)]
    assert live.document(f"{group}@{HOME}")["source_vlan"] == SOURCE


def test_receivers_at_the_port_of_the_sender_have_their_copies_back(registered: Any, group: str) -> None:
    """h8 stands for several hosts there: the stack of a sender drops what has its own address as source."""
    live = registered
    trunk = {"h8": (SOURCE, HOME, SHOP)}
    live.set_policy(POLICY + port_lines(live, ACCESS, trunk) + LINE)
    add_interfaces(live, trunk)
    join(live, group, "h5", "h8.20", "h8.30")
    live.wait_members(f"{group}@{HOME}", {"h5", "h8"})
    live.wait_members(f"{group}@{SHOP}", {"h8"})
    interface = f"{live.fabric.interface('h8')}.{SOURCE}"
    live.fabric.open_stream(1, "h8", group, RATE_BPS, interface=interface, pattern="constant")
    live.fabric.send(0, streams=[1])
    live.controller.wait_until(
        "groups",
        lambda groups: any(found["group"] == f"{group}@{SOURCE}" and found["senders"] for found in groups),
    )
    live.wait_ready()
    live.halt()
    live.fabric.settled()
    live.fabric.tap("h8")
    live.send(1, 0.5)
    live.assert_all_received(1, f"h5 {group}")
    sent = live.fabric.sent()["1"]["phases"]["1"]["sent"]
    assert live.fabric.settled()["tap h8"]["groups"] == {f"{group}@{HOME}": sent, f"{group}@{SHOP}": sent}


def test_the_last_leave_in_a_vlan_ends_its_copies_alone(registered: Any, group: str) -> None:
    live = registered
    join_everywhere(live, group)
    start_stream(live, group)
    live.fabric.leave("h5", group)
    live.fabric.leave("h8", group, name=f"h8.20 {group}")
    live.wait_members(f"{group}@{HOME}", {"h3"})
    live.halt()
    live.fabric.settled()
    for host in ("h5", "h8"):
        live.fabric.tap(host)
    with uplinks(live) as wires:
        live.send(1, 0.5)
        live.assert_all_received(1, f"h3 {group}", f"h6 {group}", f"h7 {group}", f"h8.30 {group}")
        assert_one_copy(live, wires, group)
    assert (tags_seen(live, "h5"), tags_seen(live, "h8")) == (set(), {f"{group}@30"})
    for receiver in ("h6", "h7", "h8.30"):
        live.fabric.leave(receiver.partition(".")[0], group, name=f"{receiver} {group}")
    live.wait_members(f"{group}@{SHOP}", set())
    live.wait_members(f"{group}@{SOURCE}", {"h2"})
    live.fabric.settled()
    with uplinks(live) as wires:
        live.send(2, 0.5)
        live.assert_all_received(2, f"h2 {group}", f"h3 {group}", f"h4 {group}")
        assert copies(wires, group) == {}


def test_ipv6_groups_come_from_the_source_vlan_too(registered: Any, bench: tuple[Graph, dict[str, Any]]) -> None:
    if bench[1]["protocols"] == "OpenFlow10":
        registered.controller.wait_log("speaks OpenFlow 1.0: ")
        return
    group = "ff1e::5:1"
    join_everywhere(registered, group)
    start_stream(registered, group)
    registered.send(1, 0.5)
    registered.halt()
    registered.assert_all_received(1, *(f"{receiver} {group}" for receiver in RECEIVERS))


def test_a_sender_in_a_receiver_vlan_reaches_nobody(registered: Any, group: str) -> None:
    live = registered
    join_everywhere(live, group)
    start_stream(live, group)
    live.fabric.open_stream(2, "h3", group, RATE_BPS, pattern="constant")
    live.fabric.send(0, streams=[2])
    sender = known_sender(live, group, HOME, "h3")
    assert (sender["admitted"], sender["rule"]) == (False, "vlans.mvr")
    live.send(1, 0.5)
    live.halt()
    live.assert_all_received(1, *(f"{receiver} {group}" for receiver in BEYOND))
    assert [live.counts(phase, f"{receiver} {group}", stream=2)[1] for receiver in BEYOND for phase in (0, 1)] == [
        0
    ] * 10


def test_a_killed_controller_that_comes_back_costs_no_receiver_a_packet(registered: Any, group: str) -> None:
    live = registered
    join_everywhere(live, group)
    start_stream(live, group)
    live.fabric.send(1)
    live.controller.kill()
    live.controller.start()
    live.controller.wait_discovered(live.fabric)
    for vlan_id, hosts in MEMBERS.items():
        live.wait_members(named(group, vlan_id), hosts)
    live.halt()
    live.assert_all_received(1, *(f"{receiver} {group}" for receiver in RECEIVERS))


def test_a_policy_that_takes_and_gives_the_line_is_followed_at_once(registered: Any, group: str) -> None:
    live = registered
    join_everywhere(live, group)
    start_stream(live, group)
    live.set_policy(policy(live))
    live.wait_ready()
    live.send(1, 0.5)
    in_source, others = ("h2", "h7"), [receiver for receiver in RECEIVERS if receiver not in ("h2", "h7")]
    live.assert_all_received(1, *(f"{receiver} {group}" for receiver in in_source))
    assert [live.counts(1, f"{receiver} {group}")[1] for receiver in others] == [0] * len(others)
    live.set_policy(policy(live) + LINE)
    live.wait_ready()
    live.send(2, 0.5)
    live.halt()
    live.assert_all_received(2, *(f"{receiver} {group}" for receiver in RECEIVERS))
