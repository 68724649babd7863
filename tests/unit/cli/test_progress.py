"""Progress bars keep to their line, however narrow the terminal is."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable, Iterator

import pytest

from apps.cli import progress
from apps.cli.progress import ProgressBar

LINES = 24


@pytest.fixture
def draw_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, list[int]], list[str]]]:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    ours, theirs = pty.openpty()
    stream = os.fdopen(theirs, "w")

    def draw(columns: int, counts: list[int]) -> list[str]:
        """Draw each count of 1,000, take the line away, and return what was written from line begin to line begin."""
        monkeypatch.setattr("sys.stderr", stream)
        bar = ProgressBar()
        for done in counts:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
            bar.draw("joins", done, 1000)
        bar.clear()
        written = b""
        while written.count(b"\r") < len(counts) + 2:
            written += os.read(ours, 65536)
        return written.decode().split("\r")

    yield draw
    stream.close()
    os.close(ours)


def test_there_is_room_for_the_whole_bar(draw_on: Callable[[int, list[int]], list[str]]) -> None:
    whole = "joins [" + 15 * "#" + 15 * "." + "] 500 of 1,000"
    assert draw_on(80, [500]) == ["", whole, len(whole) * " ", ""]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (30, "joins [####....] 500 of 1,000"),
        (26, "joins 500 of 1,000"),
        (10, "joins 500"),
        (1, "j"),
    ],
)
def test_it_is_shortened_to_what_there_is(
    draw_on: Callable[[int, list[int]], list[str]], columns: int, line: str
) -> None:
    drawn = draw_on(columns, [500, 500])
    assert drawn == ["", line, line, len(line) * " ", ""]
    assert len(line) < max(2, columns)


def test_a_terminal_that_does_not_say_how_wide_it_is(draw_on: Callable[[int, list[int]], list[str]]) -> None:
    assert draw_on(0, [1000])[1] == "joins [" + 30 * "#" + "] 1,000 of 1,000"


def test_a_shorter_line_covers_a_longer_one(draw_on: Callable[[int, list[int]], list[str]]) -> None:
    _, longer, shorter, *_ = draw_on(80, [1000, 1])
    assert len(longer) == len(shorter)
