"""What a member has asked its store and waits for."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class Purpose(StrEnum):
    """What a request is for; one of each is under way at most."""

    GRANT = "grant"
    REGISTER = "register"
    KEEP = "keep"
    REVOKE = "revoke"
    READ = "read"
    CHALLENGE = "challenge"
    ELECTION = "election"
    ANSWER = "answer"
    RESTORATION = "restoration"
    HAND_OVER = "hand-over"
    DIVISION = "division"
    ACKNOWLEDGEMENT = "acknowledgement"
    CLAIM = "claim"


class Pending(NamedTuple):
    """A request under way: its number, when it was asked, and what it is about."""

    number: int
    asked_s: float
    about: Any
