"""Hosts of an emulated fabric whose interfaces are a guest's, whose kernel has VLAN devices and bonds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from apps.emulation import processes
from apps.emulation.guest import KernelGuest
from apps.emulation.namespace import network_of
from apps.emulation.network import EmulatedFabric

IN_SYNC = 4 | 8 | 16 | 32
"""Of an end's state in LACP: it aggregates, is in step, collects and distributes."""


@contextmanager
def guest_as_hosts(guest: KernelGuest, fabric: EmulatedFabric, legs: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Have TAP devices of a guest be the switches' ports to hosts, instead of the cables that these have."""
    ports = []
    for host, taps in legs.items():
        ends = [link.intf1 if link.intf2.node.name == host else link.intf2 for link in cables(fabric, host)]
        ports += list(zip(taps, ends, strict=True))
    with network_of(guest.pid):
        for tap, _ in ports:
            processes.run("ip", "link", "set", tap, "netns", str(fabric.ovs.vswitchd_pid))
    for tap, end in ports:
        port_no = f"ofport_request={end.node.ports[end]}"
        put = ("--", "add-port", end.node.name, tap, "--", "set", "Interface", tap, port_no)
        processes.run("ip", "link", "set", tap, "up")
        processes.run("ovs-vsctl", "del-port", end.name, *put)
    try:
        yield
    finally:
        for tap, _ in ports:
            processes.run("ovs-vsctl", "del-port", tap)
            processes.run("ip", "link", "set", tap, "netns", str(guest.pid))


def cables(fabric: EmulatedFabric, host: str) -> list[Any]:
    """Return the cables of a host, in the order of its interfaces."""
    return [interface.link for interface in fabric.node(host).intfList()]


def legs_in_step(guest: KernelGuest, bond: str) -> set[str]:
    """Return the legs of a bond that its kernel's LACP uses: both ends in step, and in the bond's own aggregator."""
    text, *sections = re.split(r"^Slave Interface: ", guest.read(f"/proc/net/bonding/{bond}"), flags=re.MULTILINE)
    (own,) = re.findall(r"^\s+Aggregator ID: (\d+)$", text, re.MULTILINE)
    found = set()
    for section in sections:
        states = [int(state) for state in re.findall(r"^\s+port state: (\d+)$", section, re.MULTILINE)]
        in_use = re.findall(r"^Aggregator ID: (\d+)$", section, re.MULTILINE) == [own]
        if in_use and "MII Status: up" in section and all(state & IN_SYNC == IN_SYNC for state in states):
            found.add(section.split()[0])
    return found
