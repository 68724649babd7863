"""What an audit log says of who received and sent: hosts by their MAC addresses, groups, days."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.config.terms import SwitchPort
from controller.kernel.domains import domain_of

Bools = NDArray[np.bool_]

DAY_S = 86400.0
HOSTS_BOUND, GROUPS_BOUND = 65536, 4096
"""Hosts and groups that a proposal is made of; beyond, those that come later in the log are counted and left out."""


class AdmittedHost:
    """Where a host was seen, by which addresses."""

    def __init__(self) -> None:
        self.addresses: set[bytes] = set()
        self.ports: set[SwitchPort] = set()


class Asked(NamedTuple):
    """One decision: `group` of a domain (4 or 16 bytes, with a VLAN two more), `source` what a receiver asked for."""

    time_s: float
    admit: bool
    rule: str
    role: str
    mac: bytes
    address: bytes | None
    port: SwitchPort
    group: bytes
    source: bytes | None = None


class Pair:
    """The newest decision about a host, a role, a group and a source, and the days on which it was admitted."""

    def __init__(self, newest: Asked) -> None:
        self.newest = newest
        self.days: set[int] = set()

    @property
    def admit(self) -> bool:
        """Whether it was admitted in the end."""
        return self.newest.admit


class Observations:
    """Decisions, added in any order; the newest of a host, role, group and source counts."""

    def __init__(self) -> None:
        self.hosts: dict[bytes, AdmittedHost] = {}
        self.groups: dict[bytes, None] = {}
        self.received: dict[tuple[bytes, bytes | None, bytes], Pair] = {}
        """By host, the source that it asked for, and group."""
        self.sent: dict[tuple[bytes, bytes | None, bytes], Pair] = {}
        """By host, its address and group."""
        self.counted: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()
        self.first_s, self.last_s = float("inf"), float("-inf")

    def add(self, asked: Asked) -> None:
        """Add a decision about a receiver or a sender."""
        self.counted["decisions"] += 1
        self.rules[asked.rule] += 1
        time_s, admit, _, role, mac, address, port, group, source = asked
        if time_s < self.first_s:
            self.first_s = time_s
        if time_s > self.last_s:
            self.last_s = time_s
        host = self.hosts.get(mac)
        if host is None or group not in self.groups:
            is_beyond = host is None and len(self.hosts) >= HOSTS_BOUND
            if is_beyond or (group not in self.groups and len(self.groups) >= GROUPS_BOUND):
                self.counted["beyond_bounds"] += 1
                return
            self.groups[group] = None
            host = self.hosts.setdefault(mac, AdmittedHost())
        if address is not None:
            host.addresses.add(address)
        host.ports.add(port)
        key = (mac, address if role == "sender" else source, group)
        pairs = self.sent if role == "sender" else self.received
        pair = pairs.get(key)
        if pair is None:
            pair = pairs[key] = Pair(asked)
        elif (time_s, not admit) >= (pair.newest.time_s, not pair.newest.admit):
            pair.newest = asked
        if admit:
            pair.days.add(int(time_s // DAY_S))

    def refused(self) -> int:
        """Return how many hosts and groups were refused in the end, whatever source they asked for."""
        receivers = {(mac, group) for mac, _, group in self.received}
        return len(receivers) - len(self.receivers()) + sum(not pair.admit for pair in self.sent.values())

    def receivers(self) -> dict[tuple[bytes, bytes], set[int]]:
        """Return the days on which each host was admitted to each group, of those that were in the end."""
        found: dict[tuple[bytes, bytes], set[int]] = {}
        for (mac, _, group), pair in self.received.items():
            if pair.admit:
                found.setdefault((mac, group), set()).update(pair.days)
        return found

    def table(self) -> tuple[list[bytes], list[bytes], Bools]:
        """Return the hosts and groups of what was received, both in order, and which host received which (H, G)."""
        pairs = self.receivers()
        hosts = sorted({mac for mac, _ in pairs}, key=lambda mac: (_lowest(self.hosts[mac].addresses), mac))
        groups = sorted({group for _, group in pairs}, key=lambda group: (domain_of(group), len(group), group))
        row_of = {mac: row for row, mac in enumerate(hosts)}
        column_of = {group: column for column, group in enumerate(groups)}
        table = np.zeros((len(hosts), len(groups)), np.bool_)
        for mac, group in pairs:
            table[row_of[mac], column_of[group]] = True
        return hosts, groups, table


def _lowest(addresses: set[bytes]) -> tuple[int, bytes]:
    lowest = min(addresses, key=lambda address: (len(address), address), default=b"\xff" * 16)
    return len(lowest), lowest
