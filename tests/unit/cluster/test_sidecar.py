"""The process beside a controller, with a real store: elected, killed, and gone with its controller."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.cluster.link import ANSWER_S, LinkLost, SidecarLink
from apps.cluster.messages import AskStore, Beat, Seen
from apps.cluster.sidecar_settings import SidecarSettings
from controller.cluster.effects import Leading
from controller.cluster.engine import Committed, KeyChanges, KeyPage, PutKey, ReadPage, Silent, Transaction
from controller.cluster.events import HandOverWanted
from controller.cluster.member_settings import MemberSettings
from etcd_server import EtcdServer
from patience import wait_until

WAIT_S = 20.0


class Controller:
    """A controller's end: what it was told."""

    def __init__(self, endpoint: str, name: str, silence_s: float = 0.5) -> None:
        self.told: list[Any] = []
        self.is_fit = True
        self.listening = socket.create_server(("127.0.0.1", 0))
        peer = f"127.0.0.1:{self.listening.getsockname()[1]}"
        self.incarnation = f"{name}-1"
        member = MemberSettings("tested", name, self.incarnation, peer, 3, silence_s)
        settings = SidecarSettings(member, (endpoint,))
        self.link = SidecarLink(settings, self.listening, self.told.append, self.beat, logging.getLogger("test"))
        self.link.start()

    def beat(self) -> Beat:
        return Beat(0.0, is_fit=self.is_fit)

    def leading(self) -> Leading | None:
        """The last word about the lead."""
        return next((told for told in reversed(self.told) if type(told) is Leading), None)

    def epoch(self) -> int | None:
        leading = self.leading()
        return None if leading is None else leading.epoch

    def seen(self) -> Seen:
        return next((told for told in reversed(self.told) if type(told) is Seen), Seen())

    def wait(self, reached: Callable[[], Any]) -> Any:
        return wait_until(reached, os.getpid(), WAIT_S)

    def close(self) -> None:
        self.link.close()
        self.listening.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path / "etcd").start()
    yield server
    server.kill()


@pytest.fixture
def controller(store: EtcdServer) -> Iterator[Callable[[str], Controller]]:
    made: list[Controller] = []

    def make(name: str) -> Controller:
        made.append(Controller(store.endpoint, name))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_the_lead_goes_over_when_a_controller_hands_over_or_ends(controller: Callable[[str], Controller]):
    one = controller("one")
    first = one.wait(one.epoch)
    two = controller("two")
    two.wait(lambda: two.seen().members == ("one", "two"))
    assert two.epoch() is None
    one.wait(lambda: one.seen().members == ("one", "two"))
    one.link.say(HandOverWanted("two"))
    second = two.wait(two.epoch)
    assert second == first + 1
    one.wait(lambda: one.epoch() is None)
    two.close()
    assert one.wait(one.epoch) == second + 1


def test_a_process_that_takes_long_to_start_is_waited_for(controller: Callable[[str], Controller]):
    """A busy machine may take longer to start it than one that has spoken may say nothing."""
    one = controller("one")
    pid, begun_s = one.link.pid, time.monotonic()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert not one.told
    one.wait(lambda: one.told or time.monotonic() > begun_s + 2.0)
    assert (one.told, one.link.pid) == ([], pid)
    os.kill(pid, signal.SIGCONT)
    one.wait(one.epoch)


def test_another_process_goes_on_under_the_lease(controller: Callable[[str], Controller]):
    one = controller("one")
    epoch = one.wait(one.epoch)
    one.wait(lambda: one.seen().lease)
    lease, pid = one.seen().lease, one.link.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    one.wait(lambda: any(type(told) is LinkLost for told in one.told))
    at = next(place for place, told in enumerate(one.told) if type(told) is LinkLost)
    one.wait(lambda: any(type(told) is Leading for told in one.told[at:]))
    assert {told.epoch for told in one.told[at:] if type(told) is Leading} == {epoch}
    one.wait(lambda: one.seen().leader is not None)
    assert (one.seen().lease, one.link.pid not in (None, pid)) == (lease, True)


def test_one_that_is_not_fit_takes_no_part_whichever_process_is_beside_it(controller: Callable[[str], Controller]):
    one = controller("one")
    one.wait(one.epoch)
    one.is_fit = False
    one.wait(lambda: one.epoch() is None)
    pid = one.link.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    one.wait(lambda: any(type(told) is LinkLost for told in one.told))
    one.wait(lambda: type(one.link.ask(ReadPage("/"))) is KeyPage)
    two = controller("two")
    two.wait(two.epoch)
    two.wait(lambda: two.seen().members == ("two",))


def test_a_process_that_stands_still_is_ended(controller: Callable[[str], Controller]):
    one = controller("one")
    one.wait(one.epoch)
    pid = one.link.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    one.wait(lambda: any(type(told) is LinkLost for told in one.told))
    one.wait(lambda: one.link.pid not in (None, pid))


def test_a_process_that_stands_still_holds_up_nobody_who_tells_it_much(controller: Callable[[str], Controller]):
    one = controller("one")
    one.wait(one.epoch)
    pid = one.link.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    put = PutKey("/vsrt/1/tested/journal/a", "x" * 1_000_000)
    saying = threading.Thread(target=one.link.say, args=(AskStore(1 << 40, Transaction((), (put,), True)),))
    saying.start()
    saying.join(WAIT_S)
    assert not saying.is_alive()
    one.wait(lambda: one.link.pid not in (None, pid))
    one.wait(lambda: type(one.link.ask(ReadPage("/vsrt/1/"))) is KeyPage)


def test_no_process_is_started_beside_a_controller_that_has_ended(controller: Callable[[str], Controller]):
    one = controller("one")
    one.wait(one.epoch)
    one.close()
    one.link._launch()
    assert one.link.pid is None


def test_a_controller_that_was_stopped_gives_way_before_its_silence_says_so(
    controller: Callable[[str], Controller], tmp_path: Path, store: EtcdServer
):
    program = tmp_path / "run_one.py"
    program.write_text(
        "import sys\n"
        "from test_sidecar import Controller\n"
        f"one = Controller({store.endpoint!r}, 'one', silence_s=30.0)\n"
        "one.wait(one.epoch)\n"
        "print('leads', flush=True)\n"
        "sys.stdin.read()\n"
        "one.close()\n"
    )
    here = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, str(program)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**os.environ, "PYTHONPATH": here}) as process:
        assert process.stdout is not None and process.stdout.readline() == b"leads\n"
        two = controller("two")
        two.wait(lambda: two.seen().members == ("one", "two"))
        process.send_signal(signal.SIGSTOP)
        two.wait(two.epoch)
        process.send_signal(signal.SIGCONT)


def test_the_store_is_asked_and_watched_through_it(controller: Callable[[str], Controller], store: EtcdServer):
    one = controller("one")
    watch = one.link.watch("/vsrt/1/tested/journal/", 1)
    put = PutKey("/vsrt/1/tested/journal/a", "x")
    assert type(one.link.ask(Transaction((), (put,), True))) is Committed
    report = watch.take(WAIT_S)
    assert type(report) is KeyChanges
    assert [(change.key, change.value) for change in report.changes] == [put[:2]]
    page = one.link.ask(ReadPage("/vsrt/1/tested/journal/"))
    assert type(page) is KeyPage
    assert [held.value for held in page.held] == ["x"]
    watch.close()
    store.kill()
    assert type(one.link.ask(ReadPage("/vsrt/"))) is Silent


def test_who_waits_for_an_answer_hears_that_the_process_has_ended(
    controller: Callable[[str], Controller], store: EtcdServer
):
    one = controller("one")
    one.wait(one.epoch)
    store.stop()
    answers: list[Any] = []
    watch = one.link.watch("/vsrt/", 1)
    asking = threading.Thread(target=lambda: answers.append(one.link.ask(ReadPage("/vsrt/"))))
    asking.start()
    pid = one.link.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    asking.join(WAIT_S)
    assert [type(answer) for answer in answers] == [Silent]
    assert type(watch.take(WAIT_S)) is Silent
    store.resume()


def test_who_waits_for_an_answer_hears_that_the_controller_ends(
    controller: Callable[[str], Controller], store: EtcdServer
):
    one = controller("one")
    one.wait(one.epoch)
    store.stop()
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(one.link.ask(ReadPage("/vsrt/"))))
    asking.start()
    began_s = time.monotonic()
    one.link.close()
    asking.join(WAIT_S)
    answers.append(one.link.ask(ReadPage("/vsrt/")))
    assert time.monotonic() - began_s < ANSWER_S
    assert [type(answer) for answer in answers] == [Silent, Silent]
    store.resume()
