"""What a member of a cluster is made of."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Standing(StrEnum):
    """What a member is."""

    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"


class MemberSettings(NamedTuple):
    """What a member is made of.

    Attributes
    ----------
    fabric, member
        Names of both.
    incarnation
        A text that no other run of a controller has.
    peer
        Where others can hear it, ``ADDRESS:PORT``; '' for nowhere.
    lease_s, silence_s, stall_s
        As in the policy file.
    lease
        The lease that this run of the controller has already, 0 for none: then it goes on as what it was.
    highest_epoch, led_epoch
        The latest epoch that it knows of from elsewhere, and the latest in which a run of it before this one led.
    metrics
        Where its metrics are scraped, ``HOST:PORT``; '' for nowhere.
    """

    fabric: str
    member: str
    incarnation: str
    peer: str = ""
    lease_s: int = 3
    silence_s: float = 0.5
    stall_s: float = 15.0
    lease: int = 0
    highest_epoch: int = 0
    led_epoch: int = 0
    metrics: str = ""
