"""The article's first simulation: its figures beside those of every algorithm here.

1,000 groups of 3 to 20 of 100,000 virtual machines on 11,520 servers, 0.1 to 10 Mbit/s, links of 1 Gbit/s.
Utilisation counts the links between switches, each cable once with a group's rate.
Run: python benchmarks/simulate_article.py --seeds 16
"""

from __future__ import annotations

import argparse
from statistics import mean, stdev

from measure import Summary, print_json, print_table, summarise

from apps.cli.progress import ProgressBar
from apps.cli.simulation_runs import figures, run_seed
from controller.simulation.data_centre import DataCentre
from controller.simulation.workload import Workload, generate
from controller.trees.algorithms import ALGORITHMS
from topology.generators import make

ARTICLE = (
    ("article, VSRT", {"unused_pct": "0", "below_5_pct": "49", "max_pct": "73", "over_100_pct": "0"}),
    ("article, IP multicast", {"unused_pct": "16", "below_5_pct": "65", "max_pct": "301", "over_100_pct": "1.5"}),
)
COLUMNS = {
    "unused_pct": "unused %",
    "below_5_pct": "< 5 %",
    "max_pct": "max %",
    "p99_pct": "p99 %",
    "over_100_pct": "> 100 %",
    "links_per_group": "links per group",
    "optimal_pct": "optimal %",
    "max_over_lower_bound": "max / bound",
}


def measure(topology: str, groups: int, seeds: int, algorithms: tuple[str, ...]) -> dict[str, dict[str, list[float]]]:
    """Return every figure of every algorithm, one sample per seed."""
    centre = DataCentre(make(topology))
    samples: dict[str, dict[str, list[float]]] = {name: {} for name in algorithms}
    for seed in range(1, seeds + 1):
        drawn = generate(centre, Workload(groups=groups), seed)
        run = run_seed(centre, drawn, algorithms, seed, ProgressBar())
        for name in algorithms:
            for field, value in figures(run, name).items():
                samples[name].setdefault(field, []).append(float("nan") if value is None else value)
    return samples


def _with_deviation(values: list[float], digits: int) -> str:
    spread = f" +- {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", default="portland-p6")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--algorithms", default=",".join(name for name in ALGORITHMS if name != "steiner"))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    samples = measure(args.topology, args.groups, args.seeds, tuple(args.algorithms.split(",")))
    if args.json:
        summaries: dict[str, dict[str, Summary]] = {
            name: {field: summarise(values) for field, values in fields.items()} for name, fields in samples.items()
        }
        print_json({"topology": args.topology, "groups": args.groups, "seeds": args.seeds, "algorithms": summaries})
        return
    print(f"{args.topology}, {args.groups:,} groups, {args.seeds} seeds: mean +- standard deviation\n")
    rows = [(name, *(given.get(field, "") for field in COLUMNS)) for name, given in ARTICLE]
    for name, fields in samples.items():
        digits = {"max_over_lower_bound": 3, "links_per_group": 2}
        rows.append((name, *(_with_deviation(fields[field], digits.get(field, 1)) for field in COLUMNS)))
    print_table(("1,000 groups at 1 Gbit/s" if args.groups == 1000 else "", *COLUMNS.values()), rows)


if __name__ == "__main__":
    main()
