"""Settings of flow tables that hold fewer groups than there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controller.config.declarations import SettingType, integer, number, optional_integer, other, section
from controller.overcommit.slots import SlotClaim

OFF = "off"
SWAP = "swap"
COVER = "cover"

MOST_ENTRIES = 1 << 24
"""Entries that a table may be said to have at most."""


class TableCapacity(NamedTuple):
    """How many entries each flow table of a switch has room for."""

    dpid: int
    entries: int


@dataclass(frozen=True, slots=True)
class Capacities:
    """How many entries flow tables have room for."""

    default: int | None = optional_integer(
        1,
        MOST_ENTRIES,
        "entries",
        "Entries that each flow table has room for at most; where absent, as many as its switch says, or had when it "
        "refused one.",
    )
    switches: tuple[TableCapacity, ...] = other(
        SettingType.CAPACITIES, (), "The same for some switches, by their datapath ids or names."
    )


@dataclass(frozen=True, slots=True)
class TableShare:
    """What a tenant may have of each flow table."""

    shares: float = number(1, 0.001, 1e6, "", "Its weight beside other tenants.")
    reservation: int = integer(0, 0, MOST_ENTRIES, "entries", "Entries that it is never to give for others.")
    limit: int | None = optional_integer(1, MOST_ENTRIES, "entries", "Entries that it has at most.")


class TenantShare(NamedTuple):
    """What the tenant of a name may have of each flow table."""

    tenant: str
    share: TableShare


@dataclass(frozen=True, slots=True)
class Overcommit:
    """Who is in flow tables that are too small for all groups."""

    mode: str = other(
        SettingType.CHOICE,
        OFF,
        "Whether groups that are silent leave the flow tables while others need the room (`swap`), and before that "
        "have covering trees in common with others (`cover`).",
        (OFF, SWAP, COVER),
    )
    capacity: Capacities = section(Capacities)  # noqa: RUF009 - it makes a field
    tax_pct: float = number(
        75, 0, 99, "%", "The tax on idle entries: one costs its tenant as much as 1 / (1 - tax) of those in use."
    )
    tenants: tuple[TenantShare, ...] = other(
        SettingType.TENANT_SHARES, (), "What tenants may have of each flow table; absent ones have shares of 1."
    )
    store: int = integer(
        65536, 1, 1048576, "groups", "Groups that may be out of the tables; a join of one more group is refused."
    )
    faults_per_second: float = number(
        500, 1, 1e6, "1/s", "Packets to groups out of the tables, or on their way in, that are read from one switch."
    )
    carried_packets_per_second: float = number(
        200, 1, 1e6, "1/s", "Packets of one group out of the tables that the controller hands on."
    )
    cover_spurious_pct: float = number(
        5, 0, 100, "%", "What a link may carry at most, under covering trees, to switches without members."
    )


def slot_claims(settings: Overcommit) -> dict[str, SlotClaim]:
    """Return what each tenant may have of a flow table; where it has no limit, all of the largest one that is said.

    Where none is said either, a tenant may have what it has reserved.
    """
    capacity = settings.capacity
    said = (capacity.default or 0, *(each.entries for each in capacity.switches))
    return {
        name: SlotClaim(max(said, default=0) if share.limit is None else share.limit, share.reservation)
        for name, share in settings.tenants
    }
