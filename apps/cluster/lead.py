"""What apps are given when their controller is to lead."""

from __future__ import annotations

from typing import NamedTuple

from apps.cluster.engine_log import EngineLog
from apps.policy_file import PolicyReading
from controller.log import LogEntry


class StoredLog(NamedTuple):
    """A log in the store: `revision` is the number of its last write, `entries` are in the order of theirs."""

    log: EngineLog
    revision: int
    entries: tuple[LogEntry, ...]


class Lead(NamedTuple):
    """What the controllers of the fabric share, as of the moment from which on this one writes it.

    `policy` is what counts in the place of the own file, None where that does.
    """

    epoch: int
    secret: bytes
    journal: StoredLog
    hosts: StoredLog
    policy: PolicyReading | None = None
