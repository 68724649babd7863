"""How many packets the controller hands on of each group that is out of the switches' tables."""

from __future__ import annotations

from controller.config.overcommit_settings import Overcommit
from controller.kernel.token_bucket import TokenBucket


class CarriedPackets:
    """A budget per group, for as many groups as the store has; of more, the one begun first begins anew."""

    def __init__(self, settings: Overcommit) -> None:
        self.use(settings)

    def use(self, settings: Overcommit) -> None:
        """Go by another policy; all budgets begin anew."""
        self._per_second = settings.carried_packets_per_second
        self._bound = settings.store
        self._buckets: dict[bytes, TokenBucket] = {}

    def may(self, address: bytes, now: float) -> bool:
        """Take one packet of a group; False where it has had as many as it may."""
        bucket = self._buckets.get(address)
        if bucket is None:
            bucket = self._buckets[address] = TokenBucket(self._per_second, self._per_second, now)
            if len(self._buckets) > self._bound:
                del self._buckets[next(iter(self._buckets))]
        return bucket.take(now)

    def forget(self, address: bytes) -> None:
        """Drop the budget of a group that is in, or is no more."""
        self._buckets.pop(address, None)
