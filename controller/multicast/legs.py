"""Link aggregation groups: by which leg members get each multicast group, and that none hears itself."""

from __future__ import annotations

from collections.abc import Iterable

from controller.datapath.lanes import Urgency
from controller.kernel.domains import domain_of
from controller.membership.events import FilterMode, Interest
from controller.multicast.callbacks import GroupChanged, Perform
from controller.multicast.flood import FloodPlane
from controller.multicast.flood_schedule import FloodSchedule
from controller.multicast.group import SenderKey
from controller.multicast.registered import RegisteredGroups
from controller.wire.addresses import LINK_SCOPE_BYTES, is_link_scope_group
from topology.aggregations import Place, chosen
from topology.live import LiveFabric


class MemberLegs:
    """Puts what the members at a port want where they get it: at the port, or at one leg of its group.

    A group of addresses stays at its leg while that works, so that a leg that is back costs nobody a packet; then it
    goes to another that works, by a hash, so that groups spread. What hosts behind the legs send themselves is not
    given to them: a switch sends nothing back by the port where it came in, which is true of a port of several legs
    only if nobody there is a receiver of these sources.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        registered: RegisteredGroups,
        flood: FloodPlane,
        flooding: FloodSchedule,
        perform: Perform,
        group_changed: GroupChanged,
    ) -> None:
        self._fabric = fabric
        self._registered = registered
        self._flood = flood
        self._flooding = flooding
        self._perform = perform
        self._group_changed = group_changed
        self._wanted: dict[bytes, dict[Place, Interest]] = {}
        self._placed: dict[tuple[Place, bytes], Place] = {}
        self._own: dict[tuple[Place, bytes], dict[bytes, set[SenderKey]]] = {}

    def home(self, place: Place) -> Place:
        """Return the port that stands for all of a port's group."""
        return self._fabric.aggregations.homes.get(place, place)

    def is_one_port(self, one: Place, other: Place) -> bool:
        """Tell whether two ports are the same, or legs of one group."""
        return self._fabric.is_one_port(one, other)

    def other_legs(self, leg: Place) -> list[Place]:
        """Return the legs of a port's group at switches that are there, but the port itself."""
        fabric = self._fabric
        if leg not in fabric.aggregations.homes:
            return []
        return [at for at in fabric.aggregations.legs(leg) if at != leg and fabric.ofp_version(at[0]) is not None]

    def other_keys(self, key: SenderKey) -> list[SenderKey]:
        """Return a sender by the other legs of its port's group."""
        return [
            key._replace(dpid=dpid, port_no=port_no) for dpid, port_no in self.other_legs((key.dpid, key.port_no))
        ]

    def host_of(self, key: SenderKey) -> SenderKey:
        """Return a sender by the port that stands for all legs, which is one and the same for each of them."""
        dpid, port_no = self.home((key.dpid, key.port_no))
        return key._replace(dpid=dpid, port_no=port_no)

    def members_at(self, group: bytes, dpid: int, ports: Iterable[Place]) -> list[Place]:
        """Return which ports of a switch members are known by, of those `ports` by which they get a group."""
        homes = self._fabric.aggregations.homes
        if not homes:
            return list(ports)
        known = [home for home in self._wanted.get(group, ()) if home[0] == dpid]
        return [place for place in ports if place not in homes] + known

    def switches_of(self, group: bytes) -> set[int]:
        """Return the switches whose ports stand for the groups of ports with members."""
        return {home[0] for home in self._wanted.get(group, ())}

    def serves(self, place: Place, group: bytes) -> bool:
        """Tell whether the members known by a port are given a group where they get it."""
        dpid, port_no = self._placed.get((place, group), place)
        return port_no in self._registered.ports_at(group, dpid)

    def interest_changed(
        self, place: Place, group: bytes, interest: Interest | None, now: float, urgency: Urgency = Urgency.PROMPT
    ) -> None:
        """Follow what the members known by a port want of a group now; None: nothing any more."""
        homes = self._fabric.aggregations.homes
        if place not in homes:
            self._put(place, group, interest, now, urgency)
            return
        home = homes[place]
        if interest is not None:
            self._wanted.setdefault(group, {})[home] = interest
        elif home in self._wanted.get(group, ()):
            del self._wanted[group][home]
            if not self._wanted[group]:
                del self._wanted[group]
        self._place(home, group, now, urgency)

    def changed(self, place: Place, now: float) -> None:
        """Have what goes by a leg that works no more go by another one."""
        home = self.home(place)
        for group in [group for group, homes in self._wanted.items() if home in homes]:
            self._place(home, group, now, Urgency.PROMPT)

    def registrations_changed(self, now: float) -> None:
        """Leave out what hosts behind the same legs send to the groups that members get from now on."""
        homes = {home for home, _ in self._own}
        for group, wanted in list(self._wanted.items()):
            for home in homes.intersection(wanted):
                self._place(home, group, now, Urgency.BULK)

    def sends(self, group: bytes, key: SenderKey, now: float) -> None:
        """Take in that a host behind a leg is to send to a group, before it may."""
        if (key.dpid, key.port_no) not in self._fabric.aggregations.homes:
            return
        entry = (self.home((key.dpid, key.port_no)), group)
        own = self._own.setdefault(entry, {})
        is_new = key.address not in own
        own.setdefault(key.address, set()).add(key)
        if is_new:
            self._own_changed(*entry, now, Urgency.PROMPT)

    def sends_no_more(self, group: bytes, key: SenderKey, now: float) -> None:
        """Take in that a host behind a leg sends to a group no more."""
        entry = (self.home((key.dpid, key.port_no)), group)
        own = self._own.get(entry, {})
        if key not in own.get(key.address, ()):
            return
        own[key.address].remove(key)
        if own[key.address]:
            return
        del own[key.address]
        if not own:
            del self._own[entry]
        self._own_changed(*entry, now, Urgency.BULK)

    def _own_changed(self, home: Place, carrier: bytes, now: float, urgency: Urgency) -> None:
        """Have who is behind a port's legs get what others send to a group, by whichever name it is asked for."""
        for group in self._registered.asked_for_as(carrier):
            if home in self._wanted.get(group, ()):
                self._place(home, group, now, urgency)

    def _place(self, home: Place, group: bytes, now: float, urgency: Urgency) -> None:
        entry = (home, group)
        wanted = self._wanted.get(group, {}).get(home)
        if wanted is not None:
            wanted = _without(wanted, self._own.get((home, self._registered.carrier(group)), ()))
        before = self._placed.get(entry)
        leg = self._leg(home, group, before) if wanted is not None else None
        if leg is not None:
            self._placed[entry] = leg
            self._put(leg, group, wanted, now, urgency)
        elif before is not None:
            del self._placed[entry]
        if before is not None and before != leg:
            self._put(before, group, None, now, urgency)
        if leg is not None or before is not None:
            self._group_changed(group, now, home[0])

    def _leg(self, home: Place, group: bytes, before: Place | None) -> Place | None:
        fabric = self._fabric
        if is_link_scope_group(group):
            return fabric.flooded_leg(home)
        working = fabric.working_legs(home)
        return before if before in working else chosen(group, working)

    def _put(self, place: Place, group: bytes, interest: Interest | None, now: float, urgency: Urgency) -> None:
        if group[0] not in LINK_SCOPE_BYTES or not is_link_scope_group(group):
            dpid, port_no = place
            effects = self._registered.interest_changed(dpid, port_no, group, interest, now, urgency)
            if effects:
                self._perform(effects)
        elif not domain_of(group):
            effects, refresh = self._flood.interest_changed(*place, group, interest is not None, now)
            self._perform(effects)
            if refresh:
                self._flooding.soon(now)


def _without(interest: Interest, sources: Iterable[bytes]) -> Interest | None:
    """Return an interest without some sources, None where nothing is left of it."""
    if interest.mode is FilterMode.EXCLUDE:
        return interest._replace(sources=interest.sources.union(sources))
    left = interest.sources.difference(sources)
    return interest._replace(sources=left) if left else None
