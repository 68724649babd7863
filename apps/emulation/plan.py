"""What an experiment does: groups with senders and receivers, and events, on a fabric."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from topology.graph import Graph, NodeId

EventKind = Literal["link-down", "link-up", "switch-down", "switch-up", "join", "leave"]
EVENT_KINDS: tuple[EventKind, ...] = ("link-down", "link-up", "switch-down", "switch-up", "join", "leave")

AVALANCHE_GROUPS = 6
AVALANCHE_MEMBERS = (3, 6)
AVALANCHE_RATES_BPS = (2e6, 4e6, 6e6, 8e6)
DEFAULT_WARMUP_S = 8.0
DEFAULT_DURATION_S = 20.0


@dataclass(frozen=True, slots=True)
class SenderPlan:
    """A host that sends to its group all the time; the rate counts whole Ethernet frames."""

    host: NodeId
    rate_bps: float


@dataclass(frozen=True, slots=True)
class ReceiverPlan:
    """A host that joins; `include` or `exclude` are sources that it asks for or blocks."""

    host: NodeId
    include: tuple[NodeId, ...] = ()
    exclude: tuple[NodeId, ...] = ()
    igmp_version: int | None = None

    def wants(self, sender: NodeId) -> bool:
        """Tell whether the receiver's own filter takes packets from `sender`."""
        if sender == self.host or sender in self.exclude:
            return False
        return not self.include or sender in self.include


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group with who sends and who receives from the start."""

    group: str
    senders: tuple[SenderPlan, ...]
    receivers: tuple[ReceiverPlan, ...]


@dataclass(frozen=True, slots=True)
class EventPlan:
    """Something that happens `at_s` seconds into the measured window."""

    at_s: float
    do: EventKind
    nodes: tuple[NodeId, ...]
    """Both ends of a link, the switch, or the host that joins or leaves."""

    group: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """A whole experiment."""

    graph: Graph
    groups: tuple[GroupPlan, ...]
    events: tuple[EventPlan, ...] = ()
    policy: Path | None = None
    """The policy file that it runs under; without one everybody is admitted."""

    capacities: bool = True
    warmup_s: float = DEFAULT_WARMUP_S
    duration_s: float = DEFAULT_DURATION_S
    addresses: Mapping[str, NodeId] = field(default_factory=dict)
    """Which host plays whom of a capture, by that one's IP address as `format_ip` writes it."""

    join_order: tuple[tuple[int, int], ...] = field(default=())
    """Pairs of group index and receiver index; where empty, receivers join in the order of the plan."""

    def joins(self) -> list[tuple[GroupPlan, ReceiverPlan]]:
        """Return the first joins, in order."""
        order = self.join_order or [
            (g, r) for g, group in enumerate(self.groups) for r in range(len(group.receivers))
        ]
        return [(self.groups[g], self.groups[g].receivers[r]) for g, r in order]


def stream_numbers(plan: ExperimentPlan) -> dict[tuple[str, NodeId], int]:
    """Return the number of what each sender sends to its group, by group and host, from 1."""
    senders = [(group.group, sender.host) for group in plan.groups for sender in group.senders]
    return {each: number for number, each in enumerate(dict.fromkeys(senders), 1)}


def avalanche_plan(
    graph: Graph,
    seed: int,
    *,
    capacities: bool = True,
    warmup_s: float = DEFAULT_WARMUP_S,
    duration_s: float = DEFAULT_DURATION_S,
) -> ExperimentPlan:
    """Draw the article's experiment: six groups of three to six members, one of which sends, the others receive.

    Rates are drawn from 2, 4, 6 and 8 Mbit/s; the same seed gives the same groups and order of joins (VSRT
    article, section 5; COMSNETS 2014, doi 10.1109/COMSNETS.2014.6734903).
    """
    chance = random.Random(seed)
    hosts = graph.hosts()
    groups = []
    for number in range(1, AVALANCHE_GROUPS + 1):
        sender, *receivers = chance.sample(hosts, chance.randint(*AVALANCHE_MEMBERS))
        rate_bps = chance.choice(AVALANCHE_RATES_BPS)
        groups.append(
            GroupPlan(
                f"239.10.0.{number}",
                (SenderPlan(sender, rate_bps),),
                tuple(ReceiverPlan(host) for host in receivers),
            )
        )
    order = [(g, r) for g, group in enumerate(groups) for r in range(len(group.receivers))]
    chance.shuffle(order)
    return ExperimentPlan(
        graph,
        tuple(groups),
        capacities=capacities,
        warmup_s=warmup_s,
        duration_s=duration_s,
        join_order=tuple(order),
    )


def forced_lost_pct(graph: Graph, groups: Sequence[GroupPlan]) -> float:
    """Return the percentage of packets that the hosts' own links must lose, whatever the trees.

    A host's uplink carries what it sends, its downlink what reaches it; each passes at most its capacity, and
    drops from all flows alike.
    """
    capacity_bps = {host: graph.link(host, graph.neighbours(host)[0]).capacity_bps for host in graph.hosts()}
    up_bps: defaultdict[NodeId, float] = defaultdict(float)
    for group in groups:
        for sender in group.senders:
            up_bps[sender.host] += sender.rate_bps
    passed_up = {host: min(1.0, capacity_bps[host] / rate) for host, rate in up_bps.items()}
    flows = [
        (sender.rate_bps, sender.rate_bps * passed_up[sender.host], receiver.host)
        for group in groups
        for receiver in group.receivers
        for sender in group.senders
        if receiver.wants(sender.host)
    ]
    down_bps: defaultdict[NodeId, float] = defaultdict(float)
    for _, arriving_bps, host in flows:
        down_bps[host] += arriving_bps
    wanted = sum(rate for rate, _, _ in flows)
    delivered = sum(arriving * min(1.0, capacity_bps[host] / down_bps[host]) for _, arriving, host in flows)
    return 100.0 * (1.0 - delivered / wanted) if wanted else 0.0
