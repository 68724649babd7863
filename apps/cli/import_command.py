"""`vsrt import`: a policy file from the configuration of another program, with a report of each of its lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.cli.common import InputError, OperationFailed, emit_json, emit_table
from apps.cli.whole_files import write_new

if TYPE_CHECKING:
    from controller.config.faults import PolicyError
    from controller.migration.draft import PolicyDraft
    from controller.migration.places import Places
    from controller.migration.report import ImportReport, InputFile, LineReport

PROGRAMS = {
    "faucet": "Faucet's YAML: dps, interfaces, vlans, acls; files that it includes are read too",
    "frr": "FRR's configuration of a multicast router at the fabric: frr.conf, pimd.conf, or what vtysh prints",
    "bridge": "/etc/network/interfaces, or JSON of `ip -d -j link`, `bridge -j vlan show`, `bridge -j mdb show`",
    "ovs": "`ovs-vsctl --format=json list Bridge`, and Port, and Interface; `ovsdb-client dump`; or `ovs-vsctl show`",
}
MAX_BYTES = 16 << 20
_SHOWN_TEXT = 48


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare a command for each program whose configuration is read."""
    commands = parser.add_subparsers(dest="program", required=True, metavar="|".join(PROGRAMS))
    for name, what in PROGRAMS.items():
        command = commands.add_parser(name, help=what, description=f"Make a policy file of {what}.")
        command.epilog = (
            "Every line is taken (it means the same in the policy), changed (it has another effect, which is told), "
            "impossible (with why, and what to do instead), or idle (it asks for nothing that a policy could "
            "have).\n\nStatus 0: nothing is impossible; 1: something is, and the policy is written without it; 2: "
            "bad input, or bad words, and nothing is written."
        )
        command.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files to read, in order")
        command.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="FILE",
            help="the policy file, which must not be there (default: none)",
        )
        command.add_argument(
            "--all", action="store_true", help="show every line, not those alone that are to be looked at"
        )
        if name != "faucet":
            command.add_argument(
                "--at",
                action="append",
                default=[],
                metavar="NAME=DPID[:PORT]",
                help="port of the fabric at which an interface is, or the switch that a bridge is",
            )


def run(args: argparse.Namespace) -> int:
    """Read the files, check the policy that they come to, write it if asked, and report each line."""
    from controller.config import PolicyInvalid, load_policy
    from controller.migration.draft import text_of
    from controller.migration.report import BadConfiguration, Outcome, counts

    places = _places(getattr(args, "at", []))
    sources = [_read(path) for path in args.files]
    if len({source.name for source in sources}) < len(sources):
        raise InputError("a file is named twice")
    try:
        draft, report = _reader(args.program)(sources, places)
    except BadConfiguration as fault:
        raise InputError(str(fault)) from None
    text = text_of(
        draft, [f"Made by `vsrt import {args.program}` of {', '.join(source.name for source in sources)}."]
    )
    try:
        policy = load_policy(text)
    except PolicyInvalid as fault:
        raise OperationFailed(f"what was read cannot be one policy, and nothing is written: {fault}") from None
    if args.output is not None:
        write_new(args.output, text)
    lines = report.lines()
    found = counts(lines)
    if args.json:
        emit_json(_document(args, text, lines, found, report.notes, policy.warnings))
    else:
        _print(args, lines, found, report.notes, policy.warnings)
        if args.output is not None:
            print(f"{args.output}: {len(policy.rules)} rules; read it before it is used")
    return 1 if found[Outcome.IMPOSSIBLE.word] else 0


def _reader(program: str) -> Callable[[Sequence[InputFile], Places], tuple[PolicyDraft, ImportReport]]:
    if program == "faucet":
        from controller.migration.faucet import read_faucet

        return lambda sources, _: read_faucet(sources, _included)
    if program == "frr":
        from controller.migration.frr import read_frr

        return lambda sources, places: read_frr(sources, places.ports)
    if program == "bridge":
        from controller.migration.bridge import read_bridge

        return read_bridge
    from controller.migration.ovs import read_ovs

    return read_ovs


def _places(texts: Sequence[str]) -> Places:
    from controller.migration.places import parse_places

    try:
        return parse_places(texts)
    except ValueError as error:
        raise InputError(f"--at {error}") from None


def _read(path: Path) -> InputFile:
    """Return a file's text; InputError where it cannot be read."""
    from controller.migration.report import InputFile

    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{path}: the file is larger than {MAX_BYTES} bytes")
    try:
        return InputFile(str(path), data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8 text") from None


def _included(includer: str, path: str) -> InputFile | None:
    """Return a file that another one includes, by a path that is relative to that; None where it is not there."""
    found = Path(includer).parent / path
    return _read(found) if found.exists() else None


def _document(
    args: argparse.Namespace,
    text: str,
    lines: Sequence[LineReport],
    found: dict[str, int],
    notes: Sequence[str],
    warnings: Sequence[PolicyError],
) -> dict[str, Any]:
    from controller.config.faults import as_document

    return {
        "program": args.program,
        "output": None if args.output is None else str(args.output),
        "counts": found,
        "lines": [line.as_document() for line in lines],
        "notes": list(notes),
        "warnings": [as_document(warning) for warning in warnings],
        "policy": text,
    }


def _print(
    args: argparse.Namespace,
    lines: Sequence[LineReport],
    found: dict[str, int],
    notes: Sequence[str],
    warnings: Sequence[PolicyError],
) -> None:
    rows = [row for line in lines for row in _rows(line, args.all)]
    if rows:
        emit_table(("LINE", "TEXT", "WHAT BECAME OF IT"), rows)
        print()
    for note in notes:
        print(f"note: {note}")
    for warning in warnings:
        print(f"warning: line {warning.line} of the policy: {warning.message}")
    print(f"{len(lines)} lines: {', '.join(f'{number} {word}' for word, number in found.items())}")


def _rows(line: LineReport, all_of_it: bool) -> Iterator[tuple[str, str, str]]:
    """Yield what is to be said of a line: of those to be looked at what is grave, unless all is asked for."""
    from controller.migration.report import Outcome

    stripped = line.text.strip()
    text = stripped if len(stripped) <= _SHOWN_TEXT else f"{stripped[: _SHOWN_TEXT - 1]}…"
    for part in line.parts:
        if not all_of_it and (part.outcome < Outcome.CHANGED or part.is_with_another):
            continue
        field = f"{part.field}: " if part.field else ""
        todo = f"; {part.todo}" if part.todo else ""
        yield f"{line.file}:{line.line}", text, f"{part.outcome.word}: {field}{part.what}{todo}"
