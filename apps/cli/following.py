"""A running controller followed for as long as somebody looks, also over its restarts."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from apps.cli.snapshot_source import ConnectionLost, SnapshotSource
from controller.snapshot.reader import Snapshot

RETRY_S = 1.0
"""How soon a controller that is not to be reached any more is tried again."""


def followed(source: SnapshotSource, sections: Sequence[str], beside: Sequence[str] = ()) -> Iterator[Snapshot]:
    """Yield snapshots for ever, also from a controller that comes back; ConnectionLost where it never was there."""
    reached, told = False, False
    while True:
        try:
            for snapshot in source.follow(sections, beside=beside):
                reached, told = True, False
                yield snapshot
        except ConnectionLost as lost:
            if not reached:
                raise
            if not told:
                print(f"vsrt: {lost}; trying again", file=sys.stderr)
                told = True
            time.sleep(RETRY_S)
