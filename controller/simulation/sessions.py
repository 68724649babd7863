"""Packets of groups that send for a while and are silent for a while."""

from __future__ import annotations

from typing import Protocol

from controller.simulation.table_trace import Trace

SLOWEST_PACKETS_PER_S, FASTEST_PACKETS_PER_S = 2.0, 200.0
RATE_EXPONENT = 1.2
"""Of the Pareto distribution that rates are drawn from."""

FIRST_KEEPALIVE_S = (0.0, 25.0)
KEEPALIVE_GAP_S = (20.0, 30.0)


class SessionDraws(Protocol):
    """Draws numbers from distributions, as `random.Random` does under a seed."""

    def random(self) -> float:
        """Return a number from 0 to 1."""

    def uniform(self, least: float, most: float, /) -> float:
        """Return a number between two."""

    def expovariate(self, rate: float, /) -> float:
        """Return a number of an exponential distribution with the mean 1 / `rate`."""

    def paretovariate(self, exponent: float, /) -> float:
        """Return a number of a Pareto distribution, at least 1."""


def sessions(
    draws: SessionDraws, groups: int, *, on_s: float, off_s: float, duration_s: float, keepalives: bool = False
) -> Trace:
    """Return packets of groups 0 to `groups` - 1 that send and are silent in turn, with keepalives if asked.

    Both times are drawn from exponential distributions, a group's rate in packets/s from a Pareto distribution, gaps
    between its packets from an exponential one. Keepalives, a packet each 20 to 30 s, go on in silence too.

    Parameters
    ----------
    on_s, off_s
        Mean times for which a group sends and is silent, above 0.
    duration_s
        From the first packets to the last.
    """
    packets: list[tuple[float, int]] = []
    for group in range(groups):
        rate = min(FASTEST_PACKETS_PER_S, SLOWEST_PACKETS_PER_S * draws.paretovariate(RATE_EXPONENT))
        sends = draws.random() < on_s / (on_s + off_s)
        now_s = 0.0
        while now_s < duration_s:
            end_s = now_s + draws.expovariate(1 / (on_s if sends else off_s))
            if sends:
                at_s = now_s + draws.expovariate(rate)
                while at_s < min(end_s, duration_s):
                    packets.append((at_s, group))
                    at_s += draws.expovariate(rate)
            now_s = end_s
            sends = not sends
        at_s = draws.uniform(*FIRST_KEEPALIVE_S)
        while keepalives and at_s < duration_s:
            packets.append((at_s, group))
            at_s += draws.uniform(*KEEPALIVE_GAP_S)
    packets.sort()
    return Trace([at_s for at_s, _ in packets], [group for _, group in packets])
