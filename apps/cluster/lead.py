"""What apps are given when their controller is to lead."""

from __future__ import annotations

from typing import NamedTuple

from apps.cluster.engine_log import EngineLog
from apps.policy_file import PolicyReading
from controller.log import LogEntry


class Followed(NamedTuple):
    """What the controller that leads has in its logs, or has written since, in its order."""

    journal: tuple[LogEntry, ...]
    hosts: tuple[LogEntry, ...]


class StoredLog(NamedTuple):
    """A log in the store: `revision` is the number of its last write."""

    log: EngineLog
    revision: int


class Lead(NamedTuple):
    """What the controllers of the fabric share, from the moment on from which this one writes it.

    `policy` is what counts in the place of the own file, None where that does.
    """

    epoch: int
    secret: bytes
    journal: StoredLog
    hosts: StoredLog
    policy: PolicyReading | None = None
