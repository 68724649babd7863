"""What operators set beside the policy: static members, router ports and drained switches; and what they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from controller.datapath.lanes import Urgency
from controller.effects import ActionRefused, ActionTaken
from controller.membership.tables import GroupKind, group_kind
from controller.multicast.events import (
    CountersResetAsked,
    GroupRebuildAsked,
    RouterPortSet,
    StaticMemberSet,
    SwitchDrainSet,
    SwitchForgetAsked,
)
from controller.multicast.static_members import StaticMembers
from controller.snapshot.events import State
from controller.wire.addresses import format_ip, is_multicast_ip, parse_ip
from topology.events import PortRole

if TYPE_CHECKING:
    from controller.multicast.core import MulticastCore

SETTINGS_BOUND = 16384
"""Static members of operators, and likewise router ports and drained switches, that are kept; others are refused."""

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
    way to nothing that hosts or the policy say.
    """

    def __init__(self, core: MulticastCore) -> None:
        self.static = StaticMembers(core)
        self._core = core
        self._actions: dict[type, Callable[[Any, float], Record]] = {
            StaticMemberSet: self._set_static_member,
            RouterPortSet: self._set_router_port,
            SwitchDrainSet: self._set_drain,
            SwitchForgetAsked: self._forget_switch,
            GroupRebuildAsked: self._rebuild,
            CountersResetAsked: self._reset_counters,
        }
        self.handlers = dict.fromkeys(self._actions, self._handle)

    # The journal

    def record(self) -> Record:
        """Return what is set as a record of the journal."""
        return {
            "kind": "operator",
            "static_members": [
                [dpid, port_no, format_ip(group)] for dpid, port_no, group in self.static.by_operator()
            ],
            "router_ports": sorted(map(list, self._core.membership.declared_router_ports)),
            "drained": sorted(self._core.topology.drained),
        }

    def restore(self, settings: OperatorSettings, now: float) -> None:
        """Take over what an earlier run was told, before its topology."""
        self.static.restore(settings.static_members)
        for key in settings.router_ports:
            self._core.membership.declare_router_port(*key, True, now)
        for dpid in settings.drained:
            self._core.topology.set_drained(dpid, True, now)

    # Actions

    def _handle(self, event: Any, now: float) -> None:
        try:
            document = self._actions[type(event)](event, now)
        except _Refusal as refusal:
            self._core.perform([ActionRefused(refusal.field, self._core.sections.names.spoken(str(refusal)))])
        else:
            self._core.perform([ActionTaken(document)])

    def _tell(self, now: float, kind: str, text: str, state: State, **place: Any) -> None:
        self._core.journal.operator_touched(now)
        self._core.sections.events.add(now, kind, text, state=state, **place)

    def _set_static_member(self, event: StaticMemberSet, now: float) -> Record:
        dpid, port_no, group, present = event
        key, name, static = event[:3], format_ip(group), self.static
        place, line = f"port {dpid}:{port_no}", static.policy_line(key)
        set_there = f"static_members on line {line} of the policy file"
        if present:
            if not static.is_by_operator(key):
                if line is None:
                    self._check_static(dpid, port_no, group)
                static.add(key, now)
            text = f"P{place[1:]} is a static member of {name}: it receives the group whatever its hosts say"
        elif static.is_by_operator(key):
            static.remove(key, now)
            text = f"P{place[1:]} is a static member of {name} no longer: its hosts decide"
            if line is not None:
                text = f"P{place[1:]} is a static member of {name} by {set_there} alone, no longer by an operator"
        elif line is not None:
            text = f"{place} is a static member of {name} by {set_there}: take it out there, and reload the policy"
            raise _Refusal("group", text)
        else:
            raise _Refusal("group", f"{place} is no static member of {name}")
        answer: Record = {"group": name, "dpid": dpid, "port_no": port_no, "present": present or line is not None}
        answer |= static.state(key) if answer["present"] else {"served": False}
        if present and not answer["served"]:
            text += f", once it can: {answer['waiting_for']}"
        state = State.RAISED if present else State.CLEARED
        self._tell(now, "static-member", f"{text}.", state, dpid=dpid, port_no=port_no, group=name)
        return answer

    def _check_static(self, dpid: int, port_no: int, group: bytes) -> None:
        """Refuse a static member that cannot be served, or that there is no room for."""
        core, name = self._core, format_ip(group)
        kind = group_kind(group)
        if kind is GroupKind.IGNORED or kind is GroupKind.LINK_SCOPE:
            raise _Refusal("group", f"{name} is link scope: every port gets it")
        if kind is GroupKind.SSM and core.policy.multicast.enforce_ssm:
            raise _Refusal("group", f"{name} is for source-specific multicast, and a static member has no source")
        if self.static.operator_count >= SETTINGS_BOUND:
            raise _Refusal("group", f"there are {SETTINGS_BOUND} static members, as many as are kept")
        if core.fabric.ofp_version(dpid) is None and self.static.is_known(dpid):
            return
        self._check_port(dpid, port_no)
        limits = core.policy.limits
        if self.static.count_at(dpid, port_no) + core.membership.group_count(dpid, port_no) >= limits.groups_per_port:
            raise _Refusal("port_no", f"port {dpid}:{port_no} has {limits.groups_per_port} groups, its limit")
        if not core.gate.room.has(group):
            raise _Refusal("group", f"{limits.groups} groups have a tree, as many as the policy allows")

    def _check_port(self, dpid: int, port_no: int) -> None:
        core = self._core
        if core.fabric.ofp_version(dpid) is None:
            hint = "it is not connected, and neither switches nor topology of the policy file name it"
            raise _Refusal("dpid", f"there is no switch {dpid}: {hint}")
        if port_no not in core.topology.ports(dpid):
            raise _Refusal("port_no", f"switch {dpid} has no port {port_no}")
        if core.fabric.role(dpid, port_no) is PortRole.TRUNK:
            raise _Refusal("port_no", f"port {dpid}:{port_no} leads to another switch")

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
        text = f"Port {dpid}:{port_no} is declared a router port of IPv{family}{'' if present else ' no longer'}."
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
        text = f"Switch {dpid} is in use again."
        if drained:
            answer |= {"transit_count": len(transit), "transit": transit[:LISTED], "local_count": local}
            pass_it = f"{len(transit)} groups still pass it, for nothing else connects them"
            text = f"Switch {dpid} is drained: {pass_it}, and {local} have hosts there."
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

    def _forget_switch(self, event: SwitchForgetAsked, now: float) -> Record:
        dpid, core = event.dpid, self._core
        if core.fabric.ofp_version(dpid) is not None or dpid in core.topology.connected:
            raise _Refusal("dpid", f"switch {dpid} is part of the fabric; only one that is gone can be forgotten")
        if not core.sections.forget_switch(dpid):
            raise _Refusal("dpid", f"there is no switch {dpid}")
        text = f"Switch {dpid} is forgotten: its absence counts as intended."
        core.sections.events.add(now, "switch-down", text, state=State.CLEARED, dpid=dpid)
        return {"dpid": dpid, "forgotten": True}

    def _rebuild(self, event: GroupRebuildAsked, now: float) -> Record:
        core, name = self._core, format_ip(event.group)
        tree = core.forest.tree(event.group)
        if tree is None:
            raise _Refusal("group", f"{name} has no tree")
        before = tree.size
        change = core.forest.rebuild(event.group)
        core.trees_changed([change], now, Urgency.BULK)
        core.sections.events.add(now, "group-rebuild", f"The tree of {name} was built anew.", group=name)
        return {"group": name, "changed": not change.empty, "links_before": before, "links": tree.size}

    def _reset_counters(self, _event: CountersResetAsked, now: float) -> Record:
        core = self._core
        for counters in (core.counters, core.membership.counters, core.senders.counters, core.installer.counters):
            counters.clear()
        core.admission.reset()
        core.sections.events.add(now, "counters-reset", "All counters begin anew.")
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
