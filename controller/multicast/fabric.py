"""Follows the fabric: what a change of switches, links, ports and hosts means for trees, flooding and members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

from controller.datapath.lanes import Urgency
from controller.effects import Effect, Notice
from controller.events import PortChanged, SwitchConnected
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.drains import avoided_links, merged
from controller.multicast.flood import FloodPlane
from controller.multicast.group import Place
from controller.multicast.groups import GroupPlane
from controller.multicast.places import HostPlaces
from controller.multicast.returning import ReturningLinks
from controller.multicast.switch_ports import SwitchPorts, with_legs
from controller.rules.installer import Installer
from controller.rules.pipeline import OPENFLOW_1_0
from controller.trees.islands import group_of
from controller.trees.tree import Change
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
from topology.graph import NodeId, NodeKind
from topology.host_names import shared_name
from topology.live import LiveFabric

FLOOD_SETTLE_S = 0.02
"""Topology changes that come close together lead to one change of the link-scope entries."""

FLOOD_SETTLE_PER_SWITCH_S, FLOOD_SETTLE_LONGEST_S = 0.005, 2.0
"""The more switches the last change concerned, the longer the next one waits: while a fabric comes up, the spanning
tree changes with every link. A switch takes up to 1 ms, so that flooding has a fifth of a processor at most."""

PORTS_AT_ONCE = 2048
"""Ports that are looked at in one turn, and those of one more switch, for what flooding has to know of them."""

TERMINALS_AT_ONCE = 8
"""Trees are built around what was lost until they had so many terminals together; then others have their turns."""

_LAST_PORT = {OPENFLOW_1_0: 0xFF00, 4: 0xFFFFFF00}
"""Highest physical port number by OpenFlow version (OFPP_MAX)."""


class ServedPorts(Protocol):
    """Who serves ports that lead to hosts, and the hosts there."""

    def removed(self, dpid: int, port_no: int, now: float) -> None:
        """Forget what was at a port that leads to hosts no more."""

    def suspended(self, dpid: int, port_no: int, now: float) -> None:
        """Keep what is at a port whose switch is gone, until it is back or too old."""

    def host_left(self, mac: bytes, dpid: int, port_no: int, now: float) -> None:
        """Forget a host at a place where it is no more."""

    def host_placed(self, mac: bytes, dpid: int, port_no: int, addresses: Iterable[bytes], now: float) -> None:
        """Look again at what concerns a host and addresses that are known to be at a port."""


class FollowerOwner(Protocol):
    """What the follower asks the core around it."""

    counters: Counter[str]
    fabric: LiveFabric
    installer: Installer
    plane: GroupPlane
    flood: FloodPlane
    places: HostPlaces
    vlan_ports: VlanPorts

    def perform(self, effects: Iterable[Effect]) -> None:
        """Take effects that followed from an event."""

    def follow(self, event: TopologyEvent, now: float) -> None:
        """Follow a topology event that had to wait."""

    def topology_changed(self, event: TopologyEvent, now: float) -> None:
        """Take note of what became of a switch, link or port."""

    def trees_changed(self, changes: Iterable[Change], now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        """Follow changes of trees."""

    def group_changed(self, group: bytes, now: float) -> None:
        """Take note that a group is told otherwise."""

    def port_added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve an edge port."""

    @property
    def edge_ports(self) -> ServedPorts:
        """Ports that lead to hosts."""


class FabricFollower:
    """Keeps a `LiveFabric` by topology events, and the forest in step with its graph.

    A host that is gone keeps its memberships: they age, end with its port, or when it turns up elsewhere. `edges` are
    the ports that lead to hosts, `connected` the datapaths that can be told something, `drained` those that trees and
    link-scope flooding avoid, `inherited` the ports that stay as an earlier run left them, since nothing was heard of
    them yet: trees of that run may use them.

    `repaired_count` counts the trees that lost a link, `repair_due_s` is when the next of them are built around it.
    """

    def __init__(self, owner: FollowerOwner) -> None:
        self.fabric = owner.fabric
        self.flood_due_s: float | None = None
        self.repair_due_s: float | None = None
        self.repaired_count = 0
        self._owner = owner
        self._flood_earliest_s = float("-inf")
        self._flood_again = False
        self._ports: dict[int, set[int]] = {}
        self._switch_ports: dict[int, SwitchPorts] = {}
        self._touched: set[int] = set()
        self._looked_at: set[int] = set()
        self._versions: dict[int, int] = {}
        self.connected: set[int] = set()
        self.edges: set[Place] = set()
        self.drained: set[int] = set()
        self.inherited: dict[int, set[int]] = {}
        self._returning = ReturningLinks(owner.installer, self.fabric.graph)
        self.waits_for = self._returning.waits_for
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            SwitchUp: self._switch_up,
            SwitchDown: self._switch_down,
            LinkUp: self._link_up,
            LinkDown: self._link_down,
            PortRoleChanged: self._port_role_changed,
        }

    def ports(self, dpid: int) -> AbstractSet[int]:
        """Return the physical ports of a datapath as it told them last."""
        return self._ports.get(dpid, frozenset())

    def ofp_version(self, dpid: int) -> int | None:
        """Return the OpenFlow version that a datapath spoke last."""
        return self._versions.get(dpid)

    def switch_connected(self, event: SwitchConnected, now: float, starting: bool) -> None:
        """Take in a datapath's version and ports; `starting` while an earlier run's trees may still be in use."""
        dpid, ofp_version, ports, _ = event
        is_new = dpid not in self._versions
        self._versions[dpid] = ofp_version
        self.connected.add(dpid)
        self._ports[dpid] = {port.port_no for port in ports if port.port_no <= _LAST_PORT[ofp_version]}
        if starting and is_new:
            role = self.fabric.role
            self.inherited[dpid] = {port for port in self._ports[dpid] if role(dpid, port) is PortRole.UNKNOWN}
        self._owner.perform(self._owner.plane.switch_version(dpid, ofp_version, now))
        self.flood_soon(now, dpid)

    def switch_disconnected(self, dpid: int) -> None:
        """Take in that a datapath cannot be told anything for now."""
        self.connected.discard(dpid)
        self._touched.add(dpid)

    def disinherit(self, dpid: int, now: float) -> None:
        """Close what ports of a switch are still left as an earlier run had them."""
        if self.inherited.pop(dpid, None):
            self.flood_soon(now, dpid)

    def port_changed(self, event: PortChanged, now: float) -> None:
        """Take in that a port was added, changed or deleted."""
        ports = self._ports.get(event.dpid)
        if ports is None or event.port.port_no > _LAST_PORT[self._versions[event.dpid]]:
            return
        if event.deleted:
            ports.discard(event.port.port_no)
        else:
            ports.add(event.port.port_no)
        self.flood_soon(now, event.dpid)

    def apply(self, event: TopologyEvent, now: float) -> bool:
        """Follow one topology event and tell whether it changed anything."""
        if isinstance(event, HostLearnt):
            return self._host_learnt(event, now)
        if self.repair_due_s is not None and _needs_whole_trees(event):
            self.finish_repairs(now)
        if isinstance(event, LinkUp) and self._returning.holds(event):
            self._hold(event, now)
            return False
        if isinstance(event, LinkUp):
            for cable in self.fabric.displaced(event):
                self._owner.follow(LinkDown(*cable[:4]), now)
        lost = self._returning.link_down(event) if isinstance(event, LinkDown) else ()
        if not self.fabric.apply(event):
            return False
        if isinstance(event, HostGone):
            self._owner.places.note(
                shared_name(event.mac), *self.fabric.aggregations.home((event.dpid, event.port_no))
            )
        else:
            self._handlers[type(event)](event, now)
            for end in lost:
                self._close_lost(*end, now)
            self._owner.topology_changed(event, now)
            if isinstance(event, LinkUp | LinkDown):
                self.flood_soon(now, event.dpid_a, event.dpid_b)
            else:
                self.flood_soon(now, event.dpid, *self._beside(event))
        return True

    def _beside(self, event: SwitchUp | SwitchDown | PortRoleChanged) -> Iterable[int]:
        """Return the switches that may flood by other legs of link aggregation groups after an event."""
        aggregations = self.fabric.aggregations
        if not aggregations.is_used:
            return ()
        if isinstance(event, PortRoleChanged):
            return {leg[0] for leg in aggregations.legs((event.dpid, event.port_no))}
        return {leg[0] for _, legs in aggregations.all() if any(at == event.dpid for at, _ in legs) for leg in legs}

    def leads_to_hosts(self, place: Place) -> bool:
        """Tell whether a port, or a leg of its link aggregation group, leads to hosts."""
        return place in self.edges or any(leg in self.edges for leg in self.fabric.aggregations.legs(place))

    def entries_confirmed(self, dpid: int, now: float) -> None:
        """Take in that a switch may have confirmed what it was told: links wait for that, and ports."""
        if self._returning.waits_for(dpid):
            self._look_at_returning(now)

    def finish_repairs(self, now: float) -> None:
        """Build all trees that lost something around it."""
        while self.repair_due_s is not None:
            self._repair(now)

    def _repair(self, now: float) -> None:
        """Build some of the trees that lost something around it."""
        forest = self._owner.plane.forest
        self._owner.trees_changed(forest.repair(TERMINALS_AT_ONCE), now)
        self.repair_due_s = now if forest.is_broken else None
        self._look_at_returning(now)

    def _look_at_returning(self, now: float) -> None:
        """Take links into use that need not be held any more, and open ports that need not be shut.

        What switches are told of a lost link is not known before all trees are built around it.
        """
        if self.repair_due_s is not None:
            return
        for event in self._returning.released():
            self._owner.follow(event, now)
        for dpid, port_no in self._returning.opened():
            self._owner.perform(self._owner.flood.open_port(dpid, port_no, now))
            self.flood_soon(now, dpid)

    def confirmed(self, event: TopologyEvent, now: float) -> None:
        """Take in that an edge port known from the journal was found again: its hosts can be asked now."""
        if isinstance(event, PortRoleChanged) and event.role is PortRole.EDGE:
            self._owner.port_added(event.dpid, event.port_no, now)

    def set_drained(self, dpid: int, drained: bool, now: float) -> None:
        """Have trees leave a switch, and keep away from it, where the rest of the fabric connects; or no longer."""
        self.finish_repairs(now)
        if drained:
            self.drained.add(dpid)
        else:
            self.drained.discard(dpid)
        self._sync_links((), now, Urgency.BULK)
        self.flood_soon(now)

    def flood_soon(self, now: float, *touched: int) -> None:
        """Have the link-scope entries brought up to date; the ports of `touched` switches may have changed."""
        self._touched.update(touched)
        self._flood_again = True
        if self.flood_due_s is None:
            self.flood_due_s = max(now, self._flood_earliest_s)

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        return self.flood_due_s if self.repair_due_s is None else self.repair_due_s

    def on_deadline(self, now: float) -> list[Effect]:
        """Go on with trees that lost something, and bring the link-scope entries up to date if that is due."""
        if self.repair_due_s is not None:
            self._repair(now)
            return []
        if self.flood_due_s is None or now < self.flood_due_s:
            return []
        flood = self._owner.flood
        effects: list[Effect] = []
        if flood.is_behind:
            effects = flood.advance(now)
        elif self._look_at_touched():
            looked_at, self._looked_at, self._flood_again = self._looked_at, set(), False
            effects = flood.refresh(self._owner.plane.forest.graph, self._switch_ports, now, looked_at)
        if flood.is_behind or self._looked_at:
            self.flood_due_s = now
            return effects
        settle_s = FLOOD_SETTLE_S + flood.brought_count * FLOOD_SETTLE_PER_SWITCH_S
        self._flood_earliest_s = now + min(settle_s, FLOOD_SETTLE_LONGEST_S)
        self.flood_due_s = self._flood_earliest_s if self._flood_again else None
        return effects

    def _look_at_touched(self) -> bool:
        """Look at the ports of some of the switches that may have changed, and tell whether these were all."""
        port_count = 0
        while self._touched and port_count < PORTS_AT_ONCE:
            dpid = self._touched.pop()
            self._looked_at.add(dpid)
            if dpid in self._versions:
                port_count += len(self._ports[dpid])
                self._switch_ports[dpid] = self._ports_for_flooding(dpid)
        return not self._touched

    def switch_ports(self) -> dict[int, SwitchPorts]:
        """Return what flooding has to know of each switch, computed from nothing."""
        return {dpid: self._ports_for_flooding(dpid) for dpid in self._versions}

    def _ports_for_flooding(self, dpid: int) -> SwitchPorts:
        fabric, plane = self.fabric, self._owner.plane
        roles = fabric.roles(dpid)
        inherited = self.inherited.get(dpid, ())
        closed = [
            port
            for port in self._ports[dpid]
            if (roles.get(port) not in (PortRole.EDGE, PortRole.TRUNK) and port not in inherited)
            or (dpid, port) in self._returning.shut
        ]
        routers = plane.routers.at(dpid)
        edges, connected = fabric.edge_ports(dpid), dpid in self.connected
        vlan_ports = self._owner.vlan_ports
        vlans = vlan_ports.at(dpid) if vlan_ports.is_used else None
        known = SwitchPorts(self._versions[dpid], edges, tuple(sorted(closed)), connected, routers, vlans)
        if vlan_ports.passes_double_tagged:
            known = known._replace(passes_double_tagged=True)
        return with_legs(known, fabric, dpid) if fabric.aggregations.is_used else known

    def _switch_up(self, event: SwitchUp, now: float) -> None:
        owner, forest, graph = self._owner, self._owner.plane.forest, self.fabric.graph
        dpid = event.dpid
        owner.perform(owner.plane.switch_version(dpid, event.ofp_version, now))
        if dpid in forest.graph:
            return
        owner.trees_changed(forest.add_node(dpid, self._kind(dpid)), now, Urgency.BULK)
        if self.drained:
            self._sync_links((), now)
            return
        for neighbour in graph.neighbours(dpid):
            for link in graph.cables(dpid, neighbour):
                owner.trees_changed(forest.add_link(*link[:5]), now, Urgency.BULK)

    def _switch_down(self, event: SwitchDown, now: float) -> None:
        dpid = event.dpid
        self._returning.switch_down(dpid)
        gone = sorted(place for place in self.edges if place[0] == dpid)
        self.edges.difference_update(gone)
        for _, port_no in gone:
            self._owner.edge_ports.suspended(dpid, port_no, now)
        forest = self._owner.plane.forest
        if dpid in forest.graph:
            self.repaired_count += forest.lose_node(dpid)
            if self.drained:
                self._sync_links(forest.repair(), now)
            self._repair(now)
        else:
            self._look_at_returning(now)

    def _hold(self, event: LinkUp, now: float) -> None:
        """Keep a link that is back out of use, with nothing let in at either end."""
        a, a_port, b, b_port, _ = event
        for dpid, port_no in ((a, a_port), (b, b_port)):
            self._owner.perform(self._owner.flood.close_port(dpid, port_no, now))
        self.flood_soon(now, a, b)
        self._owner.counters["link-held"] += 1
        text = (
            f"The link from {a}:{a_port} to {b}:{b_port} is back, and is not used before both switches have confirmed"
            " what they were told when it was lost: by what they held then they may still send packets over it."
        )
        self._owner.perform([Notice("link-held", text, (("dpid", a), ("port_no", a_port)))])

    def _close_lost(self, dpid: int, port_no: int, now: float) -> None:
        """Let nothing in by a port that is not known any more to lead to a switch, before its cable can be back."""
        if self.fabric.role(dpid, port_no) not in (PortRole.EDGE, PortRole.TRUNK):
            self._owner.perform(self._owner.flood.close_port(dpid, port_no, now))

    def _link_up(self, event: LinkUp, now: float) -> None:
        owner, forest = self._owner, self._owner.plane.forest
        for place in ((event.dpid_a, event.port_a), (event.dpid_b, event.port_b)):
            if place in self._returning.shut:
                self._returning.shut.discard(place)
                owner.perform(owner.flood.open_port(*place, now))
        if event.dpid_a not in forest.graph or event.dpid_b not in forest.graph:
            return
        if self.drained:
            self._sync_links((), now)
        else:
            a, a_port, b, b_port, capacity_bps = event
            owner.trees_changed(forest.add_link(a, b, a_port, b_port, capacity_bps), now, Urgency.BULK)
            if len(forest.graph.cables(a, b)) > 1:
                self._named_otherwise(a, b, now)

    def _link_down(self, event: LinkDown, now: float) -> None:
        forest = self._owner.plane.forest
        if self.drained:
            self._sync_links((), now)
        elif forest.graph.cable(event.dpid_a, event.dpid_b, event.port_a) is not None:
            self.repaired_count += forest.lose_link(event.dpid_a, event.dpid_b, event.port_a)
            self._named_otherwise(event.dpid_a, event.dpid_b, now)
            self._repair(now)
            return
        self._look_at_returning(now)

    def _named_otherwise(self, u: NodeId, v: NodeId, now: float) -> None:
        """Tell of the groups on cables between two switches, of which there are now more or fewer.

        A link of a tree is told with its ports where it has others beside it.
        """
        forest = self._owner.plane.forest
        if u in forest.graph and v in forest.graph and forest.graph.has_link(u, v):
            for group in sorted({group_of(key) for key in forest.groups_on(u, v)}):  # type: ignore[type-var]
                self._owner.group_changed(group, now)  # type: ignore[arg-type]

    def _sync_links(self, changes: Iterable[Change], now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        """Bring the forest's links in step with the fabric's and with what is drained, after `changes` of trees.

        Trees take on new links before they give up others, and follow all of it at once.
        """
        forest, graph = self._owner.plane.forest, self.fabric.graph
        avoided = avoided_links(graph, self.drained)
        changes = list(changes)
        for link in list(graph.links()):
            u, v = link.u, link.v
            if link.ends in avoided or u not in forest.graph or v not in forest.graph:
                continue
            if forest.graph.cable(u, v, link.u_port) != link:
                changes += forest.add_link(*link)
                self._named_otherwise(u, v, now)
        for link in list(forest.graph.links()):
            if link.ends in avoided or graph.cable(link.u, link.v, link.u_port) is None:
                changes += forest.remove_link(link.u, link.v, link.u_port)
                self._named_otherwise(link.u, link.v, now)
        self._owner.trees_changed(merged(changes), now, urgency)

    def _port_role_changed(self, event: PortRoleChanged, now: float) -> None:
        dpid, port_no, role = event
        self.inherited.get(dpid, set()).discard(port_no)
        if role is not PortRole.TRUNK:
            self._returning.shut.discard((dpid, port_no))
            if self._returning.is_lost((dpid, port_no)):
                self._close_lost(dpid, port_no, now)
        elif not self._returning.shuts((dpid, port_no)):
            self._owner.perform(self._owner.flood.open_port(dpid, port_no, now))
        if role is PortRole.EDGE:
            self.edges.add((dpid, port_no))
            self._follow_kind(dpid, now)
            self._owner.port_added(dpid, port_no, now)
        else:
            self.edges.discard((dpid, port_no))
            self._owner.edge_ports.removed(dpid, port_no, now)
            if role is PortRole.TRUNK:
                self._follow_kind(dpid, now)

    def _follow_kind(self, dpid: int, now: float) -> None:
        """Have trees know whether a switch has hosts; one whose ports to hosts are down goes on as one that has."""
        forest = self._owner.plane.forest
        if dpid in forest.graph and forest.graph.kind(dpid) is not self._kind(dpid):
            self.finish_repairs(now)
            self._owner.trees_changed(forest.add_node(dpid, self._kind(dpid)), now, Urgency.BULK)

    def _kind(self, dpid: int) -> NodeKind:
        return NodeKind.TOR if self.fabric.edge_ports(dpid) else NodeKind.SWITCH

    def _host_learnt(self, event: HostLearnt, now: float) -> bool:
        mac, dpid, port_no, addresses = event
        before = self.fabric.host(mac)
        if not self.fabric.apply(event):
            return False
        mac = shared_name(mac)
        if before is not None:
            addresses = (*addresses, *before.addresses)
            if (before.dpid, before.port_no) != (dpid, port_no):
                self._owner.places.note(mac, *self.fabric.aggregations.home((before.dpid, before.port_no)))
        home = self.fabric.aggregations.home((dpid, port_no))
        for place in self._owner.places.left(mac, *home):
            self._owner.edge_ports.host_left(mac, *place, now)
        if home != (dpid, port_no) or home in self.fabric.aggregations.homes:
            self.flood_soon(now, *(leg[0] for leg in self.fabric.aggregations.legs(home)))
        self._owner.edge_ports.host_placed(mac, dpid, port_no, (mac, *addresses), now)
        return True


def _needs_whole_trees(event: TopologyEvent) -> bool:
    """Tell whether an event can only be followed when no tree is broken: one by which a link may come into use."""
    if isinstance(event, PortRoleChanged):
        return event.role is PortRole.TRUNK
    return isinstance(event, LinkUp | SwitchUp)
