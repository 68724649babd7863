"""What every command of `vsrt` has alike: --json, examples and exit status in its help."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator

from apps.cli.examples import EXAMPLES

EXAMPLES_TITLE = "Examples:"
EXIT_STATUS = "Exit status: 0 done, 1 the operation failed, 2 bad input."


class HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs; lines that are indented stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = (
            paragraph if paragraph.startswith(" ") else textwrap.fill(" ".join(paragraph.split()), width)
            for paragraph in text.split("\n\n")
        )
        return textwrap.indent("\n\n".join(paragraphs), indent)


def finish(parser: argparse.ArgumentParser) -> None:
    """Give a parser and all below it the formatter, the examples and the exit status; commands also --json."""
    for command in commands_of(parser):
        for choices in choices_of(command):
            for choice in choices._choices_actions:
                below = choices.choices[choice.dest]
                below.description = below.description or _sentence(choice.help or "")
        command.formatter_class = HelpFormatter
        examples = EXAMPLES.get(command.prog, ())
        shown = "\n".join(f"  {line:<{_width(examples)}}  {what}".rstrip() for line, what in examples)
        parts = [command.epilog, f"{EXAMPLES_TITLE}\n\n{shown}" if shown else None, EXIT_STATUS]
        command.epilog = "\n\n".join(part for part in parts if part)
        if command is not parser and "--json" not in command._option_string_actions:
            command.add_argument(
                "--json",
                action="store_true",
                default=argparse.SUPPRESS,
                help="print one JSON document and nothing else",
            )


def _width(examples: tuple[tuple[str, str], ...]) -> int:
    return min(66, max(len(line) for line, _ in examples))


def notes_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the paragraphs of a finished parser's epilog that are of its own: neither examples nor exit status."""
    notes = (parser.epilog or "").partition(EXIT_STATUS)[0].partition(EXAMPLES_TITLE)[0]
    return [paragraph for paragraph in notes.split("\n\n") if paragraph.strip()]


def commands_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Return a parser and all parsers below it, each before those below it."""
    yield parser
    for choices in choices_of(parser):
        for below in choices.choices.values():
            yield from commands_of(below)


def choices_of(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[argparse.ArgumentParser]]:
    """Return the choices of commands right below a parser."""
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."
