"""What a time without faults told about the metrics of each group, to be used on later days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from controller.anomaly.peers.scoring import Learnt, Thresholds


class MismatchError(ValueError):
    """What was learnt does not fit what it is to be used on; the text starts with the field."""


class Trained(NamedTuple):
    """What was learnt of one metric of one group; arrays are in the order of the members."""

    members: tuple[str, ...]
    is_counter: bool
    learnt: Learnt
    limits: Thresholds

    def of(self, members: Sequence[str]) -> Trained:
        """Return the same for some of the members in another order; MismatchError where one is not known."""
        place = {member: number for number, member in enumerate(self.members)}
        unknown = next((member for member in members if member not in place), None)
        if unknown is not None:
            raise MismatchError(f"member: {unknown!r} was not there in training")
        rows = np.array([place[member] for member in members], np.int64)
        known = self.learnt
        learnt = Learnt(known.reference[rows], known.usual_bin, known.past.of(rows), known.levelled_past.of(rows))
        limits = Thresholds(*(None if limit is None else limit[rows] for limit in self.limits))  # type: ignore[arg-type]
        return Trained(tuple(members), self.is_counter, learnt, limits)


Training = Mapping[tuple[str, str], Trained]
"""What was learnt, by peer group and metric."""


def known_members(training: Training) -> dict[str, frozenset[str]]:
    """Return the members of each group that were there in training."""
    found: dict[str, frozenset[str]] = {}
    for (group, _), trained in training.items():
        found[group] = found.get(group, frozenset()) | frozenset(trained.members)
    return found


def check_known(group: str, metric: str, training: Training) -> Trained:
    """Return what was learnt of a metric of a group; MismatchError names the field that training does not know."""
    if (group, metric) not in training:
        groups = sorted({name for name, _ in training})
        if group not in groups:
            raise MismatchError(f"peer_group: no thresholds for {group!r}; there are some for {_listed(groups)}")
        metrics = sorted(name for of_group, name in training if of_group == group)
        raise MismatchError(
            f"metric: no thresholds for {metric!r} in peer group {group!r}; there are some for {_listed(metrics)}"
        )
    return training[group, metric]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
