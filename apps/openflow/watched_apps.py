"""The apps of a process that what runs for a while looks at: profiles, and measurements of latencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from apps.openflow.app_watch import AppWatch
from apps.openflow.questions import Unanswered

if TYPE_CHECKING:
    from apps.openflow.app import App

Watched = Callable[[str], AppWatch]
"""Returns what looks at an app, or at what apps share."""


class LookingPart(Protocol):
    """What looks at apps from the loop of one of them."""

    app: App

    def attach(self, apps: Mapping[str, App], watched: Watched) -> None:
        """Begin to look; on the loop of `app`."""


class WatchedApps:
    """The apps of this process by name, as they are at the time, and what looks at each."""

    def __init__(self, apps: Mapping[str, App], watched: Watched) -> None:
        self._apps = apps
        self._watched = watched

    def core_of(self, name: str) -> Any:
        """Return the core of an app, None where it does not run."""
        app = self._apps.get(name)
        return None if app is None else app.core

    def _attach(self, part: LookingPart, give_up: Callable[[], object]) -> None:
        """Have it look; where its loop is too busy, have that given up and raise Unanswered."""
        try:
            part.app.ask(partial(part.attach, self._apps, self._watched))
        except Unanswered:
            give_up()
            raise
