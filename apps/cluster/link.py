"""The controller's end of the pipe to the process beside it: started, watched, told that the controller is there.

Everything here is on threads of the system's, under either framework, so that a loop that is busy keeps nobody from
beating; `tell` is called on one of them.
"""

from __future__ import annotations

import itertools
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from apps.cluster.messages import (
    AskStore,
    Beat,
    EndWatch,
    Pulse,
    Seen,
    StoreAnswered,
    StoreTold,
    WatchStore,
    receive,
    send,
)
from apps.cluster.sidecar_settings import SidecarSettings
from apps.system import system_queue, system_socket, system_threading
from controller.cluster.engine import Reply, Request, Silent, WatchReport

BEAT_S = 0.1
"""How often the process beside hears that the controller is there."""

START_S = 15.0
"""How long a process that was started may take to its first word: a busy machine starts it in seconds."""

ANSWER_S = 4.0
"""After this time a request counts as unanswered, whatever became of the process beside."""

AGAIN_S = (0.0, 0.5)
"""How long a process that has ended is waited for before another one is started: once, then each time."""

ROOT = Path(__file__).parents[2]

_GONE = Silent("The process beside the controller, which asks the store, has ended.")


class LinkLost(NamedTuple):
    """The process beside the controller has ended, or says nothing; another one is started."""

    why: str


class SidecarLink:
    """The process beside a controller.

    Parameters
    ----------
    settings
        What it is told.
    listening
        Where other members hear it; it stays open though that process ends. None for nowhere.
    tell
        Takes what it says: effects of the member, `Seen` and `LinkLost`.
    beat
        Returns how the controller is.
    """

    def __init__(
        self,
        settings: SidecarSettings,
        listening: socket.socket | None,
        tell: Callable[[Any], None],
        beat: Callable[[], Beat],
        logger: logging.Logger,
    ) -> None:
        self._settings = settings
        self._listening = listening
        self._tell = tell
        self._controller_is = beat
        self._logger = logger
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Any] = {}
        self._watches: dict[int, StoreWatch] = {}
        self._lock = system_threading.Lock()
        self._outbox = system_queue.SimpleQueue()
        self._pipe: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._heard_s = 0.0
        self._has_spoken = False
        self._lease = 0
        self._has_ended = system_threading.Event()

    @property
    def pid(self) -> int | None:
        """The process beside, None while there is none."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def start(self) -> None:
        """Start the process, and beat."""
        self._launch()
        system_threading.Thread(target=self._run, name="cluster", daemon=True).start()
        system_threading.Thread(target=self._beat, name="beat", daemon=True).start()

    def say(self, message: Any) -> None:
        """Tell the process something, without waiting for it; what it cannot be told any more is lost."""
        self._outbox.put(message)

    def ask(self, request: Request) -> Reply:
        """Have the store answer; on a thread that may wait, of the system's under eventlet (`run_aside`).

        Nobody waits where the process has ended, or is about to.
        """
        number, answer = next(self._numbers), system_queue.SimpleQueue()
        self._waiting[number] = answer
        self.say(AskStore(number, request))
        if self._has_ended.is_set():
            self._answer_none()
        try:
            reply: Reply = answer.get(timeout=ANSWER_S)
            return reply
        except system_queue.Empty:
            return Silent("The store does not answer.")
        finally:
            self._waiting.pop(number, None)

    def watch(self, prefix: str, after_revision: int) -> StoreWatch:
        """Have changes told of keys that begin with `prefix`."""
        number = next(self._numbers)
        watch = self._watches[number] = StoreWatch(self, number)
        self.say(WatchStore(number, prefix, after_revision))
        return watch

    def end_watch(self, number: int) -> None:
        """Have nothing more told by a watch."""
        if self._watches.pop(number, None) is not None:
            self.say(EndWatch(number))

    def close(self, wait_s: float = 2.0) -> None:
        """End the process, which gives its lease back; nothing is answered any more."""
        with self._lock:
            self._has_ended.set()
            pipe, process = self._pipe, self._process
        self._answer_none()
        if pipe is not None:
            with suppress(OSError):
                pipe.shutdown(socket.SHUT_RDWR)
        if process is not None:
            try:
                process.wait(wait_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _launch(self) -> None:
        """Start the process, unless this end is closed."""
        with self._lock:
            if self._has_ended.is_set():
                return
            pipe, other = system_socket.socketpair()
            listening_fd = -1 if self._listening is None else self._listening.fileno()
            with other:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "apps.cluster", str(other.fileno()), str(listening_fd)],
                    stdin=subprocess.DEVNULL,
                    cwd=ROOT,
                    start_new_session=True,
                    pass_fds=[fd for fd in (other.fileno(), listening_fd) if fd >= 0],
                )
            member = self._settings.member._replace(lease=self._lease)
            self._outbox = outbox = system_queue.SimpleQueue()
            outbox.put(self._settings._replace(member=member))
            self._heard_s, self._has_spoken = time.monotonic(), False
            self._pipe = pipe

    # On threads of their own

    def _beat(self) -> None:
        while not self._has_ended.wait(BEAT_S):
            self.say(self._controller_is())
            silent_s = time.monotonic() - self._heard_s
            process = self._process
            patience_s = self._settings.member.lease_s / 2 if self._has_spoken else START_S
            if silent_s > patience_s and process is not None and process.poll() is None:
                self._logger.error(
                    "The process beside the controller said nothing for %.1f s: it is ended.", silent_s
                )
                process.kill()

    def _run(self) -> None:
        again_s = AGAIN_S[0]
        while (pipe := self._pipe) is not None:
            self._hear(pipe)
            if self._has_ended.is_set():
                return
            why = self._forget()
            self._logger.error("The process beside the controller has ended (%s): it is started anew.", why)
            self._tell(LinkLost(why))
            if self._has_ended.wait(again_s):
                return
            again_s = AGAIN_S[1]
            self._launch()

    def _hear(self, pipe: socket.socket) -> None:
        """Take what the process says, and have it told what is to be said, until it has ended."""
        outbox = self._outbox
        saying = system_threading.Thread(target=self._say_all, args=(pipe, outbox), name="say", daemon=True)
        saying.start()
        with suppress(OSError, EOFError):
            while True:
                self._take(receive(pipe))
        with suppress(OSError):
            pipe.shutdown(socket.SHUT_RDWR)
        outbox.put(None)
        saying.join()
        pipe.close()

    def _say_all(self, pipe: socket.socket, outbox: Any) -> None:
        with suppress(OSError):
            while (message := outbox.get()) is not None:
                send(pipe, message)

    def _forget(self) -> str:
        """Take it that the process has ended; return how."""
        process, self._process, self._pipe = self._process, None, None
        assert process is not None
        process.kill()
        status = process.wait()
        self._answer_none()
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            watch.put(_GONE)
        return f"by signal {-status}" if status < 0 else f"with status {status}"

    def _answer_none(self) -> None:
        for answer in tuple(self._waiting.values()):
            answer.put(_GONE)

    def _take(self, message: Any) -> None:
        self._heard_s, self._has_spoken = time.monotonic(), True
        kind = type(message)
        if kind is StoreAnswered:
            answer = self._waiting.get(message.number)
            if answer is not None:
                answer.put(message.reply)
        elif kind is StoreTold:
            watch = self._watches.get(message.watch)
            if watch is not None:
                watch.put(message.report)
        elif kind is not Pulse:
            if kind is Seen and message.lease:
                self._lease = message.lease
            self._tell(message)


class StoreWatch:
    """The changes that a watch told, for one thread to take."""

    def __init__(self, link: SidecarLink, number: int) -> None:
        self._link = link
        self._number = number
        self._reports = system_queue.SimpleQueue()

    def put(self, report: WatchReport) -> None:
        """Have a report taken."""
        self._reports.put(report)

    def take(self, wait_s: float) -> WatchReport | None:
        """Return what there is to tell, waiting for it at most `wait_s` seconds."""
        with suppress(system_queue.Empty):
            report: WatchReport = self._reports.get(timeout=wait_s) if wait_s > 0 else self._reports.get_nowait()
            return report
        return None

    def close(self) -> None:
        """Have nothing more told."""
        self._link.end_watch(self._number)
