"""What a monitor that shares the switches hears, and what follows, beside what the store is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from controller.cluster.effects import StoreRequest, TellOperators, WatchKeys
from controller.cluster.share_records import Load

# What it hears, beside `Answered`, `KeysChanged` and `WatchEnded`


class SwitchesSeen(NamedTuple):
    """Which switches this monitor is connected to, and what each would have it do."""

    switches: Mapping[int, Load]


class PollsEnded(NamedTuple):
    """Switches that were left are polled no more, and no answer of theirs will be kept.

    `due_in_s` has each of them, and in how many seconds it would have been polled next.
    """

    due_in_s: tuple[tuple[int, float], ...]


class LeaveWanted(NamedTuple):
    """This monitor ends: others need not wait for the end of its lease."""


# What follows


class Taken(NamedTuple):
    """Poll a switch.

    Attributes
    ----------
    epoch
        Goes into each row of history.
    due_in_s
        In how many seconds it is to be polled first.
    """

    dpid: int
    epoch: int
    due_in_s: float


class ShareChanged(NamedTuple):
    """Leave switches, for which `PollsEnded` is to be told, and then poll others."""

    left: tuple[int, ...]
    taken: tuple[Taken, ...]


class ShareConfirmed(NamedTuple):
    """Poll nothing from `until_s` on, unless a later time is told before: a pause may have cost the share."""

    until_s: float


ShareEffect: TypeAlias = StoreRequest | WatchKeys | TellOperators | ShareChanged | ShareConfirmed
