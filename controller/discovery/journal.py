"""The journal: what a restarted controller must know of hosts that do not speak by themselves, and of cables.

A record is one host, or the switch that one port leads to; the last one of a MAC address in a VLAN, or of a port,
counts. Of hosts with one MAC address in several fabrics each has its number. The host is asked at once when its port
is found again, and a port waits for its switch only for a while, so that a record that is too old does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from controller.discovery.addresses import is_host_address, is_host_mac
from controller.discovery.host_states import LocatedHost
from controller.discovery.neighbours import Neighbours
from controller.effects import JournalPart, Notice, WriteJournal
from controller.foreign_fields import KnownFields
from controller.kernel.domains import HIGHEST_VLAN, OWN_DOMAIN, address_of, domain_of, in_domain
from controller.kernel.ports import End
from controller.wire.addresses import format_ip, format_mac, parse_ip, parse_mac
from topology.events import HostLearnt
from topology.host_names import is_numbered, number_of, numbered

JOURNAL_INTERVAL_S = 0.1
"""How long after a change it is written, with others that came meanwhile; multicast's log has links as soon."""

RECORDS_PER_WRITE = 500
"""Records written at one time; the rest follows in turn."""

COMPACT_ABOVE, COMPACT_FACTOR = 2000, 4
"""A journal is replaced when it has this many records, and this many per host and cable, more than a fresh one."""

Record = dict[str, Any]

JOURNAL_FIELDS: Mapping[str, KnownFields] = {
    "host": KnownFields(frozenset(("mac", "vlan", "number", "dpid", "port_no", "ips"))),
    "trunk": KnownFields(frozenset(("dpid", "port_no", "leads_to"))),
}
"""The fields of records that this version writes and reads, by what they are about."""

_HIGHEST_NUMBER = (1 << 24) - 1

Key: TypeAlias = bytes | End
"""What a record is about: the MAC address of a host, by its name in its domain, or a port."""


class HostsRead(NamedTuple):
    """The records of the journal, read at the start, before any switch connects."""

    records: tuple[Record, ...]


class HostsFollowed(NamedTuple):
    """What another controller that leads has in its journal, or has written since; `HostsRead` ends that."""

    records: tuple[Record, ...]


class FormerRun:
    """What an earlier run knew, or another controller that leads, by the records of its journal.

    `hosts` are by name, `neighbours` the switch that each trunk leads to; `faults` of
    the `record_count` records cannot be read.
    """

    def __init__(self) -> None:
        self.hosts: dict[bytes, HostLearnt] = {}
        self.neighbours: dict[End, int] = {}
        self.faults = 0
        self.record_count = 0

    def faults_told(self) -> list[Notice]:
        """Return what operators are told of records that cannot be read."""
        if not self.faults:
            return []
        text = f"{self.faults} records of the journal cannot be read: these hosts are found when they send."
        return [Notice("host-journal-faulty", text, (("records", self.faults),))]

    def take(self, records: Iterable[Record]) -> None:
        """Take in what records tell; the last one of a host or port counts."""
        for record in records:
            self.record_count += 1
            try:
                if "leads_to" in record:
                    _read_neighbour(record, self.neighbours)
                    continue
                host = _read_host(record)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                self.faults += 1
                continue
            self.hosts.pop(host.mac, None)
            if host.dpid:
                self.hosts[host.mac] = host


def _read_neighbour(record: Record, neighbours: dict[End, int]) -> None:
    end = (int(record["dpid"]), int(record["port_no"]))
    neighbour = None if record["leads_to"] is None else int(record["leads_to"])
    if min(*end, 1 if neighbour is None else neighbour) <= 0:
        raise ValueError("no port, or no switch")
    neighbours.pop(end, None)
    if neighbour is not None:
        neighbours[end] = neighbour


def _read_host(record: Record) -> HostLearnt:
    mac, vlan_id = parse_mac(record["mac"]), record.get("vlan", OWN_DOMAIN)
    if not is_host_mac(mac):
        raise ValueError("no MAC address of a host")
    if isinstance(vlan_id, bool) or not isinstance(vlan_id, int) or not OWN_DOMAIN <= vlan_id <= HIGHEST_VLAN:
        raise ValueError("no VLAN")
    number = record.get("number", 1)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _HIGHEST_NUMBER:
        raise ValueError("no number of a host")
    mac = numbered(in_domain(mac, vlan_id), number)
    if record["dpid"] is None:
        return HostLearnt(mac, 0, 0, ())
    dpid, port_no = int(record["dpid"]), int(record["port_no"])
    addresses = tuple(in_domain(parse_ip(text), vlan_id) for text in record["ips"])
    if dpid <= 0 or port_no <= 0 or not all(map(is_host_address, addresses)):
        raise ValueError("no place or address of a host")
    return HostLearnt(mac, dpid, port_no, addresses)


class HostJournal:
    """Notes which hosts and trunks changed and turns them into records at leisure.

    Parameters
    ----------
    hosts
        The hosts that are known, by MAC address; all addresses are names in their domains.
    remembered
        Hosts, as MAC and IP addresses, that wait for their ports to be found again.
    neighbours
        The switch that each trunk leads to.

    Attributes
    ----------
    due_s
        When records are due to be written, None for never.
    """

    def __init__(
        self,
        hosts: Mapping[bytes, LocatedHost],
        remembered: Mapping[End, Iterable[tuple[bytes, tuple[bytes, ...]]]],
        neighbours: Neighbours,
    ) -> None:
        self.due_s: float | None = None
        self._hosts = hosts
        self._remembered = remembered
        self._neighbours = neighbours
        self._touched: dict[Key, None] = {}
        self._written_count = 0
        self._lost = False
        self._rewriting: list[Key] | None = None

    def was_read(self, count: int) -> None:
        """Note how many records the journal has."""
        self._written_count = count

    def touch(self, key: Key, now: float) -> None:
        """Note that a host or trunk is new, has changed or is gone."""
        self._touched[key] = None
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
        keys = list(islice(self._touched, RECORDS_PER_WRITE))
        for key in keys:
            del self._touched[key]
        if keys:
            effects.append(WriteJournal(tuple(map(self._record, keys)), JournalPart.APPEND))
            self._written_count += len(keys)
        if self._rewriting is not None:
            effects.append(self._rewrite(self._rewriting))
        elif self._lost or self._written_count > COMPACT_ABOVE + COMPACT_FACTOR * self._known_count:
            self._lost = False
            self._rewriting = [*self._hosts, *self._neighbours.known]
            effects.append(WriteJournal(tuple(self._remembered_records()), JournalPart.BEGIN))
        more = bool(self._touched) or self._rewriting is not None
        self.due_s = now + JOURNAL_INTERVAL_S if more else None
        return effects

    @property
    def _known_count(self) -> int:
        return len(self._hosts) + len(self._neighbours.known)

    def _rewrite(self, left: list[Key]) -> WriteJournal:
        """Write some more records to the new journal; the last ones put it in the place of the old one."""
        part, left[:] = left[:RECORDS_PER_WRITE], left[RECORDS_PER_WRITE:]
        records = tuple(self._record(key) for key in part if key in self._hosts or key in self._neighbours.known)
        if left:
            return WriteJournal(records, JournalPart.CONTINUE)
        self._rewriting = None
        self._written_count = self._known_count
        return WriteJournal(records, JournalPart.FINISH)

    def _record(self, key: Key) -> Record:
        if isinstance(key, tuple):
            return _neighbour_record(key, self._neighbours.known.get(key))
        host = self._hosts.get(key)
        if host is None:
            return {**_named(key), "dpid": None}
        return _host_record(key, host.end, sorted(host.addresses))

    def _remembered_records(self) -> Iterable[Record]:
        for end, hosts in self._remembered.items():
            for mac, addresses in hosts:
                yield _host_record(mac, end, addresses)
        for end, neighbour in self._neighbours.awaited.items():
            yield _neighbour_record(end, neighbour)


def _host_record(mac: bytes, end: End, addresses: Iterable[bytes]) -> Record:
    ips = [format_ip(address_of(address)) for address in addresses]
    return {**_named(mac), "dpid": end[0], "port_no": end[1], "ips": ips}


def _named(mac: bytes) -> Record:
    vlan_id = domain_of(mac)
    named: Record = {"mac": format_mac(address_of(mac))}
    named = {**named, "vlan": vlan_id} if vlan_id else named
    return {**named, "number": number_of(mac)} if is_numbered(mac) else named


def _neighbour_record(end: End, neighbour: int | None) -> Record:
    return {"dpid": end[0], "port_no": end[1], "leads_to": neighbour}
