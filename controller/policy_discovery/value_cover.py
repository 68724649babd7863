"""Policies that cover a table of changes, looked at again by the values that were set and not only by what was set.

A resource whose properties were set for other reasons, to other values, takes more bits inside a policy than outside,
and of two policies that share properties each says its own values. So rows and properties go where the table is
shortest to write with its values; what no policy says yet is searched for values that are set together; and a policy
whose varieties have different properties is two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from controller.policy_discovery.code_length import choice_bits, choices_bits, name_bits
from controller.policy_discovery.cover import LEAST_GAIN, LEAST_PROPERTIES, LEAST_SET, LEAST_SHARE, Block
from controller.policy_discovery.value_table import NO_VALUE, ValuedPolicy, ValueTable
from controller.policy_discovery.varieties import VARIETY_RESOURCES, VARIETY_SHARE, frequent_tuples

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PASSES = 8
"""How often all policies are looked at in a row, at most; it ends when none changes."""

ROUNDS = 6
"""How often it is searched, split and joined, at most."""

CLIMBED = 4
"""Steps of a policy to better rows and properties, at most."""

LEAST_MEMBER = 0.5
"""Least part of a policy's properties that a member has where its values speak for it."""

ITEMS, TRIED, PAIRS = 1024, 24, 192
"""Values that are searched for such as are set together, the most frequent ones; sets of them that are tried, and
pairs that these are made of."""


def cover_by_values(blocks: Sequence[Block], final: Ints, applicable: Bools, least_rows: int = 4) -> list[Block]:
    """Return policies with rows and properties as the values have it, that which saves most first.

    Parameters
    ----------
    blocks
        Policies of the same table as `cover` finds them.
    final
        (R, K): the code of the value that each property ended at, below 0 where it is at its baseline.
    applicable
        (R, K): whether the resource has such a property at all.
    least_rows
        Resources that a policy must have, 1 or more.

    Returns
    -------
    Blocks; `bits` is what each saves with its values, beside the others.
    """
    state = _ValuedCover(ValueTable(final, applicable), least_rows)
    for block in blocks:
        state.begin(block)
    state.settle()
    for _ in range(ROUNDS):
        is_new = state.search()
        is_other = state.rearrange()
        if not (is_new or is_other):
            break
        state.settle()
    found = [
        Block(tuple(one.columns.tolist()), tuple(one.rows.tolist()), one.bits)
        for one in state.policies
        if one.bits > 0
    ]
    return sorted(found, key=lambda block: (-block.bits, block.columns))


class _ValuedCover:
    """Policies that cover a table of values, in no order."""

    def __init__(self, table: ValueTable, least_rows: int) -> None:
        self.table, self.least_rows = table, least_rows
        self.policies: list[ValuedPolicy] = []
        self._rates: list[tuple[float, float]] = []
        self._choices = choices_bits(len(table.set))
        self.table.learn()

    def begin(self, block: Block) -> None:
        columns, rows = np.array(block.columns), np.array(block.rows)
        policy = self._valued(columns, rows)
        rates = self._rates_of(policy)
        self.policies.append(policy)
        self._rates.append(rates)
        self.table.said(policy, *rates, 1)

    def settle(self) -> None:
        for _ in range(PASSES):
            self.table.learn()
            self._say_again()
            is_settled = True
            number = 0
            while number < len(self.policies):
                before = self.policies[number]
                self.table.said(before, *self._rates[number], -1)
                after = self._again(before)
                if after is None:
                    del self.policies[number], self._rates[number]
                    is_settled = False
                    continue
                is_settled = is_settled and after.is_as(before)
                self.policies[number], self._rates[number] = after, self._rates_of(after)
                self.table.said(after, *self._rates[number], 1)
                number += 1
            if is_settled:
                break

    def _take(self, policy: ValuedPolicy) -> None:
        self.policies.append(policy)
        self._rates.append(self._rates_of(policy))
        self.table.said(policy, *self._rates[-1], 1)

    def _put(self, number: int, policy: ValuedPolicy) -> None:
        self._take(policy)
        self.policies.insert(number, self.policies.pop())
        self._rates.insert(number, self._rates.pop())

    def _leave(self, number: int) -> ValuedPolicy:
        policy, rates = self.policies.pop(number), self._rates.pop(number)
        self.table.said(policy, *rates, -1)
        return policy

    def rearrange(self) -> bool:
        """Make one policy of two that share most properties, and two of one, and move properties from one to another,
        where that saves more.
        """
        is_any = False
        number = 0
        while number < len(self.policies):
            second = number + 1
            while second < len(self.policies):
                one, other = self.policies[number], self.policies[second]
                both = np.intersect1d(one.columns, other.columns)
                if 2 * len(both) >= max(len(one.columns), len(other.columns)) and self._join(number, second):
                    is_any = True
                else:
                    second += 1
            number += 1
        number = 0
        while number < len(self.policies):
            if len(self.policies[number].values) > 1 and (self._part_given(number) or self._split(number)):
                is_any = True
            else:
                number += 1
        given = [self._property_given(number) for number in range(len(self.policies))]
        return is_any or any(given)

    def _property_given(self, number: int) -> bool:
        """Have one property in another policy, which shares most rows of the smaller one, where that saves more.

        Rows and all other properties stay: each policy that might choose them anew would have the property again.
        """
        one = self.policies[number]
        if len(one.columns) <= LEAST_PROPERTIES:
            return False
        for second, other in enumerate(self.policies):
            shared = len(np.intersect1d(one.rows, other.rows))
            if second == number or 2 * shared <= min(len(one.rows), len(other.rows)):
                continue
            usual = np.intersect1d(self._usual(other.rows).columns, one.columns)
            for column in np.setdiff1d(usual, other.columns):
                if self._in_place_of([number, second], partial(self._moved, column, one, other)):
                    return True
        return False

    def _moved(self, column: int, one: ValuedPolicy, other: ValuedPolicy) -> list[ValuedPolicy]:
        """Return two policies that are not covered with a property of the first in the second."""
        left, grown = np.setdiff1d(one.columns, column), np.union1d(other.columns, column)
        return [self._valued(left, one.rows), self._valued(grown, other.rows)]

    def _part_given(self, number: int) -> bool:
        """Have the rows of varieties that are mostly another policy's in that one alone, where that saves more.

        The other one has their properties too then. They are most of its rows, so that its varieties are these.
        """
        one = self.policies[number]
        for second, other in enumerate(self.policies):
            if second == number:
                continue
            shared = np.isin(one.rows, other.rows)
            members = np.bincount(one.variety)
            mostly = 2 * np.bincount(one.variety[shared], minlength=len(members)) > members
            of = mostly[one.variety]
            rest = one.rows[~of]
            if 2 * (shared & of).sum() > max(of.sum(), len(other.rows)) and len(rest) >= self.least_rows:
                grown = self._valued(np.union1d(one.columns, other.columns), other.rows)
                if self._in_place_of([number, second], partial(self._beside, grown, self._valued(one.columns, rest))):
                    return True
        return False

    def _in_place_of(self, numbers: list[int], made: Callable[[], list[ValuedPolicy]]) -> bool:
        """Have two policies, made while some others are not covered, in place of these where that saves more."""
        former = [self._leave(number) for number in sorted(numbers, reverse=True)][::-1]
        two = made()
        is_better = bool(two) and self._saved(two) > self._saved(former) + LEAST_GAIN
        if is_better:
            for one in two:
                self._take(one)
        else:
            for number, one in zip(sorted(numbers), former, strict=True):
                self._put(number, one)
        return is_better

    def _join(self, number: int, second: int) -> bool:
        other, one = self._leave(second), self._leave(number)
        apart = self._saved([one, other])
        rows = np.union1d(one.rows, other.rows)
        tried = [self._again(self._valued(columns, rows)) for columns in (one.columns, other.columns)]
        best = max((each for each in tried if each is not None), key=lambda each: each.bits, default=None)
        if best is not None and best.bits > apart + LEAST_GAIN:
            self._put(number, best)
            return True
        self._put(number, one)
        self._put(second, other)
        return False

    def _split(self, number: int) -> bool:
        """Make a policy of a variety and one of the rest, each of what is usual there, where that saves more."""
        whole = self.policies[number]
        for variety in range(len(whole.values)):
            of = whole.variety == variety
            parts = [self._usual(whole.rows[some]) for some in (of, ~of) if some.sum() >= self.least_rows]
            are_two = len(parts) == 2 and min(len(part.columns) for part in parts) >= LEAST_PROPERTIES
            if are_two and self._in_place_of([number], partial(self._beside, *parts)):
                return True
        return False

    def _usual(self, rows: Ints) -> ValuedPolicy:
        """Return a policy of what is set on half of some rows or more."""
        usual = (self.table.set[rows].mean(0) >= LEAST_SET) & self.table.applicable[rows].all(0)
        return self._valued(np.flatnonzero(usual), rows)

    def _beside(self, first: ValuedPolicy, second: ValuedPolicy) -> list[ValuedPolicy]:
        """Return two policies from such on; none where one saves nothing, or both have the same properties.

        The first has its own rows alone until the second has those that it wants: else it would have both.
        """
        first = self._with_columns(first)
        self._take(first)
        other = self._again(second)
        self._leave(len(self.policies) - 1)
        if other is None:
            return []
        self._take(other)
        again = self._again(first)
        self._leave(len(self.policies) - 1)
        return [] if again is None or np.array_equal(again.columns, other.columns) else [again, other]

    def _saved(self, policies: list[ValuedPolicy]) -> float:
        """Return what policies save together which are not covered."""
        bits = 0.0
        for one in policies:
            bits += self._bits_of(one)
            self._take(one)
        for _ in policies:
            self._leave(len(self.policies) - 1)
        return bits

    def _bits_of(self, policy: ValuedPolicy) -> float:
        omitted, otherwise = self._rates_of(policy)
        cells = np.ix_(policy.rows, policy.columns)
        likely = self.table.likely(policy, otherwise, policy.rows, policy.variety)
        counts = np.bincount(policy.variety, minlength=len(policy.values) + 1) + 0.5
        gains = (self.table.bits(cells) - self.table.bits(cells, likely, omitted)).sum()
        names = np.log2(counts / counts.sum())[policy.variety].sum() - self._choices[len(policy.rows)]
        return float(gains + names) - self._names(policy, len(policy.rows))

    def search(self) -> bool:
        """Cover with policies that are found in values which nobody says yet; tell whether there are any."""
        is_any = False
        while True:
            tried = map(self._again, self._unsaid())
            found = [one for one in tried if one is not None and not any(map(one.is_said_by, self.policies))]
            if not found:
                return is_any
            is_any = True
            self._take(max(found, key=lambda one: one.bits))

    def _unsaid(self) -> list[ValuedPolicy]:
        """Return policies that may be in values which no policy says: those that are set together often."""
        table = self.table
        rest = table.set & (table.alike < 0.5)
        items = []
        for column in range(rest.shape[1]):
            counts = np.bincount(table.codes[rest[:, column], column], minlength=table.kinds[column])
            items += [
                (int(counts[code]), column, code) for code in np.flatnonzero(counts >= self.least_rows).tolist()
            ]
        items = sorted(items, key=lambda item: (-item[0], item[1:]))[:ITEMS]
        if len(items) < LEAST_PROPERTIES:
            return []
        of = np.array([column for _, column, _ in items])
        codes = np.array([code for _, _, code in items])
        ones = ((table.codes[:, of] == codes) & rest[:, of]).astype(np.float32)
        both = (ones.T @ ones).astype(np.float64)
        counts = np.diag(both)
        expected = np.outer(counts, counts) / len(ones)
        both[(both < self.least_rows) | (of[:, None] == of[None, :])] = 0
        first, second = np.nonzero(np.triu(both, 1))
        weight = both[first, second] * np.log2(both[first, second] / expected[first, second])
        tried: dict[tuple[int, ...], None] = {}
        for pair in np.argsort(-weight, kind="stable")[:PAIRS]:
            rows = (ones[:, first[pair]] * ones[:, second[pair]]) > 0
            usual = np.flatnonzero(ones[rows].mean(0) >= LEAST_SET)
            by_column = {int(of[item]): int(item) for item in usual[::-1]}
            if len(by_column) >= LEAST_PROPERTIES:
                tried.setdefault(tuple(sorted(by_column.values())))
            if len(tried) >= TRIED:
                break
        found = []
        for some in tried:
            at = np.array(sorted(some, key=lambda item: of[item]))
            rows = np.flatnonzero(ones[:, at].mean(1) >= LEAST_SHARE - 1e-9)
            if len(rows) >= self.least_rows:
                found.append(ValuedPolicy(of[at], rows, codes[at][None], np.ones(len(at), np.bool_), rows * 0, 0.0))
        return found

    def _say_again(self) -> None:
        for sums in (self.table.times, self.table.unset, self.table.alike):
            sums[...] = 0
        for policy, rates in zip(self.policies, self._rates, strict=True):
            self.table.said(policy, *rates, 1)

    def _valued(self, columns: Ints, rows: Ints) -> ValuedPolicy:
        """Return a policy with the values that its rows share where no other policy covers them."""
        codes = self.table.codes[np.ix_(rows, columns)]
        doubtful = self.table.times[np.ix_(rows, columns)] > 0
        alike = np.array([_is_alike(codes[:, at], doubtful[:, at]) for at in range(len(columns))])
        tuples = frequent_tuples(codes[:, alike], doubtful[:, alike]) if alike.any() else [()]
        values = np.full((len(tuples), len(columns)), NO_VALUE, np.int64)
        values[:, alike] = np.array(tuples, np.int64).reshape(len(tuples), -1)
        fits = (codes[None] == values[:, None]).sum(2)
        return ValuedPolicy(columns, rows, values, alike, fits.argmax(0), 0.0)

    def _rates_of(self, policy: ValuedPolicy) -> tuple[float, float]:
        codes = self.table.codes[np.ix_(policy.rows, policy.columns)]
        omitted = ((codes < 0).sum() + 0.5) / (codes.size + 1.0)
        held = policy.variety < len(policy.values)
        alike = codes[held][:, policy.alike]
        told = policy.values[policy.variety[held]][:, policy.alike]
        free = (self.table.times[np.ix_(policy.rows[held], policy.columns[policy.alike])] <= 0) & (alike >= 0)
        return float(omitted), float((((alike != told) & free).sum() + 0.5) / (free.sum() + 1.0))

    def _again(self, policy: ValuedPolicy) -> ValuedPolicy | None:
        """Return what a policy is beside the others, which cover the table; None where it saves nothing."""
        starts = [self._climbed(start) for start in self._starts(policy)]
        found = [one for one in starts if one is not None and one.bits > 0]
        return max(found, key=lambda one: one.bits, default=None)

    def _starts(self, policy: ValuedPolicy) -> list[ValuedPolicy]:
        """Return a policy, and where they are others it with all rows that have half of the values of one of its
        varieties or more, and with the properties that it has best on those of its own rows alone.
        """
        known = self._valued(policy.columns, policy.rows)
        able = np.flatnonzero(self.table.applicable[:, policy.columns].all(1))
        codes = self.table.codes[np.ix_(able, policy.columns)]
        fits = (codes[None] == known.values[:, None]).sum(2).max(0)
        like = able[2 * fits >= len(policy.columns)]
        starts = [policy]
        wider, narrower = np.union1d(policy.rows, like), np.intersect1d(policy.rows, like)
        if len(wider) > len(policy.rows):
            starts.append(policy._replace(rows=wider))
        if self.least_rows <= len(narrower) < len(policy.rows):
            starts.append(self._with_columns(self._valued(policy.columns, narrower)))
        return starts

    def _climbed(self, policy: ValuedPolicy) -> ValuedPolicy | None:
        found = self._with_rows(policy.columns, policy.rows)
        for _ in range(CLIMBED):
            if found is None or found.bits <= 0:
                return None
            other = self._with_columns(found)
            next_ = self._with_rows(other.columns, other.rows)
            if next_ is None or next_.is_as(found):
                return next_
            found = next_
        return found

    def _with_rows(self, columns: Ints, rows: Ints) -> ValuedPolicy | None:
        policy = self._valued(columns, rows)
        omitted, otherwise = self._rates_of(policy)
        able = self.table.applicable[:, columns].all(1)
        shares = self.table.set[:, columns].mean(1)
        near = np.flatnonzero(able & (shares >= LEAST_MEMBER - 1e-9))
        if len(near) < self.least_rows:
            return None
        cells = np.ix_(near, columns)
        without = self.table.bits(cells).sum(1)
        number = len(policy.values)
        counts = np.bincount(policy.variety, minlength=number + 1) + 0.5
        gains = np.empty((number + 1, len(near)))
        for variety in range(number + 1):
            likely = self.table.likely(policy, otherwise, near, np.full(len(near), variety))
            bits = self.table.bits(cells, likely, omitted).sum(1)
            gains[variety] = without - bits + np.log2(counts[variety] / counts.sum())
        best = gains.max(0)
        order = np.argsort(-best, kind="stable")
        totals = np.cumsum(best[order]) - self._choices[1 : len(order) + 1]
        totals[: self.least_rows - 1] = -np.inf
        size = int(np.argmax(totals)) + 1
        chosen = np.sort(order[:size])
        saved = float(totals[size - 1]) - self._names(policy, len(chosen))
        return policy._replace(rows=near[chosen], variety=gains.argmax(0)[chosen], bits=saved)

    def _names(self, policy: ValuedPolicy, members: int) -> float:
        """Return what it takes to say a policy's properties and values, its rows apart."""
        table, size = self.table, len(policy.columns)
        values = len(policy.values) * np.log2(table.kinds[policy.columns[policy.alike]] + 1.0).sum()
        diverse = choice_bits(size, int(policy.alike.sum())) + np.log2(size + 1.0)
        names = name_bits(len(table.set), table.set.shape[1], members, size)
        return float(values + diverse + names - choice_bits(len(table.set), members))

    def _with_columns(self, policy: ValuedPolicy) -> ValuedPolicy:
        """Return a policy with the properties with which it saves most on its rows, added or dropped one by one."""
        table, rows = self.table, policy.rows
        usual = table.set[rows].mean(0) >= LEAST_SET
        usual &= table.applicable[rows].all(0)
        usual[policy.columns] = True
        columns = np.flatnonzero(usual)
        omitted, otherwise = self._rates_of(policy)
        whole = self._valued(columns, rows)
        # The varieties are those of the policy: a property that is not in it is asked for its most frequent value.
        values, alike = self._values_beside(policy, columns)
        whole = whole._replace(values=values, alike=alike, variety=policy.variety)
        cells = np.ix_(rows, columns)
        likely = table.likely(whole, otherwise, rows, policy.variety)
        gains = (table.bits(cells) - table.bits(cells, likely, omitted)).sum(0)
        within = np.isin(columns, policy.columns)
        best = self._named(gains, within, whole, len(rows))
        while True:
            tried = []
            for at in range(len(columns)):
                flipped = within.copy()
                flipped[at] ^= True
                if flipped.sum() >= LEAST_PROPERTIES:
                    tried.append((self._named(gains, flipped, whole, len(rows)), at))
            bits, at = max(tried, default=(-np.inf, 0), key=lambda one: one[0])
            if bits <= best + 1e-9:
                break
            best, within[at] = bits, not within[at]
        return ValuedPolicy(columns[within], rows, values[:, within], alike[within], policy.variety, policy.bits)

    def _named(self, gains: Floats, within: Bools, whole: ValuedPolicy, members: int) -> float:
        part = whole._replace(
            columns=whole.columns[within], values=whole.values[:, within], alike=whole.alike[within]
        )
        return float(gains[within].sum()) - self._names(part, members)

    def _values_beside(self, policy: ValuedPolicy, columns: Ints) -> tuple[Ints, Bools]:
        codes = self.table.codes[np.ix_(policy.rows, columns)]
        doubtful = self.table.times[np.ix_(policy.rows, columns)] > 0
        values = np.full((len(policy.values), len(columns)), NO_VALUE, np.int64)
        alike = np.zeros(len(columns), np.bool_)
        known = {column: at for at, column in enumerate(policy.columns.tolist())}
        for at, column in enumerate(columns.tolist()):
            if column in known:
                values[:, at], alike[at] = policy.values[:, known[column]], policy.alike[known[column]]
                continue
            fit = total = 0
            for variety in range(len(policy.values)):
                of = policy.variety == variety
                some = codes[of & ~doubtful[:, at] & (codes[:, at] >= 0), at]
                if not len(some):
                    some = codes[of & (codes[:, at] >= 0), at]
                if len(some):
                    counts = np.bincount(some)
                    values[variety, at] = counts.argmax()
                    fit += counts.max()
                    total += len(some)
            alike[at] = 2 * fit > total
        return values, alike


def _is_alike(codes: Ints, doubtful: Bools) -> bool:
    """Whether most rows have a value that others have too, looked at where no other policy covers them."""
    some = codes[(codes >= 0) & ~doubtful]
    if not len(some):
        some = codes[codes >= 0]
    if not len(some):
        return False
    counts = np.bincount(some)
    return bool(2 * counts[counts >= max(VARIETY_RESOURCES, VARIETY_SHARE * len(codes))].sum() > len(some))
