"""Workflows that the page offers, read from a folder, and their runs, whose results are files of their own."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from apps.cli.batch_results import BatchResults, digest_of
from apps.cli.common import InputError, OperationFailed
from apps.cli.snapshot_socket import SocketSource
from apps.workflows.doing import done_in_turn, resumable
from apps.workflows.planned import WorkflowPlan, begun_at, planned, workflow_file
from controller.workflows.workflow import Workflow

FILES = 256
"""Workflows of a folder that are offered at most; those of later names are left out."""

KEPT = 64
"""Runs whose results are kept; as another one begins the oldest goes."""

AT_ONCE = 4
"""Runs that go on at a time."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
"""What a file of a workflow may be called, without `.yaml`."""

_RESULTS = re.compile(rf"([0-9]{{1,9}})-({NAME})\.results\.jsonl")

logger = logging.getLogger("vsrt.dashboard")


class Offered(NamedTuple):
    """A file of the folder: its workflow, or why it is none."""

    name: str
    workflow: Workflow | None
    fault: str = ""


class WorkflowFolder:
    """The workflows of a folder, read anew where a file has changed; there are none where `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._read: dict[Path, tuple[tuple[int, int], Offered]] = {}

    def file(self, name: str) -> Path | None:
        """Return the file of a workflow, None where there is none."""
        path = None if self.path is None else self.path / f"{name}.yaml"
        return path if path is not None and path.is_file() else None

    def offered(self) -> list[Offered]:
        """Return what is in the folder, in the order of the names."""
        paths = [] if self.path is None else sorted(self.path.glob("*.yaml"))[:FILES]
        self._read = {path: self._read[path] for path in paths if path in self._read}
        return [self._of(path) for path in paths]

    def _of(self, path: Path) -> Offered:
        try:
            state = path.stat()
        except OSError as error:
            return Offered(path.stem, None, f"{path.name}: {error.strerror}")
        stamp = (state.st_mtime_ns, state.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = self._read[path] = (stamp, _offered(path))
        return known[1]


def _offered(path: Path) -> Offered:
    if not re.fullmatch(NAME, path.stem):
        return Offered(path.stem, None, f"{path.name}: a workflow is called by letters, digits, dots, _ and -")
    try:
        workflow = workflow_file(path)[0]
        begun_at(workflow)
    except InputError as error:
        return Offered(path.stem, None, str(error))
    return Offered(path.stem, workflow)


class WorkflowRun:
    """A run and its results; `fault` says why it could not go on where that is no item's result."""

    def __init__(self, number: int, name: str, results: BatchResults) -> None:
        self.number = number
        self.name = name
        self.results = results
        self.fault = ""
        self.is_to_stop = False
        self.thread: threading.Thread | None = None

    @property
    def state(self) -> str:
        """What becomes of it: ``running``, ``stopping``, ``done``, ``failed``, or ``stopped`` before its end."""
        if self.thread is not None and self.thread.is_alive():
            return "stopping" if self.is_to_stop else "running"
        done, total = self.results.counts()
        if done == total:
            return "done"
        has_failed = any(record["state"] == "failed" for record in list(self.results.states.values()))
        return "failed" if self.fault or has_failed else "stopped"

    def document(self) -> dict[str, Any]:
        """Return what the API tells of it."""
        done, total = self.results.counts()
        begun = self.results.begun
        return {
            "id": str(self.number),
            "workflow": self.name,
            "about": begun.get("about") or "",
            "at": begun.get("at"),
            "by": begun.get("by"),
            "begun_s": begun.get("begun_s"),
            "state": self.state,
            "done": done,
            "items": total,
            "fault": self.fault or None,
            "path": str(self.results.path),
        }

    def told(self) -> Iterator[dict[str, Any]]:
        """Yield what became of each item, in the order in which they are done."""
        states = dict(self.results.states)
        for step, items in self.results.items.items():
            for number, item in enumerate(items):
                record: Mapping[str, Any] = states.get((step, number), {})
                yield {
                    "step": step,
                    "item": place_of(item),
                    "state": record.get("state", "waiting"),
                    "text": record.get("text", ""),
                }


def place_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return by what a page can name an item."""
    return {name: item[name] for name in ("dpid", "port_no", "group", "mac", "name") if name in item}


class WorkflowRuns:
    """The runs of workflows that were begun by the API; results are in the folder `path`.

    Methods are called from any thread but the event loop's where they read or write files; InputError and
    OperationFailed say what is refused and what cannot be done.
    """

    def __init__(self, folder: WorkflowFolder, path: Path, socket: Path) -> None:
        self.folder = folder
        self._path = path
        self._socket = socket
        self._lock = threading.Lock()
        self._runs: dict[int, WorkflowRun] | None = None

    def plan(self, name: str, key: str | None, by: str = "") -> WorkflowPlan:
        """Return what a workflow would do now, begun at the document of a key."""
        return planned(self._file(name), self._source(by), key)

    def begin(self, name: str, key: str | None, by: str, digest: str) -> WorkflowRun:
        """Begin a workflow, the one whose file has this digest where there is one."""
        plan = self.plan(name, key, by)
        if digest and digest_of(plan.data) != digest:
            raise InputError(f"{name}: the file has changed since it was looked at; look again")
        begun = {"by": by, "begun_s": time.time(), "about": plan.workflow.about, "at": key}
        with self._lock:
            runs = self._known()
            self._make_room(runs)
            number = max(runs, default=0) + 1
            path = self._path / f"{number}-{name}.results.jsonl"
            try:
                self._path.mkdir(exist_ok=True)
            except OSError as error:
                raise OperationFailed(f"{self._path}: {error.strerror or error}") from None
            results = BatchResults.new(path, self._file(name), plan.data, plan.items, plan.at, begun)
            run = runs[number] = WorkflowRun(number, name, results)
            self._go_on(run, plan.workflow, by)
        return run

    def resume(self, number: int, by: str) -> WorkflowRun:
        """Go on with a run that failed or was stopped; KeyError where there is none."""
        with self._lock:
            run = self._known()[number]
            if run.state in ("running", "stopping"):
                raise InputError(f"run {number} goes on already")
            self._check_room()
            run.results = BatchResults.read(run.results.path)
            run.fault, run.is_to_stop = "", False
            self._go_on(run, resumable(run.results, self._source(by)), by)
        return run

    def stop(self, number: int) -> WorkflowRun:
        """Have a run end after the item that is being done; KeyError where there is none."""
        run = self.run(number)
        run.is_to_stop = True
        return run

    def run(self, number: int) -> WorkflowRun:
        """Return a run; KeyError where there is none."""
        with self._lock:
            return self._known()[number]

    def documents(self) -> list[dict[str, Any]]:
        """Return what is told of the runs, the newest first."""
        with self._lock:
            return [run.document() for _, run in sorted(self._known().items(), reverse=True)]

    def _file(self, name: str) -> Path:
        path = self.folder.file(name)
        if path is None:
            raise InputError(f"there is no workflow {name}")
        return path

    def _source(self, by: str) -> SocketSource:
        return SocketSource(self._socket, by or None)

    def _known(self) -> dict[int, WorkflowRun]:
        """Return the runs by number: at first those that an earlier server has left."""
        if self._runs is None:
            self._runs = {}
            found = [(match, path) for path in self._path.glob("*.jsonl") if (match := _RESULTS.fullmatch(path.name))]
            for match, path in sorted(found, key=lambda each: int(each[0][1]))[-KEPT:]:
                with suppress(InputError):
                    self._runs[int(match[1])] = WorkflowRun(int(match[1]), match[2], BatchResults.read(path))
        return self._runs

    def _check_room(self) -> None:
        under_way = sum(run.state in ("running", "stopping") for run in self._known().values())
        if under_way >= AT_ONCE:
            raise InputError(f"{under_way} workflows run already, and no more do at a time")

    def _make_room(self, runs: dict[int, WorkflowRun]) -> None:
        self._check_room()
        ended = [number for number, run in sorted(runs.items()) if run.state not in ("running", "stopping")]
        for number in ended[: max(0, len(runs) - KEPT + 1)]:
            with suppress(OSError):
                runs.pop(number).results.path.unlink()

    def _go_on(self, run: WorkflowRun, workflow: Workflow, by: str) -> None:
        try:
            held = os.open(run.results.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise OperationFailed(f"{run.results.path}: {error.strerror or error}") from None
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            raise InputError(f"run {run.number} goes on in another server") from None
        run.thread = threading.Thread(
            target=self._work, args=(run, workflow, by, held), name=f"workflow-{run.number}", daemon=True
        )
        run.thread.start()

    def _work(self, run: WorkflowRun, workflow: Workflow, by: str, held: int) -> None:
        try:
            for record in done_in_turn(workflow, run.results, self._source(by), lambda: not run.is_to_stop):
                logger.info("Run %d of workflow %s: %s is %s.", run.number, run.name, record["step"], record["state"])
        except OperationFailed as error:
            run.fault = str(error)
        except Exception as error:  # it is told where the run is looked at, and the server goes on
            logger.exception("Run %d of workflow %s failed.", run.number, run.name)
            run.fault = str(error)
        finally:
            os.close(held)
