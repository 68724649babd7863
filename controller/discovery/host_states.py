"""What is known of a host behind an edge port, and of a claim to what another holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.kernel.ports import End
from controller.kernel.token_bucket import TokenBucket


@dataclass(slots=True)
class LocatedHost:
    """A host: where it is and when each of its addresses was last seen there, all by their names in its domain.

    `addresses` has the last sign of life of each, answers to our questions included: it decides when an address is
    asked for and forgotten. `used_s` has when the host last used it by itself: it decides which one gives way.
    """

    mac: bytes
    end: End
    seen_s: float
    addresses: dict[bytes, float] = field(default_factory=dict)
    used_s: dict[bytes, float] = field(default_factory=dict)
    probed_count: dict[bytes, int] = field(default_factory=dict)
    turnover: TokenBucket | None = None

    def use(self, address: bytes, now: float) -> None:
        """Note that the host used an address, of those it has or as a new one."""
        self.addresses[address] = self.used_s[address] = self.seen_s = now

    def drop(self, address: bytes) -> None:
        """Forget an address."""
        del self.addresses[address], self.used_s[address]
        self.probed_count.pop(address, None)


@dataclass(slots=True)
class Challenge:
    """A claim to an address that another location holds; the holder is asked, and keeps it by any sign of life.

    `claimed` is the MAC address of a host that seems to have moved, or an IP address of `holder`. Once `refuted` it
    stands until its time is over, and the claimant's packets count for nothing.
    """

    claimed: bytes
    holder: bytes
    holder_end: End
    claimant: bytes
    end: End
    started: float
    addresses: dict[bytes, None] = field(default_factory=dict)
    probe_count: int = 0
    refuted: bool = False
