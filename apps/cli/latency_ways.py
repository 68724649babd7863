"""What `vsrt latency` tells of the ways between switches: hops, and a group's packets from senders to members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apps.cli.called import SnapshotNames
from apps.cli.common import InputError, emit_table
from controller.profiles.hops import TreeWay, tree_way
from controller.snapshot.reader import Document, Snapshot

MOST_WAYS = 1000
"""Pairs of senders and receivers of a group that are told of at most."""

HOP_TITLES = ("FROM", "TO", "FRAMES", "FRAME MS", "TO SWITCH", "HOP", "FROM SWITCH")
WAY_TITLES = ("SENDER AT", "RECEIVER AT", "JOIN MS", "HOPS MS", "WHOLE MS", "HOP BY HOP")

Record = Mapping[str, Any]


def named_hops(hops: Sequence[Record], called: SnapshotNames, dpid: int | None) -> list[dict[str, Any]]:
    """Return hops with what their ends are called, those at one switch where it is named."""
    return [
        {
            "from": called.label(hop["dpid_a"], hop["port_a"]),
            "to": called.label(hop["dpid_b"], hop["port_b"]),
            **hop,
        }
        for hop in hops
        if dpid is None or dpid in (hop["dpid_a"], hop["dpid_b"])
    ]


def print_hops(hops: Sequence[Record], *, are_all: bool) -> None:
    """Print the hops, or what they take in one line."""
    if not hops:
        print("no hop between switches was timed: discovery sends each port a frame every discovery.lldp_interval_s")
        return
    if are_all:
        names = ("from", "to", "frames", "frame_ms", "to_ms", "hop_ms", "from_ms")
        emit_table(HOP_TITLES, [tuple(_cell(hop[name]) for name in names) for hop in hops])
        return
    in_order = sorted(hops, key=lambda hop: float(hop["hop_ms"]))
    middle, longest = in_order[len(in_order) // 2], in_order[-1]
    print(
        f"{len(hops):,} hops between switches took {middle['hop_ms']:.3f} ms at the median; the longest "
        f"{longest['hop_ms']:.3f} ms, from {longest['from']} to {longest['to']} (--hops lists them)"
    )


def known_group(group: str, snapshot: Snapshot) -> Document:
    """Return what is told of a group; InputError where there is none."""
    document = snapshot.section("groups").documents.get(group)
    if document is None:
        raise InputError(f"--group: there is no group {group}")
    return document


def ways_of(
    group: str, snapshot: Snapshot, hops: Sequence[Record], switches: Sequence[Record], called: SnapshotNames
) -> list[dict[str, Any]]:
    """Return the ways of a group's packets; InputError where the group is gone."""
    document = known_group(group, snapshot)
    hops_ms: dict[tuple[int, int], float] = {}
    for hop in hops:
        ends = (hop["dpid_a"], hop["dpid_b"])
        hops_ms[ends] = max(hop["hop_ms"], hops_ms.get(ends, 0.0))
    joins_ms = {each["dpid"]: each["way"]["whole"] for each in switches if each.get("way")}
    links = [(link[0], link[1]) for link in document.fields.get("links") or ()]
    return list(_ways(document.fields, links, hops_ms, joins_ms, called))


def _ways(
    fields: Record,
    links: Sequence[tuple[int, int]],
    hops_ms: Mapping[tuple[int, int], float],
    joins_ms: Mapping[int, float],
    called: SnapshotNames,
) -> Iterator[dict[str, Any]]:
    senders = {(each["dpid"], each["port_no"]) for each in fields.get("senders") or () if each.get("admitted")}
    members = [*(fields.get("members") or ()), *(fields.get("static_members") or ())]
    receivers = {(each["dpid"], each["port_no"]) for each in members}
    pairs = [(one, other) for one in sorted(senders) for other in sorted(receivers) if one != other]
    for sender, receiver in pairs[:MOST_WAYS]:
        way = tree_way(links, sender[0], receiver[0], hops_ms)
        join_ms = joins_ms.get(receiver[0])
        hops_ms_sum = None if way is None else way.total_ms
        yield {
            "sender": called.label(*sender),
            "receiver": called.label(*receiver),
            "is_joined": way is not None,
            "join_ms": join_ms,
            "hops": [] if way is None else _hops(way, called),
            "hops_ms": None if hops_ms_sum is None else round(hops_ms_sum, 6),
            "whole_ms": None if join_ms is None or hops_ms_sum is None else round(join_ms + hops_ms_sum, 6),
        }


def _hops(way: TreeWay, called: SnapshotNames) -> list[dict[str, Any]]:
    return [{"from": called.label(one), "to": called.label(other), "hop_ms": took} for one, other, took in way.hops]


def print_ways(group: str, ways: Sequence[Record]) -> None:
    """Print the ways of a group's packets."""
    if not ways:
        print(f"{group} has no sender that is admitted, or no receiver elsewhere")
        return
    rows = [
        (
            way["sender"],
            way["receiver"],
            _cell(way["join_ms"]),
            _cell(way["hops_ms"]),
            _cell(way["whole_ms"]),
            _hop_by_hop(way),
        )
        for way in ways
    ]
    emit_table(WAY_TITLES, rows)


def _hop_by_hop(way: Record) -> str:
    if not way["is_joined"]:
        return "the tree does not join them"
    return " + ".join(f"{hop['from']}>{hop['to']} {_cell(hop['hop_ms'])}" for hop in way["hops"]) or "the same switch"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
