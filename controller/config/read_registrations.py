"""The list `vlans.mvr`: which VLANs get which groups from another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from controller.config.document import Node, Scalar, Sequence
from controller.config.read import NodeReader, scalar_value
from controller.config.read_vlan_ids import KnownVlans
from controller.config.registrations import Registration, Registrations
from controller.config.terms import Prefix, parse_group_prefix
from controller.config.vlans import MAX_VLAN_ID

MAX_REGISTRATIONS = 1024
MAX_REGISTERED_GROUPS = 4096
"""Groups and prefixes of groups that all registrations may name together."""

ENTRY_KEYS = ("source_vlan", "groups", "receiver_vlans")

_ENTRY = "a mapping such as {source_vlan: 100, groups: [239.5.0.0/16], receiver_vlans: [20, 30]}"


T = TypeVar("T")


class _Group(NamedTuple):
    """A prefix of groups that a registration names, and where."""

    prefix: Prefix
    line: int
    path: str


class _Entry(NamedTuple):
    """A registration, and its groups with their places."""

    registration: Registration
    groups: tuple[_Group, ...]


class RegistrationReader:
    """Reads registrations of VLANs that the section names elsewhere."""

    def __init__(self, reader: NodeReader, vlans: KnownVlans) -> None:
        self._reader = reader
        self._faults = reader.faults
        self._vlans = vlans

    def read(self, node: Node, path: str) -> Registrations:
        """Return the registrations of a list; none where one has a fault."""
        if isinstance(node, Sequence) and len(node.items) > MAX_REGISTRATIONS:
            message = f"{len(node.items)} entries; at most {MAX_REGISTRATIONS} are supported"
            self._faults.error(node.line, path, message)
            return Registrations()
        entries = self._reader.items(node, path, f"a list of {_ENTRY[2:]}", self._entry)
        count = sum(len(entry.groups) for entry in entries)
        if count > MAX_REGISTERED_GROUPS:
            message = f"{count} groups; at most {MAX_REGISTERED_GROUPS} are supported"
            self._faults.error(node.line, path, message)
            return Registrations()
        self._check(entries)
        return Registrations(tuple(entry.registration for entry in entries))

    def _entry(self, node: Node, path: str) -> _Entry | None:
        found = self._reader.record(node, path, ENTRY_KEYS, ENTRY_KEYS, what=_ENTRY)
        if found is None:
            return None
        before = self._faults.error_count
        source, receivers = None, 0
        groups: list[_Group] = []
        if "source_vlan" in found:
            source = self._source(found["source_vlan"][1], f"{path}.source_vlan")
        if "groups" in found:
            groups = self._some(found["groups"][1], f"{path}.groups", "groups", self._group)
        if "receiver_vlans" in found:
            at, own_path = found["receiver_vlans"][1], f"{path}.receiver_vlans"
            for mask in self._some(at, own_path, "receiver VLANs", self._vlans.some):
                receivers |= mask
            if source is not None and receivers >> source & 1:
                self._faults.error(at.line, own_path, f"VLAN {source} is the source VLAN itself")
        if source is None or not groups or not receivers or self._faults.error_count > before:
            return None
        vlans = frozenset(vlan_id for vlan_id in range(MAX_VLAN_ID + 1) if receivers >> vlan_id & 1)
        return _Entry(Registration(source, tuple(group.prefix for group in groups), vlans, node.line), tuple(groups))

    def _some(self, node: Node, path: str, noun: str, read: Callable[[Node, str], T | None]) -> list[T]:
        if isinstance(node, Sequence) and not node.items:
            self._faults.error(node.line, path, f"no {noun}, so that nothing is registered")
        return self._reader.items(node, path, f"a list of {noun}", read)

    def _group(self, node: Node, path: str) -> _Group | None:
        if not isinstance(node, Scalar) or not isinstance(scalar_value(node), str):
            self._reader.wrong_type(node, path, "a group or prefix of groups")
            return None
        try:
            return _Group(parse_group_prefix(node.text), node.line, path)
        except ValueError as error:
            self._faults.error(node.line, path, str(error))
            return None

    def _source(self, node: Node, path: str) -> int | None:
        """Return the source VLAN."""
        vlan_id = self._vlans.one(node, path)
        return vlan_id if vlan_id and self._vlans.are_known(1 << vlan_id, node, path) else None

    def _check(self, entries: Iterable[_Entry]) -> None:
        """Look for a group that a VLAN would get from two others, or from one that gets it from a third."""
        groups = [(group, entry.registration) for entry in entries for group in entry.groups]
        groups.sort(key=lambda item: (len(item[0].prefix.network), item[0].prefix))
        around: list[tuple[_Group, Registration]] = []
        told: set[tuple[int, int]] = set()
        for group, registration in groups:
            while around and not around[-1][0].prefix.contains(group.prefix.network):
                around.pop()
            for other in around:
                lines = (other[1].line, registration.line)
                if other[1] is not registration and lines not in told and self._clash(other, (group, registration)):
                    told.add(lines)
            around.append((group, registration))

    def _clash(self, one: tuple[_Group, Registration], other: tuple[_Group, Registration]) -> bool:
        """Record a fault where two registrations of overlapping groups do not go together."""
        (_, before), (group, after) = sorted((one, other), key=lambda item: (item[0].line, item[0].path))
        shared = before.receiver_vlans & after.receiver_vlans
        what = f"{group.prefix}, which the entry on line {before.line} overlaps"
        if shared:
            message = f"{_domain(min(shared))} gets {what}, from VLAN {before.source_vlan} already"
        elif after.source_vlan in before.receiver_vlans:
            message = f"VLAN {after.source_vlan} gets {what}, from VLAN {before.source_vlan} itself"
        elif before.source_vlan in after.receiver_vlans:
            message = f"VLAN {before.source_vlan} gets {what}, from here, and gives it to others there"
        else:
            return False
        self._faults.error(group.line, group.path, message)
        return True


def _domain(vlan_id: int) -> str:
    return f"VLAN {vlan_id}" if vlan_id else "the fabric's own domain"
