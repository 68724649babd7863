"""Token buckets per port: how many packet-ins one port may cost the controller."""

from __future__ import annotations

from controller.kernel.ports import End


class PortBuckets:
    """A token bucket per (datapath, port), and until when a port that overdrew it is cut off.

    Parameters
    ----------
    rate_per_s, burst
        Tokens gained per second and held at most; both above 0.
    """

    def __init__(self, rate_per_s: float, burst: float) -> None:
        self.set_rate(rate_per_s, burst)
        self._levels: dict[End, tuple[float, float]] = {}
        self._cut_off: dict[End, float] = {}

    def set_rate(self, rate_per_s: float, burst: float) -> None:
        """Take other parameters; ValueError where one is not above 0."""
        if not (rate_per_s > 0 and burst > 0):
            raise ValueError(f"rate_per_s {rate_per_s} and burst {burst} must be positive")
        self.rate_per_s = rate_per_s
        self.burst = burst

    def take(self, dpid: int, port_no: int, now: float) -> bool:
        """Take one token of a port; False where it has none left."""
        place, burst = (dpid, port_no), self.burst
        known = self._levels.get(place)
        level = burst if known is None else known[0] + (now - known[1]) * self.rate_per_s
        if level > burst:
            level = burst
        if level < 1.0:
            self._levels[place] = (level, now)
            return False
        self._levels[place] = (level - 1.0, now)
        return True

    def cut_off(self, dpid: int, port_no: int, now: float, seconds: float) -> bool:
        """Note that a port is cut off for a while; False where it is already."""
        if self._cut_off.get((dpid, port_no), now) > now:
            return False
        self._cut_off[dpid, port_no] = now + seconds
        return True

    def forget(self, dpid: int, port_no: int) -> None:
        """Drop what is known of a port that is gone."""
        self._levels.pop((dpid, port_no), None)
        self._cut_off.pop((dpid, port_no), None)
