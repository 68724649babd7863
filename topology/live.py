"""The live fabric as an app knows it: what topology events add up to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from topology.aggregations import Aggregations, Place, chosen
from topology.events import (
    HostGone,
    HostLearnt,
    LinkDown,
    LinkUp,
    PortRole,
    PortRoleChanged,
    SwitchDown,
    SwitchUp,
    TopologyEvent,
)
from topology.fabrics import Fabrics
from topology.graph import Graph, NodeKind
from topology.host_names import SharedNames


class LiveFabric:
    """Switches, links, port roles and hosts, kept up to date by `apply`.

    `graph` holds the connected switches and the links between them; a switch that has hosts is a ToR, so that levels
    count from the servers. Hosts are no nodes of it. `fabrics` says which switches links join, `aggregations` which
    ports lead to one host together. Events may come twice and, as far as they speak of different
    switches, links, ports or hosts, in any order: the outcome is the same. `SwitchDown` forgets all of a switch, and
    `LinkUp` what was cabled to one of its ends before.
    """

    def __init__(self, aggregations: Aggregations | None = None) -> None:
        self.graph = Graph()
        self.fabrics = Fabrics(self.graph)
        self.aggregations = aggregations or Aggregations()
        self._flooded: dict[Place, Place] = {}
        self._versions: dict[int, int] = {}
        self._cables: dict[int, dict[int, LinkUp]] = {}
        self._roles: dict[int, dict[int, PortRole]] = {}
        self._edge_ports: dict[int, tuple[int, ...]] = {}
        self._hosts: dict[bytes, HostLearnt] = {}
        self._hosts_at: dict[int, dict[int, dict[bytes, HostLearnt]]] = {}
        self._owners: dict[bytes, set[bytes]] = {}
        self._names = SharedNames(self._dpid_of, self.fabrics.is_one)
        self._apply: dict[type, Callable[[Any], bool]] = {
            SwitchUp: self._switch_up,
            SwitchDown: self._switch_down,
            LinkUp: self._link_up,
            LinkDown: self._link_down,
            PortRoleChanged: self._port_role_changed,
            HostLearnt: self._host_learnt,
            HostGone: self._host_gone,
        }

    def apply(self, event: TopologyEvent) -> bool:
        """Take in one event and tell whether anything changed; KeyError for anything but a topology event."""
        return self._apply[type(event)](event)

    def ofp_version(self, dpid: int) -> int | None:
        """Return the OpenFlow version of a connected switch, None for any other."""
        return self._versions.get(dpid)

    def ofp_versions(self) -> Mapping[int, int]:
        """Return the OpenFlow version of every connected switch."""
        return self._versions

    def switches(self) -> tuple[int, ...]:
        """Return the datapath ids of the connected switches in ascending order."""
        return tuple(sorted(self._versions))

    def role(self, dpid: int, port_no: int) -> PortRole:
        """Return what is behind a port, `UNKNOWN` for one never heard of."""
        return self._roles.get(dpid, {}).get(port_no, PortRole.UNKNOWN)

    def roles(self, dpid: int) -> Mapping[int, PortRole]:
        """Return what is behind each port of a switch that was heard of."""
        return self._roles.get(dpid, {})

    def ports(self, dpid: int, role: PortRole) -> tuple[int, ...]:
        """Return the ports of a switch that have a role, in ascending order."""
        return tuple(sorted(port_no for port_no, has in self._roles.get(dpid, {}).items() if has is role))

    def cable(self, dpid: int, port_no: int) -> LinkUp | None:
        """Return the cable at a port, the lower datapath id first."""
        return self._cables.get(dpid, {}).get(port_no)

    def cables(self, dpid_a: int, dpid_b: int) -> list[LinkUp]:
        """Return the cables between two switches, by the ports of the first."""
        found = sorted(self._cables.get(dpid_a, {}).items())
        return [link for _, link in found if dpid_b in (link.dpid_a, link.dpid_b)]

    def displaced(self, event: LinkUp) -> list[LinkUp]:
        """Return the cables that were at the ends of one that came up, each of which leads elsewhere now."""
        at_ends = (self.cable(event.dpid_a, event.port_a), self.cable(event.dpid_b, event.port_b))
        ends = _ends(event)
        return sorted({cable for cable in at_ends if cable is not None and _ends(cable) != ends})

    def edge_ports(self, dpid: int) -> tuple[int, ...]:
        """Return the ports of a switch that lead to hosts, in ascending order."""
        return self._edge_ports.get(dpid, ())

    # Link aggregation groups

    def aggregate(self, aggregations: Aggregations) -> None:
        """Go by other link aggregation groups from now on."""
        self.aggregations = aggregations
        self._flooded.clear()
        for home, _ in aggregations.all():
            self._choose_flooded(home)

    def is_one_port(self, one: Place, other: Place) -> bool:
        """Tell whether two ports are the same, or legs of one group."""
        return one == other or self.aggregations.home(one) == self.aggregations.home(other)

    def working_legs(self, place: Place) -> list[Place]:
        """Return those of the legs of a port's group that lead to hosts now, in the operator's order."""
        return [leg for leg in self.aggregations.legs(place) if self.role(*leg) is PortRole.EDGE]

    def is_flooded(self, dpid: int, port_no: int) -> bool:
        """Tell whether a port to hosts gets what all hosts get: of a group one leg does, the same while it works."""
        home = self.aggregations.homes.get((dpid, port_no))
        return home is None or self._flooded.get(home) == (dpid, port_no)

    def flooded_leg(self, place: Place) -> Place | None:
        """Return the leg of a port's group that gets what all hosts get, None where none works."""
        home = self.aggregations.homes.get(place)
        return place if home is None else self._flooded.get(home)

    def _choose_flooded(self, place: Place) -> None:
        """Have a group's leg for what all hosts get be one that works."""
        home = self.aggregations.homes.get(place)
        if home is None:
            return
        working = self.working_legs(home)
        if self._flooded.get(home) not in working:
            leg = chosen(b"", working)
            if leg is None:
                self._flooded.pop(home, None)
            else:
                self._flooded[home] = leg

    def host(self, mac: bytes) -> HostLearnt | None:
        """Return the host with this name of a MAC address; in which fabric it is does not matter."""
        return self._hosts.get(mac)

    def host_near(self, mac: bytes, dpid: int) -> HostLearnt | None:
        """Return the host of a switch's fabric that has a MAC address, whatever number its name has."""
        host = self._hosts.get(mac)
        if host is None or host.dpid != dpid:
            host = self._hosts.get(self._names.near(mac, dpid))
        return host

    def host_by_ip(self, address: bytes, dpid: int | None = None) -> HostLearnt | None:
        """Return the host that holds an IPv4 or IPv6 address (of several claimants the lowest MAC address).

        That is the one in a switch's fabric where `dpid` is given, else in any.
        """
        owners: Collection[bytes] = self._owners.get(address, ())
        if dpid is not None:
            owners = [mac for mac in owners if self.fabrics.is_one(dpid, self._hosts[mac].dpid)]
        return self._hosts[min(owners)] if owners else None

    def hosts(self) -> tuple[HostLearnt, ...]:
        """Return all hosts, by MAC address."""
        return tuple(self._hosts[mac] for mac in sorted(self._hosts))

    def hosts_at(self, dpid: int, port_no: int) -> tuple[HostLearnt, ...]:
        """Return the hosts behind one port, by MAC address."""
        found = self._hosts_at.get(dpid, {}).get(port_no)
        return tuple(found[mac] for mac in sorted(found)) if found else ()

    def hosts_of(self, dpid: int) -> tuple[HostLearnt, ...]:
        """Return the hosts behind all ports of one switch, by port and MAC address."""
        return tuple(
            host for port_no in sorted(self._hosts_at.get(dpid, ())) for host in self.hosts_at(dpid, port_no)
        )

    def binding_conflict(self, mac: bytes, address: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether a source is false at a port: its MAC address lives elsewhere, or its IP address is another's.

        Addresses that nobody is known to hold in the port's fabric do not conflict.
        """
        host = self._hosts.get(mac)
        if host is None or host.port_no != port_no or host.dpid != dpid:
            is_unknown, host = host is None, self.host_near(mac, dpid)
            if host is None:
                mac = mac if is_unknown else b""  # in another fabric it is another host's
            elif not self.is_one_port((host.dpid, host.port_no), (dpid, port_no)):
                return True
            else:
                mac = host.mac
        owners = self._owners.get(address)
        if owners is None or mac in owners:
            return False
        return any(self.fabrics.is_one(dpid, self._hosts[owner].dpid) for owner in owners)

    def snapshot(self) -> tuple[TopologyEvent, ...]:
        """Return events that lead a new `LiveFabric` to this state."""
        return (*self.structure(), *self.hosts())

    def structure(self) -> tuple[TopologyEvent, ...]:
        """Return events that lead a new `LiveFabric` to the same switches, ports and links."""
        events: list[TopologyEvent] = [SwitchUp(dpid, self._versions[dpid]) for dpid in sorted(self._versions)]
        for dpid in sorted(self._roles):
            events += [PortRoleChanged(dpid, port_no, role) for port_no, role in sorted(self._roles[dpid].items())]
        events += sorted({cable for at in self._cables.values() for cable in at.values()})
        return tuple(events)

    def _switch_up(self, event: SwitchUp) -> bool:
        if self._versions.get(event.dpid) == event.ofp_version:
            return False
        fresh = event.dpid not in self._versions
        self._versions[event.dpid] = event.ofp_version
        if fresh:
            self.graph.add_node(event.dpid, self._kind(event.dpid))
            self.fabrics.switch_added(event.dpid)
            for _, cable in sorted(self._cables.get(event.dpid, {}).items()):
                self._join(cable)
        return True

    def _switch_down(self, event: SwitchDown) -> bool:
        dpid = event.dpid
        known = self._versions.pop(dpid, None) is not None
        if known:
            neighbours: tuple[Any, ...] = self.graph.neighbours(dpid)
            self.graph.remove_node(dpid)
            self.fabrics.switch_removed(dpid, neighbours)
        cables = list(self._cables.get(dpid, {}).values())
        for cable in cables:
            self._unplug(cable)
        roles = self._roles.pop(dpid, None)
        self._edge_ports.pop(dpid, None)
        if self.aggregations.is_used:
            for port_no in roles or ():
                self._choose_flooded((dpid, port_no))
        hosts = self.hosts_of(dpid)
        for host in hosts:
            self._forget(host)
        return known or bool(cables) or bool(roles) or bool(hosts)

    def _link_up(self, event: LinkUp) -> bool:
        if event.dpid_a > event.dpid_b:
            event = LinkUp(event.dpid_b, event.port_b, event.dpid_a, event.port_a, event.capacity_bps)
        if self.cable(event.dpid_a, event.port_a) == event:
            return False
        for cable in self.displaced(event):
            self._unplug(cable)
        for dpid, port_no in _ends(event):
            self._cables.setdefault(dpid, {})[port_no] = event
        self._join(event)
        return True

    def _join(self, event: LinkUp) -> None:
        if event.dpid_a in self._versions and event.dpid_b in self._versions:
            self.graph.add_link(event.dpid_a, event.dpid_b, event.port_a, event.port_b, event.capacity_bps)
            self.fabrics.linked(event.dpid_a, event.dpid_b)

    def _link_down(self, event: LinkDown) -> bool:
        cable = self.cable(event.dpid_a, event.port_a)
        if cable is None or _ends(cable) != _ends(event):
            return False
        self._unplug(cable)
        return True

    def _unplug(self, cable: LinkUp) -> None:
        for dpid, port_no in _ends(cable):
            del self._cables[dpid][port_no]
            if not self._cables[dpid]:
                del self._cables[dpid]
        if self.graph.cable(cable.dpid_a, cable.dpid_b, cable.port_a) is not None:
            self.graph.remove_link(cable.dpid_a, cable.dpid_b, cable.port_a)
            self.fabrics.unlinked(cable.dpid_a, cable.dpid_b)

    def _port_role_changed(self, event: PortRoleChanged) -> bool:
        if self.role(event.dpid, event.port_no) is event.role:
            return False
        roles = self._roles.setdefault(event.dpid, {})
        if event.role is PortRole.UNKNOWN:
            del roles[event.port_no]
        else:
            roles[event.port_no] = event.role
        self._edge_ports[event.dpid] = tuple(sorted(port for port, role in roles.items() if role is PortRole.EDGE))
        if self.aggregations.is_used:
            self._choose_flooded((event.dpid, event.port_no))
        return True

    def _host_learnt(self, event: HostLearnt) -> bool:
        before = self._hosts.get(event.mac)
        if before == event:
            return False
        if before is not None:
            self._forget(before, replaced=before.dpid == event.dpid)
        self._hosts[event.mac] = event
        self._names.add(event.mac)
        self._hosts_at.setdefault(event.dpid, {}).setdefault(event.port_no, {})[event.mac] = event
        for address in event.addresses:
            self._owners.setdefault(address, set()).add(event.mac)
        self._set_kind(event.dpid)
        return True

    def _host_gone(self, event: HostGone) -> bool:
        host = self._hosts.get(event.mac)
        if host is None or host.dpid != event.dpid or host.port_no != event.port_no:
            return False
        self._forget(host)
        return True

    def _forget(self, host: HostLearnt, replaced: bool = False) -> None:
        del self._hosts[host.mac]
        self._names.remove(host.mac)
        ports = self._hosts_at[host.dpid]
        del ports[host.port_no][host.mac]
        if not ports[host.port_no]:
            del ports[host.port_no]
        if not ports:
            del self._hosts_at[host.dpid]
        for address in host.addresses:
            owners = self._owners.get(address)
            if owners is not None:
                owners.discard(host.mac)
                if not owners:
                    del self._owners[address]
        if not replaced:
            self._set_kind(host.dpid)

    def _dpid_of(self, mac: bytes) -> int | None:
        host = self._hosts.get(mac)
        return None if host is None else host.dpid

    def _kind(self, dpid: int) -> NodeKind:
        return NodeKind.TOR if dpid in self._hosts_at else NodeKind.SWITCH

    def _set_kind(self, dpid: int) -> None:
        if dpid in self._versions:
            self.graph.add_node(dpid, self._kind(dpid))


def _ends(event: LinkUp | LinkDown) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return both ends of a cable, the lower one first."""
    one, other = (event.dpid_a, event.port_a), (event.dpid_b, event.port_b)
    return (one, other) if one < other else (other, one)
