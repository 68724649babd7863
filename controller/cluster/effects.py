"""What a member of a cluster has done, beside roles wanted at switches (`controller.events.RoleWanted`)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from controller.cluster.engine import KeyCondition, Request
from controller.cluster.keys import Leader
from controller.events import RoleWanted
from controller.snapshot.events import Severity, State


class StoreRequest(NamedTuple):
    """Have the store answer a request: `Answered` with this number follows in any case."""

    number: int
    request: Request


class WatchKeys(NamedTuple):
    """Watch keys that begin with `prefix`, in the place of what was watched before."""

    watch: int
    prefix: str
    after_revision: int


class FollowPeer(NamedTuple):
    """Listen to another leader, to none where that is None."""

    leader: Leader | None


class Leading(NamedTuple):
    """Whether this member leads.

    Attributes
    ----------
    epoch
        The epoch in which it does; None where it does not.
    fence
        What every write to the store has as a condition.
    has_lease
        Whether the store has confirmed the lease for the time being. Without it switches of OpenFlow 1.0, which do
        not know generations, are not to be written.
    fresh_until_s
        Until then nobody else can lead, for the store has just said so. Later switches of OpenFlow 1.0, where the
        last one who asks is master, are not to be asked before `ConfirmWanted`.
    renews
        The epoch that this one goes on from without anybody having led in between, for the store had lost all; None
        where there is none.
    """

    epoch: int | None
    fence: KeyCondition | None
    has_lease: bool
    fresh_until_s: float
    renews: int | None = None


class TellOperators(NamedTuple):
    """Tell operators."""

    kind: str
    text: str
    severity: Severity
    state: State = State.HAPPENED


Effect: TypeAlias = StoreRequest | WatchKeys | FollowPeer | Leading | TellOperators | RoleWanted
