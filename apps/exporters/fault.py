"""What a sink says when it cannot write: counted, shown, and logged once when it begins and once when it ends."""

from __future__ import annotations

import logging


class OutputFault:
    """The state of one output, named `what` in the log."""

    def __init__(self, what: str, logger: logging.Logger) -> None:
        self.failures = 0
        self.text: str | None = None
        self._what = what
        self._logger = logger

    def failed(self, error: Exception) -> None:
        """Count a failure; the controller goes on."""
        self.failures += 1
        told = error.strerror if isinstance(error, OSError) and error.strerror else error
        text = f"{self._what}: {told}"
        if self.text is None:
            self._logger.error("An output cannot be written: %s", text)
        self.text = text

    def passed(self) -> None:
        """Writing works, or works again."""
        if self.text is not None:
            self._logger.warning("%s is written again, after %d failures in all.", self._what, self.failures)
            self.text = None
