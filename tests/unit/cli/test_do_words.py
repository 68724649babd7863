"""Words of `vsrt do` that are read one after the other have nothing to do with each other."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from apps.cli import do_command, do_words
from apps.cli.common import InputError
from apps.cli.do_words import do_arguments

ASKED = argparse.Namespace(socket="the.sock", url=None, token_file=None, ca=None)


@pytest.fixture(autouse=True)
def made_anew() -> Iterator[None]:
    do_words._parser.cache_clear()
    yield
    do_words._parser.cache_clear()


def test_nothing_is_left_of_the_words_before() -> None:
    with_options = do_arguments(["address", "take", "video", "--name", "cam7"], ASKED)
    assert (with_options.name, with_options.socket, with_options.json) == ("cam7", "the.sock", True)
    with pytest.raises(InputError):
        do_arguments(["address", "take", "video", "--nonsense"], ASKED)
    with pytest.raises(InputError, match="--socket: the command itself names"):
        do_arguments(["reload", "--socket", "other"], ASKED)
    plain = do_arguments(["reload"], argparse.Namespace(socket="other.sock"))
    assert not hasattr(plain, "name")
    assert (plain.socket, plain.url) == ("other.sock", None)
    assert with_options.socket == "the.sock"


def test_what_reads_words_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[argparse.ArgumentParser] = []
    whole = do_command.add_arguments

    def counted(parser: argparse.ArgumentParser) -> None:
        made.append(parser)
        whole(parser)

    monkeypatch.setattr(do_command, "add_arguments", counted)
    for number in range(100):
        do_arguments(["address", "take", "video", "--name", f"cam{number}"], ASKED)
    assert len(made) == 1
