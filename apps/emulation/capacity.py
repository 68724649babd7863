"""Enforces link capacities on emulated switches: meters where traffic enters, a bounded shaper towards hosts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from apps.emulation import processes
from apps.emulation.namespace import network_of

METER_BASE = 0x1000
"""Meters below this number belong to the controller (`controller.rules.model.METERS_PER_APP` for each app)."""

BURST_S = 0.1
QUEUE_BYTES = 125_000
"""What a port can hold back, and at 10 Mbit/s the burst of a meter: a commodity switch has some 140 kB for each port
(9 MB for 64)."""

SHAPER_BURST_BYTES = 5000
SHAPER = "shaper0"
LLDP_PRIORITY = 200
METER_PRIORITY = 100
LLDP_ETHER_TYPE = 0x88CC


class HostInterface(NamedTuple):
    """A host's network, by a process in it, and its interface there."""

    pid: int
    interface: str


class CapacityPort(NamedTuple):
    """A switch port with the capacity of its link, and the host at the far end, which no switch meters."""

    switch: str
    interface: str
    port_no: int
    capacity_bps: float
    host: HostInterface | None


def meter(port: CapacityPort) -> str:
    """Return the meter that drops what enters `port` above its capacity, as ovs-ofctl writes it.

    A burst of 100 ms (1 Mbit at 10 Mbit/s) passes: a bucket drops what a queue of its size would. Where none is
    given, a second of credit passes.
    """
    rate = max(1, round(port.capacity_bps / 1000))
    burst = max(1, round(port.capacity_bps / 1000 * BURST_S))
    return f"meter={METER_BASE + port.port_no},kbps,burst,band=type=drop,rate={rate},burst_size={burst}"


def flows(ports: Iterable[CapacityPort]) -> str:
    """Return one switch's ingress rules, a line each; discovery passes unmetered, or overload would cut links."""
    lines = [
        f"table=0,priority={LLDP_PRIORITY},cookie=0,dl_type={LLDP_ETHER_TYPE:#06x},actions=goto_table:1",
    ]
    lines += [
        f"table=0,priority={METER_PRIORITY},cookie=0,in_port={port.port_no},"
        f"actions=meter:{METER_BASE + port.port_no},goto_table:1"
        for port in ports
    ]
    return "\n".join(lines) + "\n"


def shaper(port: CapacityPort, host: HostInterface) -> tuple[tuple[str, ...], ...]:
    """Return the commands that shape what enters a host, to be run in its network.

    The shaper is behind the host's interface, not on the switch's side of the cable: there a full queue makes Open
    vSwitch drop packets that are meant for other ports. Its queue is bounded: a default one loses packets on links
    that never fill.
    """
    rate_bps = max(1, round(port.capacity_bps))
    lines = (
        f"ip link add {SHAPER} type ifb",
        f"ip link set {SHAPER} up",
        f"tc qdisc add dev {SHAPER} root tbf rate {rate_bps}bit burst {SHAPER_BURST_BYTES} limit {QUEUE_BYTES}",
        f"tc qdisc add dev {host.interface} ingress",
        f"tc filter add dev {host.interface} parent ffff: protocol all u32 match u32 0 0 "
        f"action mirred egress redirect dev {SHAPER}",
    )
    return tuple(tuple(line.split()) for line in lines)


def enforce(ports: Iterable[CapacityPort]) -> None:
    """Install meters, ingress rules and shapers for all `ports`."""
    everything = sorted(ports)
    for switch, group in groupby(everything, key=lambda port: port.switch):
        members = list(group)
        for port in members:
            processes.run("ovs-ofctl", "-O", "OpenFlow13", "add-meter", switch, meter(port))
        processes.run("ovs-ofctl", "-O", "OpenFlow13", "add-flows", switch, "-", text=flows(members))
    for port in everything:
        if port.host is not None:
            with network_of(port.host.pid):
                for command in shaper(port, port.host):
                    processes.run(*command)
