"""Hosts of an emulated fabric whose ports are in VLANs: where they are, and what they join there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def place(live: Any, host: str) -> tuple[int, int]:
    """Return the dpid and the number of the port that a host is at."""
    link = live.fabric.node(host).defaultIntf().link
    end = link.intf1 if link.intf2.node.name == host else link.intf2
    return int(end.node.dpid, 16), int(end.node.ports[end])


def port_lines(live: Any, access: Mapping[str, int], trunks: Mapping[str, Sequence[int]]) -> str:
    """Return what a policy says of the ports of hosts, by the VLAN or the VLANs of each."""
    said = {host: f"access: {vlan_id}" for host, vlan_id in access.items()}
    said |= {host: f"trunk: {list(vlan_ids)}" for host, vlan_ids in trunks.items()}
    lines = []
    for host, text in said.items():
        dpid, port_no = place(live, host)
        lines.append(f"    - {{ports: [{{dpid: {dpid}, port: {port_no}}}], {text}}}\n")
    return "".join(lines)


def add_interfaces(live: Any, trunks: Mapping[str, Sequence[int]]) -> None:
    """Give hosts at trunk ports the interfaces that they have not yet on their VLANs."""
    for host, vlan_ids in trunks.items():
        lines = live.fabric.run_on(host, "ip", "-brief", "link").splitlines()
        names = {line.split()[0].partition("@")[0] for line in lines}
        for vlan_id in vlan_ids:
            if f"{live.fabric.interface(host)}.{vlan_id}" not in names:
                live.fabric.add_vlan(host, vlan_id, f"10.0.{vlan_id}.{host[1:]}")


def named(group: str, vlan_id: int) -> str:
    """Return what the controller calls a group of a VLAN, 0 being the fabric's own domain."""
    return f"{group}@{vlan_id}" if vlan_id else group


def join(live: Any, group: str, *receivers: str) -> None:
    """Have hosts join; ``h8.10`` joins on its interface on VLAN 10."""
    for receiver in receivers:
        host, _, vlan_id = receiver.partition(".")
        interface = f"{live.fabric.interface(host)}.{vlan_id}" if vlan_id else None
        live.fabric.join(host, group, name=f"{receiver} {group}", interface=interface)
