"""The topology file that a policy file names: read once, until it changes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from controller.config.expected_topology import Cabling, cabling_in
from topology.files.faults import MAX_BYTES

Stamp: TypeAlias = tuple[int, int, int, int]


def stamp_of(path: Path) -> Stamp | None:
    """Return what changes whenever a file is written, replaced or made readable; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    # The time of the last change of state tells that a file was made readable, too.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class FabricFile:
    """The topology file that was read last by its path relative to a policy file, if there was one."""

    def __init__(self, policy: Path | None) -> None:
        self._directory = Path() if policy is None else policy.parent
        self._path: Path | None = None
        self._stamp: Stamp | None = None

    def read(self, name: str) -> Cabling:
        """Return the switches and links of a file; OSError or TopologyFileError where it cannot be read."""
        self._path = self._directory / name
        self._stamp = stamp_of(self._path)
        return _cabling(self._path, self._stamp, name)

    def has_changed(self) -> bool:
        """Tell whether the file is another than it was when it was read."""
        return self._path is not None and stamp_of(self._path) != self._stamp


@lru_cache(maxsize=1)
def _cabling(path: Path, _stamp: Stamp | None, name: str) -> Cabling:
    """Read a file as it is at a stamp; a large fabric takes seconds, and policies are read more often."""
    with path.open("rb") as file:
        return cabling_in(file.read(MAX_BYTES + 1), name)
