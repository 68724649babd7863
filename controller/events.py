"""What happens at a switch, as frozen events that any core may be given; see topology.events for the fabric."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias


class Port(NamedTuple):
    """A port of a datapath as the switch describes it; `speed_bps` is 0 where the switch does not say."""

    port_no: int
    name: str
    mac: bytes
    up: bool
    speed_bps: float


class SwitchConnected(NamedTuple):
    """A datapath finished its handshake; `ofp_version` is 1 (OpenFlow 1.0) or 4 (OpenFlow 1.3).

    `encrypted` says whether it is spoken with by TLS.
    """

    dpid: int
    ofp_version: int
    ports: tuple[Port, ...]
    encrypted: bool = False


class SwitchDescription(NamedTuple):
    """What a switch says it is (OFPMP_DESC, OFPST_DESC), '' where it says nothing; `datapath` is its own name."""

    manufacturer: str
    hardware: str
    software: str
    serial: str
    datapath: str


class SwitchDisconnected(NamedTuple):
    """The connection to a datapath is gone."""

    dpid: int


class PortChanged(NamedTuple):
    """A port was added, changed or deleted."""

    dpid: int
    port: Port
    deleted: bool


class PacketReceived(NamedTuple):
    """A packet-in: a whole Ethernet frame that came in at `in_port`; `unmatched` where no flow entry sent it here."""

    dpid: int
    in_port: int
    data: bytes
    unmatched: bool = False


class BarrierReplied(NamedTuple):
    """A switch has carried out everything sent before the barrier `xid`."""

    dpid: int
    xid: int


class EditFailed(NamedTuple):
    """A switch refused the message `xid` with an OpenFlow error of this type and code."""

    dpid: int
    xid: int
    type: int
    code: int


class FlowStatsReceived(NamedTuple):
    """One flow statistics reply as it came in: the whole OpenFlow message."""

    dpid: int
    ofp_version: int
    xid: int
    message: bytes


class ResourcesReceived(NamedTuple):
    """One reply that tells groups or meters as it came in: the whole OpenFlow message."""

    dpid: int
    ofp_version: int
    xid: int
    message: bytes


class TablesReceived(NamedTuple):
    """One reply that tells what flow tables have room for as it came in: the whole OpenFlow message."""

    dpid: int
    ofp_version: int
    xid: int
    message: bytes


class ControllerRole(IntEnum):
    """What a controller is to a switch beside others (OpenFlow 1.3.5, 6.3.5): a slave changes nothing there."""

    EQUAL = 1
    MASTER = 2
    SLAVE = 3


class RoleWanted(NamedTuple):
    """The role that this controller is to have at a switch, or with None at all that are there and that connect.

    `generation_id` has 64 bits; a master's is higher than, or that of, the master before.
    """

    role: ControllerRole
    generation_id: int
    dpid: int | None = None


class RoleReplied(NamedTuple):
    """A switch says which role the connection has; `generation_id` is None where no master has been there."""

    dpid: int
    xid: int
    role: int
    generation_id: int | None


class OwnerLeft(NamedTuple):
    """The app whose transaction ids have this tag has ended: it owns no flow entries any more."""

    xid_tag: int


class SurveyOrder(NamedTuple):
    """What a report about a switch's table is to do, under the `number` by which it is told.

    `repair` what differs, if that is little or `force` is said; `foreign` entries of nobody's here are listed too.
    """

    number: int
    repair: bool = False
    force: bool = False
    foreign: bool = False


class TableChanged(NamedTuple):
    """A switch confirmed, refused or told something of this core's flow entries; `was_read`: it told them all."""

    dpid: int
    was_read: bool


class CheckRequested(NamedTuple):
    """This core's entries at a switch are to be checked now.

    Without an order another app found entries of its own missing there, and what differs is repaired; with one a
    report is wanted.
    """

    dpid: int
    order: SurveyOrder | None = None


class SwitchesDrained(NamedTuple):
    """Operators have these switches drained, and no others: what is for others is to go round them."""

    dpids: tuple[int, ...]


class DeadlineReached(NamedTuple):
    """The moment that the core asked to be woken at has come."""


SwitchEvent: TypeAlias = (
    SwitchConnected
    | SwitchDisconnected
    | PortChanged
    | PacketReceived
    | BarrierReplied
    | EditFailed
    | FlowStatsReceived
    | ResourcesReceived
    | TablesReceived
    | CheckRequested
    | DeadlineReached
)


class JournalLost(NamedTuple):
    """Records could not be written to the core's journal: it is begun anew with all that a restart must know."""
