"""`vsrt watch`: lines and screens as things change, over the socket and over the API."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from fed_controller import FedController, event, group, multicast_documents
from served_dashboard import served

ROOT = Path(__file__).parents[3]
WAIT_S = 20.0


class Watching:
    """A `vsrt watch` that runs, and what it has printed."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self.process = process
        self.text = ""
        self._output = output

    def until(self, *words: str) -> str:
        """Read until all the words were printed, and return all up to there; what is read is forgotten."""
        deadline = time.monotonic() + WAIT_S
        while not all(word in self.text for word in words):
            ready, _, _ = select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._output, 65536) if ready else b""
            assert piece, f"{words} not in {self.text!r}"
            self.text += piece.decode()
        found, self.text = self.text, ""
        return found

    def document(self) -> Any:
        """Return the next line as JSON."""
        if "\n" not in self.text:
            self.text = self.until("\n")
        line, _, self.text = self.text.partition("\n")
        return json.loads(line)


@contextmanager
def watching(*words: str, terminal: bool = False) -> Iterator[Watching]:
    command = [sys.executable, "-m", "apps.cli.main", "watch", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": "", "COLUMNS": "100", "LINES": "12"}
    if terminal:
        output, theirs = pty.openpty()
    else:
        output, theirs = os.pipe()
    process = subprocess.Popen(command, cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    try:
        yield Watching(process, output)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(output)


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[FedController]:
    controller = FedController(tmp_path / "vsrt.sock", multicast_documents())
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture(params=["socket", "url"])
def source(request: pytest.FixtureRequest, controller: FedController) -> Iterator[list[str]]:
    if request.param == "socket":
        yield ["--socket", str(controller.path)]
        return
    with served(controller.path) as address:
        yield ["--url", address]


def test_events_come_as_lines_of_json_as_they_happen(controller: FedController, source: list[str]):
    with watching("events", "--json", *source) as watched:
        assert [watched.document()["text"] for _ in range(2)] == ["older", "newer\x1b[31m <b>bold</b>"]
        controller.put("events", "multicast-11", event(300, "the newest"))
        assert watched.document()["id"] == "multicast-11"
        controller.put("events", "multicast-9", None)
        controller.put("events", "multicast-12", event(400, "one more"))
        assert watched.document()["id"] == "multicast-12"


def test_events_begin_with_the_newest_and_then_miss_none(controller: FedController):
    with watching("events", "--json", "--limit", "1", "--socket", str(controller.path)) as watched:
        assert watched.document()["id"] == "multicast-10"
        for number in range(11, 31):
            controller.put("events", f"multicast-{number}", event(300 + number, "one of many"))
        assert [watched.document()["id"] for _ in range(20)] == [f"multicast-{number}" for number in range(11, 31)]


def test_a_pipe_gets_a_line_for_each_change(controller: FedController, source: list[str]):
    with watching("groups", "--search", "239.", *source) as watched:
        assert watched.until("239.1.1.1 ", "239.1.1.2 ").splitlines()[0].startswith("GROUP")
        controller.put("groups", "ff0e::2", group("ff0e::2"))
        controller.put("groups", "239.1.1.2", group("239.1.1.2", rate_bps=5_000_000))
        lines = watched.until("5 Mbit/s").splitlines()
        assert len(lines) == 1
        controller.put("groups", "239.1.1.2", None)
        assert watched.until("\n") == "gone: 239.1.1.2\n"


def test_a_document_that_is_gone_is_told_as_such(controller: FedController):
    with watching("hosts", "--json", "--socket", str(controller.path)) as watched:
        assert watched.document()["dpid"] == 3
        controller.put("hosts", "00:00:00:00:00:02", None)
        assert watched.document() == {"id": "00:00:00:00:00:02", "removed": True}


def test_a_terminal_is_drawn_anew_within_its_size(controller: FedController):
    for number in range(30):
        controller.put("groups", f"239.2.0.{number}", group(f"239.2.0.{number}"))
    with watching("groups", "--socket", str(controller.path), terminal=True) as watched:
        screen = watched.until("239.1.1.1", "more lines)")
        assert "\x1b[H" in screen
        assert len(screen.splitlines()) < 12
        controller.put("groups", "239.0.0.9", group("239.0.0.9", rate_bps=7_000_000))
        assert "\x1b[H" in watched.until("239.0.0.9", "7 Mbit/s")


def test_the_status_is_what_is_watched_by_default(controller: FedController):
    with watching("--socket", str(controller.path)) as watched:
        watched.until("counters.joins  7")
        controller.put("status", "status", {"counters": {"joins": 8}})
        watched.until("counters.joins  8")


def test_a_controller_that_comes_back_is_followed_again(controller: FedController):
    with watching("hosts", "--json", "--socket", str(controller.path)) as watched:
        watched.document()
        controller.stop()
        os.set_blocking(watched.process.stderr.fileno(), True)  # type: ignore[union-attr]
        assert b"trying again" in watched.process.stderr.readline()  # type: ignore[union-attr]
        controller.documents["hosts"]["00:00:00:00:00:03"] = {"mac": "00:00:00:00:00:03", "dpid": 4, "port_no": 1}
        controller.sections["hosts"].log.forget()
        controller.start()
        assert watched.document()["dpid"] == 4


def test_a_controller_that_never_was_there_is_an_error(tmp_path: Path):
    command = [sys.executable, "-m", "apps.cli.main", "watch", "--socket", str(tmp_path / "none.sock")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "none.sock: no controller answers" in done.stderr
