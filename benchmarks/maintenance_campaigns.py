"""Campaigns of rolling maintenance over random fabrics, with failures: which limits are broken, and how many waves.

    python benchmarks/maintenance_campaigns.py [--campaigns 200] [--seed 1] [--json]

Each campaign goes over every switch of a fabric that is drawn with its settings: fat trees, leaf-spine fabrics and
random graphs. Upgrades fail, hang, leave switches away, wrongly cabled or with more errors at a port, switches fail
by themselves, the controller and the command are killed. Each switch that is begun is held against every limit by
code of its own. Status 1 where one was broken, or a campaign did not end.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from random import Random
from typing import NamedTuple

from maintained_fabrics import MaintainedFabric, MaintenanceRun, Odds, switches_of
from measure import print_table

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.checks import CampaignRefused
from controller.maintenance.model import MaintenanceOrder, Step
from controller.maintenance.schedule import least_waves, waves, widths
from topology.generators import make
from topology.graph import Graph


class Outcome(NamedTuple):
    """What became of a campaign."""

    seed: int
    fabric: str
    switches: int
    refused: str
    done: int
    skipped: int
    failures: int
    restarts: int
    kills: int
    hours: float
    waves: int
    least_waves: int
    broken: list[str]


def drawn_fabric(random: Random) -> tuple[str, Graph]:
    """Return a fabric and what it is called."""
    kind = random.choice(["fattree", "fattree", "leaf-spine", "jellyfish"])
    if kind == "fattree":
        k = random.choice([4, 6, 8])
        return f"fattree {k}", make(kind, {"k": k})
    if kind == "leaf-spine":
        leaves, spines = random.randint(4, 20), random.randint(2, 6)
        return f"leaf-spine {leaves}+{spines}", make(kind, {"leaves": leaves, "spines": spines, "hosts_per_leaf": 2})
    count = random.randint(8, 30) * 2
    parameters = {
        "switches": count,
        "degree": random.randint(3, 6),
        "hosts_per_switch": 2,
        "seed": random.randint(0, 99),
    }
    return f"jellyfish {count}", make(kind, parameters)


def drawn_settings(random: Random) -> Maintenance:
    """Return limits of a campaign."""
    return Maintenance(
        min_ready_pct=random.choice([0, 50, 66, 75, 75, 90]),
        max_concurrent=random.choice([1, 2, 4, 4, 8, 16]),
        max_utilisation_pct=random.choice([65, 80, 100]),
        failures=random.choice([1, 1, 1, 2, 3]),
        soak_s=random.choice([0, 10, 60]),
    )


def run_campaign(seed: int) -> Outcome:
    """Run a campaign, and return what became of it."""
    random = Random(seed)
    name, graph = drawn_fabric(random)
    whole, settings = switches_of(graph), drawn_settings(random)
    odds = Odds(
        hook_fails=random.choice([0, 0.02, 0.1]),
        hook_hangs=random.choice([0, 0.02]),
        never_back=random.choice([0, 0.02]),
        wrongly_cabled=random.choice([0, 0.02]),
        crash_per_s=random.choice([0, 1 / 2000]),
        restart_per_s=random.choice([0, 1 / 200]),
        runner_killed_per_s=random.choice([0, 1 / 400]),
        pause_per_s=random.choice([0, 1 / 1000]),
        errors_rise=random.choice([0, 0.02]),
    )
    fabric = MaintainedFabric(whole, settings, odds, seed)
    order = MaintenanceOrder(tuple(sorted(fabric.groups)), disruptive=True, hook_limit_s=120.0)
    try:
        run = MaintenanceRun(fabric, order)
    except CampaignRefused as refusal:
        return Outcome(seed, name, len(fabric.groups), str(refusal), 0, 0, 0, 0, 0, 0.0, 0, 0, [])
    run.run()
    failures = sum(told.kind == "maintenance-failed" for told in fabric.told)
    groups = fabric.groups
    width = widths(Counter(groups.values()), settings.min_ready_pct)
    return Outcome(
        seed,
        name,
        len(fabric.groups),
        "",
        len(run.campaign.at(Step.DONE)),
        len(run.campaign.at(Step.SKIPPED)),
        failures,
        run.restarts,
        run.killed,
        fabric.now / 3600,
        len(waves(groups, width, settings.max_concurrent)),
        least_waves(groups, width, settings.max_concurrent),
        fabric.broken,
    )


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="campaigns of rolling maintenance with failures")
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    outcomes = [run_campaign(args.seed + number) for number in range(args.campaigns)]
    began = [outcome for outcome in outcomes if not outcome.refused]
    broken = [outcome for outcome in outcomes if outcome.broken]
    if args.json:
        print(json.dumps([outcome._asdict() for outcome in outcomes]))
        return 1 if broken else 0
    rows = [
        ("campaigns, refused from the start", f"{len(outcomes)}, {len(outcomes) - len(began)}"),
        ("switches begun", sum(outcome.switches for outcome in began)),
        ("done, left out", f"{sum(o.done for o in began)}, {sum(o.skipped for o in began)}"),
        ("failures", sum(outcome.failures for outcome in began)),
        ("restarts of the controller", sum(outcome.restarts for outcome in began)),
        ("kills of the command", sum(outcome.kills for outcome in began)),
        ("campaigns that broke a limit", len(broken)),
        ("waves beyond the least, at most", max(outcome.waves - outcome.least_waves for outcome in began)),
        ("campaigns with more waves than the least", sum(o.waves > o.least_waves for o in began)),
    ]
    print_table(("what", "count"), rows)
    for outcome in broken[:10]:
        print(f"seed {outcome.seed}, {outcome.fabric}: {'; '.join(outcome.broken[:3])}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
