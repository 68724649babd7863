"""Spans: operations with their beginning, their end, and what they waited for."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Operation(StrEnum):
    """What is profiled, from where to where."""

    JOIN = "join"
    """A report came in, until the host's own switch has confirmed that it sends the group to the port."""
    LEAVE = "leave"
    """A report came in, until the host's own switch has confirmed that it sends the group to the port no more."""
    CONNECT = "connect"
    """A switch connected, until it was read and holds what it shall."""
    REPAIR = "repair"
    """A link or a switch was found to be gone, until every switch holds what it shall."""
    RELOAD = "reload"
    """A policy was taken, until everybody is judged by it and every switch holds what it shall."""
    DRAIN = "drain"
    """An operator had a switch drained, or used again, until every switch holds what it shall."""
    POLL = "poll"
    """A switch was asked for counters, until the last part of its answer."""
    JOURNAL = "journal"
    """An entry was made for the log, until it was on the disk."""
    CAMPAIGN_STEP = "campaign-step"
    """A step of maintenance at a switch, from its beginning to its end."""


class SpanOutcome(StrEnum):
    """How an operation ended; times are made of those alone that are done."""

    DONE = "done"
    NO_EDITS = "no-edits"
    """Nothing had to be changed at a switch, as for a host at a port that has the group already."""
    FAILED = "failed"
    """The switch was lost, or the disk took nothing."""
    UNFINISHED = "unfinished"
    """It had not ended when the profile did, or after `LONGEST_S`."""


class Span(NamedTuple):
    """An operation; times are seconds of a clock that is never set.

    `waits` are for the controller's loop to come to it, for the controller to send what is to be sent, for the
    switch to confirm it, and for the disk; None where it is not known, or none is waited for. `dpid` is the switch
    that it is about, None where it is about none, or several.
    """

    operation: Operation
    subject: str
    begun_s: float
    ended_s: float
    waits: SpanWaits
    outcome: SpanOutcome
    dpid: int | None = None


class SpanWaits(NamedTuple):
    """What an operation waited for, in seconds; None where that is not known, or not waited for.

    `core_s`, of joins, is the part of `controller_s` until the core had decided: the rest is for edits to be sent.
    """

    loop_s: float | None = None
    controller_s: float | None = None
    switch_s: float | None = None
    disk_s: float | None = None
    core_s: float | None = None


LONGEST_S = 60.0
"""An operation, steps of campaigns excepted, that lasts longer is given up as unfinished."""
