"""The counters of an OpenFlow port, in the order of the wire (OpenFlow 1.3.5, 7.3.5.6; 1.0.0, 5.3.5)."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

UNSUPPORTED = (1 << 64) - 1
"""What a switch sends for a counter that it has not."""


class CounterKind(StrEnum):
    """Whether a counter counts what was carried, or what went wrong."""

    DATA = "data"
    ERROR = "error"


class Unit(StrEnum):
    """What a counter counts."""

    PACKETS = "packets"
    BYTES = "bytes"
    ERRORS = "errors"


class Counter(StrEnum):
    """A counter of a port; its value is the name used in files and messages."""

    RX_PACKETS = "rx_packets"
    TX_PACKETS = "tx_packets"
    RX_BYTES = "rx_bytes"
    TX_BYTES = "tx_bytes"
    RX_DROPPED = "rx_dropped"
    TX_DROPPED = "tx_dropped"
    RX_ERRORS = "rx_errors"
    TX_ERRORS = "tx_errors"
    RX_FRAME_ERR = "rx_frame_err"
    RX_OVER_ERR = "rx_over_err"
    RX_CRC_ERR = "rx_crc_err"
    COLLISIONS = "collisions"

    @property
    def kind(self) -> CounterKind:
        """What sort of counter this is."""
        return CounterKind.DATA if self.column < FIRST_ERROR_COLUMN else CounterKind.ERROR

    @property
    def unit(self) -> Unit:
        """What it counts."""
        if self.column in BYTE_COLUMNS:
            return Unit.BYTES
        return Unit.ERRORS if self.name.endswith(("ERR", "ERRORS", "COLLISIONS")) else Unit.PACKETS

    @property
    def column(self) -> int:
        """Its column in `Samples.counters` and `SampleRates.per_s`."""
        return _COLUMNS[self]


COUNTERS: tuple[Counter, ...] = tuple(Counter)
COUNTER_COUNT = len(COUNTERS)
_COLUMNS = {counter: column for column, counter in enumerate(COUNTERS)}
BYTE_COLUMNS = (2, 3)
"""Columns of the octets received and transmitted."""

FIRST_ERROR_COLUMN = 4
"""From this column on, counters tell of what went wrong."""

BITS = (1 << np.arange(COUNTER_COUNT)).astype(np.uint16)
"""Per column the bit that stands for it in a mask of counters."""


def counters_of(mask: int) -> tuple[Counter, ...]:
    """Return the counters whose bits are set in a mask."""
    return tuple(counter for counter in COUNTERS if mask >> counter.column & 1)
