"""What can be seen of an installer's switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import cast

from controller.datapath.core import DatapathCore
from controller.datapath.xids import Xids
from controller.rules.model import Entry, FlowEntry, FlowKey, GroupEntry, Key, Output, Resource, ResourceKey
from controller.rules.plans import PlanQueue
from controller.rules.switch_state import OwnerState

PROMPT_S = 0.5
"""A switch that has owed a barrier's answer for longer is not one to wait for."""


class Inspection:
    """Questions about the switches of an `Installer`, which is one."""

    _switches: dict[int, OwnerState]
    _datapath: DatapathCore
    _xids: Xids
    _plans: PlanQueue

    def desired(self, dpid: int) -> Mapping[FlowKey, FlowEntry]:
        """Return the flow entries that a switch shall hold in the end."""
        state = self._switches.get(dpid)
        return MappingProxyType(_rules(state, state.desired) if state is not None else {})

    def installed(self, dpid: int) -> Mapping[FlowKey, FlowEntry]:
        """Return the flow entries that a switch has confirmed to hold, or last did before its connection ended."""
        state = self._switches.get(dpid)
        return MappingProxyType(_rules(state, state.installed) if state is not None else {})

    def resources_desired(self, dpid: int) -> dict[ResourceKey, Resource]:
        """Return the groups and meters that a switch shall hold in the end."""
        state = self._switches.get(dpid)
        return _resources(state.desired) if state is not None else {}

    def resources_installed(self, dpid: int) -> dict[ResourceKey, Resource]:
        """Return the groups and meters that a switch has confirmed to hold, or did before its connection ended."""
        state = self._switches.get(dpid)
        return _resources(state.installed) if state is not None else {}

    def namers(self, dpid: int, resource: ResourceKey) -> list[Key]:
        """Return the entries that are to name a group or meter at a switch."""
        state = self._switches.get(dpid)
        return [] if state is None or state.resources is None else state.resources.desired.of(resource)

    @property
    def plan_count(self) -> int:
        """How many plans have stages that wait."""
        return self._plans.count

    def is_confirmed(self, dpid: int, key: Key) -> bool:
        """Tell whether a switch is known to hold what it shall under a key; without a connection, held at its end."""
        state = self._switches.get(dpid)
        if state is None:
            return True
        if key in state.turns:
            return False
        return state.is_settled(key) if state.connected else state.installed.get(key) == state.target(key)

    def is_refused(self, dpid: int, key: Key) -> bool:
        """Tell whether a switch refused what it shall hold under a key, or had no room for it."""
        state = self._switches.get(dpid)
        return state is not None and (key in state.failures or key in state.full)

    def may_hold(self, dpid: int, key: Key) -> bool:
        """Tell whether a switch may hold an entry under a key: it did, is being sent one, or has yet to tell."""
        state = self._switches.get(dpid)
        if state is None:
            return False
        under_way = state.batch is not None and state.batch.edits.get(key) is not None
        return under_way or key in state.installed or state.reading is not None

    def is_open(self, dpid: int) -> bool:
        """Tell whether a switch is connected and ours to write: one whose slave we are, or may be, is not."""
        state = self._switches.get(dpid)
        return state is not None and state.connected

    def is_read(self, dpid: int) -> bool:
        """Tell whether a switch is connected and has told what it holds."""
        state = self._switches.get(dpid)
        return state is not None and state.connected and state.reading is None

    def answers(self, dpid: int, now: float) -> bool:
        """Tell whether a switch can be expected to confirm edits soon: it was read, and owes no answer for long."""
        sent_s = self._datapath.barriers.started(dpid)
        return self.is_read(dpid) and (sent_s is None or now - sent_s <= PROMPT_S)

    def may_send(self, dpid: int, port_no: int) -> bool:
        """Tell whether a switch may still send to a port by an entry that is to do so no more, as far as is known."""
        state = self._switches.get(dpid)
        if state is None:
            return False
        if state.reading is not None:
            return True
        under_way = state.batch.edits if state.batch is not None else {}
        installed = state.installed
        waiting = {*under_way, *state.lanes.keys(), *state.full, *state.failures, *state.held_back()}
        keys = waiting if state.connected else installed
        output = Output(port_no)

        def sends(entry: Entry | None) -> bool:
            if isinstance(entry, GroupEntry):
                return any(output in bucket.actions for bucket in entry.buckets)
            if not isinstance(entry, FlowEntry):
                return False
            if output in entry.actions:
                return True
            return state.resources is not None and any(
                sends(installed.get(resource)) for resource in state.resources.named_by(entry)
            )

        return any(
            (sends(installed.get(key)) or sends(under_way.get(key))) and not sends(state.target(key)) for key in keys
        )

    def unknown(self, dpid: int) -> dict[FlowKey, FlowEntry]:
        """Return the entries that a switch holds and nobody desires."""
        state = self._switches.get(dpid)
        if state is None:
            return {}
        return {key: rule for key, rule in _rules(state, state.installed).items() if key not in state.desired}

    def pending(self, dpid: int) -> int:
        """Return how many edits of a switch are not confirmed: to be sent, under way, refused or waiting."""
        state = self._switches.get(dpid)
        if state is None:
            return 0
        under_way = len(state.batch.edits) if state.batch is not None else 0
        waiting = state.lanes.keys() | state.full.keys() | state.failures.keys() | state.turns.keys()
        return under_way + len(waiting | state.held_back())

    def entry_counts(self) -> Iterator[tuple[int, int, int]]:
        """Yield per connected switch its dpid, how many entries it has confirmed, and how many wait for room."""
        for dpid, state in self._switches.items():
            if state.connected:
                yield dpid, len(_rules(state, state.installed)), len(state.full)

    def by_table(self, dpid: int, *, confirmed: bool = False) -> Counter[int]:
        """Return how many entries of all apps together each table of a switch shall hold, or is `confirmed` to."""
        counts: Counter[int] = Counter()
        state = self._switches.get(dpid)
        for part in () if state is None else state.datapath.parts.values():
            entries = part.installed if confirmed else part.desired
            counts.update(key.table for key in entries if isinstance(key, FlowKey))
        return counts

    def desired_counts(self) -> Iterator[tuple[int, int]]:
        """Yield per switch its dpid and how many entries of all apps together it shall hold in all of its tables."""
        for dpid, state in self._switches.items():
            yield dpid, sum(len(part.desired) for part in state.datapath.parts.values())

    def full_switches(self) -> list[int]:
        """Return the switches at which entries of the app wait for room."""
        return [dpid for dpid, state in self._switches.items() if state.full]

    def without_room(self, dpid: int) -> list[FlowKey]:
        """Return the entries of the app that a switch refused for want of room, and that wait for some."""
        state = self._switches.get(dpid)
        return [] if state is None else [key for key in state.full if isinstance(key, FlowKey)]

    def in_sync(self, dpid: int) -> bool:
        """Tell whether a switch is connected and known to hold what it shall, with nothing on the way."""
        state = self._switches.get(dpid)
        return state is not None and state.in_sync()


def _rules(state: OwnerState, entries: dict[Key, Entry]) -> dict[FlowKey, FlowEntry]:
    """Return the flow entries among what an app has at a switch."""
    if state.resources is None:
        return cast("dict[FlowKey, FlowEntry]", entries)
    return {key: entry for key, entry in entries.items() if isinstance(key, FlowKey) and isinstance(entry, FlowEntry)}


def _resources(entries: dict[Key, Entry]) -> dict[ResourceKey, Resource]:
    """Return the groups and meters among what an app has at a switch."""
    return {
        key: entry
        for key, entry in entries.items()
        if not isinstance(key, FlowKey) and not isinstance(entry, FlowEntry)
    }
