"""The choice of a tree for one group after the other: plain loops over flat sequences, as numba compiles them.

`Vsrt.choose` (`controller.trees.builders.vsrt`) says what is chosen; the sums are formed in the same order here, so
that the same trees come out of it where the loads are the same in both directions. Interpreted, the sequences are
lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

UNREACHED = -2
"""In place of a core: no tree of optimal size is alive."""

MASK = 0xFFFFFFFFFFFFFFFF

Flat = Sequence[Any]


def place_in_order(
    shape: tuple[int, int, int],
    order: Flat,
    offsets: Flat,
    tors: Flat,
    rates: Flat,
    salts: Flat,
    tor_pod: Flat,
    lower: Flat,
    upper: Flat,
    first: Flat,
    last: Flat,
    headless: Flat,
    aggregation_hash: Flat,
    core_hash: Flat,
    capacity: Flat,
    load: Any,
    core_of: Any,
    picks: Any,
    links: Any,
    pods: Any,
    busy: Any,
    total: Any,
    trial: Any,
    kept: Any,
) -> None:
    """Choose and account the trees of the groups in `order`.

    Parameters
    ----------
    shape
        Pods, positions of aggregations in a pod, cores.
    order, offsets, tors, rates, salts
        The groups, `controller.trees.bulk.groups.Groups` and numbers that decide between equals.
    tor_pod, lower, upper, headless, aggregation_hash, core_hash
        `controller.trees.bulk.fabric.TierWiring`, flat.
    first, last
        Of each core the first position of aggregations under it in any pod, and the one after the last.
    capacity, load
        Of every cable in bps; `load` grows.
    core_of
        Out: number of the core of each group, -1 for none, `UNREACHED` where no tree of optimal size is alive.
    picks
        Out: position of the aggregation over each switch with members, -1 for none.
    links
        Out: links of each tree.
    pods, busy, total, trial, kept
        Room for as many entries as there are pods, pods times positions (twice), pods (twice).
    """
    _, width, cores = shape
    for g in order:
        begin, end = offsets[g], offsets[g + 1]
        core_of[g] = -1
        links[g] = 0
        for i in range(begin, end):
            picks[i] = -1
        if end - begin <= 1:
            continue
        rate, salt = rates[g], salts[g]
        # The links of the switches with members, per pod that they are in and aggregation there.
        count = 0
        before = -1
        for i in range(begin, end):
            tor = tors[i]
            pod = tor_pod[tor]
            if pod != before:
                before = pod
                pods[count] = pod
                for k in range(width):
                    busy[count * width + k] = 0.0
                    total[count * width + k] = 0.0
                count += 1
            row = (count - 1) * width
            for k in range(width):
                cable = lower[tor * width + k]
                if cable < 0:
                    busy[row + k] = inf
                else:
                    use = (load[cable] + rate) / capacity[cable]
                    total[row + k] += use
                    if use > busy[row + k]:
                        busy[row + k] = use
        least, least_sum, least_tie, chosen = inf, inf, salt, -1
        if count == 1:
            pod = pods[0]
            alone = True
            for k in range(width):
                if busy[k] == inf:
                    continue
                tie = salt * aggregation_hash[pod * width + k] & MASK
                beheaded = headless[pod * width + k]
                if chosen < 0 or (not beheaded and alone):
                    better = True
                elif beheaded != alone:
                    better = False
                elif busy[k] != least:
                    better = busy[k] < least
                elif total[k] != least_sum:
                    better = total[k] < least_sum
                else:
                    better = tie < least_tie
                if better:
                    least, least_sum, least_tie, chosen, alone = busy[k], total[k], tie, k, beheaded
            if chosen < 0:
                core_of[g] = UNREACHED
                continue
            links[g] = end - begin
            for i in range(begin, end):
                picks[i] = chosen
                load[lower[tors[i] * width + chosen]] += rate
            continue
        for core in range(cores):
            busiest, whole = 0.0, 0.0
            for j in range(count):
                pod = pods[j]
                best, best_sum, best_tie, found = inf, inf, salt, -1
                for k in range(first[core], last[core]):
                    cable = upper[(pod * width + k) * cores + core]
                    if cable < 0 or busy[j * width + k] == inf:
                        continue
                    use = (load[cable] + rate) / capacity[cable]
                    most = max(use, busy[j * width + k])
                    both = total[j * width + k] + use
                    if found < 0 or most < best or (most == best and both <= best_sum):
                        tie = salt * aggregation_hash[pod * width + k] & MASK
                        if found < 0 or most < best or both < best_sum or tie < best_tie:
                            best, best_sum, best_tie, found = most, both, tie, k
                if found < 0:
                    busiest = inf
                    break
                trial[j] = found
                whole += best_sum
                if best > busiest:
                    busiest = best
                    if busiest > least:
                        break
            if busiest == inf or busiest > least or (busiest == least and whole > least_sum):
                continue
            tie = salt * core_hash[core] & MASK
            if chosen < 0 or busiest < least or whole < least_sum or tie < least_tie:
                least, least_sum, least_tie, chosen = busiest, whole, tie, core
                for j in range(count):
                    kept[j] = trial[j]
        if chosen < 0:
            core_of[g] = UNREACHED
            continue
        core_of[g] = chosen
        links[g] = end - begin + count
        j = -1
        before = -1
        for i in range(begin, end):
            tor = tors[i]
            pod = tor_pod[tor]
            if pod != before:
                before = pod
                j += 1
                load[upper[(pod * width + kept[j]) * cores + chosen]] += rate
            picks[i] = kept[j]
            load[lower[tor * width + kept[j]]] += rate
