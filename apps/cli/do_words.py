"""Words of `vsrt do` that stand elsewhere than on its command line: in workflows, in files that are written."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NoReturn

from apps.cli import do_command
from apps.cli.common import InputError

SOURCE = ("socket", "url", "token_file", "ca")
"""Arguments that say where the controller is reached."""


class Words(argparse.ArgumentParser):
    """Reads words as a command's; InputError where they are none."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with them."""
        raise InputError(message)


def do_arguments(words: Sequence[str], args: argparse.Namespace) -> argparse.Namespace:
    """Return what words of `vsrt do` say, asked of the controller that `args` name; InputError where that is nothing.

    None of them may say where the controller is.
    """
    found = _parser().parse_args(list(words))
    for name in SOURCE:
        if getattr(found, name, None) is not None:
            raise InputError(f"--{name.replace('_', '-')}: the command itself names the one controller that is meant")
        setattr(found, name, getattr(args, name, None))
    found.json = True
    return found


@cache
def _parser() -> Words:
    """Return what reads them, made once: that takes some hundred times as long as to read the words of an item."""
    parser = Words(add_help=False)
    do_command.add_arguments(parser)
    for command in _below(parser):
        command.error = parser.error  # type: ignore[method-assign]
    return parser


def _below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield below
                yield from _below(below)
