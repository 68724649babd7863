"""Which faults the live comparison finds on fabrics made by a seed, who is named first, and what is told besides."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from generated_fabrics import KINDS, START_S, Fault, Run, generated
from measure import print_table

from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import AnomalyTurned, PortsSampled
from controller.anomaly.live_faults import in_order
from controller.anomaly.live_members import member_name
from controller.config.anomaly_settings import Anomaly
from controller.events import DeadlineReached
from controller.snapshot.events import State

POLL_S = 15.0
HOUR_S = 3600.0
COMPONENT_KINDS = ("loss", "errors", "drops", "cpu")


class Found(NamedTuple):
    """What became of a fault: how long until it was told, None where it was not, and whether it then ranked first."""

    kind: str
    told_after_s: float | None
    ranked_first: bool


class Outcome(NamedTuple):
    """What became of the faults of a run, and how often others were told.

    `concerned` are members whose traffic a fault changed; `false`, by verdict, those that none concerned.
    """

    found: tuple[Found, ...]
    concerned: int
    false: dict[str, int]
    member_days: float


class Watch:
    """A core that watches a run, and what it told."""

    def __init__(self, run: Run, settings: Anomaly) -> None:
        self._run = run
        self._core = AnomalyCore(settings, POLL_S)
        for event in run.events:
            self._core.handle(event, 0.0)
        self._late_s = 2 * settings.interval_s * settings.window_samples
        self._told: dict[Fault, Found] = {}
        self._concerned, self._false = 0, Counter[str]()

    def take(self, sample: PortsSampled) -> None:
        """Have a sample judged, and note who is told."""
        effects = list(self._core.handle(sample, 0.0))
        while self._core.next_deadline() is not None:
            effects += self._core.handle(DeadlineReached(), 0.0)
        ranked = list(in_order(self._core.faults.told))
        for effect in effects:
            if effect.state is State.RAISED:
                self._raised(effect, is_first=ranked[0] == effect.anomaly.key)

    def _raised(self, effect: AnomalyTurned, is_first: bool) -> None:
        at_s = effect.at_s - START_S
        named = {effect.anomaly.member, effect.anomaly.other_end}
        current = [fault for fault in self._run.faults if fault.start_s <= at_s <= fault.end_s + self._late_s]
        right = [fault for fault in current if named & set(map(member_name, fault.members))]
        if right:
            self._told.setdefault(right[0], Found(right[0].kind, at_s - right[0].start_s, is_first))
        elif any(named & set(map(member_name, fault.concerned)) for fault in current):
            self._concerned += 1
        else:
            self._false[effect.anomaly.verdict] += 1

    def outcome(self, days: float) -> Outcome:
        """Return what became of the faults of a run that took so many days."""
        missed = (Found(fault.kind, None, False) for fault in self._run.faults if fault not in self._told)
        found = (*self._told.values(), *missed)
        return Outcome(found, self._concerned, dict(self._false), self._run.members * days)


def judged(
    seed: int, hours: tuple[float, float, float], faults: int, kinds: Sequence[str], settings: Sequence[Anomaly]
) -> tuple[Outcome, ...]:
    """Have a fabric watched, with each of the settings at the same time."""
    calm_s, fault_s, between_s = (each * HOUR_S for each in hours)
    run = generated(seed, calm_s, fault_s, between_s, faults, POLL_S, kinds)
    watches = [Watch(run, each) for each in settings]
    for sample in run.samples():
        for watch in watches:
            watch.take(sample)
    days = (calm_s + faults * (fault_s + between_s)) / 86_400
    return tuple(watch.outcome(days) for watch in watches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; each has the next one")
    parser.add_argument("--hours", type=float, nargs=3, default=(8.0, 1.5, 2.0), help="calm, of a fault, after it")
    parser.add_argument("--faults", type=int, default=3, help="of each run, one after the other")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, help="of faults")
    parser.add_argument("--least-own-windows", type=int, default=Anomaly().least_own_windows, help="as in the policy")
    parser.add_argument("--margin", type=float, nargs="+", default=[Anomaly().margin], help="as in the policy")
    parser.add_argument(
        "--load-margin", type=float, nargs="+", default=[Anomaly().load_margin], help="as in the policy"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    seeds = range(args.seed, args.seed + args.runs)
    settings = [
        Anomaly(least_own_windows=args.least_own_windows, margin=margin, load_margin=of_loads)
        for margin in args.margin
        for of_loads in args.load_margin
    ]
    with ProcessPoolExecutor(args.jobs) as pool:
        given = tuple(args.hours), args.faults, args.kinds, settings
        futures = [pool.submit(judged, seed, *given) for seed in seeds]
        outcomes = list(zip(*(future.result() for future in futures), strict=True))
    for each, of_each in zip(settings, outcomes, strict=True):
        if len(outcomes) > 1:
            print(f"\nmargin {each.margin:g}, of loads {each.load_margin:g}")
        print_outcomes(of_each)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "unknown, of none"


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print which faults were told, by kind, and how often others were."""
    settings = Anomaly()
    two_windows_s = 2 * settings.interval_s * settings.window_samples
    found = [each for outcome in outcomes for each in outcome.found]
    rows = []
    for kind in (*KINDS, "all"):
        of = [each for each in found if kind in (each.kind, "all")]
        told = [each for each in of if each.told_after_s is not None]
        soon = sum(each.told_after_s is not None and each.told_after_s <= two_windows_s for each in told)
        rows.append((kind, len(of), len(told), soon, sum(each.ranked_first for each in told)))
    print_table(("fault", "made", "told", "within two windows", "first when told"), rows)
    right = Counter(each.kind in COMPONENT_KINDS for each in found if each.told_after_s is not None)
    false = sum((Counter(outcome.false) for outcome in outcomes), Counter[str]())
    days = sum(outcome.member_days for outcome in outcomes)
    wrong = false["component fault"]
    precision = _share(right.total(), right.total() + false.total())
    print(f"recall {_share(right.total(), len(found))}, precision {precision};")
    print(f"precision of component faults {_share(right[True], right[True] + wrong)};")
    print(f"told besides: {sum(outcome.concerned for outcome in outcomes)} members whose traffic a fault changed,")
    print(f"{false.total()} that none concerned, {wrong} of them as component faults")
    print(f"({false.total() / days:.3f} and {wrong / days:.4f} a member and day; {days:,.0f} member days)")


if __name__ == "__main__":
    main()
