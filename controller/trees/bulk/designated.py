"""Trees in a fabric of tiers that grow and shrink by one ToR at a time, with little more than a number per pod."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf

import numpy as np

from controller.trees.builders.vsrt import BUSY, UNEVEN
from controller.trees.bulk.fabric import NONE, BulkFabric, Numbers
from controller.trees.bulk.groups import Groups
from controller.trees.bulk.kernel import MASK, UNREACHED
from controller.trees.bulk.placement import place_one
from controller.trees.bulk.searched import search

Option = tuple[int, int]
"""Position of an aggregation, and the cable from it to a core."""


class DesignatedTrees:
    """What `controller.trees.builders.vsrt.Vsrt.path` does, for groups and ToRs that are numbers.

    The aggregation of a pod is designated when a second ToR of it joins or the tree reaches a second pod, the core
    when it reaches a second pod; both stay while they are on the tree. Where a dead link stands in the way, or the
    link of a further pod to the core would be crowded, the tree is chosen anew.

    Attributes
    ----------
    load_bps
        Of every cable.
    """

    def __init__(self, fabric: BulkFabric, rates_bps: Sequence[int], salts: Sequence[int], seed: int) -> None:
        wiring = fabric.wiring
        if wiring is None:
            raise ValueError("a graph without a cycle has no designated nodes")
        self.load_bps = [0] * len(fabric.links)
        self._fabric, self._rates, self._salts, self._seed = fabric, rates_bps, salts, seed
        self._pod_count, self._width, self._core_count = wiring.upper.shape
        self._tor_pod: list[int] = wiring.tor_pod.tolist()
        self._lower: list[list[int]] = wiring.lower.tolist()
        self._upper: list[list[list[int]]] = wiring.upper.tolist()
        self._headless: list[list[bool]] = wiring.headless.tolist()
        self._hashes: list[list[int]] = wiring.aggregation_hash.tolist()
        self._core_hash: list[int] = wiring.core_hash.tolist()
        self._capacity: list[float] = fabric.capacity_bps.tolist()
        self._below = [[self._options(p, c) for p in range(self._pod_count)] for c in range(self._core_count)]
        """By core and pod."""
        self._uplinks = [[c for row in rows for c in row if c != NONE] for rows in self._upper]
        self._uplinks_bps = [fsum(self._capacity[c] for c in cables) for cables in self._uplinks]
        count = len(rates_bps)
        self._size = [0] * count
        self._tors = [0] * count
        """The exclusive or of the ToRs of each group: the ToR itself where there is one."""
        self._pods: dict[int, int] = {}
        """By group and pod: ToRs there times the positions of a pod, plus the position of the aggregation."""
        self._touched = [0] * count
        self._touching = [0] * count
        """Pods of each group, and their exclusive or."""
        self._core = [NONE] * count
        self._odd: dict[int, Numbers] = {}
        """Cables of the trees that had to be searched."""

    def _options(self, pod: int, core: int) -> list[Option]:
        return [(k, row[core]) for k, row in enumerate(self._upper[pod]) if row[core] != NONE]

    def sizes(self) -> Numbers:
        """Return the links of each tree."""
        size, touched = np.array(self._size), np.array(self._touched)
        links = np.where(size > 1, size + np.where(np.array(self._core) != NONE, touched, 0), 0)
        for group, cables in self._odd.items():
            links[group] = len(cables)
        return links

    def cables(self, group: int, tors: Sequence[int]) -> Numbers:
        """Return the cables of a group's tree, whose ToRs are `tors`, ascending."""
        if group in self._odd:
            return self._odd[group]
        if len(tors) <= 1:
            return np.zeros(0, dtype=np.int64)
        found, core = set(), self._core[group]
        for tor in tors:
            pod = self._tor_pod[tor]
            k = self._pods[group * self._pod_count + pod] % self._width
            found.add(self._lower[tor][k])
            if core != NONE:
                found.add(self._upper[pod][k][core])
        return np.array(sorted(found), dtype=np.int64)

    def enter(self, group: int, tor: int) -> bool:
        """Add a ToR; False where that takes `renew`, and nothing was done."""
        if group in self._odd:
            return False
        pod, rate, width = self._tor_pod[tor], self._rates[group], self._width
        at = group * self._pod_count + pod
        entry = self._pods.get(at)
        size = self._size[group]
        load = self.load_bps
        if size > 1 and entry is not None:
            cable = self._lower[tor][entry % width]
            if cable == NONE:
                return False
            load[cable] += rate
            self._pods[at] = entry + width
        elif size > 1:
            core, salt = self._core[group], self._salts[group]
            if core != NONE:
                chosen = self._aggregation(salt, tor, pod, core, rate)
                if chosen is not None and self._is_crowded(pod, chosen[1], rate):
                    return False
            else:
                core, chosen = self._second_pod(group, salt, tor, pod, rate)
            if chosen is None:
                return False
            k, cable = chosen
            load[self._lower[tor][k]] += rate
            load[cable] += rate
            self._pods[at] = width + k
            self._core[group] = core
        elif not size:
            self._pods[at] = width
        elif not self._second_tor(group, tor, self._tors[group], rate):
            return False
        self._size[group] = size + 1
        self._tors[group] ^= tor
        if entry is None:
            self._touched[group] += 1
            self._touching[group] ^= pod
        return True

    def leave(self, group: int, tor: int) -> bool:
        """Take a ToR away; False where that takes `renew`, and nothing was done."""
        if group in self._odd:
            return False
        pod, rate, width = self._tor_pod[tor], self._rates[group], self._width
        at = group * self._pod_count + pod
        entry = self._pods[at]
        size = self._size[group] - 1
        load, core = self.load_bps, self._core[group]
        if size:
            load[self._lower[tor][entry % width]] -= rate
        if entry >= 2 * width:
            self._pods[at] = entry - width
        else:
            del self._pods[at]
            self._touched[group] -= 1
            self._touching[group] ^= pod
            if core != NONE:
                load[self._upper[pod][entry % width][core]] -= rate
        self._size[group] = size
        self._tors[group] ^= tor
        if self._touched[group] == 1 and (core != NONE or size == 1):
            # What is left is within one pod, and needs no core; one ToR needs no link at all.
            last = self._touching[group]
            at = group * self._pod_count + last
            k = self._pods[at] % width
            if core != NONE:
                load[self._upper[last][k][core]] -= rate
                self._core[group] = NONE
            if size == 1:
                load[self._lower[self._tors[group]][k]] -= rate
                self._pods[at] = width
        return True

    def renew(self, group: int, before: Sequence[int], tors: Sequence[int]) -> None:
        """Choose the tree over `tors` anew, after one over `before`."""
        rate = self._rates[group]
        for cable in self.cables(group, before).tolist():
            self.load_bps[cable] -= rate
        self._odd.pop(group, None)
        for tor in before:
            self._pods.pop(group * self._pod_count + self._tor_pod[tor], None)
        self._size[group] = self._tors[group] = self._touched[group] = self._touching[group] = 0
        self._core[group] = NONE
        core, picks = place_one(self._fabric, tors, rate, self._salts[group], self.load_bps)
        if core == UNREACHED:
            alone = Groups.of([0, len(tors)], np.array(tors), [rate], len(self._tor_pod))
            load_bps = np.array(self.load_bps, dtype=np.int64)
            searched, _ = search(self._fabric, alone, [0], load_bps, self._seed)
            self.load_bps[:] = load_bps.tolist()
            self._odd[group] = searched[0]
            return
        self._core[group] = core
        self._size[group] = len(tors)
        for tor, k in zip(tors, picks, strict=True):
            pod = self._tor_pod[tor]
            at = group * self._pod_count + pod
            self._tors[group] ^= tor
            if at not in self._pods:
                self._touched[group] += 1
                self._touching[group] ^= pod
                self._pods[at] = max(k, 0)
            self._pods[at] += self._width

    def _second_tor(self, group: int, tor: int, first: int, rate: int) -> bool:
        """Choose and account the way between two ToRs; the caller counts the new one."""
        load, capacity, salt = self.load_bps, self._capacity, self._salts[group]
        here, there = self._lower[tor], self._lower[first]
        # A way on which nothing more is sent counts as free, as it does to the live controller.
        counts = 1 if rate else 0
        to_tor = [inf if c == NONE else counts * (load[c] + rate) / capacity[c] for c in here]
        to_first = [inf if c == NONE else counts * (load[c] + rate) / capacity[c] for c in there]
        pod, home = self._tor_pod[tor], self._tor_pod[first]
        at = group * self._pod_count
        if pod == home:
            scores = [
                (max(x, y), x + y, salt * h & MASK, k)
                for k, (x, y, h) in enumerate(zip(to_tor, to_first, self._hashes[pod], strict=True))
                if not self._headless[pod][k]
            ]
            best = min(scores, default=(inf, inf, 0, NONE))
            if best[0] == inf:
                return False
            k = best[3]
            load[here[k]] += rate
            load[there[k]] += rate
            self._pods[at + pod] = 2 * self._width + k
            return True
        least, least_sum, least_tie = inf, inf, 0
        chosen: tuple[int, Option, Option] | None = None
        for core, below in enumerate(self._below):
            for a, near in below[pod]:
                busiest = to_tor[a]
                if busiest > least or busiest == inf:
                    continue
                use = counts * (load[near] + rate) / capacity[near]
                # Each direction counts, one after the other, so that equals are equal to the live controller too.
                total = 2 * busiest + use + use
                busiest = max(busiest, use)
                if busiest > least:
                    continue
                for b, far in below[home]:
                    use = counts * (load[far] + rate) / capacity[far]
                    most = max(busiest, to_first[b], use)
                    whole = 2 * to_first[b] + total + use + use
                    if most == inf or most > least or (most == least and whole > least_sum):
                        continue
                    names = self._core_hash[core] + self._hashes[pod][a] + self._hashes[home][b]
                    tie = salt * names & MASK
                    if most < least or whole < least_sum or tie < least_tie:
                        least, least_sum, least_tie, chosen = most, whole, tie, (core, (a, near), (b, far))
        if chosen is None:
            return False
        core, (a, near), (b, far) = chosen
        for cable in (here[a], near, far, there[b]):
            load[cable] += rate
        self._core[group] = core
        self._pods[at + pod] = self._width + a
        self._pods[at + home] = self._width + b
        return True

    def _second_pod(self, group: int, salt: int, tor: int, pod: int, rate: int) -> tuple[int, Option | None]:
        """Choose the core over a tree within one pod, and account the link to it."""
        load, capacity = self.load_bps, self._capacity
        counts = 1 if rate else 0
        home = self._touching[group]
        row = self._upper[home][self._pods[group * self._pod_count + home] % self._width]
        best: tuple[float, float, int] | None = None
        core, chosen = NONE, None
        for candidate, link in enumerate(row):
            option = None if link == NONE else self._aggregation(salt, tor, pod, candidate, rate)
            if option is None:
                continue
            uses = [counts * (load[c] + rate) / capacity[c] for c in (link, self._lower[tor][option[0]], option[1])]
            score = (max(uses), uses[0] + uses[1] + uses[2], salt * self._core_hash[candidate] & MASK)
            if best is None or score < best:
                best, core, chosen = score, candidate, option
        if core != NONE:
            load[row[core]] += rate
        return core, chosen

    def _is_crowded(self, pod: int, cable: int, rate: int) -> bool:
        load, capacity = self.load_bps, self._capacity[cable]
        use: float = (load[cable] + rate) / capacity
        if not rate or use <= BUSY:
            return False
        mean: float = sum([load[c] for c in self._uplinks[pod]]) / self._uplinks_bps[pod]
        return use > UNEVEN * (mean + rate / capacity)

    def _aggregation(self, salt: int, tor: int, pod: int, core: int, rate: int) -> Option | None:
        """Return the best living way from a ToR to a core."""
        row, options = self._lower[tor], self._below[core][pod]
        if len(options) == 1:
            return options[0] if row[options[0][0]] != NONE else None
        living = [option for option in options if row[option[0]] != NONE]
        if len(living) <= 1:
            return living[0] if living else None
        load, capacity = self.load_bps, self._capacity
        counts = 1 if rate else 0

        def score(option: Option) -> tuple[float, float, int]:
            k, cable = option
            low = counts * (load[row[k]] + rate) / capacity[row[k]]
            high = counts * (load[cable] + rate) / capacity[cable]
            return max(low, high), low + high, salt * self._hashes[pod][k] & MASK

        return min(living, key=score)
