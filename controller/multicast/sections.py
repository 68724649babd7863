"""What operators follow of the multicast core: its documents by section, and which of them changed."""

from __future__ import annotations

from typing import Any

from controller.config.policy import DEFAULT_RULE, Policy
from controller.durations import format_duration
from controller.effects import Notice
from controller.events import PortChanged, SwitchConnected, SwitchDescription
from controller.kernel.domains import address_of, domain_of
from controller.kernel.ports import Cable, cable_of
from controller.multicast.callbacks import PolicyInForce
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.gate import Gate
from controller.multicast.group_view import GroupView
from controller.multicast.groups import GroupPlane
from controller.multicast.memberships import Memberships
from controller.multicast.port_view import PortView
from controller.multicast.router_view import RouterView
from controller.multicast.static_members import StaticMembers
from controller.multicast.status_view import StatusView
from controller.multicast.switches import Switches
from controller.multicast.table_view import TableView, table_id
from controller.multicast.version_view import VersionView
from controller.rules.installer import Installer
from controller.snapshot.events import Severity
from controller.snapshot.log import Document, DocumentLog
from controller.wire.addresses import format_ip, format_mac, is_link_scope_group
from topology.aggregations import Place
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
from topology.graph import NodeKind, tier_of
from topology.live import LiveFabric

COMPARE_INTERVAL_S = 1.0
"""How often what changes all the time is compared with what readers know: status, counters, whether in sync."""

LOST_BOUND = 4096
"""Switches and links that are remembered as lost, so that their return can be told; beyond it the oldest goes."""

CRITICAL = frozenset({"table-full", "plans-bound", "barrier-timeout", "read-timeout", "read-faulty"})
"""Notices that say that a switch may not do what it shall."""

INFORMING = frozenset({"fabric-joined", "alias-moved", "alias-returned"})
"""Notices of what is nothing to worry about."""

QUERIERS = "queriers"
STATUS = "status"


class MulticastSections:
    """The sections of the multicast core; `environment` adds to the status what only the shell knows.

    The stages tell of what they change (`ChangeFeed`); `refresh`, before each reading, finds what is told by nobody.
    """

    def __init__(
        self,
        feed: ChangeFeed,
        policy: PolicyInForce,
        fabric: LiveFabric,
        switches: Switches,
        installer: Installer,
        gate: Gate,
        memberships: Memberships,
        plane: GroupPlane,
        static: StaticMembers,
        status_view: StatusView,
        group_view: GroupView,
        table_view: TableView,
        port_view: PortView,
        router_view: RouterView,
        version_view: VersionView,
        now: float,
    ) -> None:
        self._feed = feed
        self._policy = policy
        self._fabric = fabric
        self._known_switches = switches
        self._installer = installer
        self._gate = gate
        self._memberships = memberships
        self._plane = plane
        self._static = static
        self._status_view = status_view
        self._group_view = group_view
        self._table_view = table_view
        self._port_view = port_view
        self._router_view = router_view
        self._version_view = version_view
        self.environment: Document = {}
        self.names = feed.names
        self.events = feed.events
        self.status: DocumentLog[str] = DocumentLog(
            lambda: (STATUS,), lambda _key: {**self._status, **self.environment}, log=feed.status
        )
        self.switches: DocumentLog[int] = DocumentLog(self._shown_keys, self._switch, log=feed.switches)
        self.links: DocumentLog[Cable] = DocumentLog(
            lambda: self._cables(), self._link, lambda c: "{}:{}-{}:{}".format(*c), feed.links
        )
        self.ports: DocumentLog[Place] = DocumentLog(
            self._port_keys, self._port, lambda place: "{}:{}".format(*place), feed.ports
        )
        self.hosts: DocumentLog[bytes] = DocumentLog(self._host_keys, self._host, format_mac, feed.hosts)
        self.groups: DocumentLog[bytes] = DocumentLog(self._group_keys, self._group, format_ip, feed.groups)
        self.rules: DocumentLog[str] = DocumentLog(lambda: self._rules, self._rule, log=feed.rules)
        self.routers: DocumentLog[Any] = DocumentLog(self._router_keys, self._router, _router_id, feed.routers)
        self.versions: DocumentLog[int] = DocumentLog(self._shown_keys, self._version)
        self._tables: dict[int, Document] = {}
        self.tables: DocumentLog[int] = DocumentLog(lambda: self._tables, lambda key: self._tables.get(key), table_id)
        self._compared_s = now - COMPARE_INTERVAL_S
        self._graph_version = -1
        self._has_tors = False
        self._known_cables: set[Cable] = set()
        self._away_s: dict[int, float] = {}
        self._encrypted: set[int] = set()
        self._shown: dict[int, Document] = {}
        self._in_sync: dict[int, bool] = {}
        self._rules: dict[str, dict[str, int]] = {}
        self._counted_s: dict[str, float] = {}
        self._status: Document = {}
        self._queriers: Document = {}
        self._lost: dict[tuple[int, ...], float] = {}
        self._count_rules(policy(), now)

    def by_name(self) -> dict[str, DocumentLog[Any]]:
        """Return the sections by the names under which they are offered."""
        names = ("status", "switches", "links", "ports", "hosts", "groups", "rules", "routers", "tables", "versions")
        return {**{name: getattr(self, name) for name in names}, "events": self.events.section}

    def counted_rules(self) -> list[Document]:
        """Return how often each rule decided up to now, and since when that is counted."""
        return [self._counted(name, counts) for name, counts in self._gate.admission.counters().items()]

    def refresh(self, now: float) -> None:
        """Find what changed without a word; to be called before sections are read."""
        if self._fabric.graph.version != self._graph_version:
            self._graph_version = self._fabric.graph.version
            self._has_tors = bool(self._fabric.graph.nodes(NodeKind.TOR))
            known, self._known_cables = self._known_cables, self._cables()
            for cable in sorted(known ^ self._known_cables):
                self._feed.links.touch(cable)
            for dpid in self._switch_keys():
                self._feed.switches.touch(dpid)
                self.versions.touch(dpid)
        if now - self._compared_s < COMPARE_INTERVAL_S:
            return
        self._compared_s = now
        in_sync = {dpid: self._installer.in_sync(dpid) for dpid in self._switch_keys()}
        for dpid in _differing(self._in_sync, in_sync):
            self._feed.switches.touch(dpid)
        rules = self._gate.admission.counters()
        for name in _differing(self._rules, rules):
            self._feed.rules.touch(name)
        tables = self._table_view.tables()
        for table in _differing(self._tables, tables):
            self.tables.touch(table)
        self._tables = tables
        status, queriers = self._status_view.status(), self._router_view.queriers()
        if status != self._status:
            self._feed.status.touch(STATUS)
        if queriers != self._queriers:
            self._feed.routers.touch(QUERIERS)
            self.versions.log.forget()
        for dpid in self._version_view.refresh(now):
            self.versions.touch(dpid)
        self._in_sync, self._rules, self._status, self._queriers = in_sync, rules, status, queriers

    # What the core tells

    def topology_changed(self, event: TopologyEvent, now: float) -> None:
        """Take note of an event of the fabric that the core has followed."""
        if isinstance(event, HostLearnt | HostGone):
            self._feed.hosts.touch(event.mac)
        elif isinstance(event, PortRoleChanged):
            for leg in self._fabric.aggregations.legs((event.dpid, event.port_no)):
                self._feed.ports.touch(leg)
        elif isinstance(event, SwitchUp):
            self._known_switches.gone.pop(event.dpid, None)
            self.switch_changed(event.dpid)
            lost_s = self._found((event.dpid,), now)
            if lost_s is None:
                self.events.add(now, "switch-up", f"Switch {event.dpid} is part of the fabric.", dpid=event.dpid)
            else:
                self._returned("switch-down", f"Switch {event.dpid} was gone", lost_s, event.dpid, now)
        elif isinstance(event, SwitchDown):
            away_s = self._away_s.get(event.dpid, now)
            self._gone(event.dpid, now)
            self.switch_changed(event.dpid)
            self._feed.hosts.forget()
            self._lose((event.dpid,), away_s)
        elif isinstance(event, LinkDown):
            self._lose(cable_of(event), now)
        elif isinstance(event, LinkUp):
            cable = cable_of(event)
            lost_s = self._found(cable, now)
            if lost_s is not None:
                what = "The link of port {}:{} and port {}:{} was down".format(*cable)
                self._returned("link-failed", what, lost_s, cable[0], now)

    def switch_connected(self, event: SwitchConnected, now: float) -> None:
        """Take note that a datapath connected."""
        self.names.ports_described(event.dpid, event.ports)
        lost_s = self._away_s.pop(event.dpid, None)
        if lost_s is not None:
            what = f"Switch {event.dpid} forwarded without a connection"
            self._returned("switch-down", what, now - lost_s, event.dpid, now)
        (self._encrypted.add if event.encrypted else self._encrypted.discard)(event.dpid)
        self._known_switches.gone.pop(event.dpid, None)
        self.switch_changed(event.dpid)

    def switch_disconnected(self, dpid: int, now: float) -> None:
        """Take note that the connection of a datapath ended."""
        self._away_s[dpid] = now
        self._encrypted.discard(dpid)
        if dpid not in self._fabric.graph:
            self._gone(dpid, now)
        self.switch_changed(dpid)

    def port_changed(self, event: PortChanged) -> None:
        """Take note that a port was added, changed or deleted."""
        self.names.port_described(*event)
        self.switch_changed(event.dpid)

    def described(self, dpid: int, description: SwitchDescription) -> None:
        """Take what a switch says of itself."""
        self._version_view.described(dpid, description)
        self.versions.touch(dpid)
        for named in self.names.described(dpid, description.datapath):
            self._feed.switches.touch(named)

    def policy_loaded(self, policy: Policy, now: float) -> None:
        """Take the names and labels of a policy; rules that it has anew are counted from now on."""
        before = self._policy()
        self._count_rules(policy, now)
        if policy.link_aggregations != before.link_aggregations:
            self._feed.ports.forget()
        if policy.vlans != before.vlans:
            self._feed.ports.forget()
            self._feed.groups.forget()
        elif policy.registrations != before.registrations:
            self._feed.groups.forget()
        if policy.fabrics != before.fabrics:
            self._feed.switches.forget()
        if (policy.switches, policy.labels) != (before.switches, before.labels):
            self.names.configure(policy.switches, policy.labels)
            self._feed.switches.forget()
            self._feed.ports.forget()

    def counters_reset(self, now: float) -> None:
        """Take note that all counters begin anew."""
        self._counted_s = dict.fromkeys(self._counted_s, now)
        self._feed.rules.forget()

    def forget_switch(self, dpid: int) -> bool:
        """Show a switch that is gone no longer; False where there is none such."""
        if self._known_switches.gone.pop(dpid, None) is None:
            return False
        self._lost.pop((dpid,), None)
        self.switch_changed(dpid)
        return True

    def switch_changed(self, dpid: int) -> None:
        """Take note that a switch or its ports are others now."""
        self._feed.switches.touch(dpid)
        self.versions.touch(dpid)
        for port_no in self._known_switches.ports(dpid):
            self._feed.ports.touch((dpid, port_no))
        for group in self._static.groups_at(dpid):
            self._feed.groups.touch(group)

    def noticed(self, notice: Notice, now: float) -> None:
        """Make an event of a notice."""
        fields = dict(notice.fields)
        mild = Severity.INFO if notice.kind in INFORMING else Severity.WARNING
        self.events.add(
            now,
            notice.kind,
            notice.text,
            severity=Severity.CRITICAL if notice.kind in CRITICAL else mild,
            dpid=_whole(fields.get("dpid")),
            port_no=_whole(fields.get("port_no")) or None,
            group=str(fields["group"]) if "group" in fields else None,
        )

    def _gone(self, dpid: int, now: float) -> None:
        """Keep what was last shown of a switch that left the fabric."""
        since_s = self._away_s.pop(dpid, now) + self.events.offset_s
        if dpid not in self._known_switches.connected:
            if len(self._known_switches.gone) >= LOST_BOUND:
                self._feed.switches.touch(oldest := next(iter(self._known_switches.gone)))
                del self._known_switches.gone[oldest]
            unseen = {"dpid": dpid, "ofp_version": None, "tier": NodeKind.SWITCH.value, "level": None}
            state = {"fabric": None, "connected": False, "disconnected_s": since_s, "in_sync": False}
            self._known_switches.gone[dpid] = {**unseen, **self._shown.pop(dpid, {}), **state}

    def _returned(self, kind: str, what: str, lost_s: float, dpid: int, now: float) -> None:
        """Tell of what was lost too shortly to be an alarm; of all else the alarms tell, and of what follows."""
        if lost_s < self._policy().alarms.settle_s:
            text = f"{what} for {format_duration(lost_s)}."
            self.events.add(now, kind, text, severity=Severity.WARNING, dpid=dpid)

    def _lose(self, what: tuple[int, ...], now: float) -> None:
        if len(self._lost) >= LOST_BOUND:
            del self._lost[next(iter(self._lost))]
        self._lost[what] = now

    def _found(self, what: tuple[int, ...], now: float) -> float | None:
        """Return how long a switch or link was lost, None where it was not."""
        lost_s = self._lost.pop(what, None)
        return None if lost_s is None else now - lost_s

    # Keys and documents

    def _switch_keys(self) -> list[int]:
        return sorted(self._fabric.ofp_versions().keys() | self._known_switches.connected)

    def _shown_keys(self) -> list[int]:
        return sorted({*self._switch_keys(), *self._known_switches.gone})

    def _switch(self, dpid: int) -> Document | None:
        graph = self._fabric.graph
        connected = dpid in self._known_switches.connected
        if dpid not in graph and not connected:
            self._shown.pop(dpid, None)
            gone = self._known_switches.gone.get(dpid)
            state = {"name": self.names.switch(dpid), "labels": self.names.labels(dpid)}
            return None if gone is None else {**gone, **state, "drained": dpid in self._known_switches.drained}
        level, tier = self._level_and_tier(dpid)
        in_sync = self._installer.in_sync(dpid)
        if in_sync != self._in_sync.get(dpid):
            # It changed between two comparisons: the next one shall not find it as it was.
            self._in_sync.pop(dpid, None)
        away_s = None if connected else self._away_s.get(dpid)
        shown = self._shown[dpid] = {
            "dpid": dpid,
            "name": self.names.switch(dpid),
            "labels": self.names.labels(dpid),
            "ofp_version": self._known_switches.ofp_version(dpid),
            "encrypted": dpid in self._encrypted if connected else None,
            "tier": tier,
            "level": level,
            "fabric": self._router_view.fabric_of(dpid),
            "connected": connected,
            "disconnected_s": None if away_s is None else away_s + self.events.offset_s,
            "in_sync": in_sync,
            "drained": dpid in self._known_switches.drained,
        }
        return shown

    def _version(self, dpid: int) -> Document | None:
        known = (self._known_switches.connected, self._known_switches.gone, self._fabric.ofp_versions())
        return self._version_view.version(dpid) if any(dpid in some for some in known) else None

    def _level_and_tier(self, dpid: int) -> tuple[int | None, str]:
        """Return where a switch stands; one whose links are gone stands where it did."""
        graph, shown = self._fabric.graph, self._shown.get(dpid)
        if shown is not None and (dpid not in graph or not graph.neighbours(dpid)):
            return shown["level"], shown["tier"]
        if dpid not in graph:
            return None, NodeKind.SWITCH.value
        level = graph.level(dpid)
        return level, tier_of(level, self._has_tors).value

    def _cables(self) -> set[Cable]:
        return {(link.u, link.u_port, link.v, link.v_port) for link in self._fabric.graph.links()}  # type: ignore[misc]

    def _link(self, cable: Cable) -> Document | None:
        dpid_a, port_a, dpid_b, port_b = cable
        graph = self._fabric.graph
        link = graph.cable(dpid_a, dpid_b, port_a)
        if link is None or link.v_port != port_b:
            return None
        ends = {"dpid_a": dpid_a, "port_a": port_a, "dpid_b": dpid_b, "port_b": port_b}
        return {**ends, "capacity_bps": link.capacity_bps}

    def _port_keys(self) -> list[Place]:
        switches = self._known_switches
        return [(dpid, port_no) for dpid in self._switch_keys() for port_no in sorted(switches.ports(dpid))]

    def _port(self, place: Place) -> Document | None:
        dpid, port_no = place
        switches, fabric = self._known_switches, self._fabric
        here = dpid in switches.connected or fabric.ofp_version(dpid) is not None
        if not here or port_no not in switches.ports(dpid):
            return None
        role = fabric.role(dpid, port_no).value
        static = self._static.of_port(dpid, port_no)
        said: Document = {"dpid": dpid, "port_no": port_no, "name": self.names.port(dpid, port_no)}
        said["labels"] = self.names.labels(dpid, port_no)
        vlans = self._port_view.vlans(dpid, port_no) if role == PortRole.EDGE.value else None
        group = self._port_view.aggregation(dpid, port_no)
        return {**said, "role": role, "vlans": vlans, "link_aggregation": group, "static_members": static}

    def _host_keys(self) -> list[bytes]:
        return [host.mac for host in self._fabric.hosts()]

    def _host(self, mac: bytes) -> Document | None:
        host = self._fabric.host(mac)
        if host is None:
            return None
        ips = sorted(format_ip(address_of(address)) for address in host.addresses)
        said = {"mac": format_mac(address_of(mac)), "vlan": domain_of(mac) or None}
        return {**said, "dpid": host.dpid, "port_no": host.port_no, "ips": ips}

    def _group_keys(self) -> list[bytes]:
        wanted = (group for group in self._memberships.groups() if not is_link_scope_group(group))
        return sorted({*self._plane.groups, *wanted, *self._static.groups()})

    def _group(self, address: bytes) -> Document | None:
        if is_link_scope_group(address):
            return None
        document = self._group_view.group(address)
        is_registered = document["source_vlan"] is not None and document["members"]
        asked_for = document["refused"] or document["static_members"] or is_registered
        return document if address in self._plane.groups or asked_for else None

    def _rule(self, name: str) -> Document | None:
        counts = self._rules.get(name)
        return None if counts is None or name not in self._counted_s else self._counted(name, counts)

    def _counted(self, name: str, counts: dict[str, int]) -> Document:
        return {"rule": name, **counts, "since_s": self._counted_s[name] + self.events.offset_s}

    def _count_rules(self, policy: Policy, now: float) -> None:
        """Take note of the rules of a policy, and since when those that are new are counted."""
        names = [*(rule.name for rule in policy.rules), DEFAULT_RULE]
        self._counted_s = {name: self._counted_s.get(name, now) for name in names}

    def _router_keys(self) -> list[Any]:
        return [QUERIERS, *self._router_view.router_port_keys()]

    def _router(self, key: Any) -> Document | None:
        return self._queriers if key == QUERIERS else self._router_view.router_port(*key)


def _router_id(key: Any) -> str:
    if key == QUERIERS:
        return QUERIERS
    dpid, port_no, family, vlan_id = key
    return f"{dpid}:{port_no}:{family}@{vlan_id}" if vlan_id else f"{dpid}:{port_no}:{family}"


def _differing(known: dict[Any, Any], found: dict[Any, Any]) -> list[Any]:
    keys = known.keys() | found.keys()
    return sorted(key for key in keys if known.get(key) != found.get(key))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
