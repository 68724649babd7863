"""How senders, and parts of what they send, go from one tree of their group to another without loss.

The tree that they leave keeps its way at their switches until these have confirmed that nobody sends by it any more,
and what was under way has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller.datapath.lanes import Urgency
from controller.effects import Effect
from controller.multicast.flow_parts import PartKey
from controller.multicast.group import FlowName, Group, Sender, SenderKey
from controller.multicast.group_rules import GroupRules
from controller.multicast.router_groups import GroupRouting
from controller.multicast.transition import Transitions
from controller.rules.installer import Installer
from controller.rules.model import FLOW_PARTS, FlowKey
from controller.rules.plans import DRAIN_S
from controller.trees.forest import Forest
from controller.trees.islands import Islands
from controller.trees.tree import Change, TreeRole
from topology.graph import Graph

LOOK_AGAIN_S = 0.05
"""How soon it is looked again whether entries are confirmed, or a version is free."""

PATIENCE_S = 30.0
"""How long a tree waits for switches to confirm that its senders have left it."""


class AliasedPlane(Protocol):
    """The groups and trees that aliases belong to."""

    groups: dict[bytes, Group]
    islands: Islands
    transitions: Transitions
    rules: GroupRules
    routed: GroupRouting

    @property
    def forest(self) -> Forest:
        """The trees."""

    def refresh(
        self, group: Group, changes: Sequence[Change | None], now: float, urgency: Urgency = Urgency.PROMPT
    ) -> list[Effect]:
        """Compile a tree again and send the difference."""

    def sender_measured(self, address: bytes, dpid: int) -> None:
        """Tell the forest what the senders of a group at one switch send together."""


@dataclass
class TreeDeparture:
    """Flows that have gone from a tree: their switches leave it, or all of it goes, when no packet is on its way.

    It waits until the entries of these `keys` are confirmed, then until packets have drained. `refused` says what is
    done instead where a switch refuses one of them, `drained` what in the end, where it is something else.
    """

    group: Group
    tree: Group
    dpids: set[int]
    keys: set[tuple[int, FlowKey]]
    due_s: float
    give_up_s: float
    refused: Callable[[float], list[Effect]] | None = None
    drained: Callable[[float], list[Effect]] | None = None
    is_confirmed: bool = False


class AliasMoves:
    """Moves flows between the trees of their groups.

    `default_bps` is the rate of a sender that was not measured. `told` is called with each group whose trees are
    others and the switch at which flows take another one, `ended` with a group and a tree of it that is being taken
    away and by which nobody sends any more.
    """

    def __init__(self, plane: AliasedPlane, installer: Installer, graph: Graph) -> None:
        self.default_bps = 0.0
        self.departures: list[TreeDeparture] = []
        self.told: Callable[[Group, float, int | None], None] = lambda group, now, dpid: None
        self.ended: Callable[[Group, Group, float], list[Effect]] = lambda group, tree, now: []
        self._plane = plane
        self._installer = installer
        self._graph = graph

    # Rates

    def rate(self, sender: Sender) -> float:
        """Return the rate of a sender, the default one where it was not measured."""
        return sender.placed_bps or self.default_bps

    def rate_of_part(self, measured_bps: float) -> float:
        """Return the rate of a part of flows, of which nothing may have come: its share of the default one then."""
        return measured_bps or self.default_bps / FLOW_PARTS

    def flows(self, group: Group) -> tuple[dict[FlowName, float], dict[FlowName, int]]:
        """Return the rates of all that takes a tree of a group, and the number of the tree that it takes.

        Senders at a switch that divides flows are among it with rate 0, as are refused ones.
        """
        rates: dict[FlowName, float] = {}
        held: dict[FlowName, int] = {}
        for key, sender in group.senders.items():
            is_whole = sender.admitted and group.parts_at(key.dpid) is None
            rates[key], held[key] = self.rate(sender) if is_whole else 0.0, sender.alias or 0
        for dpid, parts in (group.parts or {}).items():
            for part, (tree, rate) in enumerate(zip(parts.trees, parts.rates_bps, strict=True)):
                name = PartKey(dpid, part)
                rates[name], held[name] = self.rate_of_part(rate), tree
        return rates, held

    def tell_rate(self, tree: Group, dpid: int) -> None:
        """Have the forest account what takes a tree at a switch, also senders that were not measured."""
        parts = tree.parts_at(dpid)
        if parts is None:
            own = [sender for key, sender in tree.own_senders().items() if key.dpid == dpid]
            rate_bps = sum([self.rate(sender) for sender in own if sender.admitted], 0.0)
        else:
            own_parts = [parts.rates_bps[entry.part] for entry in tree.part_entries(dpid)]
            rate_bps = sum([self.rate_of_part(rate) for rate in own_parts], 0.0)
        self.set_rate(tree, dpid, rate_bps)

    def set_rate(self, tree: Group, dpid: int, rate_bps: float) -> None:
        """Have the forest account that so much takes a tree at a switch."""
        self._plane.forest.set_rate(tree.key, dpid, rate_bps)
        self._plane.islands.set_rate(tree.key, dpid, rate_bps)

    # Moves

    def move(self, group: Group, moved: Mapping[FlowName, Group], now: float) -> list[Effect]:
        """Have flows take other trees, which stand."""
        self.leave_behind(group, moved, now)
        effects: list[Effect] = []
        for tree in {id(tree): tree for tree in moved.values()}.values():
            effects += self.enter(tree, {flow.dpid for flow, to in moved.items() if to is tree}, now)
        return effects

    def enter(self, tree: Group, dpids: Iterable[int], now: float) -> list[Effect]:
        """Have switches send by a tree that flows of theirs take now."""
        changes: list[Change | None] = []
        for dpid in sorted(dpids):
            changes.append(self._plane.forest.join(tree.key, dpid, TreeRole.SENDER) if tree.sends_at(dpid) else None)
            self.tell_rate(tree, dpid)
        return self._plane.refresh(tree, changes, now, Urgency.BULK)

    def leave_behind(self, group: Group, moved: Mapping[FlowName, Group], now: float) -> None:
        """Take flows off the trees that they had; these keep their ways until no packet is on them."""
        departures: dict[int, TreeDeparture] = {}
        by_number = {tree.number: tree for tree in group.all_trees()}
        for flow, to in moved.items():
            sender = group.senders[flow] if isinstance(flow, SenderKey) else None
            parts = group.parts_at(flow.dpid)
            if isinstance(flow, PartKey):
                assert parts is not None
                number, parts.trees[flow.part] = parts.trees[flow.part], to.number
            else:
                assert sender is not None
                number, sender.alias = sender.alias or 0, to.number
            tree = by_number.get(number, group)
            keys = self._plane.rules.take_flow(tree, flow)
            departure = departures.get(tree.number)
            if departure is None:
                departure = departures[tree.number] = TreeDeparture(group, tree, set(), set(), now, now + PATIENCE_S)
            departure.dpids.add(flow.dpid)
            departure.keys |= {(flow.dpid, rule_key) for rule_key in keys}
        for departure in departures.values():
            for dpid in departure.dpids:
                self.tell_rate(departure.tree, dpid)
                self.told(group, now, dpid)
        self.departures += departures.values()

    # What has gone

    def depart(self, now: float) -> list[Effect]:
        """Go on with what flows have left, as far as switches have confirmed that they have."""
        effects: list[Effect] = []
        for departure in [one for one in self.departures if one.due_s <= now]:
            effects += self._depart(departure, now)
        return effects

    def _depart(self, departure: TreeDeparture, now: float) -> list[Effect]:
        group, tree = departure.group, departure.tree
        if not departure.is_confirmed:
            graph, installer = self._graph, self._installer
            late = [(at, key) for at, key in departure.keys if at in graph and not installer.is_confirmed(at, key)]
            if departure.refused is not None and any(installer.is_refused(at, key) for at, key in late):
                self.departures.remove(departure)
                return departure.refused(now)
            if late and now < departure.give_up_s:
                departure.due_s = now + LOOK_AGAIN_S
            else:
                departure.is_confirmed, departure.due_s = True, now + DRAIN_S
            return []
        self.departures.remove(departure)
        if self._plane.groups.get(group.address) is not group or not any(one is tree for one in group.all_trees()):
            return []  # it has gone meanwhile
        if departure.drained is not None:
            return departure.drained(now)
        if tree.is_leaving:
            return self.ended(group, tree, now)
        still: set[int] = set()  # others have gone from there since, whose packets may be on their way
        for other in self.departures:
            if other.tree is tree:
                still |= other.dpids
        return self.leave(tree, departure.dpids - still, now)

    def leave(self, tree: Group, dpids: Iterable[int], now: float) -> list[Effect]:
        """Have switches that send nothing by a tree any more leave it."""
        changes: list[Change | None] = []
        for dpid in sorted(dpids):
            if not tree.sends_at(dpid):
                changes.append(self._plane.forest.leave(tree.key, dpid, TreeRole.SENDER))
        return self._plane.refresh(tree, changes, now, Urgency.BULK) if changes else []
