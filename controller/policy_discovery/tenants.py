"""Who belongs together by the groups that they receive: tenants, what all of them receive, and strays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CONCENTRATION = 15.0
"""How many joins the expectation weighs that a tenant receives what all hosts receive."""

SAMPLE, ROUNDS, PASSES = 500, 6, 8
"""Hosts that are put together pair by pair, how often more of them are, and how often all choose again."""

LEAST_RATE = 0.15
"""A group is a tenant's where so much of its hosts receive it, as a part of what do its most received groups."""

STRAY_GROUPS, STRAY_SHARE, STRAY_ROUNDS = 4, 0.5, 4
"""A host is a stray that receives so many groups, less than this part of them of one tenant. It is looked for strays
until there are no more, so often at most."""

MOST_TENANTS = 0.9
"""A group is for all where so many of the tenants, two at least, receive it."""


class Tenancy(NamedTuple):
    """Tenants of H hosts and G groups.

    `of_host` (H,): each host's tenant, -1 of a stray and of who receives nothing. `groups`: for each tenant its
    columns, ascending, without those in `common`, which are for all tenants.
    """

    of_host: Ints
    groups: tuple[tuple[int, ...], ...]
    common: tuple[int, ...]
    strays: tuple[int, ...]


def tenancy(received: Bools) -> Tenancy:
    """Return the tenants that explain best which hosts receive which groups.

    Hosts are put together as long as one distribution over groups explains them better than two (Dirichlet and
    multinomial), however few of its groups each was seen to receive; then each chooses again among all. Strays count
    for nobody's groups.

    Parameters
    ----------
    received
        (H, G): whether a host was admitted to a group.
    """
    hosts = len(received)
    counted = np.asarray(received.any(1), np.bool_)
    of_host = _clusters(received, counted)
    strays = np.zeros(hosts, np.bool_)
    for _ in range(STRAY_ROUNDS):
        more = _strays(received, of_host)
        if not more.any():
            break
        strays |= more
        of_host = _clusters(received, counted & ~strays)
    of_host = _numbered(of_host)
    count = int(of_host.max(initial=-1)) + 1
    theirs = np.zeros((count, received.shape[1]), np.bool_)
    for tenant in range(count):
        theirs[tenant] = _own_groups(received[of_host == tenant])
    alone = received[of_host >= 0].any(0) & ~theirs.any(0)
    for column in np.flatnonzero(alone):
        theirs[of_host[(of_host >= 0) & received[:, column]], column] = True
    common = (theirs.sum(0) >= max(2, MOST_TENANTS * count)) if count > 1 else np.zeros(received.shape[1], np.bool_)
    groups = tuple(tuple(np.flatnonzero(row & ~common).tolist()) for row in theirs)
    assert len(of_host) == hosts
    return Tenancy(of_host, groups, tuple(np.flatnonzero(common).tolist()), tuple(np.flatnonzero(strays).tolist()))


def _own_groups(received: Bools) -> Bools:
    """Return which groups a tenant's hosts (n, G) receive as members of it, not one of them for itself."""
    counts = received.sum(0)
    some = np.sort(counts[counts > 0])[::-1]
    if not len(some):
        return np.zeros(received.shape[1], np.bool_)
    usual = some[: max(1, (len(some) + 1) // 2)].mean()
    least = 1 if len(received) == 1 else max(2.0, LEAST_RATE * usual)
    return np.asarray(counts >= least, np.bool_)


def _strays(received: Bools, of_host: Ints) -> Bools:
    """Return the hosts that receive what hosts of several tenants do, of none of them most.

    A group counts for the tenant in which most hosts receive it, and for nobody where half of the tenants do.
    """
    count = int(of_host.max(initial=-1)) + 1
    known = of_host >= 0
    if not count:
        return np.zeros(len(received), np.bool_)
    counts = np.zeros((count, received.shape[1]), np.int64)
    np.add.at(counts, of_host[known], received[known])
    theirs = np.array([_own_groups(received[of_host == tenant]) for tenant in range(count)])
    tells = theirs.sum(0) <= max(2, count // 2)
    of_group = counts.argmax(0)
    of_tenants = np.zeros((len(received), count), np.int64)
    for tenant in range(count):
        of_tenants[:, tenant] = received[:, tells & (of_group == tenant)].sum(1)
    total = of_tenants.sum(1)
    return np.asarray(known & (total >= STRAY_GROUPS) & (of_tenants.max(1) < STRAY_SHARE * total), np.bool_)


def _numbered(of_host: Ints) -> Ints:
    """Return the same tenants with numbers in the order of their first hosts."""
    names: dict[int, int] = {-1: -1}
    return np.array([names.setdefault(int(one), len(names) - 1) for one in of_host], np.int64)


class _Likelihood:
    """What it takes to explain the joins of a set of hosts by one distribution over groups."""

    def __init__(self, received: Bools) -> None:
        counts = received.sum(0)
        total = int(counts.sum())
        self.prior = CONCENTRATION * (counts + 0.5) / (total + 0.5 * len(counts))
        rising = np.arange(int(counts.max(initial=0)) + 1)
        self._ones = np.concatenate(
            [np.zeros((len(counts), 1)), np.cumsum(np.log(self.prior[:, None] + rising), axis=1)], axis=1
        )
        self._totals = np.concatenate([[0.0], np.cumsum(np.log(CONCENTRATION + np.arange(total + 1)))])
        self._columns = np.arange(len(counts))

    def of(self, counts: Ints) -> Floats:
        """Return the log likelihood of counts of joins (..., G)."""
        found = self._ones[self._columns, counts].sum(-1) - self._totals[counts.sum(-1)]
        return np.asarray(found, np.float64)


def _clusters(received: Bools, counted: Bools) -> Ints:
    """Return the cluster of each host that counts, -1 of all others."""
    of_host = np.full(len(received), -1, np.int64)
    if not counted.any():
        return of_host
    likelihood = _Likelihood(received[counted])
    count = 0
    for _ in range(ROUNDS):
        left = np.flatnonzero(counted & (of_host < 0))
        if not len(left):
            break
        some = left[:: -(-len(left) // SAMPLE)]
        of_host[some] = count + _agglomerated(received[some], likelihood)
        _choose(received, of_host, left, likelihood, may_stay=True)
        of_host[counted] = np.unique(of_host[counted], return_inverse=True)[1] - int((of_host[counted] < 0).any())
        count = int(of_host.max()) + 1
    left = np.flatnonzero(counted & (of_host < 0))
    of_host[left] = count + np.arange(len(left))
    for _ in range(PASSES):
        before = of_host.copy()
        _choose(received, of_host, np.flatnonzero(counted), likelihood, may_stay=False)
        if (before == of_host).all():
            break
    of_host[counted] = np.unique(of_host[counted], return_inverse=True)[1]
    return of_host


def _choose(received: Bools, of_host: Ints, who: Ints, likelihood: _Likelihood, *, may_stay: bool) -> None:
    """Have hosts choose the cluster that explains their groups best; with `may_stay` none where none does."""
    known = np.flatnonzero(of_host >= 0)
    counts = np.zeros((int(of_host.max()) + 1, received.shape[1]))
    np.add.at(counts, of_host[known], received[known])
    sizes = np.bincount(of_host[known], minlength=len(counts))
    share = (counts + likelihood.prior) / (counts.sum(1) + CONCENTRATION)[:, None]
    scores = received[who].astype(np.float64) @ np.log(share).T + np.log(np.maximum(sizes, 1e-9))
    best = scores.argmax(1)
    if may_stay:
        alone = received[who].astype(np.float64) @ np.log(likelihood.prior / CONCENTRATION)
        best = np.where(scores.max(1) > alone, best, of_host[who])
    of_host[who] = best


def _agglomerated(received: Bools, likelihood: _Likelihood) -> Ints:
    """Return clusters of hosts, put together two at a time, those first of which that explains most."""
    alike, cluster = np.unique(received, axis=0, return_inverse=True)
    cluster = cluster.reshape(-1)
    hosts = np.bincount(cluster, minlength=len(alike))
    counts = alike.astype(np.int64) * hosts[:, None]
    alone = likelihood.of(counts)
    gains = np.full((len(counts), len(counts)), -np.inf)
    for row in range(len(counts) - 1):
        later = slice(row + 1, None)
        gains[row, later] = likelihood.of(counts[later] + counts[row]) - alone[later] - alone[row]
    while len(counts) > 1:
        one, other = np.unravel_index(int(gains.argmax()), gains.shape)
        if not gains[one, other] > 0:
            break
        counts[one] += counts[other]
        alone[one] = likelihood.of(counts[one])
        cluster[cluster == other] = one
        gains[other], gains[:, other] = -np.inf, -np.inf
        live = np.unique(cluster)
        live = live[live != one]
        again = likelihood.of(counts[live] + counts[one]) - alone[live] - alone[one]
        low, high = np.minimum(live, one), np.maximum(live, one)
        gains[low, high] = again
    return np.unique(cluster, return_inverse=True)[1].astype(np.int64)
