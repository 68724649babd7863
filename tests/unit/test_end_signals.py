"""Who waits for a signal goes on as soon as it has come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from apps import end_signals
from apps.end_signals import END_SIGNALS, EndSignals, let_end, raised_once

LONG_S = 30.0
ASKED_FOR_GOOD = """
import os, signal, sys, time
from apps.end_signals import EndSignals, raised_once

class AsksAtTheVeryEnd:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

last = AsksAtTheVeryEnd()

def once():
    try:
        with raised_once(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
    except KeyboardInterrupt:
        pass

def waiting():
    with EndSignals() as signals:
        os.kill(os.getpid(), signal.SIGINT)
        signals.wait(30)

{"once": once, "waiting": waiting}[sys.argv[1]]()
os.kill(os.getpid(), signal.SIGTERM)
sys.exit(3)
"""

BECOMES_ANOTHER = """
import os, sys
from apps import system
from apps.end_signals import EndSignals

execv = os.execv

def asked_meanwhile(path, words):
    os.kill(os.getpid(), {number})
    execv(path, [path, "-c", "print('another')"])

os.execv = asked_meanwhile
with EndSignals():
    system.become_anew()
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in END_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wait_ends_with_the_signal_that_comes_before_it_or_meanwhile(number: signal.Signals):
    began_s = time.monotonic()
    with EndSignals() as signals:
        soon = threading.Timer(0.05, os.kill, [os.getpid(), number])
        soon.start()
        signals.wait(LONG_S)
        assert signals.asked
        signals.wait(LONG_S)
        soon.join()
    assert time.monotonic() - began_s < LONG_S


def test_who_was_asked_to_end_knows_it_from_then_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(end_signals, "_come", [])
    with EndSignals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.asked
        before = [signal.getsignal(number) for number in END_SIGNALS]
        assert not let_end()
        assert [signal.getsignal(number) for number in END_SIGNALS] == before


def test_a_thread_learns_whether_a_signal_has_come(monkeypatch: pytest.MonkeyPatch):
    told: list[bool] = []
    for come in ([], [signal.SIGTERM]):
        monkeypatch.setattr(end_signals, "_come", come)
        asking = threading.Thread(target=lambda: told.append(let_end()))
        asking.start()
        asking.join()
    assert told == [True, False]


@pytest.mark.parametrize("number", END_SIGNALS)
def test_a_signal_that_comes_just_before_a_process_becomes_another_one_ends_it(number: signal.Signals):
    program = BECOMES_ANOTHER.format(number=number)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=LONG_S)
    assert (done.returncode, done.stdout) == (-number, b"")


def test_a_wait_without_a_signal_is_as_long_as_it_is_said_to_be():
    began_s = time.monotonic()
    with EndSignals() as signals:
        signals.wait(0.05)
        assert not signals.asked
    assert time.monotonic() - began_s >= 0.05


def test_without_a_signal_all_is_as_before():
    before = [signal.getsignal(number) for number in END_SIGNALS]
    with EndSignals(), raised_once(KeyboardInterrupt):
        assert [signal.getsignal(number) for number in END_SIGNALS] != before
    assert [signal.getsignal(number) for number in END_SIGNALS] == before


def test_the_first_signal_raises_and_further_ones_disturb_nothing():
    closed = False
    with pytest.raises(KeyboardInterrupt), raised_once(KeyboardInterrupt):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(LONG_S)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            closed = True
    assert closed


def test_a_signal_that_the_process_was_started_to_ignore_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with EndSignals() as signals, raised_once(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        signals.wait(0.05)
        assert not signals.asked


@pytest.mark.parametrize("way", ["once", "waiting"])
def test_who_has_been_asked_ends_with_its_own_status_whatever_comes_while_the_interpreter_goes_down(way: str):
    command = [sys.executable, "-c", ASKED_FOR_GOOD, way]
    assert subprocess.run(command, check=False, timeout=LONG_S).returncode == 3
