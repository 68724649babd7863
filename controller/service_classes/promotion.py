"""Work in queues by importance, of which none waits for ever: after each turn all that is less important rises."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from controller.service_classes.goals import CONTROLLER, DISCRETIONARY

TURN = 64
"""Pieces of work in one turn at most."""

T = TypeVar("T")


class PromotingQueues(Generic[T]):
    """Queues of work, one for each importance from 0 to 6; work of one importance stays in its order.

    A turn serves the most important queue that holds something, `TURN` pieces at most. Then whatever is in the queues
    below goes one up, behind what is there. So a piece of importance i is first in the most important queue
    after i turns, whatever comes after it.
    """

    def __init__(self) -> None:
        self._queues: list[deque[T]] = [deque() for _ in range(DISCRETIONARY + 1)]

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    def put(self, importance: int, work: T) -> None:
        """Add a piece of work (ValueError for an importance that there is not)."""
        if not CONTROLLER <= importance <= DISCRETIONARY:
            raise ValueError(f"importance {importance} is not from {CONTROLLER} to {DISCRETIONARY}")
        self._queues[importance].append(work)

    def turn(self) -> list[T]:
        """Return what is to be done in this turn, nothing where no work waits."""
        active = next((number for number, queue in enumerate(self._queues) if queue), None)
        if active is None:
            return []
        queue = self._queues[active]
        served = [queue.popleft() for _ in range(min(TURN, len(queue)))]
        for number in range(active + 1, len(self._queues)):
            self._queues[number - 1].extend(self._queues[number])
            self._queues[number].clear()
        return served
