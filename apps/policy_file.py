"""The policy file of a running app: read at the start, read again on SIGHUP and when the file changes."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from typing import Any

from apps.openflow.app import environment_path
from controller.config.faults import PolicyInvalid, describe
from controller.config.load import load_policy
from controller.config.policy import Policy

CHECK_INTERVAL_S = 0.5


class PolicyFile:
    """Follows the file named by VSRT_CONFIG; without one the built-in policy admits nobody."""

    def __init__(self, logger: logging.Logger) -> None:
        path = environment_path("VSRT_CONFIG")
        self.path = Path(path) if path else None
        self._logger = logger
        self._asked = False
        self._stamp = self._read_stamp()

    def load(self) -> Policy:
        """Read the policy; SystemExit with every fault where it cannot be used."""
        if self.path is None:
            self._logger.warning("VSRT_CONFIG is not set: every join and sender is refused")
            return Policy()
        try:
            policy = load_policy(self.path.read_bytes(), str(self.path))
        except OSError as error:
            raise SystemExit(f"vsrt: {self.path}: {error.strerror}") from error
        except PolicyInvalid as error:
            raise SystemExit("\n".join(f"vsrt: {line}" for line in self._faults(error))) from error
        return policy

    def watch_signal(self) -> None:
        """Let SIGHUP ask for a reload; only the main thread may say so."""
        try:
            signal.signal(signal.SIGHUP, self._on_signal)
        except ValueError:
            self._logger.warning("SIGHUP does not reload the policy here; a change of the file does")

    def poll(self) -> Policy | None:
        """Return a new policy where one was asked for or written; a faulty one is reported and left aside."""
        if self.path is None:
            return None
        stamp = self._read_stamp()
        if stamp == self._stamp and not self._asked:
            return None
        self._stamp, self._asked = stamp, False
        try:
            policy = load_policy(self.path.read_bytes(), str(self.path))
        except PolicyInvalid as error:
            for line in self._faults(error):
                self._logger.error("%s", line)
            self._logger.error("%s is faulty: the running policy stays", self.path)
            return None
        except OSError as error:
            self._logger.error("%s cannot be read (%s): the running policy stays", self.path, error.strerror)
            return None
        self._logger.info("%s read: %d rules", self.path, len(policy.rules))
        return policy

    def _faults(self, error: PolicyInvalid) -> list[str]:
        return [describe(fault, str(self.path)) for fault in error.errors]

    def _on_signal(self, _number: int, _frame: Any) -> None:
        self._asked = True

    def _read_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat() if self.path is not None else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino) if found is not None else None
