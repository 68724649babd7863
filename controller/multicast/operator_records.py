"""What operators say of the fabric beside its settings, as records of the log by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from controller.log import LogEntry
from controller.multicast.operator_labels import LABEL, OperatorLabels
from controller.multicast.operator_settings import OperatorSettings, read_label, read_taken_address
from controller.multicast.pool_addresses import ADDRESS, PoolAddresses

Record = Mapping[str, Any]


class OperatorRecords:
    """Hands the log the records of those who keep them, and them what the log has.

    `followed` are, by subject, what takes the value that a key had before in another controller's log, and the one
    that it has; it raises what reading a value raises.
    """

    def __init__(self, labels: OperatorLabels, addresses: PoolAddresses) -> None:
        self._labels = labels
        self._addresses = addresses
        self.followed: dict[str, Callable[[Record | None, Record | None, float], None]] = {
            LABEL: self._follow_label,
            ADDRESS: self._follow_address,
        }

    def keys(self) -> Iterator[str]:
        """Yield the keys of the log that there are records of."""
        yield from self._labels.keys()
        yield from self._addresses.keys()

    def entry(self, key: str) -> LogEntry:
        """Return what the log is told of a key."""
        of = self._labels if key.startswith(f"{LABEL}/") else self._addresses
        return of.entry(key)

    def restore(self, settings: OperatorSettings) -> None:
        """Take over what an earlier run was told."""
        for label in settings.labels:
            self._labels.restore(label)
        for taken in settings.addresses:
            self._addresses.restore(taken)

    def _follow_label(self, before: Record | None, value: Record | None, _now: float) -> None:
        known = None if value is None else read_label(value)
        if before is not None:
            self._labels.forget(read_label(before))
        if known is not None:
            self._labels.restore(known)

    def _follow_address(self, before: Record | None, value: Record | None, _now: float) -> None:
        known = None if value is None else read_taken_address(value)
        if before is not None:
            former = read_taken_address(before)
            self._addresses.forget(former.pool, former.name)
        if known is not None:
            self._addresses.restore(known)
