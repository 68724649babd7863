"""Time, chance and a store in memory, as processes that are simulated have them: messages take their time."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from typing import Any

from controller.cluster.engine import Reply, Request, Silent
from controller.cluster.memory_engine import MemoryStore

DEADLINE_S = 1.0
"""Within this time the store answers, or is silent."""


class Timeline:
    """What happens, in its order, by one clock and one source of chance.

    Attributes
    ----------
    nodes
        Processes, by name: each has an `engine`, `at` has something happen to it, `look` has it hear its watch.
    loss
        The part of requests, and of replies, that is lost.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.now = 0.0
        self.store = MemoryStore()
        self.nodes: dict[str, Any] = {}
        self.loss = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._channels: dict[str, float] = {}

    def later(self, delay_s: float, action: Callable[[], None], channel: str = "") -> None:
        """Have something happen; on one channel things happen in the order in which they were begun."""
        at_s = self.now + delay_s
        if channel:
            at_s = self._channels[channel] = max(at_s, self._channels.get(channel, 0.0))
        heapq.heappush(self._queue, (at_s, next(self._order), action))

    def delay_s(self) -> float:
        """Draw how long a message takes."""
        return self.chance.uniform(0.001, 0.01)

    def run(self, until_s: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let time go on, until `done`."""
        while self._queue[0][0] <= until_s and not done():
            self.now, _, action = heapq.heappop(self._queue)
            action()
        if not done():
            self.now = until_s

    def ask(self, node: Any, request: Request, then: Callable[[Reply], None]) -> None:
        """Have a request reach the store, and the answer come back, or none within the deadline."""
        asked_s = self.now
        silent = Silent("The store does not answer.")

        def arrive() -> None:
            self.store.advance(self.now)
            reply = silent if self.chance.random() < self.loss else node.engine.ask(request)
            if self.chance.random() < self.loss:
                reply = silent
            if type(reply) is Silent:
                node.at("", lambda: then(reply), max(asked_s + DEADLINE_S - self.now, 0.0))
            else:
                node.at("", lambda: then(reply))
            for each in self.nodes.values():
                each.look()

        self.later(self.delay_s(), arrive)
