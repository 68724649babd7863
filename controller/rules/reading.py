"""What flow statistics say of an app's entries on a switch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from controller.datapath.lanes import Urgency
from controller.rules.model import Key
from controller.rules.notices import Notices
from controller.rules.openflow import FlowStats, ResourceDescriptions
from controller.rules.switch_state import READ_ENTRIES_BOUND, FlowDump, OwnerState

Withholds: TypeAlias = Callable[[int, Sequence[Key]], Collection[Key]]
"""Tells of a switch and the keys of which it holds something else than it shall which are not sent yet."""


def take_stats(reading: FlowDump, stats: FlowStats, state: OwnerState, notices: Notices, now: float) -> None:
    """Add a reply to a reading, which is `faulty` from then on where that makes no sense.

    Entries that end by themselves and those of other apps do not count.
    """
    dpid = state.dpid
    if stats.fault is not None:
        reading.faulty = True
        text = f"Flow statistics of switch {dpid} are malformed and not used: {stats.fault}."
        notices.give("read-faulty", dpid, text, now)
    foreign = reading.take(stats.entries, state.owner.app_tag, READ_ENTRIES_BOUND)
    if foreign:
        text = f"Switch {dpid} holds {foreign} flow entries with the cookie of this app that it cannot have made."
        notices.give("foreign-entry", dpid, text, now)
    _bound(reading, dpid, notices, now)


def take_resources(
    reading: FlowDump, told: ResourceDescriptions, state: OwnerState, notices: Notices, now: float
) -> None:
    """Add a reply that tells groups or meters to a reading, as `take_stats` does."""
    if told.fault is not None:
        reading.faulty = True
        text = f"What switch {state.dpid} tells of groups and meters is malformed and not used: {told.fault}."
        notices.give("read-faulty", state.dpid, text, now)
    reading.take_resources(told.entries, state.owner.app_tag, READ_ENTRIES_BOUND)
    _bound(reading, state.dpid, notices, now)


def compare(state: OwnerState, hold_unknown: bool | Callable[[Key], bool], withholds: Withholds | None) -> None:
    """Have the difference sent between what a switch has told and what it shall hold: puts, then removals.

    With `hold_unknown` what nobody desires stays, or that of whose keys it is true, but for what was to be removed
    already. What the app `withholds` is not sent.
    """
    if state.resources is not None:
        state.recount()
        for key, (_, urgency) in state.resources.held.items():
            state.lanes.add(key, urgency)
        state.resources.release_all()
    installed, asked, lanes = state.installed, state.lanes.keys(), state.lanes
    for key in state.timed:
        lanes.add(key, Urgency.PROMPT)
    targets = state.targets()
    differing = [key for key, value in targets.items() if value is not None and installed.get(key) != value]
    if differing and withholds is not None and (withheld := withholds(state.dpid, differing)):
        differing = [key for key in differing if key not in withheld]
    differing += (*state.waiters, *state.failures)
    unknown = [key for key in installed if targets.get(key) is None]
    if callable(hold_unknown):
        unknown = [key for key in unknown if key in asked or not hold_unknown(key)]
    elif hold_unknown:
        unknown = [key for key in unknown if key in asked]
    differing += unknown
    lanes.set_bulk(differing)
    state.full.clear()


def _bound(reading: FlowDump, dpid: int, notices: Notices, now: float) -> None:
    if len(reading.entries) > READ_ENTRIES_BOUND and not reading.faulty:
        reading.faulty = True
        text = f"Switch {dpid} reports more than {READ_ENTRIES_BOUND} flow entries: they are not compared."
        notices.give("read-faulty", dpid, text, now)
