"""Clusters: service classes that compete for the same links."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

SIGNIFICANT = 0.1
"""Least part of a class's largest use of any link with which it uses a link at all."""

REFRESH_S = 600.0
"""Time after which clusters are made anew."""

Link = TypeVar("Link", bound=Hashable)


def clusters(samples: Mapping[str, Mapping[Link, float]]) -> list[list[str]]:
    """Return the classes that links join, directly or through other classes, in the order given.

    Parameters
    ----------
    samples
        How much each class uses each link, in any unit from 0 on.

    Returns
    -------
    list of list of str
        Each class once; one that uses nothing is alone.
    """
    parent = {name: name for name in samples}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    first_user: dict[Link, str] = {}
    for name, uses in samples.items():
        least = SIGNIFICANT * max(uses.values(), default=0.0)
        for link, use in uses.items():
            if use > 0 and use >= least:
                parent[root(name)] = root(first_user.setdefault(link, name))
    found: dict[str, list[str]] = {}
    for name in samples:
        found.setdefault(root(name), []).append(name)
    return list(found.values())
