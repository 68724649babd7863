"""Who sends the queries of a family, and when: startup, election, takeover (RFC 9776, 6.6; RFC 9777, 7.6)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from controller.effects import Notice
from controller.membership.events import HostRef, MembershipEffect, QuerierStatus, RouterVerdict, SendQuery
from controller.membership.limits import MembershipTally
from controller.membership.settings import MembershipSettings, Timing, timing
from controller.membership.tables import MemberPort
from controller.membership.timers import TimedState, TimerQueue
from controller.wire.addresses import format_ip

FAMILIES = (4, 6)
FIRST_RESPONSE_S = 1.0
"""Time for the hosts at a new port to answer the first query: few enough to answer at once."""

TAKEOVER_SPREAD_S = 1.0
"""All ports are queried within this time after another querier has fallen silent."""

_MASK = (1 << 64) - 1


def port_phase(dpid: int, port_no: int, family: int) -> float:
    """Return a fixed pseudo-random number of [0, 1) for a port and family (one round of SplitMix64)."""
    x = (dpid * 0x9E3779B97F4A7C15 + port_no * 0xD1B54A32D192ED03 + family) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((x ^ (x >> 31)) >> 11) / (1 << 53)


class OtherQuerier(NamedTuple):
    """The elected querier that is not us, where it was last heard, and the values that it announced (0: none).

    `version` is that of its queries, 0 where none was heard since a restart.
    """

    address: bytes
    mac: bytes
    dpid: int
    port_no: int
    robustness: int
    query_interval_s: float
    version: int = 0


class Election(TimedState):
    """An election that another router won in its fabric; `until` is the end of the other querier present timer."""

    __slots__ = ("family", "other", "timing", "until")

    def __init__(self, family: int, other: OtherQuerier, values: Timing, until: float) -> None:
        super().__init__()
        self.family = family
        self.other = other
        self.timing = values
        self.until = until

    def due_at(self) -> float:
        """Return when the other querier is given up."""
        return self.until


class GeneralQueries(TimedState):
    """The schedule of general queries of a family at a port."""

    __slots__ = ("at", "family", "phase", "port", "startup_left")

    def __init__(self, port: MemberPort, family: int) -> None:
        super().__init__()
        self.port = port
        self.family = family
        self.phase = port_phase(port.dpid, port.port_no, family)
        self.startup_left = 0
        self.at = inf

    def due_at(self) -> float:
        """Return when the next one is to be sent."""
        return self.at


class Queriers:
    """The querier of each family and fabric, which is one segment to its hosts.

    Elections that others won are few, so that one is found by whether its querier's switch and another are in one
    fabric: `is_one_fabric` tells it of two datapath ids. Wherever there is none the querier is this controller.
    """

    def __init__(
        self,
        settings: MembershipSettings,
        timers: TimerQueue,
        tally: MembershipTally,
        is_one_fabric: Callable[[int, int], bool] = lambda _dpid, _other: True,
    ) -> None:
        self.settings = settings
        self._timers = timers
        self._tally = tally
        self._is_one_fabric = is_one_fabric
        self._own = timing(settings)
        self._lost: dict[int, list[Election]] = {family: [] for family in FAMILIES}
        self._general: dict[tuple[int, int, int], GeneralQueries] = {}

    def election(self, family: int, dpid: int | None = None) -> Election | None:
        """Return the election that another router won in a switch's fabric (None: in any), None where none did."""
        found = None
        for election in self._lost[family]:
            if (dpid is None or self._is_one_fabric(dpid, election.other.dpid)) and (
                found is None or election.other.address < found.other.address
            ):
                found = election
        return found

    def elections(self, family: int) -> list[Election]:
        """Return the elections that other routers won, one in a fabric."""
        return list(self._lost[family])

    def timing(self, family: int, dpid: int) -> Timing:
        """Return the timer values in force in a switch's fabric."""
        if not self._lost[family]:
            return self._own
        election = self.election(family, dpid)
        return self._own if election is None else election.timing

    def is_querier(self, family: int, dpid: int) -> bool:
        """Tell whether it is ours to send queries in a switch's fabric."""
        return self.settings.querier and (not self._lost[family] or self.election(family, dpid) is None)

    def status(self, family: int, dpid: int | None = None) -> QuerierStatus:
        """Describe the querier in a switch's fabric for inspection, None: in the one where another router is."""
        election = self.election(family, dpid)
        if election is None:
            values, is_ours = self._own, self.settings.querier
            version = self.settings.version(family) if is_ours else None
            nowhere = (None, None, None, None, None)
            return QuerierStatus(family, is_ours, *nowhere, values.robustness, values.query_interval_s, version)
        values, other = election.timing, election.other
        place = (other.address, other.mac, other.dpid, other.port_no, election.until)
        return QuerierStatus(family, False, *place, values.robustness, values.query_interval_s, other.version or None)

    def fabrics_changed(self, now: float) -> None:
        """Follow links that joined fabrics or whose loss cut one in two.

        Of two queriers that are in one fabric now the one with the lower address stays. Where the controller is the
        querier now and was not it asks soon, where it is not any more it asks no more.
        """
        for family, elections in self._lost.items():
            if not elections:
                continue
            for election in [one for one in elections if self.election(family, one.other.dpid) is not one]:
                self._end(election)
            for general in self._general.values():
                if general.family == family:
                    self._bring_in_line(general, now)

    def port_added(
        self, port: MemberPort, now: float, effects: list[MembershipEffect], repeat_s: float | None = None
    ) -> None:
        """Begin the queries of an edge port, the first at once and, with `repeat_s`, again after so many seconds.

        None are sent where another router asks.
        """
        for family in FAMILIES:
            general = GeneralQueries(port, family)
            self._general[port.dpid, port.port_no, family] = general
            if self.is_querier(family, port.dpid):
                general.startup_left = self.settings.startup_query_count
                general.at = now
                self.fire_general(general, now, effects)
                if repeat_s is not None:
                    general.startup_left = self.settings.startup_query_count
                    general.at = now + repeat_s
                    self._timers.arm(general, general.at)

    def port_removed(self, port: MemberPort, now: float, effects: list[MembershipEffect]) -> None:
        """Stop the queries of a port; a querier behind it is gone, so that its timer is not awaited."""
        for family in FAMILIES:
            general = self._general.pop((port.dpid, port.port_no, family), None)
            if general is not None:
                self._timers.cancel(general)
            for election in self.elections(family):
                if (election.other.dpid, election.other.port_no) == (port.dpid, port.port_no):
                    self._take_over(election, now, effects)

    def heard(
        self,
        port: MemberPort,
        family: int,
        other: OtherQuerier,
        now: float,
        effects: list[MembershipEffect],
    ) -> bool:
        """Let the sender of a query bid in the election; tell whether it is the querier now."""
        election = self.election(family, port.dpid)
        present = None if election is None else election.other
        if not self.yields_to(family, other.address) or (present is not None and other.address > present.address):
            self._tally.count("query-of-election-loser")
            return False
        self.elect(family, other, None, now)
        if present is None or present.address != other.address:
            text = (
                f"leads to the querier of IPv{family} now, {format_ip(other.address)}: the controller does not query"
            )
            self._tally.warn(port, "querier-changed", text, now, effects)
        if other.version < self.settings.version(family):
            does = "leads to a querier of an older version than is set: hosts report in that version"
            self._tally.warn(port, "querier-version", does, now, effects)
        return True

    def elect(self, family: int, other: OtherQuerier, remaining_s: float | None, now: float) -> None:
        """Make another router the querier in its fabric, for as long as its values say or a journal left of it."""
        values = timing(self.settings, other.robustness, other.query_interval_s)
        longest_s = values.other_querier_s
        until = now + (longest_s if remaining_s is None else min(remaining_s, longest_s))
        election = self.election(family, other.dpid)
        if election is None:
            election = Election(family, other, values, until)
            self._lost[family].append(election)
            for general in self._general.values():
                if general.family == family:
                    self._bring_in_line(general, now)
        else:
            election.other, election.timing, election.until = other, values, until
        self._timers.arm(election, until)

    def forget(self, election: Election) -> None:
        """Know of a querier no more, and have nobody ask in its place yet."""
        self._end(election)

    def reconsider(
        self, judge: Callable[[HostRef], RouterVerdict], now: float, effects: list[MembershipEffect]
    ) -> None:
        """Take over from a querier that is refused now."""
        for family in FAMILIES:
            for election in self.elections(family):
                other = election.other
                if not judge(HostRef(other.mac, other.address, other.dpid, other.port_no)).admit:
                    self._take_over(election, now, effects)

    def ask(self, dpid: int, port_no: int, family: int, now: float, effects: list[MembershipEffect]) -> None:
        """Begin the queries of a port anew, the first at once, unless another router asks."""
        general = self._general.get((dpid, port_no, family))
        if general is not None and self.is_querier(family, dpid):
            general.startup_left = self.settings.startup_query_count
            general.at = now
            self.fire_general(general, now, effects)

    def fire_election(self, election: Election, now: float, effects: list[MembershipEffect]) -> None:
        """Take over from a querier that has fallen silent."""
        self._take_over(election, now, effects)

    def fire_general(self, general: GeneralQueries, now: float, effects: list[MembershipEffect]) -> None:
        """Send a port's general query and schedule the next.

        The first asks for answers within `FIRST_RESPONSE_S`: hosts need not notice that their cable was out, and then
        say nothing unasked.

        The startup intervals and the first regular one are shortened by the port's phase to half at the least, which
        spreads ports that were added together over half an interval.
        """
        settings = self.settings
        values = self.timing(general.family, general.port.dpid)
        response_s = settings.response_interval_s
        if general.startup_left > 0:
            if general.startup_left == settings.startup_query_count:
                response_s = min(response_s, FIRST_RESPONSE_S)
            general.startup_left -= 1
            interval = settings.startup_query_interval_s if general.startup_left else settings.query_interval_s
            general.at = now + interval * (0.5 + general.phase / 2)
        else:
            missed = general.at + settings.query_interval_s <= now
            general.at = (now if missed else general.at) + settings.query_interval_s
        self._timers.arm(general, general.at)
        effects.append(
            SendQuery(
                general.port.dpid,
                general.port.port_no,
                general.family,
                settings.version(general.family),
                None,
                (),
                response_s,
                False,
                values.robustness,
                values.query_interval_s,
            )
        )

    def set_settings(self, settings: MembershipSettings, now: float) -> None:
        """Take over new settings: values, our bid in the elections, and the time of the next queries."""
        self.settings = settings
        self._own = timing(settings)
        for family in FAMILIES:
            for election in self.elections(family):
                other = election.other
                if not self.yields_to(family, other.address):
                    self._end(election)
                election.timing = timing(settings, other.robustness, other.query_interval_s)
        for general in self._general.values():
            self._bring_in_line(general, now)
            if general.at != inf and general.at > now + settings.query_interval_s:
                general.at = now + settings.query_interval_s
                self._timers.arm(general, general.at)

    def yields_to(self, family: int, address: bytes) -> bool:
        """Tell whether an address wins the election against ours (RFC 9776, 6.6.2; 0.0.0.0 never wins: RFC 4541)."""
        own = self.settings.query_address(family)
        return not self.settings.querier or not any(own) or address < own

    def _bring_in_line(self, general: GeneralQueries, now: float) -> None:
        """Have a port asked soon where that is ours and was not, or no more where it is not."""
        if not self.is_querier(general.family, general.port.dpid):
            general.at = inf
        elif general.at == inf:
            general.startup_left = 0
            general.at = now + general.phase * TAKEOVER_SPREAD_S
            self._timers.arm(general, general.at)

    def _end(self, election: Election) -> None:
        """Forget an election, without what follows."""
        self._lost[election.family].remove(election)
        self._timers.cancel(election)

    def _take_over(self, election: Election, now: float, effects: list[MembershipEffect]) -> None:
        self._end(election)
        self._tally.count("querier-changed")
        queries = "queries again" if self.settings.querier else "does not query either, as it is set"
        text = f"The other querier of IPv{election.family} is gone: the controller {queries}."
        effects.append(Notice("membership-querier-changed", text, (("family", election.family),)))
        for general in self._general.values():
            if general.family == election.family:
                self._bring_in_line(general, now)
