"""What only the multicast core asks of its shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from controller.admission.host import Decision, HostLike
from controller.config.policy import Role


class Audit(NamedTuple):
    """One admission decision, for the audit log. `source` is the source asked for, None for any."""

    decision: Decision
    host: HostLike
    group: bytes
    role: Role
    source: bytes | None


class JournalPart(StrEnum):
    """Where records of the journal go."""

    APPEND = "append"
    """To the journal, and to the new one while there is one."""
    BEGIN = "begin"
    """To a new journal beside it."""
    CONTINUE = "continue"
    """To the new journal."""
    FINISH = "finish"
    """To the new journal, which then takes the place of the old one."""


class WriteJournal(NamedTuple):
    """Write `records` (JSON-able, one per line)."""

    records: tuple[dict[str, Any], ...]
    part: JournalPart


class ActionTaken(NamedTuple):
    """What an operator asked for is done, or under way; `document` (JSON-able) is the answer."""

    document: dict[str, Any]


class ActionRefused(NamedTuple):
    """What an operator asked for is not done; `field` is at fault."""

    field: str
    text: str
