"""Linux bridges as a policy: what files of either form say of bridges and their ports is put together here."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.config.terms import SwitchPort
from controller.migration.draft import PolicyDraft, VlanDraft
from controller.migration.places import Places
from controller.migration.querier_values import AskedValue, write_values
from controller.migration.report import ImportReport, Place

FIRST_OWN_VLAN = 4000
_NOTE = (
    "A Linux bridge that snoops floods groups that nobody has joined, and all of them where it does not; here a port "
    "gets the groups that its hosts join (IGMP, MLD), and those of `static_members`."
)


@dataclass(slots=True)
class LinuxPort:
    """A port of a bridge: its VLANs as far as they are said, and where."""

    name: str
    place: Place
    bridges: list[str] = field(default_factory=list)
    access: int | None = None
    pvid: int | None = None
    tagged: tuple[int, ...] | None = None
    takes_untagged: bool = True
    is_told_in_full: bool = False
    carried: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Bridge:
    """A bridge: whether it tells VLANs apart, and what ports have that say nothing themselves."""

    name: str
    place: Place
    is_vlan_aware: bool = False
    tagged: tuple[int, ...] = ()
    pvid: int = 1
    ports: list[str] = field(default_factory=list)


@dataclass(slots=True)
class StaticGroup:
    """A group that a port is given whatever its hosts ask for."""

    group: str
    port: str
    vlan_id: int
    place: Place
    field: str = ""


@dataclass(slots=True)
class BridgeModel:
    """All that was said of bridges, ports, groups and timers."""

    report: ImportReport
    bridges: dict[str, Bridge] = field(default_factory=dict)
    ports: dict[str, LinuxPort] = field(default_factory=dict)
    groups: list[StaticGroup] = field(default_factory=list)
    routers: list[tuple[str, Place, str]] = field(default_factory=list)
    fast: list[tuple[str, Place, str]] = field(default_factory=list)
    asked: list[AskedValue] = field(default_factory=list)
    querier_v4: tuple[str, Place] | None = None

    def bridge(self, name: str, place: Place) -> Bridge:
        """Return a bridge, known from now on."""
        return self.bridges.setdefault(name, Bridge(name, place))

    def port(self, name: str, place: Place) -> LinuxPort:
        """Return a port, known from now on."""
        return self.ports.setdefault(name, LinuxPort(name, place))

    def as_policy(self, places: Places) -> PolicyDraft:
        """Return the policy, and report where ports are, or that nothing says it."""
        draft = PolicyDraft()
        self._own_domains(draft)
        where = self._placed(draft, places)
        for name, place in where.items():
            port = self.ports[name]
            vlans = self._vlans_of(port)
            if vlans is not None:
                draft.vlans[place] = vlans, f"{port.place}, {name}"
        for asked in self.groups:
            self._static_group(draft, asked, where)
        for wanted, into, setting in (
            (self.routers, draft.router_ports, "multicast.router_ports.static"),
            (self.fast, draft.fast_leave, "multicast.fast_leave"),
        ):
            for name, asked_at, label in wanted:
                if name in where:
                    into[where[name]] = str(asked_at)
                    self.report.taken(asked_at, f"`{setting}`: port {where[name].port_no}", label)
                else:
                    self.report.impossible(asked_at, f"nothing says where {name} is", _todo(name), label)
        write_values(draft, self.report, self.asked)
        if self.querier_v4 is not None:
            draft.settings["multicast.querier.address_v4"] = self.querier_v4[0], str(self.querier_v4[1])
        self.report.note(_NOTE)
        return draft

    def _own_domains(self, draft: PolicyDraft) -> None:
        """Give bridges that know no VLANs one each, so that their hosts stay apart; a single one needs none."""
        plain = [bridge for bridge in self.bridges.values() if not bridge.is_vlan_aware and bridge.ports]
        used = {
            vlan
            for port in self.ports.values()
            for vlan in (*port.carried, *(port.tagged or ()), port.pvid, port.access)
        }
        used |= {vlan for bridge in self.bridges.values() for vlan in (*bridge.tagged, bridge.pvid)}
        is_single = len(plain) == 1 and len(self.bridges) == 1
        following = FIRST_OWN_VLAN
        for bridge in plain:
            tags = {tag for name in bridge.ports for tag, of in self.ports[name].carried.items() if of == bridge.name}
            members = [self.ports[name] for name in bridge.ports]
            if len(tags) == 1:
                (vlan_id,) = tags
                what = f"VLAN {vlan_id}, of its ports with that tag"
            elif is_single and not tags:
                self.report.taken(bridge.place, "the fabric's own domain, without VLANs")
                continue
            else:
                while following in used:
                    following += 1
                vlan_id = following
                used.add(vlan_id)
                what = f"VLAN {vlan_id} here, so that its hosts and those of other bridges stay apart"
            if len(tags) > 1:
                why = f"the bridge joins VLANs {', '.join(map(str, sorted(tags)))}, and tags are not changed here"
                self.report.impossible(bridge.place, why, "give its hosts one VLAN")
                continue
            self.report.changed(bridge.place, what)
            draft.name_vlan(vlan_id, bridge.name, str(bridge.place))
            for port in members:
                if bridge.name not in port.carried.values():
                    port.access = vlan_id

    def _placed(self, draft: PolicyDraft, places: Places) -> dict[str, SwitchPort]:
        """Return where ports are: as it was said, or by their order at a bridge that is a switch."""
        where: dict[str, SwitchPort] = {}
        taken = set(places.ports.values())
        for bridge in self.bridges.values():
            dpid = places.switches.get(bridge.name)
            for number, name in enumerate(bridge.ports, 1):
                if name in where:
                    continue
                if name in places.ports:
                    where[name] = places.ports[name]
                elif dpid is not None and SwitchPort(dpid, number) not in taken:
                    where[name] = SwitchPort(dpid, number)
        where |= {name: place for name, place in places.ports.items() if name in self.ports}
        names = {dpid: name for name, dpid in places.switches.items()}
        for name, place in where.items():
            draft.switch(place.dpid, names.get(place.dpid, f"switch-{place.dpid:x}"))
            draft.name_port(place, name)
        for name, port in self.ports.items():
            if name not in where:
                todo = _todo(name) + ("" if port.bridges else "; for a bridge itself give `ip -d -j link` too")
                self.report.impossible(port.place, f"nothing says where {name} is", todo, name)
            elif name in places.ports:
                self.report.taken(port.place, f"{name} is port {where[name].port_no}", name)
            else:
                what = f"{name} is taken to be port {where[name].port_no}, by its place among the bridge's ports"
                self.report.changed(port.place, what, name)
        return where

    def _vlans_of(self, port: LinuxPort) -> VlanDraft | None:
        """Return the VLANs of a port; None where it is in the fabric's own domain, as ports are."""
        if port.carried:
            return VlanDraft(port.access, tuple(sorted(port.carried)))
        if port.access is not None:
            return VlanDraft(port.access)
        aware = [self.bridges[name] for name in port.bridges if self.bridges[name].is_vlan_aware]
        if port.is_told_in_full:
            tagged = tuple(vlan for vlan in port.tagged or () if vlan != port.pvid)
            return VlanDraft(port.pvid, tagged) if port.pvid is not None or tagged else None
        if not aware:
            return None
        bridge = aware[0]
        untagged = port.pvid if port.pvid is not None else bridge.pvid
        tagged = tuple(vlan for vlan in (bridge.tagged if port.tagged is None else port.tagged) if vlan != untagged)
        if not port.takes_untagged and tagged:
            return VlanDraft(None, tagged)
        return VlanDraft(untagged, tagged)

    def _static_group(self, draft: PolicyDraft, asked: StaticGroup, where: dict[str, SwitchPort]) -> None:
        if asked.port not in where:
            self.report.impossible(asked.place, f"nothing says where {asked.port} is", _todo(asked.port), asked.field)
            return
        port = self.ports[asked.port]
        vlan_id = asked.vlan_id
        if not vlan_id and (vlans := self._vlans_of(port)) is not None:
            vlan_id = vlans.untagged or 0
        group = f"{asked.group}@{vlan_id}" if vlan_id else asked.group
        draft.static_members.setdefault((group, where[asked.port]), str(asked.place))
        self.report.taken(asked.place, f"a static member: port {where[asked.port].port_no} of {group}", asked.field)


def _todo(name: str) -> str:
    return f"say it: --at {name}=DPID:PORT, or --at BRIDGE=DPID for all ports of a bridge in their order"
