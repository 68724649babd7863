"""Manual pages of `vsrt` and its commands, made from the parsers: ``python -m apps.cli.man_pages DIRECTORY``."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from apps.cli.examples import EXAMPLES
from apps.cli.help_text import HelpFormatter, choices_of, commands_of, notes_of
from apps.cli.main import build_parser
from apps.version import version

WIDTH = 76
USAGE = "usage: "
STATUSES = (("0", "What was asked for is done."), ("1", "The operation failed."), ("2", "Bad input."))
VARIABLES = (
    ("VSRT_SOCKET", "The controller's Unix socket, where no --socket is given."),
    (
        "VSRT_STATE_DIR",
        "The directory with the socket vsrt.sock, where there is no VSRT_SOCKET; without either, vsrt-state, "
        "/run/vsrt and /var/lib/vsrt are looked into.",
    ),
)


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file; a command's page has its subcommands."""
    parser = build_parser()
    commands = [below for choices in choices_of(parser) for below in choices.choices.values()]
    for command in commands_of(parser):
        command.formatter_class = partial(HelpFormatter, width=WIDTH)
    names = ["vsrt", *(_name(command) for command in commands)]
    found = {"vsrt.1": _page([parser], [name for name in names if name != "vsrt"])}
    for command in commands:
        found[f"{_name(command)}.1"] = _page(list(commands_of(command)), ["vsrt"])
    return found


def _page(parsers: list[argparse.ArgumentParser], others: list[str]) -> str:
    first = parsers[0]
    name = _name(first)
    description = first.description or ""
    lines = [
        f'.TH "{_escaped(name.upper())}" "1" "" "vsrt {_escaped(version())}" "vsrt manual"',
        ".ad l",
        ".nh",
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(description[:1].lower() + description[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        *_verbatim(_usage(first)),
        ".SH DESCRIPTION",
        _escaped(description),
        *_notes(first),
        ".SH OPTIONS",
        *_arguments(first),
    ]
    if len(parsers) > 1:
        lines.append(".SH COMMANDS")
    for parser in parsers[1:]:
        lines += [f'.SS "{_escaped(parser.prog)}"', _escaped(parser.description or ""), ".PP"]
        lines += [*_verbatim(_usage(parser)), *_notes(parser), *_arguments(parser)]
    lines += [".SH EXAMPLES"]
    for example, what in dict.fromkeys(example for parser in parsers for example in EXAMPLES.get(parser.prog, ())):
        lines += [".TP", f"\\fB{_escaped(example)}\\fR", _escaped(what) if what else "\\&"]
    if any("--socket" in parser._option_string_actions for parser in parsers):
        lines += [".SH ENVIRONMENT", *_tagged(VARIABLES)]
    lines += [".SH EXIT STATUS", *_tagged(STATUSES)]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {_escaped(other)} (1)" for other in others).replace(",\n", " ,\n")]
    return "\n".join(lines) + "\n"


def _name(parser: argparse.ArgumentParser) -> str:
    return parser.prog.replace(" ", "-")


def _usage(parser: argparse.ArgumentParser) -> str:
    return textwrap.dedent(" " * len(USAGE) + parser.format_usage().removeprefix(USAGE)).rstrip()


def _notes(parser: argparse.ArgumentParser) -> Iterator[str]:
    for note in notes_of(parser):
        yield ".PP"
        if note.startswith(" "):
            yield from _verbatim(note)
        else:
            yield _escaped(" ".join(note.split()))


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    formatter = parser._get_formatter()
    for action in parser._actions:
        yield ".TP"
        if isinstance(action, argparse._SubParsersAction):
            yield f"\\fI{_escaped(str(action.metavar))}\\fR"
            yield "one of:"
            yield from _tagged(((choice.dest, choice.help or "") for choice in action._choices_actions), ".RS", ".RE")
            continue
        value = _escaped(formatter._format_args(action, action.dest.upper()))
        if not action.option_strings:
            yield f"\\fI{value}\\fR"
        else:
            options = ", ".join(f"\\fB{_escaped(option)}\\fR" for option in action.option_strings)
            yield options if action.nargs == 0 else f"{options} \\fI{value}\\fR"
        yield _escaped(formatter._expand_help(action)) if action.help else "\\&"


def _tagged(entries: Iterator[tuple[str, str]] | tuple[tuple[str, str], ...], *around: str) -> Iterator[str]:
    yield from around[:1]
    for tag, what in entries:
        yield from (".TP", f"\\fB{_escaped(tag)}\\fR", _escaped(what) or "\\&")
    yield from around[1:]


def _verbatim(text: str) -> Iterator[str]:
    yield ".nf"
    yield from map(_escaped, text.splitlines())
    yield ".fi"


def _escaped(text: str) -> str:
    """Return text in which nothing is taken for a request; a line may end behind the commas of long lists."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    safe = re.sub(r",(?=\S)", r",\\:", safe)
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


def main() -> int:
    """Write the pages into a directory and print how many there are."""
    parser = argparse.ArgumentParser(prog="man_pages", description="Write the manual pages of vsrt.")
    parser.add_argument("directory", type=Path, metavar="DIRECTORY", help="where to; it is made if need be")
    directory = parser.parse_args().directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
        found = pages()
        for name, text in found.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{directory}: {len(found)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
