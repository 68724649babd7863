"""How often a pool meets its SLO, and with how many members, under each learner and rule on the same loads.

    python benchmarks/scaling_advice.py [--seeds 20] [--first-seed 100] [--part learners]

Loads are made anew by a seed: days with a storm in the morning, and a tournament that comes four times. Figures are
of the second repetition and later ones, but for those called first. With `head-rooms` the rule of the same need as
yesterday has each of many fixed head-rooms: the cheapest that meets the SLO in 99.5 % of intervals is what
`seasonal-q` is held against. With `growth` the load is 1.4 times as high from the sixth day on, and what counts is
the day after. With `bottlenecks` one of three tiers alone gets more work, and the heuristics are to name it. With
`intervals` 16 monitors tell of two weeks, and what counts is what that takes of the one that advises.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from random import Random
from statistics import median

import numpy as np
from measure import Measurement, report

from controller.scaling.advisor import Advisor, AdvisorSettings, PoolInterval
from controller.scaling.heuristics import ScalingHeuristics
from controller.scaling.learners import LEARNERS, make_learner
from controller.scaling.loads import MemberLoad
from controller.scaling.model import Learner, PoolBounds, PoolReading
from controller.scaling.rules import SameAsYesterday
from controller.simulation.scaling import LoadTrace, ScalingRun, SimulatedTier, diurnal, run_scaling, tournament

TRACES: dict[str, Callable[[int], LoadTrace]] = {"diurnal": diurnal, "tournament": tournament}
WANTED_PCT = 99.5
FILLS_PCT = (95, 92, 90, 88, 86, 84, 82, 80, 78, 75, 70)
GROWS_AT_DAY = 6
GROWTH = 1.4
MONITORS = 16


def outcome(trace: LoadTrace, learner: Learner, seed: int) -> ScalingRun:
    return run_scaling(trace, learner, seed)


def learners(seeds: range) -> list[Measurement]:
    """Return how each learner fares on each trace."""
    found: dict[tuple[str, str], list[float]] = {}
    for kind, make in TRACES.items():
        for name in LEARNERS:
            for seed in seeds:
                trace = make(seed)
                run = outcome(trace, make_learner(name, Random(seed).random), seed)
                for what, unit, value in (
                    ("SLO met, first", "%", run.met_pct(0, trace.period)),
                    ("SLO met", "%", run.met_pct(trace.period)),
                    ("members", "members", run.mean_members(trace.period)),
                ):
                    found.setdefault((f"{kind}, {name}: {what}", unit), []).append(value)
    return [Measurement(name, unit, values) for (name, unit), values in found.items()]


def head_rooms(seeds: range) -> list[Measurement]:
    """Return the members of `seasonal-q` beside those of the cheapest fixed head-room that meets the SLO."""
    found = []
    for kind, make in TRACES.items():
        fixed: dict[int, tuple[float, float]] = {}
        for fill in FILLS_PCT:
            runs = [(make(seed), seed) for seed in seeds]
            ends = [(outcome(trace, SameAsYesterday(fill / 100), seed), trace.period) for trace, seed in runs]
            met = [run.met_pct(period) for run, period in ends]
            members = [run.mean_members(period) for run, period in ends]
            found.append(Measurement(f"{kind}, filled to {fill} %: SLO met", "%", met))
            found.append(Measurement(f"{kind}, filled to {fill} %: members", "members", members))
            fixed[fill] = (median(met), median(members))
        least = min(members for met_pct, members in fixed.values() if met_pct >= WANTED_PCT)
        ratios = []
        for seed in seeds:
            trace = make(seed)
            run = outcome(trace, make_learner("seasonal-q", Random(seed).random), seed)
            ratios.append(run.mean_members(trace.period) / least)
        found.append(Measurement(f"{kind}: members of seasonal-q to those of the cheapest", "times", ratios))
    return found


def growth(seeds: range) -> list[Measurement]:
    """Return how often the SLO is met on the day after one that had 1.4 times the load for the first time."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        trace = diurnal(seed)
        grows_at = GROWS_AT_DAY * trace.period
        grown = LoadTrace(
            tuple(load * (GROWTH if at >= grows_at else 1.0) for at, load in enumerate(trace.loads)), trace.period
        )
        for name in ("yesterday", "seasonal-q", "vscale", "proportional"):
            run = outcome(grown, make_learner(name, Random(seed).random), seed)
            day = (grows_at + trace.period, grows_at + 2 * trace.period)
            found.setdefault(f"{name}: SLO met on the day that grows", []).append(run.met_pct(grows_at, day[0]))
            found.setdefault(f"{name}: SLO met on the day after", []).append(run.met_pct(*day))
    return [Measurement(name, "%", values) for name, values in found.items()]


def bottlenecks(seeds: range) -> list[Measurement]:
    """Return in how many of 100 overloads of one of three tiers the heuristics name it first."""
    right: list[float] = []
    for seed in seeds:
        chance = np.random.default_rng([seed, 2])
        named = []
        for _ in range(30):
            tiers = [SimulatedTier(int(chance.integers(2, 9)), 1.0) for _ in range(3)]
            fills = chance.uniform(0.4, 0.7, 3)
            heuristics, over = ScalingHeuristics(), int(chance.integers(3))
            advice = None
            for number in range(60):
                if number == 40:
                    fills[over] = float(chance.uniform(1.02, 1.5))
                readings = [
                    tier.interval(fill * tier.members, chance) for tier, fill in zip(tiers, fills, strict=True)
                ]
                advice = heuristics.advise(PoolReading(number, tuple(readings), 0.25))
                if number >= 40 and advice is not None and advice.change > 0:
                    break
                advice = None
            named.append(advice is not None and advice.tier == over)
        right.append(100 * sum(named) / len(named))
    return [Measurement("the tier that has too much is named", "%", right)]


def intervals(seeds: range) -> list[Measurement]:
    """Return what the end of an interval takes of the monitor that advises, the last day of two weeks."""
    taken_ms: list[float] = []
    table_kb: list[float] = []
    for seed in seeds:
        chance = Random(seed)
        advisor = Advisor(AdvisorSettings(300, "seasonal-q", bounds=PoolBounds(2, 64)), chance.random)
        trace = diurnal(seed, days=14)
        names = [f"m{at}" for at in range(MONITORS)]
        for number, load in enumerate(trace.loads):
            usage = load / MONITORS * chance.uniform(0.97, 1.03)
            told = MemberLoad(number, 300, "run", True, 1, usage, usage / 2, 0.0, 3000, 0, 0, {20: 2970, 30: 30})
            began_s = time.process_time()
            advisor.take(PoolInterval(number, dict.fromkeys(names, told), frozenset(names), frozenset()))
            table = advisor.table()
            if number >= len(trace.loads) - trace.period:
                taken_ms.append(1000 * (time.process_time() - began_s))
        table_kb.append(len(table) / 1000)
    return [
        Measurement("processor time of the end of an interval", "ms", taken_ms),
        Measurement("what is put into the store of what was learnt", "kB", table_kb),
    ]


PARTS = {
    "learners": learners,
    "head-rooms": head_rooms,
    "growth": growth,
    "bottlenecks": bottlenecks,
    "intervals": intervals,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--part", choices=list(PARTS), default="learners")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    report(PARTS[args.part](seeds), as_json=args.json, source="scaling_advice")


if __name__ == "__main__":
    main()
