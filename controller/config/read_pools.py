"""The section `pools`: ranges that addresses of groups are taken from by name."""

from __future__ import annotations

from typing import Any

from controller.config.document import Node, Scalar, Sequence
from controller.config.faults import quoted
from controller.config.policy import AddressPool
from controller.config.read import NodeReader, step
from controller.config.terms import POOL_NAME, Prefix, is_pool_name, parse_group_prefix
from controller.kernel.group_macs import mac_intervals, usable_macs
from controller.wire.addresses import is_link_scope_group

MAX_POOLS = 1024
"""Pools that a policy may have."""

MAX_RANGES = 64
"""Ranges that one pool may have."""

EXAMPLE_RANGE = " such as 239.10.0.0/24"
EXAMPLE_RANGES = " such as [239.10.0.0/24, 239.10.1.0/24]"
EXAMPLE_POOLS = " such as {video: [239.10.0.0/24, 239.10.1.0/24]}"

SHORTEST_V6 = 16
"""Bits of the shortest IPv6 range: of one scope and one set of flags (RFC 4291, 2.7)."""


def read_pools(reader: NodeReader, node: Node, path: str) -> tuple[AddressPool, ...]:
    """Return the pools of a mapping of names to lists of ranges, in its order."""
    found = reader.entries(node, path, f"a mapping of pools to lists of ranges{EXAMPLE_POOLS}") or {}
    if len(found) > MAX_POOLS:
        reader.faults.error(node.line, path, f"{len(found)} pools; at most {MAX_POOLS} are supported")
        return ()
    pools: list[AddressPool] = []
    known: list[tuple[Prefix, int]] = []
    for name, (line, child) in found.items():
        own_path = step(path, name)
        if not is_pool_name(name):
            text = f"{quoted(name)} cannot name a pool: a letter, then up to 62 letters, digits, dots, _ and -"
            reader.faults.error(line, own_path, text)
        ranges = _ranges(reader, child, own_path, known)
        if ranges and not usable_macs(ranges):
            text = "no address of it can be given: all have MAC addresses of groups that never leave their link"
            reader.faults.error(line, own_path, text)
        pools.append(AddressPool(name, ranges, line))
    return tuple(pools)


def _ranges(reader: NodeReader, node: Node, path: str, known: list[tuple[Prefix, int]]) -> tuple[Prefix, ...]:
    if isinstance(node, Sequence) and len(node.items) > MAX_RANGES:
        reader.faults.error(node.line, path, f"{len(node.items)} ranges; at most {MAX_RANGES} are supported")
        return ()
    if isinstance(node, Sequence) and not node.items:
        text = f"no ranges, so that there is no address to be given; write a list{EXAMPLE_RANGES}"
        reader.faults.error(node.line, path, text)
    found: list[Prefix] = []

    def one(child: Node, own_path: str) -> None:
        text = reader.text(child, own_path, f"a group or prefix of groups{EXAMPLE_RANGE}")
        if text is None:
            return
        try:
            prefix = _prefix(text)
        except ValueError as error:
            reader.faults.error(child.line, own_path, f"{error}; write a group or prefix{EXAMPLE_RANGE}")
            return
        for other, line in known:
            if other.contains(prefix.network) or prefix.contains(other.network):
                text = f"{prefix} has addresses of {other} on line {line}"
                reader.faults.error(child.line, own_path, text)
                return
        for other, line in known:
            if _share_macs(prefix, other):
                text = f"{prefix} has MAC addresses of {other} on line {line}: of two such one is given"
                reader.faults.warn(child.line, own_path, text)
                break
        known.append((prefix, child.line))
        found.append(prefix)

    reader.items(node, path, f"a list of groups and prefixes of groups{_example(node)}", one)
    return tuple(found)


def _example(node: Node) -> str:
    """Return how a list is written: of the one range that stands in its place, or of any."""
    if not isinstance(node, Scalar):
        return EXAMPLE_RANGES
    try:
        prefix = str(parse_group_prefix(node.text))
    except ValueError:
        return EXAMPLE_RANGES
    return f' such as ["{prefix}"]' if ":" in prefix else f" such as [{prefix}]"


def _prefix(text: str) -> Prefix:
    prefix = parse_group_prefix(text)
    if is_link_scope_group(prefix.network) and len(prefix.network) == 16:
        raise ValueError(f"{text!r} has groups that never leave their link")
    if len(prefix.network) == 16 and prefix.length < SHORTEST_V6:
        raise ValueError(f"{text!r} has groups of several scopes; a range has {SHORTEST_V6} bits at least")
    return prefix


def _share_macs(one: Prefix, other: Prefix) -> bool:
    if len(one.network) != len(other.network):
        return False
    return any(
        first < other_last and other_first < last
        for first, last in mac_intervals(one)
        for other_first, other_last in mac_intervals(other)
    )


def pools_schema() -> dict[str, Any]:
    """Return the JSON Schema of the section."""
    ranges = {"type": "array", "minItems": 1, "maxItems": MAX_RANGES, "items": {"$ref": "#/$defs/group"}}
    return {
        "description": "Ranges that addresses of groups are taken from by name: names of pools to lists of ranges.",
        "type": "object",
        "maxProperties": MAX_POOLS,
        "propertyNames": {"pattern": f"^{POOL_NAME}$"},
        "additionalProperties": ranges,
    }
