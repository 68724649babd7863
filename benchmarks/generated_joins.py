"""Tenants with their groups, and what of their joins a week of an audit log has, made by a seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


class SeenFabric(NamedTuple):
    """`allowed` and `seen` (H, G): what hosts may receive, and what they did; strays are no tenant's (-1)."""

    addresses: list[str]
    groups: list[str]
    of_host: NDArray[np.int64]
    allowed: Bools
    seen: Bools
    common: int
    senders: list[tuple[int, int]]

    @property
    def rules(self) -> int:
        """Rules of the policy behind it: one of each tenant, of its senders, and of what is for all."""
        tenants = int(self.of_host.max()) + 1
        return tenants + len({row for row, _ in self.senders}) + (self.common > 0)

    def lines(self, rng: np.random.Generator) -> Iterator[str]:
        asked = [(int(row), int(column), "receiver") for row, column in zip(*np.nonzero(self.seen), strict=True)]
        asked += [(row, column, "sender") for row, column in self.senders]
        for number in rng.permutation(len(asked)):
            row, column, role = asked[number]
            at = f"2026-11-{rng.integers(10, 17):02d}T{rng.integers(0, 24):02d}:00:00.000Z"
            host = {
                "mac": "02:00:" + ":".join(f"{part:02x}" for part in row.to_bytes(4)),
                "ip": self.addresses[row],
                "dpid": row // 40 + 1,
                "port_no": row % 40 + 1,
            }
            line = {"time": at, "verdict": "allow", "rule": "default", "role": role, "group": self.groups[column]}
            line |= {"source": None, "host": host, "reason": "the default is allow"}
            yield json.dumps(line, separators=(",", ":"))


def seen_fabric(seed: int) -> SeenFabric:
    """Return 4 to 20 tenants, each in prefixes of its own, of which each host receives a part of the groups."""
    rng = np.random.default_rng(seed)
    tenants = int(rng.integers(4, 21))
    sizes = rng.integers(6, 60, tenants)
    counts = rng.integers(3, 12, tenants)
    common, strays = int(rng.integers(0, 4)), int(rng.integers(0, 4))
    hosts, groups = int(sizes.sum()) + strays, int(counts.sum()) + common
    of_host = np.repeat(np.append(np.arange(tenants), -1), np.append(sizes, strays))
    allowed, seen = np.zeros((hosts, groups), np.bool_), np.zeros((hosts, groups), np.bool_)
    addresses, start = [], 0
    senders = []
    for tenant in range(tenants):
        rows = np.flatnonzero(of_host == tenant)
        columns = np.arange(start, start + counts[tenant])
        start += int(counts[tenant])
        allowed[np.ix_(rows, columns)] = True
        often = rng.uniform(0.3, 0.95)
        seen[np.ix_(rows, columns)] = rng.random((len(rows), len(columns))) < often
        seen[rows, rng.choice(columns, len(rows))] = True
        for column in columns:
            if not seen[rows, column].any():
                seen[rng.choice(rows), column] = True
        places = rng.choice(200, len(rows), replace=False)
        addresses += [f"10.{tenant}.{rng.integers(0, 2)}.{place + 10}" for place in places]
        senders += [(int(rows[0]), int(column)) for column in columns]
    if common:
        allowed[of_host >= 0, -common:] = True
        seen[:, -common:] |= rng.random((hosts, common)) < 0.8
    addresses += [f"10.{rng.integers(0, tenants)}.7.{number + 1}" for number in range(strays)]
    seen[of_host < 0] |= rng.random((strays, groups)) < 0.9
    names = [f"239.{column // 200 + 1}.{column % 200}.{rng.integers(1, 255)}" for column in range(groups)]
    return SeenFabric(addresses, names, of_host, allowed, seen, common, senders)
