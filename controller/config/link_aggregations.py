"""The section `link_aggregations`: ports that lead to one host each, or to one switch that is not the fabric's."""

from __future__ import annotations

from collections.abc import Iterable

from controller.config.document import Node
from controller.config.faults import quoted
from controller.config.policy import LinkAggregation
from controller.config.read import NodeReader, step
from controller.config.terms import SwitchLink, SwitchPort, is_port_name
from controller.config.vlans import Vlans
from topology.graph import NodeKind

MAX_LINK_AGGREGATIONS = 16384

MAX_LEGS = 16
"""Ports that one link aggregation group may have."""

MODES = ("static", "lacp", "active-backup")
"""How a host comes to use its legs: all that are up, those that it agrees on by LACP, or one at a time."""

ENTRY_KEYS = ("mode", "ports")


def read_link_aggregations(reader: NodeReader, node: Node, path: str) -> tuple[LinkAggregation, ...]:
    """Return the groups of a mapping of names to ``{mode: ..., ports: [...]}``, in the order of the file."""
    found = reader.entries(node, path, "a mapping of names to {mode, ports}") or {}
    if len(found) > MAX_LINK_AGGREGATIONS:
        message = f"{len(found)} link aggregation groups; at most {MAX_LINK_AGGREGATIONS} are supported"
        reader.faults.error(node.line, path, message)
        return ()
    first: dict[SwitchPort, tuple[str, int]] = {}
    groups = []
    for name, (line, child) in found.items():
        own_path = step(path, name)
        if not is_port_name(name):
            message = f"{quoted(name)} cannot name a group: a letter, then 63 letters, digits, ..."
            reader.faults.error(line, own_path, message)
        entry = reader.record(child, own_path, ENTRY_KEYS, ENTRY_KEYS, what="{mode: ..., ports: [...]}") or {}
        mode = reader.choice(entry["mode"][1], f"{own_path}.mode", MODES) if "mode" in entry else None
        ports = _ports(reader, name, entry["ports"][1], f"{own_path}.ports", first) if "ports" in entry else None
        if mode is not None and ports is not None:
            groups.append(LinkAggregation(name, mode, ports, line))
    return tuple(groups)


def _ports(
    reader: NodeReader, name: str, node: Node, path: str, first: dict[SwitchPort, tuple[str, int]]
) -> tuple[SwitchPort, ...] | None:
    """Return the ports of a group, None where some are wrong; `first` has where each port stood already."""
    before = reader.faults.error_count

    def port(at: Node, port_path: str) -> SwitchPort | None:
        place = reader.switch_port(at, port_path)
        if place is not None and place in first:
            other, line = first[place]
            message = f"port {place} is in {quoted(other)} already (line {line})"
            reader.faults.error(at.line, port_path, message)
        elif place is not None:
            first[place] = (name, at.line)
        return place

    ports = tuple(reader.items(node, path, "a list of {dpid, port}", port))
    if reader.faults.error_count > before:
        return None
    if not 2 <= len(ports) <= MAX_LEGS:
        reader.faults.error(node.line, path, f"{len(ports)} ports; a group has 2 to {MAX_LEGS}")
        return None
    return ports


def first_ports(groups: Iterable[LinkAggregation]) -> dict[SwitchPort, SwitchPort]:
    """Return for each port that is in a group the one that stands for all of the group."""
    return {port: group.ports[0] for group in groups for port in group.ports}


def check_legs(
    reader: NodeReader,
    groups: Iterable[LinkAggregation],
    vlans: Vlans,
    router_ports: Iterable[SwitchPort],
    links: Iterable[SwitchLink],
) -> None:
    """Report groups whose ports are not alike, or not ports to hosts, by what other sections say of them."""
    routers = frozenset(router_ports)
    trunks = frozenset(end for link in links for end in link)
    for group in groups:
        path = step("link_aggregations", group.name)
        one = group.ports[0]
        for port in group.ports:
            if vlans.of(*port, NodeKind.TOR.value) != vlans.of(*one, NodeKind.TOR.value):
                message = f"ports {one} and {port} are not in the same VLANs, and lead to one host"
                reader.faults.error(group.line, path, message)
            if port in routers:
                message = f"port {port} is in multicast.router_ports.static; a group leads to no multicast router"
                reader.faults.error(group.line, path, message)
            if port in trunks:
                message = f"port {port} is the end of a link in topology; a group leads to no switch of the fabric"
                reader.faults.error(group.line, path, message)
