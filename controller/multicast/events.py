"""Events that only the multicast core takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from controller.config.policy import Policy
from controller.log import LogEntry
from controller.maintenance.model import MaintenanceOrder


class PolicyLoaded(NamedTuple):
    """A policy file was read whole and without fault; it replaces the running policy."""

    policy: Policy


class LogRead(NamedTuple):
    """The log of an earlier run: the last entry of each key, in the order in which they were written."""

    entries: tuple[LogEntry, ...]


class LogFollowed(NamedTuple):
    """What the controller that leads has in the log, or has written since this was last told, in its order.

    The core is a shadow of the leader's from then on, until `LeadTaken`.
    """

    entries: tuple[LogEntry, ...]


class LeadTaken(NamedTuple):
    """This controller leads from now on, and all of the log was followed.

    What the log says is as of now: ports to hosts are served as soon as their switch is there.
    """


class JournalRead(NamedTuple):
    """The journal of a version before: its records in the order in which they were written."""

    records: tuple[dict[str, Any], ...]


class LoadsMeasured(NamedTuple):
    """What the monitor saw on cables since it last told of them.

    `loads` are (from dpid, its port, to dpid, bit/s). 0 bit/s stands for a cable that cannot be seen any more.
    `dropping` are those of these ports, (dpid, port), that dropped packets which they were to send.
    """

    loads: tuple[tuple[int, int, int, float], ...]
    dropping: tuple[tuple[int, int], ...] = ()


class StaticMemberSet(NamedTuple):
    """The operator gives a port a group whatever its hosts say, or no longer."""

    dpid: int
    port_no: int
    group: bytes
    present: bool


class RouterPortSet(NamedTuple):
    """The operator declares a port to lead to a multicast router of a family (4 or 6), or no longer."""

    dpid: int
    port_no: int
    family: int
    present: bool


class SwitchDrainSet(NamedTuple):
    """The operator wants trees to avoid a switch, or no longer."""

    dpid: int
    drained: bool


class SwitchForgetAsked(NamedTuple):
    """The operator takes a switch that is gone to be gone for good."""

    dpid: int


class GroupRebuildAsked(NamedTuple):
    """The operator wants the tree of a group built anew."""

    group: bytes


class AliasAsked(NamedTuple):
    """The operator wants a group to have one alias more, or one less."""

    group: bytes
    present: bool


class GroupSwapAsked(NamedTuple):
    """The operator wants a group in the tables of the switches, or out of them, until its packets say otherwise."""

    group: bytes
    is_in: bool


class GroupPinSet(NamedTuple):
    """The operator wants a group to stay in the tables of the switches whatever it sends, or no longer."""

    group: bytes
    present: bool


class LabelSet(NamedTuple):
    """The operator gives a port, or a switch (`port_no` 0), a label, or (`value` None) takes it back."""

    dpid: int
    port_no: int
    key: str
    value: str | None


class AddressTakeAsked(NamedTuple):
    """The operator wants an address of a pool to be somebody's."""

    pool: str
    name: str


class AddressReleased(NamedTuple):
    """The operator gives back what address of a pool is somebody's."""

    pool: str
    name: str


class CountersResetAsked(NamedTuple):
    """The operator wants all counters to begin anew."""


class MaintenancePlanAsked(NamedTuple):
    """The operator wants to know how a campaign over some switches would go."""

    order: MaintenanceOrder


class MaintenanceStartAsked(NamedTuple):
    """The operator wants some switches maintained; `runner` stands for who upgrades them."""

    order: MaintenanceOrder
    runner: str


class MaintenanceTurnAsked(NamedTuple):
    """The operator wants the campaign to pause, resume or abort (`verb`); '' for `runner` leaves who upgrades."""

    verb: str
    runner: str = ""


class MaintenanceSkipAsked(NamedTuple):
    """The operator wants a switch left out of the campaign."""

    dpid: int


class MaintenanceHookSet(NamedTuple):
    """Who upgrades says that the upgrade of a switch begins (`fault` None) or has ended, well where `fault` is ''."""

    dpid: int
    runner: str
    fault: str | None


class MaintenanceLooked(NamedTuple):
    """The shell looks on behalf of a campaign: the second of the day, and where apps have edits under way."""

    second_of_day: int
    behind: tuple[int, ...]
