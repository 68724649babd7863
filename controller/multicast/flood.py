"""Entries every switch holds whatever groups exist: punts, and link-scope groups over a spanning tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from controller.datapath.lanes import Urgency
from controller.effects import Edit, Effect, Notice, Put, Remove
from controller.rules.compile import ChannelDuty, RuleSet, Source, channel_duties, common_outputs
from controller.rules.cookies import cookie_of
from controller.rules.installer import Installer
from controller.rules.model import OFPP_CONTROLLER, Action, Match, Output, Rule, RuleKey
from controller.rules.pipeline import (
    ADMIT,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    IPPROTO_ICMPV6,
    IPPROTO_IGMP,
    IPPROTO_PIM,
    MLD_TYPES,
    MULTICAST_TAG,
    OPENFLOW_1_0,
    PRIORITY_LINK_SCOPE,
    PRIORITY_LINK_SCOPE_GROUP,
    PRIORITY_MEMBERSHIP,
    PRIORITY_PIM,
    PRIORITY_UNKNOWN_SENDER,
    SENDER_COOKIE_BIT,
)
from controller.wire.addresses import (
    ALL_PIM_ROUTERS_V4,
    ALL_PIM_ROUTERS_V6,
    SOLICITED_NODE_PREFIX,
    format_ip,
    parse_ip,
)
from topology.graph import Graph, NodeId, holds_cycle

LINK_SCOPE_GROUPS_BOUND = 64
"""Link-scope IPv6 groups that get entries of their own; further ones stay flooded, which is always correct."""

_LINK_SCOPE_V4 = (ETH_TYPE_IPV4, parse_ip("224.0.0.0"), 24)
_LINK_SCOPE_V6 = ((ETH_TYPE_IPV6, parse_ip("ff02::"), 16), (ETH_TYPE_IPV6, parse_ip("ff00::"), 15))
_ALL_V4 = (ETH_TYPE_IPV4, parse_ip("224.0.0.0"), 4)
_ALL_V6 = (ETH_TYPE_IPV6, parse_ip("ff00::"), 8)
_TO_CONTROLLER: tuple[Action, ...] = (Output(OFPP_CONTROLLER),)


def spanning_tree(graph: Graph) -> dict[int, set[int]]:
    """Return for each switch its neighbours on a breadth-first spanning forest, the lowest dpid first."""
    tree: dict[int, set[int]] = {}
    for root in graph.switches():
        if root in tree:
            continue
        tree[root] = set()  # type: ignore[index]
        queue = [root]
        for node in queue:
            for neighbour in graph.neighbours(node):
                if neighbour not in tree:
                    tree[neighbour] = {node}  # type: ignore[index,arg-type]
                    tree[node].add(neighbour)  # type: ignore[index,arg-type]
                    queue.append(neighbour)
    return tree


class SwitchPorts(NamedTuple):
    """What flooding has to know of a switch.

    `edges` are the ports that lead to hosts, `closed` those of which it is not known what they lead to, `routers` the
    (port, family) of those with a multicast router: PIM from elsewhere goes nowhere. A switch that is not `connected`
    may go on forwarding by what it holds.
    """

    ofp_version: int
    edges: tuple[int, ...]
    closed: tuple[int, ...]
    connected: bool = True
    routers: frozenset[tuple[int, int]] = frozenset()


class FloodPlane:
    """Keeps punts and link-scope flooding on every switch.

    A member of one group costs the entries of that group alone, a change of a switch's ports or of its place in the
    spanning tree those of that switch; the tree is computed where links changed.

    A change of the spanning tree never closes a loop on the way: where the new tree laid over whatever switches may
    still hold of former ones would hold a cycle, every switch first gives up what the new tree has not, and takes
    on what it adds when all have confirmed that. While a switch of the fabric that would have to give up something
    cannot be told, everything stays as it is.
    """

    def __init__(self, installer: Installer) -> None:
        self.brought_count = 0
        """How many switches the last `refresh` had to look at, those with edits under way too."""
        self._installer = installer
        self._cookie = cookie_of(MULTICAST_TAG, "link-scope") & ~SENDER_COOKIE_BIT
        self._wanted: dict[int, RuleSet] = {}
        self._rules: dict[int, RuleSet] = {}
        self._pending: set[int] = set()
        self._groups: dict[bytes, dict[int, set[int]]] = {}
        self._full = False
        self._links: set[frozenset[NodeId]] = set()
        self._former: set[frozenset[NodeId]] = set()
        self._unconfirmed: dict[int, set[RuleKey]] = {}
        self._trunk_ports: dict[int, list[int]] = {}
        self._without_ipv6: set[int] = set()
        self._graph: Graph | None = None
        self._graph_version = -1
        self._tree: dict[int, set[int]] = {}
        self._tree_links: set[frozenset[NodeId]] = set()
        self._applied: dict[int, set[int]] = {}
        self._ports: dict[int, SwitchPorts] = {}
        self._group_duties: dict[bytes, dict[int, tuple[ChannelDuty, ...]]] = {}
        self._stale: set[bytes] = set()

    def members(self, group: bytes) -> Iterator[tuple[int, int]]:
        """Yield (dpid, port) of the members of a link-scope group that has entries of its own."""
        for dpid, ports in self._groups.get(group, {}).items():
            for port_no in ports:
                yield dpid, port_no

    def groups(self) -> Iterable[bytes]:
        """Return the link-scope groups that have entries of their own."""
        return self._groups.keys()

    def interest_changed(
        self, dpid: int, port_no: int, group: bytes, wanted: bool, now: float
    ) -> tuple[list[Effect], bool]:
        """Follow a member of a link-scope group; True where only `refresh` can, which is to follow then.

        Groups of IPv4 and solicited-node groups are always flooded.
        """
        if len(group) == 4 or group.startswith(SOLICITED_NODE_PREFIX):
            return [], False
        if wanted:
            if group not in self._groups and len(self._groups) >= LINK_SCOPE_GROUPS_BOUND:
                if self._full:
                    return [], False
                self._full = True
                text = f"Link-scope group {format_ip(group)} and later ones are flooded: the limit is reached."
                return [Notice("link-scope-groups-bound", text, (("bound", LINK_SCOPE_GROUPS_BOUND),))], False
            ports = self._groups.setdefault(group, {}).setdefault(dpid, set())
            if port_no in ports:
                return [], False
            ports.add(port_no)
        else:
            switches = self._groups.get(group, {})
            if port_no not in switches.get(dpid, ()):
                return [], False
            switches[dpid].discard(port_no)
            if not switches[dpid]:
                del switches[dpid]
            if not switches:
                del self._groups[group]
                self._full = False
        if self._former or self._graph is None or self._is_outdated(self._graph):
            self._stale.add(group)
            return [], True
        return self._bring_group(group, self._graph, now), False

    def _is_outdated(self, graph: Graph) -> bool:
        return self._applied is not self._tree or graph.version != self._graph_version

    def _bring_group(self, group: bytes, graph: Graph, now: float) -> list[Effect]:
        """Bring the entries of one group to its members, over the tree that all switches go by."""
        edits: list[tuple[int, Edit]] = []
        for dpid, rule in self._regroup(group, graph):
            key = _group_key(group)
            if rule is None:
                self._rules[dpid].pop(key, None)
                edits.append((dpid, Remove(key)))
            else:
                self._rules[dpid][key] = rule
                edits.append((dpid, Put(rule)))
            self._unconfirmed.setdefault(dpid, set()).add(key)
        return self._installer.change([edits], now) if edits else []

    def _regroup(self, group: bytes, graph: Graph) -> Iterator[tuple[int, Rule | None]]:
        """Compute a group's entries anew, and yield the switches at which that changes what is wanted, and how."""
        key = _group_key(group)
        duties = self._duties(group, graph, self._tree) if group in self._groups else None
        if duties is None:
            self._group_duties.pop(group, None)
        else:
            self._group_duties[group] = duties
        for dpid, wanted in self._wanted.items():
            if self._ports[dpid].ofp_version == OPENFLOW_1_0:
                continue
            rule = self._group_rule(group, duties.get(dpid, ())) if duties is not None else None
            if wanted.get(key) == rule:
                continue
            if rule is None:
                del wanted[key]
            else:
                wanted[key] = rule
            yield dpid, rule

    def open_port(self, dpid: int, port_no: int, now: float) -> list[Effect]:
        """Let in at once what another switch sends: trees use the link next, whatever the spanning tree waits for."""
        rules = self._rules.get(dpid, {})
        closing = [key for key, rule in rules.items() if key.match.in_port == port_no and not rule.actions]
        if not closing:
            return []
        for key in closing:
            del rules[key]
        return self._installer.change([[(dpid, Remove(key)) for key in closing]], now)

    def close_port(self, dpid: int, port_no: int, now: float) -> list[Effect]:
        """Let nothing in at once by a port: the switch at its other end may go by entries of former trees."""
        known = self._ports.get(dpid)
        if known is None:
            return []
        own = self._switch_rules(SwitchPorts(known.ofp_version, (), (port_no,)), [])
        closing = {key: rule for key, rule in own.items() if key.match.in_port == port_no}
        self._rules.setdefault(dpid, {}).update(closing)
        return self._installer.change([[(dpid, Put(rule)) for rule in closing.values()]], now)

    def refresh(
        self, graph: Graph, switches: Mapping[int, SwitchPorts], now: float, touched: Iterable[int] | None = None
    ) -> list[Effect]:
        """Bring the switches to the entries that follow from the graph, their ports and the members known.

        Parameters
        ----------
        graph
            The switches and links that flooding may use.
        switches
            The ports of every switch.
        now
            The current time in seconds.
        touched
            The switches whose ports, or links' ports, may have changed since the last time; None for all.
        """
        changed = {*switches, *self._ports} if touched is None else set(touched)
        self._follow(graph, switches, changed)
        return [*self._tell_of_old(changed), *self._bring(graph, now)]

    def _tell_of_old(self, changed: Iterable[int]) -> Iterator[Effect]:
        """Say once of each OpenFlow 1.0 switch what it cannot do: its hosts' MLD reports are never seen."""
        for dpid in sorted(changed):
            ports = self._ports.get(dpid)
            if ports is None or ports.ofp_version != OPENFLOW_1_0:
                self._without_ipv6.discard(dpid)
            elif dpid not in self._without_ipv6:
                self._without_ipv6.add(dpid)
                cannot = "MLD joins at its ports and IPv6 groups through it are refused"
                yield Notice("ipv6-unsupported", f"Switch {dpid} speaks OpenFlow 1.0: {cannot}.", (("dpid", dpid),))

    def _follow(self, graph: Graph, switches: Mapping[int, SwitchPorts], changed: set[int]) -> None:
        """Compute anew what is wanted at the switches that changed, and wherever the tree or the groups did."""
        groups: Iterable[bytes] = self._stale
        for dpid in changed:
            ports = switches.get(dpid)
            if ports is not None:
                self._ports[dpid] = ports
            elif self._ports.pop(dpid, None) is not None:
                del self._wanted[dpid]
        dirty = set(changed)
        if graph is not self._graph or graph.version != self._graph_version:
            before, tree = self._tree, spanning_tree(graph)
            self._graph, self._graph_version = graph, graph.version
            moved = {dpid for dpid in before.keys() | tree.keys() if before.get(dpid) != tree.get(dpid)}
            if moved:
                self._tree = tree
                self._tree_links = {frozenset((u, v)) for u, neighbours in tree.items() for v in neighbours}
                dirty |= moved
        self._pending |= dirty
        for dpid in dirty:
            trunks = sorted(graph.port(dpid, neighbour) for neighbour in self._tree.get(dpid, ()))
            if self._trunk_ports.get(dpid, []) != trunks:
                self._trunk_ports[dpid] = trunks
                groups = {*self._groups, *self._group_duties, *self._stale}
            ports = self._ports.get(dpid)
            if ports is None:
                continue
            self._wanted[dpid] = self._switch_rules(ports, trunks)
            if ports.ofp_version != OPENFLOW_1_0:
                for group, duties in self._group_duties.items():
                    rule = self._group_rule(group, duties.get(dpid, ()))
                    self._wanted[dpid][rule.key] = rule
        for group in sorted(groups):
            self._pending.update(dpid for dpid, _ in self._regroup(group, graph))
        self._stale.clear()

    def _bring(self, graph: Graph, now: float) -> list[Effect]:
        """Have what is wanted sent where it differs from what was, in an order that closes no loop."""
        if self._former or self._links != self._tree_links:
            self._forget_confirmed(graph)
            if not self._unconfirmed:
                self._former.clear()
        links = self._tree_links
        staged = (bool(self._former) or links != self._links) and holds_cycle(links | self._links | self._former)
        changed = sorted(dpid for dpid in self._pending if self._wanted.get(dpid, {}) != self._rules.get(dpid, {}))
        self.brought_count = len(changed)
        if staged and self._must_wait(graph, changed):
            return self._bring_ports(changed, now)
        self._former |= self._links - links
        self._links = links
        self._applied = self._tree
        self._pending.clear()
        if staged:
            changed = sorted({*changed, *self._unconfirmed})
            self.brought_count = len(changed)
        first: list[tuple[int, Edit]] = []
        second: list[tuple[int, Edit]] = []
        for dpid in changed:
            before, after = self._rules.get(dpid, {}), self._wanted.get(dpid, {})
            unconfirmed = self._unconfirmed.setdefault(dpid, set())
            for key, rule in after.items():
                old = before.get(key)
                if old == rule and not (staged and key in unconfirmed):
                    continue
                kept = common_outputs(rule, old) if staged else rule
                first.append((dpid, Put(kept)))
                if kept != rule:
                    second.append((dpid, Put(rule)))
                if _forwards(rule) or (old is not None and _forwards(old)):
                    unconfirmed.add(key)
            gone = [key for key in before if key not in after]
            first += [(dpid, Remove(key)) for key in gone]
            unconfirmed.update(key for key in gone if _forwards(before[key]))
            if dpid in self._wanted:
                self._rules[dpid] = dict(after)
            else:
                self._rules.pop(dpid, None)
        stages = [stage for stage in (first, second) if stage]
        # The hosts of one switch may wait for what its ports let in; nobody waits for what concerns several.
        urgency = Urgency.BULK if staged or len(changed) > 1 else Urgency.PROMPT
        return self._installer.change(stages, now, urgency=urgency) if stages else []

    def _forget_confirmed(self, graph: Graph) -> None:
        """Have only those entries count as unconfirmed of which it is not known what their switch holds."""
        confirmed = self._installer.is_confirmed
        for dpid, keys in list(self._unconfirmed.items()):
            left = (
                set()
                if dpid not in graph or self._installer.in_sync(dpid)
                else {key for key in keys if not confirmed(dpid, key)}
            )
            if left:
                self._unconfirmed[dpid] = left
            else:
                del self._unconfirmed[dpid]

    def _bring_ports(self, changed: Iterable[int], now: float) -> list[Effect]:
        """Bring what ports let in up to date while flooding has to stay as it is."""
        edits: list[tuple[int, Edit]] = []
        for dpid in changed:
            before, after = self._rules.setdefault(dpid, {}), self._wanted.get(dpid, {})
            for key in [key for key in {**before, **after} if key.priority == PRIORITY_UNKNOWN_SENDER]:
                rule = after.get(key)
                if rule is None:
                    del before[key]
                    edits.append((dpid, Remove(key)))
                elif before.get(key) != rule:
                    before[key] = rule
                    edits.append((dpid, Put(rule)))
        return self._installer.change([edits], now) if edits else []

    def _must_wait(self, graph: Graph, changed: Iterable[int]) -> bool:
        """Tell whether a switch that has to change cannot be told."""
        return any(dpid in graph and dpid in self._ports and not self._ports[dpid].connected for dpid in changed)

    def _duties(self, group: bytes, graph: Graph, tree: Mapping[int, set[int]]) -> dict[int, tuple[ChannelDuty, ...]]:
        members: dict[int, dict[Source, set[int]]] = {
            dpid: {None: ports} for dpid, ports in self._groups[group].items() if dpid in tree
        }
        return channel_duties(tree, graph.port, members, (None,))

    def _switch_rules(self, ports: SwitchPorts, trunks: list[int]) -> RuleSet:
        table = 0 if ports.ofp_version == OPENFLOW_1_0 else ADMIT
        flood = tuple(Output(port_no) for port_no in (*trunks, *ports.edges))
        rules: RuleSet = {}

        def put(priority: int, match: Match, actions: tuple[Action, ...]) -> None:
            key = RuleKey(table, priority, match)
            rules[key] = Rule(key, actions, self._cookie)

        def put_groups(eth_type: int, all_groups: tuple[int, bytes, int], pim_routers: bytes) -> None:
            bits = 8 * len(pim_routers)
            family = 4 if bits == 32 else 6

            def pim(port_no: int) -> Match:
                return Match(port_no, eth_type=eth_type, ip_proto=IPPROTO_PIM, ip_dst=pim_routers, ip_dst_prefix=bits)

            for port_no in ports.edges:
                to_routers = flood if (port_no, family) in ports.routers else ()
                put(PRIORITY_PIM, pim(port_no), (*_TO_CONTROLLER, *to_routers))
                put(PRIORITY_UNKNOWN_SENDER, _prefix(*all_groups, in_port=port_no), _TO_CONTROLLER)
            for port_no in ports.closed:
                put(PRIORITY_PIM, pim(port_no), ())
                put(PRIORITY_UNKNOWN_SENDER, _prefix(*all_groups, in_port=port_no), ())

        put(PRIORITY_MEMBERSHIP, Match(eth_type=ETH_TYPE_IPV4, ip_proto=IPPROTO_IGMP), _TO_CONTROLLER)
        put(PRIORITY_LINK_SCOPE, _prefix(*_LINK_SCOPE_V4), flood)
        put_groups(ETH_TYPE_IPV4, _ALL_V4, ALL_PIM_ROUTERS_V4)
        if ports.ofp_version == OPENFLOW_1_0:
            return rules
        for icmpv6_type in MLD_TYPES:
            match = Match(eth_type=ETH_TYPE_IPV6, ip_proto=IPPROTO_ICMPV6, icmpv6_type=icmpv6_type)
            put(PRIORITY_MEMBERSHIP, match, _TO_CONTROLLER)
        for scope in _LINK_SCOPE_V6:
            put(PRIORITY_LINK_SCOPE, _prefix(*scope), flood)
        put_groups(ETH_TYPE_IPV6, _ALL_V6, ALL_PIM_ROUTERS_V6)
        return rules

    def _group_rule(self, group: bytes, duties: tuple[ChannelDuty, ...]) -> Rule:
        ports = [port_no for duty in duties for port_no in (*duty.trunk_ports, *duty.host_ports)]
        return Rule(_group_key(group), tuple(Output(port_no) for port_no in ports), self._cookie)


def _forwards(rule: Rule) -> bool:
    """Tell whether an entry sends packets on to anybody but the controller."""
    return any(isinstance(action, Output) and action.port_no != OFPP_CONTROLLER for action in rule.actions)


def _group_key(group: bytes) -> RuleKey:
    return RuleKey(ADMIT, PRIORITY_LINK_SCOPE_GROUP, _prefix(ETH_TYPE_IPV6, group, 128))


def _prefix(eth_type: int, address: bytes, bits: int, in_port: int | None = None) -> Match:
    return Match(in_port=in_port, eth_type=eth_type, ip_dst=address, ip_dst_prefix=bits)
