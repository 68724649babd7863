"""The process that records what is configured otherwise than before, and looks for rules in that now and then.

`python -m apps.candidates SOCKET LOG FOUND WINDOW_S INTERVAL_S`: it follows the controller behind SOCKET, appends to
LOG, writes all that a search found into FOUND, and a line about it to standard output. It ends with standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from apps.cli.change_recorder import ChangeRecorder, bound_log, kept_by_one, known_changes
from apps.cli.common import InputError, OperationFailed
from apps.cli.database_follower import DatabaseFollower
from apps.cli.following import RETRY_S, followed
from apps.cli.snapshot_socket import SocketSource
from apps.cli.snapshot_source import ConnectionLost
from apps.line_files import make_file, replace_file
from controller.policy_discovery.candidate_documents import (
    CANDIDATES_BOUND,
    FabricInventory,
    candidate_document,
    identified,
)
from controller.policy_discovery.configuration import SECTIONS, Configuration

NICE = 10
"""What serves hosts goes first."""

LOG_BOUND_BYTES = 64 << 20
"""Length of the log, some 400,000 changes, from which on what is old is taken out of it."""

FIRST_S = 5.0
"""Time after the fabric was seen first until rules are looked for, which is not before some of it is there."""


class _Follower:
    """Records on a thread of its own; `lock` is held while the log and the inventory change."""

    def __init__(self, socket: Path, log: Path) -> None:
        self.inventory = FabricInventory()
        self.seen = threading.Event()
        self._socket = socket
        databases = DatabaseFollower(lambda told: self._recorder.take(told))
        self._recorder = ChangeRecorder(log, Configuration(known_changes(log), True), (self.inventory, databases))
        self.lock = self._recorder.lock
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        try:
            while True:
                try:
                    for snapshot in followed(SocketSource(self._socket), SECTIONS):
                        self._recorder.follow(snapshot)
                        self.seen.set()
                except ConnectionLost:  # it is not there yet
                    time.sleep(RETRY_S)
        except BaseException:  # a search in what is recorded no more would be taken for one that is
            traceback.print_exc()
            os._exit(1)


def main() -> None:
    """Record, and look for rules, until nobody holds the other end of standard input."""
    socket, log, found = map(Path, sys.argv[1:4])
    window_s, interval_s = map(float, sys.argv[4:6])
    os.nice(NICE)
    try:
        make_file(log)
        with kept_by_one(log):
            follower = _Follower(socket, log)
            if not _is_over(0.0) and _seen(follower):
                wait_s = min(FIRST_S, interval_s)
                while not _is_over(wait_s):
                    _tell(_searched(follower, log, found, window_s))
                    wait_s = interval_s
    except (InputError, OperationFailed, OSError) as fault:
        _tell({"fault": str(fault)})
        raise SystemExit(1) from None


def _seen(follower: _Follower) -> bool:
    """Wait until the controller has told something; return False where the parent ends before."""
    while not follower.seen.is_set():
        if _is_over(RETRY_S):
            return False
    return True


def _is_over(within_s: float) -> bool:
    """Wait, and return whether standard input ended meanwhile."""
    ready, _, _ = select.select([sys.stdin], [], [], within_s)
    return bool(ready)


def _searched(follower: _Follower, log: Path, found: Path, window_s: float) -> dict[str, Any]:
    """Look for rules, keep all that was found, and return what is told of it."""
    from apps.cli.change_file import read_changes
    from apps.cli.policy_discover import LEAST_RESOURCES, policies_of
    from controller.policy_discovery.change_table import tabulate
    from controller.policy_discovery.held_settings import templates_text

    with follower.lock:
        with contextlib.suppress(OSError):  # on a disk without room the long log goes on
            bound_log(log, LOG_BOUND_BYTES)
        changes = read_changes([log]).changes
        kinds, labels = follower.inventory.kinds(), follower.inventory.labels()
    table = tabulate(changes, None, window_s, kinds)
    discovered, document = policies_of(table, LEAST_RESOURCES, labels)
    policies = dict(identified(document["policies"]))
    templates = {
        id_: templates_text(table, [one], [policies[id_]], [f"policy-{id_}"])
        for id_, one in zip(policies, discovered, strict=True)
    }
    replace_file(found, json.dumps({**document, "policies": policies, "templates": templates}).encode())
    told = list(policies.items())[:CANDIDATES_BOUND]
    return {
        "candidates": {id_: candidate_document(policy) for id_, policy in told},
        "beyond": len(policies) - len(told),
        "lines": document["counted"]["lines"],
        "resource_count": len(kinds),
        "searched_s": time.time(),
    }


def _tell(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
