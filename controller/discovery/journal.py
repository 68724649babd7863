"""The journal of hosts: what a restarted controller must know of hosts that do not speak by themselves.

A record is one host; the last one of a MAC address counts. The host is asked at once when its port is found again, so
that a record that is too old does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from controller.discovery.hosts import HostState, is_host_address, is_host_mac
from controller.discovery.ports import End
from controller.effects import JournalPart, WriteJournal
from controller.wire.addresses import format_ip, format_mac, parse_ip, parse_mac
from topology.events import HostLearnt

JOURNAL_INTERVAL_S = 1.0
HOSTS_PER_WRITE = 500
"""Hosts written at one time; the rest follows in turn."""

COMPACT_ABOVE, COMPACT_FACTOR = 2000, 4
"""A journal is replaced when it has this many records, and this many per host, more than a fresh one."""

Record = dict[str, Any]


class HostsRead(NamedTuple):
    """The records of the journal of hosts, read at the start, before any switch connects."""

    records: tuple[Record, ...]


def read_hosts(records: Iterable[Record]) -> tuple[list[HostLearnt], int]:
    """Return the hosts that records tell of, and how many records cannot be read."""
    hosts: dict[bytes, HostLearnt] = {}
    faults = 0
    for record in records:
        try:
            host = _read_host(record)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            faults += 1
            continue
        hosts.pop(host.mac, None)
        if host.dpid:
            hosts[host.mac] = host
    return list(hosts.values()), faults


def _read_host(record: Record) -> HostLearnt:
    mac = parse_mac(record["mac"])
    if not is_host_mac(mac):
        raise ValueError("no MAC address of a host")
    if record["dpid"] is None:
        return HostLearnt(mac, 0, 0, ())
    dpid, port_no = int(record["dpid"]), int(record["port_no"])
    addresses = tuple(map(parse_ip, record["ips"]))
    if dpid <= 0 or port_no <= 0 or not all(map(is_host_address, addresses)):
        raise ValueError("no place or address of a host")
    return HostLearnt(mac, dpid, port_no, addresses)


class HostJournal:
    """Notes which hosts changed and turns them into records at leisure.

    Parameters
    ----------
    hosts
        The hosts that are known, by MAC address.
    remembered
        Hosts, as MAC and IP addresses, that wait for their ports to be found again.

    Attributes
    ----------
    due_s
        When records are due to be written, None for never.
    """

    def __init__(
        self,
        hosts: Mapping[bytes, HostState],
        remembered: Mapping[End, Iterable[tuple[bytes, tuple[bytes, ...]]]],
    ) -> None:
        self.due_s: float | None = None
        self._hosts = hosts
        self._remembered = remembered
        self._touched: dict[bytes, None] = {}
        self._written_count = 0
        self._lost = False
        self._rewriting: list[bytes] | None = None

    def was_read(self, count: int) -> None:
        """Note how many records the journal has."""
        self._written_count = count

    def touch(self, mac: bytes, now: float) -> None:
        """Note that a host is new, has changed or is gone."""
        self._touched[mac] = None
        if self.due_s is None:
            self.due_s = now + JOURNAL_INTERVAL_S

    def begin_anew(self, now: float) -> None:
        """Replace the journal from here on, since records of it are lost."""
        self._rewriting = None
        self._lost = True
        self.due_s = now

    def on_deadline(self, now: float) -> list[WriteJournal]:
        """Return the records to write, none before the deadline; a grown journal is replaced in small steps."""
        if self.due_s is None or now < self.due_s:
            return []
        effects = []
        macs = list(islice(self._touched, HOSTS_PER_WRITE))
        for mac in macs:
            del self._touched[mac]
        if macs:
            effects.append(WriteJournal(tuple(map(self._record, macs)), JournalPart.APPEND))
            self._written_count += len(macs)
        if self._rewriting is not None:
            effects.append(self._rewrite(self._rewriting))
        elif self._lost or self._written_count > COMPACT_ABOVE + COMPACT_FACTOR * len(self._hosts):
            self._lost = False
            self._rewriting = list(self._hosts)
            effects.append(WriteJournal(tuple(self._remembered_records()), JournalPart.BEGIN))
        more = bool(self._touched) or self._rewriting is not None
        self.due_s = now + JOURNAL_INTERVAL_S if more else None
        return effects

    def _rewrite(self, left: list[bytes]) -> WriteJournal:
        """Write some more hosts to the new journal; the last ones put it in the place of the old one."""
        part, left[:] = left[:HOSTS_PER_WRITE], left[HOSTS_PER_WRITE:]
        records = tuple(self._record(mac) for mac in part if mac in self._hosts)
        if left:
            return WriteJournal(records, JournalPart.CONTINUE)
        self._rewriting = None
        self._written_count = len(self._hosts)
        return WriteJournal(records, JournalPart.FINISH)

    def _record(self, mac: bytes) -> Record:
        host = self._hosts.get(mac)
        if host is None:
            return {"mac": format_mac(mac), "dpid": None}
        return _host_record(mac, host.end, sorted(host.addresses))

    def _remembered_records(self) -> Iterable[Record]:
        for end, hosts in self._remembered.items():
            for mac, addresses in hosts:
                yield _host_record(mac, end, addresses)


def _host_record(mac: bytes, end: End, addresses: Iterable[bytes]) -> Record:
    return {"mac": format_mac(mac), "dpid": end[0], "port_no": end[1], "ips": list(map(format_ip, addresses))}
