"""Files of results, which are there whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE, S_ISREG

from apps.cli.common import InputError, OperationFailed

THERE = "the file is there already, and is left as it is"

_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


def write_whole(path: Path, write: Callable[[Path], None], *, is_secret: bool = False) -> None:
    """Let `write` fill a file beside `path` and put it in its place, once it is on the disk.

    A file that is there keeps its permissions, and a link what it leads to; what is no file (`/dev/stdout`, a pipe)
    is written to. One that `is_secret` is its owner's alone. OperationFailed where something is not possible: then
    the file is as it was.
    """
    with _faults(path):
        _replace(Path(os.path.realpath(path)), path, write, is_secret)


def write_whole_text(path: Path, text: str, *, is_secret: bool = False) -> None:
    """Write a file of text in UTF-8; see `write_whole`."""
    write_whole(path, lambda beside: _write_text(beside, text), is_secret=is_secret)


def must_be_writable(path: Path) -> None:
    """Raise OperationFailed where `write_whole` could not even begin now, as in a folder that is not there.

    For who writes only after a long while.
    """
    with _faults(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not target.exists() or target.is_file():
            with tempfile.NamedTemporaryFile(prefix=f".{target.name}.", dir=target.parent):
                pass


def write_new(path: Path, text: str, if_there: str = THERE) -> None:
    """Write a file of text in UTF-8 that is not there yet, as `write_whole` does.

    InputError, which says `if_there`, where anything has its name, also where somebody else makes that meanwhile;
    OperationFailed where the file cannot be written.
    """
    there = InputError(f"{path}: {if_there}")

    def put(beside: Path, target: Path) -> None:
        try:
            _put_new(beside, target)
        except FileExistsError:
            raise there from None

    with _faults(path):
        if os.path.lexists(path):
            raise there
        _fill(path, lambda beside: _write_text(beside, text), _new_mode(), put)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperationFailed(f"{path}: {error.strerror or error}") from None


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _replace(target: Path, path: Path, write: Callable[[Path], None], is_secret: bool) -> None:
    try:
        before = path.stat()
    except FileNotFoundError:
        mode = _new_mode()
    else:
        if not S_ISREG(before.st_mode):
            write(path)
            return
        mode = S_IMODE(before.st_mode)
    _fill(target, write, None if is_secret else mode, Path.replace)


def _fill(target: Path, write: Callable[[Path], None], mode: int | None, put: Callable[[Path, Path], object]) -> None:
    """Have a file beside `target` filled, with permissions (None: its owner's alone), and `put` in its place."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    beside = Path(name)
    try:
        write(beside)
        os.fsync(handle)
        if mode is not None:
            beside.chmod(mode)
        put(beside, target)
    finally:
        os.close(handle)
        beside.unlink(missing_ok=True)


def _put_new(beside: Path, target: Path) -> None:
    """Give a file its name; FileExistsError where something has that."""
    try:
        target.hardlink_to(beside)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        target.touch(exist_ok=False)
        beside.replace(target)


def _new_mode() -> int:
    return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
