"""What a core asks its shell to do; every core shares these."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from controller.rules.model import Rule, RuleKey


class SendPacket(NamedTuple):
    """Send `data` (a whole Ethernet frame) out of each of `ports` of a datapath."""

    dpid: int
    ports: tuple[int, ...]
    data: bytes


class Put(NamedTuple):
    """Add a flow entry, or replace the actions of the one with the same key."""

    rule: Rule


class Remove(NamedTuple):
    """Delete the flow entry with exactly this key."""

    key: RuleKey


Edit: TypeAlias = Put | Remove


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


class Notice(NamedTuple):
    """Something an operator may want to know; `kind` is a stable counter key, `fields` its particulars."""

    kind: str
    text: str
    fields: tuple[tuple[str, object], ...] = ()


Effect: TypeAlias = SendPacket | ApplyEdits | RequestFlows | Notice
