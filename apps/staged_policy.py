"""The staged policy file: followed like the one in force, and only judged by."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from apps.environment import environment_path
from apps.fabric_file import FabricFile, Stamp, stamp_of
from controller.config.faults import PolicyInvalid, describe
from controller.config.load import load_policy
from controller.config.policy import Policy
from controller.multicast.effects import Audit
from controller.policy_discovery.staged import StagedDecisions, StagedKey
from controller.snapshot.log import DocumentLog
from controller.wire.addresses import format_ip, format_mac

SUMMARY = "alike"
"""The document with what is decided alike, and what is wrong with the file."""

FORGET_INTERVAL_S = 60.0


class StagedPolicy:
    """Judges decisions by the file that VSRT_STAGED names; nothing where it names none.

    Nothing is judged until the file is there. One that is faulty leaves the staged policy of before, and the log and
    the summary say what is wrong.

    Attributes
    ----------
    documents
        What would be decided otherwise, and the summary.
    """

    def __init__(self, logger: logging.Logger) -> None:
        path = environment_path("VSRT_STAGED")
        self._path = None if path is None else Path(path)
        self._logger = logger
        self._stamp: Stamp | None = None
        self._decisions = StagedDecisions()
        self._policy: Policy | None = None
        self._loaded_s: float | None = None
        self._errors: list[str] = []
        self._told = (0, 0)
        self._forgotten_s = 0.0
        self.documents: DocumentLog[StagedKey | str] = DocumentLog(self._keys, self._document, _ident)
        self.look()

    def add(self, audit: Audit) -> None:
        """Judge a decision."""
        if self._path is None:
            return
        decision, host, group, role, source = audit
        key = self._decisions.judge(decision, host, group, role, source, time.time())
        if key is not None:
            self.documents.touch(key)

    def judge_anew(self) -> None:
        """Tell nothing of what was decided so far: one of the two policies is another."""
        for key in self._decisions.use(self._policy):
            self.documents.touch(key)
        self.documents.touch(SUMMARY)

    def look(self) -> None:
        """Read the file if it is another, and forget what is old."""
        if self._path is None:
            return
        stamp = stamp_of(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            self._read(self._path)
        now_s = time.time()
        if now_s >= self._forgotten_s + FORGET_INTERVAL_S:
            self._forgotten_s = now_s
            for key in self._decisions.forget(now_s):
                self.documents.touch(key)
        if self._told != (told := (self._decisions.alike, self._decisions.beyond)):
            self._told = told
            self.documents.touch(SUMMARY)

    def _read(self, path: Path) -> None:
        try:
            self._policy = load_policy(path.read_bytes(), str(path), FabricFile(path).read)
        except FileNotFoundError:
            self._errors, self._loaded_s, self._policy = [], None, None
            self.judge_anew()
        except PolicyInvalid as fault:
            self._errors = [describe(error, str(path)) for error in fault.errors]
        except OSError as error:
            self._errors = [f"{path}: {error.strerror or error}"]
        else:
            self._errors, self._loaded_s = [], time.time()
            self.judge_anew()
            self._logger.info("The policy %s is staged: it is judged by, and not in force.", path)
        for line in self._errors:
            self._logger.error("%s", line)
        if self._errors:
            self._logger.error("The staged policy %s cannot be used: that of before is judged by.", path)
        self.documents.touch(SUMMARY)

    def _keys(self) -> list[StagedKey | str]:
        return [] if self._path is None else [SUMMARY, *self._decisions.otherwise()]

    def _document(self, key: StagedKey | str) -> dict[str, Any] | None:
        if isinstance(key, StagedKey):
            return self._decisions.document(key)
        return {
            "would_be": SUMMARY,
            "count": self._decisions.alike,
            "beyond": self._decisions.beyond,
            "path": str(self._path),
            "loaded_s": self._loaded_s,
            "errors": self._errors,
        }


def _ident(key: StagedKey | str) -> str:
    if isinstance(key, str):
        return key
    source = f" {format_ip(key.source)}" if key.source else ""
    return f"{format_ip(key.group)} {key.role} {format_mac(key.mac)}{source}"
