"""Dense row numbers for ports, so that what is known of them stands in arrays."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from topology.graph import NodeKind

MAX_PORTS = 262144
"""Ports that have a row at one time."""

KINDS = tuple(NodeKind)

T = TypeVar("T", bound=np.generic)


class PortName(NamedTuple):
    """Which port a row is about."""

    dpid: int
    port_no: int
    name: str


class Added(NamedTuple):
    """The row of a port; `fresh` where the row was new or belonged to another port before."""

    row: int
    fresh: bool


class _Switch:
    """The rows of one switch."""

    __slots__ = ("asked", "kind", "node", "rows", "rows_asked")

    def __init__(self, node: int) -> None:
        self.node = node
        self.kind = NodeKind.SWITCH
        self.rows: dict[int, int] = {}
        self.asked: NDArray[np.int64] | None = None
        self.rows_asked = np.empty(0, np.int32)


class PortRows:
    """Rows of (dpid, port_no); a port that went keeps its row until another needs it.

    Parameters
    ----------
    max_ports
        Bound of the table. When it is full, the port that has been gone or released for longest gives its row away;
        where there is none, a new port is refused and counted in `refused`.

    Attributes
    ----------
    speed_bps
        float64[capacity], capacity by row; 0 where unknown.
    generation
        uint32[capacity], goes up whenever the row's port is created, so that its counters may have begun anew.
    node
        int32[capacity], dense number of the row's switch.
    kind_code
        uint8[capacity], the class of the row's switch, as a position in `KINDS`.
    present
        bool[capacity], whether the port is there.
    link_up
        bool[capacity], whether its link was last told to be up; `set_link` says so.
    freed_nodes
        Dense numbers of switches that lost their last row, so that another may get them; the caller empties the list.
    """

    def __init__(self, max_ports: int = MAX_PORTS) -> None:
        if max_ports < 1:
            raise ValueError("a table needs room for at least one port")
        self.max_ports = max_ports
        self.refused = 0
        self.speed_bps = np.zeros(64)
        self.generation = np.zeros(64, np.uint32)
        self.node = np.zeros(64, np.int32)
        self.kind_code = np.full(64, KINDS.index(NodeKind.SWITCH), np.uint8)
        self.present = np.zeros(64, np.bool_)
        self.link_up = np.zeros(64, np.bool_)
        self.freed_nodes: list[int] = []
        self._names: list[PortName] = []
        self._switches: dict[int, _Switch] = {}
        self._nodes: list[int | None] = []
        self._free_nodes: list[int] = []
        self._gone: dict[int, None] = {}

    def __len__(self) -> int:
        """Return how many rows have been given out."""
        return len(self._names)

    @property
    def capacity(self) -> int:
        """The length of the arrays."""
        return len(self.present)

    def add(self, dpid: int, port_no: int, name: str, speed_bps: float) -> Added | None:
        """Give a port a row, or note that it was created again; None where the table is full."""
        switch = self._switches.get(dpid) or self._new_switch(dpid)
        row = switch.rows.get(port_no)
        fresh = row is None
        if row is None:
            row = self._new_row()
            if row is None:
                self.refused += 1
                self._drop_switch_if_empty(dpid)
                return None
            switch = self._switches.get(dpid) or self._new_switch(dpid)
            switch.rows[port_no] = row
            switch.asked = None
            self.node[row] = switch.node
            self.kind_code[row] = KINDS.index(switch.kind)
        self._names[row] = PortName(dpid, port_no, name)
        self.speed_bps[row] = speed_bps
        self.generation[row] += np.uint32(1)
        self.present[row] = True
        self._gone.pop(row, None)
        return Added(row, fresh)

    def change(self, dpid: int, port_no: int, name: str, speed_bps: float) -> int | None:
        """Note a port's name and capacity; None where it has no row."""
        row = self.row(dpid, port_no)
        if row is not None:
            self._names[row] = PortName(dpid, port_no, name)
            self.speed_bps[row] = speed_bps
            if self.present[row]:
                self._gone.pop(row, None)
        return row

    def set_link(self, row: int, up: bool) -> bool:
        """Note whether a port's link is up; return whether that is news."""
        news = bool(self.link_up[row]) is not up
        self.link_up[row] = up
        return news

    def release(self, dpid: int) -> None:
        """Let the ports of a switch give their rows away if they must; `add` or `change` takes that back."""
        self._gone.update(dict.fromkeys(self.rows_of_switch(dpid)))

    def leave(self, dpid: int) -> None:
        """Have the ports of a switch count as others from now on: another monitor polls it."""
        self.release(dpid)
        self.generation[list(self.rows_of_switch(dpid))] += np.uint32(1)

    def remove(self, dpid: int, port_no: int) -> int | None:
        """Note that a port is gone; return its row, None where it has none."""
        row = self.row(dpid, port_no)
        if row is not None and self.present[row]:
            self.present[row] = False
            self._gone[row] = None
        return row

    def classify(self, dpid: int, kind: NodeKind) -> None:
        """Say of which class a switch with ports is."""
        switch = self._switches.get(dpid)
        if switch is not None and switch.kind is not kind:
            switch.kind = kind
            self.kind_code[list(switch.rows.values())] = KINDS.index(kind)

    def kind(self, dpid: int) -> NodeKind:
        """Return the class of a switch, `NodeKind.SWITCH` where it is not known."""
        switch = self._switches.get(dpid)
        return NodeKind.SWITCH if switch is None else switch.kind

    def row(self, dpid: int, port_no: int) -> int | None:
        """Return the row of a port, None where it has none."""
        switch = self._switches.get(dpid)
        return None if switch is None else switch.rows.get(port_no)

    def rows_of(self, dpid: int, port_nos: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the rows of ports of a switch; -1 for one without. Asking for the same ports again is quick."""
        switch = self._switches.get(dpid)
        if switch is None:
            return np.full(len(port_nos), -1, np.int32)
        if switch.asked is None or not np.array_equal(switch.asked, port_nos):
            found = switch.rows
            switch.rows_asked = np.array([found.get(number, -1) for number in port_nos.tolist()], np.int32)
            switch.asked = np.array(port_nos, np.int64)
        return switch.rows_asked

    def rows_of_switch(self, dpid: int) -> tuple[int, ...]:
        """Return the rows of a switch's ports, also of those that are gone."""
        switch = self._switches.get(dpid)
        return () if switch is None else tuple(switch.rows.values())

    def name(self, row: int) -> PortName:
        """Return which port a row is about."""
        return self._names[row]

    def node_of(self, dpid: int) -> int | None:
        """Return the dense number of a switch, None where it has none."""
        switch = self._switches.get(dpid)
        return None if switch is None else switch.node

    def switches(self) -> tuple[int, ...]:
        """Return the datapath ids of all switches."""
        return tuple(self._switches)

    @property
    def node_count(self) -> int:
        """One more than the highest dense number of a switch."""
        return len(self._nodes)

    def _new_switch(self, dpid: int) -> _Switch:
        node = self._free_nodes.pop() if self._free_nodes else len(self._nodes)
        if node == len(self._nodes):
            self._nodes.append(None)
        self._nodes[node] = dpid
        switch = self._switches[dpid] = _Switch(node)
        return switch

    def _drop_switch_if_empty(self, dpid: int) -> None:
        switch = self._switches[dpid]
        if not switch.rows:
            del self._switches[dpid]
            self._nodes[switch.node] = None
            self._free_nodes.append(switch.node)
            self.freed_nodes.append(switch.node)

    def _new_row(self) -> int | None:
        if len(self._names) < self.max_ports:
            row = len(self._names)
            self._names.append(PortName(0, 0, ""))
            if row >= self.capacity:
                self._grow(min(self.max_ports, row + row // 4 + 64))
            return row
        if not self._gone:
            return None
        row = next(iter(self._gone))
        del self._gone[row]
        former = self._names[row]
        switch = self._switches[former.dpid]
        del switch.rows[former.port_no]
        switch.asked = None
        self._drop_switch_if_empty(former.dpid)
        return row

    def _grow(self, capacity: int) -> None:
        self.speed_bps = longer(self.speed_bps, capacity)
        self.generation = longer(self.generation, capacity)
        self.node = longer(self.node, capacity)
        self.kind_code = longer(self.kind_code, capacity)
        self.present = longer(self.present, capacity)
        self.link_up = longer(self.link_up, capacity)


def longer(array: NDArray[T], length: int) -> NDArray[T]:
    """Return a copy of an array with zeros added up to `length` along its first axis."""
    result = np.zeros((length, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result
