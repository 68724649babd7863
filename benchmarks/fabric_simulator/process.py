"""A controller process seen from outside: its processor time, its memory, and what it says of itself."""

from __future__ import annotations

import os
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from apps.status_client import query

ANSWER_TIMEOUT_S = 30.0
POLL_S = 0.0002
FRESH_S = 0.2
"""Figures as old as this were made for an earlier question."""

_CPUCLOCK_SCHED = 2
"""Of the clocks of a process the one of the processor time that the scheduler has given it."""

_BACKLOG = re.compile(r'vsrt_app_backlog_events\{app="(\w+)"\} (\S+)')
_AGE = re.compile(r'vsrt_app_metrics_age_seconds\{app="(\w+)"\} (\S+)')
_BUCKET = re.compile(r'vsrt_app_turn_seconds_bucket\{app="(\w+)",le="([^"]+)"\} (\d+)')


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has taken, with all its threads; OSError where there is none.

    It is of the process's own clock, by the number that Linux has for it (`clock_getcpuclockid`). What a thread that
    runs now has taken since the last tick, 4 ms at most, is not in it yet.
    """
    return time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)


def cpu_at_rest_s(pid: int) -> float:
    """Return `cpu_s` as soon as no thread of the process runs, to the nanosecond: for what takes milliseconds."""
    while any(map(_runs, Path(f"/proc/{pid}/task").iterdir())):
        time.sleep(POLL_S)
    return cpu_s(pid)


def _runs(thread: Path) -> bool:
    try:
        return (thread / "stat").read_text().rpartition(") ")[2].startswith("R")
    except OSError:  # it has ended
        return False


def resident_bytes(pid: int) -> int:
    """Return how much memory of a process is in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Page(NamedTuple):
    """The controller's Prometheus page, as far as it tells of loops, by app.

    `turns` counts turns by the upper bound of their bucket in seconds, `backlog` the events that wait, `age_s` tells
    how long ago the loop made these figures.
    """

    turns: dict[str, Counter[float]]
    backlog: dict[str, float]
    age_s: dict[str, float]

    @property
    def idle(self) -> bool:
        """Whether every loop had time to answer and nothing else to do."""
        return not any(self.backlog.values()) and max(self.age_s.values(), default=FRESH_S) < FRESH_S


def read_page(url: str) -> Page:
    """Read the page; OSError where nobody answers."""
    with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT_S) as answer:
        text = answer.read().decode()
    turns: dict[str, Counter[float]] = {}
    before: dict[str, int] = {}
    for app, bound, cumulated in _BUCKET.findall(text):
        turns.setdefault(app, Counter())[float(bound)] = int(cumulated) - before.get(app, 0)
        before[app] = int(cumulated)
    backlog, age_s = ({app: float(value) for app, value in pattern.findall(text)} for pattern in (_BACKLOG, _AGE))
    return Page(turns, backlog, age_s)


class Questions:
    """Questions to a controller that are asked on a thread of their own, so that the fabric goes on meanwhile."""

    def __init__(self, socket: Path, metrics_port: int) -> None:
        self._socket = socket
        self._url = f"http://127.0.0.1:{metrics_port}/metrics"
        self._pool = ThreadPoolExecutor(1)

    def close(self) -> None:
        """Ask no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def ask(self, request: Mapping[str, Any]) -> Future[Any]:
        """Send a request to the controller's socket."""
        return self._pool.submit(query, self._socket, request, ANSWER_TIMEOUT_S)

    def page(self) -> Future[Page]:
        """Ask for the Prometheus page."""
        return self._pool.submit(read_page, self._url)


class Usage:
    """Processor time of a controller and of this process since a moment."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._began_s = time.monotonic()
        self._cpu_s = cpu_s(pid)
        self._own_s = time.process_time()

    def past_s(self) -> float:
        """Return the time since then."""
        return time.monotonic() - self._began_s

    def controller_s(self) -> float:
        """Return the controller's processor time since then."""
        return cpu_s(self.pid) - self._cpu_s

    def simulator_s(self) -> float:
        """Return the processor time of this process since then."""
        return time.process_time() - self._own_s
