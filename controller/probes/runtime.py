"""What scripts keep and do while they run: bags, aggregates and lines, all bounded; the faults of firings."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import nsmallest
from typing import Any, NamedTuple, TypeAlias

from controller.wire.addresses import format_ip, format_mac

KEYS_BOUND = 4096
"""Keys of a bag or an aggregate; what finds no room is counted."""

ROOM_BOUND = 16 << 20
"""Bytes that all keys and values of a script take together, as they are reckoned here."""

ROW_ROOM, PAIR_ROOM, CHARACTER_ROOM = 4096, 512, 4
"""Of a row of an aggregate, of a key with its value in a bag, and of a character of a string in either."""

LINES_BOUND = 10_000
LINE_BOUND = 1024
"""Lines, and characters of one."""

LINES_PER_S = 1000
"""Lines that a script writes in a second, where it looks at what happens now."""

_SECOND_NS = 1_000_000_000

STEPS_BOUND = 10_000
"""Steps of a firing whose clause has loops."""

STEPS_TOGETHER = 100
"""After a firing of more steps the samples that it noted are summed, so that few wait for that."""

SUMMED_EVERY = 512
"""After so many firings of others, at most some more."""

FEW_SAMPLES = 8
"""So many are counted one after the other in less time than all together."""

TEXT_BOUND = 256
"""Characters of a string."""

LEAST, MOST, _ALL = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
"""Bounds of integers."""

Value: TypeAlias = int | str
KeyTuple: TypeAlias = tuple[Value, ...]
Key: TypeAlias = Value | KeyTuple
"""One key as it is, several or none together."""


class FiringFault(Exception):  # noqa: N818
    """A firing goes no further, unless a `catch` takes it on; the text says what kind of fault it is."""


class OutOfSteps(Exception):  # noqa: N818
    """A firing has taken all the steps that it may; nothing catches it."""


class ProbeEnds(Exception):  # noqa: N818
    """The script is to end."""


@dataclass(frozen=True)
class AggregateRow:
    """Samples of one key: `histogram` counts them by the least of their powers of two, as `log2_floor` has it."""

    keys: KeyTuple
    count: int
    sum: int
    min: int
    max: int
    histogram: tuple[tuple[int, int], ...]


class _Samples:
    """Samples of one key; `histogram` counts them by their bits, of negative ones as a negative number."""

    __slots__ = ("histogram", "least", "most", "total")

    def __init__(self) -> None:
        self.total = 0
        self.least, self.most = MOST, LEAST
        self.histogram = Counter[int]()

    def add(self, values: Sequence[int]) -> None:
        """Take samples, one at least."""
        least, most = min(values), max(values)
        self.total += sum(values)
        if least < self.least:
            self.least = least
        if most > self.most:
            self.most = most
        all_bits = map(int.bit_length if least >= 0 else _signed_bits, values)
        histogram = self.histogram
        if len(values) > FEW_SAMPLES:
            histogram.update(all_bits)
        else:
            for bits in all_bits:
                histogram[bits] += 1

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.histogram.values())

    def row(self, keys: KeyTuple, ones: int) -> AggregateRow:
        """Return what was taken, and so many samples of 1 besides."""
        histogram = dict(self.histogram)
        least, most = self.least, self.most
        if ones:
            histogram[1] = histogram.get(1, 0) + ones
            least, most = min(least, 1), max(most, 1)
        by_power = tuple((_power(bits), histogram[bits]) for bits in sorted(histogram))
        return AggregateRow(keys, self.count + ones, self.total + ones, least, most, by_power)


def _signed_bits(value: int) -> int:
    return value.bit_length() if value >= 0 else -value.bit_length()


def _power(bits: int) -> int:
    """Return the least integer of samples with so many bits: a power of two, 0, or minus one of these."""
    if bits == 0:
        return 0
    return 1 << (bits - 1) if bits > 0 else -(1 << (-bits - 1))


class Line(NamedTuple):
    """A line that a script has written, and when."""

    at_ns: int
    text: str


class ProbeRun:
    """A script that runs: its variables by number, its bags and aggregates by name, its lines, and what was lost.

    Parameters
    ----------
    variables, bags, aggregates
        What it declares.
    keys
        How many keys a bag or an aggregate may have.
    lines_per_s
        How many lines it may write in a second; None where that is no matter.

    Attributes
    ----------
    faults
        Firings that ended by a fault which nothing caught, by its kind.
    lost_keys, lost_lines
        What found no room.
    """

    def __init__(
        self,
        variables: Sequence[Value],
        bags: Collection[str],
        aggregates: Collection[str],
        *,
        keys: int = KEYS_BOUND,
        lines_per_s: int | None = None,
    ) -> None:
        self.variables: list[Value] = list(variables)
        self.bags: dict[str, dict[Key, Value]] = {name: {} for name in bags}
        self.aggregates: dict[str, dict[Key, _Samples]] = {name: {} for name in aggregates}
        self._ones: dict[str, dict[Key, int]] = {name: {} for name in aggregates}
        self._noted: dict[str, defaultdict[Key, list[int]]] = {name: defaultdict(list) for name in aggregates}
        self.lines: list[Line] = []
        self.faults: Counter[str] = Counter()
        self.fired = self.skipped = self.lost_keys = self.lost_lines = 0
        self._room = ROOM_BOUND
        self._keys = keys
        self._lines_per_s = lines_per_s
        self._line_second = self._second_lines = 0

    @property
    def printed(self) -> list[str]:
        """The lines that it has written."""
        return [line.text for line in self.lines]

    # What scripts do, by the names of the functions that are compiled

    def bag(self, name: str) -> dict[Key, Value]:
        """Return a bag."""
        return self.bags[name]

    def put(self, name: str) -> Callable[[Key, Value], None]:
        """Return what puts a value into a bag, where that has its key already or there is room."""
        bag = self.bags[name]

        def put(key: Key, value: Value) -> None:
            if key in bag or (len(bag) < self._keys and self._take_room(PAIR_ROOM, key)):
                bag[key] = value
            else:
                self.lost_keys += 1

        return put

    def look_up(self, name: str) -> Callable[[Key], Value]:
        """Return what gives what a bag has; a fault where it has nothing."""
        bag = self.bags[name]

        def look_up(key: Key) -> Value:
            try:
                return bag[key]
            except KeyError:
                raise FiringFault("missing key") from None

        return look_up

    def has(self, name: str) -> Callable[[Key], int]:
        """Return what gives 1 where a bag has something, else 0."""
        bag = self.bags[name]
        return lambda key: 1 if key in bag else 0

    def delete(self, name: str, key: Key) -> None:
        """Take what a bag has away; nothing where it has nothing."""
        if self.bags[name].pop(key, None) is not None:
            self._room += _room_of(PAIR_ROOM, key)

    def samples(self, name: str) -> dict[Key, _Samples]:
        """Return what an aggregate has by its keys, but for what is noted."""
        return self.aggregates[name]

    def noted(self, name: str) -> dict[Key, list[int]]:
        """Return where samples of an aggregate are noted by their keys, until they are summed."""
        return self._noted[name]

    @property
    def notes_samples(self) -> bool:
        """Whether some are noted."""
        return any(self._noted.values())

    def sum_samples(self) -> None:
        """Add all samples that are noted to what aggregates have."""
        for name, noted in self._noted.items():
            if noted:
                rows = self.aggregates[name]
                for key, values in noted.items():
                    row = rows.get(key)
                    if row is None and values:
                        row = self._new_row(name, key, len(values))
                    if row is not None and values:
                        row.add(values)
                noted.clear()

    def ones(self, name: str) -> dict[Key, int]:
        """Return how often an aggregate has the sample 1 of `count`, by key."""
        return self._ones[name]

    def count(self, name: str) -> Callable[[Key], None]:
        """Return what adds a sample of 1 to an aggregate, for a key of which it need not have any yet."""
        rows, ones = self.aggregates[name], self._ones[name]

        def count(key: Key) -> None:
            if key in rows or self._new_row(name, key, 1) is not None:
                ones[key] = ones.get(key, 0) + 1

        return count

    def _new_row(self, name: str, key: Key, count: int) -> _Samples | None:
        """Return a row for so many samples, which are lost where there is no room."""
        rows = self.aggregates[name]
        if len(rows) >= self._keys or not self._take_room(ROW_ROOM, key):
            self.lost_keys += count
            return None
        row = rows[key] = _Samples()
        return row

    def clear(self, name: str) -> None:
        """Empty an aggregate."""
        self.sum_samples()
        rows = self.aggregates[name]
        self._room += sum(_room_of(ROW_ROOM, key) for key in rows)
        rows.clear()
        self._ones[name].clear()

    def print(self, now_ns: int, text: str) -> None:
        """Write a line."""
        if self._lines_per_s is not None:
            second = now_ns // _SECOND_NS
            if second != self._line_second:
                self._line_second, self._second_lines = second, 0
            self._second_lines += 1
        if len(self.lines) < LINES_BOUND and (self._lines_per_s is None or self._second_lines <= self._lines_per_s):
            self.lines.append(Line(now_ns, text[:LINE_BOUND]))
        else:
            self.lost_lines += 1

    def print_aggregate(self, now_ns: int, name: str) -> None:
        """Write an aggregate's rows, a line each."""
        for row in self.rows(name):
            mean = row.sum / row.count
            keys = ", ".join(map(str, row.keys))
            self.print(now_ns, f"{name}[{keys}] count {row.count} mean {mean:.6g} min {row.min} max {row.max}")

    def end(self) -> None:
        """End the script."""
        raise ProbeEnds

    def failed(self, error: Exception) -> bool:
        """Count why a firing went no further; return whether the script is to end."""
        self.sum_samples()
        if isinstance(error, ProbeEnds):
            return True
        kind = {FiringFault: str(error), OutOfSteps: "out of steps"}.get(type(error), "defect of the probe")
        if isinstance(error, AttributeError) and error.obj is None:  # a field of a record that is absent
            kind = "absent value"
        self.faults[kind] += 1
        return False

    def _take_room(self, least: int, key: Key) -> bool:
        """Take the room of a new key, if there is so much."""
        room = _room_of(least, key)
        if room > self._room:
            return False
        self._room -= room
        return True

    def is_sampled(self, name: str) -> bool:
        """Tell whether an aggregate has other samples than those that count."""
        self.sum_samples()
        return any(samples.count for samples in self.aggregates[name].values())

    def rows(self, name: str, at_most: int | None = None) -> list[AggregateRow]:
        """Return an aggregate's rows, those with most samples first; all, or the first so many."""
        self.sum_samples()
        ones, samples = self._ones[name], self.aggregates[name]
        counted = (
            (-each.count - ones.get(key, 0), tuple(map(str, _parts(key))), key) for key, each in samples.items()
        )
        ordered = sorted(counted) if at_most is None else nsmallest(at_most, counted)
        return [samples[key].row(_parts(key), ones.get(key, 0)) for _count, _text, key in ordered]


def _parts(key: Key) -> KeyTuple:
    return key if isinstance(key, tuple) else (key,)


def _room_of(least: int, key: Key) -> int:
    return least + CHARACTER_ROOM * sum(len(part) for part in _parts(key) if isinstance(part, str))


# Integers of 64 bits


def wrap(value: int) -> int:
    """Return an integer as 64 bits hold it, with a sign."""
    if LEAST <= value <= MOST:
        return value
    return ((value - LEAST) & _ALL) + LEAST


def divide(dividend: int, divisor: int) -> int:
    """Return a quotient, rounded towards 0."""
    if divisor == 0:
        raise FiringFault("division by zero")
    quotient = abs(dividend) // abs(divisor)
    return wrap(quotient if (dividend < 0) == (divisor < 0) else -quotient)


def remainder(dividend: int, divisor: int) -> int:
    """Return what is left of a division that rounds towards 0: it has the sign of the dividend."""
    if divisor == 0:
        raise FiringFault("division by zero")
    left = abs(dividend) % abs(divisor)
    return -left if dividend < 0 else left


def shift_left(value: int, by: int) -> int:
    """Return an integer shifted, by 0 to 63 bits."""
    return wrap(value << (by & 63))


def shift_right(value: int, by: int) -> int:
    """Return an integer shifted, by 0 to 63 bits; the sign stays."""
    return value >> (by & 63)


def log2_floor(value: int) -> int:
    """Return the logarithm to the base 2, rounded down."""
    if value <= 0:
        raise FiringFault("logarithm of no positive number")
    return value.bit_length() - 1


def join(first: str, second: str) -> str:
    """Return two strings after each other, as far as there is room."""
    return (first + second)[:TEXT_BOUND]


# Values of records


def as_int(value: Any) -> int:
    """Return a number of a record; what is after its point is left out."""
    if type(value) is int and LEAST <= value <= MOST:
        return value
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise FiringFault("absent value")
    return wrap(int(value))


def as_text(value: Any) -> str:
    """Return a text of a record; of an enumeration its value, or its name where that is no text."""
    if isinstance(value, Enum):
        value = value._value_ if isinstance(value._value_, str) else value._name_
    if value is None:
        raise FiringFault("absent value")
    return str(value)[:TEXT_BOUND]


def as_present(value: Any) -> Any:
    """Return octets, a record or a list that is there."""
    if value is None:
        raise FiringFault("absent value")
    return value


def stack_text(stack: Sequence[str], count: int) -> str:
    """Return the innermost functions of a stack, each called by the next one."""
    return " < ".join(stack[: max(0, count)])[:TEXT_BOUND]


def name_of(value: Any) -> str:
    """Return what the type of a record is called."""
    return type(value).__name__


def as_decimal(value: int) -> str:
    """Return an integer as text."""
    return str(value)


def as_hex(value: bytes) -> str:
    """Return octets as hexadecimal digits, as far as there is room."""
    return value.hex()[:TEXT_BOUND]


def unsigned(octets: int) -> Callable[[bytes, int], int]:
    """Return what reads an unsigned integer of so many octets at an offset."""

    def read(data: bytes, offset: int) -> int:
        if not 0 <= offset <= len(data) - octets:
            raise FiringFault("offset beyond the data")
        return int.from_bytes(data[offset : offset + octets], "big")

    return read


def ip_text(value: bytes | int) -> str:
    """Return an IP address as text, of 4 or 16 octets or of an integer."""
    if isinstance(value, int):
        if not 0 <= value < 1 << 32:
            raise FiringFault("no address")
        value = value.to_bytes(4, "big")
    if len(value) not in (4, 16):
        raise FiringFault("no address")
    return format_ip(value)


def mac_text(value: bytes) -> str:
    """Return a MAC address as text."""
    if len(value) != 6:
        raise FiringFault("no address")
    return format_mac(value)


def prefix_text(value: bytes, bits: int) -> str:
    """Return the prefix of an address that has so many bits, as text."""
    if len(value) not in (4, 16) or not 0 <= bits <= 8 * len(value):
        raise FiringFault("no address")
    left = 8 * len(value) - bits
    return f"{format_ip((int.from_bytes(value, 'big') >> left << left).to_bytes(len(value), 'big'))}/{bits}"
