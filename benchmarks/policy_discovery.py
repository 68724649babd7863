"""Policies found in generated logs of changes: by the cover, and by the published dendrogram cut at its largest gap.

python benchmarks/policy_discovery.py                  # eight kinds of logs, fresh ones at each run
python benchmarks/policy_discovery.py --published 100  # the published experiment, exact discoveries of 100 draws
python benchmarks/policy_discovery.py --sensitivity    # the same kinds with other values of constants
python benchmarks/policy_discovery.py --size           # time and memory of 1 million lines and of 10,000 x 200;
                                                       # with OMP_NUM_THREADS=1, for numpy's threads count too
"""

from __future__ import annotations

import argparse
import csv
import resource
import secrets
import tempfile
import time
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from generated_changes import KINDS, ChangedResources, TruePolicy, of_size, published

from apps.cli.change_file import COLUMNS, read_changes
from controller.policy_discovery import value_cover
from controller.policy_discovery.change_table import BASELINE, ChangeTable, tabulate
from controller.policy_discovery.cover import Block, cover
from controller.policy_discovery.dependence import Join, distances, single_linkage
from controller.policy_discovery.value_cover import cover_by_values
from controller.policy_discovery.varieties import DiscoveredPolicy, discovered

LEAST_F1 = 0.85
SENSITIVITY = {"LEAST_MEMBER": (0.4, 0.5, 0.6), "ROUNDS": (0, 1, 6), "TRIED": (6, 24, 48), "ITEMS": (256, 1024)}
"""Other values of constants that were chosen."""

ALIKE = 0.8
"""Jaccard index of the properties from which on a policy counts as found."""


def jaccard(one: Collection[int], other: Collection[int]) -> float:
    return len(set(one) & set(other)) / len(set(one) | set(other))


def matched(true: Sequence[TruePolicy], blocks: Sequence[Block]) -> list[tuple[TruePolicy, int]]:
    """Pairs of a true policy and the number of the block that is most like it, each once."""
    alike = sorted(
        (-jaccard(policy.columns, block.columns) * jaccard(policy.rows, block.rows), at, number)
        for at, policy in enumerate(true)
        for number, block in enumerate(blocks)
        if jaccard(policy.columns, block.columns) >= ALIKE
    )
    found: dict[int, int] = {}
    for _, at, number in alike:
        if at not in found and number not in found.values():
            found[at] = number
    return [(true[at], number) for at, number in found.items()]


def policies_f1(true: Sequence[TruePolicy], blocks: Sequence[Block]) -> float:
    if not true:
        return float(not blocks)
    return 2 * len(matched(true, blocks)) / (len(true) + len(blocks))


def members_f1(policy: TruePolicy, block: Block) -> float:
    return 2 * len(set(policy.rows) & set(block.rows)) / (len(policy.rows) + len(block.rows))


def exact_varieties(policy: TruePolicy, found: DiscoveredPolicy) -> list[bool]:
    """Whether each variety of a policy whose properties are found exactly has its values exactly."""
    told = {one.values for one in found.varieties}
    return [one.values in told for one in policy.varieties]


def largest_gap(log: ChangedResources) -> list[Block]:
    """The published method with a cut where the distance grows most: each node below it is a policy."""
    joins = [join for join in single_linkage(distances(log.indicator)) if np.isfinite(join.distance)]
    if len(joins) < 2:
        return []
    gaps = [later.distance / max(join.distance, 1e-9) for join, later in pairwise(joins)]
    parts: dict[int, Join] = {}
    for join in joins[: int(np.argmax(gaps)) + 1]:
        for column in join.members:
            parts[column] = join
    nodes = {join.members for join in parts.values()}
    return [
        Block(members, tuple(np.flatnonzero(log.indicator[:, members].mean(1) >= 0.6).tolist()), 0.0)
        for members in sorted(nodes)
    ]


def discovery_error(joins: Sequence[Join], policy: Collection[int]) -> int:
    """How many properties too many the smallest node has that holds all of a known policy (section 6)."""
    return min(len(join.members) for join in joins if set(policy) <= set(join.members)) - len(policy)


def logs(seed: int, draws: int, kinds: Sequence[str]) -> None:
    print("| kind | F1 | least | below 0.85 | F1, largest gap | members' F1 | varieties exact |")
    print("|---|---|---|---|---|---|---|")
    means = []
    for kind in kinds:
        make = KINDS[kind]
        scores, peers, members, varieties = [], [], [], []
        for draw in range(draws):
            log = make(np.random.default_rng([seed, draw]))
            final = np.where(log.indicator, log.values, BASELINE)
            blocks = cover_by_values(cover(log.indicator, log.applicable), final, log.applicable)
            policies = discovered(blocks, log.indicator, final, log.applicable)
            scores.append(policies_f1(log.policies, blocks))
            peers.append(policies_f1(log.policies, largest_gap(log)))
            for policy, number in matched(log.policies, blocks):
                members.append(members_f1(policy, blocks[number]))
                if policy.columns == blocks[number].columns:
                    varieties += exact_varieties(policy, policies[number])
        of_members = f"{np.mean(members):.3f}" if members else "-"
        of_varieties = f"{np.mean(varieties):.3f}" if varieties else "-"
        below = sum(score < LEAST_F1 for score in scores)
        of_policies = f"{np.mean(scores):.3f} | {min(scores):.2f} | {below} | {np.mean(peers):.2f}"
        figures = f"{of_policies} | {of_members} | {of_varieties}"
        print(f"| {kind} | {figures} |", flush=True)
        means.append(np.mean(scores))
    print(f"mean of the kinds: {np.mean(means):.3f}")


def sensitivity(seed: int, draws: int, kinds: Sequence[str]) -> None:
    """Mean F1 of policies and of members over all kinds, with other values of the constants of the second look."""
    begun = []
    for kind in kinds:
        for draw in range(draws):
            log = KINDS[kind](np.random.default_rng([seed, draw]))
            begun.append((log, np.where(log.indicator, log.values, BASELINE), cover(log.indicator, log.applicable)))
    print("| constant | value | F1 | least | members' F1 |\n|---|---|---|---|---|")
    for name, values in SENSITIVITY.items():
        kept = getattr(value_cover, name)
        for value in values:
            setattr(value_cover, name, value)
            scores, members = [], []
            for log, final, blocks in begun:
                found = value_cover.cover_by_values(blocks, final, log.applicable)
                scores.append(policies_f1(log.policies, found))
                members += [members_f1(policy, found[at]) for policy, at in matched(log.policies, found)]
            mean = f"{np.mean(scores):.4f} | {min(scores):.2f} | {np.mean(members):.4f}"
            print(f"| `{name}` | {value}{' (as it is)' if value == kept else ''} | {mean} |", flush=True)
        setattr(value_cover, name, kept)


def experiment(seed: int, draws: int) -> None:
    print("| resources | noise | exact, cover | exact, dendrogram |\n|---|---|---|---|")
    for members, noise in ((10, 0.0), (10, 0.05), (10, 0.1), (40, 0.15), (40, 0.2)):
        exact = known = 0
        for draw in range(draws):
            log = published(np.random.default_rng([seed, draw]), members, noise)
            (policy,) = log.policies
            exact += [block.columns for block in cover(log.indicator)] == [policy.columns]
            known += discovery_error(single_linkage(distances(log.indicator)), policy.columns) == 0
        print(f"| {members} | {noise:.0%} | {exact / draws:.0%} | {known / draws:.0%} |", flush=True)


def tabled(lines: int, seed: int) -> ChangeTable:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, (10_000, 200, 8, 8), (lines, 4)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changes.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for at_s, (row, column, old, new) in enumerate(codes):
                writer.writerow((1.79e9 + at_s, f"port-{row:05d}", "port", f"p{column:03d}", f"v{old}", f"v{new}"))
        start_s = time.perf_counter()
        table = tabulate(read_changes([path]).changes)
        print(f"{lines:,} lines tabled in {time.perf_counter() - start_s:.1f} s: {table.indicator.shape}")
    return table


def sizes(seed: int) -> None:
    tabled(1_000_000, seed)
    for resources, properties in ((1000, 40), (10_000, 100), (10_000, 200)):
        log = of_size(np.random.default_rng(seed), resources, properties)
        start_s = time.process_time()
        final = np.where(log.indicator, log.values, BASELINE)
        blocks = cover_by_values(cover(log.indicator), final, log.applicable)
        took_s = time.process_time() - start_s
        f1 = policies_f1(log.policies, blocks)
        print(f"{resources:,} x {properties}: {took_s:.1f} s of processor time, F1 {f1:.2f}")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10, help="logs of each kind")
    parser.add_argument("--seed", type=int, default=None, help="for the same logs again (default: others each time)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of logs (default: all)")
    parser.add_argument("--published", type=int, metavar="DRAWS", help="the published experiment")
    parser.add_argument("--sensitivity", action="store_true", help="with other values of constants")
    parser.add_argument("--size", action="store_true", help="time and memory")
    args = parser.parse_args()
    seed = secrets.randbits(32) if args.seed is None else args.seed
    print(f"seed {seed}")
    if args.size:
        sizes(seed)
    elif args.sensitivity:
        sensitivity(seed, args.draws, args.kinds)
    elif args.published:
        experiment(seed, args.published)
    else:
        logs(seed, args.draws, args.kinds)


if __name__ == "__main__":
    main()
