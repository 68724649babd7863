"""The staged policy file: followed like the one in force, and only judged by."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

from apps.environment import environment_path
from apps.fabric_file import FabricFile, Stamp, stamp_of
from apps.policy_file import policy_faults
from controller.config.faults import PolicyInvalid
from controller.config.load import load_policy
from controller.config.policy import Policy
from controller.multicast.effects import Audit
from controller.policy_discovery.staged import LOOK_BACK_S, StagedDecisions, StagedKey
from controller.snapshot.log import DocumentLog
from controller.wire.addresses import format_ip, format_mac

SUMMARY = "alike"
"""The document with what is decided alike, and what is wrong with the file."""

FORGET_INTERVAL_S = 60.0

PRESENT_INTERVAL_S = LOOK_BACK_S / 4
"""How often it is looked who of those that are told is still there."""

PRESENT_PER_TURN = 256
"""Members and senders that are there and are judged in one turn of the loop; some 5 ms."""

Work: TypeAlias = Callable[[], None]


class StagedPolicy:
    """Judges decisions by the file that VSRT_STAGED names; nothing where it names none.

    Nothing is judged until the file is there. One that is faulty leaves the staged policy of before, and the log and
    the summary say what is wrong. The topology file that it names is followed too.

    Parameters
    ----------
    spawn
        Has work done on a thread: a large file takes its time, and the app's loop has other things to do.
    later
        Has work done on the app's loop, as all else here is; False where it takes no more.
    present
        Yields what the policy in force says of the members and senders that are there: they are judged too, in
        slices, once there is a staged policy.

    Attributes
    ----------
    documents
        What would be decided otherwise, and the summary.
    """

    def __init__(
        self,
        logger: logging.Logger,
        spawn: Callable[[Work], object],
        later: Callable[[Work], bool],
        present: Callable[[], Iterator[Audit]],
    ) -> None:
        path = environment_path("VSRT_STAGED")
        self._path = None if path is None else Path(path)
        self.is_used = path is not None
        """Whether there is a policy beside the one in force, or may be: else decisions need not be added."""
        self._logger = logger
        self._spawn, self._later, self._present = spawn, later, present
        self._unjudged: Iterator[Audit] | None = None
        self._counted = False
        self._is_turn_due = False
        self._present_s = inf
        self._is_reading = False
        self._fabric = FabricFile(self._path)
        self._stamp: Stamp | None = None
        self._decisions = StagedDecisions()
        self._policy: Policy | None = None
        self._loaded_s: float | None = None
        self._errors: tuple[str, ...] = ()
        self._told = (0, 0)
        self._forgotten_s = 0.0
        self.documents: DocumentLog[StagedKey | str] = DocumentLog(self._keys, self._document, _ident)
        if self._path is not None:
            self._stamp = stamp_of(self._path)
            self._use(_read(self._path, self._fabric))

    def add(self, audit: Audit, *, counts: bool = True) -> None:
        """Judge a decision; one that does not count was judged before, and still holds."""
        if self._path is None:
            return
        decision, host, group, role, source = audit
        key = self._decisions.judge(decision, host, group, role, source, time.time(), counts=counts)
        if key is not None:
            self.documents.touch(key)

    def judge_anew(self) -> None:
        """Tell nothing of what was decided so far: one of the two policies is another."""
        for key in self._decisions.use(self._policy):
            self.documents.touch(key)
        self.documents.touch(SUMMARY)
        self._unjudged, self._counted = None, False
        self._present_s = inf if self._policy is None else time.time()

    def _judge_present(self) -> None:
        """Judge some of those who are there, and have the others judged in further turns."""
        self._is_turn_due = False
        if self._policy is None:
            return
        if self._unjudged is None:
            self._unjudged, self._present_s = self._present(), time.time() + PRESENT_INTERVAL_S
        some = list(islice(self._unjudged, PRESENT_PER_TURN))
        for audit in some:
            self.add(audit, counts=not self._counted)
        if some:
            self._is_turn_due = self._later(self._judge_present)
        else:
            self._unjudged, self._counted = None, True

    def look(self) -> None:
        """Have the file read if it is another, and forget what is old."""
        if self._path is None:
            return
        if not self._is_reading and (stamp_of(self._path) != self._stamp or self._fabric.has_changed()):
            self._stamp, self._fabric, self._is_reading = stamp_of(self._path), FabricFile(self._path), True
            self._spawn(partial(self._read_aside, self._path, self._fabric))
        now_s = time.time()
        if now_s >= self._forgotten_s + FORGET_INTERVAL_S:
            self._forgotten_s = now_s
            for key in self._decisions.forget(now_s):
                self.documents.touch(key)
        if not self._is_turn_due and (self._unjudged is not None or now_s >= self._present_s):
            self._judge_present()
        if self._told != (told := (self._decisions.alike, self._decisions.beyond)):
            self._told = told
            self.documents.touch(SUMMARY)

    def counts(self) -> dict[str, int]:
        """Return how many decisions would be which; none where no policy is staged."""
        return {} if self._policy is None else self._decisions.counts()

    def _read_aside(self, path: Path, fabric: FabricFile) -> None:
        found = _read(path, fabric)
        if not self._later(lambda: self._use(found)):
            self._stamp, self._is_reading = None, False

    def _use(self, found: Policy | tuple[str, ...] | None) -> None:
        """Go by what was read: a policy, what is wrong with it, or that there is none."""
        self._is_reading = False
        if isinstance(found, tuple):
            self._errors = found
            for line in found:
                self._logger.error("%s", line)
            what_now = "nothing is judged" if self._policy is None else "that of before is judged by"
            self._logger.error("The staged policy %s cannot be used: %s.", self._path, what_now)
            self.documents.touch(SUMMARY)
            return
        self._errors, self._policy = (), found
        self._loaded_s = None if found is None else time.time()
        self.judge_anew()
        if found is not None:
            self._logger.info("The policy %s is staged: it is judged by, and not in force.", self._path)

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
            "errors": list(self._errors),
        }


def _read(path: Path, fabric: FabricFile) -> Policy | tuple[str, ...] | None:
    """Return a policy, what is wrong with it, or None where there is no file; on any thread."""
    if path.is_fifo():
        return (f"{path}: the file is a pipe, which is not waited for",)
    try:
        return load_policy(path.read_bytes(), str(path), fabric.read)
    except FileNotFoundError:
        return None
    except (PolicyInvalid, OSError) as fault:
        return policy_faults(fault, path)
    except Exception as fault:
        return (f"{path}: {fault!r}",)


def _ident(key: StagedKey | str) -> str:
    if isinstance(key, str):
        return key
    source = f" {format_ip(key.source)}" if key.source else ""
    return f"{format_ip(key.group)} {key.role} {format_mac(key.mac)}{source}"
