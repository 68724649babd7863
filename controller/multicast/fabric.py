"""Follows the fabric: what a change of switches, links, ports and hosts means for trees, flooding and members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from controller.datapath.lanes import Urgency
from controller.effects import Effect, Notice
from controller.events import SwitchesDrained
from controller.kernel.deadlines import Deadlines
from controller.kernel.drains import avoided_links
from controller.multicast.callbacks import Perform
from controller.multicast.due import FABRICS_SETTLE_S, Due
from controller.multicast.edge_ports import EdgePorts
from controller.multicast.flood import FloodPlane
from controller.multicast.flood_schedule import FloodSchedule
from controller.multicast.group_changes import GroupChanges
from controller.multicast.groups import GroupPlane
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.places import HostPlaces
from controller.multicast.returning import ReturningLinks
from controller.multicast.switches import Switches
from controller.multicast.tree_changes import TreeChanges
from controller.trees.islands import group_of
from controller.trees.tree import Change, Key
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

TERMINALS_AT_ONCE = 8
"""Trees are built around what was lost until they had so many terminals together; then others have their turns."""


class FabricFollower:
    """Keeps a `LiveFabric` by topology events, and the forest in step with its graph.

    A host that is gone keeps its memberships: they age, end with its port, or when it turns up elsewhere.
    `repaired_count` counts the trees that lost a link, `repair_due_s` is when the next of them are built around it.
    What `follow` was told is `shown` to operators; `apply` is for what they know already.
    """

    def __init__(
        self,
        counters: Counter[str],
        fabric: LiveFabric,
        switches: Switches,
        plane: GroupPlane,
        returning: ReturningLinks,
        flood: FloodPlane,
        flooding: FloodSchedule,
        places: HostPlaces,
        edge_ports: EdgePorts,
        trees: TreeChanges,
        group_changes: GroupChanges,
        pending_writes: PendingWrites,
        due: Deadlines[Due],
        shown: Callable[[TopologyEvent, float], None],
        perform: Perform,
    ) -> None:
        self.repair_due_s: float | None = None
        self.repaired_count = 0
        self._counters = counters
        self._fabric = fabric
        self._switches = switches
        self._plane = plane
        self._returning = returning
        self._flood = flood
        self._flooding = flooding
        self._places = places
        self._edge_ports = edge_ports
        self._trees = trees
        self._group_changes = group_changes
        self._pending_writes = pending_writes
        self._due = due
        self._shown = shown
        self._perform = perform
        self._fabrics_version = 0
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            SwitchUp: self._switch_up,
            SwitchDown: self._switch_down,
            LinkUp: self._link_up,
            LinkDown: self._link_down,
            PortRoleChanged: self._port_role_changed,
        }

    def follow(self, event: TopologyEvent, now: float) -> None:
        """Follow a topology event, and show what it changed."""
        if self.apply(event, now):
            self._shown(event, now)
        if self._fabric.fabrics.version != self._fabrics_version:
            self._fabrics_version = self._fabric.fabrics.version
            self._due.set_sooner(Due.FABRICS, now + FABRICS_SETTLE_S)

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
            for cable in self._fabric.displaced(event):
                self.follow(LinkDown(*cable[:4]), now)
        lost = self._returning.link_down(event) if isinstance(event, LinkDown) else ()
        if not self._fabric.apply(event):
            return False
        if isinstance(event, HostGone):
            self._places.note(shared_name(event.mac), *self._fabric.aggregations.home((event.dpid, event.port_no)))
        else:
            self._handlers[type(event)](event, now)
            for end in lost:
                self._close_lost(*end, now)
            self._pending_writes.topology_changed(event, now)
            if isinstance(event, LinkUp | LinkDown):
                self._flooding.soon(now, event.dpid_a, event.dpid_b)
            else:
                self._flooding.soon(now, event.dpid, *self._beside(event))
        return True

    def _beside(self, event: SwitchUp | SwitchDown | PortRoleChanged) -> Iterable[int]:
        """Return the switches that may flood by other legs of link aggregation groups after an event."""
        aggregations = self._fabric.aggregations
        if not aggregations.is_used:
            return ()
        if isinstance(event, PortRoleChanged):
            return {leg[0] for leg in aggregations.legs((event.dpid, event.port_no))}
        return {leg[0] for _, legs in aggregations.all() if any(at == event.dpid for at, _ in legs) for leg in legs}

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
        forest = self._plane.forest
        self._trees.follow(forest.repair(TERMINALS_AT_ONCE), now)
        self.repair_due_s = now if forest.is_broken else None
        self._look_at_returning(now)

    def _look_at_returning(self, now: float) -> None:
        """Take links into use that need not be held any more, and open ports that need not be shut.

        What switches are told of a lost link is not known before all trees are built around it.
        """
        if self.repair_due_s is not None:
            return
        for event in self._returning.released():
            self.follow(event, now)
        for dpid, port_no in self._returning.opened():
            self._perform(self._flood.open_port(dpid, port_no, now))
            self._flooding.soon(now, dpid)

    def confirmed(self, event: TopologyEvent, now: float) -> None:
        """Take in that an edge port known from the journal was found again: its hosts can be asked now."""
        if isinstance(event, PortRoleChanged) and event.role is PortRole.EDGE:
            self._edge_ports.added(event.dpid, event.port_no, now)

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due, None for never."""
        return self._flooding.due_s if self.repair_due_s is None else self.repair_due_s

    def on_deadline(self, now: float) -> list[Effect]:
        """Go on with trees that lost something, and bring the link-scope entries up to date if that is due."""
        if self.repair_due_s is not None:
            self._repair(now)
            return []
        return self._flooding.on_deadline(now)

    def set_drained(self, dpid: int, drained: bool, now: float) -> None:
        """Have trees leave a switch, and keep away from it, where the rest of the fabric connects; or no longer."""
        self.finish_repairs(now)
        if drained:
            self._switches.drained.add(dpid)
        else:
            self._switches.drained.discard(dpid)
        self._sync_links((), now, Urgency.BULK)
        self._flooding.soon(now)
        self._perform([SwitchesDrained(tuple(sorted(self._switches.drained)))])

    def _switch_up(self, event: SwitchUp, now: float) -> None:
        forest, graph = self._plane.forest, self._fabric.graph
        dpid = event.dpid
        self._perform(self._plane.switch_version(dpid, event.ofp_version, now))
        if dpid in forest.graph:
            return
        self._trees.follow(forest.add_node(dpid, self._kind(dpid)), now, Urgency.BULK)
        if self._switches.drained:
            self._sync_links((), now)
            return
        for neighbour in graph.neighbours(dpid):
            for link in graph.cables(dpid, neighbour):
                self._trees.follow(forest.add_link(*link[:5]), now, Urgency.BULK)

    def _switch_down(self, event: SwitchDown, now: float) -> None:
        dpid = event.dpid
        self._returning.switch_down(dpid)
        gone = sorted(place for place in self._switches.edges if place[0] == dpid)
        self._switches.edges.difference_update(gone)
        for _, port_no in gone:
            self._edge_ports.suspended(dpid, port_no, now)
        forest = self._plane.forest
        if dpid in forest.graph:
            self.repaired_count += forest.lose_node(dpid)
            if self._switches.drained:
                self._sync_links(forest.repair(), now)
            self._repair(now)
        else:
            self._look_at_returning(now)

    def _hold(self, event: LinkUp, now: float) -> None:
        """Keep a link that is back out of use, with nothing let in at either end."""
        a, a_port, b, b_port, _ = event
        for dpid, port_no in ((a, a_port), (b, b_port)):
            self._perform(self._flood.close_port(dpid, port_no, now))
        self._flooding.soon(now, a, b)
        self._counters["link-held"] += 1
        text = (
            f"The link from {a}:{a_port} to {b}:{b_port} is back, and is not used before both switches have confirmed"
            " what they were told when it was lost: by what they held then they may still send packets over it."
        )
        self._perform([Notice("link-held", text, (("dpid", a), ("port_no", a_port)))])

    def _close_lost(self, dpid: int, port_no: int, now: float) -> None:
        """Let nothing in by a port that is not known any more to lead to a switch, before its cable can be back."""
        if self._fabric.role(dpid, port_no) not in (PortRole.EDGE, PortRole.TRUNK):
            self._perform(self._flood.close_port(dpid, port_no, now))

    def _link_up(self, event: LinkUp, now: float) -> None:
        forest = self._plane.forest
        for place in ((event.dpid_a, event.port_a), (event.dpid_b, event.port_b)):
            if place in self._returning.shut:
                self._returning.shut.discard(place)
                self._perform(self._flood.open_port(*place, now))
        if event.dpid_a not in forest.graph or event.dpid_b not in forest.graph:
            return
        if self._switches.drained:
            self._sync_links((), now)
        else:
            a, a_port, b, b_port, capacity_bps = event
            self._trees.follow(forest.add_link(a, b, a_port, b_port, capacity_bps), now, Urgency.BULK)
            if len(forest.graph.cables(a, b)) > 1:
                self._named_otherwise(a, b, now)

    def _link_down(self, event: LinkDown, now: float) -> None:
        forest = self._plane.forest
        if self._switches.drained:
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
        forest = self._plane.forest
        if u in forest.graph and v in forest.graph and forest.graph.has_link(u, v):
            for group in sorted({group_of(key) for key in forest.groups_on(u, v)}):  # type: ignore[type-var]
                self._group_changes.changed(group, now)  # type: ignore[arg-type]

    def _sync_links(self, changes: Iterable[Change], now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        """Bring the forest's links in step with the fabric's and with what is drained, after `changes` of trees.

        Trees take on new links before they give up others, and follow all of it at once.
        """
        forest, graph = self._plane.forest, self._fabric.graph
        avoided = avoided_links(graph, self._switches.drained)
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
        self._trees.follow(_merged(changes), now, urgency)

    def _port_role_changed(self, event: PortRoleChanged, now: float) -> None:
        dpid, port_no, role = event
        self._switches.inherited.get(dpid, set()).discard(port_no)
        if role is not PortRole.TRUNK:
            self._returning.shut.discard((dpid, port_no))
            if self._returning.is_lost((dpid, port_no)):
                self._close_lost(dpid, port_no, now)
        elif not self._returning.shuts((dpid, port_no)):
            self._perform(self._flood.open_port(dpid, port_no, now))
        if role is PortRole.EDGE:
            self._switches.edges.add((dpid, port_no))
            self._follow_kind(dpid, now)
            self._edge_ports.added(dpid, port_no, now)
        else:
            self._switches.edges.discard((dpid, port_no))
            self._edge_ports.removed(dpid, port_no, now)
            if role is PortRole.TRUNK:
                self._follow_kind(dpid, now)

    def _follow_kind(self, dpid: int, now: float) -> None:
        """Have trees know whether a switch has hosts; one whose ports to hosts are down goes on as one that has."""
        forest = self._plane.forest
        if dpid in forest.graph and forest.graph.kind(dpid) is not self._kind(dpid):
            self.finish_repairs(now)
            self._trees.follow(forest.add_node(dpid, self._kind(dpid)), now, Urgency.BULK)

    def _kind(self, dpid: int) -> NodeKind:
        return NodeKind.TOR if self._fabric.edge_ports(dpid) else NodeKind.SWITCH

    def _host_learnt(self, event: HostLearnt, now: float) -> bool:
        mac, dpid, port_no, addresses = event
        before = self._fabric.host(mac)
        if not self._fabric.apply(event):
            return False
        mac = shared_name(mac)
        if before is not None:
            addresses = (*addresses, *before.addresses)
            if (before.dpid, before.port_no) != (dpid, port_no):
                self._places.note(mac, *self._fabric.aggregations.home((before.dpid, before.port_no)))
        home = self._fabric.aggregations.home((dpid, port_no))
        for place in self._places.left(mac, *home):
            self._edge_ports.host_left(mac, *place, now)
        if home != (dpid, port_no) or home in self._fabric.aggregations.homes:
            self._flooding.soon(now, *(leg[0] for leg in self._fabric.aggregations.legs(home)))
        self._edge_ports.host_placed(mac, dpid, port_no, (mac, *addresses), now)
        return True


def _merged(changes: Iterable[Change]) -> list[Change]:
    """Return one change per tree that amounts to all of its changes in turn, in the order of the first ones."""
    found: dict[Key, Change] = {}
    for change in changes:
        before = found.get(change.key)
        found[change.key] = change if before is None else before.then(change)
    return list(found.values())


def _needs_whole_trees(event: TopologyEvent) -> bool:
    """Tell whether an event can only be followed when no tree is broken: one by which a link may come into use."""
    if isinstance(event, PortRoleChanged):
        return event.role is PortRole.TRUNK
    return isinstance(event, LinkUp | SwitchUp)
