"""The section `static_members`: ports that are given a group whatever their hosts say."""

from __future__ import annotations

from collections.abc import Iterable

from controller.config.document import Node, Scalar, Sequence
from controller.config.policy import StaticMember
from controller.config.read import NodeReader, scalar_value
from controller.config.read_vlan_ids import KnownVlans
from controller.config.terms import SwitchPort, parse_group_prefix
from controller.config.vlans import Vlans, is_vlan_name
from controller.kernel.domains import OWN_DOMAIN, domain_of, in_domain
from controller.wire.addresses import format_ip, is_ssm_group, parse_name
from topology.graph import NodeKind

MAX_STATIC_MEMBERS = 16384
"""Pairs of group and port that a policy may name."""

ENTRY_KEYS = ("group", "ports")


def read_static_members(
    reader: NodeReader, node: Node, path: str, enforce_ssm: bool, vlans: KnownVlans
) -> tuple[StaticMember, ...]:
    """Return the static members of a list of ``{group: ..., ports: [...]}``, in the order of the file.

    `enforce_ssm` says that a group for source-specific multicast cannot be wanted without a source. A group of a
    VLAN has ``@`` behind its address, then the VLAN's id, or the name that `vlans` has for it.
    """
    first: dict[tuple[bytes, SwitchPort], int] = {}

    def entry(child: Node, own_path: str) -> None:
        found = reader.record(child, own_path, ENTRY_KEYS, ENTRY_KEYS, what="{group: ..., ports: [...]}")
        if found is None:
            return
        if "group" in found:
            group = _group(reader, found["group"][1], f"{own_path}.group", enforce_ssm, vlans)
        else:
            group = None
        if "ports" not in found:
            return
        ports = found["ports"][1]
        if isinstance(ports, Sequence) and not ports.items:
            reader.faults.error(ports.line, f"{own_path}.ports", "no ports, so that nothing is given the group")

        def port(at: Node, port_path: str) -> None:
            place = reader.host_port(at, port_path)
            if place is None or group is None:
                return
            if (group, place) in first:
                message = f"port {place} is given {format_ip(group)} already (line {first[group, place]})"
                reader.faults.error(at.line, port_path, message)
            else:
                first[group, place] = at.line

        reader.items(ports, f"{own_path}.ports", "a list of {dpid, port}", port)

    reader.items(node, path, "a list of {group, ports}", entry)
    if len(first) > MAX_STATIC_MEMBERS:
        message = f"{len(first)} static members; at most {MAX_STATIC_MEMBERS} are supported"
        reader.faults.error(node.line, path, message)
        return ()
    return tuple(StaticMember(group, place, line) for (group, place), line in first.items())


def check_domains(reader: NodeReader, members: Iterable[StaticMember], vlans: Vlans) -> None:
    """Warn of static members at ports that are not in the domain of their group, where they wait for nothing."""
    for member in members:
        vlan_id = domain_of(member.group)
        if vlan_id not in vlans.of(*member.port, NodeKind.TOR.value).vlans():
            domain = f"VLAN {vlan_id}" if vlan_id else "the fabric's own domain"
            message = f"port {member.port} is not in {domain}, and is given {format_ip(member.group)} once it is"
            reader.faults.warn(member.line, "static_members", message)


def _group(reader: NodeReader, node: Node, path: str, enforce_ssm: bool, vlans: KnownVlans) -> bytes | None:
    value = scalar_value(node) if isinstance(node, Scalar) else None
    if not isinstance(node, Scalar) or value is None or isinstance(value, bool) or not node.text:
        reader.wrong_type(node, path, "the address of a group")
        return None
    address, at, vlan = node.text.partition("@")
    try:
        prefix = parse_group_prefix(address)
        if at and is_vlan_name(vlan):
            vlan_id = vlans.of_name(vlan)
        else:
            vlan_id = domain_of(parse_name(f"{format_ip(prefix.network)}@{vlan}")) if at else OWN_DOMAIN
    except ValueError as error:
        reader.faults.error(node.line, path, str(error))
        return None
    if prefix.length != 8 * len(prefix.network):
        reader.faults.error(node.line, path, f"{prefix} is a prefix; a static member is of one group")
        return None
    if enforce_ssm and is_ssm_group(prefix.network):
        message = (
            f"{prefix} is for source-specific multicast, and a static member has no source; "
            "multicast.enforce_ssm: false would allow it"
        )
        reader.faults.error(node.line, path, message)
        return None
    return in_domain(prefix.network, vlan_id)
