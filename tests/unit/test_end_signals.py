"""Who waits for a signal goes on as soon as it has come."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from apps.end_signals import EndSignals

LONG_S = 30.0


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


def test_a_wait_without_a_signal_is_as_long_as_it_is_said_to_be():
    began_s = time.monotonic()
    with EndSignals() as signals:
        signals.wait(0.05)
        assert not signals.asked
    assert time.monotonic() - began_s >= 0.05
