"""Members of silent groups, who are asked whether they still want these while flow tables are short of room."""

from __future__ import annotations

from itertools import islice

from controller.kernel.domains import address_of, domain_of
from controller.membership.asking import ask_members
from controller.multicast.callbacks import Apply
from controller.multicast.memberships import Memberships
from controller.multicast.registered import RegisteredGroups
from controller.multicast.swapping import Swapping

IDLE_S = 60.0
"""How long a group that is in must have been silent for its members to be asked."""

ASK_INTERVAL_S = 2.0
"""Between two rounds of questions."""

ASKED_AT_ONCE = 8
"""Groups whose members are asked in a round."""

ASK_AGAIN_S = 125.0
"""How long the members of a group are not asked again: RFC 9776, 8.2, asks everybody as often."""


class IdleMembers:
    """Asks the members of groups that are in, silent for long, and have entries in a table that is short of room."""

    def __init__(
        self, swapping: Swapping, memberships: Memberships, registered: RegisteredGroups, apply: Apply
    ) -> None:
        self._swapping = swapping
        self._memberships = memberships
        self._registered = registered
        self._apply = apply
        self._asked_s: dict[bytes, float] = {}
        self._next_s = 0.0

    def next_deadline(self) -> float | None:
        """Return when somebody may have to be asked next, None where no table is short of free entries."""
        return self._next_s if self._swapping.is_used and self._swapping.accounts.tables.short else None

    def on_deadline(self, now: float) -> None:
        """Ask the members of some groups, if any table is short."""
        tables = self._swapping.accounts.tables
        if not self._swapping.is_used or not tables.short or now < self._next_s:
            return
        self._next_s = now + ASK_INTERVAL_S
        self._asked_s = {name: at_s for name, at_s in self._asked_s.items() if now - at_s < ASK_AGAIN_S}
        idle = (name for name in tables.residence.idle(now - IDLE_S) if name not in self._asked_s)
        for name in list(islice((name for name in idle if tables.is_in_short(name)), ASKED_AT_ONCE)):
            self._asked_s[name] = now
            self._swapping.counters["groups-asked"] += 1
            for asked_for in self._registered.asked_for_as(name):
                vlan_id = domain_of(asked_for)
                if self._memberships.is_known(vlan_id):
                    effects = ask_members(self._memberships.of(vlan_id), address_of(asked_for), now)
                    self._apply(effects, now, vlan_id=vlan_id)
