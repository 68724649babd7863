"""Policies that the configuration seems to follow, as the controller tells them, and what operators say of them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from fcntl import ioctl
from functools import partial
from pathlib import Path
from termios import FIONREAD
from typing import Any, TypeAlias

from apps.line_files import make_directory, replace_file
from apps.openflow.questions import Deferred
from apps.status_server import QuestionRefused, refusal
from controller.config.policy_discovery_settings import PolicyDiscovery
from controller.snapshot.log import Document, DocumentLog

ROOT = Path(__file__).parents[2]

LOG_NAME, FOUND_NAME = "configuration-changes.jsonl", "candidates.json"
DECISIONS_NAME, ACCEPTED_NAME = "candidate-decisions.json", "accepted-policies"

SUMMARY = "search"
"""The document that tells of the search itself."""

STOP_S = 3.0
RETRY_S = 60.0
"""How long after a process that ended by itself the next one begins."""

READ_BYTES = 1 << 20
DECISIONS_BOUND = 4096

VERBS = {"accept": "accepted", "ignore": "ignored", "consider": "new"}
"""What operators may say of a candidate, and what it is then."""

Work: TypeAlias = Callable[[], None]


class CandidateSearch:
    """Keeps a process that looks for policies while the policy file asks for it; on the app's loop.

    What it finds is told, section `candidates`, and is in force nowhere: one that is accepted becomes a file.

    Parameters
    ----------
    directory
        Where the log of changes, what was found and what operators said are kept.
    socket
        Where the controller answers.
    aside
        Has work that waits for a disk done on a thread.
    later
        Has work done on the app's loop; False where it takes no more.
    """

    def __init__(
        self,
        logger: logging.Logger,
        directory: Path,
        socket: Path,
        aside: Callable[[Work], object],
        later: Callable[[Work], bool],
    ) -> None:
        self._logger, self._directory, self._socket = logger, directory, socket
        self._aside, self._later = aside, later
        self._settings = PolicyDiscovery()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: subprocess.Popen[bytes] | None = None
        self._kill_s = self._begin_s = 0.0
        self._unread = b""
        self._candidates: dict[str, Document] = {}
        self._summary: Document = {}
        self._decisions_lock = threading.Lock()
        self._decisions: dict[str, Document] = self._read_decisions()
        self.documents: DocumentLog[str] = DocumentLog(self._keys, self._document)

    def actions(self) -> dict[str, Callable[[Mapping[str, Any], str | None], Deferred]]:
        """Return what operators may do, by name: each takes its fields and who asks."""
        return {f"candidate-{verb}": partial(self._decide, state) for verb, state in VERBS.items()}

    def use(self, settings: PolicyDiscovery) -> None:
        """Go on by these settings."""
        if settings == self._settings:
            return
        self._let_end()
        before = self._keys()
        self._settings = settings
        self._begin_s = 0.0
        if not settings.enabled:
            self._candidates, self._summary = {}, {}
        self._touch({*before, *self._keys()})

    def look(self) -> None:
        """Begin the process where there is none, and take what it tells; nothing here waits for it."""
        if self._ending is not None:
            if self._ending.poll() is None:
                if time.monotonic() >= self._kill_s:  # it is in the middle of a search
                    self._ending.kill()
                return
            self._ended(self._ending)
        if not self._settings.enabled:
            return
        process = self._process
        if process is None:
            if time.monotonic() >= self._begin_s:
                self._start()
            return
        status = process.poll()
        while read := _there(process):
            *lines, self._unread = (self._unread + read).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        if status is not None:
            self._logger.error("The search for policies has ended (%s): it begins anew in a minute.", status)
            if self._summary.get("fault") is None:
                self._take({"fault": f"its process ended with status {status}"})
            self._let_end()
            self._begin_s = time.monotonic() + RETRY_S

    def stop(self) -> None:
        """End the process, and wait for that."""
        self._let_end()
        process = self._ending
        if process is None:
            return
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._ended(process)

    def _let_end(self) -> None:
        """Have the process end."""
        process, self._process, self._unread = self._process, None, b""
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            self._ending, self._kill_s = process, time.monotonic() + STOP_S

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        process.stdout.close()
        self._ending = None

    def _start(self) -> None:
        settings = self._settings
        places = (self._socket, self._directory / LOG_NAME, self._directory / FOUND_NAME)
        spans = (settings.window_s, settings.interval_s)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "apps.candidates", *(str(path.absolute()) for path in places), *map(str, spans)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
        )

    def _take(self, told: Document) -> None:
        """Take what a search found, or why there was none: what was found before is told still."""
        before = self._keys()
        if "fault" in told:
            self._summary = {**self._summary, "fault": told["fault"]}
        else:
            self._candidates = told.pop("candidates")
            self._summary = {**told, "fault": None}
        self._touch({*before, *self._keys()})

    def _touch(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.documents.touch(key)

    def _keys(self) -> list[str]:
        return [SUMMARY, *self._candidates] if self._settings.enabled else []

    def _document(self, key: str) -> Document | None:
        if not self._settings.enabled:
            return None
        if key == SUMMARY:
            path = str(self._directory / LOG_NAME)
            about = {"path": path, "searched_s": None, "lines": None, "resource_count": None, "beyond": 0}
            return {"state": SUMMARY, **about, "fault": None, **self._summary}
        candidate = self._candidates.get(key)
        decided = self._decisions.get(key, {"state": "new", "by": None, "decided_s": None, "path": None})
        return None if candidate is None else {**candidate, **decided}

    def _decide(self, state: str, asked: Mapping[str, Any], by: str | None) -> Deferred:
        id_ = asked.get("id")
        if not isinstance(id_, str) or id_ not in self._candidates:
            raise QuestionRefused(f"there is no candidate {id_!r} (`vsrt show candidates`)", "id")
        answer = Deferred()
        path = str(self._directory / ACCEPTED_NAME / f"{id_}.json") if state == "accepted" else None
        decision = {"state": state, "by": by, "decided_s": time.time(), "path": path}
        self._aside(partial(self._keep, id_, decision, answer))
        return answer

    def _keep(self, id_: str, decision: Document, answer: Deferred) -> None:
        """Put a decision on the disk, and the file of what is accepted before it; on a thread."""
        outcome: Document
        try:
            with self._decisions_lock:
                if decision["path"] is not None:
                    self._write_accepted(id_, decision)
                decisions = {other: told for other, told in self._decisions.items() if other != id_}
                decisions = dict([*decisions.items(), (id_, decision)][-DECISIONS_BOUND:])
                replace_file(self._directory / DECISIONS_NAME, json.dumps(decisions).encode())
                self._decisions = decisions
            outcome = {"id": id_, **decision}
        except (OSError, ValueError, KeyError) as fault:
            why = (fault.strerror or str(fault)) if isinstance(fault, OSError) else repr(fault)
            outcome = refusal(QuestionRefused(f"Nothing was done, for it could not be written: {why}."))

        def settle() -> None:
            self.documents.touch(id_)
            answer.settle(outcome)

        self._later(settle)

    def _write_accepted(self, id_: str, decision: Document) -> None:
        found = json.loads((self._directory / FOUND_NAME).read_bytes())
        policy, templates = found["policies"][id_], found["templates"][id_]
        path = Path(decision["path"])
        make_directory(path.parent)
        if templates:
            replace_file(path.with_suffix(".yaml"), templates.encode())
        document = {"policies": [policy], "accepted_by": decision["by"], "accepted_s": decision["decided_s"]}
        replace_file(path, json.dumps(document, indent=1).encode() + b"\n")

    def _read_decisions(self) -> dict[str, Document]:
        """Return what operators said before; a file that makes no sense is put aside."""
        path = self._directory / DECISIONS_NAME
        try:
            read = json.loads(path.read_bytes())
            if isinstance(read, dict) and all(map(_is_decision, read.values())):
                return read
        except FileNotFoundError:
            return {}
        except OSError as fault:
            self._logger.error("%s: %s; what was said of candidates is not known.", path, fault.strerror)
            return {}
        except ValueError:
            pass
        aside = path.with_name(f"{path.name}.faulty")
        self._logger.error("%s makes no sense, and is put aside as %s.", path, aside.name)
        path.replace(aside)
        return {}


def _is_decision(read: Any) -> bool:
    return isinstance(read, dict) and read.keys() == {"state", "by", "decided_s", "path"}


def _there(process: subprocess.Popen[bytes]) -> bytes:
    """Return what the process has said and nobody read; reading more would wait, whatever framework's threads."""
    assert process.stdout is not None
    count = int.from_bytes(ioctl(process.stdout, FIONREAD, bytes(4)), sys.byteorder)
    return os.read(process.stdout.fileno(), min(count, READ_BYTES)) if count else b""
