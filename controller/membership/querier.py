"""Who sends the queries of a family, and when: startup, election, takeover (RFC 9776, 6.6; RFC 9777, 7.6)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from controller.effects import Notice
from controller.membership.events import HostRef, MembershipEffect, QuerierStatus, RouterVerdict, SendQuery
from controller.membership.limits import Tally
from controller.membership.settings import MembershipSettings, Timing, timing
from controller.membership.tables import Port
from controller.membership.timers import Timed, TimerQueue
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
    """The elected querier that is not us, where it was last heard, and the values that it announced (0: none)."""

    address: bytes
    mac: bytes
    dpid: int
    port_no: int
    robustness: int
    query_interval_s: float


class Election(Timed):
    """The election of a family; `until` is the end of the other querier present timer."""

    __slots__ = ("family", "other", "timing", "until")

    def __init__(self, family: int, values: Timing) -> None:
        super().__init__()
        self.family = family
        self.timing = values
        self.other: OtherQuerier | None = None
        self.until = inf

    def due_at(self) -> float:
        """Return when the other querier is given up."""
        return self.until


class GeneralQueries(Timed):
    """The schedule of general queries of a family at a port."""

    __slots__ = ("at", "family", "phase", "port", "startup_left")

    def __init__(self, port: Port, family: int) -> None:
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
    """The querier of each family over the whole fabric, which is one segment to its hosts."""

    def __init__(self, settings: MembershipSettings, timers: TimerQueue, tally: Tally) -> None:
        self.settings = settings
        self._timers = timers
        self._tally = tally
        self._elections = {family: Election(family, timing(settings)) for family in FAMILIES}
        self._general: dict[tuple[int, int, int], GeneralQueries] = {}

    def timing(self, family: int) -> Timing:
        """Return the timer values in force."""
        return self._elections[family].timing

    def is_querier(self, family: int) -> bool:
        """Tell whether it is ours to send queries."""
        return self._elections[family].other is None and self.settings.querier

    def other(self, family: int) -> tuple[OtherQuerier, float] | None:
        """Return the elected querier and the end of its timer, None where it is us."""
        election = self._elections[family]
        return None if election.other is None else (election.other, election.until)

    def status(self, family: int) -> QuerierStatus:
        """Describe the querier for inspection."""
        election = self._elections[family]
        other = election.other
        return QuerierStatus(
            family,
            self.is_querier(family),
            None if other is None else other.address,
            None if other is None else other.mac,
            None if other is None else other.dpid,
            None if other is None else other.port_no,
            None if other is None else election.until,
            election.timing.robustness,
            election.timing.query_interval_s,
        )

    def port_added(self, port: Port, now: float, effects: list[MembershipEffect]) -> None:
        """Begin the queries of an edge port, the first at once, unless another router asks."""
        for family in FAMILIES:
            general = GeneralQueries(port, family)
            self._general[port.dpid, port.port_no, family] = general
            if self.is_querier(family):
                general.startup_left = self.settings.startup_query_count
                general.at = now
                self.fire_general(general, now, effects)

    def port_removed(self, port: Port, now: float, effects: list[MembershipEffect]) -> None:
        """Stop the queries of a port; a querier behind it is gone, so that its timer is not awaited."""
        for family in FAMILIES:
            general = self._general.pop((port.dpid, port.port_no, family), None)
            if general is not None:
                self._timers.cancel(general)
            election = self._elections[family]
            other = election.other
            if other is not None and (other.dpid, other.port_no) == (port.dpid, port.port_no):
                self._take_over(election, now, effects)

    def heard(
        self,
        port: Port,
        family: int,
        other: OtherQuerier,
        version: int,
        now: float,
        effects: list[MembershipEffect],
    ) -> bool:
        """Let the sender of a query bid in the election; tell whether it is the querier now."""
        election = self._elections[family]
        present = election.other
        if not self.yields_to(family, other.address) or (present is not None and other.address > present.address):
            self._tally.count("query-of-election-loser")
            return False
        self.elect(family, other, None, now)
        if present is None or present.address != other.address:
            text = (
                f"leads to the querier of IPv{family} now, {format_ip(other.address)}: the controller does not query"
            )
            self._tally.warn(port, "querier-changed", text, now, effects)
        if version < self.settings.version(family):
            does = "leads to a querier of an older version than is set: hosts report in that version"
            self._tally.warn(port, "querier-version", does, now, effects)
        return True

    def elect(self, family: int, other: OtherQuerier, remaining_s: float | None, now: float) -> None:
        """Make another router the querier, for as long as its values say or a journal left of it."""
        election = self._elections[family]
        was_ours = election.other is None
        election.other = other
        election.timing = timing(self.settings, other.robustness, other.query_interval_s)
        longest_s = election.timing.other_querier_s
        election.until = now + (longest_s if remaining_s is None else min(remaining_s, longest_s))
        self._timers.arm(election, election.until)
        if was_ours:
            self._park(family)

    def reconsider(
        self, judge: Callable[[HostRef], RouterVerdict], now: float, effects: list[MembershipEffect]
    ) -> None:
        """Take over from a querier that is refused now."""
        for election in self._elections.values():
            other = election.other
            if other is not None and not judge(HostRef(other.mac, other.address, other.dpid, other.port_no)).admit:
                self._take_over(election, now, effects)

    def ask(self, dpid: int, port_no: int, family: int, now: float, effects: list[MembershipEffect]) -> None:
        """Begin the queries of a port anew, the first at once, unless another router asks."""
        general = self._general.get((dpid, port_no, family))
        if general is not None and self.is_querier(family):
            general.startup_left = self.settings.startup_query_count
            general.at = now
            self.fire_general(general, now, effects)

    def fire_election(self, election: Election, now: float, effects: list[MembershipEffect]) -> None:
        """Take over from a querier that has fallen silent."""
        if election.other is not None:
            self._take_over(election, now, effects)

    def fire_general(self, general: GeneralQueries, now: float, effects: list[MembershipEffect]) -> None:
        """Send a port's general query and schedule the next.

        The first asks for answers within `FIRST_RESPONSE_S`: hosts need not notice that their cable was out, and then
        say nothing unasked.

        The startup intervals and the first regular one are shortened by the port's phase to half at the least, which
        spreads ports that were added together over half an interval.
        """
        settings = self.settings
        values = self._elections[general.family].timing
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
        was_querier = {family: self.is_querier(family) for family in FAMILIES}
        self.settings = settings
        for family, election in self._elections.items():
            other = election.other
            if other is not None and not self.yields_to(family, other.address):
                other = election.other = None
                self._timers.cancel(election)
            announced = (0, 0.0) if other is None else (other.robustness, other.query_interval_s)
            election.timing = timing(settings, *announced)
            if not self.is_querier(family):
                self._park(family)
            elif not was_querier[family]:
                self._ask_everywhere(family, now)
            else:
                for general in self._general.values():
                    if general.family == family and general.at > now + settings.query_interval_s:
                        general.at = now + settings.query_interval_s
                        self._timers.arm(general, general.at)

    def yields_to(self, family: int, address: bytes) -> bool:
        """Tell whether an address wins the election against ours (RFC 9776, 6.6.2; 0.0.0.0 never wins: RFC 4541)."""
        own = self.settings.query_address(family)
        return not self.settings.querier or not any(own) or address < own

    def _park(self, family: int) -> None:
        for general in self._general.values():
            if general.family == family:
                general.at = inf

    def _take_over(self, election: Election, now: float, effects: list[MembershipEffect]) -> None:
        election.other = None
        election.until = inf
        election.timing = timing(self.settings)
        self._timers.cancel(election)
        self._tally.count("querier-changed")
        queries = "queries again" if self.settings.querier else "does not query either, as it is set"
        text = f"The other querier of IPv{election.family} is gone: the controller {queries}."
        effects.append(Notice("membership-querier-changed", text, (("family", election.family),)))
        if self.settings.querier:
            self._ask_everywhere(election.family, now)

    def _ask_everywhere(self, family: int, now: float) -> None:
        for general in self._general.values():
            if general.family == family:
                general.startup_left = 0
                general.at = now + general.phase * TAKEOVER_SPREAD_S
                self._timers.arm(general, general.at)
