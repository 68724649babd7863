"""Packet-ins that came together: given to a core in one go, or one by one where each event is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from controller.events import PacketReceived


class PacketCore(Protocol):
    """A core that takes packet-ins that came together for less than it takes one after the other."""

    def packets_received(self, events: Iterator[PacketReceived], now: float, effects: list[Any]) -> None:
        """Take them in their order, as `handle` would each, and add what is to be done.

        Where one raises, the iterator stands behind it, and what followed from those before has been added.
        """


EachPacket = Callable[[Iterable[PacketReceived], list[Any]], Iterator[PacketReceived]]
"""Yields packet-ins one after the other; the list has what follows from those before when the next is asked for."""


def _each_packet(events: Iterable[PacketReceived], _effects: list[Any]) -> Iterator[PacketReceived]:
    return iter(events)


class PacketTaker:
    """How an app's core takes packet-ins; the latter is exchanged while somebody looks (`AppWatch`)."""

    takes_packets_together = False
    """Whether it is a `PacketCore`."""
    each_packet: EachPacket = staticmethod(_each_packet)


class PacketFeeder(Protocol):
    """The app of a core, a `PacketTaker`."""

    core: Any
    takes_packets_together: bool
    each_packet: EachPacket

    @property
    def is_recorded(self) -> bool:
        """Whether each event is recorded."""

    def feed(self, event: Any) -> None:
        """Give the core one event, and perform what it asks for."""

    def perform(self, effects: Iterable[Any]) -> None:
        """Carry out effects in order."""

    def failed(self, what: str) -> None:
        """Count and log what was not done to its end."""


def feed_packets(app: PacketFeeder, events: Sequence[PacketReceived]) -> None:
    """Give an app's core packet-ins that came together; those behind one that fails are taken all the same."""
    if app.takes_packets_together and not app.is_recorded:
        core: PacketCore = app.core
        now, effects = time.monotonic(), list[Any]()
        left = app.each_packet(events, effects)
        for _ in events:  # as often as there may be one more that fails
            try:
                core.packets_received(left, now, effects)
                break
            except Exception:
                app.failed(PacketReceived.__name__)
        if effects:
            app.perform(effects)
        return
    for event in events:
        try:
            app.feed(event)
        except Exception:
            app.failed(type(event).__name__)
