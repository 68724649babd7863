"""What waits for discovery to say where a host is: reports from a new place, and memberships at a former one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from topology.aggregations import Place

HOSTS_BOUND = 16384
"""Hosts remembered, of either kind; beyond it the one noted first goes."""

PLACES_BOUND = 4
"""Places remembered of one host; beyond it the first goes."""

EARLY_FRAMES_BOUND = 8
"""Reports kept of one host."""

EARLY_S = 3.0
"""How long a report is kept until its host is known to be where it came from."""


class EarlyReport(NamedTuple):
    """A report from where its host is not known to be, yet."""

    dpid: int
    port_no: int
    frame: bytes
    received_s: float


class HostPlaces:
    """Small memories around `HostLearnt`, of hosts by the names that they share with those of other fabrics.

    `is_one_fabric` tells of two datapath ids whether links join them.
    """

    def __init__(self, is_one_fabric: Callable[[int, int], bool]) -> None:
        self._is_one_fabric = is_one_fabric
        self._places: dict[bytes, list[Place]] = {}
        self._early: dict[bytes, list[EarlyReport]] = {}

    def note(self, mac: bytes, dpid: int, port_no: int) -> None:
        """Remember that a host may have memberships or senders at a place where it is not known to be."""
        places = self._places.get(mac)
        if places is None:
            if len(self._places) >= HOSTS_BOUND:
                del self._places[next(iter(self._places))]
            self._places[mac] = [(dpid, port_no)]
        elif (dpid, port_no) not in places:
            places.append((dpid, port_no))
            del places[:-PLACES_BOUND]

    def keep(self, mac: bytes, report: EarlyReport) -> None:
        """Keep a report for the time that a move takes to be confirmed."""
        reports = self._early.pop(mac, [])
        if len(self._early) >= HOSTS_BOUND:
            del self._early[next(iter(self._early))]
        self._early[mac] = [*reports[1 - EARLY_FRAMES_BOUND :], report]

    def left(self, mac: bytes, dpid: int, port_no: int) -> list[Place]:
        """Return where a host that is now known to be at a port may have been before in its fabric, and forget it."""
        places = self._places.pop(mac, None)
        if places is None:
            return []
        if others := [place for place in places if not self._is_one_fabric(place[0], dpid)]:
            self._places[mac] = others
        return [place for place in places if place != (dpid, port_no) and place not in others]

    def early_reports(self, mac: bytes, dpid: int, port_no: int, now: float) -> list[bytes]:
        """Return the frames kept of a host that came from where it is now known to be; forget those of its fabric."""
        reports = self._early.pop(mac, None)
        if reports is None:
            return []
        if others := [report for report in reports if not self._is_one_fabric(report.dpid, dpid)]:
            self._early[mac] = others
        here = [report for report in reports if (report.dpid, report.port_no) == (dpid, port_no)]
        return [report.frame for report in here if now - report.received_s <= EARLY_S]
