"""The table of Q-learning: what an action in a state has been worth, bounded in size."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

STATES_BOUND = 4096
"""States that are kept; the one that was learnt about least recently makes room."""

State = TypeVar("State", bound=Hashable)
Action = TypeVar("Action", bound=Hashable)


class ActionValues(Generic[State, Action]):
    """Q(s, a) <- alpha Q(s, a) + (1 - alpha) (r + beta max Q(s', .)): alpha is the weight of what was known.

    Parameters
    ----------
    alpha, beta
        From 0 to below 1. Many have alpha for the weight of what is new; in the article it is that of the old value.
    """

    def __init__(self, alpha: float, beta: float) -> None:
        self._alpha = alpha
        self._beta = beta
        self._values: dict[State, dict[Action, float]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> Iterator[tuple[State, dict[Action, float]]]:
        """Yield the states with the value of each action that was tried, those learnt about last at the end."""
        yield from self._values.items()

    def replace(self, values: Iterable[tuple[State, dict[Action, float]]]) -> None:
        """Know these values and no others; of more than are kept the last ones."""
        self._values = dict(deque(values, STATES_BOUND))

    def known(self, state: State) -> dict[Action, float]:
        """Return the value of each action that was tried in a state; not to be changed."""
        return self._values.get(state, {})

    def best(self, state: State, among: Iterable[Action]) -> Action:
        """Return the action of the greatest value, the first of equals; what was never tried counts as 0."""
        known = self.known(state)
        return max(among, key=lambda action: known.get(action, 0.0))

    def learn(self, state: State, action: Action, reward: float, then: State) -> None:
        """Take in that an action in a state led to a reward and to another state."""
        ahead = max(self.known(then).values(), default=0.0)
        worth = reward + self._beta * ahead
        values = self._values.pop(state, None)
        if values is None:
            values = {}
            if len(self._values) >= STATES_BOUND:
                del self._values[next(iter(self._values))]
        self._values[state] = values
        before = values.get(action)
        values[action] = worth if before is None else self._alpha * before + (1 - self._alpha) * worth
