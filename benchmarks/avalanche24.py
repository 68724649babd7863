"""The article's emulation (six random groups on 24 hosts, 10 Mbps links), every algorithm on the same seeds. As root.

    python benchmarks/avalanche24.py [--seeds 5] [--duration-s 15] [--algorithms a,b,c] [--framework ryu] [--json]

Prints, per algorithm, loss over all receivers and delivered rate, beside the loss that the host links force, and
what the default gains over each baseline. `--control` adds a run without capacities, which must lose nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from measure import Measurement, print_table, report

from apps.emulation.controller import FRAMEWORKS
from apps.emulation.experiment import Conditions, run_plan
from apps.emulation.plan import avalanche_plan
from topology.generators import make

DEFAULT = "vsrt"
ALGORITHMS = (DEFAULT, "vsrt-literal", "pim-sm-fixed-core", "pim-sm-random-core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--duration-s", type=float, default=15.0)
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--framework", choices=FRAMEWORKS, default="ryu")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    graph = make("avalanche24")
    results: dict[str, list[dict]] = {name: [] for name in args.algorithms.split(",")}
    for seed in range(1, args.seeds + 1):
        for name, runs in results.items():
            plan = avalanche_plan(graph, seed, capacities=True, duration_s=args.duration_s)
            runs.append(run_plan(plan, Conditions(name, seed, args.framework)))
            print(f"seed {seed}, {name}: {runs[-1]['lost_pct']:.2f} % lost", file=sys.stderr)
    loss = {name: [run["lost_pct"] for run in runs] for name, runs in results.items()}
    rate = {name: [run["rate_bps"] / 1e6 for run in runs] for name, runs in results.items()}
    forced = [run["forced_lost_pct"] for run in next(iter(results.values()))]
    measurements = [Measurement("loss forced by the host links", "%", forced)]
    for name in results:
        measurements += [
            Measurement(f"loss, {name}", "%", loss[name]),
            Measurement(f"delivered, {name}", "Mbps", rate[name]),
        ]
    if args.control:
        plan = avalanche_plan(graph, 1, capacities=False, duration_s=args.duration_s)
        control = run_plan(plan, Conditions(DEFAULT, 1, args.framework))
        measurements.append(Measurement("loss without capacities, vsrt", "%", [control["lost_pct"]]))
    report(measurements, as_json=args.json, source=Path(__file__).name)
    if DEFAULT in results:
        _compare(loss, rate, forced, args.json)


def _compare(loss: dict[str, list[float]], rate: dict[str, list[float]], forced: list[float], as_json: bool) -> None:
    mean = {name: statistics.mean(values) for name, values in loss.items()}
    delivered = {name: statistics.mean(values) for name, values in rate.items()}
    rows = [
        (
            name,
            mean[name],
            delivered[name],
            100 * (1 - mean[DEFAULT] / mean[name]),
            100 * (delivered[DEFAULT] / delivered[name] - 1),
        )
        for name in loss
    ]
    above = mean[DEFAULT] - statistics.mean(forced)
    if as_json:
        print(json.dumps({"means": rows, "points_above_forced": above}))
        return
    print()
    print_table(("algorithm", "mean loss %", "mean Mbps", "vsrt loses fewer %", "vsrt delivers more %"), rows)
    print(f"\nvsrt loses {above:.2f} points more than the host links force")


if __name__ == "__main__":
    main()
