"""The section `vlans`: which VLANs edge ports are in, what these are called, and which get groups from others."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from controller.config.document import Node, Scalar, Sequence
from controller.config.faults import quoted
from controller.config.labels import read_label_pairs
from controller.config.read import NodeReader, scalar_value, step
from controller.config.read_registrations import RegistrationReader
from controller.config.read_vlan_ids import KnownVlans
from controller.config.registrations import Registrations
from controller.config.terms import Labelled, SwitchPort
from controller.config.vlans import (
    ALL,
    MAX_VLAN_ID,
    PASS,
    REFUSE,
    RESERVED_NAMES,
    UNTAGGED_ONLY,
    PortVlans,
    VlanEntry,
    Vlans,
    is_vlan_name,
)
from topology.graph import NodeKind

MAX_VLAN_ENTRIES = 65536

MAX_LABEL_KEY_SETS = 64
"""Sets of label keys that entries may differ in, each of which is looked for at every switch and port with labels."""

MAX_TRUNK_VLANS = 1 << 20
"""VLANs that all trunks which differ may have together."""

SECTION_KEYS = ("names", "default", "ports", "double_tagged", "mvr")
WHERE_KEYS = ("ports", "switches", "labels", "tier")
"""What an entry names ports by, one of these."""

SAID_KEYS = ("access", "voice", "trunk", "native")
ENTRY_KEYS = (*WHERE_KEYS, *SAID_KEYS)

TIERS = tuple(str(kind) for kind in NodeKind if kind is not NodeKind.HOST)

_TRUNK = "a list of VLANs, their names and ranges such as 30-35, or all"


class _Said(NamedTuple):
    """What stands in the file of a port; `tagged` has bit i for VLAN i, and is None for all VLANs of the section."""

    untagged: int | None
    tagged: int | None
    line: int
    path: str

    def named(self) -> int:
        """Return the VLANs that it names, bit i for VLAN i."""
        return (1 << (self.untagged or 0) | (self.tagged or 0)) & ~1


class _Where(NamedTuple):
    """The ports that an entry is about."""

    ports: tuple[SwitchPort, ...] = ()
    switches: tuple[int, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    tier: str | None = None


class VlanSection(NamedTuple):
    """What the section says, and what rules may call VLANs."""

    vlans: Vlans = Vlans()
    registrations: Registrations = Registrations()
    known: KnownVlans | None = None


def read_vlans(reader: NodeReader, node: Node, path: str, labels: tuple[Labelled, ...]) -> VlanSection:
    """Return what the section says; `labels` are those of the whole policy file."""
    found = reader.record(node, path, SECTION_KEYS, what="a mapping with names, default, ports")
    if found is None:
        return VlanSection()
    names = _names(reader, found["names"][1], f"{path}.names") if "names" in found else ()
    ids = {name: vlan_id for vlan_id, name in names}
    by_name = KnownVlans(reader, ids=ids)
    default = _default(reader, found["default"][1], f"{path}.default", by_name) if "default" in found else None
    entries = _entries(reader, found["ports"][1], f"{path}.ports", labels, by_name) if "ports" in found else []
    all_said = [said for said in (default, *(said for _, said in entries)) if said is not None]
    named = sum(1 << vlan_id for vlan_id, _ in names)
    for said in all_said:
        named |= said.named()
    trunks = _Trunks(reader, named)
    used = {key for where, _ in entries for key, _ in where.labels}
    vlans = Vlans(
        names,
        UNTAGGED_ONLY if default is None else trunks.vlans(default),
        tuple(VlanEntry(trunks.vlans(said), *where, line=said.line) for where, said in entries),
        _labels_of(used, labels),
        "double_tagged" in found and _passes(reader, found["double_tagged"][1], f"{path}.double_tagged"),
    )
    if vlans.passes_double_tagged and not vlans.has_tagged():
        message = "no port has a VLAN with its tag, so that no frame with two tags passes"
        reader.faults.warn(found["double_tagged"][0], f"{path}.double_tagged", message)
    for conflict in vlans.conflicts:
        first, second = entries[conflict.first][1], entries[conflict.second][1]
        message = f"says otherwise of {conflict.place} than the entry on line {first.line}, which is as specific"
        reader.faults.error(second.line, second.path, message)
    known = KnownVlans(reader, named, ids)
    if "mvr" not in found:
        return VlanSection(vlans, known=known)
    return VlanSection(vlans, RegistrationReader(reader, known).read(found["mvr"][1], f"{path}.mvr"), known)


def _passes(reader: NodeReader, node: Node, path: str) -> bool:
    """Tell whether frames with two tags pass."""
    return reader.choice(node, path, (REFUSE, PASS)) == PASS


class _Trunks:
    """Makes sets of VLANs, equal ones once."""

    def __init__(self, reader: NodeReader, named: int) -> None:
        self._faults = reader.faults
        self._named = named
        self._sets: dict[int, frozenset[int]] = {0: frozenset()}
        self._left = MAX_TRUNK_VLANS

    def vlans(self, said: _Said) -> PortVlans:
        """Return what is said of a port, where `all` stands for the VLANs of the section but the native one."""
        mask = said.tagged
        if mask is None:
            mask = self._named & ~(1 << (said.untagged or 0))
            if not mask:
                message = "the section names no other VLAN, so that the trunk has none"
                self._faults.error(said.line, f"{said.path}.trunk", message)
        if mask not in self._sets:
            if self._left < 0:
                return UNTAGGED_ONLY
            self._left -= mask.bit_count()
            if self._left < 0:
                message = f"trunks that differ have more than {MAX_TRUNK_VLANS} VLANs together"
                self._faults.error(said.line, f"{said.path}.trunk", message)
                return UNTAGGED_ONLY
            self._sets[mask] = _members(mask)
        return PortVlans(said.untagged, self._sets[mask])


def _members(mask: int) -> frozenset[int]:
    bits, members = f"{mask:b}"[::-1], []
    at = bits.find("1")
    while at >= 0:
        members.append(at)
        at = bits.find("1", at + 1)
    return frozenset(members)


def _labels_of(keys: Collection[str], labels: tuple[Labelled, ...]) -> tuple[Labelled, ...]:
    """Return the labels with these keys, and who has them."""
    found = []
    for labelled in labels:
        pairs = tuple(pair for pair in labelled.labels if pair[0] in keys)
        if pairs:
            found.append(Labelled(labelled.dpid, labelled.port_no, pairs))
    return tuple(found)


def _names(reader: NodeReader, node: Node, path: str) -> tuple[tuple[int, str], ...]:
    names: dict[int, str] = {}
    ids: dict[str, int] = {}
    for key, (line, child) in (reader.entries(node, path, "VLANs to names", text_keys=False) or {}).items():
        own_path = step(path, key)
        vlan_id = reader.integer(Scalar(line, key, True), own_path, 1, MAX_VLAN_ID)
        name = reader.text(child, own_path, "a name (put it in quotes)")
        if vlan_id is None or name is None:
            continue
        if not is_vlan_name(name):
            words = " nor ".join(RESERVED_NAMES)
            message = (
                f"{quoted(name)} cannot name a VLAN: a letter, then up to 63 letters, digits, spaces, dots, "
                f"underscores and hyphens, but neither {words}"
            )
            reader.faults.error(child.line, own_path, message)
        elif vlan_id in names:
            reader.faults.error(line, own_path, f"VLAN {vlan_id} is {quoted(names[vlan_id])} already")
        elif name in ids:
            reader.faults.error(child.line, own_path, f"{quoted(name)} is already the name of VLAN {ids[name]}")
        else:
            names[vlan_id] = name
            ids[name] = vlan_id
    return tuple(names.items())


def _default(reader: NodeReader, node: Node, path: str, vlans: KnownVlans) -> _Said | None:
    found = reader.record(node, path, SAID_KEYS, what="a mapping such as {access: 10}")
    return None if found is None else _said(reader, found, path, node.line, vlans)


def _entries(
    reader: NodeReader, node: Node, path: str, labels: tuple[Labelled, ...], vlans: KnownVlans
) -> list[tuple[_Where, _Said]]:
    if isinstance(node, Sequence) and len(node.items) > MAX_VLAN_ENTRIES:
        message = f"{len(node.items)} entries; at most {MAX_VLAN_ENTRIES} are supported"
        reader.faults.error(node.line, path, message)
        return []
    values: dict[str, set[str]] = {}
    for labelled in labels:
        for key, value in labelled.labels:
            values.setdefault(key, set()).add(value)

    def entry(child: Node, own_path: str) -> tuple[_Where, _Said] | None:
        found = reader.record(child, own_path, ENTRY_KEYS, what="a mapping such as {switches: [...], access: 10}")
        if found is None:
            return None
        where = _where(reader, found, own_path, child.line, values)
        said = _said(reader, found, own_path, child.line, vlans)
        return None if where is None or said is None else (where, said)

    entries = reader.items(node, path, "a list of entries such as {switches: [...], access: 10}", entry)
    key_sets = {frozenset(key for key, _ in where.labels) for where, _ in entries}
    if len(key_sets) > MAX_LABEL_KEY_SETS:
        message = f"the labels of entries have more than {MAX_LABEL_KEY_SETS} different sets of keys"
        reader.faults.error(node.line, path, message)
        return []
    return entries


def _where(
    reader: NodeReader,
    found: dict[str, tuple[int, Node]],
    path: str,
    line: int,
    label_values: dict[str, set[str]],
) -> _Where | None:
    named = [key for key in WHERE_KEYS if key in found]
    if len(named) != 1:
        stated = " and ".join(named) or "nothing"
        reader.faults.error(line, path, f"names ports by {stated}; expected one of {', '.join(WHERE_KEYS)}")
        return None
    (key,) = named
    node, own_path = found[key][1], f"{path}.{key}"
    if key == "tier":
        tier = reader.choice(node, own_path, TIERS)
        if tier not in (None, NodeKind.TOR.value):
            message = "concerns no port: a switch whose ports lead to hosts is a ToR; name switches, or label them"
            reader.faults.warn(node.line, own_path, message)
        return None if tier is None else _Where(tier=tier)
    before = reader.faults.error_count
    if key == "ports":
        where = _Where(ports=tuple(reader.items(node, own_path, "a list of {dpid, port}", reader.switch_port)))
    elif key == "switches":
        where = _Where(switches=tuple(reader.items(node, own_path, "a list of switches", reader.dpid)))
    else:
        where = _Where(labels=_label_pairs(reader, node, own_path, label_values))
    if reader.faults.error_count > before:
        return None
    if where == _Where():
        reader.faults.error(node.line, own_path, f"no {key}, so that the entry is about no port")
        return None
    return where


def _label_pairs(
    reader: NodeReader, node: Node, path: str, known: dict[str, set[str]]
) -> tuple[tuple[str, str], ...]:
    pairs = read_label_pairs(reader, node, path)
    for key, value in pairs:
        if key not in known:
            near = reader.faults.suggestion(key, known)
            reader.faults.error(node.line, step(path, key), f"no switch and no port has a label {quoted(key)}{near}")
        elif value not in known[key]:
            message = f"no switch and no port has the label {key}={value}, so that the entry is about no port"
            reader.faults.warn(node.line, step(path, key), message)
    return pairs


def _said(
    reader: NodeReader, found: dict[str, tuple[int, Node]], path: str, line: int, vlans: KnownVlans
) -> _Said | None:
    """Return what access, voice, trunk and native say; None, with a fault, where they do not fit together."""
    access, trunk = "access" in found, "trunk" in found
    if access == trunk:
        message = "both access and trunk; a port has one of them" if access else "neither access nor trunk"
        reader.faults.error(line, path, message)
        return None
    before = reader.faults.error_count
    for key, other in (("voice", "trunk"), ("native", "access")):
        if key in found and other in found:
            reader.faults.error(found[key][0], f"{path}.{key}", f"does not go with {other}")
    untagged_key, tagged_key = ("access", "voice") if access else ("native", "trunk")
    untagged: int | None = None
    tagged: int | None = 0
    if untagged_key in found:
        untagged = vlans.one_or_untagged(found[untagged_key][1], f"{path}.{untagged_key}")
    if tagged_key in found:
        node, own_path = found[tagged_key][1], f"{path}.{tagged_key}"
        tagged = _trunk(reader, node, own_path, vlans) if trunk else 1 << (vlans.one(node, own_path) or 0)
    if reader.faults.error_count > before:
        return None
    if untagged and tagged is not None and tagged >> untagged & 1:
        at = "native" if trunk else "voice"
        message = f"VLAN {untagged} is of {untagged_key} and {tagged_key}; its frames have a tag, or they have none"
        reader.faults.error(found[at][1].line, f"{path}.{at}", message)
        return None
    return _Said(untagged, tagged, line, path)


def _trunk(reader: NodeReader, node: Node, path: str, vlans: KnownVlans) -> int | None:
    """Return the VLANs of a trunk, bit i for VLAN i; None for all."""
    if isinstance(node, Scalar) and scalar_value(node) == ALL:
        return None
    if isinstance(node, Sequence) and not node.items:
        reader.faults.error(node.line, path, "the trunk has no VLANs")
    mask = 0
    for part in reader.items(node, path, _TRUNK, vlans.members):
        mask |= part
    return mask
