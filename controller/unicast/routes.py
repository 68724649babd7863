"""Flow entries for hosts where hosts are, by label between switches, and the edits from one topology to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, compress, count
from typing import NamedTuple, TypeAlias

from controller.datapath.lanes import Urgency
from controller.effects import Edit, Put, Remove
from controller.events import SwitchesDrained
from controller.kernel.domains import domain_of
from controller.rules.model import FlowEntry, FlowKey, Output
from controller.rules.pipeline import OPENFLOW_1_0, UNICAST, VLAN_UNICAST
from controller.unicast.asked import AskedHosts
from controller.unicast.destinations import Destination, HostLocation
from controller.unicast.entries import ANY_PORT, Entered, far_rules, host_keys, trunk_rule
from controller.unicast.links import UsableLinks
from controller.unicast.locations import number_of, switch_number
from controller.unicast.paths import Pair
from controller.unicast.pinned import PinnedFlows, Stage
from controller.unicast.weights import PortLevels, PortsWeighed
from topology.events import HostLearnt
from topology.fabrics import Fabrics
from topology.graph import Graph

Plan: TypeAlias = list[Stage]
"""Stages of edits, each to be in place before the next is sent."""


class RouteChange(NamedTuple):
    """A plan, who waits for it, and the numbers of the stages before which packets under way have to pass."""

    plan: Plan
    urgency: Urgency
    drains: frozenset[int] = frozenset()


Tagged: TypeAlias = Callable[[int, int, int], bool]
"""Whether a port of a switch has a VLAN with its tag."""

Held: TypeAlias = Callable[[int, FlowKey], int | None]
"""The port by which a switch without a connection goes on sending what an entry is for; None for no entry."""

WORK_COUNT, DESTINATION_WORK_COUNT = 40, 8
"""Switches that follow in one `update`, for all destinations together, what is left being for the next; a destination
costs as much as so many of them."""

_FIRST, _LAST = -1, 1 << 32


class Routes:
    """What every switch holds for hosts and labels.

    All packets to the hosts of one label take one path from each switch; the labels of a switch take different paths
    where there are some. The outcome depends on links, on hosts and on where which host was asked for, whatever came
    before, but for switches that are `away`: those that have lost their connection and go on with the entries that
    they hold. Nothing is sent to one whose entries for a destination do not lead nearer to it (it is astray), or may
    be one of two (it is `unsure` of the destination): another path of equal length is taken, or none. So every hop
    leads nearer to the destination, and nothing circles. Hosts go by the names of their MAC addresses; of those that
    share one, in different `fabrics`, a switch has entries for that of its own.
    """

    def __init__(self, held: Held, is_tagged: Tagged, fabrics: Fabrics) -> None:
        self.away: set[int] = set()
        self.unsure: dict[int, set[int]] = {}
        self._held = held
        self._is_tagged = is_tagged
        self.links = UsableLinks()
        self._near = self.links.near
        self.pinned = PinnedFlows(self.links)
        self._pairs: list[Pair] = []
        self._versions: dict[int, int] = {}
        self._places: dict[bytes, HostLocation] = {}
        self._destinations: dict[int, Destination] = {}
        self._numbers: dict[int, int] = {}
        self._behind: dict[int, None] = {}
        self._is_draining = False
        self._entered: dict[int, Mapping[int, Entered]] = {}
        self._asked = AskedHosts(self._places, fabrics)
        self._levels = PortLevels()

    # Questions

    @property
    def is_behind(self) -> bool:
        """Whether some destinations are left for the next `update`."""
        return bool(self._behind)

    def place(self, mac: bytes) -> HostLocation | None:
        """Return where a host is that has entries, None for any other."""
        return self._places.get(mac)

    def leads_to(self, dpid: int) -> bool:
        """Tell whether switches have, or are to have, entries that lead to a switch."""
        return dpid in self._destinations

    def hosts_at(self, dpid: int) -> list[bytes]:
        """Return the hosts whose entries lead to a switch, by MAC address."""
        destination = self._destinations.get(dpid)
        return [] if destination is None else sorted(destination.places)

    def host_of(self, address: bytes) -> bytes | None:
        """Return the MAC address of the host with a location address, None where there is none."""
        destination = self.destination_of(address)
        return None if destination is None else self._destinations[destination].host_of(address)

    def destination_of(self, address: bytes) -> int | None:
        """Return the switch that a label or location address is of, None where there is none."""
        return self._numbers.get(number_of(address))

    def detoured(self) -> list[int]:
        """Return the destinations to which some switch sends otherwise, or not, because of switches that are away."""
        return sorted(dpid for dpid, destination in self._destinations.items() if destination.detoured)

    def port_to(self, dpid: int, mac: bytes) -> int | None:
        """Return the port that leads from a switch towards a host, None where there is none."""
        place = self._places.get(mac)
        if place is None:
            return None
        if place.dpid == dpid:
            return place.port_no
        ports = self._destinations[place.dpid].ports.get(dpid)
        return None if ports is None else ports[place.label]

    def way(self, dpid: int, mac: bytes) -> list[tuple[int, FlowEntry]]:
        """Return the entries that bring a packet from its sender's switch to a host; none where there is no way."""
        place = self._places.get(mac)
        if place is None or dpid not in self._versions or place.dpid not in self._versions:
            return []
        from_others, *from_own = place.own_rules(self._versions[place.dpid], self._entered_for(place.dpid, mac))
        if dpid == place.dpid:
            return [(dpid, rule) for rule in from_own]
        destination = self._destinations[place.dpid]
        found = [(dpid, rule) for rule in self._far_rules(dpid, place)]
        here = dpid
        while here != place.dpid:
            ports, version = destination.ports.get(here), self._versions.get(here)
            if ports is None or version is None or len(found) > 3 * len(self._versions):
                return []
            if here != dpid or version != OPENFLOW_1_0:
                found.append((here, destination.passing_rule(version, place, ports)))
            arrives_at = self.links.other_end(here, ports[place.label])
            if arrives_at is None:
                return []
            here, in_port = arrives_at
            if self._versions.get(here) != OPENFLOW_1_0:
                found.append((here, trunk_rule(in_port, VLAN_UNICAST if domain_of(mac) else UNICAST)))
        return [*found, (here, from_others)]

    def destination(self, mac: bytes) -> tuple[HostLocation, Destination] | None:
        """Return where a host is, and the destination that its switch is; None for a host without entries."""
        place = self._places.get(mac)
        return None if place is None else (place, self._destinations[place.dpid])

    # Who asks for whom

    def ask(self, dpid: int, mac: bytes) -> Stage:
        """Have a switch hold an entry for a host from now on, wherever the host is; return the edits."""
        place = self._asked.meant(dpid, mac) if self._asked.add(dpid, mac) else None
        return [] if place is None else self._far_edits(place, (dpid,))

    def forget(self, mac: bytes) -> None:
        """Forget where a host was asked for that is gone."""
        self._asked.forget(mac)

    def _far_rules(self, dpid: int, place: HostLocation, entered: Entered | None = None) -> list[FlowEntry]:
        version, mac = self._versions.get(dpid), place.mac
        if version is None:
            return []
        entered = self._entered_for(dpid, mac) if entered is None else entered
        return far_rules(version, mac, place.address, self.port_to(dpid, mac), entered)

    def _far_edits(self, place: HostLocation, dpids: Iterable[int]) -> Stage:
        """Return the edits that have other switches give a host's location address to what is for it."""
        others = [dpid for dpid in dpids if dpid != place.dpid]
        return [(dpid, Put(rule)) for dpid in others for rule in self._far_rules(dpid, place)]

    # By which ports frames of VLANs enter OpenFlow 1.0 switches

    def entered_by(self, dpid: int, entered: Mapping[int, Entered]) -> Stage:
        """Take in by which ports, and with which tags, frames of each VLAN enter an OpenFlow 1.0 switch from now on.

        Returns the edits, those of what is for hosts that concern other ports than before.
        """
        former = self._entered.get(dpid, {})
        self._entered[dpid] = entered
        if self._versions.get(dpid) != OPENFLOW_1_0:
            return []
        put: dict[FlowKey, FlowEntry] = {}
        removed: list[FlowKey] = []
        destination = self._destinations.get(dpid)
        for vlan_id in sorted(former.keys() | entered.keys()):
            before, after = former.get(vlan_id, ()), entered.get(vlan_id, ())
            come = [way for way in after if way not in before]
            gone = [way for way in before if way not in after]
            if not come and not gone:
                continue
            own = () if destination is None else destination.places.values()
            places = [place for place in own if domain_of(place.mac) == vlan_id]
            rules = [rule for place in places for rule in place.own_rules(OPENFLOW_1_0, come)[1:]]
            for place in self._asked.at(dpid):
                if domain_of(place.mac) == vlan_id and place.dpid != dpid:
                    places.append(place)
                    rules += self._far_rules(dpid, place, come)
            put |= {rule.key: rule for rule in rules}
            removed += [key for place in places for key in host_keys(OPENFLOW_1_0, place.mac, gone)]
        edits: Stage = [(dpid, Remove(key)) for key in removed if key not in put]
        return edits + [(dpid, Put(rule)) for rule in put.values()]

    def _entered_for(self, dpid: int, mac: bytes) -> Entered:
        """Return by which ports frames for a host enter a switch, where its entries ask for these."""
        vlan_id = domain_of(mac)
        if not vlan_id or self._versions.get(dpid) != OPENFLOW_1_0:
            return ANY_PORT
        return self._entered.get(dpid, {}).get(vlan_id, ())

    # Changes

    def update(
        self,
        graph: Graph,
        versions: Mapping[int, int],
        hosts: Iterable[tuple[bytes, HostLearnt | None]] = (),
        touched: Iterable[int] = (),
        again: Iterable[int] = (),
        urgency: Urgency = Urgency.PROMPT,
        first: Iterable[tuple[int, Edit]] = (),
    ) -> list[RouteChange]:
        """Follow a change and return the edits as plans that need not wait for each other.

        Entries by label that change go in from the destination outwards: what a changed switch sends to is changed
        already, so no packet circles. There is a plan for each destination, so that a switch that hangs holds up no
        more than it must. What nothing points at goes in at once; of that nothing is prompt but a host's entries at
        its own switch. A host that has moved has its new entries before anybody uses its new location address, and
        its former ones until nobody uses the former.

        Parameters
        ----------
        graph : Graph
            The switches and links.
        versions : Mapping
            The OpenFlow version of each switch of the graph.
        hosts : iterable of (bytes, HostLearnt or None)
            The hosts that changed, None for one that is gone.
        touched : iterable of int
            Switches that came or went, or whose links may have changed, since the last call.
        again : iterable of int
            Destinations for which a switch that is away may be astray now, or be so no more.
        urgency : Urgency
            That of entries that change: prompt where packets may go astray.
        first : iterable of (int, Edit)
            What is to be in place before entries that change.
        """
        pairs = self.links.follow(graph, touched)
        if pairs:
            self._pairs += pairs
            self._behind.update(dict.fromkeys(sorted(self._destinations)))
        near: Stage = []
        far: Stage = []
        self._follow_switches(versions, near, far)
        move: Plan = [[], [], []]
        for mac, host in hosts:
            self._follow_host(mac, host, near, far, move)
        for mac in self._asked.shared_anew():
            far += self._shared_edits(mac)
        self._drop_empty(move[2] if any(move) else far)
        self._behind.update(dict.fromkeys(dpid for dpid in sorted(again) if dpid in self._destinations))
        plans = [RouteChange(move, urgency)] if any(move) else []
        before = list(first)
        work = 0
        while self._behind and work < WORK_COUNT:
            destination = self._destinations[next(iter(self._behind))]
            switches, is_ordered = self._follow_paths(destination, WORK_COUNT - work)
            if not destination.fresh:
                del self._behind[destination.dpid]
            work += DESTINATION_WORK_COUNT + len(switches)
            former = dict(destination.ports) if self._is_draining and urgency is Urgency.BULK else {}
            unpinned = self.pinned.follow(destination)
            stages = self._reroute(destination, switches)
            plan = [stages[rank] for rank in sorted(stages)]
            if not is_ordered:
                far += chain(unpinned, *plan)
            elif plan or unpinned:
                plan = [before + unpinned, *plan] if before or unpinned else plan
                turning = [self.links.turn(stage, former, destination.ports) for stage in plan] if former else ()
                plans.append(RouteChange(plan, urgency, frozenset(compress(count(), turning))))
        self._is_draining &= bool(self._behind)
        if not self._behind and self._pairs:
            self._pairs.clear()
            for destination in self._destinations.values():
                destination.seen = 0
        put = {(dpid, edit.rule.key) for dpid, edit in (*near, *far, *move[0], *move[1]) if isinstance(edit, Put)}
        for stage in (far, move[2]):
            stage[:] = [(at, edit) for at, edit in stage if not isinstance(edit, Remove) or (at, edit.key) not in put]
        at_once = [
            RouteChange([stage], lane) for stage, lane in ((near, Urgency.PROMPT), (far, Urgency.BULK)) if stage
        ]
        return [*at_once, *plans]

    def prefer(self, event: SwitchesDrained | PortsWeighed) -> None:
        """Take which switches are drained, or how busy ports are; the next `update` has follow who has a choice."""
        if isinstance(event, SwitchesDrained):
            self._is_draining |= self.links.drain(event.dpids)
            return
        switches = self._levels.take(event.ports)
        for dpid, destination in self._destinations.items():
            if switches and destination.weigh(switches):
                self._behind[dpid] = None

    def _follow_switches(self, versions: Mapping[int, int], near: Stage, far: Stage) -> None:
        """Bring entries for hosts to switches that came, and forget those of switches that went."""
        former, self._versions = self._versions, dict(versions)
        for dpid in sorted(former.keys() ^ versions.keys()):
            asked = self._asked.at(dpid)
            own = self._destinations.get(dpid)
            places = [] if own is None else list(own.places.values())
            if dpid in versions:
                near += [(dpid, Put(rule)) for place in places for rule in self._own_rules(place)]
                far += [edit for place in asked for edit in self._far_edits(place, (dpid,))]
                continue
            version, entered = former[dpid], self._entered.get(dpid, {})
            keys = []
            for place in (*asked, *places):
                by = entered.get(domain_of(place.mac), ()) if version == OPENFLOW_1_0 else ANY_PORT
                keys += host_keys(version, place.mac, by)
            keys += [place.location_key(version) for place in places]
            for destination in self._destinations.values():
                if destination.ports.pop(dpid, None) is not None:
                    keys += destination.passing_keys(former[dpid])
            far += [(dpid, Remove(key)) for key in keys]

    def _follow_host(self, mac: bytes, host: HostLearnt | None, near: Stage, far: Stage, move: Plan) -> None:
        """Take in that a host came, went or moved."""
        former = self._places.get(mac)
        if former is not None and (host is None or host.dpid != former.dpid):
            asked = self._asking(mac)
            leaving, unpinned = self._leave(former), self.pinned.host_left(mac, former.dpid)
            if host is None:
                keys = [(dpid, key) for dpid, _ in asked for key in self._host_keys(dpid, mac)]
                far += [*unpinned, *leaving, *((dpid, Remove(key)) for dpid, key in keys)]
                far += self._shared_edits(mac)
            else:
                move[1] += unpinned
                move[2] += leaving
        if host is None:
            return
        place = self._enter(host)
        arrival = [(place.dpid, Put(rule)) for rule in self._own_rules(place)]
        if former is not None and former.dpid == place.dpid:
            near += arrival
            return
        passing = [
            (dpid, Put(self._destinations[place.dpid].passing_rule(OPENFLOW_1_0, place, ports)))
            for dpid, ports in self._destinations[place.dpid].ports.items()
            if self._versions[dpid] == OPENFLOW_1_0
        ]
        asked = self._asking(mac)
        asking = self._far_edits(place, [dpid for dpid, _version in asked])
        if former is None:
            near += arrival
            far += [*passing, *asking]
        else:
            move[0] += [*arrival, *passing]
            move[1] += asking
            others = [dpid for dpid, _ in asked if dpid != place.dpid]
            move[2] += [(dpid, Remove(key)) for dpid in others for key in self._host_keys(dpid, mac)]

    def _asking(self, mac: bytes) -> list[tuple[int, int]]:
        """Return the switches that are there and where a host was asked for, each with its OpenFlow version."""
        return [(dpid, self._versions[dpid]) for dpid in sorted(self._asked.by(mac)) if dpid in self._versions]

    def _shared_edits(self, mac: bytes) -> Stage:
        """Return the edits that have each switch hold the entries for the host that it means by a MAC address."""
        asked = [(dpid, place) for dpid, place in self._asked.shared_by(mac) if dpid in self._versions]
        return [edit for dpid, place in asked for edit in self._far_edits(place, (dpid,))]

    def _own_rules(self, place: HostLocation) -> list[FlowEntry]:
        """Return the entries of a host at its own switch; none where that is not there."""
        version = self._versions.get(place.dpid)
        return [] if version is None else place.own_rules(version, self._entered_for(place.dpid, place.mac))

    def _host_keys(self, dpid: int, mac: bytes) -> list[FlowKey]:
        """Return the keys of a switch's entries for what its hosts send to a host."""
        return host_keys(self._versions[dpid], mac, self._entered_for(dpid, mac))

    def _enter(self, host: HostLearnt) -> HostLocation:
        """Give a host a place."""
        destination = self._destinations.get(host.dpid)
        if destination is None:
            number = switch_number(host.dpid, self._numbers)
            self._numbers[number] = host.dpid
            destination = Destination(host.dpid, number, self._near, len(self._pairs))
            self._destinations[host.dpid] = destination
            self._behind[host.dpid] = None
        vlan_id = domain_of(host.mac)
        is_tagged = bool(vlan_id) and self._is_tagged(host.dpid, host.port_no, vlan_id)
        place = self._places[host.mac] = destination.enter(host, is_tagged)
        self._asked.placed(host.mac)
        return place

    def _leave(self, place: HostLocation) -> Stage:
        """Take a host from its place; return the edits that remove its entries there and in OpenFlow 1.0."""
        destination = self._destinations[place.dpid]
        destination.leave(place)
        del self._places[place.mac]
        self._asked.left(place.mac)
        keys = [(place.dpid, rule.key) for rule in self._own_rules(place)]
        for dpid in destination.ports:
            if self._versions[dpid] == OPENFLOW_1_0:
                keys.append((dpid, place.location_key(OPENFLOW_1_0)))
        return [(dpid, Remove(key)) for dpid, key in keys]

    def _drop_empty(self, stage: Stage) -> None:
        """Forget destinations without hosts."""
        for destination in [found for found in self._destinations.values() if not found.places]:
            for dpid in destination.ports:
                stage += [(dpid, Remove(key)) for key in destination.passing_keys(self._versions[dpid])]
            del self._destinations[destination.dpid], self._numbers[destination.number]
            self._behind.pop(destination.dpid, None)

    # Entries towards a destination

    def _follow_paths(self, destination: Destination, limit: int) -> tuple[set[int], bool]:
        """Let a destination's paths follow the links; return the switches that have to follow, and whether in order.

        To a new destination nothing is sent that a switch without its entry would let go round: so many switches
        follow, and the others later.
        """
        pairs = set(self._pairs[destination.seen :])
        destination.seen = len(self._pairs)
        fresh = destination.fresh
        if pairs:
            is_ordered = bool(destination.ports)
            destination.fresh = []
            return destination.paths.update(self._near, pairs).union(fresh), is_ordered
        destination.fresh = fresh[limit:]
        return set(fresh[:limit]), not fresh

    def _reroute(self, destination: Destination, switches: set[int]) -> dict[int, Stage]:
        """Bring the entries towards a destination up to date at some switches; stages rank by distance.

        What is sent to a switch that is astray is stopped before anything else changes.
        """
        distance, next_hops = destination.paths.distance, destination.paths.next_hops
        stages: dict[int, Stage] = {}
        astray = self._astray(destination) if self.away else set()
        around = {near for dpid in astray for near in self._near.get(dpid, ())}
        concerned = (switches | around | destination.detoured) - {destination.dpid}
        destination.detoured = set()
        for dpid in sorted(concerned & self._versions.keys()):
            former, version = destination.ports.get(dpid), self._versions[dpid]
            hops = next_hops.get(dpid, ())
            right = tuple(hop for hop in hops if hop.dpid not in astray) if astray else hops
            if len(right) < len(hops):
                destination.detoured.add(dpid)
            ports = destination.choose(dpid, right, self._levels.of(dpid))
            if ports == former:
                continue
            asked = self._asked.names_at(dpid)
            entered = partial(self._entered_for, dpid)
            held = destination.passing_rules(version, former, asked, entered)
            wanted = destination.passing_rules(version, ports, asked, entered)
            if ports is None:
                del destination.ports[dpid]
            else:
                destination.ports[dpid] = ports
            stopped: list[FlowKey] = []
            if dpid in around and dpid not in self.away:
                ways = [port_nos for far, port_nos in self._near[dpid].items() if far in astray]
                misleading = {Output(port_no) for port_nos in ways for port_no in port_nos}
                stopped = [key for key, rule in held.items() if rule.actions[-1] in misleading]
            if stopped:
                stages.setdefault(_FIRST, []).extend([(dpid, Remove(key)) for key in stopped])
            edits: Stage = [(dpid, Put(rule)) for key, rule in wanted.items() if held.get(key) != rule]
            edits += [(dpid, Remove(key)) for key in held if key not in wanted and key not in stopped]
            if edits:
                stages.setdefault(distance.get(dpid, _LAST), []).extend(edits)
        return stages

    def _astray(self, destination: Destination) -> set[int]:
        """Return the switches that are away and hold entries towards a destination that do not lead nearer to it."""
        distance, next_hops = destination.paths.distance, destination.paths.next_hops
        astray: set[int] = set()
        away = [dpid for dpid in self.away if dpid in distance and dpid in self._versions]
        for dpid in sorted(away, key=lambda dpid: (distance[dpid], dpid)):
            keys = destination.passing_keys(self._versions[dpid]) + self.pinned.left(dpid, destination.dpid)
            ports = {port_no for key in keys if (port_no := self._held(dpid, key)) is not None}
            if dpid == destination.dpid:
                if not ports.isdisjoint(chain.from_iterable(self._near[dpid].values())):
                    astray.add(dpid)
                continue
            nearer = {hop.port_no for hop in next_hops[dpid] if hop.dpid not in astray}
            if destination.dpid in self.unsure.get(dpid, ()) or not ports or not ports <= nearer:
                astray.add(dpid)
        return astray
