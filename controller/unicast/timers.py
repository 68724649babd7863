"""What is due at a moment in the unicast core."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple


class UnicastDue(IntEnum):
    """What is due."""

    FLUSH = 1
    GONE = 2  # name of a MAC address
    RELEASE = 3


class UnicastTimer(NamedTuple):
    """A timer, and what it is about."""

    kind: UnicastDue
    subject: Any = None
