"""What a profile costs a controller while it runs, and what it leaves behind.

    python benchmarks/profile_cost.py [--controller vsrt-os-ken] [--joins 1000] [--runs 5] [--json]

Simulated hosts join in a uniform storm and leave again, in turn without a profile and with one; the processor time
that the controller took, which what else runs disturbs least, is divided by the joins. The ratio is that of two
storms one after the other, of which each turn has one; `again` compares the storms without one, before and after.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fabric_simulator.process import cpu_s
from measure import Measurement, report
from played_storms import TIMEOUT_S, StormBench

from apps.emulation.controller import ControllerProcess
from apps.status_client import query


def main() -> int:
    """Print how much processor time a join takes without a profile, and with one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controller", choices=("vsrt", "vsrt-os-ken"), default="vsrt-os-ken")
    parser.add_argument("--joins", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with ExitStack() as stack:
        turns = _turns(StormBench(stack, args.controller), args.joins, args.runs)
    without, with_one, again = ([turn[at] for turn in turns] for at in range(3))
    measurements = [
        Measurement("a join without a profile", "ms", without),
        Measurement("a join with one", "ms", with_one),
        Measurement(
            "with one, to without", "ratio", [one / other for one, other in zip(with_one, without, strict=True)]
        ),
        Measurement(
            "without one again, to before", "ratio", [one / other for one, other in zip(again, without, strict=True)]
        ),
    ]
    report(measurements, as_json=args.json, source=f"{args.controller}, {args.joins} joins a storm")
    return 0


def _turns(bench: StormBench, joins: int, runs: int) -> list[tuple[float, float, float]]:
    process = bench.process
    bench.settle()
    _join_ms(bench, joins, 0)
    found = []
    for run in range(runs):
        without_ms = _join_ms(bench, joins, run)
        _ask(process, {"do": "profile-start", "name": f"run-{run}", "for_s": 3600})
        with_ms = _join_ms(bench, joins, run)
        ended = _ask(process, {"do": "profile-stop"})
        done = {each["operation"]: each["count"] for each in ended["operations"]}
        if done.get("join") != joins:
            raise SystemExit(f"the profile has {done.get('join')} joins of {joins}")
        Path(ended["path"]).unlink()
        found.append((without_ms, with_ms, _join_ms(bench, joins, run)))
    return found


def _join_ms(bench: StormBench, joins: int, seed: int) -> float:
    """Return the milliseconds of processor time that the controller took for a join of a storm."""
    before_s = cpu_s(bench.process.pid)
    bench.join(joins, seed)
    took_s = cpu_s(bench.process.pid) - before_s
    bench.leave_all()
    return 1000 * took_s / joins


def _ask(process: ControllerProcess, question: dict[str, Any]) -> Any:
    answer = query(process.socket, question, TIMEOUT_S)
    if "error" in answer:
        raise SystemExit(answer["error"])
    return answer


if __name__ == "__main__":
    raise SystemExit(main())
