"""What switches last called themselves, kept over restarts: so the first texts about them have their names."""

from __future__ import annotations

import json
import logging
from itertools import islice
from pathlib import Path

from apps.environment import state_path
from apps.line_files import replace_file
from controller.snapshot.names import DESCRIBED_BOUND
from controller.wire.dpids import format_dpid, parse_dpid

FILE_NAME = "switch-names.json"


def remembered_names(logger: logging.Logger) -> dict[int, str]:
    """Return what switches called themselves in earlier runs, by datapath id; nothing where that cannot be read."""
    path = state_path() / FILE_NAME
    try:
        found = json.loads(path.read_bytes())
        return {parse_dpid(dpid): str(name) for dpid, name in islice(found.items(), DESCRIBED_BOUND)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        logger.warning("%s cannot be read (%s): switches are called by their ids until they say more.", path, error)
        return {}


class SwitchNamesFile:
    """The file in a directory, written by one app; `fault` says why it cannot be written, None where all is well."""

    def __init__(self, directory: Path, logger: logging.Logger) -> None:
        self.fault: str | None = None
        self._path = directory / FILE_NAME
        self._logger = logger
        self._names = remembered_names(logger)
        self._is_written = True

    def keep(self, dpid: int, name: str) -> None:
        """Take what a switch calls itself, '' for nothing; it is in the file after the next `flush`."""
        if self._names.get(dpid, "") == name:
            return
        self._names.pop(dpid, None)
        if name:
            if len(self._names) >= DESCRIBED_BOUND:
                del self._names[next(iter(self._names))]
            self._names[dpid] = name
        self._is_written = False

    def flush(self) -> None:
        """Write the file where it lacks something."""
        if self._is_written:
            return
        content = json.dumps({format_dpid(dpid): name for dpid, name in self._names.items()}).encode()
        try:
            replace_file(self._path, content + b"\n")
        except OSError as error:
            fault = f"{self._path} cannot be written ({error.strerror or error})."
            if self.fault is None:
                self._logger.error("%s", fault)
            self.fault = fault
        else:
            self.fault, self._is_written = None, True
