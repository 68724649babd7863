"""Port statistics of a simulated switch: counters that rise with time, each port at a rate of its own."""

from __future__ import annotations

import numpy as np

from apps.simulated_fabric.messages import ANY

ENTRY = np.dtype(
    [("port_no", ">u4"), ("pad", "V4"), ("counters", ">u8", (12,)), ("duration_s", ">u4"), ("duration_ns", ">u4")]
)
"""One port in a reply of OFPMP_PORT_STATS (1.3.5, 7.3.5.6)."""

HIGHEST_RATE = 10_000_000
_BEFORE_S = 1000.0
"""How long ports have been counting when they are first asked."""


class PortCounters:
    """Packets and bytes of the ports of a switch; nothing is dropped and nothing is wrong."""

    def __init__(self, dpid: int, ports: list[int]) -> None:
        self._entries = np.zeros(len(ports), ENTRY)
        self._entries["port_no"] = ports
        self._per_s = np.random.default_rng(dpid).integers(0, HIGHEST_RATE, (len(ports), 12)).astype(np.uint64)
        self._per_s[:, 4:] = 0
        self._began_s: float | None = None

    def read(self, now: float, port_no: int) -> list[bytes]:
        """Return the statistics of a port, or of all (`ANY`)."""
        if self._began_s is None:
            self._began_s = now - _BEFORE_S
        past_s = now - self._began_s
        self._entries["counters"] = self._per_s * np.uint64(past_s * 1000) // np.uint64(1000)
        self._entries["duration_s"], self._entries["duration_ns"] = int(past_s), int(past_s % 1 * 1e9)
        chosen = self._entries if port_no == ANY else self._entries[self._entries["port_no"] == port_no]
        whole, size = chosen.tobytes(), ENTRY.itemsize
        return [whole[at : at + size] for at in range(0, len(whole), size)]
