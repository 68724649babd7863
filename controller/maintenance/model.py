"""What a campaign is made of: its order, its switches and their steps, and how they stand in the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, cast

from controller.maintenance.errors import Place
from controller.maintenance.groups import RedundancyGroup
from topology.graph import Graph

DAY_S = 86400

LONGEST_STEP_S = 604800.0
"""How long an upgrade may take, or be expected to, at most."""

LinkEnds = tuple[int, int, int, int]
"""A cable of a switch: its datapath id and port, then those at the other end."""


class CampaignState(StrEnum):
    """What becomes of a campaign."""

    RUNNING = "running"
    PAUSED = "paused"
    """Nothing new begins, as an operator wants it."""
    HALTED = "halted"
    """Nothing new begins, since switches have failed."""
    ABORTING = "aborting"
    """Nothing new begins, and what is in work comes to its end."""
    ABORTED = "aborted"
    DONE = "done"


ENDED = (CampaignState.ABORTED, CampaignState.DONE)


class Step(StrEnum):
    """Where a switch is in its maintenance."""

    WAITING = "waiting"
    DRAINING = "draining"
    HOOK = "hook"
    """It is drained, and is upgraded by the program of who runs the campaign."""
    BACK = "back"
    """The upgrade has ended, and the switch is waited for."""
    SOAKING = "soaking"
    """It is in use again, and is watched."""
    DONE = "done"
    FAILED = "failed"
    """It stays drained."""
    SKIPPED = "skipped"


IN_WORK = (Step.DRAINING, Step.HOOK, Step.BACK, Step.SOAKING)
OUT = (Step.DRAINING, Step.HOOK, Step.BACK)
"""Steps in which a campaign has a switch drained."""


class MaintenanceOrder(NamedTuple):
    """What an operator wants done.

    Attributes
    ----------
    switches
        The datapath ids.
    disruptive
        Whether switches whose hosts have no other are taken out too: these hosts lose packets meanwhile.
    window
        The seconds of the day, in the controller's time, between which switches may be in work; None for always.
    expected_s
        How long a switch takes as far as is known; the longest one of the campaign counts where that was longer.
    hook_limit_s
        How long an upgrade may take.
    restarts
        Whether a switch is back only when it has lost its connection since its upgrade began.
    """

    switches: tuple[int, ...]
    disruptive: bool = False
    window: tuple[int, int] | None = None
    expected_s: float = 600.0
    hook_limit_s: float = 900.0
    restarts: bool = False


USUAL = MaintenanceOrder(())
"""What an order has where nobody says otherwise."""


@dataclass(slots=True)
class SwitchWork:
    """A switch of a campaign.

    `since_s` is when its step began, `quiet_since_s` since when it has been as the step wants it, `began_s` when its
    work began, as far as this run of the controller knows; `links` are its cables before it was drained,
    `errors` the errors in a second that its ports and the other ends had by then; None where nobody measured.
    """

    dpid: int
    group: RedundancyGroup
    step: Step = Step.WAITING
    failed_at: Step | None = None
    reason: str = ""
    is_claimed: bool = False
    has_hosts: bool = False
    was_away: bool = False
    links: tuple[LinkEnds, ...] = ()
    errors: dict[Place, float] | None = None
    took_s: float | None = None
    since_s: float | None = None
    quiet_since_s: float | None = None
    began_s: float | None = None


@dataclass(slots=True)
class CampaignRecord:
    """A campaign as the log has it, beside the work at its switches.

    `groups` has all members of the groups concerned, those that are to be left alone too; `phase` counts from 0.
    """

    order: MaintenanceOrder
    runner: str
    groups: Mapping[int, RedundancyGroup]
    state: CampaignState = CampaignState.RUNNING
    phase: int = 0
    failures: int = 0
    works: dict[int, SwitchWork] = field(default_factory=dict)


class FabricView(Protocol):
    """What a campaign asks of the fabric as it is."""

    @property
    def graph(self) -> Graph:
        """The switches that are there, and the links between them."""

    def homes(self) -> Iterable[int]:
        """Return the switches with ports to hosts."""

    def absence(self, dpid: int) -> str | None:
        """Say why a switch is not there, such as "is not connected"; None where it is."""

    def trouble(self, dpid: int) -> str | None:
        """Say why a switch is not there, or does not hold what it shall; None where it is and does."""

    def drained(self) -> Collection[int]:
        """Return the switches that are drained, by whomever."""

    def transit(self, dpid: int) -> int:
        """Return how many trees lead through a switch."""

    def busiest_port(self, dpid: int) -> tuple[int, float]:
        """Return the port to another switch that carries most, and how many bit/s; 0 where nothing is measured."""

    def errors_before(self, dpid: int, far_ends: Iterable[Place]) -> dict[Place, float] | None:
        """Return the highest errors in a second lately of the ports of a switch and of the other ends, if any.

        None where nobody measures.
        """

    def errors_since(self, dpid: int, far_ends: Iterable[Place], since_s: float) -> dict[Place, float] | None:
        """Return the errors in a second now, if any; None as long as they are not all measured since a time."""

    def utilisation_pct(self, out: frozenset[int]) -> float | None:
        """Return how busy the busiest link is while these switches are drained and no others, in percent.

        None while that is being found out.
        """


class DrainWanted(NamedTuple):
    """A switch is to be drained, or not any more."""

    dpid: int
    drained: bool


class CampaignTold(NamedTuple):
    """Something that operators are to know; `dpid` 0 where it is of no switch."""

    kind: str
    text: str
    dpid: int = 0
    is_bad: bool = False


CampaignOutput = DrainWanted | CampaignTold


def links_at(graph: Graph, dpid: int) -> tuple[LinkEnds, ...]:
    """Return the cables of a switch."""
    if dpid not in graph:
        return ()
    cables = (cable for other in graph.neighbours(dpid) for cable in graph.cables(dpid, other))
    return tuple(sorted((dpid, c.u_port or 0, cast("int", c.v), c.v_port or 0) for c in cables))


def campaign_value(record: CampaignRecord) -> dict[str, Any]:
    """Return what the log has of a campaign itself."""
    order = record.order._asdict() | {"switches": sorted(record.order.switches)}
    return {
        "order": order,
        "runner": record.runner,
        "groups": [[dpid, *group] for dpid, group in record.groups.items()],
        "state": record.state,
        "phase": record.phase,
        "failures": record.failures,
    }


def work_value(work: SwitchWork) -> dict[str, Any]:
    """Return what the log has of a switch of a campaign."""
    return {
        "dpid": work.dpid,
        "group": list(work.group),
        "step": work.step,
        "failed_at": work.failed_at,
        "reason": work.reason,
        "claimed": work.is_claimed,
        "hosts": work.has_hosts,
        "away": work.was_away,
        "links": [list(link) for link in work.links],
        "took_s": work.took_s,
        "errors": None if work.errors is None else [[*place, per_s] for place, per_s in sorted(work.errors.items())],
    }


def read_campaign(value: Mapping[str, Any]) -> CampaignRecord:
    """Return the campaign of which the log says this; KeyError, TypeError or ValueError where it cannot be read."""
    order = value["order"]
    window = order["window"]
    return CampaignRecord(
        MaintenanceOrder(
            tuple(int(dpid) for dpid in order["switches"]),
            bool(order["disruptive"]),
            None if window is None else (int(window[0]), int(window[1])),
            float(order["expected_s"]),
            float(order["hook_limit_s"]),
            bool(order["restarts"]),
        ),
        str(value["runner"]),
        {
            int(dpid): RedundancyGroup(int(rank), str(tier), int(number))
            for dpid, rank, tier, number in value["groups"]
        },
        CampaignState(value["state"]),
        int(value["phase"]),
        int(value["failures"]),
    )


def read_work(value: Mapping[str, Any]) -> SwitchWork:
    """Return the switch of which the log says this; KeyError, TypeError or ValueError where it cannot be read."""
    rank, tier, number = value["group"]
    links = tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in value["links"])
    errors = value.get("errors")
    return SwitchWork(
        int(value["dpid"]),
        RedundancyGroup(int(rank), str(tier), int(number)),
        Step(value["step"]),
        None if value["failed_at"] is None else Step(value["failed_at"]),
        str(value["reason"]),
        bool(value["claimed"]),
        bool(value["hosts"]),
        bool(value["away"]),
        links,
        None if errors is None else {(int(dpid), int(port)): float(per_s) for dpid, port, per_s in errors},
        None if value["took_s"] is None else float(value["took_s"]),
    )
