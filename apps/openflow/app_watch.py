"""Looking at what an app takes and asks for: while somebody looks its methods are exchanged, and after no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Watcher = Callable[[Any], None]


class AppWatch:
    """Who looks at an app, or at what apps share of switches, by the types of events and effects.

    Its `feed` and `perform` stand before those of the owner while somebody looks; all is used on the owner's loop.
    Events that the owner's core is not given, since it `takes_events` no more, are seen by nobody.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._at: dict[str, dict[type, tuple[Watcher, ...]]] = {"event": {}, "effect": {}}

    def add(self, what: str, kind: type, watcher: Watcher) -> None:
        """Have each ``event`` or ``effect`` of a type handed to somebody before it is taken, or carried out."""
        at = self._at[what]
        at[kind] = (*at.get(kind, ()), watcher)
        self._exchange()

    def remove(self, what: str, kind: type, watcher: Watcher) -> None:
        """Hand nothing to somebody any more."""
        at = self._at[what]
        left = tuple(each for each in at.get(kind, ()) if each is not watcher)
        if left:
            at[kind] = left
        else:
            at.pop(kind, None)
        self._exchange()

    def _exchange(self) -> None:
        own = self._owner.__dict__
        for what, name, stand_in in (("event", "feed", self._feed), ("effect", "perform", self._perform)):
            if not self._at[what]:
                own.pop(name, None)
            elif name not in own:
                own[name] = stand_in(getattr(self._owner, name))

    def _feed(self, plain: Callable[[Any], None]) -> Callable[[Any], None]:
        owner, watchers_of = self._owner, self._at["event"].get

        def feed(event: Any) -> None:
            watchers = watchers_of(type(event))
            if watchers is not None and owner.takes_events:
                for watch in watchers:
                    watch(event)
            plain(event)

        return feed

    def _perform(self, plain: Callable[[Iterable[Any]], None]) -> Callable[[Iterable[Any]], None]:
        watchers_of = self._at["effect"].get

        def perform(effects: Iterable[Any]) -> None:
            for effect in effects:
                watchers = watchers_of(type(effect))
                if watchers is not None:
                    for watch in watchers:
                        watch(effect)
            plain(effects)

        return perform
