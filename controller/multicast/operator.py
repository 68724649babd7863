"""What operators set beside the policy: static members, router ports and drained switches; and what they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from controller.membership.events import ANY_SOURCE
from controller.membership.tables import GroupKind, group_kind
from controller.multicast.effects import ActionRefused, ActionTaken
from controller.multicast.events import (
    CountersResetAsked,
    GroupRebuildAsked,
    RouterPortSet,
    StaticMemberSet,
    SwitchDrainSet,
)
from controller.multicast.group import Place
from controller.snapshot.events import State
from controller.wire.addresses import format_ip, is_multicast_ip, parse_ip
from topology.events import PortRole

if TYPE_CHECKING:
    from controller.multicast.core import MulticastCore

SETTINGS_BOUND = 16384
"""Static members, and likewise router ports and drained switches, that are kept; further ones are refused."""

LISTED = 1000
"""Groups that an answer lists by name."""

Record = dict[str, Any]


class OperatorSettings(NamedTuple):
    """What a journal says that operators have set."""

    static_members: tuple[tuple[int, int, bytes], ...] = ()
    router_ports: tuple[tuple[int, int, int], ...] = ()
    drained: tuple[int, ...] = ()


class _Refusal(Exception):  # noqa: N818
    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field


class Operator:
    """Carries out what operators ask of a core, and keeps what they set.

    A static member stands for hosts that want every source of a group: it bounds what its port may leave, and gives
    way to nothing that hosts or the policy say. It is served while its port leads to hosts.
    """

    def __init__(self, core: MulticastCore) -> None:
        self.served: set[tuple[int, int, bytes]] = set()
        self._core = core
        self._static: dict[Place, dict[bytes, None]] = {}
        self._static_ports: dict[bytes, set[Place]] = {}
        self._actions: dict[type, Callable[[Any, float], Record]] = {
            StaticMemberSet: self._set_static_member,
            RouterPortSet: self._set_router_port,
            SwitchDrainSet: self._set_drain,
            GroupRebuildAsked: self._rebuild,
            CountersResetAsked: self._reset_counters,
        }
        self.handlers = dict.fromkeys(self._actions, self._handle)

    def static_ports(self, group: bytes) -> list[Place]:
        """Return the ports that are given a group."""
        return sorted(self._static_ports.get(group, ()))

    def static_groups(self) -> Iterable[bytes]:
        """Return the groups that are given to ports."""
        return self._static_ports.keys()

    # The journal

    def record(self) -> Record:
        """Return what is set as a record of the journal."""
        return {
            "kind": "operator",
            "static_members": [
                [*place, format_ip(group)] for place, groups in self._static.items() for group in groups
            ],
            "router_ports": sorted(map(list, self._core.membership.declared_router_ports)),
            "drained": sorted(self._core.topology.drained),
        }

    def restore(self, settings: OperatorSettings, now: float) -> None:
        """Take over what an earlier run was told, before its topology."""
        for dpid, port_no, group in settings.static_members:
            self._add((dpid, port_no), group)
        for key in settings.router_ports:
            self._core.membership.declare_router_port(*key, True, now)
        for dpid in settings.drained:
            self._core.topology.set_drained(dpid, True, now)

    # Ports

    def port_added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve the static members of a port that leads to hosts."""
        for group in self._static.get((dpid, port_no), ()):
            self._serve(dpid, port_no, group, now)

    def port_removed(self, dpid: int, port_no: int, now: float) -> None:
        """Serve the static members of a port no more, for now."""
        for group in self._static.get((dpid, port_no), ()):
            self._end(dpid, port_no, group, now)

    # Actions

    def _handle(self, event: Any, now: float) -> None:
        try:
            document = self._actions[type(event)](event, now)
        except _Refusal as refusal:
            self._core.perform([ActionRefused(refusal.field, str(refusal))])
        else:
            self._core.perform([ActionTaken(document)])

    def _tell(self, now: float, kind: str, text: str, state: State, **place: Any) -> None:
        self._core.journal.operator_touched(now)
        self._core.sections.events.add(now, kind, text, state=state, **place)

    def _set_static_member(self, event: StaticMemberSet, now: float) -> Record:
        dpid, port_no, group, present = event
        place = (dpid, port_no)
        known = group in self._static.get(place, ())
        if present and not known:
            self._check_static(dpid, port_no, group)
            self._add(place, group)
            if place in self._core.topology.edges:
                self._serve(dpid, port_no, group, now)
        elif not present:
            if not known:
                raise _Refusal("group", f"port {dpid}:{port_no} has no static member of {format_ip(group)}")
            del self._static[place][group]
            self._static_ports[group].discard(place)
            if not self._static[place]:
                del self._static[place]
            if not self._static_ports[group]:
                del self._static_ports[group]
            self._end(dpid, port_no, group, now)
        self._core.group_changed(group, now)
        name = format_ip(group)
        text = f"port {dpid}:{port_no} {'is given' if present else 'is no more given'} {name} whatever its hosts say"
        state = State.RAISED if present else State.CLEARED
        self._tell(now, "static-member", text, state, dpid=dpid, port_no=port_no, group=name)
        served = (dpid, port_no, group) in self.served
        return {"group": name, "dpid": dpid, "port_no": port_no, "present": present, "served": served}

    def _check_static(self, dpid: int, port_no: int, group: bytes) -> None:
        """Refuse a static member that cannot be served, or that there is no room for."""
        core, name = self._core, format_ip(group)
        kind = group_kind(group)
        if kind is GroupKind.IGNORED or kind is GroupKind.LINK_SCOPE:
            raise _Refusal("group", f"{name} is link scope: every port gets it")
        if kind is GroupKind.SSM and core.policy.multicast.enforce_ssm:
            raise _Refusal("group", f"{name} is for source-specific multicast, and a static member has no source")
        self._check_port(dpid, port_no)
        limits, place = core.policy.limits, (dpid, port_no)
        if sum(map(len, self._static.values())) >= SETTINGS_BOUND:
            raise _Refusal("group", f"there are {SETTINGS_BOUND} static members, as many as are kept")
        if len(self._static.get(place, ())) + core.membership.group_count(*place) >= limits.groups_per_port:
            raise _Refusal("port_no", f"port {dpid}:{port_no} has {limits.groups_per_port} groups, its limit")
        if not core.gate.has_room(group):
            raise _Refusal("group", f"{limits.groups} groups have a tree, as many as the policy allows")

    def _check_port(self, dpid: int, port_no: int) -> None:
        core = self._core
        if core.fabric.ofp_version(dpid) is None:
            raise _Refusal("dpid", f"there is no switch {dpid}")
        if port_no not in core.topology.ports(dpid):
            raise _Refusal("port_no", f"switch {dpid} has no port {port_no}")
        if core.fabric.role(dpid, port_no) is PortRole.TRUNK:
            raise _Refusal("port_no", f"port {dpid}:{port_no} leads to another switch")

    def _add(self, place: Place, group: bytes) -> None:
        self._static.setdefault(place, {})[group] = None
        self._static_ports.setdefault(group, set()).add(place)

    def _serve(self, dpid: int, port_no: int, group: bytes, now: float) -> None:
        core = self._core
        self.served.add((dpid, port_no, group))
        core.perform(core.plane.interest_changed(dpid, port_no, group, ANY_SOURCE, now))
        core.group_changed(group, now)

    def _end(self, dpid: int, port_no: int, group: bytes, now: float) -> None:
        """Leave a port with what its hosts want."""
        core = self._core
        if (dpid, port_no, group) not in self.served:
            return
        self.served.discard((dpid, port_no, group))
        interest = core.membership.interest(dpid, port_no, group)
        core.perform(core.plane.interest_changed(dpid, port_no, group, interest, now))
        core.group_changed(group, now)

    def _set_router_port(self, event: RouterPortSet, now: float) -> Record:
        dpid, port_no, family, present = event
        declared = self._core.membership.declared_router_ports
        if present:
            self._check_port(dpid, port_no)
            if len(declared) >= SETTINGS_BOUND:
                raise _Refusal("port_no", f"there are {SETTINGS_BOUND} router ports, as many as are kept")
        elif event[:3] not in declared:
            raise _Refusal("port_no", f"port {dpid}:{port_no} was not declared a router port of family {family}")
        self._core.router_port_declared(dpid, port_no, family, present, now)
        known = self._core.membership.router_ports.get(dpid, port_no, family) is not None
        text = f"port {dpid}:{port_no} is {'declared' if present else 'no more'} a router port of IPv{family}"
        state = State.RAISED if present else State.CLEARED
        self._tell(now, "router-port", text, state, dpid=dpid, port_no=port_no)
        place = {"dpid": dpid, "port_no": port_no, "family": family}
        return {**place, "present": present, "router": known}

    def _set_drain(self, event: SwitchDrainSet, now: float) -> Record:
        dpid, drained = event
        topology = self._core.topology
        if drained and self._core.fabric.ofp_version(dpid) is None:
            raise _Refusal("dpid", f"there is no switch {dpid}")
        if drained and len(topology.drained) >= SETTINGS_BOUND:
            raise _Refusal("dpid", f"{SETTINGS_BOUND} switches are drained, as many as are kept")
        if not drained and dpid not in topology.drained:
            raise _Refusal("dpid", f"switch {dpid} is not drained")
        topology.set_drained(dpid, drained, now)
        self._core.sections.switch_changed(dpid)
        transit, local = self.passing(dpid)
        answer: Record = {"dpid": dpid, "drained": drained}
        text = f"switch {dpid} is {'drained' if drained else 'in use again'}"
        if drained:
            answer |= {"transit_count": len(transit), "transit": transit[:LISTED], "local_count": local}
            text += f": {len(transit)} groups pass it that nothing else connects, {local} have hosts there"
        self._tell(now, "switch-drain", text, State.RAISED if drained else State.CLEARED, dpid=dpid)
        return answer

    def passing(self, dpid: int) -> tuple[list[str], int]:
        """Return the groups whose trees lead through a switch, and how many trees have a terminal there."""
        transit, local = [], 0
        for tree in self._core.forest:
            local += dpid in tree.terminals
            if len(tree.adjacent.get(dpid, ())) > 1:
                transit.append(tree.key)
        return [format_ip(key) for key in sorted(transit)], local  # type: ignore[type-var]

    def _rebuild(self, event: GroupRebuildAsked, now: float) -> Record:
        core, name = self._core, format_ip(event.group)
        tree = core.forest.tree(event.group)
        if tree is None:
            raise _Refusal("group", f"{name} has no tree")
        before = tree.size
        change = core.forest.rebuild(event.group)
        core.trees_changed([change], now)
        core.sections.events.add(now, "group-rebuild", f"the tree of {name} was built anew", group=name)
        return {"group": name, "changed": not change.empty, "links_before": before, "links": tree.size}

    def _reset_counters(self, _event: CountersResetAsked, now: float) -> Record:
        core = self._core
        for counters in (core.counters, core.membership.counters, core.senders.counters, core.installer.counters):
            counters.clear()
        core.admission.reset()
        core.sections.events.add(now, "counters-reset", "all counters begin anew")
        return {"reset": True}


def read_settings(record: Mapping[str, Any]) -> OperatorSettings:
    """Return what a record of the journal says; KeyError, TypeError or ValueError where it cannot be read."""
    return OperatorSettings(
        tuple(_static_members(record["static_members"])),
        tuple((int(dpid), int(port_no), _family(family)) for dpid, port_no, family in record["router_ports"]),
        tuple(map(int, record["drained"])),
    )


def _static_members(records: Iterable[Any]) -> Iterator[tuple[int, int, bytes]]:
    for dpid, port_no, text in records:
        group = parse_ip(text)
        if not is_multicast_ip(group):
            raise ValueError("no group")
        yield int(dpid), int(port_no), group


def _family(value: Any) -> int:
    if value not in (4, 6):
        raise ValueError("no family")
    return int(value)
