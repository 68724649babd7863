"""The databases of switches: what each server says, and what it is asked, one transaction at a time per switch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from controller.queues.database_copy import DatabaseCopy, DatabaseInvalid
from controller.queues.events import Transact
from controller.queues.plan import BridgePort, PortWanted, plan, ports_of

RETRY_S = 5.0
"""Time after which what a server refused is tried again, if nothing it tells is a reason to do so before."""


class SwitchRows(NamedTuple):
    """Where the queues of a switch are kept: its server, and what that says of its bridge's ports."""

    server: str
    dpid: int
    ports: dict[int, BridgePort]
    is_in_user_space: bool


class Written(NamedTuple):
    """What a server is asked to do for a switch, None for nothing, and the ports that have others' QoS."""

    transact: Transact | None
    foreign: tuple[int, ...]


class Databases:
    """The databases of all servers that are there.

    Attributes
    ----------
    fault
        What made no sense of what was told last.
    """

    def __init__(self) -> None:
        self.fault = ""
        self._copies: dict[str, DatabaseCopy] = {}
        self._lost: set[str] = set()
        self._numbers = 0
        self._under_way: dict[tuple[str, int], int] = {}
        self._by_number: dict[int, int] = {}
        self._again_s: dict[int, float] = {}

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers that are there."""
        return tuple(self._copies)

    def dpids(self) -> set[int]:
        """Return the datapath ids of all bridges, and of rows of this controller without a bridge."""
        return {dpid for copy in self._copies.values() for dpid in (*copy.dpids(), *copy.abandoned())}

    def abandoned(self) -> set[int]:
        """Return the datapath ids of rows of this controller without a bridge."""
        return {dpid for copy in self._copies.values() for dpid in copy.abandoned()}

    def read(self, server: str, updates: Any) -> set[int] | None:
        """Take all that a server tells; return whom it is about, None where it makes no sense."""
        self._forget_transactions(server)
        self._copies[server] = DatabaseCopy()
        if self.updated(server, updates) is None:
            return None
        copy = self._copies[server]
        return {*copy.dpids(), *copy.abandoned()}

    def updated(self, server: str, updates: Any) -> set[int] | None:
        """Take what is otherwise; return whom it is about, None where it makes no sense."""
        copy = self._copies.get(server)
        if copy is None:
            return set()
        try:
            return copy.apply(updates)
        except DatabaseInvalid as error:
            self.fault = str(error)
            return None

    def lost(self, server: str) -> bool:
        """Take note that a server is not there; tell whether that is news."""
        self._forget_transactions(server)
        self._copies.pop(server, None)
        is_news = server not in self._lost
        self._lost.add(server)
        return is_news

    def is_back(self, server: str) -> bool:
        """Tell, once, whether a server that is there had been lost."""
        was_lost = server in self._lost
        self._lost.discard(server)
        return was_lost

    def keep(self, servers: Iterable[str]) -> None:
        """Forget all servers but these."""
        kept = set(servers)
        for server in [server for server in self._copies if server not in kept]:
            self._forget_transactions(server)
            del self._copies[server]
        self._lost &= kept

    def with_rows_of(self, dpid: int) -> list[SwitchRows]:
        """Return where a switch has a bridge, or rows of this controller without one."""
        found = []
        for server, copy in self._copies.items():
            bridge = copy.bridge(dpid)
            if bridge is not None:
                found.append(SwitchRows(server, dpid, ports_of(copy, bridge), bridge.is_in_user_space))
            elif dpid in copy.abandoned():
                found.append(SwitchRows(server, dpid, {}, False))
        return found

    def rates_at(self, port: BridgePort) -> dict[int, int] | None:
        """Return the least rates, by queue, that a port has of this controller; None where it has none."""
        for copy in self._copies.values():
            row = copy.qos.get(port.row.qos or "")
            if row is not None and row.owner is not None:
                rows = {queue_id: copy.queues.get(uuid) for queue_id, uuid in row.queues.items()}
                return {
                    queue_id: int(each.config["min-rate"])
                    for queue_id, each in rows.items()
                    if each is not None and each.config.get("min-rate", "").isdecimal()
                }
        return None

    def write(self, place: SwitchRows, wanted: Mapping[int, PortWanted], is_kept: bool, now: float) -> Written | None:
        """Ask a server for what a switch shall have; None while it does something for that switch."""
        server, dpid = place.server, place.dpid
        if (server, dpid) in self._under_way:
            return None
        found = plan(self._copies[server], dpid, wanted, is_kept)
        if not found.operations:
            return Written(None, found.foreign)
        self._numbers += 1
        self._under_way[server, dpid] = self._numbers
        self._by_number[self._numbers] = dpid
        return Written(Transact(server, self._numbers, tuple(found.operations)), found.foreign)

    def transacted(self, server: str, number: int, error: str | None, now: float) -> int | None:
        """Take note that a server has answered; return which switch that was about, None where nothing was asked."""
        dpid = self._by_number.pop(number, None)
        if dpid is None:
            return None
        self._under_way.pop((server, dpid), None)
        if error is not None:
            self._again_s[dpid] = now + RETRY_S
        return dpid

    def next_deadline(self) -> float | None:
        """Return when something is to be tried again, None for never."""
        return min(self._again_s.values(), default=None)

    def take_due(self, now: float) -> list[int]:
        """Return the switches for which something is to be tried again now."""
        due = [dpid for dpid, again_s in self._again_s.items() if again_s <= now]
        for dpid in due:
            del self._again_s[dpid]
        return due

    def _forget_transactions(self, server: str) -> None:
        for key in [key for key in self._under_way if key[0] == server]:
            self._by_number.pop(self._under_way.pop(key), None)
