"""At which ports hosts report in older versions than the newest of IGMP and MLD (RFC 9776, 7.3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class OlderHosts(NamedTuple):
    """Hosts at a port that report in an older version: 1 or 2 of IGMP (`family` 4), 1 of MLD (6)."""

    dpid: int
    port_no: int
    family: int
    version: int


class OlderReports:
    """Until when each port counts as one with hosts of an older version; three entries per port at most."""

    def __init__(self) -> None:
        self._until: dict[OlderHosts, float] = {}

    def heard(self, hosts: OlderHosts, until: float) -> None:
        """Take note of a report in an older version, which counts until a time in seconds, monotonic, at least."""
        self._until[hosts] = max(until, self._until.get(hosts, until))

    def forget(self, dpid: int, port_no: int) -> None:
        """Forget what was heard at a port that is gone."""
        for hosts in [hosts for hosts in self._until if (hosts.dpid, hosts.port_no) == (dpid, port_no)]:
            del self._until[hosts]

    def postpone(self, by_s: float) -> None:
        """Have all of it count so much longer."""
        self._until = {hosts: until + by_s for hosts, until in self._until.items()}

    def in_force(self, now: float) -> Iterator[OlderHosts]:
        """Yield what counts at a time, by port, and forget what does not any more."""
        self._until = {hosts: until for hosts, until in self._until.items() if until > now}
        yield from sorted(self._until)
