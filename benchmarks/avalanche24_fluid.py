"""Fluid model of the article's emulation: what loss each algorithm's trees would show on avalanche24.

Six groups of three to six hosts, the first of each the sender at 2, 4, 6 or 8 Mbps; links of 10 Mbps in each
direction, host links included. A direction that is offered more than its capacity passes the same share of
every packet stream; what a receiver gets is the sender's rate times the shares along its way, each link being
offered what the links before it have let through. Run: python benchmarks/avalanche24_fluid.py --runs 200
"""

from __future__ import annotations

import argparse
from statistics import mean, stdev

import numpy as np

from controller.trees.forest import Forest
from controller.trees.network import switch_graph
from controller.trees.tree import TreeRole
from topology.generators import make

RATES_BPS = (2_000_000, 4_000_000, 6_000_000, 8_000_000)
GROUPS = 6
ROUNDS = 60
CASES = (
    ("pim-sm-fixed-core", "pim-sm-fixed-core", False),
    ("pim-sm-random-core", "pim-sm-random-core", False),
    ("pim-sm-static-uplink", "pim-sm-static-uplink", False),
    ("vsrt-literal", "vsrt-literal", False),
    ("vsrt, arrival order", "vsrt", False),
    ("vsrt, rebalanced", "vsrt", True),
)


def draw(generator: np.random.Generator, hosts: list) -> list:
    """Return the groups of one run as (hosts, rate)."""
    return [
        (
            [hosts[i] for i in generator.choice(len(hosts), size=int(generator.integers(3, 7)), replace=False)],
            int(generator.choice(RATES_BPS)),
        )
        for _ in range(GROUPS)
    ]


def grow(graph, groups, algorithm, rebalance, seed, rates_known) -> list:
    """Let the groups' hosts join one after the other and return each group's switch links."""
    forest = Forest(graph.copy(), algorithm, seed, default_rate_bps=5e6)
    for number, (members, rate) in enumerate(groups):
        for position, host in enumerate(members):
            forest.join(number, HOME[host], TreeRole.RECEIVER if position else TreeRole.SENDER)
            if not position and rates_known:
                forest.set_rate(number, HOME[host], rate)
    for number, (members, rate) in enumerate(groups):
        forest.set_rate(number, HOME[members[0]], rate)
    if rebalance:
        forest.rebalance(0.0)
    trees = [forest.tree(number) for number in range(len(groups))]
    return [list(tree.links()) for tree in trees if tree is not None]


def streams(links, members) -> list:
    """Return the directed links of one group from the sender's host outwards, each after the one that feeds it."""
    near: dict = {}
    for u, v in [*links, *((host, HOME[host]) for host in members)]:
        near.setdefault(u, []).append(v)
        near.setdefault(v, []).append(u)
    receivers = set(members[1:])
    feeds, order, todo = {}, [], [(members[0], None)]
    while todo:
        node, above = todo.pop()
        for other in near[node]:
            if other != above:
                feeds[node, other] = (above, node) if above is not None else None
                order.append((node, other))
                todo.append((other, node))
    wanted = {link for link in order if link[1] in receivers}
    for link in reversed(order):
        if link in wanted and feeds[link] is not None:
            wanted.add(feeds[link])
    return [(link, feeds[link]) for link in order if link in wanted]


def deliver(groups, trees, capacity_bps, only_hosts=False) -> tuple[float, float]:
    """Return the mean loss of the receivers in percent and what they get in all in Mbps."""
    ways = [streams(links, members) for (members, _), links in zip(groups, trees, strict=True)]
    share: dict = {}
    for _ in range(ROUNDS):
        offered: dict = {}
        passed = []
        for (_, rate), way in zip(groups, ways, strict=True):
            through: dict = {None: float(rate)}
            for link, before in way:
                offered[link] = offered.get(link, 0.0) + through[before]
                through[link] = through[before] * share.get(link, 1.0)
            passed.append(through)
        share = {
            link: min(1.0, capacity_bps / load)
            for link, load in offered.items()
            if not only_hosts or link[0] in HOME or link[1] in HOME
        }
    losses, total = [], 0.0
    for (members, rate), through, way in zip(groups, passed, ways, strict=True):
        last = {link[1]: link for link, _ in way}
        for host in members[1:]:
            got = through[last[host]]
            losses.append(100 * (1 - got / rate))
            total += got
    return mean(losses), total / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rates-later", action="store_true", help="rates are measured only after all have joined")
    args = parser.parse_args()
    fabric = make("avalanche24")
    hosts = fabric.hosts()
    HOME.update((host, fabric.neighbours(host)[0]) for host in hosts)
    graph = switch_graph(fabric)
    results: dict[str, list] = {}
    for seed in range(args.runs):
        groups = draw(np.random.default_rng(seed), hosts)
        for name, algorithm, rebalance in CASES:
            trees = grow(graph, groups, algorithm, rebalance, seed, not args.rates_later)
            results.setdefault(name, []).append(deliver(groups, trees, 1e7))
        results.setdefault("forced by the host links", []).append(deliver(groups, trees, 1e7, only_hosts=True))
    print(f"{'trees':28} {'loss %':>7} {'+-':>5} {'Mbps':>6}   ({args.runs} runs)")
    for name, rows in results.items():
        loss, rate = zip(*rows, strict=True)
        error = stdev(loss) / len(loss) ** 0.5 if len(loss) > 1 else 0.0
        print(f"{name:28} {mean(loss):7.1f} {error:5.2f} {mean(rate):6.1f}")


HOME: dict = {}

if __name__ == "__main__":
    main()
