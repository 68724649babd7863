"""Questions that other threads put to an app's loop: answered there, or taken back before they have begun."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from apps.openflow.framework import EventBase, hub

BEGIN_S = 5.0
"""A question that has not begun by then, since the loop is busy, is taken back."""

END_S = 20.0
"""Nobody waits longer than this in all; what has begun goes on."""


class Unanswered(Exception):  # noqa: N818
    """There is no answer in time; the text says what that means. `begun` tells whether something may still happen."""

    def __init__(self, begun: bool) -> None:
        self.begun = begun
        super().__init__(
            f"the controller has begun, but is not done after {END_S:g} s: it goes on and may still take effect"
            if begun
            else f"the controller is busy and did not begin within {BEGIN_S:g} s: nothing was done"
        )


class Deferred:
    """An answer that is not there yet; `settle` gives it, on the loop that was asked."""

    def __init__(self) -> None:
        self._answer: Any = None
        self._then: Callable[[Any], None] | None = None
        self._is_settled = False

    def settle(self, answer: Any) -> None:
        """Give the answer."""
        self._answer, self._is_settled = answer, True
        if self._then is not None:
            self._then(answer)

    def when_settled(self, then: Callable[[Any], None]) -> None:
        """Have `then` called with the answer when it is there."""
        self._then = then
        if self._is_settled:
            then(self._answer)


class QuestionEvent(EventBase):  # type: ignore[misc]
    """A question: `answer` runs on the app's own loop unless it was taken back, and what becomes of it is a reply.

    Where it returns a `Deferred`, the reply is what that is settled with.
    """

    def __init__(self, answer: Callable[[], Any], begin_s: float = BEGIN_S) -> None:
        super().__init__()
        self.begin_s = begin_s
        self._answer = answer
        self._replies = hub.Queue()
        self._lock = threading.Lock()
        self._settled = False

    def run(self) -> None:
        """Answer; on the app's loop."""
        if not self._settle():
            return
        try:
            answer = self._answer()
            if isinstance(answer, Deferred):
                answer.when_settled(lambda settled: self._replies.put((settled, None)))
            else:
                self._replies.put((answer, None))
        except Exception as error:  # it is the asker's, on whose thread it is raised
            self._replies.put((None, error))

    def take_back(self) -> None:
        """Raise Unanswered where the question has not begun; it never will then. On the asker's thread."""
        if self._settle():
            raise Unanswered(begun=False)

    def wait(self) -> Any:
        """Return what `answer` returned or raise what it raised; Unanswered where that takes too long."""
        try:
            reply, error = self._replies.get(timeout=self.begin_s)
        except hub.QueueEmpty:
            self.take_back()
            try:
                reply, error = self._replies.get(timeout=END_S - self.begin_s)
            except hub.QueueEmpty:
                raise Unanswered(begun=True) from None
        if error is not None:
            raise error
        return reply

    def _settle(self) -> bool:
        """Tell whether it is open still whether the question runs or is taken back; from now on it is not."""
        with self._lock:
            settled, self._settled = self._settled, True
        return not settled
