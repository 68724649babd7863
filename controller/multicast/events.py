"""Events that only the multicast core takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from controller.config.policy import Policy


class PolicyLoaded(NamedTuple):
    """A policy file was read whole and without fault; it replaces the running policy."""

    policy: Policy


class JournalRead(NamedTuple):
    """The journal of an earlier run: its records in the order in which they were written."""

    records: tuple[dict[str, Any], ...]
