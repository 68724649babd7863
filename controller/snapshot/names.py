"""What operators call switches and ports: names of the policy, else what switches say, else ids; and labels."""

from __future__ import annotations

import re
from collections.abc import Iterable

from controller.config.terms import Labelled, NamedSwitch, is_switch_name
from controller.events import Port
from controller.wire.dpids import format_dpid

DESCRIBED_BOUND = 65536
"""Switches whose description is remembered; beyond it the oldest goes."""

UNSAID = frozenset({"", "none"})
"""Descriptions, in lower case, that say nothing."""

_SPOKEN = re.compile(r"\b([Ss]witch|[Pp]ort) ([0-9]{1,20})(?::([0-9]{1,10}))?\b(?![:.][0-9])")


class Names:
    """Names of switches and ports.

    A switch has the name that the policy gives it, else that of its own description (`OFPMP_DESC`) if no other switch
    has it too, else none: its id stands for it. A port has the name of the policy, else that of its description.
    """

    def __init__(self, switches: Iterable[NamedSwitch] = (), labelled: Iterable[Labelled] = ()) -> None:
        self._given: dict[int, str] = {}
        self._given_ports: dict[tuple[int, int], str] = {}
        self._reserved: frozenset[str] = frozenset()
        self._described: dict[int, str] = {}
        self._claims: dict[str, set[int]] = {}
        self._ports: dict[int, dict[int, str]] = {}
        self._labels: dict[tuple[int, int | None], dict[str, str]] = {}
        self._operators_labels: dict[tuple[int, int | None], dict[str, str]] = {}
        self.configure(switches, labelled)

    def configure(self, switches: Iterable[NamedSwitch], labelled: Iterable[Labelled] = ()) -> None:
        """Take the names and labels of a policy."""
        self._labels = {(dpid, port_no): dict(labels) for dpid, port_no, labels in labelled}
        switches = tuple(switches)
        self._given = {switch.dpid: switch.name for switch in switches}
        self._given_ports = {(switch.dpid, port_no): name for switch in switches for port_no, name in switch.ports}
        self._reserved = frozenset(self._given.values())

    def described(self, dpid: int, text: str) -> list[int]:
        """Take a switch's description; return the switches whose name it may change."""
        name = text.strip()
        name = name if name.lower() not in UNSAID and is_switch_name(name) else ""
        before = self._described.pop(dpid, "")
        if len(self._described) >= DESCRIBED_BOUND:
            self._unclaim(oldest := next(iter(self._described)), self._described.pop(oldest))
            self._ports.pop(oldest, None)
        if name:
            self._described[dpid] = name
        if name == before:
            return []
        touched = {dpid, *self._claims.get(before, ()), *self._claims.get(name, ())}
        self._unclaim(dpid, before)
        if name:
            self._claims.setdefault(name, set()).add(dpid)
        return sorted(touched)

    def description(self, dpid: int) -> str:
        """Return what a switch called itself last, '' where that is no name."""
        return self._described.get(dpid, "")

    def ports_described(self, dpid: int, ports: Iterable[Port]) -> None:
        """Take the descriptions of all ports of a switch."""
        self._ports[dpid] = {port.port_no: port.name for port in ports}

    def port_described(self, dpid: int, port: Port, deleted: bool) -> None:
        """Take that a port was added, changed or deleted."""
        names = self._ports.setdefault(dpid, {})
        if deleted:
            names.pop(port.port_no, None)
        else:
            names[port.port_no] = port.name

    def switch(self, dpid: int) -> str | None:
        """Return a switch's name, None where it has none of its own."""
        given = self._given.get(dpid)
        if given is not None:
            return given
        name = self._described.get(dpid)
        if name is None or name in self._reserved or len(self._claims.get(name, ())) > 1:
            return None
        return name

    def port(self, dpid: int, port_no: int) -> str | None:
        """Return a port's name, None where it has none."""
        return self._given_ports.get((dpid, port_no)) or self._ports.get(dpid, {}).get(port_no) or None

    def labels(self, dpid: int, port_no: int | None = None) -> dict[str, str]:
        """Return the labels of a switch, or of a port of it: an operator's stands for the policy's of that key."""
        given = self._labels.get((dpid, port_no), {})
        own = self._operators_labels.get((dpid, port_no))
        return given if own is None else {**given, **own}

    def label_given(self, dpid: int, port_no: int | None, key: str, value: str | None) -> None:
        """Take that an operator gave a switch, or a port of it, a label; or None: that it is as the policy has it."""
        own = self._operators_labels.setdefault((dpid, port_no), {})
        if value is None:
            own.pop(key, None)
        else:
            own[key] = value
        if not own:
            del self._operators_labels[dpid, port_no]

    def operators_labels(self, dpid: int, port_no: int | None = None) -> dict[str, str]:
        """Return the labels of a switch, or of a port of it, that operators gave."""
        return self._operators_labels.get((dpid, port_no), {})

    def policys_labels(self, dpid: int, port_no: int | None = None) -> dict[str, str]:
        """Return the labels of a switch, or of a port of it, that the policy gives."""
        return self._labels.get((dpid, port_no), {})

    def label(self, dpid: int, port_no: int | None = None) -> str:
        """Return what a switch, or a port of it, is called in texts: ``leaf1`` or ``leaf1:49``, or with the id."""
        switch = self.switch(dpid) or format_dpid(dpid)
        return switch if port_no is None else f"{switch}:{port_no}"

    def spoken(self, text: str) -> str:
        """Return a message of a core, which knows ids alone, with what switches and ports are called instead."""

        def called(match: re.Match[str]) -> str:
            what, dpid, port_no = match.groups()
            if what.lower() == "port" and port_no is None:
                return match[0]
            return f"{what} {self.label(int(dpid), None if port_no is None else int(port_no))}"

        return _SPOKEN.sub(called, text)

    def _unclaim(self, dpid: int, name: str) -> None:
        claims = self._claims.get(name)
        if claims is not None:
            claims.discard(dpid)
            if not claims:
                del self._claims[name]
