"""IGMP and MLD proxying (RFC 4605): the controller reports at router ports what the hosts of a domain want together.

Hosts are asked by the controller alone then, and no report of theirs goes to such a port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from controller.effects import Notice
from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import address_of, domain_of, family_of
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import Interest, RouterAsked, RouterPortChanged, SendQuery
from controller.membership.settings import timing
from controller.multicast.callbacks import Perform, PolicyInForce
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.group import Group
from controller.multicast.groups import GroupPlane
from controller.multicast.merged_interest import MergedInterest
from controller.multicast.queries import CONTROLLER_MAC
from controller.multicast.settings import membership_settings
from controller.multicast.upstream import Upstream
from controller.wire.addresses import format_ip
from controller.wire.encode import encode
from controller.wire.packets import Report
from topology.aggregations import Place
from topology.live import LiveFabric

SHOWN_GROUPS = 64
"""Groups that are named of those reported at a port; the others are counted."""


class MembershipProxy:
    """The membership database of every domain of every fabric, and its upstream interfaces.

    What members want is taken from where it decides on trees: after admission, with static members, and of a group
    that receivers get from another VLAN in that VLAN. The database is there while some port is reported to, and is
    made anew where fabrics are others than they were: a router is told of the members of its own fabric alone.
    """

    def __init__(
        self,
        counters: Counter[str],
        policy: PolicyInForce,
        fabric: LiveFabric,
        plane: GroupPlane,
        feed: ChangeFeed,
        vlan_ports: VlanPorts,
        perform: Perform,
    ) -> None:
        self._counters = counters
        self._policy = policy
        self._fabric = fabric
        self._plane = plane
        self._feed = feed
        self._vlan_ports = vlan_ports
        self._perform = perform
        self._upstreams: dict[tuple[int, int], Upstream] = {}
        self._database: dict[int, dict[bytes, MergedInterest]] = {}
        self._fabrics_seen = 0
        self._is_starting = True
        self._due: Deadlines[tuple[int, int]] = Deadlines()

    def has(self, dpid: int, port_no: int, family: int, vlan_id: int) -> bool:
        """Tell whether memberships of a domain are reported at a port, and no report of a host goes there."""
        upstream = self._upstreams.get((vlan_id, family))
        return upstream is not None and (dpid, port_no) in upstream.ports

    def reported(self, dpid: int, port_no: int, family: int, vlan_id: int) -> dict[str, Any] | None:
        """Return the version of reports at a port, and how many and which groups they are about; None for no port."""
        upstream = self._upstreams.get((vlan_id, family))
        told = None if upstream is None else upstream.ports.get((dpid, port_no))
        if upstream is None or told is None:
            return None
        groups = [format_ip(name) for name in islice(told.wanted, SHOWN_GROUPS)]
        return {"version": upstream.said_version, "group_count": len(told.wanted), "groups": groups}

    # What is wanted

    def router_port_changed(self, change: RouterPortChanged, vlan_id: int, now: float) -> None:
        """Follow a router port that came or went, or may have other groups."""
        place, key = (change.dpid, change.port_no), (vlan_id, change.family)
        upstream = self._upstreams.get(key)
        if change.present and change.proxied:
            if not self._upstreams:
                self._begin()
            else:
                self.fabrics_changed(now)
            if upstream is None:
                upstream = self._upstreams[key] = Upstream(*key)
            upstream.add(place, list(self._wanted_at(place, key)), now)
            self._await(upstream)
        elif upstream is not None and place in upstream.ports:
            upstream.remove(place)
            if not upstream.ports:
                del self._upstreams[key]
                self._due.cancel(key)
            if not self._upstreams:
                self._plane.followed_by = None
                self._database.clear()

    def port_ready(self, dpid: int, port_no: int, vlan_id: int, now: float) -> None:
        """Say all anew at a port whose switch is there again: its routers may have heard nothing."""
        for family in (4, 6):
            upstream = self._upstreams.get((vlan_id, family))
            if upstream is not None and (dpid, port_no) in upstream.ports:
                upstream.announce((dpid, port_no), now)
                self._await(upstream)

    def interest_changed(
        self, group: Group, place: Place, before: Interest | None, after: Interest | None, now: float
    ) -> None:
        """Follow what the members at an outgoing interface want of a group now."""
        if self._fabrics_now() != self._fabrics_seen:
            self.fabrics_changed(now)
            return
        name, fabric = group.address, self._fabric_of(place[0])
        of_fabric = self._database.setdefault(fabric, {})
        merged = of_fabric.get(name)
        if merged is None:
            merged = of_fabric[name] = MergedInterest()
        merged.replace(before, after)
        if not merged.count:
            del of_fabric[name]
        upstream = self._upstreams.get((group.vlan_id, group.family))
        if upstream is None:
            return
        for at in upstream.ports:
            if self._fabric_of(at[0]) != fabric:
                continue
            wanted = None
            if self._plane.routers.may_have(*at, name):
                own = after if at == place else _interest_at(group, at)
                wanted = merged.without(own)
            if upstream.tell(at, name, wanted, now):
                self._feed.router_port_changed(*at, upstream.family, upstream.vlan_id)
        self._await(upstream)

    def started(self, now: float) -> None:
        """Go by the fabrics that there are: links that were there before a start are known by now."""
        self._is_starting = False
        self.fabrics_changed(now)

    def fabrics_changed(self, now: float) -> None:
        """Tell each router what the members of its fabric want, as fabrics are now."""
        if not self._upstreams or self._fabrics_now() == self._fabrics_seen:
            return
        self._begin()
        for key, upstream in self._upstreams.items():
            for place, told in upstream.ports.items():
                wanted = dict(self._wanted_at(place, key))
                names = [*wanted, *(name for name in told.wanted if name not in wanted)]
                changed_count = sum(upstream.tell(place, name, wanted.get(name), now) for name in names)
                if changed_count:
                    self._feed.router_port_changed(*place, upstream.family, upstream.vlan_id)
            self._await(upstream)

    def _fabrics_now(self) -> int:
        """Return a number that is another once a switch may be in another fabric; 0 while there is one fabric.

        Those that are there while the controller starts do not count: their links are not known yet, and what a
        router heard of the members of its fabric before would be taken back.
        """
        fabrics = self._fabric.fabrics
        return fabrics.version if len(fabrics) > 1 and not self._is_starting else 0

    def _fabric_of(self, dpid: int) -> int:
        """Return the lowest datapath id of a switch's fabric; 0 while there is one fabric."""
        if not self._fabrics_seen:
            return 0
        fabric = self._fabric.fabrics.of(dpid)
        return dpid if fabric is None else fabric.dpid

    def _begin(self) -> None:
        """Take in what all members want, and follow it from now on."""
        plane = self._plane
        plane.followed_by = self
        self._fabrics_seen = self._fabrics_now()
        self._database.clear()
        for name, group in plane.groups.items():
            for dpid, ports in group.interests.items():
                of_fabric = self._database.setdefault(self._fabric_of(dpid), {})
                merged = of_fabric.get(name)
                if merged is None:
                    merged = of_fabric[name] = MergedInterest()
                for interest in ports.values():
                    merged.replace(None, interest)

    def _wanted_at(self, place: Place, key: tuple[int, int]) -> Iterator[tuple[bytes, Interest]]:
        plane = self._plane
        for name, merged in self._database.get(self._fabric_of(place[0]), {}).items():
            if (domain_of(name), family_of(name)) == key and plane.routers.may_have(*place, name):
                wanted = merged.without(_interest_at(plane.groups[name], place))
                if wanted is not None:
                    yield name, wanted

    # What is asked

    def router_asked(self, asked: RouterAsked, vlan_id: int, now: float) -> None:
        """Answer the query of a router."""
        query = asked.query
        upstream = self._upstreams.get((vlan_id, query.family))
        if upstream is None or (asked.dpid, asked.port_no) not in upstream.ports:
            return
        values = timing(membership_settings(self._policy()))
        self._counters["proxy-queries"] += 1
        if upstream.asked(query, values.robustness, values.membership_s, now):
            protocol = "IGMP" if query.family == 4 else "MLD"
            version = upstream.version(now)
            text = (
                f"Port {asked.dpid}:{asked.port_no} has a router that asks in {protocol}v{query.version}: "
                f"memberships are reported to routers in {protocol}v{version} from now on."
            )
            fields = (("dpid", asked.dpid), ("port_no", asked.port_no), ("version", version))
            self._perform((Notice("proxy-version", text, fields),))
            for place in upstream.ports:
                self._feed.router_port_changed(*place, query.family, vlan_id)
        self._await(upstream)

    def own_query_sent(self, query: SendQuery, vlan_id: int, now: float) -> None:
        """Answer a general query of our own at a router port where no router asks."""
        upstream = self._upstreams.get((vlan_id, query.family))
        if upstream is not None and query.group is None and (query.dpid, query.port_no) in upstream.ports:
            upstream.own_query_sent(query.max_response_s, now)
            self._await(upstream)

    # Time

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is to be called, None where nothing is awaited."""
        return self._due.next()

    def on_deadline(self, now: float) -> None:
        """Send the reports that are due."""
        for key in self._due.due(now):
            upstream = self._upstreams[key]
            for place, version, records in upstream.on_deadline(now):
                self._send(upstream, place, version, records)
            self._await(upstream)

    def _send(self, upstream: Upstream, place: Place, version: int, records: tuple[Any, ...]) -> None:
        proxy = self._policy().multicast.proxy
        source = proxy.address_v6
        if upstream.family == 4:
            source = _sources(proxy.vlan_addresses_v4).get(upstream.vlan_id, proxy.address_v4)
        frame = encode(Report(upstream.family, version, CONTROLLER_MAC, source, records))
        self._counters["proxy-reports"] += 1
        self._perform(self._vlan_ports.sent(place[0], (place[1],), frame, upstream.vlan_id))

    def _await(self, upstream: Upstream) -> None:
        key, due_s = (upstream.vlan_id, upstream.family), upstream.due.next()
        if due_s is None:
            self._due.cancel(key)
        else:
            self._due.set(key, due_s)


@lru_cache(maxsize=2)
def _sources(names: tuple[bytes, ...]) -> dict[int, bytes]:
    """Return addresses by VLAN."""
    return {domain_of(name): address_of(name) for name in names}


def _interest_at(group: Group, place: Place) -> Interest | None:
    """Return what the very port wants, in the group's own domain."""
    return group.interests.get(place[0], {}).get(place[1])
