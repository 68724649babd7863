"""Where interfaces of other machines are in the fabric: what ``--at NAME=DPID[:PORT]`` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from controller.config.faults import quoted
from controller.config.terms import MAX_PORT_NO, SwitchPort
from controller.wire.dpids import parse_dpid


class Places(NamedTuple):
    """Interfaces at ports of the fabric, and bridges that are its switches, by their names."""

    ports: Mapping[str, SwitchPort]
    switches: Mapping[str, int]


def parse_places(texts: Iterable[str]) -> Places:
    """Return what texts such as ``eth0=0x1:7`` and ``br0=1`` say.

    ValueError names the text that says nothing, a name that stands twice, and a port that two interfaces are at.
    """
    ports: dict[str, SwitchPort] = {}
    switches: dict[str, int] = {}
    at: dict[SwitchPort, str] = {}
    for text in texts:
        name, equals, where = text.rpartition("=")
        dpid_text, colon, port_text = where.partition(":")
        if not (equals and name):
            raise ValueError(f"{quoted(text)}: expected NAME=DPID:PORT, or NAME=DPID for a bridge")
        if name in ports or name in switches:
            raise ValueError(f"{quoted(text)}: {quoted(name)} stands twice")
        try:
            dpid = parse_dpid(dpid_text)
        except ValueError as error:
            raise ValueError(f"{quoted(text)}: {error}") from None
        if not colon:
            switches[name] = dpid
            continue
        if not (port_text.isascii() and port_text.isdecimal() and 1 <= int(port_text) <= MAX_PORT_NO):
            raise ValueError(f"{quoted(text)}: a port is a number of 1 to {MAX_PORT_NO}")
        place = SwitchPort(dpid, int(port_text))
        if place in at:
            raise ValueError(f"{quoted(text)}: {quoted(at[place])} is at port {place} already")
        at[place] = name
        ports[name] = place
    return Places(ports, switches)
