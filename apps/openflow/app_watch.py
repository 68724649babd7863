"""Looking at what an app takes and asks for: while somebody looks its methods are exchanged, and after no more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from controller.events import PacketReceived
from controller.probes.live import one_after_the_other
from controller.probes.static_points import DerivedFrom

LOGGER = logging.getLogger("vsrt")

Watcher = Callable[[Any], None]


class AppWatch:
    """Who looks at an app, or at what apps share of switches, by the types of events and effects.

    Its `feed` and `perform` stand before those of the owner while somebody looks; all is used on the owner's loop.
    Packet-ins that an app's core takes together are looked at one by one as the core comes to each (`each_packet`),
    and what follows from each before the next one is; all of that is carried out after the last, as without a look.
    Events that the owner's core is not given, since it `takes_events` no more, are seen by nobody.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._at: dict[str, dict[type, tuple[Watcher, ...]]] = {"event": {}, "effect": {}}
        self._called: dict[str, dict[type, Watcher]] = {"event": {}, "effect": {}}
        self._followed: list[Any] = []
        self._seen = 0
        self._own: dict[str, Any] = {}

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
        self._stand_in("feed", self._feed, self._called["event"])
        self._stand_in("perform", self._perform, self._called["effect"])
        has_packets = PacketReceived in self._called["event"]
        self._stand_in("each_packet", lambda _plain: self._each_packet, has_packets)

    def _stand_in(self, name: str, made: Callable[[Any], Any], is_wanted: object) -> None:
        """Have what is made of the owner's own method stand before it where that is wanted, else nothing.

        The owner's `__dict__` is not asked for: its attributes would take longer to read from then on.
        """
        if is_wanted:
            if name not in self._own:
                self._own[name] = getattr(self._owner, name, None)
            setattr(self._owner, name, made(self._own[name]))
        elif name in self._own:
            del self._own[name]
            delattr(self._owner, name)

    def _each_packet(self, events: Iterable[PacketReceived], effects: list[Any]) -> Iterator[PacketReceived]:
        """Yield packet-ins, each when who looks has had it, and those behind one at which somebody fails."""
        owner, watcher = self._owner, self._called["event"][PacketReceived]
        sees_effects = bool(self._at["effect"])
        if sees_effects:
            self._followed, self._seen = effects, 0

        def looked_at(event: PacketReceived) -> PacketReceived:
            if sees_effects and len(effects) > self._seen:
                self._look_at_followed()
            if owner.takes_events:
                watcher(event)
            return event

        return map(looked_at, events)

    def _look_at_followed(self) -> None:
        """Have who looks see what followed from the packet-in before."""
        called, unseen = self._called["effect"], self._followed[self._seen :]
        self._seen = len(self._followed)
        for effect in unseen:
            kind = effect.__class__
            if kind in called:
                called[kind](effect)

    def _take_followed(self) -> list[Any]:
        """Return what followed from the last packet-in, as all is carried out; those before were looked at."""
        unseen, self._followed = self._followed[self._seen :], []
        return unseen

    def _feed(self, plain: Callable[[Any], None]) -> Callable[[Any], None]:
        owner, called = self._owner, self._called["event"]
        if len(called) == 1:
            ((only, watcher),) = called.items()

            def feed_one(event: Any) -> None:
                if event.__class__ is only and owner.takes_events:
                    watcher(event)
                return plain(event)

            return feed_one

        def feed(event: Any) -> None:
            kind = event.__class__
            if kind in called and owner.takes_events:
                called[kind](event)
            return plain(event)

        return feed

    def _perform(self, plain: Callable[[Iterable[Any]], None]) -> Callable[[Iterable[Any]], None]:
        called = self._called["effect"]
        if len(called) == 1:
            ((only, watcher),) = called.items()

            def perform_one(effects: Iterable[Any]) -> None:
                for effect in effects if effects is not self._followed else self._take_followed():
                    if effect.__class__ is only:
                        watcher(effect)
                return plain(effects)

            return perform_one

        def perform(effects: Iterable[Any]) -> None:
            for effect in effects if effects is not self._followed else self._take_followed():
                kind = effect.__class__
                if kind in called:
                    called[kind](effect)
            return plain(effects)

        return perform
