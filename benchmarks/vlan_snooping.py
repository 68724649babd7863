"""Groups of VLANs on one bridge: by the controller, and by snooping of Open vSwitch's own and of Linux's. As root.

    PYTHONPATH=. python benchmarks/vlan_snooping.py [--joins 200] [--contenders vsrt,linux] [--json]

A bridge has access ports of VLAN 10, to a sender, a member and somebody who joins nothing, and one of VLAN 20. The
sender sends before anybody joins. A member's report leaves a raw socket; what is measured is the time until a packet
of the group is there, as the sender goes on, and how many of later packets each of the others gets.
Linux's bridge (`mcast_vlan_snooping`) is in a guest, whose processor is emulated: its times are those of that.
"""

from __future__ import annotations

import argparse
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from controllers import OPEN_POLICY, controller
from measure import Measurement, names_of, report

from apps.emulation import processes
from apps.emulation.guest import KernelGuest
from apps.emulation.namespace import private_network
from apps.emulation.ovs import PrivateOpenVSwitch
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp

BRIDGE = "br0"
SENDER, MEMBER, NEIGHBOUR, STRANGER = 1, 2, 3, 4
VLAN_OF_PORT = {SENDER: 10, MEMBER: 10, NEIGHBOUR: 10, STRANGER: 20}
POLICY = OPEN_POLICY + "multicast: {fast_leave: true}\nvlans:\n  ports:\n"
POLICY += "".join(
    f"    - {{ports: [{{dpid: 1, port: {port_no}}}], access: {vlan_id}}}\n"
    for port_no, vlan_id in VLAN_OF_PORT.items()
)
LINUX = "linux"
CONTENDERS = ("vsrt", "vsrt-os-ken", "snooping", LINUX)
WARM_UP_S, EARLY_PACKETS, LATER_PACKETS, PAUSE_S, QUIET_S = 5.0, 5, 10, 0.001, 0.02
TIMEOUT_S = 5.0
QUERIER_S = 12.0
"""As long Linux's bridge goes by no report: until hosts had the time to answer its first query."""


@contextmanager
def linux_bridge() -> Iterator[dict[int, socket.socket]]:
    """Have Linux's bridge snoop in each VLAN, in a guest; gives the far ends of its ports."""
    taps = {port_no: f"h{port_no}" for port_no in VLAN_OF_PORT}
    with ExitStack() as stack:
        stack.enter_context(private_network())
        guest = stack.enter_context(KernelGuest(list(taps.values())))
        guest.wait_booted()
        snooping = "vlan_filtering 1 mcast_snooping 1 mcast_vlan_snooping 1 mcast_querier 1"
        guest.run("ip", *f"link add {BRIDGE} up type bridge vlan_default_pvid 0 {snooping}".split())
        for number, vlan_id in enumerate(VLAN_OF_PORT.values()):
            guest.run("ip", *f"link set eth{number} up master {BRIDGE}".split())
            guest.run("bridge", *f"vlan add dev eth{number} vid {vlan_id} pvid untagged".split())
            guest.run("bridge", *f"link set dev eth{number} mcast_flood off".split())
        for vlan_id in sorted(set(VLAN_OF_PORT.values())):
            guest.run("bridge", *f"vlan add dev {BRIDGE} vid {vlan_id} self".split())
            querier = "mcast_snooping 1 mcast_querier 1 mcast_igmp_version 3"
            guest.run("bridge", *f"vlan global set dev {BRIDGE} vid {vlan_id} {querier}".split())
        ends = {}
        for port_no, tap in taps.items():
            Path(f"/proc/sys/net/ipv6/conf/{tap}/disable_ipv6").write_text("1")
            processes.run("ip", "link", "set", tap, "up")
            ends[port_no] = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
            ends[port_no].bind((tap, 0x0800))
        time.sleep(QUERIER_S)
        yield ends


@contextmanager
def bridge(name: str) -> Iterator[dict[int, socket.socket]]:
    """Have an Open vSwitch that forwards as one of `CONTENDERS`; gives the far ends of its ports."""
    with ExitStack() as stack:
        stack.enter_context(private_network())
        kind = "netdev" if stack.enter_context(PrivateOpenVSwitch()).datapath == "user" else "system"
        settings = [f"datapath_type={kind}", "protocols=OpenFlow10,OpenFlow13"]
        settings += ["other-config:datapath-id=0000000000000001"]
        if name == "snooping":
            settings += ["fail_mode=standalone", "mcast_snooping_enable=true"]
            settings += ["other_config:mcast-snooping-disable-flood-unregistered=true"]
        else:
            settings += ["fail_mode=secure"]
        processes.run("ovs-vsctl", "add-br", BRIDGE, "--", "set", "bridge", BRIDGE, *settings)
        ends = {}
        for port_no, vlan_id in VLAN_OF_PORT.items():
            near, far = f"p{port_no}", f"h{port_no}"
            processes.run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
            for interface in (near, far):
                Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
                processes.run("ip", "link", "set", interface, "up")
            tag = (f"tag={vlan_id}",) if name == "snooping" else ()
            number = ("--", "set", "interface", near, f"ofport_request={port_no}")
            processes.run("ovs-vsctl", "add-port", BRIDGE, near, *tag, *number)
            ends[port_no] = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        if name != "snooping":
            process = stack.enter_context(controller(name, POLICY))
            processes.run("ovs-vsctl", "set-controller", BRIDGE, f"tcp:127.0.0.1:{process.port}")
            processes.run("ovs-vsctl", "--timeout=10", "wait-until", "controller", ".", "is_connected=true")
        for port_no, end in ends.items():
            end.bind((f"h{port_no}", 0x0800))
        time.sleep(WARM_UP_S)
        yield ends
        processes.run("ovs-vsctl", "del-br", BRIDGE)


def addresses(port_no: int) -> tuple[bytes, bytes]:
    """Return the MAC and the IP address of the host at a port."""
    return bytes((2, 0, 0, 0, 0, port_no)), bytes((10, 0, 0, port_no))


def packets_at(end: socket.socket, group: bytes) -> int:
    """Return how many packets of a group wait at a port, and take all that does."""
    count = 0
    while select.select([end], [], [], 0)[0]:
        frame = end.recv(2048)
        count += frame[23] == 17 and frame[30:34] == group
    return count


def joins(name: str, count: int) -> list[Measurement]:
    """Have a member join one group after the other."""
    samples: list[float] = []
    got = dict.fromkeys((MEMBER, NEIGHBOUR, STRANGER), 0)
    with linux_bridge() if name == LINUX else bridge(name) as ends:
        for number in range(count):
            group = bytes((239, 1, number >> 8, number & 0xFF))
            packet = encode_udp(*addresses(SENDER), group, bytes(64))
            for _ in range(EARLY_PACKETS):
                ends[SENDER].send(packet)
                time.sleep(PAUSE_S)
            time.sleep(QUIET_S)
            for port_no in got:
                packets_at(ends[port_no], group)
            samples.append(joined_ms(ends, group, packet))
            time.sleep(QUIET_S)
            for port_no in got:
                packets_at(ends[port_no], group)
            for _ in range(LATER_PACKETS):
                ends[SENDER].send(packet)
                time.sleep(PAUSE_S)
            time.sleep(QUIET_S)
            for port_no in got:
                got[port_no] += packets_at(ends[port_no], group)
            ends[MEMBER].send(told(group, RecordType.CHANGE_TO_INCLUDE))
    sent = count * LATER_PACKETS
    return [
        Measurement(f"report to first packet, {name}", "ms", samples),
        Measurement(f"copies per packet at the member, {name}", "", [got[MEMBER] / sent]),
        Measurement(f"copies per packet beside it in VLAN 10, {name}", "", [got[NEIGHBOUR] / sent]),
        Measurement(f"copies per packet in VLAN 20, {name}", "", [got[STRANGER] / sent]),
    ]


def told(group: bytes, kind: RecordType) -> bytes:
    """Return the member's report of a group."""
    return encode(Report(4, 3, *addresses(MEMBER), (GroupRecord(kind, group),)))


def joined_ms(ends: dict[int, socket.socket], group: bytes, packet: bytes) -> float:
    """Have the member report a group to which packets are sent; return the milliseconds until one is there."""
    began_s = time.perf_counter()
    ends[MEMBER].send(told(group, RecordType.CHANGE_TO_EXCLUDE))
    while not packets_at(ends[MEMBER], group):
        if time.perf_counter() - began_s > TIMEOUT_S:
            raise TimeoutError(f"no packet of {group.hex()} within {TIMEOUT_S} s of the report")
        ends[SENDER].send(packet)
        select.select([ends[MEMBER]], [], [], PAUSE_S)
    return 1e3 * (time.perf_counter() - began_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joins", type=int, default=200)
    parser.add_argument("--contenders", type=names_of(CONTENDERS), default=CONTENDERS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = [one for name in arguments.contenders for one in joins(name, arguments.joins)]
    report(found, as_json=arguments.json, source=Path(__file__).name)


if __name__ == "__main__":
    main()
