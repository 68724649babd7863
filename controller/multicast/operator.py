"""What operators set beside the policy: static members, router ports and drained switches; and what they ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from controller.datapath.lanes import Urgency
from controller.kernel.domains import domain_of
from controller.membership.tables import GroupKind, group_kind
from controller.multicast.alias_control import AliasControl
from controller.multicast.callbacks import Perform, PolicyInForce
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.events import (
    AliasAsked,
    CountersResetAsked,
    GroupPinSet,
    GroupRebuildAsked,
    GroupSwapAsked,
    RouterPortSet,
    StaticMemberSet,
    SwitchDrainSet,
    SwitchForgetAsked,
)
from controller.multicast.fabric import FabricFollower
from controller.multicast.gate import Gate
from controller.multicast.groups import GroupPlane
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.memberships import Memberships
from controller.multicast.operator_answers import SettingRefused, answer_operator
from controller.multicast.operator_settings import SETTINGS_BOUND, OperatorSetting, OperatorSettings
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.registered import RegisteredGroups
from controller.multicast.sections import MulticastSections
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers
from controller.multicast.swapping import Swapping
from controller.multicast.switches import Switches
from controller.multicast.tree_changes import TreeChanges
from controller.rules.installer import Installer
from controller.snapshot.events import State
from controller.trees.islands import group_of
from controller.wire.addresses import format_ip
from topology.events import PortRole
from topology.live import LiveFabric

LISTED = 1000
"""Groups that an answer lists by name."""

Record = dict[str, Any]


class Operator:
    """Carries out what operators ask of a core, and keeps what they set.

    A static member stands for hosts that want every source of a group: it bounds what its port may leave, and gives
    way to nothing that hosts or the policy say.
    """

    def __init__(
        self,
        counters: Counter[str],
        policy: PolicyInForce,
        fabric: LiveFabric,
        switches: Switches,
        topology: FabricFollower,
        plane: GroupPlane,
        aliases: AliasControl,
        swapping: Swapping,
        registered: RegisteredGroups,
        gate: Gate,
        memberships: Memberships,
        static: StaticMembers,
        senders: SenderTable,
        installer: Installer,
        following_members: MembershipEffects,
        trees: TreeChanges,
        pending_writes: PendingWrites,
        sections: MulticastSections,
        feed: ChangeFeed,
        perform: Perform,
    ) -> None:
        self._counters = counters
        self._policy = policy
        self._fabric = fabric
        self._switches = switches
        self._topology = topology
        self._plane = plane
        self._aliases = aliases
        self._swapping = swapping
        self._registered = registered
        self._gate = gate
        self._memberships = memberships
        self.static = static
        self._senders = senders
        self._installer = installer
        self._following_members = following_members
        self._trees = trees
        self._pending_writes = pending_writes
        self._sections = sections
        self._feed = feed
        self._perform = perform
        self.in_maintenance: Callable[[int], bool] = lambda _dpid: False
        """Tells whether a campaign wants a switch drained; set once there are campaigns."""
        self._actions: dict[type, Callable[[Any, float], Record]] = {
            StaticMemberSet: self._set_static_member,
            RouterPortSet: self._set_router_port,
            SwitchDrainSet: self._set_drain,
            SwitchForgetAsked: self._forget_switch,
            GroupRebuildAsked: self._rebuild,
            AliasAsked: self._alias,
            GroupSwapAsked: self._swap,
            GroupPinSet: self._pin,
            CountersResetAsked: self._reset_counters,
        }
        self.handlers = dict.fromkeys(self._actions, self._handle)

    # The log

    def settings(self) -> Iterator[OperatorSetting]:
        """Yield what is set, for the log."""
        for member in self.static.by_operator():
            yield OperatorSetting("static-member", *member)
        for router_port in sorted(self._memberships.own.declared_router_ports):
            yield OperatorSetting("router-port", *router_port)
        for dpid in sorted(self._switches.drained):
            yield OperatorSetting("drain", dpid)
        for group in sorted(self._swapping.pinned):
            yield OperatorSetting("pin", 0, 0, group)

    def is_set(self, setting: OperatorSetting) -> bool:
        """Tell whether something is set."""
        subject, dpid, port_no, what = setting
        if subject == "drain":
            return dpid in self._switches.drained
        if isinstance(what, bytes):
            if subject == "pin":
                return what in self._swapping.pinned
            return self.static.is_by_operator((dpid, port_no, what))
        return (dpid, port_no, what) in self._memberships.own.declared_router_ports

    def restore(self, settings: OperatorSettings, now: float) -> None:
        """Take over what an earlier run was told, before its topology."""
        self.static.restore(settings.static_members)
        for key in settings.router_ports:
            self._memberships.own.declare_router_port(*key, True, now)
        for dpid in settings.drained:
            self._topology.set_drained(dpid, True, now)
        for group in settings.pinned:
            self._swapping.pin(group, True)

    # Actions

    def _handle(self, event: Any, now: float) -> None:
        answer_operator(self._feed.names, self._perform, lambda: self._actions[type(event)](event, now))

    def _tell(self, now: float, setting: OperatorSetting, kind: str, text: str, state: State, **place: Any) -> None:
        self._pending_writes.setting_changed(setting, now)
        self._feed.events.add(now, kind, text, state=state, **place)

    def _set_static_member(self, event: StaticMemberSet, now: float) -> Record:
        dpid, port_no = self._fabric.aggregations.home((event.dpid, event.port_no))
        group, present = event.group, event.present
        key, name, static = (dpid, port_no, group), format_ip(group), self.static
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
            raise SettingRefused("group", text)
        else:
            raise SettingRefused("group", f"{place} is no static member of {name}")
        answer: Record = {"group": name, "dpid": dpid, "port_no": port_no, "present": present or line is not None}
        answer |= static.state(key) if answer["present"] else {"served": False}
        if present and not answer["served"]:
            text += f", once it can: {answer['waiting_for']}"
        state = State.RAISED if present else State.CLEARED
        setting = OperatorSetting("static-member", *key)
        self._tell(now, setting, setting.subject, f"{text}.", state, dpid=dpid, port_no=port_no, group=name)
        return answer

    def _check_static(self, dpid: int, port_no: int, group: bytes) -> None:
        """Refuse a static member that cannot be served, or that there is no room for."""
        name = format_ip(group)
        kind = group_kind(group)
        if kind is GroupKind.IGNORED or kind is GroupKind.LINK_SCOPE:
            raise SettingRefused("group", f"{name} is link scope: every port gets it")
        if kind is GroupKind.SSM and self._policy().multicast.enforce_ssm:
            raise SettingRefused(
                "group", f"{name} is for source-specific multicast, and a static member has no source"
            )
        if self.static.operator_count >= SETTINGS_BOUND:
            raise SettingRefused("group", f"there are {SETTINGS_BOUND} static members, as many as are kept")
        if self._fabric.ofp_version(dpid) is None and self.static.is_known(dpid):
            return
        self._check_port(dpid, port_no)
        limits = self._policy().limits
        heard = self._memberships.of(domain_of(group)).group_count(dpid, port_no)
        if self.static.count_at(dpid, port_no) + heard >= limits.groups_per_port:
            raise SettingRefused("port_no", f"port {dpid}:{port_no} has {limits.groups_per_port} groups, its limit")
        if not self._gate.room.has(self._registered.carrier(group)):
            raise SettingRefused("group", f"{limits.groups} groups have a tree, as many as the policy allows")

    def _check_port(self, dpid: int, port_no: int) -> None:
        if self._fabric.ofp_version(dpid) is None:
            hint = "it is not connected, and neither switches nor topology of the policy file name it"
            raise SettingRefused("dpid", f"there is no switch {dpid}: {hint}")
        if port_no not in self._switches.ports(dpid):
            raise SettingRefused("port_no", f"switch {dpid} has no port {port_no}")
        if self._fabric.role(dpid, port_no) is PortRole.TRUNK:
            raise SettingRefused("port_no", f"port {dpid}:{port_no} leads to another switch")

    def _set_router_port(self, event: RouterPortSet, now: float) -> Record:
        dpid, port_no, family, present = event
        if present and (dpid, port_no) in self._fabric.aggregations.homes:
            raise SettingRefused("port_no", f"port {dpid}:{port_no} is a leg of a link aggregation group")
        declared = self._memberships.own.declared_router_ports
        if present:
            self._check_port(dpid, port_no)
            if len(declared) >= SETTINGS_BOUND:
                raise SettingRefused("port_no", f"there are {SETTINGS_BOUND} router ports, as many as are kept")
        elif event[:3] not in declared:
            raise SettingRefused(
                "port_no", f"port {dpid}:{port_no} was not declared a router port of family {family}"
            )
        effects = self._memberships.own.declare_router_port(dpid, port_no, family, present, now)
        self._following_members.apply(effects, now)
        self._feed.router_port_changed(dpid, port_no, family)
        known = self._memberships.own.router_ports.get(dpid, port_no, family) is not None
        text = f"Port {dpid}:{port_no} is declared a router port of IPv{family}{'' if present else ' no longer'}."
        state = State.RAISED if present else State.CLEARED
        self._tell(
            now, OperatorSetting("router-port", *event[:3]), "router-port", text, state, dpid=dpid, port_no=port_no
        )
        place = {"dpid": dpid, "port_no": port_no, "family": family}
        return {**place, "present": present, "router": known}

    def _set_drain(self, event: SwitchDrainSet, now: float) -> Record:
        dpid, drained = event
        switches = self._switches
        if drained and self._fabric.ofp_version(dpid) is None:
            raise SettingRefused("dpid", f"there is no switch {dpid}")
        if drained and len(switches.drained) >= SETTINGS_BOUND:
            raise SettingRefused("dpid", f"{SETTINGS_BOUND} switches are drained, as many as are kept")
        if not drained and dpid not in switches.drained:
            raise SettingRefused("dpid", f"switch {dpid} is not drained")
        if not drained and self.in_maintenance(dpid):
            raise SettingRefused("dpid", f"switch {dpid} is in maintenance: skip or abort that first")
        return self.turn_drain(dpid, drained, now)

    def turn_drain(self, dpid: int, drained: bool, now: float) -> Record:
        """Drain a switch, or no longer; return what is said of it."""
        self._topology.set_drained(dpid, drained, now)
        self._sections.switch_changed(dpid)
        transit, local = self.passing(dpid)
        answer: Record = {"dpid": dpid, "drained": drained}
        text = f"Switch {dpid} is in use again."
        if drained:
            answer |= {"transit_count": len(transit), "transit": transit[:LISTED], "local_count": local}
            pass_it = f"{len(transit)} groups still pass it, for nothing else connects them"
            text = f"Switch {dpid} is drained: {pass_it}, and {local} have hosts there."
        state = State.RAISED if drained else State.CLEARED
        self._tell(now, OperatorSetting("drain", dpid), "switch-drain", text, state, dpid=dpid)
        return answer

    def passing(self, dpid: int) -> tuple[list[str], int]:
        """Return the groups whose trees lead through a switch, and how many trees have a terminal there."""
        transit, local = [], 0
        for tree in self._plane.forest:
            local += dpid in tree.terminals and tree.key == group_of(tree.key)
            if len(tree.neighbours(dpid)) > 1:
                transit.append(group_of(tree.key))
        return [format_ip(key) for key in sorted(transit)], local  # type: ignore[type-var]

    def _forget_switch(self, event: SwitchForgetAsked, now: float) -> Record:
        dpid = event.dpid
        if self._fabric.ofp_version(dpid) is not None or dpid in self._switches.connected:
            raise SettingRefused(
                "dpid", f"switch {dpid} is part of the fabric; only one that is gone can be forgotten"
            )
        if not self._sections.forget_switch(dpid):
            raise SettingRefused("dpid", f"there is no switch {dpid}")
        return {"dpid": dpid, "forgotten": True}

    def _rebuild(self, event: GroupRebuildAsked, now: float) -> Record:
        name = format_ip(event.group)
        group = self._plane.groups.get(event.group)
        keys = [] if group is None else [tree.key for tree in group.all_trees()]
        trees = [tree for tree in map(self._plane.forest.tree, keys) if tree is not None]
        if not trees:
            raise SettingRefused("group", f"{name} has no tree")
        before = sum(tree.size for tree in trees)
        changes = [self._plane.forest.rebuild(tree.key) for tree in trees]
        self._trees.follow(changes, now, Urgency.BULK)
        self._feed.events.add(now, "group-rebuild", f"The tree of {name} was built anew.", group=name)
        after = sum(tree.size for tree in trees)
        is_changed = any(not change.empty for change in changes)
        return {"group": name, "changed": is_changed, "links_before": before, "links": after}

    def _alias(self, event: AliasAsked, now: float) -> Record:
        name = format_ip(event.group)
        fault = self._aliases.ask(event.group, event.present, now)
        if fault is not None:
            raise SettingRefused("group", f"{name}: {fault}")
        what = "one more alias" if event.present else "one alias less"
        self._feed.events.add(now, "alias-asked", f"An operator gives {name} {what}.", group=name)
        return {"group": name, "aliases": self._plane.aliases.wanted(event.group)}

    def _swap(self, event: GroupSwapAsked, now: float) -> Record:
        name, swapping = format_ip(event.group), self._swapping
        effects, fault = swapping.bring_in(event.group, now) if event.is_in else swapping.take_out(event.group, now)
        self._perform(effects)
        if fault is not None:
            raise SettingRefused("group", f"{name}: {fault}")
        place = "into" if event.is_in else "out of"
        self._feed.events.add(now, "group-swapped", f"An operator has {name} go {place} the flow tables.", group=name)
        return {"group": name, "out": not event.is_in}

    def _pin(self, event: GroupPinSet, now: float) -> Record:
        name, group, pinned = format_ip(event.group), event.group, self._swapping.pinned
        if event.present and group not in pinned and len(pinned) >= SETTINGS_BOUND:
            raise SettingRefused("group", f"{SETTINGS_BOUND} groups are pinned, as many as are kept")
        if not event.present and group not in pinned:
            raise SettingRefused("group", f"{name} is not pinned")
        self._swapping.pin(group, event.present)
        text = f"{name} stays in the flow tables whatever it sends{'' if event.present else ' no longer'}."
        state = State.RAISED if event.present else State.CLEARED
        self._tell(now, OperatorSetting("pin", 0, 0, group), "group-pinned", text, state, group=name)
        return {"group": name, "pinned": event.present}

    def _reset_counters(self, _event: CountersResetAsked, now: float) -> Record:
        memberships = (membership.counters for _, membership in self._memberships.all())
        groups = (self._plane.aliases.counters, self._swapping.counters)
        for counters in (self._counters, self._senders.counters, *groups, self._installer.counters, *memberships):
            counters.clear()
        self._gate.admission.reset()
        self._sections.counters_reset(now)
        self._feed.events.add(now, "counters-reset", "All counters begin anew.")
        return {"reset": True}
