"""A controller as `vsrt` sees it, whether by its Unix socket or by the API of its dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from apps.cli.common import OperationFailed
from controller.snapshot.reader import Snapshot


class Action(NamedTuple):
    """What a controller is to do: as the socket is asked, and as the API is."""

    question: Mapping[str, Any]
    method: str
    path: str


class ConnectionLost(OperationFailed):
    """Nobody answers, or offers what is sought, or no longer; it may be otherwise a little later."""


class SnapshotSource(Protocol):
    """A running controller, however it is reached.

    Attributes
    ----------
    heard_s
        When it last said anything while it was followed, by the monotonic clock; None before.
    silence_s
        For how long it may say nothing although all is well.
    """

    heard_s: float | None
    silence_s: float

    def follow(self, sections: Sequence[str], beside: Sequence[str] = ()) -> Iterator[Snapshot]:
        """Yield the snapshot once the sections are read, and again each time that something of them has changed.

        Sections `beside` them are read where they are offered.

        It is one snapshot, also if followed anew after ConnectionLost, which is raised where the controller does not
        answer or offers none of the sections.
        """
        ...

    def do(self, action: Action) -> Any:
        """Have an action done and return what the controller tells of it.

        OperationFailed where it is refused, InputError where its fields are wrong, ConnectionLost.
        """
        ...
