"""What the log costs per join: the core's entries, their way through the loop, and their commit aside.

    python benchmarks/log_cost.py [--rounds 30] [--directory DIR] [--json]

A round is 50 joins of one host each, to new groups ("alone") or to groups that have members at 40 switches already
("in company"). Beside it stands a journal of JSON lines that is appended to on the loop (`JournalFile`, which keeps
the hosts of discovery), with the same values, and what an operator waits for: `fdatasync` there, a commit here.
The directory is on the disk that is measured.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from measure import Measurement, report

from apps.log_database import LogDatabase
from apps.state_dir import JournalFile
from controller.config.multicast_settings import Querier
from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.effects import JournalPart
from controller.events import PacketReceived
from controller.log import Waiting, WriteLog
from controller.multicast.core import MulticastCore
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp

JOINS = 50
EDGES, SPINES = 41, 2
LOGGER = logging.getLogger("log")
POLICY = Policy(
    default_allow=True,
    limits=Limits(groups_per_port=65536, reports_per_second_per_port=1e6, groups=1048576, memberships=10000000),
    multicast=Multicast(fast_leave=True, querier=Querier(enabled=False)),
)


class Bench:
    """A core over a leaf-spine fabric with a host at each edge, and what it writes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.core = MulticastCore(POLICY, self.now)
        for dpid in range(1, EDGES + SPINES + 1):
            self.core.handle(SwitchUp(dpid, 4), self.now)
        for edge in range(1, EDGES + 1):
            for spine in range(1, SPINES + 1):
                self.core.handle(LinkUp(edge, 4 + spine, EDGES + spine, edge, 1e9), self.now)
            self.core.handle(PortRoleChanged(edge, 1, PortRole.EDGE), self.now)
            self.core.handle(HostLearnt(_mac(edge), edge, 1, (_address(edge),)), self.now)
        self.writes()

    def join(self, host: int, group: bytes) -> None:
        """Have the host at an edge join."""
        self._report(host, RecordType.CHANGE_TO_EXCLUDE, group)

    def leave(self, host: int, group: bytes) -> None:
        """Have the host at an edge leave."""
        self._report(host, RecordType.CHANGE_TO_INCLUDE, group)

    def _report(self, host: int, kind: RecordType, group: bytes) -> None:
        frame = encode(Report(4, 3, _mac(host), _address(host), (GroupRecord(kind, group),)))
        self.core.handle(PacketReceived(host, 1, frame), self.now)

    def writes(self) -> list[WriteLog]:
        """Return what the core has to write, all of it."""
        writes: list[WriteLog] = []
        while (due_s := self.core.pending_writes.due_s) is not None:
            self.now = max(self.now, due_s)
            writes += self.core.journal.on_deadline(self.now)
        return writes


def _mac(host: int) -> bytes:
    return bytes((2, 0, 0, 0, 0, host))


def _address(host: int) -> bytes:
    return bytes((10, 0, 0, host))


def _timed_us(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e6


def _take_all(waiting: Waiting, made: Iterable[WriteLog]) -> None:
    for write in made:
        waiting.take(write)


def rounds(count: int, directory: Path) -> list[Measurement]:
    samples: dict[str, list[float]] = {}
    database, waiting = LogDatabase(directory / "log.sqlite", LOGGER), Waiting()
    lines = JournalFile(directory / "lines.jsonl", LOGGER)
    bench = Bench()

    def take(name: str, act: Callable[[], object], of: int = JOINS) -> None:
        samples.setdefault(name, []).append(_timed_us(act) / of)

    company = [bytes((239, 200, 0, number)) for number in range(JOINS)]
    for group in company:
        for host in range(2, EDGES + 1):
            bench.join(host, group)
    bench.writes()
    for number in range(count):
        alone = [bytes((239, 1, number, group)) for group in range(JOINS)]
        for name, groups in (("alone", alone), ("in company", company)):
            for group in groups:
                bench.join(1, group)
            made: list[WriteLog] = []
            take(f"{name}: entries made, on the loop", lambda: made.extend(bench.writes()))  # noqa: B023
            take(f"{name}: taken by the log, on the loop", lambda: _take_all(waiting, made))  # noqa: B023
            batch = waiting.batch()
            take(f"{name}: committed aside", lambda: database.commit(batch))  # noqa: B023
            values = [dict(entry.value or {}) for write in made for entry in write.entries]
            take(f"{name}, peer: lines appended on the loop", lambda: lines.write(values, JournalPart.APPEND))  # noqa: B023
            lines.sync()
        for group in company:
            bench.leave(1, group)
        bench.writes()
        waiting.take(WriteLog(made[0].entries[:1]))
        batch = waiting.batch()
        take("an action: commit aside", lambda: database.commit(batch), of=1)  # noqa: B023
        lines.write(values[:1], JournalPart.APPEND)
        take("an action, peer: fdatasync on the loop", lines.sync, of=1)
    return [Measurement(name, "us", values) for name, values in samples.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of the log per join.")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--directory", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        report(rounds(arguments.rounds, Path(directory)), as_json=arguments.json, source="log_cost")


if __name__ == "__main__":
    main()
