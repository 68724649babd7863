"""What many are to hear: frames that go from the controller to all edge ports of a fabric, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from controller.effects import SendPacket
from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import OWN_DOMAIN, in_domain
from controller.kernel.ports import End
from controller.kernel.token_bucket import TokenBucket
from controller.kernel.vlan_ports import VlanPorts
from controller.unicast.settings import UnicastSettings
from controller.wire.ethernet import with_tag
from topology.live import LiveFabric

RELAY_HOME_S = 10.0
MAX_HOMES_COUNT = 16384
RELAY_FEW_SHARE, RELAY_KEPT_SHARE = 0.1, 0.5
"""A share of what one port may relay counts as few; for those that relay so few a share of what all may is kept."""

Counted: TypeAlias = Callable[[str, End, str], None]

_Stranger: TypeAlias = tuple[bytes, int]
"""A sender that is no known host, by the name of its MAC address and its fabric."""


class Relays:
    """Relays frames, and drops what comes back of them at another port than its sender's."""

    def __init__(
        self, fabric: LiveFabric, settings: UnicastSettings, vlan_ports: VlanPorts, counted: Counted
    ) -> None:
        self._fabric = fabric
        self._vlan_ports = vlan_ports
        self._settings = settings
        self._counted = counted
        self._buckets: dict[End, tuple[TokenBucket, TokenBucket]] = {}
        self._total = TokenBucket(settings.relay_total_burst_count, settings.relay_total_rate_per_s, 0.0)
        self._homes: dict[_Stranger, End] = {}
        self._expiry: Deadlines[_Stranger] = Deadlines()
        self.next_deadline: Callable[[], float | None] = self._expiry.next

    def relay(self, origin: End, data: bytes, now: float, vlan_id: int = OWN_DOMAIN) -> list[SendPacket]:
        """Return a frame without tag for the edge ports of its domain and fabric but `origin`, tagged where they are.

        That is as far as the bounds on the port of origin and on all allow. A part of what all may is kept for ports
        that relay few, so that those that relay many do not silence them.
        """
        mac = data[6:12]
        settings = self._settings
        is_ours = mac == settings.controller_mac
        if vlan_id:
            mac = in_domain(mac, vlan_id)
        if not is_ours and not self._is_at_home(mac, origin):
            self._counted("relay-returned", origin, "receives a broadcast from a host of another port: it is dropped")
            return []
        buckets = self._buckets.get(origin)
        if buckets is None:
            burst, rate_per_s = settings.relay_burst_count, settings.relay_rate_per_s
            few = TokenBucket(RELAY_FEW_SHARE * burst, RELAY_FEW_SHARE * rate_per_s, now)
            buckets = self._buckets[origin] = (TokenBucket(burst, rate_per_s, now), few)
        any_number, few = buckets
        if not any_number.take(now):
            self._counted("relay-limit", origin, "receives too many broadcasts: those beyond the limit are dropped")
            return []
        packets = self._to_domain(origin, data, vlan_id) if self._vlan_ports.is_used else self._to_all(origin, data)
        kept = 0.0 if few.take(now) else RELAY_KEPT_SHARE * settings.relay_total_burst_count
        if not self._total.take(now, len(packets), kept):
            self._counted(
                "relay-limit",
                origin,
                "receives a broadcast that is dropped: all ports together are over the limit",
            )
            return []
        if not is_ours and self._fabric.host_near(mac, origin[0]) is None:
            stranger = self._stranger(mac, origin)
            self._homes[stranger] = origin
            self._expiry.set(stranger, now + RELAY_HOME_S)
        return packets

    def on_deadline(self, now: float) -> None:
        """Forget where frames of unknown senders were relayed from."""
        for stranger in self._expiry.due(now):
            self._homes.pop(stranger, None)

    def switch_down(self, dpid: int) -> None:
        """Forget the bounds on the ports of a switch that is gone."""
        for end in [end for end in self._buckets if end[0] == dpid]:
            del self._buckets[end]

    def _to_all(self, origin: End, data: bytes) -> list[SendPacket]:
        packets = []
        for dpid in self._reached(origin):
            ports = self._but_for(origin, dpid, self._fabric.edge_ports(dpid))
            if ports:
                packets.append(SendPacket(dpid, ports, data))
        return packets

    def _to_domain(self, origin: End, data: bytes, vlan_id: int) -> list[SendPacket]:
        packets = []
        tagged = with_tag(data, vlan_id)
        for dpid in self._reached(origin):
            oifs = self._vlan_ports.oifs(dpid, vlan_id)
            for ports, frame in ((oifs.untagged, data), (oifs.tagged, tagged)):
                others = self._but_for(origin, dpid, ports)
                if others:
                    packets.append(SendPacket(dpid, others, frame))
        return packets

    def _reached(self, origin: End) -> list[int]:
        """Return the switches of the fabric that a port is in."""
        fabric = self._fabric.fabrics.of(origin[0])
        return [] if fabric is None else sorted(fabric.switches)

    def _but_for(self, origin: End, dpid: int, ports: Iterable[int]) -> tuple[int, ...]:
        """Return those ports of a switch, of each link aggregation group one leg, that are not the origin."""
        if not self._fabric.aggregations.is_used:
            return tuple(port_no for port_no in ports if (dpid, port_no) != origin)
        fabric = self._fabric
        return tuple(
            port_no
            for port_no in ports
            if fabric.is_flooded(dpid, port_no) and not fabric.is_one_port((dpid, port_no), origin)
        )

    def _stranger(self, mac: bytes, origin: End) -> _Stranger:
        fabric = self._fabric.fabrics.of(origin[0])
        return mac, origin[0] if fabric is None else fabric.dpid

    def _is_at_home(self, mac: bytes, origin: End) -> bool:
        """Tell whether a sender is where it is known to live, or where its frames were relayed from of late."""
        host = self._fabric.host_near(mac, origin[0])
        if host is not None:
            return self._fabric.is_one_port((host.dpid, host.port_no), origin)
        home = self._homes.get(self._stranger(mac, origin))
        if home is not None and self._fabric.is_one_port(home, origin):
            return True
        return home is None and len(self._homes) < MAX_HOMES_COUNT
