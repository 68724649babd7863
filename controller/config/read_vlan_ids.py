"""VLAN ids, and ranges of them, as a policy file has them."""

from __future__ import annotations

import re

from controller.config.document import Node, Scalar
from controller.config.read import Reader, scalar_value
from controller.config.vlans import MAX_VLAN_ID

_RANGE = re.compile(r"([1-9][0-9]{0,3})-([1-9][0-9]{0,3})\Z")


def read_vlan(reader: Reader, node: Node, path: str) -> int | None:
    """Return a VLAN id, 1 to 4094."""
    return reader.integer(node, path, 1, MAX_VLAN_ID)


def read_vlans_mask(
    reader: Reader, node: Node, path: str, what: str = "a VLAN, or a range such as 30-35"
) -> int | None:
    """Return a VLAN or a range of VLANs, bit i for VLAN i."""
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
