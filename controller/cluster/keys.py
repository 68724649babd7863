"""What controllers of one fabric keep in the store they share: names of keys, and values as text."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, NamedTuple

from controller.cluster.versions import RECORDS

EPOCH_BOUND = 1 << 62
"""Generations from here on are no epochs: switches count them in a circle of 64 bits."""

FIRST_EPOCHS = 1 << 16
"""In a store that knows of no epoch, the first one is drawn among so many: a store that was emptied had others."""


class Keys:
    """The keys of a fabric.

    Attributes
    ----------
    root
        What all of them begin with.
    lead
        What those begin with that say who leads; `epoch`, `leader`, `challenge`, `successor` and `members` are there.
    members
        What those begin with that say who is a member.
    journal, hosts
        What those begin with that have entries of the log, and hosts.
    turns
        What those begin with that say which write of a log was the last one.
    taken_over
        The epoch of who took the logs over last.
    secret
        The key of the LLDP frames of all members.
    policy
        The policy that all controllers go by, and its digest.
    share
        What those begin with that are of monitors which share the switches; `manager` is there.
    monitors, shares, drained
        What those begin with that say who is a monitor, who polls a switch, and which monitor shall have none.
    drains
        Which monitor was drained last.
    scaling
        What those begin with that are about how many monitors there should be.
    scaling_loads, scaling_said
        What those begin with that say how busy a monitor was, and what was advised after an interval.
    scaling_table, scaling_broken
        What has been learnt; the last table that made no sense.
    scaling_drained
        What those begin with that say which run of a monitor was drained since fewer were advised.
    scaling_pace
        How many times as long as the policy says monitors wait between two polls.
    """

    def __init__(self, fabric: str) -> None:
        self.root = f"/vsrt/1/{fabric}/"
        self.lead = f"{self.root}lead/"
        self.epoch = f"{self.lead}epoch"
        self.leader = f"{self.lead}leader"
        self.challenge = f"{self.lead}challenge"
        self.successor = f"{self.lead}successor"
        self.members = f"{self.lead}members/"
        self.journal = f"{self.root}journal/"
        self.hosts = f"{self.root}hosts/"
        self.turns = f"{self.root}turns/"
        self.taken_over = f"{self.root}taken-over"
        self.secret = f"{self.root}secret"
        self.policy = f"{self.root}policy"
        self.share = f"{self.root}monitors/"
        self.manager = f"{self.share}manager"
        self.monitors = f"{self.share}members/"
        self.shares = f"{self.share}share/"
        self.drained = f"{self.share}drained/"
        self.drains = f"{self.share}drains"
        self.scaling = f"{self.root}scaling/"
        self.scaling_loads = f"{self.scaling}loads/"
        self.scaling_said = f"{self.scaling}said/"
        self.scaling_table = f"{self.scaling}table"
        self.scaling_broken = f"{self.scaling}table-broken"
        self.scaling_drained = f"{self.scaling}drained/"
        self.scaling_pace = f"{self.scaling}pace"

    def share_of(self, dpid: int) -> str:
        """Return the key that says who polls a switch."""
        return f"{self.shares}{dpid:016x}"


def read_object(text: str) -> Any:
    """Return what a text of JSON says; ValueError where it is none, is nested too deeply or has no finite numbers."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


class Leader(NamedTuple):
    """Who leads: a member, which run of it, in which epoch, and where others hear of it ('' where nowhere)."""

    member: str
    incarnation: str
    epoch: int
    peer: str

    def text(self) -> str:
        """Return this as the value of the key `leader`."""
        return json.dumps(self._asdict())


def read_leader(text: str) -> Leader | None:
    """Return what the key `leader` says; None where it makes no sense."""
    try:
        found = read_object(text)
        leader = Leader(found["member"], found["incarnation"], found["epoch"], found["peer"])
    except (ValueError, KeyError, TypeError):
        return None
    texts = (leader.member, leader.incarnation, leader.peer)
    return leader if all(type(text) is str for text in texts) and type(leader.epoch) is int else None


class Present(NamedTuple):
    """A member that is there: its name, which run of it, where others hear it, how many switches it has.

    `records` is the version of the logs' records that it reads and writes; a key that says none is of the first.
    `metrics` is where its metrics are scraped, ``HOST:PORT``; '' for nowhere. `dpids` are the switches; keys of
    programs before this one say none.
    """

    member: str
    incarnation: str
    peer: str
    switches: int
    records: int = RECORDS
    metrics: str = ""
    dpids: frozenset[int] = frozenset()

    def text(self) -> str:
        """Return this as the value of a member's key."""
        return json.dumps({**self._asdict(), "dpids": sorted(self.dpids)})


def read_present(text: str) -> Present | None:
    """Return what a member's key says; None where it makes no sense."""
    try:
        found = read_object(text)
        known = found["member"], found["incarnation"], found["peer"], found["switches"]
        dpids = frozenset(found.get("dpids", ()))
        present = Present(*known, found.get("records", 1), found.get("metrics", ""), dpids)
    except (ValueError, KeyError, TypeError):
        return None
    kinds = [str, str, str, int, int, str, frozenset]
    return present if list(map(type, present)) == kinds and all(type(dpid) is int for dpid in dpids) else None


def read_epoch(text: str) -> int:
    """Return what the key `epoch` says; 0 where it makes no sense."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
