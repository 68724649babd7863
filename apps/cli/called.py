"""What switches and ports are called, in tables and in arguments: names, datapath ids in hexadecimal or decimal."""

from __future__ import annotations

from typing import Any

from apps.cli.common import InputError
from apps.cli.times import Clock
from controller.config.terms import MAX_PORT_NO
from controller.snapshot.reader import DocumentCopy, Snapshot
from controller.wire.dpids import format_dpid, looks_like_dpid, parse_dpid

SECTIONS = ("switches", "ports")
"""What names are taken from."""


class SnapshotNames:
    """The names that a snapshot tells; where it tells none, ids stand for switches and numbers for ports.

    `clock` shows the times beside them.
    """

    def __init__(self, snapshot: Snapshot, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self._ports = snapshot.section("ports")
        self._names = _names(snapshot.section("switches"))

    def label(self, dpid: int | None, port_no: int | None = None) -> str:
        """Return what a switch or a port of it is called: ``leaf1``, ``leaf1:49``, or with the id."""
        if dpid is None:
            return "-"
        switch = self._names.get(dpid) or format_dpid(dpid)
        return switch if port_no is None else f"{switch}:{port_no}"

    def switch(self, text: str, field: str) -> int:
        """Return the datapath id of a switch by name or id; InputError, naming `field`, where it is neither."""
        for dpid, name in self._names.items():
            if name == text:
                return dpid
        return read_dpid(text, field)

    def port(self, text: str, field: str) -> tuple[int, int]:
        """Return datapath id and number of a port, written SWITCH:PORT by names or numbers; InputError."""
        switch, colon, port = text.rpartition(":")
        dpid = self.switch(switch, field) if colon else 0
        if port.isascii() and port.isdecimal() and 1 <= len(port) <= 10:
            if dpid and 1 <= int(port) <= MAX_PORT_NO:
                return dpid, int(port)
        elif dpid:
            for document in self._ports.documents.values():
                if document.fields.get("dpid") == dpid and document.fields.get("name") == port:
                    return dpid, int(document.fields["port_no"])
            raise InputError(f"{field}: switch {self.label(dpid)} has no port named {port!r}")
        raise InputError(f"{field}: {text!r} is no port, such as leaf1:49 or 3:1")


def read_dpid(text: str, field: str) -> int:
    """Return a datapath id; InputError, naming `field`, where it is none."""
    try:
        return parse_dpid(text)
    except ValueError as error:
        unknown = "" if looks_like_dpid(text) else ", and no switch has that name"
        raise InputError(f"{field}: {error}{unknown}") from None


def is_spelled_out(text: str) -> bool:
    """Tell whether a switch, or a port as SWITCH:PORT, is written in numbers, so that no names are needed."""
    switch, colon, port = text.rpartition(":")
    return looks_like_dpid(text) or (bool(colon) and looks_like_dpid(switch) and port.isdecimal())


def _names(switches: DocumentCopy) -> dict[int, Any]:
    found = (document.fields for document in switches.documents.values())
    return {fields["dpid"]: fields["name"] for fields in found if fields.get("name") and "dpid" in fields}
