"""`vsrt changes record`: a log of what is configured otherwise than before, for `vsrt policy discover`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apps.cli.change_file import COLUMNS
from apps.cli.common import InputError, OperationFailed, emit_json
from apps.cli.following import followed
from apps.cli.reach import add_source, open_source
from apps.cli.text_files import file_faults, json_lines
from apps.line_files import append_lines, cut_torn_line
from apps.locks import LockHeld, lock
from controller.policy_discovery.configuration import (
    SECTIONS,
    Configuration,
    ConfigurationChange,
    Properties,
    Resource,
)
from controller.snapshot.reader import Snapshot

HELP = "write a line for each setting of switches, ports and the policy that changes, until interrupted"

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, and where the controller is."""
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="JSON lines, gone on with where it is there"
    )
    parser.add_argument(
        "--from-nothing",
        action="store_true",
        help="take what is set already, and is not in the file, as changes too (default: as what is usual)",
    )
    add_source(parser)
    parser.epilog = (
        "It ends by Ctrl-C or SIGTERM, with status 0. What changed while it did not run is recorded when it runs "
        "again, with that time, of settings that are in the file. A controller that is away is tried again each "
        "second, and a file that cannot be written with the next change and at the end."
    )


def run(args: argparse.Namespace) -> int:
    """Record until interrupted."""
    path: Path = args.output
    with _kept(path), _interrupted_once():
        configuration = Configuration(_known(path), args.from_nothing)
        recorder = _Recorder(path, configuration)
        try:
            for snapshot in followed(open_source(args), SECTIONS):
                recorder.follow(snapshot)
        except KeyboardInterrupt:
            recorder.write()
        document = {"file": str(path), "changes": recorder.count, "unwritten": len(configuration.changes())}
        if args.json:
            emit_json(document)
        else:
            unwritten = f"; {document['unwritten']} could not be written" if document["unwritten"] else ""
            print(f"{recorder.count} changes recorded in {path}{unwritten}", flush=True)
    return 1 if document["unwritten"] else 0


@contextmanager
def _kept(path: Path) -> Iterator[None]:
    """Keep other recorders from a file."""
    if path.suffix == ".gz":
        raise InputError(f"-o {path}: nothing can be added to a file that gzip packed; give it another name")
    own = path.with_name(f"{path.name}.lock")
    try:
        held = lock(own)
    except LockHeld as other:
        raise OperationFailed(f"{path}: {other} records in it already") from None
    except OSError as error:
        raise InputError(f"-o {path}: {error.strerror or error}") from None
    try:
        yield
    finally:
        os.close(held)


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """Have the first signal that asks for the end raise KeyboardInterrupt, and further ones do nothing."""
    has_come = False

    def end(_number: int, _frame: object) -> None:
        nonlocal has_come
        if not has_come:
            has_come = True
            raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _known(path: Path) -> dict[Resource, Properties]:
    """Return what a file tells of each property last; a line that a crash left torn at its end is taken out."""
    known: dict[Resource, Properties] = {}
    if not path.exists():
        return known
    with file_faults(path):
        cut_torn_line(path)
    for where, fields, _ in json_lines(path, []):
        texts = [fields.get(name) for name in ("type", "resource", "property", "new")]
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"{where}: this is no log of changes: expected {', '.join(COLUMNS)}")
        kind, name, what, new = texts
        known.setdefault(Resource(str(kind), str(name)), {})[str(what)] = str(new)
    return known


class _Recorder:
    """Writes what changes between snapshots; `count` are the lines written.

    What cannot be written is not lost: it is found again with the next snapshot, as it is then.
    """

    def __init__(self, path: Path, configuration: Configuration) -> None:
        self.count = 0
        self._path = path
        self._configuration = configuration
        self._versions = dict.fromkeys(SECTIONS, -1)
        self._trouble: str | None = None

    def follow(self, snapshot: Snapshot) -> None:
        """Take what a snapshot tells anew, and write it."""
        configuration = self._configuration
        for name in SECTIONS:
            section = snapshot.section(name)
            difference = section.since(self._versions[name])
            put = section.in_order() if difference is None else difference.put
            for document in put:
                configuration.put(name, document.fields)
            for id_ in () if difference is None else difference.removed:
                configuration.remove(name, id_)
            self._versions[name] = section.version
        self.write()

    def write(self) -> None:
        """Append a line for each change, whatever signal comes meanwhile."""
        changes = self._configuration.changes()
        now_s = round(time.time(), 3)
        text = "".join(json.dumps(_line(now_s, change)) + "\n" for change in changes)
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
        try:
            if changes:
                append_lines(self._path, text.encode())
            self.count += len(changes)
            self._configuration.taken()
            self._trouble = None
        except OSError as error:
            why = f"{self._path}: {error.strerror or error}"
            if why != self._trouble:
                print(f"vsrt: {why}; trying again", file=sys.stderr)
            self._trouble = why
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def _line(now_s: float, change: ConfigurationChange) -> dict[str, Any]:
    resource, name, old, new = change
    return {
        "time": now_s,
        "resource": resource.name,
        "type": resource.kind,
        "property": name,
        "old": old,
        "new": new,
    }
