"""Entries every switch holds whatever groups exist: punts, and link-scope groups over a spanning tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from controller.datapath.lanes import Urgency
from controller.effects import Edit, Effect, Notice, Put, Remove
from controller.multicast.flood_rules import in_prefix, switch_rules
from controller.multicast.link_scope import LinkScopeWays
from controller.multicast.switch_ports import SwitchPorts, spanning_tree
from controller.multicast.tree_links import ways_of
from controller.rules.compile import RuleSet, common_outputs
from controller.rules.cookies import cookie_of
from controller.rules.installer import Installer
from controller.rules.model import OFPP_CONTROLLER, FlowEntry, FlowKey, Output
from controller.rules.pipeline import (
    ADMIT,
    ETH_TYPE_IPV6,
    MULTICAST_TAG,
    OPENFLOW_1_0,
    PRIORITY_LINK_SCOPE_GROUP,
    PRIORITY_UNKNOWN_SENDER,
    SENDER_COOKIE_BIT,
)
from controller.rules.switch_state import StagedPlan
from controller.wire.addresses import (
    SOLICITED_NODE_PREFIX,
    format_ip,
)
from topology.graph import Graph, NodeId, holds_cycle

PORTS_AT_ONCE, SWITCH_PORTS = 192, 8
"""Ports of the switches that are looked at in one turn; a switch costs as much as some ports more than it has."""

LINK_SCOPE_GROUPS_BOUND = 64
"""Link-scope IPv6 groups that get entries of their own; further ones stay flooded, which is always correct."""


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
        """How many switches the last `refresh` had to tell something so far, those with edits under way too."""
        self.brought: Callable[[int], None] = lambda _dpid: None
        """Hears of each switch that is told something."""
        self._installer = installer
        self._cookie = cookie_of(MULTICAST_TAG, "link-scope") & ~SENDER_COOKIE_BIT
        self._wanted: dict[int, RuleSet] = {}
        self._rules: dict[int, RuleSet] = {}
        self._pending: set[int] = set()
        self._dirty: set[int] = set()
        self._todo: deque[int] = deque()
        self._is_staged = self._is_held = False
        self._plan: StagedPlan | None = None
        self._ways = LinkScopeWays()
        self._are_ways_behind = False
        self._full = False
        self._links: set[frozenset[NodeId]] = set()
        self._former: set[frozenset[NodeId]] = set()
        self._unconfirmed: dict[int, set[FlowKey]] = {}
        self._trunk_ports: dict[int, list[int]] = {}
        self._without_ipv6: set[int] = set()
        self._without_double_tagged: set[int] = set()
        self._graph: Graph | None = None
        self._graph_version = -1
        self._tree: dict[int, set[int]] = {}
        self._tree_links: set[frozenset[NodeId]] = set()
        self._has_bundles = False
        self._applied: dict[int, set[int]] = {}
        self._ports: dict[int, SwitchPorts] = {}
        self._is_stale = False
        self._regrouped: set[int] = set()

    def members(self, group: bytes) -> Iterator[tuple[int, int]]:
        """Yield (dpid, port) of the members of a link-scope group that has entries of its own."""
        for dpid, ports in self._ways.members.get(group, {}).items():
            for port_no in ports:
                yield dpid, port_no

    def groups(self) -> Iterable[bytes]:
        """Return the link-scope groups that have entries of their own."""
        return self._ways.members.keys()

    def interest_changed(
        self, dpid: int, port_no: int, group: bytes, wanted: bool, now: float
    ) -> tuple[list[Effect], bool]:
        """Follow a member of a link-scope group; True where only `refresh` can, which is to follow then.

        Groups of IPv4 and solicited-node groups are always flooded.
        """
        if len(group) == 4 or group.startswith(SOLICITED_NODE_PREFIX):
            return [], False
        ways = self._ways
        known = ways.members.get(group, {}).get(dpid, ())
        if wanted is (port_no in known):
            return [], False
        if wanted and group not in ways.members and len(ways.members) >= LINK_SCOPE_GROUPS_BOUND:
            if self._full:
                return [], False
            self._full = True
            text = f"Link-scope group {format_ip(group)} and later ones are flooded: the limit is reached."
            return [Notice("link-scope-groups-bound", text, (("bound", LINK_SCOPE_GROUPS_BOUND),))], False
        is_behind = bool(self._former) or self.is_behind or self._graph is None or self._is_outdated(self._graph)
        if not is_behind and self._are_ways_behind and self._graph is not None:
            self._use_ways(self._graph)
        concerned = ways.add(group, dpid, port_no) if wanted else ways.discard(group, dpid, port_no)
        self._full = self._full and group in ways.members
        if is_behind:
            self._is_stale = True
            return [], True
        return self._bring_group(group, self._wanted.keys() if concerned is None else sorted(concerned), now), False

    def _is_outdated(self, graph: Graph) -> bool:
        return self._applied is not self._tree or graph.version != self._graph_version

    def _use_ways(self, graph: Graph) -> None:
        self._are_ways_behind = False
        self._ways.use(self._tree, graph)

    def _bring_group(self, group: bytes, dpids: Iterable[int], now: float) -> list[Effect]:
        """Bring the entries of one group at some switches to its members, over the tree that all switches go by."""
        edits: list[tuple[int, Edit]] = []
        key, has_members = _group_key(group), group in self._ways.members
        for dpid in dpids:
            wanted = self._wanted.get(dpid)
            if wanted is None or self._ports[dpid].ofp_version == OPENFLOW_1_0:
                continue
            rule = self._group_rule(group, dpid) if has_members else None
            if wanted.get(key) == rule:
                continue
            for rules in (wanted, self._rules.setdefault(dpid, {})):
                if rule is None:
                    rules.pop(key, None)
                else:
                    rules[key] = rule
            edits.append((dpid, Remove(key) if rule is None else Put(rule)))
            self._unconfirmed.setdefault(dpid, set()).add(key)
        return self._installer.change([edits], now) if edits else []

    def open_port(self, dpid: int, port_no: int, now: float) -> list[Effect]:
        """Let in at once what another switch sends: trees use the link next, whatever the spanning tree waits for."""
        rules, wanted = self._rules.get(dpid, {}), self._wanted.get(dpid, {})
        closing = [key for key, rule in rules.items() if key.match.in_port == port_no and not rule.actions]
        if dpid in self._ports:
            self._ports[dpid] = self._ports[dpid].opened(port_no)
        if not closing:
            return []
        for key in closing:
            del rules[key]
            if key in wanted and not wanted[key].actions:
                del wanted[key]
        self.brought(dpid)
        return self._installer.change([[(dpid, Remove(key)) for key in closing]], now)

    def close_port(self, dpid: int, port_no: int, now: float) -> list[Effect]:
        """Let nothing in at once by a port: the switch at its other end may go by entries of former trees."""
        known = self._ports.get(dpid)
        if known is None:
            return []
        own = switch_rules(SwitchPorts(known.ofp_version, (), (port_no,), vlans=known.vlans and {}), [], self._cookie)
        closing = {key: rule for key, rule in own.items() if key.match.in_port == port_no}
        self._rules.setdefault(dpid, {}).update(closing)
        self._wanted.setdefault(dpid, {}).update(closing)
        self._ports[dpid] = known.shut(port_no)
        self.brought(dpid)
        return self._installer.change([[(dpid, Put(rule)) for rule in closing.values()]], now)

    def refresh(
        self, graph: Graph, switches: Mapping[int, SwitchPorts], now: float, touched: Iterable[int] | None = None
    ) -> list[Effect]:
        """Begin to bring switches to the entries that follow from the graph, their ports and the members known.

        What is left after some switches `advance` goes on with; all of it is as the graph and the ports are now.

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
        effects: list[Effect] = []
        while self.is_behind:
            effects += self.advance(now)
        changed = {*switches, *self._ports} if touched is None else set(touched)
        self._follow(graph, switches, changed)
        self._begin(graph)
        return [*effects, *self._tell_of_old(changed), *self.advance(now)]

    @property
    def is_behind(self) -> bool:
        """Whether `advance` is to be called again."""
        return bool(self._todo)

    def advance(self, now: float) -> list[Effect]:
        """Go on with some switches: those with `PORTS_AT_ONCE` ports together, and at least one."""
        first: list[tuple[int, Edit]] = []
        second: list[tuple[int, Edit]] = []
        is_first, port_count = self.brought_count == 0 and self._plan is None, 0
        while self._todo and port_count < PORTS_AT_ONCE:
            dpid = self._todo.popleft()
            ports = self._ports.get(dpid)
            port_count += SWITCH_PORTS + (0 if ports is None else len(ports.edges) + len(ports.closed))
            self._want(dpid)
            is_changed = self._wanted.get(dpid, {}) != self._rules.get(dpid, {})
            if is_changed or (self._is_staged and not self._is_held and dpid in self._unconfirmed):
                self.brought_count += 1
                self.brought(dpid)
                if self._is_held:
                    self._bring_ports(dpid, first)
                else:
                    self._bring(dpid, first, second)
            if not self._is_held:
                self._pending.discard(dpid)
        return self._sent(first, second, is_first, now)

    def _sent(
        self, first: list[tuple[int, Edit]], second: list[tuple[int, Edit]], is_first: bool, now: float
    ) -> list[Effect]:
        """Have edits sent, the second ones when all first ones are confirmed, those of further switches too."""
        if self._is_held or not self._is_staged or (is_first and not self._todo):
            stages = [stage for stage in (first, second) if stage]
            # The hosts of one switch may wait for what its ports let in; nobody waits for what concerns several.
            is_bulk = (self._is_staged or self.brought_count > 1 or bool(self._todo)) and not self._is_held
            urgency = Urgency.BULK if is_bulk else Urgency.PROMPT
            return self._installer.change(stages, now, urgency=urgency) if stages else []
        effects: list[Effect] = []
        if self._plan is None:
            self._plan = self._installer.open_plan(2, now)
        if first or second:
            effects += self._installer.extend_plan(self._plan, (first, second), now)
        if not self._todo:
            effects += self._installer.close_plan(self._plan, now)
            self._plan = None
        return effects

    def _tell_of_old(self, changed: Iterable[int]) -> Iterator[Effect]:
        """Say once of each OpenFlow 1.0 switch what it cannot do: its hosts' MLD reports are never seen."""
        for dpid in sorted(changed):
            ports = self._ports.get(dpid)
            if ports is None or ports.ofp_version != OPENFLOW_1_0:
                self._without_ipv6.discard(dpid)
                self._without_double_tagged.discard(dpid)
                continue
            if dpid not in self._without_ipv6:
                self._without_ipv6.add(dpid)
                cannot = "MLD joins at its ports and IPv6 groups through it are refused"
                yield Notice("ipv6-unsupported", f"Switch {dpid} speaks OpenFlow 1.0: {cannot}.", (("dpid", dpid),))
            if not ports.passes_double_tagged:
                self._without_double_tagged.discard(dpid)
            elif dpid not in self._without_double_tagged:
                self._without_double_tagged.add(dpid)
                cannot = (
                    "it drops frames with two VLAN tags, which pass elsewhere by the policy (vlans.double_tagged)"
                )
                text = f"Switch {dpid} speaks OpenFlow 1.0: {cannot}."
                yield Notice("double-tagged-unsupported", text, (("dpid", dpid),))

    def _follow(self, graph: Graph, switches: Mapping[int, SwitchPorts], changed: set[int]) -> None:
        """Note where what is wanted is to be computed anew: at switches whose ports, tree or groups changed."""
        for dpid in changed:
            ports = switches.get(dpid)
            if ports is not None:
                self._ports[dpid] = ports
            elif self._ports.pop(dpid, None) is not None:
                self._wanted.pop(dpid, None)
        dirty = set(changed)
        if graph is not self._graph or graph.version != self._graph_version:
            before, tree = self._tree, spanning_tree(graph)
            self._graph, self._graph_version, self._are_ways_behind = graph, graph.version, True
            moved = {dpid for dpid in before.keys() | tree.keys() if before.get(dpid) != tree.get(dpid)}
            if moved:
                self._tree = tree
                dirty |= moved
            if moved or self._has_bundles or graph.has_bundles:
                pairs = ((u, v) for u, neighbours in self._tree.items() for v in neighbours)
                self._tree_links = set(ways_of((graph.link(u, v) for u, v in pairs), graph))
                self._has_bundles = graph.has_bundles
        self._pending |= dirty
        has_groups = bool(self._ways.members)
        for dpid in dirty:
            trunks = sorted(graph.port(dpid, neighbour) for neighbour in self._tree.get(dpid, ()))
            if self._trunk_ports.get(dpid, []) != trunks:
                self._trunk_ports[dpid] = trunks
                self._is_stale = self._is_stale or has_groups
            if dpid in self._ports:
                self._dirty.add(dpid)
        if self._is_stale:
            self._is_stale = False
            self._regrouped |= self._wanted.keys()
            self._pending |= self._wanted.keys()
        if has_groups and self._are_ways_behind:
            self._use_ways(graph)

    def _want(self, dpid: int) -> None:
        """Compute what is wanted at a switch, or what of it is of groups, unless that is known."""
        is_dirty, is_regrouped = dpid in self._dirty, dpid in self._regrouped
        self._dirty.discard(dpid)
        self._regrouped.discard(dpid)
        ports = self._ports.get(dpid)
        if ports is None or not (is_dirty or is_regrouped):
            return
        if is_dirty:
            self._wanted[dpid] = switch_rules(ports, self._trunk_ports.get(dpid, []), self._cookie)
        if ports.ofp_version == OPENFLOW_1_0:
            return
        wanted = self._wanted.setdefault(dpid, {})
        for key in [key for key in wanted if key.priority == PRIORITY_LINK_SCOPE_GROUP]:
            del wanted[key]
        for group in self._ways.members:
            rule = self._group_rule(group, dpid)
            wanted[rule.key] = rule

    def _begin(self, graph: Graph) -> None:
        """Choose an order that closes no loop, and have the switches looked at at which something may differ."""
        if self._former or self._links != self._tree_links:
            self._forget_confirmed(graph)
            if not self._unconfirmed:
                self._former.clear()
        links = self._tree_links
        self.brought_count = 0
        self._is_staged = (bool(self._former) or links != self._links) and holds_cycle(
            links | self._links | self._former
        )
        self._is_held = self._is_staged and self._must_wait(graph)
        looked_at = set(self._pending)
        if not self._is_held:
            self._former |= self._links - links
            self._links = links
            self._applied = self._tree
            if self._is_staged:
                looked_at |= self._unconfirmed.keys()
        self._todo.extend(sorted(looked_at))

    def _bring(self, dpid: int, first: list[tuple[int, Edit]], second: list[tuple[int, Edit]]) -> None:
        """Have what is wanted at a switch sent where it differs from what was."""
        staged = self._is_staged
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

    def _bring_ports(self, dpid: int, edits: list[tuple[int, Edit]]) -> None:
        """Bring what a switch's ports let in up to date while flooding has to stay as it is."""
        before, after = self._rules.setdefault(dpid, {}), self._wanted.get(dpid, {})
        for key in [key for key in {**before, **after} if key.priority == PRIORITY_UNKNOWN_SENDER]:
            rule = after.get(key)
            if rule is None:
                del before[key]
                edits.append((dpid, Remove(key)))
            elif before.get(key) != rule:
                before[key] = rule
                edits.append((dpid, Put(rule)))

    def _must_wait(self, graph: Graph) -> bool:
        """Tell whether a switch that has to change cannot be told."""
        for dpid in self._pending:
            ports = self._ports.get(dpid)
            if ports is not None and not ports.connected and dpid in graph:
                self._want(dpid)
                if self._wanted.get(dpid, {}) != self._rules.get(dpid, {}):
                    return True
        return False

    def _group_rule(self, group: bytes, dpid: int) -> FlowEntry:
        outputs = tuple(Output(port_no) for port_no in self._ways.outputs(group, dpid))
        return FlowEntry(_group_key(group), outputs, self._cookie)


def _forwards(rule: FlowEntry) -> bool:
    """Tell whether an entry sends packets on to anybody but the controller."""
    return any(isinstance(action, Output) and action.port_no != OFPP_CONTROLLER for action in rule.actions)


def _group_key(group: bytes) -> FlowKey:
    return FlowKey(ADMIT, PRIORITY_LINK_SCOPE_GROUP, in_prefix(ETH_TYPE_IPV6, group, 128))
