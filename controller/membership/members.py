"""Memberships: what reports, policy and time make of the hosts' states, and the interests that follow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import inf

from controller.membership.bindings import Bindings, Identities
from controller.membership.events import (
    ANY_SOURCE,
    Admit,
    FilterMode,
    HostRef,
    Interest,
    InterestChanged,
    MembershipEffect,
    MembershipRefused,
    SavedMembership,
)
from controller.membership.limits import MembershipTally, SmallTokenBucket
from controller.membership.querier import Queriers
from controller.membership.settings import LATEST_VERSION, MembershipLimits, MembershipSettings, Timing, applies
from controller.membership.specific_queries import SpecificQueries
from controller.membership.tables import (
    ROUTABLE,
    GroupKind,
    HostMembership,
    MemberHost,
    MemberPort,
    PortGroup,
    QueriesWanted,
    group_kind,
)
from controller.membership.timers import TimerQueue
from controller.wire.addresses import format_ip, format_mac
from controller.wire.packets import GroupRecord, RecordType, Report

_EXCLUDE = FilterMode.EXCLUDE
_IS_EX = RecordType.MODE_IS_EXCLUDE
_TO_IN = RecordType.CHANGE_TO_INCLUDE
_TO_EX = RecordType.CHANGE_TO_EXCLUDE
_BLOCK = RecordType.BLOCK_OLD_SOURCES
_JOINS_ANY = (int(_IS_EX), int(_TO_EX))
_VERDICTS: dict[bool, dict[bytes | None, bool]] = {False: {None: False}, True: {None: True}}

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class HostMemberships:
    """All host states, over all ports."""

    def __init__(
        self,
        settings: MembershipSettings,
        limits: MembershipLimits,
        admit: Admit,
        timers: TimerQueue,
        tally: MembershipTally,
        queriers: Queriers,
        changed: Callable[[bytes], None],
        bindings: Bindings,
    ) -> None:
        self.settings = settings
        self.limits = limits
        self.state_count = self.admitted_count = 0
        self._admit = admit
        self._timers = timers
        self._tally = tally
        self._queriers = queriers
        self._changed = changed
        self.identities = Identities(bindings)
        self._ports: dict[bytes, dict[MemberPort, None]] = {}

    def ports_of(self, group: bytes) -> Iterable[MemberPort]:
        """Return the ports with a membership of a group, refused ones included."""
        return self._ports.get(group, ())

    def groups(self) -> Iterable[bytes]:
        """Return the groups with a membership, refused ones included."""
        return self._ports.keys()

    def report(self, port: MemberPort, report: Report, now: float, effects: list[MembershipEffect]) -> None:
        """Take a report in, record by record."""
        family, version, mac, source, records = report
        timing = self._queriers.timing(family, port.dpid)
        until = now + timing.membership_s
        groups, limits = port.groups, self.limits
        host = port.hosts[family].get(mac)
        if host is not None and not host.bucket.take(
            now, limits.reports_per_second_per_host, limits.host_report_burst
        ):
            does = "has a host that sends more reports than its limit: those beyond it are ignored"
            self._tally.warn(port, "limit-host-rate", does, now, effects)
            return
        cost = 0
        if len(records) > 1 or (records and records[0].sources):
            cost = sum(len(record.sources) or 1 for record in records) - 1
        is_new = host is None
        if host is not None and host.ref.ip != source:
            is_new = True
            cost += len(host.states)
        if cost and not self._may_cost(port, host, cost, now, effects):
            return
        spoofed = is_new and self._is_spoofed(port, host, report, now, effects)
        is_older = version != LATEST_VERSION[family]
        for record in records:
            kind, group, sources = record
            membership = groups.get(group)
            state = None if membership is None else membership.hosts.get(mac)
            if state is not None:
                if state.is_false is not spoofed:
                    if spoofed:
                        continue
                    state.is_false = False
                    self._rejudge([state], effects)
                if (
                    kind in _JOINS_ANY
                    and not sources
                    and state.mode is _EXCLUDE
                    and not state.timers
                    and not state.excluded
                ):
                    state.group_expiry = until
                    state.leaving = False
                    if is_older and not spoofed:
                        membership.note_older_report(version, until)  # type: ignore[union-attr]
                    continue
            elif (
                kind in _JOINS_ANY
                and not (sources or is_older or spoofed or host is None)
                and self._joined(membership or PortGroup(port, group), host, now, until, effects)
            ):
                continue
            self._record(port, report, record, is_older, spoofed, timing, now, effects)

    def _may_cost(
        self, port: MemberPort, host: MemberHost | None, count: int, now: float, effects: list[MembershipEffect]
    ) -> bool:
        """Charge a port and a host for so many records; False where one of them has spent more than it may."""
        limits = self.limits
        if not port.record_bucket.spend(now, limits.records_per_second_per_port, limits.record_burst, count):
            does = "receives more group records than its limit: reports beyond it are ignored"
            self._tally.warn(port, "limit-records", does, now, effects)
            return False
        if host is None:
            return True
        bucket = host.record_bucket = host.record_bucket or SmallTokenBucket()
        if bucket.spend(now, limits.records_per_second_per_host, limits.host_record_burst, count):
            return True
        does = "has a host that sends more group records than its limit: reports beyond it are ignored"
        self._tally.warn(port, "limit-host-records", does, now, effects)
        return False

    def _is_spoofed(
        self, port: MemberPort, host: MemberHost | None, report: Report, now: float, effects: list[MembershipEffect]
    ) -> bool:
        """Tell whether a report comes with a false address, which is new here; take in one that is the host's own."""
        if host is None:
            spoofed = self.identities.is_spoofed(report.eth_src, report.source, port.dpid, port.port_no)
        else:
            spoofed, states = self.identities.readdress(host, report.source)
            self._rejudge(states, effects)
        if spoofed:
            sender = f"{format_mac(report.eth_src)} as {format_ip(report.source)}"
            does = f"receives a report of {sender}, an address that is not the host's own: it is refused"
            self._tally.warn(port, "spoofed-report", does, now, effects)
        return spoofed

    def expire(self, state: HostMembership, now: float, effects: list[MembershipEffect]) -> None:
        """End what is due of a state."""
        state.expire(now)
        self._conclude(state, effects)

    def fire(self, queries: SpecificQueries[PortGroup], now: float, effects: list[MembershipEffect]) -> None:
        """Send the specific queries that are due, unless another router has become the querier."""
        membership = queries.membership
        family, dpid = membership.family, membership.port.dpid
        if membership.queries is not queries:
            return
        if self._queriers.is_querier(family, dpid) and membership.hosts:
            effects += queries.fire(now, self._queriers.timing(family, dpid), self.settings.version(family))
            if not queries.is_done:
                self._timers.arm(queries, queries.due_at())
                return
        membership.queries = None

    def addresses_moved(self, addresses: Iterable[bytes], effects: list[MembershipEffect]) -> None:
        """Look again at the hosts that report with these MAC and IP addresses."""
        for host in self.identities.using(addresses):
            self._rejudge(self.identities.look_again(host), effects)

    def judge_otherwise(self, state: HostMembership, would_admit: Admit, effects: list[MembershipEffect]) -> None:
        """Ask admission anew about those sources of a membership that it is known to decide otherwise."""
        ref, group = state.ref, state.membership.group
        others = [source for source, verdict in state.verdicts.items() if would_admit(ref, group, source) != verdict]
        if others:
            self._judge(state, effects, others)
            self._offer(state)
            self._publish(state.membership, state.membership.merged(), effects)

    def reconsider_refused(self, group: bytes, effects: list[MembershipEffect]) -> None:
        """Judge anew the memberships of a group that are refused."""
        states = [state for port in self.ports_of(group) for state in port.groups[group].hosts.values()]
        self._rejudge([state for state in states if state.offer is None], effects)

    def remove(self, states: Iterable[HostMembership], effects: list[MembershipEffect]) -> None:
        """End memberships at once."""
        touched: dict[PortGroup, None] = {}
        for state in states:
            self._drop(state)
            touched[state.membership] = None
        for membership in touched:
            self._publish(membership, membership.merged(), effects)

    def restore(
        self, port: MemberPort, ref: HostRef, group: bytes, saved: SavedMembership, effects: list[MembershipEffect]
    ) -> None:
        """Enter a membership read from the journal, where there is room; one that is known already prevails."""
        membership = port.groups.get(group) or PortGroup(port, group)
        if ref.mac in membership.hosts:
            return
        host = port.hosts[membership.family].get(ref.mac) or self.identities.new_host(ref)
        if ref.spoofed and host.false_ref is None:
            self.identities.accuse(host, ref)
        state = HostMembership(membership, host, saved.since)
        state.is_false = ref.spoofed
        state.mode, state.group_expiry, state.timers, state.excluded, state.leaving, _ = saved
        excess = self._enter(state, effects)
        if excess is not None:
            self._tally.count(excess)

    def _record(
        self,
        port: MemberPort,
        report: Report,
        record: GroupRecord,
        is_older: bool,
        spoofed: bool,
        timing: Timing,
        now: float,
        effects: list[MembershipEffect],
    ) -> None:
        kind, group, sources = record
        treated = group_kind(group)
        if treated is GroupKind.IGNORED:
            self._tally.count("report-of-untracked-group")
            return
        if treated is GroupKind.SSM and self.settings.enforce_ssm and (is_older or kind in _JOINS_ANY):
            does = f"receives a report for any source of {format_ip(group)}, a source-specific group: it is ignored"
            self._tally.warn(port, "ssm-any-source", does, now, effects)
            return
        membership = port.groups.get(group)
        state = None
        if membership is not None:
            if membership.is_older(now):
                if kind == _BLOCK or (kind == _TO_IN and membership.is_v1(now)):
                    self._tally.count("report-ignored-in-older-mode")
                    return
                if kind == _TO_EX:
                    sources = ()
            state = membership.hosts.get(report.eth_src)
        limit = self.limits.sources_per_group
        is_added = state is not None and kind not in _JOINS_ANY and state.exceeds(sources, 2 * limit)
        if sources and (is_added or len(sources) > limit):
            does = "has a host that asks for more sources of a group than its limit: the record is ignored"
            self._tally.warn(port, "limit-sources", does, now, effects)
            return
        if state is None:
            if kind in _JOINS_ANY or (sources and kind != _BLOCK):
                membership = membership or PortGroup(port, group)
                host = port.hosts[report.family].get(report.eth_src)
                if host is None:
                    host = self.identities.new_host(
                        HostRef(report.eth_src, report.source, port.dpid, port.port_no, (), spoofed)
                    )
                state = HostMembership(membership, host, now)
                state.is_false = spoofed
                state.apply(kind, sources, now, timing.membership_s)
                excess = self._enter(state, effects)
                if excess is not None:
                    does = f"has no room for another membership ({excess}): {format_ip(group)} is refused"
                    self._tally.warn(port, excess, does, now, effects)
        else:
            ask = state.apply(kind, sources, now, timing.membership_s)
            self._judge(state, effects)
            if ask:
                self._resolve(state, ask, timing, now, effects)
            self._conclude(state, effects)
        if is_older and not spoofed and kind == _IS_EX and (membership := port.groups.get(group)) is not None:
            membership.note_older_report(report.version, now + timing.membership_s)

    def _joined(
        self, membership: PortGroup, host: MemberHost, now: float, until: float, effects: list[MembershipEffect]
    ) -> bool:
        """Take in that a host which is known wants a group, every source of it, that it did not want before.

        False, with nothing done, where there is more to be looked at: no room, or a group that is treated otherwise.
        """
        group = membership.group
        if group_kind(group) is not ROUTABLE or self._excess(membership, host) is not None:
            return False
        state = HostMembership(membership, host, now, until)
        admitted = bool(self._admit(host.ref, group, None))
        if not admitted:
            effects.append(MembershipRefused(host.ref, group, None))
        state.verdicts = _VERDICTS[admitted]
        self._store(state, ANY_SOURCE if admitted else None, until, effects)
        return True

    def _enter(self, state: HostMembership, effects: list[MembershipEffect]) -> str | None:
        """Judge and store a new state; return the limit that forbids it, None where all is well."""
        membership, host = state.membership, state.host
        port = membership.port
        self._judge(state, effects)
        offer = state.admitted_offer()
        while (excess := self._excess(membership, host)) is not None:
            if offer is None:
                self._tally.count("refused-not-kept")
                return None
            of_host = excess == "limit-host-groups"
            oldest = next((other for other in port.refused if not of_host or other.host is host), None)
            if oldest is None:
                return excess
            self._drop(oldest)
        self._store(state, offer, state.due_at(), effects)
        return None

    def _store(
        self, state: HostMembership, offer: Interest | None, due_at: float, effects: list[MembershipEffect]
    ) -> None:
        """Store a new state, which adds `offer` to its port's interest, and is looked at no later than `due_at`."""
        membership, host = state.membership, state.host
        group, port, mac, states = membership.group, membership.port, host.ref[0], host.states
        is_link_scope, others = membership.is_link_scope, membership.hosts
        self.state_count += 1
        host.group_count += not is_link_scope
        if not states:
            port.hosts[membership.family][mac] = host
            self.identities.enter(host)
        if not others:
            port.groups[group] = membership
            port.group_counts[is_link_scope] += 1
            if group in self._ports:
                self._ports[group][port] = None
            else:
                self._ports[group] = {port: None}
        states[group] = others[mac] = state
        self._changed(group)
        self._timers.arm(state, due_at)
        if offer is None:
            port.refused[state] = None
            return
        state.offer = offer
        self.admitted_count += not is_link_scope
        if offer is ANY_SOURCE:
            membership.open_count += 1
        self._publish(membership, offer if offer is ANY_SOURCE else membership.merged(), effects)

    def _excess(self, membership: PortGroup, host: MemberHost) -> str | None:
        limits, port, is_link_scope = self.limits, membership.port, membership.is_link_scope
        if self.state_count >= limits.states:
            return "limit-states"
        if not membership.hosts:
            limit = limits.link_groups_per_port if is_link_scope else limits.groups_per_port
            if port.group_counts[is_link_scope] >= limit:
                return "limit-groups"
        if not is_link_scope and host.group_count >= limits.groups_per_host:
            return "limit-host-groups"
        if not host.states and port.host_count >= limits.hosts_per_port:
            return "limit-hosts"
        return None

    def _resolve(
        self, state: HostMembership, ask: QueriesWanted, timing: Timing, now: float, effects: list[MembershipEffect]
    ) -> None:
        """Do what the tables' queries are for: settle what needs no question, ask for the rest."""
        membership, port = state.membership, state.membership.port
        limit = now + timing.last_member_time_s
        is_older = membership.is_older(now)
        settled = state.refused(ask)
        rest = QueriesWanted(ask.group and not settled.group, ask.sources - settled.sources)
        if rest:
            election = self._queriers.election(membership.family, port.dpid)
            # Nobody asks after what the querier itself has left.
            asks_itself = election is not None and election.other.mac == state.host.ref.mac
            if asks_itself or applies(self.settings.fast_leave, (port.dpid, port.port_no)):
                if not is_older or not membership.has_other_member(state):
                    settled = ask
            elif not is_older:
                covered = membership.covered(state, rest, limit)
                settled = QueriesWanted(settled.group or covered.group, settled.sources | covered.sources)
        rest = QueriesWanted(ask.group and not settled.group, ask.sources - settled.sources)
        if settled:
            state.settle(settled)
        if rest:
            self._ask(state, rest, timing, now, effects)

    def _ask(
        self, state: HostMembership, ask: QueriesWanted, timing: Timing, now: float, effects: list[MembershipEffect]
    ) -> None:
        membership, family = state.membership, state.membership.family
        is_querier = self._queriers.is_querier(family, membership.port.dpid)
        version = self.settings.version(family) if is_querier else 0
        limit = now + timing.last_member_time_s
        queries = membership.queries or SpecificQueries(membership)
        if ask.group:
            can_ask = version > 1 or (version == 1 and family == 6)
            due = state.group_due()
            state.lower_group(limit if can_ask else inf)
            state.leaving = True
            if can_ask and due > limit:
                queries.ask_group(now, timing.last_member_count)
                if membership.is_older(now):
                    membership.lower((), limit, self._timers)
        if ask.sources and version == LATEST_VERSION[family]:
            lowered = state.lower_sources(ask.sources, limit)
            if lowered:
                queries.ask_sources(lowered, now, timing.last_member_count)
        if queries.due_at() <= now:
            membership.queries = queries
            self.fire(queries, now, effects)

    def _rejudge(self, states: Iterable[HostMembership], effects: list[MembershipEffect]) -> None:
        for state in states:
            self._judge(state, effects, state.verdicts.keys())
            self._offer(state)
            self._publish(state.membership, state.membership.merged(), effects)

    def _judge(
        self, state: HostMembership, effects: list[MembershipEffect], afresh: Collection[bytes | None] = ()
    ) -> None:
        """Fill in the verdicts that the state's mode and sources call for, those of `afresh` anew."""
        known, group = state.verdicts, state.membership.group
        if state.mode is _EXCLUDE:
            if not afresh and known is _VERDICTS[True]:
                return
            old = known.get(None)
            verdict = bool(self._admit(state.ref, group, None)) if old is None or None in afresh else old
            if not verdict and old is not False:
                effects.append(MembershipRefused(state.ref, group, None))
            state.verdicts = _VERDICTS[verdict]
            return
        if not afresh and known.keys() == state.timers.keys():
            return
        verdicts: dict[bytes | None, bool] = {}
        for source in sorted(state.timers):
            old = known.get(source)
            verdict = bool(self._admit(state.ref, group, source)) if old is None or source in afresh else old
            if not verdict and old is not False:
                effects.append(MembershipRefused(state.ref, group, source))
            verdicts[source] = verdict
        state.verdicts = verdicts

    def _conclude(self, state: HostMembership, effects: list[MembershipEffect]) -> None:
        """Bring tables, timers and interest up to date after a change of a state."""
        if state.is_empty:
            self._drop(state)
        else:
            self._judge(state, effects)
            self._timers.arm(state, state.due_at())
            if not self._offer(state):
                return
        self._publish(state.membership, state.membership.merged(), effects)

    def _offer(self, state: HostMembership) -> bool:
        """Take over what the state now adds to the interest; tell whether that changed."""
        offer = state.admitted_offer()
        refused = state.membership.port.refused
        if offer is None:
            refused[state] = None
        elif state in refused:
            del refused[state]
        self._changed(state.membership.group)
        if offer == state.offer:
            return False
        if not state.membership.is_link_scope:
            self.admitted_count += (offer is not None) - (state.offer is not None)
        state.membership.set_offer(state, offer)
        return True

    def _drop(self, state: HostMembership) -> None:
        self._timers.cancel(state)
        membership, port, group = state.membership, state.membership.port, state.membership.group
        self.admitted_count -= state.offer is not None and not membership.is_link_scope
        port.unlink(state)
        self.state_count -= 1
        if not state.host.states:
            self.identities.leave(state.host)
        if not membership.hosts:
            ports = self._ports[group]
            del ports[port]
            if not ports:
                del self._ports[group]
        self._changed(group)

    def _publish(self, membership: PortGroup, interest: Interest | None, effects: list[MembershipEffect]) -> None:
        if interest != membership.interest:
            membership.interest = interest
            port = membership.port
            effects.append(_new(InterestChanged, (port.dpid, port.port_no, membership.group, interest)))
