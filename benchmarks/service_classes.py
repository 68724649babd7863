"""Service classes: aliases, queues by goals, and paths of large flows, each beside its anchors in the same run.

Run: PYTHONPATH=. python benchmarks/service_classes.py [--seed N] [--runs N] [PART ...]
"""

from __future__ import annotations

import argparse
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from time import process_time
from typing import NamedTuple

import numpy as np
from alias_decisions import alias_decisions
from measure import print_table, summarise

from controller.config.service_classes import ServiceClass
from controller.kernel.hashing import stable_hash
from controller.queues.measures import switch_uses
from controller.queues.port_queues import PortQueues
from controller.queues.settings import QueueSettings
from controller.service_classes.clusters import REFRESH_S
from controller.service_classes.elephants import LargeFlows, least_loaded
from controller.service_classes.goals import Goal, GoalKind
from controller.service_classes.rates import PortClass, are_short, are_to_be_written, queue_rates
from controller.service_classes.split import split
from controller.simulation.aliases import place_aliased
from controller.simulation.data_centre import DataCentre
from controller.simulation.outcome import least_max_pct
from controller.simulation.rates import RateDistribution
from controller.simulation.workload import Workload, generate
from controller.trees.forest import Forest
from controller.trees.tree import TreeRole
from topology.generators import make
from topology.graph import Graph, NodeKind

Samples = dict[str, list[float]]


def trees(seeds: Sequence[int]) -> Samples:
    """Busiest link over its bound on portland-p6, tenants, with one tree per group and with up to ten aliases."""
    centre = DataCentre(make("portland-p6"))
    found: Samples = {}
    for name, rates in (("Pareto 1.2", RateDistribution(1.2)), ("even rates", RateDistribution())):
        for seed in seeds:
            groups = generate(centre, Workload(placement="tenant", rates=rates), seed)
            bound = least_max_pct(centre, groups)
            for aliases in (0, 10):
                placed = place_aliased(centre, groups, "vsrt", seed, aliases, bound)
                busiest = 100 * float((placed.trees.load_bps / centre.capacity_bps).max())
                kind = "up to 10 aliases" if aliases else "one tree"
                found.setdefault(f"{name}, {kind}: busiest link / bound", []).append(busiest / bound)
                if aliases:
                    found.setdefault(f"{name}: aliases used", []).append(placed.used)
    return found


def spines(seeds: Sequence[int]) -> Samples:
    """Throughput of 8 senders of one group over spines of 10 Mbit/s, with 0, 1 and 3 aliases, over that with none.

    A tree carries no more than its fullest link lets through. The trees are those of the controller's forest.
    """
    found: Samples = {}
    link_bps, offered_bps = 10_000_000, 40_000_000
    for seed in seeds:
        base = 0.0
        for aliases in (0, 1, 3):
            graph = Graph()
            for number in range(4):
                graph.add_node(f"spine{number}", NodeKind.CORE)
            for number in range(4):
                graph.add_node(f"leaf{number}", NodeKind.TOR)
                for above in range(4):
                    graph.add_link(f"leaf{number}", f"spine{above}", capacity_bps=link_bps)
            # What a tree carries from one leaf, where all senders are, to the receivers at another.
            rate = offered_bps / 8
            senders = {number: rate * (1 + seed % 7 / 100 * (number - 3.5) / 3.5) for number in range(8)}
            shares = split(senders, range(aliases + 1))
            forest = Forest(graph, seed=seed)
            carried: dict[str, float] = {}
            for number in range(aliases + 1):
                share = sum(senders[flow] for flow, place in shares.items() if place == number)
                forest.set_group_rate(number, share)
                for leaf in ("leaf0", "leaf1"):
                    forest.join(number, leaf, TreeRole.RECEIVER)
                tree = forest.tree(number)
                assert tree is not None
                spine = next(node for node in map(str, tree.parent) if node.startswith("spine"))
                carried[spine] = carried.get(spine, 0.0) + share
            passed = sum(min(link_bps, load) for load in carried.values())
            base = base or passed
            found.setdefault(f"{aliases} aliases: throughput / that of none", []).append(passed / base)
    return found


def max_min(paths: Sequence[Sequence[tuple[int, int]]], limit: float = 1.0) -> list[float]:
    """Return the max-min fair rates of flows over links of capacity 1, none above `limit`."""
    users: dict[tuple[int, int], set[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            users.setdefault(link, set()).add(flow)
    left = dict.fromkeys(users, 1.0)
    rates = [limit] * len(paths)
    waiting = set(range(len(paths)))
    while waiting:
        share, tightest = min(
            ((left[link] / len(on), link) for link, on in users.items() if on), default=(limit, None)
        )
        if tightest is None or share >= limit:
            break
        for flow in list(users[tightest]):
            rates[flow] = share
            waiting.discard(flow)
            for link in paths[flow]:
                users[link].discard(flow)
                left[link] -= share
    return rates


class FatTree:
    """Paths between edge switches of a fat tree: by core inside and outside pods; directed links by node numbers."""

    def __init__(self, k: int) -> None:
        self.half = k // 2
        self.hosts = k**3 // 4

    def paths(self, source: int, target: int) -> list[list[tuple[int, int]]]:
        half = self.half
        edge_a, edge_b = source // half, target // half
        pod_a, pod_b = edge_a // half, edge_b // half
        if edge_a == edge_b:
            return [[]]

        def up(edge: int, agg: int) -> int:
            return 1000 + edge // half * half + agg

        if pod_a == pod_b:
            return [[(edge_a, up(edge_a, agg)), (up(edge_a, agg), edge_b)] for agg in range(half)]
        found = []
        for core in range(half * half):
            agg, top = core // half, 2000 + core
            found.append(
                [(edge_a, up(edge_a, agg)), (up(edge_a, agg), top), (top, up(edge_b, agg)), (up(edge_b, agg), edge_b)]
            )
        return found


def permutation(generator: random.Random, count: int) -> list[int]:
    """Return who each host sends to: each to another, each receives once."""
    while True:
        order = list(range(count))
        generator.shuffle(order)
        if all(host != target for host, target in enumerate(order)):
            return order


def global_first_fit(choices: Sequence[list[list[tuple[int, int]]]], hashed: Sequence[int]) -> list[int]:
    """Return the paths of Hedera's global first fit: the first with room for a full-rate flow, else the hash's."""
    reserved: dict[tuple[int, int], float] = {}
    picks = []
    for flow, paths in enumerate(choices):
        fits = (n for n, path in enumerate(paths) if all(reserved.get(link, 0.0) + 1 <= 1 for link in path))
        pick = next(fits, None)
        if pick is not None:
            for link in paths[pick]:
                reserved[link] = reserved.get(link, 0.0) + 1
        picks.append(hashed[flow] if pick is None else pick)
    return picks


def annealed(
    choices: Sequence[list[list[tuple[int, int]]]], generator: random.Random, steps: int = 20_000
) -> list[int]:
    """Return the paths of simulated annealing as Hedera's: least demand beyond capacity, summed over links."""
    picks = [generator.randrange(len(paths)) for paths in choices]
    load: dict[tuple[int, int], int] = {}
    for flow, pick in enumerate(picks):
        for link in choices[flow][pick]:
            load[link] = load.get(link, 0) + 1

    for step in range(steps):
        flow = generator.randrange(len(choices))
        if len(choices[flow]) == 1:
            continue
        before, after = choices[flow][picks[flow]], (number := generator.randrange(len(choices[flow])))
        gone = sum(load[link] > 1 for link in before)
        for link in before:
            load[link] -= 1
        come = sum(load.get(link, 0) > 0 for link in choices[flow][after])
        hot = 1.0 - step / steps
        keeps = come > gone and generator.random() >= np.exp(-(come - gone) / max(1e-3, 0.3 * hot))
        for link in before if keeps else choices[flow][number]:
            load[link] = load.get(link, 0) + 1
        if not keeps:
            picks[flow] = number
    return picks


FULL_RATE = 0.99
"""Rate from which on a flow is left where it is."""


def elephants(seeds: Sequence[int], k: int = 8, polls: int = 20) -> Samples:
    """Mean rate of a permutation of full-rate flows on a fat tree, as a part of what hosts can send."""
    fabric = FatTree(k)
    found: Samples = {}
    for seed in seeds:
        generator = random.Random(seed)
        targets = permutation(generator, fabric.hosts)
        choices = [fabric.paths(source, target) for source, target in enumerate(targets)]
        hashed = [generator.randrange(len(paths)) for paths in choices]

        def rates(picks: Sequence[int], choices: Sequence = choices) -> list[float]:
            return max_min([choices[flow][pick] for flow, pick in enumerate(picks)])

        picks, flows = list(hashed), LargeFlows[int]()
        for poll in range(polls):
            measured = dict(enumerate(rates(picks)))
            large = flows.polled(measured, dict.fromkeys(measured, 1.0))
            load: dict[tuple[int, int], float] = {}
            for flow, pick in enumerate(picks):
                for link in choices[flow][pick]:
                    load[link] = load.get(link, 0.0) + 1
            for flow in (flow for flow in large if measured[flow] < FULL_RATE):
                for link in choices[flow][picks[flow]]:
                    load[link] -= 1
                capacity = dict.fromkeys({link for path in choices[flow] for link in path}, 1.0)
                picks[flow] = least_loaded(choices[flow], load, capacity, stable_hash(flow, poll) >> 1)
                for link in choices[flow][picks[flow]]:
                    load[link] = load.get(link, 0.0) + 1
        found.setdefault("ECMP (hash)", []).append(mean(rates(hashed)))
        found.setdefault("Hedera, global first fit", []).append(mean(rates(global_first_fit(choices, hashed))))
        found.setdefault("Hedera, simulated annealing", []).append(mean(rates(annealed(choices, generator))))
        found.setdefault(f"entries on the least loaded equal path, {polls} polls", []).append(mean(rates(picks)))
    return found


PORT_BPS = 10_000_000
PACKET_BITS = 12_000
STEP_S = PACKET_BITS / PORT_BPS
INTERVAL_S = 2.0
SETTLING = 2


class PortLoad(NamedTuple):
    """What class 1 offers of the port, and from when to when in a run it offers 110 % instead."""

    offers: float
    excess_from_s: float
    excess_to_s: float
    duration_s: float


LOADS = {
    "class 1 over-offers": PortLoad(0.4, 0.0, 100.0, 100.0),
    "no excess": PortLoad(0.4, 0.0, 0.0, 100.0),
    "100 s of excess in 330 s": PortLoad(0.3, 115.0, 215.0, 330.0),
    "the same load without excess": PortLoad(0.3, 0.0, 0.0, 330.0),
}


def port_run(seed: int, policy: str, load: PortLoad) -> tuple[float, float]:
    """Return the part of intervals in which class 2 meets 2 ms, and the longest wait of class 6 in seconds.

    Intervals are those after which rates are decided; the first `SETTLING` of them, before rates follow, are left out
    whatever the policy. One packet leaves in a step.

    Class 1 has a rate goal of half the port; class 2 offers 20 % in bursts and has a delay goal; class 6 always has
    something to send.
    """
    generator = np.random.default_rng(seed)
    steps = int(load.duration_s / STEP_S)
    first = np.full(steps, load.offers)
    first[int(load.excess_from_s / STEP_S) : int(load.excess_to_s / STEP_S)] = 1.1
    arrivals = {"1": generator.poisson(first), "2": generator.poisson(0.2, steps)}
    goals = {"1": Goal(GoalKind.RATE, PORT_BPS / 2), "2": Goal(GoalKind.DELAY, 2.0), "6": None}
    importance = {"1": 1, "2": 2, "6": 6}
    queues: dict[str, deque[int]] = {name: deque() for name in goals}
    tokens = dict.fromkeys(goals, 0.0)
    fixed = dict.fromkeys(goals, PORT_BPS // 3)
    sure: dict[str, int] = fixed if policy == "fixed" else {}
    counted = dict.fromkeys(goals, 0)
    delays: list[float] = []
    met: list[bool] = []
    last_served, longest = 0, 0
    per_interval = int(INTERVAL_S / STEP_S)
    for step in range(steps):
        for name, counts in arrivals.items():
            counted[name] += int(counts[step])
            for _ in range(int(counts[step])):
                if len(queues[name]) < 1000:
                    queues[name].append(step)
        if not queues["6"]:
            queues["6"].append(step)
        if policy == "goal" and step % per_interval == 0 and (step or not sure):
            offered_bps = {n: counted[n] * PACKET_BITS / (per_interval * STEP_S) for n in ("1", "2")}
            classes = [PortClass(n, importance[n], offered_bps.get(n, PORT_BPS), 1500, goals[n]) for n in goals]
            wanted = queue_rates(PORT_BPS, 1, classes).min_rate_bps
            now_bps, wanted_bps, offered = (
                np.array([[by_name.get(n, PORT_BPS) for n in goals]], dtype=np.float64)
                for by_name in (sure, wanted, offered_bps)
            )
            if (
                not sure
                or are_to_be_written(now_bps, wanted_bps, PORT_BPS)[0]
                or are_short(now_bps, wanted_bps, offered)[0]
            ):
                sure = wanted
            counted = dict.fromkeys(goals, 0)
        served = None
        for name in goals:
            # As a token bucket: what is not used is kept for two packets at most.
            tokens[name] = min(2.0, tokens[name] + sure.get(name, 0) / PORT_BPS)
        if policy != "strict":
            ready = [name for name in goals if queues[name] and tokens[name] >= 1]
            served = ready[0] if ready else None
        if served is not None:
            tokens[served] -= 1
        else:
            served = next(name for name in goals if queues[name])
        came = queues[served].popleft()
        if served == "2":
            delays.append((step - came) * STEP_S)
        if served == "6":
            last_served = step
        longest = max(longest, step - last_served)
        if (step + 1) % per_interval == 0:
            waiting = (step - queues["2"][0]) * STEP_S if queues["2"] else 0.0
            met.append((mean(delays) if delays else 0.0) <= 0.002 and waiting <= 0.1)
            delays = []
    return 100 * mean(met[SETTLING:]), longest * STEP_S


def port(seeds: Sequence[int]) -> Samples:
    """A port with a class that over-offers: how often the next meets its goal, and how long the last one waits."""
    found: Samples = {}
    for name, load in LOADS.items():
        for policy in ("strict", "fixed", "goal"):
            for seed in seeds:
                met_pct, longest_s = port_run(seed, policy, load)
                found.setdefault(f"{name}, {policy}: class 2 meets 2 ms, % of intervals", []).append(met_pct)
                found.setdefault(f"{name}, {policy}: longest discretionary wait, s", []).append(longest_s)
    return found


SWITCHES, SWITCH_PORTS, QUEUE_COUNT = 320, 16, 6
"""Those of a fat tree with k = 16, and the queues of classes at each port."""


def deciding(seeds: Sequence[int]) -> Samples:
    """Processor time, in ms, to decide the rates of all queues of a fabric, by how many ports have other loads."""
    goals = (
        *(Goal(GoalKind.RATE, 4e9), Goal(GoalKind.DELAY, 2.0), Goal(GoalKind.LOSS, 0.1)),
        *(Goal(GoalKind.VELOCITY, 20.0), Goal(GoalKind.RATE, 1e9), None),
    )
    classes = tuple(ServiceClass(f"class {n}", n, any_host=True, goal=goal) for n, goal in enumerate(goals, 1))
    capacity_bps, found = 1e10, {}
    for seed in seeds:
        generator = random.Random(seed)
        ports = PortQueues(QueueSettings("goal", 1.0, 2.0, (), classes, 0.0), 0.0)
        places = [(dpid, port_no) for dpid in range(1, SWITCHES + 1) for port_no in range(1, SWITCH_PORTS + 1)]
        for place in places:
            ports.rates(*place, capacity_bps, None)
        rates = {dpid: np.zeros((SWITCH_PORTS, QUEUE_COUNT)) for dpid in range(1, SWITCHES + 1)}
        rows = np.indices((SWITCH_PORTS, QUEUE_COUNT)).reshape(2, -1).T + 1
        keys = {dpid: rows.astype(np.uint64) for dpid in rates}
        changes = (
            *(("for the first time, all ports", 1.0), ("all ports changed", 1.0)),
            *(("a tenth of the ports changed", 0.1), ("no port changed", 0.0)),
        )
        for what, share in changes:
            for dpid, port_no in places:
                if generator.random() < share:
                    rates[dpid][port_no - 1] = [generator.uniform(0, capacity_bps / 4) for _ in range(QUEUE_COUNT)]
            took_ms = []
            for dpid, here in rates.items():
                bps = here.flatten()
                uses = switch_uses(keys[dpid], bps, bps / 8000, np.zeros_like(bps))
                began_s = process_time()
                ports.measured(dpid, uses)
                took_ms.append(1000 * (process_time() - began_s))
            found.setdefault(f"{what}: all switches, ms", []).append(sum(took_ms))
            found.setdefault(f"{what}: longest turn (one switch), ms", []).append(max(took_ms))
        began_s = process_time()
        ports.on_deadline(REFRESH_S)
        found.setdefault("clusters made anew, every 10 min, ms", []).append(1000 * (process_time() - began_s))
    return found


PARTS: Mapping[str, Callable[[Sequence[int]], Samples]] = {
    "trees": trees,
    "spines": spines,
    "elephants": elephants,
    "port": port,
    "deciding": deciding,
    "aliases": alias_decisions,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31), help="the first seed")
    parser.add_argument("--runs", type=int, default=16, help="seeds, one after the other (default: %(default)s)")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no part: {', '.join(sorted(unknown))}")
    seeds = range(args.seed, args.seed + args.runs)
    print(f"seeds {seeds[0]} to {seeds[-1]}")
    for name in args.parts or PARTS:
        print(f"\n{name}\n")
        rows = []
        for what, samples in PARTS[name](seeds).items():
            found = summarise(samples)
            rows.append(
                [what, found.median, found.first_quartile, found.third_quartile, found.minimum, found.maximum]
            )
        print_table(["", "median", "first quartile", "third quartile", "least", "most"], rows)


if __name__ == "__main__":
    main()
