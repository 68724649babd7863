"""Cost of the membership core per report: new joins, refreshes that change nothing, leaves, and many states.

python benchmarks/membership_core.py [STATES]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

from controller.membership.core import MembershipCore
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.wire.packets import GroupRecord, RecordType, Report

ROUNDS = 7


def reports(count: int, kind: RecordType, groups_per_port: int) -> list[tuple[int, int, Report]]:
    made = []
    for i in range(count):
        port, n = divmod(i, groups_per_port)
        mac = b"\x02" + port.to_bytes(5, "big")
        group = bytes((239, 1 + (n >> 16), n >> 8 & 0xFF, n & 0xFF))
        made.append((port >> 5, port & 31, Report(4, 3, mac, b"\x0a" + mac[3:], (GroupRecord(kind, group),))))
    return made


def timed(act: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) / count * 1e6


def run(states: int) -> dict[str, float]:
    per_port = 50
    limits = MembershipLimits(reports_per_second_per_port=1e9, report_burst=1e9)
    core = MembershipCore(MembershipSettings(), limits, lambda host, group, source: True)
    joins = reports(states, RecordType.CHANGE_TO_EXCLUDE, per_port)
    refreshes = reports(states, RecordType.MODE_IS_EXCLUDE, per_port)
    leaves = reports(states, RecordType.CHANGE_TO_INCLUDE, per_port)
    for dpid, port_no, _ in joins[::per_port]:
        core.port_added(dpid, port_no, 0.0)

    def feed(work: list[tuple[int, int, Report]], now: float) -> None:
        for dpid, port_no, report in work:
            core.report_received(dpid, port_no, report, now)

    return {
        "join": timed(lambda: feed(joins, 1.0), states),
        "refresh": timed(lambda: feed(refreshes, 2.0), states),
        "leave": timed(lambda: feed(leaves, 3.0), states),
        "end": timed(lambda: core.on_deadline(5.0), states),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", type=int, nargs="?", default=10_000, help="memberships (default: %(default)s)")
    states = parser.parse_args().states
    rounds = [run(states) for _ in range(ROUNDS if states <= 20_000 else 3)]
    for name in rounds[0]:
        values = sorted(r[name] for r in rounds)
        print(f"{name:8} {statistics.median(values):7.2f} us per report ({values[0]:.2f} to {values[-1]:.2f})")
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB with {states} states")


if __name__ == "__main__":
    main()
