"""What does not fit together in a running core, apart from flow entries: settings for what is gone, and leftovers.

Nothing is changed here. The search goes step by step, between which anything may happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller.config.policy import Policy
from controller.config.terms import SwitchPort
from controller.membership.core import MembershipCore
from controller.multicast.fabric_names import FabricNames
from controller.multicast.groups import GroupPlane
from controller.multicast.legs import MemberLegs
from controller.multicast.operator_labels import OperatorLabels
from controller.multicast.settings import LoadedPolicy
from controller.multicast.static_members import StaticMembers
from controller.multicast.switches import Switches
from controller.snapshot.names import Names
from controller.trees.islands import group_of
from controller.wire.addresses import format_ip, format_mac, is_link_scope_group
from topology.live import LiveFabric

Finding = dict[str, Any]


class Findings:
    """Searches what it is given, and tells what does not fit together."""

    def __init__(
        self,
        names: Names,
        in_force: LoadedPolicy,
        fabric: LiveFabric,
        fabric_names: FabricNames,
        switches: Switches,
        plane: GroupPlane,
        membership: MembershipCore,
        static: StaticMembers,
        labels: OperatorLabels,
        legs: MemberLegs,
    ) -> None:
        self._names = names
        self._in_force = in_force
        self._fabric = fabric
        self._fabric_names = fabric_names
        self._switches = switches
        self._plane = plane
        self._membership = membership
        self._static = static
        self._labels = labels
        self._legs = legs

    def search(self) -> Iterator[Finding | None]:
        """Yield what does not fit together, and None at each step that found nothing.

        A finding has `kind`, `text`, and `dpid`, `port_no`, `group` where it is about one.
        """
        yield from self._settings()
        yield from self._vlans()
        yield from self._fabrics()
        yield from self._link_aggregations()
        yield from self._members()
        yield from self._trees()

    def _settings(self) -> Iterator[Finding | None]:
        """Look at what settings of the policy, and of operators, name."""
        named: list[tuple[str, int, int | None]] = [
            (f"{what} in the policy file", dpid, port_no) for what, dpid, port_no in _named(self._in_force.policy)
        ]
        named += [("A label of an operator", each.dpid, each.port_no or None) for each in self._labels.by_operator()]
        for what, dpid, port_no in dict.fromkeys(named):
            if dpid not in self._switches.connected:
                text = f"{what} names switch {dpid}, which is not connected."
                yield finding(self._names, "setting-without-switch", text, dpid, port_no)
            elif port_no is not None and port_no not in self._switches.ports(dpid):
                text = f"{what} names port {dpid}:{port_no}, which the switch has not."
                yield finding(self._names, "setting-without-port", text, dpid, port_no)
            else:
                yield None
        static = self._static
        for dpid, port_no, group in list(static.by_operator()):
            state = static.state((dpid, port_no, group))
            text = f"An operator gives port {dpid}:{port_no} the group {format_ip(group)}, which waits"
            text += f": {state['waiting_for']}."
            yield None if state["served"] else finding(self._names, "static-member-waits", text, dpid, port_no, group)

    def _vlans(self) -> Iterator[Finding | None]:
        """Look at ports that the policy puts into VLANs: whether they lead to another switch, and carry all."""
        for entry in self._in_force.policy.vlans.entries:
            for dpid, port_no in entry.ports:
                cable = self._fabric.cable(dpid, port_no)
                if cable is None:
                    yield None
                    continue
                is_first = (cable.dpid_a, cable.port_a) == (dpid, port_no)
                far = f"{cable.dpid_b}:{cable.port_b}" if is_first else f"{cable.dpid_a}:{cable.port_a}"
                text = (
                    f"vlans on line {entry.line} of the policy file names port {dpid}:{port_no}, which is cabled to "
                )
                text += (
                    f"port {far} of the fabric: between switches every VLAN has its tag, and the entry counts for "
                )
                text += "nothing."
                yield finding(self._names, "vlan-port-between-switches", text, dpid, port_no)

    def _fabrics(self) -> Iterator[Finding | None]:
        """Look at names of fabrics: whether two are of one."""
        for name, other in list(self._fabric_names.idle_names()):
            line = next(named.line for named in self._in_force.policy.fabrics if named.name == other)
            text = f"The fabric {other} on line {line} of the policy file is the fabric {name}: links join them."
            yield finding(self._names, "fabric-named-twice", text)

    def _link_aggregations(self) -> Iterator[Finding | None]:
        """Look at link aggregation groups: whether their legs reach each other."""
        for named in self._in_force.policy.link_aggregations:
            parts = self._plane.forest.components()
            seen = {leg: parts[leg.dpid] for leg in named.ports if leg.dpid in parts}
            if len(set(seen.values())) < 2:
                yield None
                continue
            first = next(iter(seen))
            other = next(leg for leg, part in seen.items() if part != seen[first])
            text = f"The legs {first} and {other} of the link aggregation group {named.name} are in parts of the "
            text += "fabric that no link joins: those in one of them alone are used."
            yield finding(self._names, "aggregation-in-two-fabrics", text, *first)

    def _members(self) -> Iterator[Finding | None]:
        """Look at ports with members: whether they lead to hosts, and whether trees serve them."""
        for dpid, port_no in list(self._membership.ports):
            port = self._membership.ports.get((dpid, port_no))
            if port is None or dpid not in self._switches.connected:
                continue
            if not self._switches.leads_to_hosts((dpid, port_no)):
                text = f"Port {dpid}:{port_no} has members of {len(port.groups)} groups, but leads to no hosts."
                yield finding(self._names, "members-without-port", text, dpid, port_no) if port.groups else None
                continue
            for group in list(port.groups):
                if is_link_scope_group(group) or self._membership.interest(dpid, port_no, group) is None:
                    yield None
                elif not self._legs.serves((dpid, port_no), group):
                    text = f"Port {dpid}:{port_no} has an admitted member of {format_ip(group)}, whom no tree serves."
                    yield finding(self._names, "member-without-tree", text, dpid, port_no, group)
                else:
                    yield None

    def _trees(self) -> Iterator[Finding | None]:
        """Look at groups and trees: whether they are for anybody, and whether senders are where hosts are."""
        for tree in list(self._plane.forest):
            address: bytes = group_of(tree.key)  # type: ignore[assignment]
            if address not in self._plane.groups and address in self._plane.forest:
                text = f"{format_ip(address)} has a tree for nobody."
                yield finding(self._names, "tree-without-group", text, group=address)
        for address in list(self._plane.groups):
            group = self._plane.groups.get(address)
            if group is None:
                continue
            if not group.held and not group.senders and not any(group.interests.values()):
                text = f"{format_ip(address)} is kept, but has neither members nor senders."
                yield finding(self._names, "group-without-reason", text, group=address)
            for key in list(group.senders):
                place = (key.dpid, key.port_no)
                if key.dpid in self._switches.connected and not self._switches.leads_to_hosts(place):
                    sender = f"{format_mac(key.mac)} at port {key.dpid}:{key.port_no}"
                    text = f"{sender} is a sender of {format_ip(address)}, but the port leads to no hosts."
                    yield finding(self._names, "sender-without-port", text, *place, address)
            yield None


def _named(policy: Policy) -> Iterator[tuple[str, int, int | None]]:
    """Yield what of a policy names which switch or port."""
    for named in policy.switches:
        yield f"The name {named.name!r}", named.dpid, None
        for port_no, name in named.ports:
            yield f"The name {name!r} of a port of {named.name!r}", named.dpid, port_no
    for labelled in policy.labels:
        yield "A label", labelled.dpid, labelled.port_no
    for member in policy.static_members:
        yield f"static_members on line {member.line}", *member.port
    for group in policy.link_aggregations:
        yield from ((f"The link aggregation group {group.name!r}", *leg) for leg in group.ports)
    for fabric in policy.fabrics:
        yield from ((f"The fabric {fabric.name!r}", dpid, None) for dpid in fabric.switches)
    for entry in policy.vlans.entries:
        what = f"vlans on line {entry.line}"
        yield from ((what, *port) for port in entry.ports)
        yield from ((what, dpid, None) for dpid in entry.switches)
    multicast = policy.multicast
    for setting, ports in (
        ("multicast.router_ports.static", multicast.router_ports.static),
        ("multicast.router_ports.learn", multicast.router_ports.learn),
        ("multicast.router_ports.on_request", multicast.router_ports.on_request),
        ("multicast.router_ports.on_join", multicast.router_ports.on_join),
        ("multicast.proxy.router_ports", multicast.proxy.router_ports),
        ("multicast.querier.accept_others", multicast.querier.accept_others),
        ("multicast.fast_leave", multicast.fast_leave),
    ):
        if not isinstance(ports, bool):
            yield from ((setting, *port) for port in sorted(ports))
    hosts = [(f"The tenant {tenant.name!r}", tenant.hosts) for tenant in policy.tenants]
    hosts += [(f"The rule {rule.name!r}", rule.hosts) for rule in policy.rules]
    for what, terms in hosts:
        yield from ((what, *term) for term in terms if isinstance(term, SwitchPort))


def finding(
    names: Names,
    kind: str,
    text: str,
    dpid: int | None = None,
    port_no: int | None = None,
    group: bytes | None = None,
) -> Finding:
    """Return a finding, with what switches are called."""
    place = {"dpid": dpid, "port_no": port_no, "group": None if group is None else format_ip(group)}
    return {
        "kind": kind,
        "text": names.spoken(text),
        **{name: value for name, value in place.items() if value is not None},
    }
