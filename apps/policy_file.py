"""The policy file of a running app: read at the start, read again on SIGHUP and when the file changes."""

from __future__ import annotations

import logging
import signal
import time
from typing import Any

from apps.environment import policy_path
from apps.fabric_file import FabricFile, Stamp, stamp_of
from controller.config.faults import PolicyInvalid, describe
from controller.config.load import load_policy
from controller.config.policy import Policy


class PolicyFile:
    """Follows the file named by VSRT_CONFIG; without one the built-in policy admits nobody.

    The topology file that it names is followed too. `policy` is the running one, `text` is what it was read from and
    `loaded_s` when, in seconds since 1970; `errors` says what is wrong since. `read_count` grows with each reading.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self.path = policy_path()
        self.policy = Policy()
        self.text = ""
        self.loaded_s: float | None = None
        self.errors: tuple[str, ...] = ()
        self.read_count = 0
        self._logger = logger
        self._asked = False
        self._fabric = FabricFile(self.path)
        self._stamp = self._read_stamp()

    def load(self) -> Policy:
        """Read the policy; SystemExit with every fault where it cannot be used."""
        if self.path is None:
            self._logger.warning("No policy file is set (VSRT_CONFIG): every join and every sender is refused.")
            return Policy()
        policy = self._read()
        if policy is None:
            raise SystemExit("\n".join(f"vsrt: {line}" for line in self.errors))
        return policy

    def watch_signal(self) -> None:
        """Let SIGHUP ask for a reload; only the main thread may say so."""
        try:
            signal.signal(signal.SIGHUP, self._on_signal)
        except ValueError:
            self._logger.warning("SIGHUP does not reload the policy here; a change of the file does.")

    def poll(self) -> Policy | None:
        """Return a new policy where one was asked for or written; a faulty one is reported and left aside."""
        if self.path is None:
            return None
        if self._read_stamp() == self._stamp and not self._fabric.has_changed() and not self._asked:
            return None
        return self.reload()

    def reload(self) -> Policy | None:
        """Read the policy again; None, with `errors`, where it cannot be used and the running one stays."""
        if self.path is None:
            self.errors = ("VSRT_CONFIG is not set: there is no policy file",)
            return None
        self._stamp, self._asked = self._read_stamp(), False
        policy = self._read()
        if policy is None:
            for line in self.errors:
                self._logger.error("%s", line)
            self._logger.error("The policy file %s is faulty: the running policy stays.", self.path)
        else:
            self._logger.info("The policy file %s was read: %d rules are in force.", self.path, len(policy.rules))
        return policy

    def _read(self) -> Policy | None:
        assert self.path is not None
        self.read_count += 1
        self._fabric = FabricFile(self.path)
        try:
            content = self.path.read_bytes()
            policy = load_policy(content, str(self.path), self._fabric.read)
        except PolicyInvalid as error:
            self.errors = tuple(describe(fault, str(self.path)) for fault in error.errors)
            return None
        except OSError as error:
            self.errors = (f"{self.path}: {error.strerror}",)
            return None
        self.policy = policy
        self.text, self.loaded_s, self.errors = content.decode(errors="replace"), time.time(), ()
        return policy

    def _on_signal(self, _number: int, _frame: Any) -> None:
        self._asked = True

    def _read_stamp(self) -> Stamp | None:
        return None if self.path is None else stamp_of(self.path)
