"""How long the handlers of an app hold its loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from controller.histogram import Histogram


class Turns:
    """Measures what each handler of an app takes, in `seconds`; where others get their turn meanwhile, it counts."""

    def __init__(self) -> None:
        self.seconds = Histogram()

    def timed(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a handler that does the same and is measured."""
        observe, clock = self.seconds.observe, time.perf_counter

        @wraps(handler)
        def turn(event: Any) -> None:
            began_s = clock()
            try:
                handler(event)
            finally:
                observe(clock() - began_s)

        return turn
