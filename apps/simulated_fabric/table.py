"""The flow entries of one simulated switch, kept as the bytes in which they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from apps.simulated_fabric import messages
from controller.rules.evaluate import CountedEntry, Fields, FlowTables, Verdict
from controller.rules.model import FlowEntry, FlowKey
from controller.rules.of13 import decode_flow_stats, encode_flow_stats_reply
from controller.rules.pipeline import OPENFLOW_1_3

Key: TypeAlias = tuple[int, int, bytes]
"""Table, priority, and the match with its padding."""

ETH_TYPE_LLDP = 0x88CC
_VERDICTS_BOUND = 4096


class Entry(NamedTuple):
    """A flow entry but for its key; `times` are idle and hard timeout in seconds, `since_s` when it was added."""

    cookie: int
    times: tuple[int, int]
    since_s: float
    instructions: bytes


class HeldTable(FlowTables):
    """What one switch holds; `capacity` entries fit, any number where it is None.

    Entries stay bytes until a packet comes to their table: then those of that table that changed are read. What
    becomes of LLDP frames, which never end, is kept as long as no table changes that they come to.
    """

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__()
        self.capacity = capacity
        self.held: dict[Key, Entry] = {}
        self._rule_keys: dict[Key, FlowKey] = {}
        self._unread: dict[int, set[Key]] = {}
        self._lldp: dict[tuple[int, bytes], Verdict] = {}
        self._lldp_tables: set[int] = set()

    def add(self, key: Key, entry: Entry) -> bool:
        """Add an entry, or replace the one with its key, which goes on counting; False where there is no room."""
        held = self.held
        old = held.get(key)
        if old is not None:
            entry = entry._replace(since_s=old.since_s)
        elif self.capacity is not None and len(held) >= self.capacity:
            return False
        held[key] = entry
        self._changed(key)
        return True

    def modify(self, key: Key, instructions: bytes) -> None:
        """Give an entry other instructions; nothing where there is none (1.3.5, 6.4)."""
        old = self.held.get(key)
        if old is not None:
            self.held[key] = old._replace(instructions=instructions)
            self._changed(key)

    def delete(self, key: Key) -> bool:
        """Delete an entry; False where there was none."""
        if self.held.pop(key, None) is None:
            return False
        self._changed(key)
        return True

    def clear(self) -> None:
        """Lose every entry."""
        for key in list(self.held):
            self.delete(key)

    def _changed(self, key: Key) -> None:
        self._paths.clear()
        table = key[0]
        unread = self._unread.get(table)
        if unread is None:
            unread = self._unread[table] = set()
        unread.add(key)
        if table in self._lldp_tables:
            self._lldp.clear()
            self._lldp_tables.clear()

    def chosen(self, table: int, match: bytes, cookie: int, mask: int) -> Iterator[Key]:
        """Yield the keys of the entries that a request means that is not strict: like `match`, or more specific."""
        wanted = _fields(match)
        for key, entry in self.held.items():
            if table not in (messages.ALL_TABLES, key[0]) or (entry.cookie ^ cookie) & mask:
                continue
            if not wanted or wanted.items() <= _fields(key[2]).items():
                yield key

    def statistics(self, keys: Iterable[Key], now: float) -> list[bytes]:
        """Return the statistics of entries, with what was counted of the packets of `process`."""
        return [self._statistics(key, now) for key in keys]

    def _statistics(self, key: Key, now: float) -> bytes:
        cookie, times, since_s, instructions = self.held[key]
        table, priority, match = key
        rule_key = self._rule_keys.get(key)
        counted = None if rule_key is None else self.entries.get(rule_key)
        counts = (0, 0) if counted is None else (counted.packet_count, counted.byte_count)
        return messages.entry(table, priority, times, cookie, counts, now - since_s, match + instructions)

    def lookup(self, ofp_version: int, table: int, fields: Fields, in_port: int) -> CountedEntry | None:
        """Return the entry that a packet meets in a table, as it is now."""
        unread = self._unread.pop(table, None)
        if unread:
            self._read(unread)
        return super().lookup(ofp_version, table, fields, in_port)

    def lldp(self, in_port: int, eth_dst: bytes) -> Verdict:
        """Return what becomes of an LLDP frame."""
        verdict = self._lldp.get((in_port, eth_dst))
        if verdict is None:
            verdict = self.process(OPENFLOW_1_3, Fields(eth_dst, bytes(6), ETH_TYPE_LLDP), in_port)
            if len(self._lldp) >= _VERDICTS_BOUND:
                self._lldp.clear()
            self._lldp[in_port, eth_dst] = verdict
            self._lldp_tables.update(rule.key.table for rule in verdict.met)
            if not verdict.sent:
                self._lldp_tables.update(range(4))
        return verdict

    def rules(self) -> dict[FlowKey, FlowEntry]:
        """Return all entries as values."""
        for table in list(self._unread):
            self._read(self._unread.pop(table))
        return {key: entry.rule for key, entry in self.entries.items()}

    def _read(self, keys: set[Key]) -> None:
        for key in keys:
            if key in self.held:
                rule = self._rule(key)
                self._rule_keys[key] = rule.key
                self.put(rule)
            elif key in self._rule_keys:
                self.remove(self._rule_keys.pop(key))

    def _rule(self, key: Key) -> FlowEntry:
        """Read an entry; ValueError where it says what the controller's model cannot say."""
        told = self._statistics(key, self.held[key].since_s)
        read = decode_flow_stats(encode_flow_stats_reply(0, False, told))
        if read.fault is not None or read.entries[0].foreign:
            raise ValueError(f"table {key[0]}, priority {key[1]}: {read.fault or 'a match with other fields'}")
        return read.entries[0].rule


def _fields(match: bytes) -> dict[bytes, bytes]:
    """Return the fields of a match by their headers, which tell of masks too."""
    found = {}
    offset, end = 4, int.from_bytes(match[2:4], "big")
    while offset < end:
        size = match[offset + 3]
        found[match[offset : offset + 4]] = match[offset + 4 : offset + 4 + size]
        offset += 4 + size
    return found
