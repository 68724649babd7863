"""What a core asks its shell to do; every core shares these."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from controller.events import ControllerRole
from controller.rules.model import FlowEntry, FlowKey, Resource, ResourceKey


class SendPacket(NamedTuple):
    """Send `data` (a whole Ethernet frame) out of each of `ports` of a datapath."""

    dpid: int
    ports: tuple[int, ...]
    data: bytes


class Put(NamedTuple):
    """Add a flow entry, or replace the actions of the one with the same key."""

    rule: FlowEntry


class Remove(NamedTuple):
    """Delete the flow entry with exactly this key."""

    key: FlowKey


class Define(NamedTuple):
    """Have a group or a meter there. `exists` is for the owner of the switch to say: changed in place, not added."""

    resource: Resource
    exists: bool = False


class Undefine(NamedTuple):
    """Delete a group or a meter."""

    key: ResourceKey


Edit: TypeAlias = Put | Remove | Define | Undefine


class ApplyEdits(NamedTuple):
    """Send `edits` in order, edit i with transaction id `first_xid` + i, then a barrier with the next id."""

    dpid: int
    first_xid: int
    edits: tuple[Edit, ...]


class RequestFlows(NamedTuple):
    """Read the flow entries whose cookie equals `cookie` under `cookie_mask`, with their counters."""

    dpid: int
    xid: int
    cookie: int
    cookie_mask: int


class RequestResources(NamedTuple):
    """Read all groups, or all meters (`kind`), with what they do."""

    dpid: int
    xid: int
    kind: str


class RequestTables(NamedTuple):
    """Ask how many entries each flow table has room for."""

    dpid: int
    xid: int


class RequestRole(NamedTuple):
    """Ask a switch for a role; None asks for the one that the connection has. `generation_id` has 64 bits."""

    dpid: int
    xid: int
    role: ControllerRole | None
    generation_id: int


class RoleDenied(NamedTuple):
    """A switch does not have this controller in the role that it wants; None where its generation is not known."""

    dpid: int
    generation_id: int | None


class EntriesLost(NamedTuple):
    """A switch was found without entries that it had confirmed: whoever else has some there checks them now."""

    dpid: int


class TableSurveyed(NamedTuple):
    """What a report about the app's entries at a switch says, or why there is none; `document` is JSON-able."""

    dpid: int
    number: int
    document: dict[str, Any]


class Notice(NamedTuple):
    """Something an operator may want to know; `kind` is a stable counter key, `fields` its particulars."""

    kind: str
    text: str
    fields: tuple[tuple[str, object], ...] = ()


class JournalPart(StrEnum):
    """Where records of the journal go."""

    APPEND = "append"
    """To the journal, and to the new one while there is one."""
    BEGIN = "begin"
    """To a new journal beside it."""
    CONTINUE = "continue"
    """To the new journal."""
    FINISH = "finish"
    """To the new journal, which then takes the place of the old one."""


class WriteJournal(NamedTuple):
    """Write `records` (JSON-able, one per line)."""

    records: tuple[dict[str, Any], ...]
    part: JournalPart


class ActionTaken(NamedTuple):
    """What an operator asked for is done, or under way; `document` (JSON-able) is the answer."""

    document: dict[str, Any]


class ActionRefused(NamedTuple):
    """What an operator asked for is not done; `field` is at fault."""

    field: str
    text: str


Effect: TypeAlias = (
    SendPacket
    | ApplyEdits
    | RequestFlows
    | RequestResources
    | RequestTables
    | RequestRole
    | RoleDenied
    | EntriesLost
    | TableSurveyed
    | Notice
)
