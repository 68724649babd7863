"""Traces of packets that are independent of each other, and how many groups are active in a trace."""

from __future__ import annotations

from random import Random

from controller.simulation.table_trace import Trace


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
