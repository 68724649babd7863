"""The section `labels`: what operators say of switches and ports beyond their names."""

from __future__ import annotations

from controller.config.document import Node, Scalar
from controller.config.faults import quoted
from controller.config.read import NodeReader, scalar_value, step
from controller.config.terms import (
    MAX_PORT_NO,
    RESERVED_LABELS,
    Labelled,
    is_label_key,
    is_label_value,
)
from controller.wire.dpids import looks_like_dpid

MAX_LABELLED = 65536
"""Switches and ports that may have labels."""

MAX_LABELS = 32
"""Labels that one switch or port may have."""


def read_labels(reader: NodeReader, node: Node, path: str) -> tuple[Labelled, ...]:
    """Return the labels of a mapping of ``SWITCH`` and ``SWITCH:PORT`` to ``{key: value}``."""
    found = reader.entries(node, path, "a mapping of switches and ports to their labels", text_keys=False) or {}
    if len(found) > MAX_LABELLED:
        message = f"{len(found)} switches and ports; at most {MAX_LABELLED} are supported"
        reader.faults.error(node.line, path, message)
        return ()
    labelled: list[Labelled] = []
    lines: dict[tuple[int, int | None], int] = {}
    for key, (line, child) in found.items():
        own_path = step(path, key)
        labels = read_label_pairs(reader, child, own_path)
        place = _place(reader, key, line, own_path)
        if place is None:
            continue
        if place in lines:
            reader.faults.error(line, own_path, f"the same has labels already, on line {lines[place]}")
        lines.setdefault(place, line)
        labelled.append(Labelled(*place, labels))
    return tuple(labelled)


def _place(reader: NodeReader, key: str, line: int, path: str) -> tuple[int, int | None] | None:
    """Return the switch, or the switch and the port, that a key names."""
    switch, colon, port = key.rpartition(":")
    if key in reader.switch_names or looks_like_dpid(key) or not colon:
        dpid = reader.dpid(Scalar(line, key, not (len(key) == 16 and looks_like_dpid(key))), path)
        return None if dpid is None else (dpid, None)
    dpid = reader.dpid(Scalar(line, switch, not (len(switch) == 16 and looks_like_dpid(switch))), path)
    port_no = reader.integer(Scalar(line, port, True), path, 1, MAX_PORT_NO)
    return None if dpid is None or port_no is None else (dpid, port_no)


def read_label_pairs(reader: NodeReader, node: Node, path: str) -> tuple[tuple[str, str], ...]:
    """Return the labels of a mapping of keys to values, in its order."""
    found = reader.entries(node, path, "a mapping of labels, such as {pod: 2}", text_keys=False) or {}
    if len(found) > MAX_LABELS:
        reader.faults.error(node.line, path, f"{len(found)} labels; at most {MAX_LABELS} are supported")
        return ()
    labels: list[tuple[str, str]] = []
    for key, (line, child) in found.items():
        own_path = step(path, key)
        if key in RESERVED_LABELS:
            message = f"{quoted(key)} is known of every switch, and cannot be a label"
            reader.faults.error(line, own_path, message)
        elif not is_label_key(key):
            message = f"{quoted(key)} cannot name a label: a letter, then up to 62 letters, digits, dots, _ and -"
            reader.faults.error(line, own_path, message)
        elif not isinstance(child, Scalar) or scalar_value(child) is None:
            reader.wrong_type(child, own_path, "a value of a label")
        elif not is_label_value(child.text):
            message = f"{quoted(child.text)} cannot be the value of a label: 1 to 63 letters, digits, dots, _ and -"
            reader.faults.error(child.line, own_path, message)
        else:
            labels.append((key, child.text))
    return tuple(labels)
