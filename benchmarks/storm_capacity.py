"""The largest storm of joins that a controller serves in time, and how long hosts wait in one of half of it.

    python benchmarks/storm_capacity.py [--controller vsrt-os-ken] [--first 4000] [--least-step 1000] [--slo-ms 50]
        [--sigma-s 2] [--switches 20] [--runs 5] [--json]

Each storm is one of `vsrt storm`, with a seed of its own, against a controller that has just begun, apps `multicast`
and `unicast`: one of half the capacity is not known before. Storms of twice as many joins are played until one does
not keep the goal, 99 % served in `--slo-ms`, then between the largest that did and the least that did not, until they
are `--least-step` apart. A storm that is late since the machine was busy ends the search too early, so what is found
is at most the capacity. "Played late" is by how much `vsrt storm` was late itself: with much of it the figures are
those of the machine. Storms last six times `--sigma-s`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

from controllers import controller
from measure import Measurement, report

APPS = ("multicast", "unicast")
OURS = ("vsrt", "vsrt-os-ken")


class Storms:
    """Storms that differ in how many join, and by whom."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._controller = args.controller
        self._shape = [
            *("--sigma-s", str(args.sigma_s), "--slo-ms", str(args.slo_ms), "--switches", str(args.switches)),
            *("--spines", "2", "--ports", "24", "--groups", "1000"),
        ]
        self._seeds = count(1)

    def play(self, joins: int) -> dict[str, Any]:
        """Play one and return what `vsrt storm` says; SystemExit where it cannot say anything."""
        with controller(self._controller, apps=APPS) as process:
            process.wait_listening()
            where = ["--port", str(process.port), "--socket", str(process.socket), "--seed", str(next(self._seeds))]
            vsrt = str(Path(sys.executable).parent / "vsrt")
            command = [vsrt, "storm", "--joins", str(joins), "--json", *self._shape, *where]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout:
            raise SystemExit(done.stderr)
        (storm,) = json.loads(done.stdout)["storms"]
        return dict(storm)


def capacity(storms: Storms, first: int, least_step: int) -> int:
    """Return the largest storm that kept the goal, 0 where none did."""
    kept, missed = 0, None
    joins = first
    while missed is None or missed - kept > least_step:
        if storms.play(joins)["keeps_goal"]:
            kept = joins
        else:
            missed = joins
        joins = 2 * kept if missed is None else (kept + missed) // 2
    return kept


def main() -> None:
    """Find the capacity, and play storms of half of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controller", choices=OURS, default="vsrt-os-ken")
    parser.add_argument("--first", type=int, default=4000, metavar="JOINS")
    parser.add_argument("--least-step", type=int, default=1000, metavar="JOINS")
    parser.add_argument("--slo-ms", type=float, default=50.0)
    parser.add_argument("--sigma-s", type=float, default=2.0)
    parser.add_argument("--switches", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in ("first", "least_step", "runs"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: at least 1")
    storms = Storms(args)
    largest = capacity(storms, args.first, args.least_step)
    if not largest:
        raise SystemExit(f"no storm of {args.least_step} joins and more kept the goal")
    halves = [storms.play(largest // 2) for _ in range(args.runs)]
    if unserved := sum(each["waits"]["unserved"] for each in halves):
        raise SystemExit(f"{unserved} hosts were not served in storms of {largest // 2} joins")
    waits = {name: [each["waits"][f"{name}_ms"] for each in halves] for name in ("p50", "p95", "p99")}
    late_ms = [each["played_late_p99_ms"] for each in halves]
    report(
        [
            Measurement("largest storm", "joins", [largest]),
            *(Measurement(f"half of it, {name}", "ms", samples) for name, samples in waits.items()),
            Measurement("half of it, played late, p99", "ms", late_ms),
        ],
        as_json=args.json,
        source="storm_capacity",
    )


if __name__ == "__main__":
    main()
