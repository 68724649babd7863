"""VLAN ids, ranges of them and their names, as a policy file has them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from controller.config.document import Node, Scalar
from controller.config.faults import quoted
from controller.config.read import NodeReader, scalar_value
from controller.config.vlans import MAX_VLAN_ID, UNTAGGED, is_vlan_name
from controller.kernel.domains import OWN_DOMAIN

A_VLAN = "a VLAN, or its name"
VLAN_OR_UNTAGGED = "a VLAN, its name, or untagged"
TRUNK_VLANS = "a VLAN, its name, or a range such as 30-35"
SOME_VLANS = "a VLAN, its name, a range such as 30-35, or untagged"

_RANGE = re.compile(r"([1-9][0-9]{0,3})-([1-9][0-9]{0,3})\Z")


def read_vlan(reader: NodeReader, node: Node, path: str) -> int | None:
    """Return a VLAN id, 1 to 4094."""
    return reader.integer(node, path, 1, MAX_VLAN_ID)


def read_vlans_mask(reader: NodeReader, node: Node, path: str, what: str) -> int | None:
    """Return a VLAN or a range of VLANs, bit i for VLAN i; `what` says what may stand there."""
    value = scalar_value(node) if isinstance(node, Scalar) else None
    found = _RANGE.match(value) if isinstance(value, str) else None
    if found is None:
        if type(value) is not int:
            reader.wrong_type(node, path, what)
            return None
        vlan_id = read_vlan(reader, node, path)
        return None if vlan_id is None else 1 << vlan_id
    first, last = int(found[1]), int(found[2])
    if max(first, last) > MAX_VLAN_ID:
        reader.faults.error(node.line, path, f"{max(first, last)} is not within 1 and {MAX_VLAN_ID}")
        return None
    if first > last:
        message = f"the range {first}-{last} is upside down; did you mean {last}-{first}?"
        reader.faults.error(node.line, path, message)
        return None
    return (1 << last + 1) - (1 << first)


class KnownVlans:
    """The VLANs that the section `vlans` names anywhere: `named` has bit i for VLAN i, `ids` those of names.

    What is read here may be called by its name; a name that the section gives no VLAN is a fault.
    """

    def __init__(self, reader: NodeReader, named: int = 0, ids: Mapping[str, int] | None = None) -> None:
        self._reader = reader
        self._named = named | 1 << OWN_DOMAIN
        self._ids = ids or {}

    def one(self, node: Node, path: str) -> int | None:
        """Return the id of a VLAN; None after a fault."""
        return self._one(node, path, A_VLAN)

    def one_or_untagged(self, node: Node, path: str) -> int | None:
        """Return the id of a VLAN, or that of the fabric's own domain; None after a fault."""
        if isinstance(node, Scalar) and scalar_value(node) == UNTAGGED:
            return OWN_DOMAIN
        return self._one(node, path, VLAN_OR_UNTAGGED)

    def members(self, node: Node, path: str) -> int | None:
        """Return a VLAN, or a range of VLANs, as a mask, bit i for VLAN i; None after a fault."""
        by_name = self.by_name(node, path)
        return read_vlans_mask(self._reader, node, path, TRUNK_VLANS) if by_name is None else by_name or None

    def of_name(self, name: str) -> int:
        """Return the id of the VLAN of a name; ValueError, with the nearest name, where there is none such."""
        if name not in self._ids:
            near = self._reader.faults.suggestion(name, self._ids)
            raise ValueError(f"no VLAN is called {quoted(name)}{near}")
        return self._ids[name]

    def _one(self, node: Node, path: str, what: str) -> int | None:
        by_name = self.by_name(node, path)
        if by_name is not None:
            return by_name.bit_length() - 1 if by_name else None
        if not isinstance(node, Scalar) or type(scalar_value(node)) is not int:
            self._reader.wrong_type(node, path, what)
            return None
        return read_vlan(self._reader, node, path)

    def some(self, node: Node, path: str) -> int | None:
        """Return domains as a mask, bit i for VLAN i, 0 being the fabric's own; None after a fault."""
        if isinstance(node, Scalar) and scalar_value(node) == UNTAGGED:
            return 1 << OWN_DOMAIN
        by_name = self.by_name(node, path)
        mask = read_vlans_mask(self._reader, node, path, SOME_VLANS) if by_name is None else by_name
        return mask if mask and self.are_known(mask, node, path) else None

    def by_name(self, node: Node, path: str) -> int | None:
        """Return the VLAN of a name as a mask, 0 where there is none such; None where no name stands there."""
        value = scalar_value(node) if isinstance(node, Scalar) else None
        if not isinstance(value, str) or not is_vlan_name(value):
            return None
        try:
            return 1 << self.of_name(value)
        except ValueError as error:
            self._reader.faults.error(node.line, path, str(error))
            return 0

    def are_known(self, mask: int, node: Node, path: str) -> bool:
        """Tell whether the section names all VLANs of a mask; the first that it does not is a fault."""
        unknown = mask & ~self._named
        if unknown:
            vlan_id = (unknown & -unknown).bit_length() - 1
            message = f"no port is in VLAN {vlan_id}, and the section gives it no name"
            self._reader.faults.error(node.line, path, message)
        return not unknown
