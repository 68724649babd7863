"""Traces of packets of groups, made anew by a seed: sessions, keepalives between them, and independent packets."""

from __future__ import annotations

from random import Random

from controller.simulation.table_trace import Trace


def sessions(
    seed: int, groups: int, *, on_s: float, off_s: float, duration_s: float, keepalives: bool = False
) -> Trace:
    """Return packets of groups that send for a while and are silent for a while, with keepalives if asked.

    Both times are drawn from exponential distributions, a group's rate from a Pareto distribution (exponent 1.2, 2
    packets/s at least, 200 at most), gaps between its packets from an exponential one. Keepalives, a packet each 20
    to 30 s, go on in silence too.
    """
    generator = Random(seed)
    packets: list[tuple[float, int]] = []
    for group in range(groups):
        rate = min(200.0, 2 * generator.paretovariate(1.2))
        sends = generator.random() < on_s / (on_s + off_s)
        now_s = 0.0
        while now_s < duration_s:
            end_s = now_s + generator.expovariate(1 / (on_s if sends else off_s))
            if sends:
                at_s = now_s + generator.expovariate(rate)
                while at_s < min(end_s, duration_s):
                    packets.append((at_s, group))
                    at_s += generator.expovariate(rate)
            now_s = end_s
            sends = not sends
        at_s = generator.uniform(0, 25)
        while keepalives and at_s < duration_s:
            packets.append((at_s, group))
            at_s += generator.uniform(20, 30)
    return _sorted(packets)


def independent(seed: int, groups: int, *, packets: int, duration_s: float, exponent: float = 1.0) -> Trace:
    """Return packets each of which is of any group, drawn by Zipf's law, at any time."""
    generator = Random(seed)
    weights = [1 / rank**exponent for rank in range(1, groups + 1)]
    drawn = generator.choices(range(groups), weights, k=packets)
    return _sorted([(generator.uniform(0, duration_s), group) for group in drawn])


def active_in_a_second(trace: Trace, from_s: float) -> float:
    """Return how many groups have a packet within a second, on average over whole seconds."""
    seen = {(int(at_s), group) for at_s, group in zip(*trace, strict=True) if at_s >= from_s}
    return len(seen) / len({second for second, _ in seen})


def _sorted(packets: list[tuple[float, int]]) -> Trace:
    packets.sort()
    return Trace([at_s for at_s, _ in packets], [group for _, group in packets])
