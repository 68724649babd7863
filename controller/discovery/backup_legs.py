"""Hosts that use one leg of a link aggregation group at a time: which one, by where their frames come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from controller.config.policy import LinkAggregation
from controller.discovery.ports import PortState
from controller.kernel.ports import End

ACTIVE_BACKUP = "active-backup"
"""The mode of such groups."""

CHANGE_INTERVAL_S = 0.2
"""A group has another active leg no sooner after it had one, but for one that is lost."""


class BackupLegsOwner(Protocol):
    """What the core around has done."""

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count something, and tell of it now and then."""

    def role_may_differ(self, port: PortState, now: float) -> None:
        """Announce the role of a port, if it has changed."""


class BackupLegs:
    """Keeps one leg of each group in mode `active-backup` in use; `ports` are kept by the owner, `legs` are theirs.

    The first leg that comes up is the active one, and so is any at which a frame of a host arrives: a host sends by
    its active leg alone. Where the active leg is lost the next one that is up is taken to be it, and the hosts there
    are asked (`ask_hosts`), so that one that took yet another is heard.
    """

    def __init__(
        self,
        groups: Iterable[LinkAggregation],
        ports: Mapping[End, PortState],
        owner: BackupLegsOwner,
        ask_hosts: Callable[[End], None],
    ) -> None:
        self.legs: dict[End, tuple[End, ...]] = {}
        self._ports = ports
        self._owner = owner
        self._ask_hosts = ask_hosts
        self._names: dict[End, str] = {}
        self._changed_s: dict[End, float] = {}
        self._read(groups)

    def use(self, groups: Iterable[LinkAggregation], now: float) -> None:
        """Go by other groups: ports of which other things are said begin anew."""
        before = dict(self.legs)
        self._read(groups)
        for end in sorted(before.keys() | self.legs.keys()):
            port = self._ports.get(end)
            if port is None or before.get(end) == self.legs.get(end):
                continue
            self._bundle(port, end not in self.legs, now)
        for end in sorted(self.legs.keys()):
            if end in self._ports:
                self.follow(self._ports[end], now)

    def able(self, end: End) -> list[End]:
        """Return the legs of a port's group that are up, whichever is active; none where its group is no such one."""
        return [leg for leg in self.legs.get(end, ()) if self._is_able(leg)]

    def follow(self, port: PortState, now: float) -> None:
        """Have a leg that came up be the active one where none is."""
        end = port.end
        if end in self.legs and not port.is_bundled and self._is_able(end) and not self._has_active(end):
            self._bundle(port, True, now)

    def lost(self, port: PortState, now: float) -> None:
        """Have another leg be active in place of one that leads to hosts no more, if there is one that is up."""
        if port.end not in self.legs or not port.is_bundled or self._is_able(port.end):
            return
        port.is_bundled = False
        self._replace(self.able(port.end), now)

    def switch_lost(self, dpid: int, now: float) -> None:
        """Have legs at other switches be active in place of those at one that is gone."""
        for end in [end for end in self.legs if end[0] == dpid]:
            if end in self._ports and self._ports[end].is_bundled:
                self._replace([leg for leg in self.able(end) if leg[0] != dpid], now)

    def heard(self, port: PortState, now: float) -> bool:
        """Have the leg be active where a host's frame arrived; tell whether it is one that was not."""
        end = port.end
        if end not in self.legs or port.is_bundled or not self._is_able(end):
            return False
        home = self.legs[end][0]
        if home in self._changed_s and now < self._changed_s[home] + CHANGE_INTERVAL_S:
            return False
        self._activate(port, now)
        return True

    def _replace(self, legs: list[End], now: float) -> None:
        """Have the first of these legs be active, and its hosts asked."""
        if legs:
            self._activate(self._ports[legs[0]], now)
            self._ask_hosts(self.legs[legs[0]][0])

    def _activate(self, port: PortState, now: float) -> None:
        """Use a leg, and then no other one any more."""
        legs = self.legs[port.end]
        self._changed_s[legs[0]] = now
        self._bundle(port, True, now)
        for leg in legs:
            other = self._ports.get(leg)
            if other is not None and leg != port.end:
                self._bundle(other, False, now)
        text = f"is the active leg of the link aggregation group {self._names[legs[0]]} now"
        self._owner.counted("aggregation-leg-active", port.end, text, now)

    def _bundle(self, port: PortState, is_bundled: bool, now: float) -> None:
        if port.is_bundled is not is_bundled:
            port.is_bundled = is_bundled
            self._owner.role_may_differ(port, now)

    def _is_able(self, end: End) -> bool:
        port = self._ports.get(end)
        return port is not None and port.up and not port.held and not port.is_barred and not port.peers()

    def _has_active(self, end: End) -> bool:
        return any(self._ports[leg].is_bundled for leg in self.able(end))

    def _read(self, groups: Iterable[LinkAggregation]) -> None:
        self.legs.clear()
        for group in groups:
            if group.mode == ACTIVE_BACKUP:
                legs = tuple([(port.dpid, port.port_no) for port in group.ports])
                self.legs.update(dict.fromkeys(legs, legs))
                self._names[legs[0]] = group.name
        homes = {legs[0] for legs in self.legs.values()}
        self._names = {home: name for home, name in self._names.items() if home in homes}
        self._changed_s = {home: at_s for home, at_s in self._changed_s.items() if home in homes}
