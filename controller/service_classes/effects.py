"""What is done to a fabric to bind a tree to a group or to take it away, in an order without duplicates or loss."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

DRAIN_S = 0.05
"""How long packets may be under way on a tree that no sender uses any more."""


class EditStep(StrEnum):
    """One step of an edit. The next begins when the switches concerned have answered it, or the time is over."""

    PUT_TREE = "put-tree"
    """Put the entries of the tree version at every switch of the tree."""
    MOVE_SENDERS = "move-senders"
    """Put the senders' entries, each with the version that its flows have from now on."""
    BARRIER = "barrier"
    DRAIN = "drain"
    """Wait `DRAIN_S`."""
    REMOVE_TREE = "remove-tree"
    """Remove the entries of the tree version."""


BIND_STEPS = (EditStep.PUT_TREE, EditStep.BARRIER, EditStep.MOVE_SENDERS, EditStep.BARRIER)
UNBIND_STEPS = (EditStep.MOVE_SENDERS, EditStep.BARRIER, EditStep.DRAIN, EditStep.REMOVE_TREE, EditStep.BARRIER)


class Bind(NamedTuple):
    """Give a group the tree of a version, by these steps in their order."""

    group: str
    version: int
    steps: tuple[EditStep, ...] = BIND_STEPS


class Unbind(NamedTuple):
    """Take the tree of a version from a group, by these steps in their order."""

    group: str
    version: int
    steps: tuple[EditStep, ...] = UNBIND_STEPS


Effect = Bind | Unbind
