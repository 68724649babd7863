"""How many packets the controller hands on of groups that are out of the switches' tables."""

from __future__ import annotations

from collections import Counter

from controller.config.overcommit_settings import Overcommit
from controller.kernel.token_bucket import TokenBucket


class CarriedPackets:
    """A budget per switch, and one per group for as many as the store has; of more, the one begun first begins anew.

    `counters` counts what is dropped, `faults-over-limit` and `carried-over-limit`.
    """

    def __init__(self, settings: Overcommit, counters: Counter[str]) -> None:
        self._counters = counters
        self.use(settings)

    def use(self, settings: Overcommit) -> None:
        """Go by another policy; all budgets begin anew."""
        self._per_second = settings.carried_packets_per_second
        self._bound = settings.store
        self._buckets: dict[bytes, TokenBucket] = {}
        self._faults_per_second = settings.faults_per_second
        self._at_switches: dict[int, TokenBucket] = {}

    def may(self, dpid: int, address: bytes, now: float) -> bool:
        """Take one packet of a group at a switch; False where either has had as many as it may."""
        at_switch = self._at_switches.get(dpid)
        if at_switch is None:
            rate = self._faults_per_second
            at_switch = self._at_switches[dpid] = TokenBucket(rate, rate, now)
        if not at_switch.take(now):
            self._counters["faults-over-limit"] += 1
            return False
        bucket = self._buckets.get(address)
        if bucket is None:
            bucket = self._buckets[address] = TokenBucket(self._per_second, self._per_second, now)
            if len(self._buckets) > self._bound:
                del self._buckets[next(iter(self._buckets))]
        if not bucket.take(now):
            self._counters["carried-over-limit"] += 1
            return False
        return True

    def forget(self, address: bytes) -> None:
        """Drop the budget of a group that is in, or is no more."""
        self._buckets.pop(address, None)
