"""What the log is to be told: stages say what changed, the journal writes it at leisure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from controller.kernel.ports import Cable, cable_of
from controller.multicast.operator_settings import OperatorSetting
from topology.events import LinkDown, LinkUp, SwitchDown, TopologyEvent

JOURNAL_INTERVAL_S = 0.1
"""How long after a change it is written, with others that came meanwhile."""

CHANGES_BOUND = 65536
"""Switches and links that wait to be written; beyond them the log is written anew."""

SwitchOrLink: TypeAlias = int | Cable
"""A switch or a link, as the log has them."""


class PendingWrites:
    """What changed and is not written yet, each thing once.

    Attributes
    ----------
    due_s
        When it is due to be written, None for never.
    trees, heard, covers, routers, settings, records, campaign, topology
        Groups by name whose trees may be others, groups and switches where others may be known of them, the numbers
        of covering trees, VLANs with other routers, what operators set, of which some by its key, the campaign (0)
        and its switches, and switches and links.
    is_lost
        Whether all is to be written anew.
    """

    def __init__(self) -> None:
        self.due_s: float | None = None
        self.settings: dict[OperatorSetting, None] = {}
        self.topology: dict[SwitchOrLink, None] = {}
        self.trees: dict[bytes, None] = {}
        self.heard: dict[tuple[bytes, int], None] = {}
        self.covers: dict[int, None] = {}
        self.routers: dict[int, None] = {}
        self.records: dict[str, None] = {}
        self.campaign: dict[int, None] = {}
        self.is_lost = False
        self._links_at: dict[int, set[Cable]] = {}
        self._watched: set[bytes] | None = None

    def watch(self) -> set[bytes]:
        """Return the groups that wait to be written, to which those are added that change until `unwatch`."""
        self._watched = {*self.trees, *(address for address, _ in self.heard)}
        return self._watched

    def unwatch(self) -> None:
        """Add no more groups."""
        self._watched = None

    def group_changed(self, group: bytes, now: float, dpid: int | None = None) -> None:
        """Note that the tree of a group may have changed, and what is known of the group at a switch."""
        self.trees[group] = None
        if dpid is not None:
            self.heard[group, dpid] = None
        if self._watched is not None:
            self._watched.add(group)
        if self.due_s is None:
            self.due_s = now + JOURNAL_INTERVAL_S

    def topology_changed(self, event: TopologyEvent, now: float) -> None:
        """Note what became of a switch, link or port."""
        if len(self.topology) >= CHANGES_BOUND:
            self.topology.clear()
            self.is_lost = True
        if isinstance(event, LinkUp | LinkDown):
            self._link_changed(cable_of(event), isinstance(event, LinkUp))
        else:
            self.topology[event.dpid] = None
            if isinstance(event, SwitchDown):
                for cable in sorted(self._links_at.get(event.dpid, ())):
                    self._link_changed(cable, False)
        self.soon(now)

    def _link_changed(self, cable: Cable, is_up: bool) -> None:
        self.topology[cable] = None
        for dpid in (cable[0], cable[2]):
            if is_up:
                self._links_at.setdefault(dpid, set()).add(cable)
            elif dpid in self._links_at:
                self._links_at[dpid].discard(cable)
                if not self._links_at[dpid]:
                    del self._links_at[dpid]

    def routers_changed(self, now: float, vlan_id: int = 0) -> None:
        """Note that router ports or queriers of a domain changed."""
        self.routers[vlan_id] = None
        self.soon(now)

    def setting_changed(self, setting: OperatorSetting, now: float) -> None:
        """Note that an operator set something: it is written at once, for the operator waits until it is kept."""
        self.settings[setting] = None
        self.due_s = now

    def record_changed(self, key: str, now: float) -> None:
        """Note that what operators set is otherwise by this key of the log: it is written at once."""
        self.records[key] = None
        self.due_s = now

    def campaign_changed(self, key: int, now: float) -> None:
        """Note that the campaign (0), or a switch of it, is otherwise: it is written at once."""
        self.campaign[key] = None
        self.due_s = now

    def covers_changed(self, numbers: Iterable[int], now: float) -> None:
        """Note that covering trees by these numbers are new, or no more."""
        self.covers.update(dict.fromkeys(numbers))
        self.soon(now)

    def begin_anew(self, now: float) -> None:
        """Have everything written anew, since writes are lost."""
        self.is_lost = True
        self.soon(now)

    def soon(self, now: float) -> None:
        """Have what waits written soon."""
        if self.due_s is None:
            self.due_s = now + JOURNAL_INTERVAL_S
