"""`vsrt mount`: what a running controller knows, as folders and files."""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from apps.cli import do_command
from apps.cli.common import InputError, OperationFailed, printable
from apps.cli.do_words import do_arguments
from apps.cli.following import RETRY_S
from apps.cli.perf_console import socket_path
from apps.cli.reach import add_source, open_source
from apps.cli.snapshot_source import ConnectionLost, SnapshotSource
from apps.mount.operations import MountOperations
from apps.mount.tree import MountedTree

DEVICE = Path("/dev/fuse")
MODULE = "mfusepy"
EXTRA = "mounting needs the package mfusepy: pip install 'vsrt-controller[mount]'"
LIBRARY = "mounting needs the library libfuse3 (Debian: apt install fuse3)"

SECTIONS = (
    *("status", "switches", "links", "ports", "hosts", "groups", "routers", "rules", "staged", "events", "alarms"),
    *("cleared-alarms", "anomalies", "allocations", "policy", "cluster", "monitors", "scaling", "classes", "queues"),
    *("tables", "maintenance", "pools", "addresses", "candidates", "runs", "versions"),
)
"""What is followed, where apps offer it: all that the API streams."""

OPTIONS: dict[str, Any] = {
    **{"foreground": True, "fsname": "vsrt", "subtype": "vsrt", "direct_io": True},
    **{"attr_timeout": 0, "entry_timeout": 0.2, "max_threads": 8, "max_idle_threads": 8},
}
"""As the kernel is asked: nothing that is read is kept by it, for it changes; names are, as long as a look lasts."""

ENDED_BY_SIGNAL = 8
"""What libfuse 3 returns where a signal ended it."""

VERBS = {name.replace(" ", "-"): name for name in do_command.VERBS}
"""Files in `do`, and the words of `vsrt do` that they stand for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Shows what a running controller knows as files: DIR/SECTION/ID/FIELD, and DIR/events with a line for each "
        "event as it happens. A line written to DIR/do/VERB has the words of `vsrt do VERB`; DIR/do/answer says what "
        "became of the last one. It stays until it is ended by Ctrl-C or SIGTERM, or unmounted by umount, and follows"
        " a controller that comes back; DIR/connection says whether it answers."
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="an empty directory")
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Mount it, and serve until it is unmounted."""
    directory = _checked(args.directory)
    fuse = _fuse()
    _leave_no_relative_paths(args)
    tree = MountedTree(list(VERBS))
    TreeFeeder(open_source(args), tree).begin()

    def mounted() -> None:
        print(f"vsrt: {directory} shows the controller; Ctrl-C, or umount, ends that", file=sys.stderr, flush=True)

    try:
        fuse(MountOperations(tree, Performer(args, tree), mounted), str(directory), **OPTIONS)
    except RuntimeError as error:
        if error.args != (ENDED_BY_SIGNAL,) or os.path.ismount(directory):
            why = f"libfuse says why above (status {error})"
            raise OperationFailed(f"{directory}: cannot be mounted, or is mounted no longer; {why}") from None
    return 0


def _checked(directory: Path) -> Path:
    """Return the directory as an absolute path; InputError where it is none, or not empty."""
    try:
        if any(directory.iterdir()):
            raise InputError(f"{directory}: is not empty, and what is in it would be hidden")
        return directory.resolve()
    except OSError as error:
        hint = f"; `umount -l {directory}` takes away what a command that was killed left"
        text = f"{error.strerror or error}{hint if error.errno == errno.ENOTCONN else ''}"
        raise InputError(f"{directory}: {text}") from None


def _leave_no_relative_paths(args: argparse.Namespace) -> None:
    """Have arguments and environment name files by absolute paths: libfuse goes to the root directory."""
    if args.url is None:
        args.socket = socket_path(args).absolute()
    for name in ("token_file", "ca"):
        if getattr(args, name) is not None:
            setattr(args, name, getattr(args, name).absolute())


def _fuse() -> Callable[..., Any]:
    """Return what mounts; OperationFailed, saying what is missing, where this machine cannot."""
    try:
        with DEVICE.open("rb+", buffering=0):
            pass
    except OSError as error:
        hint = "; it takes `modprobe fuse` as root, or a container that is given the device"
        text = f"{error.strerror or error}: nothing can be mounted{hint if error.errno == errno.ENOENT else ''}"
        raise OperationFailed(f"{DEVICE}: {text}") from None
    try:
        module = importlib.import_module(MODULE)
    except ImportError:
        raise OperationFailed(EXTRA) from None
    except OSError:
        raise OperationFailed(LIBRARY) from None
    fuse: Callable[..., Any] = module.FUSE
    return fuse


class TreeFeeder:
    """Puts what the controller tells into the tree, in a thread of its own, for ever."""

    def __init__(self, source: SnapshotSource, tree: MountedTree) -> None:
        self._source = source
        self._tree = tree
        self._begun = threading.Event()
        self._failed: Exception | None = None

    def begin(self) -> None:
        """Follow; return when all is there, and raise what keeps it from being there."""
        threading.Thread(target=self._run, name="follow", daemon=True).start()
        self._begun.wait()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        while True:
            try:
                for snapshot in self._source.follow(("status",), beside=SECTIONS):
                    self._tree.put(snapshot)
                    self._tree.connection = self._answers
                    self._begun.set()
            except Exception as error:  # who mounts waits for this thread, and who reads goes by what it says
                if not self._begun.is_set() or not isinstance(error, ConnectionLost):
                    self._failed = error
                    self._begun.set()
                    self._tree.connection = partial(_said, f"ended: {error}")
                    return
                self._tree.connection = partial(_said, f"away: {error}")
                time.sleep(RETRY_S)

    def _answers(self) -> bytes:
        """Say that it answers, or for how long it has said nothing: it may be stopped, or far too busy."""
        silent_s = time.monotonic() - (self._source.heard_s or 0.0)
        if silent_s <= self._source.silence_s:
            return _said("answers")
        return _said(f"silent: it has said nothing for {silent_s:.0f} s")


def _said(text: str) -> bytes:
    return f"{text}\n".encode()


class Performer:
    """Has the lines done that are written in `do`, one at a time."""

    def __init__(self, args: argparse.Namespace, tree: MountedTree) -> None:
        self._args = args
        self._tree = tree
        self._lock = threading.Lock()

    def __call__(self, verb: str, line: str) -> int:
        """Do what a line says, put the answer where it is read, and return 0 or the number of an error."""
        with self._lock:
            number, told = self._perform(verb, line)
            self._tree.answer = json.dumps({"verb": verb, "words": line, **told}, default=str).encode() + b"\n"
            return number

    def _perform(self, verb: str, line: str) -> tuple[int, dict[str, Any]]:
        try:
            words = [*VERBS[verb].split(), *shlex.split(line)]
            answer, text = do_command.perform(do_arguments(words, self._args))
        except (InputError, ValueError) as error:
            return errno.EINVAL, {"done": False, "text": printable(error)}
        except ConnectionLost as error:
            return errno.EHOSTDOWN, {"done": False, "text": printable(error)}
        except OperationFailed as error:
            return errno.EPERM, {"done": False, "text": printable(error)}
        return 0, {"done": True, "text": text, "answer": answer}
