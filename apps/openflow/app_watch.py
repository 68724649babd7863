"""Looking at what an app takes and asks for: while somebody looks its methods are exchanged, and after no more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from controller.probes.live import one_after_the_other
from controller.probes.static_points import DerivedFrom

LOGGER = logging.getLogger("vsrt")

Watcher = Callable[[Any], None]


class AppWatch:
    """Who looks at an app, or at what apps share of switches, by the types of events and effects.

    Its `feed` and `perform` stand before those of the owner while somebody looks; all is used on the owner's loop.
    Events that the owner's core is not given, since it `takes_events` no more, are seen by nobody.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._at: dict[str, dict[type, tuple[Watcher, ...]]] = {"event": {}, "effect": {}}
        self._called: dict[str, dict[type, Watcher]] = {"event": {}, "effect": {}}

    def watch(self, what: str, kind: type, watcher: Watcher) -> Callable[[], None]:
        """Have each ``event`` or ``effect`` of a type handed to somebody before it is taken, or carried out.

        What is returned ends that.
        """
        self._look(what, kind, (*self._at[what].get(kind, ()), watcher))
        return partial(self._unwatch, what, kind, watcher)

    def watch_sources(self, sources: Iterable[DerivedFrom], watcher: Watcher) -> Callable[[], None]:
        """Have what is derived from records handed to somebody; what is returned ends that."""
        ends = [self.watch(each.what, each.kind, self._derived(each, watcher)) for each in sources]

        def end() -> None:
            for each in ends:
                each()

        return end

    def _derived(self, source: DerivedFrom, watcher: Watcher) -> Watcher:
        owner, has_failed = self._owner, False

        def watch(record: Any) -> None:
            nonlocal has_failed
            try:
                for each in source.derive(record, owner.core):
                    watcher(each)
            except Exception:  # who is looked at never sees it
                if not has_failed:
                    LOGGER.exception("A point of %s gives nothing.", source.kind.__name__)
                has_failed = True

        return watch

    def _unwatch(self, what: str, kind: type, watcher: Watcher) -> None:
        watchers = self._at[what].get(kind, ())
        self._look(what, kind, tuple(each for each in watchers if each is not watcher))

    def _look(self, what: str, kind: type, watchers: tuple[Watcher, ...]) -> None:
        if watchers:
            self._at[what][kind], self._called[what][kind] = watchers, one_after_the_other(watchers)
        else:
            self._at[what].pop(kind, None)
            self._called[what].pop(kind, None)
        self._exchange()

    def _exchange(self) -> None:
        own = self._owner.__dict__
        for what, name, stand_in in (("event", "feed", self._feed), ("effect", "perform", self._perform)):
            if not self._at[what]:
                own.pop(name, None)
            elif name not in own:
                own[name] = stand_in(getattr(self._owner, name))

    def _feed(self, plain: Callable[[Any], None]) -> Callable[[Any], None]:
        owner, called = self._owner, self._called["event"]

        def feed(event: Any) -> None:
            if event.__class__ in called and owner.takes_events:
                called[event.__class__](event)
            plain(event)

        return feed

    def _perform(self, plain: Callable[[Iterable[Any]], None]) -> Callable[[Iterable[Any]], None]:
        called = self._called["effect"]

        def perform(effects: Iterable[Any]) -> None:
            for effect in effects:
                if effect.__class__ in called:
                    called[effect.__class__](effect)
            plain(effects)

        return perform
