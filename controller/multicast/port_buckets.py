"""Token buckets per port: how many packet-ins one port may cost the controller."""

from __future__ import annotations

from controller.kernel.ports import End

_ROUNDING = 1e-3
"""The share of a token that a bucket may lack of one, since sums of times are rounded."""


class PortBuckets:
    """A token bucket per (datapath, port), and until when a port that overdrew it is cut off.

    Parameters
    ----------
    rate_per_s, burst
        Tokens gained per second and held at most; both above 0.
    """

    def __init__(self, rate_per_s: float, burst: float) -> None:
        self.set_rate(rate_per_s, burst)
        self._full_at_s: dict[End, float] = {}
        self._cut_off: dict[End, float] = {}

    def set_rate(self, rate_per_s: float, burst: float) -> None:
        """Take other parameters; ValueError where one is not above 0."""
        if not (rate_per_s > 0 and burst > 0):
            raise ValueError(f"rate_per_s {rate_per_s} and burst {burst} must be positive")
        self.rate_per_s = rate_per_s
        self.burst = burst
        self._token_s, self._slack_s = 1.0 / rate_per_s, (burst - 1.0 + _ROUNDING) / rate_per_s

    def take(self, dpid: int, port_no: int, now: float) -> bool:
        """Take one token of a port; False where it has none left.

        What is kept of a bucket is when it is full again, which says how many tokens it lacks.
        """
        place = (dpid, port_no)
        full_at_s = self._full_at_s.get(place, now)
        if full_at_s < now:
            full_at_s = now
        if full_at_s - now > self._slack_s:
            return False
        self._full_at_s[place] = full_at_s + self._token_s
        return True

    def cut_off(self, dpid: int, port_no: int, now: float, seconds: float) -> bool:
        """Note that a port is cut off for a while; False where it is already."""
        if self._cut_off.get((dpid, port_no), now) > now:
            return False
        self._cut_off[dpid, port_no] = now + seconds
        return True

    def forget(self, dpid: int, port_no: int) -> None:
        """Drop what is known of a port that is gone."""
        self._full_at_s.pop((dpid, port_no), None)
        self._cut_off.pop((dpid, port_no), None)
