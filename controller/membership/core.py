"""The membership core: reports, queries, hellos and ports in, interests, router ports and queries out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from controller.membership import journal
from controller.membership.bindings import Bindings, NoBindings
from controller.membership.events import (
    Admit,
    AdmitRouter,
    FilterMode,
    HostRef,
    Interest,
    Member,
    MembershipEffect,
    QuerierStatus,
    RouterAsked,
    RouterJudged,
    RouterVerdict,
)
from controller.membership.limits import MembershipTally
from controller.membership.members import HostMemberships
from controller.membership.older_reports import OlderReports
from controller.membership.pim_joins import JoinedGroup, PimJoins
from controller.membership.querier import Election, GeneralQueries, OtherQuerier, Queriers
from controller.membership.reconsideration import judge_otherwise, know_hosts_anew, tell_refused_anew
from controller.membership.router_admission import RouterAdmission
from controller.membership.router_ports import HELLO_BELIEVED_S, Heard, HeardRouter, RouterPort, RouterPortTable
from controller.membership.settings import MembershipLimits, MembershipSettings, applies, timing
from controller.membership.specific_queries import SpecificQueries
from controller.membership.tables import HostMembership, MemberPort
from controller.membership.timers import TimerQueue
from controller.wire.addresses import is_ssm_group
from controller.wire.packets import PimHello, PimJoinPrune, Query, Report

_PROTOCOLS = {4: "IGMP", 6: "MLD"}


class InterestAt(NamedTuple):
    """The merged interest of a port in a group."""

    dpid: int
    port_no: int
    group: bytes
    interest: Interest


class MembershipCore:
    """IGMP and MLD router side for all edge ports of a fabric, with explicit tracking of hosts.

    Every method that takes `now` (seconds, monotonic) returns the effects in order, after those of all deadlines up
    to `now`. `counters` holds occurrences by reason. `changed` is told of groups whose members changed. `bindings`
    says whose an address is; without it every report is believed. `is_one_fabric` tells whether two switches are in
    one fabric, each of which has a querier of its own; `fabrics_changed` is called when that is otherwise for some.
    """

    def __init__(
        self,
        settings: MembershipSettings,
        limits: MembershipLimits,
        admit: Admit,
        changed: Callable[[bytes], None] = lambda _group: None,
        bindings: Bindings | None = None,
        admit_router: AdmitRouter = lambda _host: None,
        is_one_fabric: Callable[[int, int], bool] = lambda _dpid, _other: True,
    ) -> None:
        self.timers = TimerQueue()
        self.ports: dict[tuple[int, int], MemberPort] = {}
        self.older = OlderReports()
        self.tally = MembershipTally(limits.notice_interval_s)
        self.counters = self.tally.counters
        self.queriers = Queriers(settings, self.timers, self.tally, is_one_fabric)
        self.router_ports = RouterPortTable(settings, limits, self.timers, self.tally)
        self.pim_joins = PimJoins(limits, self.timers, self.tally)
        self.router_admission = RouterAdmission(settings, admit_router, self.tally)
        self.members_table = HostMemberships(
            settings, limits, admit, self.timers, self.tally, self.queriers, changed, bindings or NoBindings()
        )
        self.declared_router_ports: set[tuple[int, int, int]] = set()
        self._changed = changed
        self._is_one_fabric = is_one_fabric
        self._settings = settings
        self._limits = limits

    def report_received(self, dpid: int, port_no: int, report: Report, now: float) -> list[MembershipEffect]:
        """Take in a membership report or leave from a host."""
        effects: list[MembershipEffect] = []
        if self.timers.has_due(now):
            self._advance(now, effects)
        port, rate = self.ports.get((dpid, port_no)), self._limits.reports_per_second_per_port
        if port is not None and port.active and port.bucket.take(now, rate, self._limits.report_burst):
            self.counters["reports"] += 1
            self.members_table.report(port, report, now, effects)
        elif port is not None:
            self._not_permitted(port, now, effects)
        return effects

    def query_received(self, dpid: int, port_no: int, query: Query, now: float) -> list[MembershipEffect]:
        """Take in another router's query: election, router port, and the timers that it lowers."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        port = self.ports.get((dpid, port_no))
        if port is None or not self._permits(port, now, effects):
            return effects
        family, address = query.family, query.source
        self.tally.count("queries")
        if applies(self._settings.proxied_router_ports, (dpid, port_no)):
            self._asked_by_router(port, query, now, effects)
            return effects
        if not any(address) or address == self._settings.query_address(family):
            self.tally.count("query-without-bid")
            return effects
        if family == 6 and (address[0] != 0xFE or address[1] & 0xC0 != 0x80):
            self.tally.count("query-source-not-link-local")
            return effects
        host = HostRef(query.eth_src, address, dpid, port_no)
        values = query.robustness or 0, query.query_interval_s or 0.0, query.version
        bid = OtherQuerier(address, host.mac, dpid, port_no, *values)
        self._asking_router_heard(port, query, self.router_admission.as_router(host), now, effects)
        as_querier = self.router_admission.as_querier(host)
        if not as_querier.admit:
            self._refuse_router(port, host, f"{_PROTOCOLS[family]} query", as_querier, now, effects)
            return effects
        elected = self.queriers.heard(port, family, bid, now, effects)
        if elected and query.group is not None and not query.suppress:
            limit = now + self.queriers.timing(family, dpid).last_member_count * query.max_response_s
            for other_port in self.ports.values():
                membership = other_port.groups.get(query.group)
                if membership is not None and self._is_one_fabric(dpid, other_port.dpid):
                    membership.lower(query.sources, limit, self.timers)
            self._advance(now, effects)
        return effects

    def pim_hello_received(self, dpid: int, port_no: int, hello: PimHello, now: float) -> list[MembershipEffect]:
        """Take in a PIM hello: a router is at this port for its holdtime, or as long as that is believed."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        port = self.ports.get((dpid, port_no))
        if port is None or not self._permits(port, now, effects):
            return effects
        self.tally.count("pim-hellos")
        host = HostRef(hello.eth_src, hello.source, dpid, port_no)
        verdict = self.router_admission.as_router(host)
        if verdict.admit:
            until = now + min(hello.holdtime_s, HELLO_BELIEVED_S)
            self._router_heard(port, hello.family, False, host, verdict, until, now, effects, hello.dr_priority)
        else:
            self._refuse_router(port, host, "PIM hello", verdict, now, effects)
        return effects

    def pim_join_received(self, dpid: int, port_no: int, message: PimJoinPrune, now: float) -> list[MembershipEffect]:
        """Take in what a router joins and prunes; one whose hello was not heard at the port is passed over."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        port = self.ports.get((dpid, port_no))
        if port is not None and self._permits(port, now, effects):
            self.pim_joins.heard(port, message, self.router_ports, now, effects)
        return effects

    def port_added(
        self, dpid: int, port_no: int, now: float, repeat_s: float | None = None
    ) -> list[MembershipEffect]:
        """Serve an edge port from now on; its start-up queries begin at once. No effect where it is served.

        With `repeat_s` they begin again after so many seconds: answers to the first may not be heard here yet.
        """
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        port = self.ports.setdefault((dpid, port_no), MemberPort(dpid, port_no, self.older))
        if not port.active:
            port.active = True
            self.queriers.port_added(port, now, effects, repeat_s)
            for family in (4, 6):
                if self._is_static_router_port(port, family):
                    self.router_ports.set_static(port, family, True, now, effects)
        return effects

    def port_removed(self, dpid: int, port_no: int, now: float) -> list[MembershipEffect]:
        """Forget an edge port with all that was behind it."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        port = self.ports.pop((dpid, port_no), None)
        if port is not None:
            self.older.forget(dpid, port_no)
            self.members_table.remove(port.states(), effects)
            self.router_ports.port_removed(port, now, effects)
            self.pim_joins.port_removed((dpid, port_no), effects)
            self.queriers.port_removed(port, now, effects)
        return effects

    def ask(self, dpid: int, port_no: int, family: int, now: float) -> list[MembershipEffect]:
        """Ask the hosts at a port for their memberships, some of which may have been lost on the way."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        self.queriers.ask(dpid, port_no, family, now, effects)
        return effects

    def port_suspended(self, dpid: int, port_no: int, now: float) -> list[MembershipEffect]:
        """Serve an edge port no more for now; what is known of it ages until `port_added` brings it back."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        port = self.ports.get((dpid, port_no))
        if port is not None and port.active:
            port.active = False
            self.queriers.port_removed(port, now, effects)
            self.forget_unused(port)
        return effects

    def host_removed(self, mac: bytes, dpid: int, port_no: int, now: float) -> list[MembershipEffect]:
        """End a host's memberships at a port at once: it moved or is gone."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        port = self.ports.get((dpid, port_no))
        if port is not None:
            for hosts in port.hosts.values():
                host = hosts.get(mac)
                if host is not None:
                    self.members_table.remove(list(host.states.values()), effects)
        return effects

    def addresses_moved(self, addresses: Iterable[bytes], now: float) -> list[MembershipEffect]:
        """Look again at the hosts that report with these MAC and IP addresses, whose owners are others now.

        Who turns out to report with another's address is refused, and whose own it has become is judged by it.
        """
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        self.members_table.addresses_moved(addresses, effects)
        return effects

    def reconsider(
        self, would_admit: Admit, is_concerned: Callable[[bytes], bool] = lambda _group: True
    ) -> Iterator[list[MembershipEffect]]:
        """Judge memberships by another policy, by which admission goes already, step by step.

        Refused ones stop counting, admitted ones start to. Yields the effects of each step, at most one membership's;
        between steps anything may happen. What `would_admit` says as before, without admission being asked, stays.
        """
        yield from judge_otherwise(self.members_table, would_admit, is_concerned)
        yield from know_hosts_anew(self.members_table, list(self.ports.values()))

    def tell_refused_anew(self) -> Iterator[list[MembershipEffect]]:
        """Tell of every group with a refused member, step by step: the policy words its reasons otherwise."""
        return tell_refused_anew(list(self.ports.values()), self._changed)

    def reconsider_refused(self, group: bytes, now: float) -> list[MembershipEffect]:
        """Ask admission anew about the members of a group that it refused."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        self.members_table.reconsider_refused(group, effects)
        return effects

    def set_settings(
        self, settings: MembershipSettings, limits: MembershipLimits, now: float
    ) -> list[MembershipEffect]:
        """Take over new settings; running timers keep their ends, and states above a lower limit stay."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        if settings.enforce_ssm and not self._settings.enforce_ssm:
            for port in self.ports.values():
                barred = (
                    s for s in port.states() if s.mode is FilterMode.EXCLUDE and is_ssm_group(s.membership.group)
                )
                self.members_table.remove(barred, effects)
        self._settings = settings
        self._limits = limits
        self.router_admission.settings = settings
        self.tally.interval_s = limits.notice_interval_s
        self.members_table.settings = settings
        self.members_table.limits = limits
        self.router_ports.settings = settings
        self.router_ports.limits = self.pim_joins.limits = limits
        self.queriers.set_settings(settings, now)
        for port in self.ports.values():
            if port.active:
                for family in (4, 6):
                    static = self._is_static_router_port(port, family)
                    self.router_ports.set_static(port, family, static, now, effects)
        self._reconsider_routers(now, effects)
        self._advance(now, effects)
        return effects

    def reconsider_routers(self, now: float) -> list[MembershipEffect]:
        """Judge anew every router port that was learnt, and the querier: what is known of their hosts changed."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        self._reconsider_routers(now, effects)
        return effects

    def declare_router_port(
        self, dpid: int, port_no: int, family: int, declared: bool, now: float
    ) -> list[MembershipEffect]:
        """Take it that a router of a family is behind a port, beside those of the settings, or no longer."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        if declared:
            self.declared_router_ports.add((dpid, port_no, family))
        else:
            self.declared_router_ports.discard((dpid, port_no, family))
        port = self.ports.get((dpid, port_no))
        if port is not None and port.active:
            self.router_ports.set_static(port, family, self._is_static_router_port(port, family), now, effects)
        return effects

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is to be called, None where nothing is awaited."""
        return self.timers.next_deadline()

    def on_deadline(self, now: float) -> list[MembershipEffect]:
        """Do what has fallen due."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        return effects

    def snapshot(self, now: float) -> list[journal.Record]:
        """Return the state as JSON-able records with remaining times, for a journal."""
        return journal.snapshot(self, now)

    def routers_snapshot(self, now: float) -> list[journal.Record]:
        """Return the records of queriers and router ports, as `snapshot` has them."""
        return journal.routers_snapshot(self, now)

    def group_texts(self, group: bytes, ports: Iterable[tuple[int, int]], now: float) -> list[str]:
        """Return the records of a group at the given (dpid, port_no), as `snapshot` has them, each as JSON has it."""
        return journal.group_texts(self, group, ports, now)

    def restore(
        self, records: Iterable[journal.Record], now: float, elapsed_s: float = 0.0
    ) -> list[MembershipEffect]:
        """Take over a snapshot made `elapsed_s` seconds ago; unreadable records are counted and passed over."""
        return journal.restore(self, records, now, elapsed_s)

    def interests(self) -> Iterator[InterestAt]:
        """Iterate over every (port, group) that is wanted, as `InterestChanged` last told."""
        for port in self.ports.values():
            for membership in port.groups.values():
                if membership.interest is not None:
                    yield InterestAt(port.dpid, port.port_no, membership.group, membership.interest)

    def members(self) -> Iterator[Member]:
        """Iterate over every membership, refused ones included."""
        for port in self.ports.values():
            for state in port.states():
                yield _member(state)

    def members_of(self, group: bytes) -> Iterator[Member]:
        """Iterate over the memberships of a group by port, refused ones included."""
        for port in sorted(self.members_table.ports_of(group), key=lambda port: (port.dpid, port.port_no)):
            for state in port.groups[group].hosts.values():
                yield _member(state)

    def is_admitted(self, dpid: int, port_no: int, mac: bytes, group: bytes) -> bool:
        """Tell whether a host is a member of a group, of some source at least, and the policy admits it."""
        port = self.ports.get((dpid, port_no))
        membership = None if port is None else port.groups.get(group)
        state = None if membership is None else membership.hosts.get(mac)
        return state is not None and state.offer is not None

    def querier(self, family: int, dpid: int | None = None) -> QuerierStatus:
        """Describe the querier of family 4 or 6 in a switch's fabric; None: where another router is, if anywhere."""
        return self.queriers.status(family, dpid)

    def fabrics_changed(self, now: float) -> list[MembershipEffect]:
        """Take in that switches are in one fabric that were in two, or the other way round."""
        effects: list[MembershipEffect] = []
        self._advance(now, effects)
        self.queriers.fabrics_changed(now)
        return effects

    def router_port_keys(self) -> Iterator[tuple[int, int, int]]:
        """Iterate over the router ports as (dpid, port_no, family)."""
        for entry in self.router_ports:
            yield entry.dpid, entry.port_no, entry.family

    def interest(self, dpid: int, port_no: int, group: bytes) -> Interest | None:
        """Return what a port wants of a group, as `InterestChanged` last told; None for nothing."""
        port = self.ports.get((dpid, port_no))
        membership = None if port is None else port.groups.get(group)
        return None if membership is None else membership.interest

    def group_count(self, dpid: int, port_no: int) -> int:
        """Return how many routable groups a port has, refused ones included."""
        port = self.ports.get((dpid, port_no))
        return 0 if port is None else port.group_counts[False]

    def _is_static_router_port(self, port: MemberPort, family: int) -> bool:
        key = (port.dpid, port.port_no)
        return key in self._settings.static_router_ports or (*key, family) in self.declared_router_ports

    def _router_heard(
        self,
        port: MemberPort,
        family: int,
        asks: bool,
        host: HostRef,
        verdict: RouterVerdict,
        until: float,
        now: float,
        effects: list[MembershipEffect],
        dr_priority: int | None = None,
    ) -> None:
        heard = Heard(host, until, verdict.groups, dr_priority)
        if self.router_ports.heard(port, family, HeardRouter(host.ip, asks), heard, now, effects):
            effects.append(RouterJudged(host, verdict))

    def _asking_router_heard(
        self, port: MemberPort, query: Query, verdict: RouterVerdict, now: float, effects: list[MembershipEffect]
    ) -> None:
        """Note the sender of a query as a router where it is admitted as one."""
        if verdict.admit:
            values = timing(self._settings, query.robustness or 0, query.query_interval_s or 0.0)
            host = HostRef(query.eth_src, query.source, port.dpid, port.port_no)
            self._router_heard(port, query.family, True, host, verdict, now + values.other_querier_s, now, effects)

    def _asked_by_router(self, port: MemberPort, query: Query, now: float, effects: list[MembershipEffect]) -> None:
        """Take in a query at a port where routers are answered: its sender bids in no election among hosts.

        A switch between the router and here may ask with 0.0.0.0, which makes nobody a router.
        """
        host = HostRef(query.eth_src, query.source, port.dpid, port.port_no)
        if any(query.source):
            verdict = self.router_admission.as_router(host)
            self._asking_router_heard(port, query, verdict, now, effects)
            known = self.router_ports.get(port.dpid, port.port_no, query.family)
            if not verdict.admit and (known is None or not known.static):
                self._refuse_router(port, host, f"{_PROTOCOLS[query.family]} query", verdict, now, effects)
                return
        if self.router_ports.get(port.dpid, port.port_no, query.family) is not None:
            effects.append(RouterAsked(port.dpid, port.port_no, query))

    def _refuse_router(
        self,
        port: MemberPort,
        host: HostRef,
        speech: str,
        verdict: RouterVerdict,
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        known = self.router_ports.get(port.dpid, port.port_no, 4 if len(host.ip) == 4 else 6)
        if known is not None and known.static:
            self.tally.count("router-at-static-port")
        else:
            self.router_admission.refuse(port, host, speech, verdict, now, effects)

    def _reconsider_routers(self, now: float, effects: list[MembershipEffect]) -> None:
        self.router_ports.reconsider(self.router_admission.as_router, now, effects)
        self.queriers.reconsider(self.router_admission.as_querier, now, effects)

    def _permits(self, port: MemberPort, now: float, effects: list[MembershipEffect]) -> bool:
        limits = self._limits
        if port.active and port.bucket.take(now, limits.reports_per_second_per_port, limits.report_burst):
            return True
        self._not_permitted(port, now, effects)
        return False

    def _not_permitted(self, port: MemberPort, now: float, effects: list[MembershipEffect]) -> None:
        if port.active:
            does = "receives more membership messages than its limit: those beyond it are ignored"
            self.tally.warn(port, "limit-rate", does, now, effects)
        else:
            self.tally.count("unknown-port")

    def _advance(self, now: float, effects: list[MembershipEffect]) -> None:
        while self.timers.has_due(now):
            timed = self.timers.pop_due(now)
            if isinstance(timed, HostMembership):
                self.members_table.expire(timed, now, effects)
                self.forget_unused(timed.membership.port)
            elif isinstance(timed, SpecificQueries):
                self.members_table.fire(timed, now, effects)
            elif isinstance(timed, GeneralQueries):
                self.queriers.fire_general(timed, now, effects)
            elif isinstance(timed, RouterPort):
                self.router_ports.fire(timed, now, effects)
            elif isinstance(timed, JoinedGroup):
                self.pim_joins.fire(timed, now, effects)
            elif isinstance(timed, Election):
                self.queriers.fire_election(timed, now, effects)

    def forget_unused(self, port: MemberPort) -> None:
        """Drop a port that was never added once nothing restored is left there."""
        if not port.active and not port.groups:
            self.ports.pop((port.dpid, port.port_no), None)


def _member(state: HostMembership) -> Member:
    return Member(
        state.ref,
        state.membership.group,
        state.mode,
        frozenset(state.timers),
        state.excluded,
        state.offer is not None,
        state.leaving,
        state.expires_at(),
        state.since,
    )
