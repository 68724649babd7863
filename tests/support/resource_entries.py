"""Groups, meters and entries that name them, as edits for a switch."""

from __future__ import annotations

from controller.rules.model import (
    Bucket,
    FlowEntry,
    FlowKey,
    GroupEntry,
    GroupKey,
    GroupType,
    Match,
    Meter,
    MeterEntry,
    MeterKey,
    Output,
    ToGroup,
)

TAG = 0x5602
OWN = 0x56020000


def group(number, *ports):
    buckets = tuple(Bucket((Output(port),), 1) for port in ports)
    return GroupEntry(GroupKey(OWN | number), GroupType.SELECT, buckets)


def meter(number, rate=1000):
    return MeterEntry(MeterKey(2 * 256 + number), rate, 100)


def entry(number, *actions, origin=0):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), tuple(actions), TAG << 48 | origin)


def through(number, group_number=1, *, meter_number=None, origin=0):
    meters = () if meter_number is None else (Meter(2 * 256 + meter_number),)
    return entry(number, *meters, ToGroup(OWN | group_number), origin=origin)


def at(*edits, dpid=2):
    return [(dpid, edit) for edit in edits]
