"""Which switches have asked for which hosts, and which host each means by a MAC address that several share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from controller.unicast.destinations import HostLocation
from topology.fabrics import Fabrics
from topology.host_names import SharedNames, shared_name


class AskedHosts:
    """The hosts of which hosts of each switch wanted something, by the names that hosts of other fabrics may share.

    Parameters
    ----------
    places : Mapping
        Where each host is, by its name; the owner changes it, and says so to `placed` and `left`.
    fabrics : Fabrics
        Which switches links join.
    """

    def __init__(self, places: Mapping[bytes, HostLocation], fabrics: Fabrics) -> None:
        self._places = places
        self._fabrics = fabrics
        self._version = 0
        self._names = SharedNames(self._dpid_of, fabrics.is_one)
        self._by: dict[bytes, set[int]] = {}
        self._at: dict[int, set[bytes]] = {}

    def add(self, dpid: int, mac: bytes) -> bool:
        """Take it that a switch asked for a host; False where it had before."""
        mac = shared_name(mac)
        at = self._at.setdefault(dpid, set())
        if mac in at:
            return False
        at.add(mac)
        self._by.setdefault(mac, set()).add(dpid)
        return True

    def forget(self, mac: bytes) -> None:
        """Forget where a host was asked for, unless there is one of its name."""
        mac = shared_name(mac)
        if not self._names.first(mac):
            for dpid in self._by.pop(mac, ()):
                self._at[dpid].discard(mac)

    def placed(self, mac: bytes) -> None:
        """Take in that a host has a place."""
        self._names.add(mac)

    def left(self, mac: bytes) -> None:
        """Take in that a host has no place any more."""
        self._names.remove(mac)

    def meant(self, dpid: int, mac: bytes) -> HostLocation | None:
        """Return where the host is that a switch means by a MAC address: that of its fabric, else the first."""
        if not self._names.is_used:
            return self._places.get(shared_name(mac))
        return self._places.get(self._names.near(mac, dpid) or self._names.first(mac))

    def at(self, dpid: int) -> list[HostLocation]:
        """Return the places of the hosts that a switch has asked for, by their MAC addresses."""
        found = [self.meant(dpid, mac) for mac in sorted(self._at.get(dpid, ()))]
        return [place for place in found if place is not None]

    def names_at(self, dpid: int) -> Collection[bytes]:
        """Return the names of the hosts that a switch has asked for, and perhaps of some that have no place."""
        if not self._names.is_used:
            return self._at.get(dpid, ())
        return [place.mac for place in self.at(dpid)]

    def by(self, mac: bytes) -> Iterable[int]:
        """Return the switches that have asked for a host and mean it."""
        dpids = self._by.get(shared_name(mac), ())
        if not self._names.is_used:
            return dpids
        place = self._places.get(mac)
        return [dpid for dpid in dpids if self.meant(dpid, mac) is place]

    def shared_by(self, mac: bytes) -> list[tuple[int, HostLocation]]:
        """Return the switches that have asked for a MAC address which some host has, each with the place it means."""
        found = [(dpid, self.meant(dpid, mac)) for dpid in sorted(self._by.get(shared_name(mac), ()))]
        return [(dpid, place) for dpid, place in found if place is not None]

    def shared_anew(self) -> list[bytes]:
        """Return the names that hosts share, where fabrics are others than when this was asked last."""
        if self._version == self._fabrics.version:
            return []
        self._version = self._fabrics.version
        return self._names.shared()

    def _dpid_of(self, mac: bytes) -> int | None:
        return self._places[mac].dpid if mac in self._places else None
