"""Settings of aliases and queues: further trees for hot groups, and who waits at a port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.config.declarations import SettingType, integer, number, other
from controller.config.terms import Prefix, SwitchPort

OFF = "off"
MARK = "mark"
BY_SENDER = "sender"
BY_FLOW = "flow"
STATIC = "static"
DYNAMIC = "dynamic"
GOAL = "goal"
QUEUEING = (STATIC, GOAL)
"""Modes in which packets wait in queues."""


class StaticTrees(NamedTuple):
    """How many aliases each of some groups has all the time."""

    groups: Prefix
    aliases: int


@dataclass(frozen=True, slots=True)
class Aliases:
    """Further trees of groups, beside their own."""

    mode: str = other(
        SettingType.CHOICE,
        OFF,
        "Who has aliases: nobody, the groups of `static`, or any group by what is measured.",
        (OFF, STATIC, DYNAMIC),
    )
    pool: int = integer(64, 0, 65536, "aliases", "Aliases of the whole fabric.")
    per_group: int = integer(4, 1, 15, "aliases", "Aliases that one group may have beside its base.")
    static: tuple[StaticTrees, ...] = other(
        SettingType.STATIC_TREES,
        (),
        "Groups, or prefixes of groups, to the number of aliases that each has always; the longest prefix counts.",
    )
    split: str = other(
        SettingType.CHOICE,
        BY_SENDER,
        "What goes to one tree as a whole: a sender, or a flow of it (5-tuple, OpenFlow 1.3).",
        (BY_SENDER, BY_FLOW),
    )
    pace: str = other(
        SettingType.CHOICE,
        "steady",
        "How soon trees move: every 30 or 60 s by means of as long, or every 10 s by one sample.",
        ("steady", "fast"),
    )

    unicast: bool = other(
        SettingType.BOOLEAN,
        False,
        "Whether large flows to one host take the least loaded of equal paths too, from the pool, with `dynamic`.",
    )

    @property
    def has_flows(self) -> bool:
        """Whether large flows of packets to one host have ways of their own."""
        return self.unicast and self.mode == DYNAMIC


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Queues of service classes at ports."""

    mode: str = other(
        SettingType.CHOICE,
        OFF,
        "What is done: nothing, marks alone, queues with the floor, or queues whose rates follow goals.",
        (OFF, MARK, STATIC, GOAL),
    )
    floor_pct: float = number(1, 0, 12.5, "%", "Part of a port that every class is sure of.")
    interval_s: float = number(2, 0.5, 3600, "s", "Time between two looks at the rates of queues.")
    ovsdb: tuple[str, ...] = other(
        SettingType.OVSDB_SERVERS, (), "OVSDB servers by which queues are set up: `unix:PATH` or `tcp:HOST:PORT`."
    )
    trust: frozenset[SwitchPort] = other(
        SettingType.PORTS, frozenset[SwitchPort](), "Ports whose hosts' DSCP is left as it is."
    )
