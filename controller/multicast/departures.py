"""Groups on their way out of tables, until all switches have confirmed that they hold nothing more of them there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from controller.multicast.group import Group
from controller.multicast.groups import GroupPlane
from controller.rules.compile import tree_version_of
from controller.rules.compile_shared import shares
from controller.rules.installer import Installer
from controller.rules.model import FlowKey

LOOK_AGAIN_S = 0.01
"""How soon it is looked again whether switches have confirmed that a group has left."""

PATIENCE_S = 30.0
"""How long it is awaited that they do."""

CACHED_S = 15.0
"""For how long a switch that goes by a cache of its entries may remember that it had none for a group's packets: Open
vSwitch forgets in 10 s what no packet asked for."""

RETURN_PAUSE_S = 0.05
"""How much later than it confirms an entry such a switch goes by it."""


@dataclass(slots=True)
class _Departure:
    """A group on its way out: its entries by table, and the keys that switches are to confirm as gone."""

    group: Group
    entries: Mapping[int, int]
    keys: set[tuple[int, FlowKey]]
    due_s: float
    give_up_s: float


class Departures:
    """Who is on the way out of which tables, `departing` by name; `leaving` counts their entries by table."""

    def __init__(self, plane: GroupPlane, installer: Installer) -> None:
        self.leaving: Counter[int] = Counter()
        self._plane = plane
        self._installer = installer
        self.departing: dict[bytes, _Departure] = {}
        self._left_s: dict[bytes, float] = {}

    def __contains__(self, address: bytes) -> bool:
        return address in self.departing

    def begin(self, group: Group, entries: Mapping[int, int], keys: set[tuple[int, FlowKey]], now: float) -> None:
        """Follow a group whose entries have these keys and are to be removed."""
        former = self.departing.pop(group.address, None)
        if former is not None:
            self.leaving.subtract(former.entries)
            keys, entries = keys | former.keys, Counter(entries) + Counter(former.entries)
        if keys:
            self.departing[group.address] = _Departure(group, entries, keys, now, now + PATIENCE_S)
            self.leaving.update(entries)

    def pause_s(self, address: bytes, now: float) -> float:
        """Return how long the senders' entries of a group that comes in are to wait when the rest is confirmed."""
        left_s = self._left_s.get(address)
        return 0.0 if left_s is None or now > left_s + CACHED_S else RETURN_PAUSE_S

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is due next, None where nobody leaves."""
        return min((each.due_s for each in self.departing.values()), default=None)

    def on_deadline(self, now: float) -> list[bytes]:
        """Return the groups that have left by now."""
        due = [(address, each) for address, each in self.departing.items() if each.due_s <= now]
        return [address for address, each in due if self._has_left(address, each, now)]

    def _has_left(self, address: bytes, departure: _Departure, now: float) -> bool:
        """Tell whether switches have confirmed that a group has left, or have had time enough."""
        graph, confirmed = self._plane.forest.graph, self._installer.is_confirmed
        left = {(dpid, key) for dpid, key in departure.keys if dpid in graph and not confirmed(dpid, key)}
        if left and now < departure.give_up_s:
            departure.keys, departure.due_s = left, now + LOOK_AGAIN_S
            return False
        del self.departing[address]
        self._note_left(address, now)
        self.leaving.subtract(departure.entries)
        if left and departure.group.is_out:
            self._move_on(departure.group, left)
        return True

    def _note_left(self, address: bytes, now: float) -> None:
        left_s = self._left_s
        left_s.pop(address, None)
        left_s[address] = now
        while now > left_s[oldest := next(iter(left_s))] + CACHED_S:
            del left_s[oldest]

    def _move_on(self, group: Group, left: set[tuple[int, FlowKey]]) -> None:
        """Have a group come in under another version, for a switch may still hold entries of this one."""
        olds = group.old_versions = group.old_versions or {}
        for dpid, key in left:
            if key.match.ip_dst is None:  # shared with groups of any version
                continue
            olds.setdefault(tree_version_of(key.match), set()).add((dpid, key))
        version = self._plane.transitions.free_version(group, shares(group.tree_version))
        if version is not None:
            group.tree_version = version
