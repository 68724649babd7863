"""What a member of a cluster hears."""

from __future__ import annotations

from typing import NamedTuple

from controller.cluster.engine import KeyChange, Reply


class Answered(NamedTuple):
    """The store's answer to the request with this number."""

    number: int
    reply: Reply


class KeysChanged(NamedTuple):
    """What the watch with this number told."""

    watch: int
    changes: tuple[KeyChange, ...]


class WatchEnded(NamedTuple):
    """The watch with this number tells nothing more."""

    watch: int


class PeerHeard(NamedTuple):
    """The leader with this incarnation said that it is there, by a connection of its own."""

    incarnation: str


class PeerGone(NamedTuple):
    """Nobody listens any more where the leader with this incarnation did."""

    incarnation: str


class ControllerBeat(NamedTuple):
    """This member's controller is there.

    `idle_s` is how long its loop has made no progress, in seconds; `switches` are those that it is connected to.
    """

    idle_s: float
    switches: frozenset[int] = frozenset()


class ControllerStopped(NamedTuple):
    """The system says that this member's controller was stopped: until its next beat it is as one that is gone."""


class ControllerGone(NamedTuple):
    """This member's controller has ended."""


class RoleLost(NamedTuple):
    """A switch has another master, or refused this one; `generation_id` is what it goes by, None where unknown."""

    dpid: int
    generation_id: int | None


class FenceRefused(NamedTuple):
    """The store took no write of this epoch, for it has a later one."""

    epoch: int


class ConfirmWanted(NamedTuple):
    """The controller wants to know for sure that it leads still: `Leading` with a later `fresh_until_s` follows."""


class HandOverWanted(NamedTuple):
    """An operator, or the end of the controller, wants another member to lead: `to`, or any where that is ''."""

    to: str = ""
