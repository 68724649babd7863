"""Membership state as plain records for a journal, so that a restarted controller forwards on without a gap."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from controller.membership.events import FilterMode, HostRef, MembershipEffect, SavedMembership
from controller.membership.limits import MembershipTally
from controller.membership.members import HostMemberships
from controller.membership.older_reports import OlderReports
from controller.membership.pim_joins import OVERRIDE_S, Channel, Joined, JoinedGroup, PimJoins, Pruned
from controller.membership.querier import FAMILIES, Election, OtherQuerier, Queriers
from controller.membership.router_admission import RouterAdmission
from controller.membership.router_ports import HELLO_BELIEVED_S, Heard, HeardRouter, RouterPort, RouterPortTable
from controller.membership.tables import HostMembership, MemberPort, PortGroup
from controller.membership.timers import TimedState
from controller.wire.addresses import (
    format_ip,
    format_mac,
    is_multicast_ip,
    is_never_pruned,
    parse_ip,
    parse_mac,
)

Record: TypeAlias = dict[str, Any]

HOSTS_CACHED = 16384
"""Hosts whose part of a record is kept as text."""

_BOOLEANS = {False: "false", True: "true"}


class KeptParts(Protocol):
    """What is kept: the parts of a membership core that have state which outlasts it."""

    ports: dict[tuple[int, int], MemberPort]
    older: OlderReports
    tally: MembershipTally
    queriers: Queriers
    router_ports: RouterPortTable
    router_admission: RouterAdmission
    pim_joins: PimJoins
    members_table: HostMemberships

    def on_deadline(self, now: float) -> list[MembershipEffect]:
        """Let everything happen that is due."""

    def forget_unused(self, port: MemberPort) -> None:
        """Forget a port that was never added and holds nothing."""


def snapshot(core: KeptParts, now: float) -> list[Record]:
    """Return the state of a core as JSON-able records with remaining times in seconds.

    Queriers, router ports (static ones come from the settings), compatibility timers and memberships are kept;
    queries under way are not.
    """
    groups = ((port, membership) for port in core.ports.values() for membership in port.groups.values())
    texts = (text for port, membership in groups for text in _group_texts(port, membership, now))
    return [*routers_snapshot(core, now), *map(json.loads, texts)]


def routers_snapshot(core: KeptParts, now: float) -> list[Record]:
    """Return the records of queriers and router ports alone."""
    records: list[Record] = []
    for family in FAMILIES:
        for election in core.queriers.elections(family):
            other = election.other
            records.append(
                {
                    "record": "querier",
                    "family": family,
                    "address": format_ip(other.address),
                    "mac": format_mac(other.mac),
                    "dpid": other.dpid,
                    "port_no": other.port_no,
                    "robustness": other.robustness,
                    "query_interval_s": other.query_interval_s,
                    "remaining_s": election.until - now,
                }
            )
    for entry in core.router_ports:
        routers = [
            {
                "address": format_ip(speaker.address),
                "mac": format_mac(heard.host.mac),
                "asks": speaker.asks,
                "dr_priority": heard.dr_priority,
                "remaining_s": heard.until - now,
            }
            for speaker, heard in entry.routers.items()
            if heard.until > now
        ]
        if routers:
            records.append(
                {
                    "record": "router",
                    "dpid": entry.dpid,
                    "port_no": entry.port_no,
                    "family": entry.family,
                    "routers": routers,
                }
            )
    for joined in core.pim_joins:
        joins = [
            {
                "router": format_ip(router),
                "source": None if source is None else format_ip(source),
                "upstream": format_ip(join.upstream),
                "remaining_s": join.until - now,
            }
            for (router, source), join in joined.joins.items()
            if join.until > now and not join.is_pruned
        ]
        prunes = [
            {
                "router": format_ip(router),
                "source": format_ip(source),
                "upstream": format_ip(prune.upstream),
                "holds_in_s": max(0.0, prune.since - now),
                "remaining_s": prune.until - now,
            }
            for (router, source), prune in joined.prunes.items()
            if prune.until > now
        ]
        dpid, port_no = joined.place
        place = {"dpid": dpid, "port_no": port_no, "group": format_ip(joined.group)}
        records.append({"record": "pim-joins", **place, "joins": joins, "prunes": prunes})
    return records


def group_texts(core: KeptParts, group: bytes, ports: Iterable[tuple[int, int]], now: float) -> list[str]:
    """Return the records of one group at the given ports, each as JSON has it."""
    texts: list[str] = []
    for key in ports:
        port = core.ports.get(key)
        membership = None if port is None else port.groups.get(group)
        if port is not None and membership is not None:
            texts += _group_texts(port, membership, now)
    return texts


def restore(core: KeptParts, records: Iterable[Record], now: float, elapsed_s: float) -> list[MembershipEffect]:
    """Enter the records of a snapshot taken `elapsed_s` seconds ago and return the effects.

    Ports need not have been added yet; what is restored there ages all the same. Admission is asked anew. A record
    that cannot be read, or that says what no report can, is counted as ``journal-record`` and passed over.
    """
    effects = core.on_deadline(now)
    start = now - elapsed_s
    for record in records:
        try:
            _RESTORERS[record["record"]](core, record, start, now, effects)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            core.tally.count("journal-record")
    return effects


def forget(core: KeptParts, records: Iterable[Record], now: float) -> list[MembershipEffect]:
    """End what records of a snapshot tell of, as far as it is there, and return the effects.

    A record that cannot be read, of which `restore` has entered nothing, is passed over.
    """
    effects = core.on_deadline(now)
    endings: list[TimedState] = []
    for record in records:
        with suppress(AttributeError, KeyError, OverflowError, TypeError, ValueError):
            endings += _endings(core, record)
    states = [ending for ending in endings if isinstance(ending, HostMembership)]
    core.members_table.remove(states, effects)
    for state in states:
        core.forget_unused(state.membership.port)
    for ending in endings:
        if isinstance(ending, Election):
            core.queriers.forget(ending)
        elif isinstance(ending, RouterPort):
            core.router_ports.forget(ending, now, effects)
        elif isinstance(ending, JoinedGroup):
            core.pim_joins.forget(ending, effects)
    return effects


def _endings(core: KeptParts, record: Record) -> Iterator[TimedState]:
    """Yield what a record tells of: at most one, none for timers of older versions, which end by themselves."""
    kind = record["record"]
    if kind == "querier":
        family, address = int(record["family"]), parse_ip(record["address"])
        yield from (each for each in core.queriers.elections(family) if each.other.address == address)
        return
    place = (int(record["dpid"]), int(record["port_no"]))
    if kind == "member":
        port = core.ports.get(place)
        membership = None if port is None else port.groups.get(parse_ip(record["group"]))
        state = None if membership is None else membership.hosts.get(parse_mac(record["mac"]))
        if state is not None:
            yield state
    elif kind == "router":
        entry = core.router_ports.get(*place, int(record["family"]))
        if entry is not None:
            yield entry
    elif kind == "pim-joins":
        group = parse_ip(record["group"])
        yield from (each for each in core.pim_joins if (each.place, each.group) == (place, group))


def postpone(core: KeptParts, by_s: float) -> Iterator[None]:
    """Have everything that ends at a time end so much later; it is done when all steps were taken."""
    for port in list(core.ports.values()):
        for membership in port.groups.values():
            membership.v1_until += by_s
            membership.old_until += by_s
            membership.shared_expiry += by_s
            for state in membership.hosts.values():
                state.group_expiry += by_s
                if state.timers:
                    state.timers = {source: at + by_s for source, at in state.timers.items()}
        yield
    core.older.postpone(by_s)
    for family in FAMILIES:
        for election in core.queriers.elections(family):
            election.until += by_s
    for entry in core.router_ports:
        entry.settles_at += by_s
        entry.routers = {who: heard._replace(until=heard.until + by_s) for who, heard in entry.routers.items()}
    for joined in core.pim_joins:
        joined.postpone(by_s)
    yield


def _group_texts(port: MemberPort, membership: PortGroup, now: float) -> Iterator[str]:
    """Yield the records of a group at a port: its members, then the timers of older versions where they run."""
    head = f'"dpid":{port.dpid},"port_no":{port.port_no},"group":"{format_ip(membership.group)}"'
    for state in membership.hosts.values():
        left_s = state.group_due() - now
        mode = "exclude" if state.mode is FilterMode.EXCLUDE else "include"
        sources = _left_text(state.timers, now) if state.timers else ""
        excluded = _listed(tuple(sorted(state.excluded))) if state.excluded else ""
        yield (
            f'{{"record":"member",{head},{_host_text(state.ref)},"spoofed":{_BOOLEANS[state.is_false]},"mode":"{mode}",'
            f'"group_s":{left_s if left_s > 0.0 else 0.0!r},"sources":{{{sources}}},"excluded":[{excluded}],'
            f'"leaving":{_BOOLEANS[state.leaving]}}}'
        )
    if membership.is_older(now):
        v1_s, older_s = max(0.0, membership.v1_until - now), max(0.0, membership.old_until - now)
        yield f'{{"record":"group",{head},"v1_s":{v1_s!r},"older_s":{older_s!r}}}'


@lru_cache(maxsize=HOSTS_CACHED)
def _host_text(ref: HostRef) -> str:
    """Return what the records of all memberships of a host have in common."""
    return f'"mac":"{format_mac(ref.mac)}","ip":"{format_ip(ref.ip)}","known":[{_listed(ref.known)}]'


def _listed(addresses: tuple[bytes, ...]) -> str:
    return ",".join([f'"{format_ip(address)}"' for address in addresses])


def _left_text(timers: Mapping[bytes, float], now: float) -> str:
    return ",".join([f'"{format_ip(source)}":{at - now!r}' for source, at in sorted(timers.items())])


def _restore_member(
    core: KeptParts, record: Record, start: float, now: float, effects: list[MembershipEffect]
) -> None:
    group, ip = parse_ip(record["group"]), parse_ip(record["ip"])
    mode = FilterMode[record["mode"].upper()]
    family = 4 if len(group) == 4 else 6
    longest = core.queriers.timing(family, int(record["dpid"])).membership_s
    group_expiry = start + _bounded(record["group_s"], longest)
    timers = {parse_ip(text): start + _bounded(left, longest) for text, left in record["sources"].items()}
    excluded = frozenset(map(parse_ip, record["excluded"]))
    if not is_multicast_ip(group) or is_never_pruned(group):
        raise ValueError("no group of a membership")
    if any(len(address) != len(group) for address in (ip, *timers, *excluded)):
        raise ValueError("addresses of two families")
    timers = {source: at for source, at in timers.items() if at > now}
    if group_expiry <= now:
        mode, excluded = FilterMode.INCLUDE, frozenset()
    if mode is FilterMode.INCLUDE and not timers:
        return
    known = tuple(map(parse_ip, record.get("known", ())))
    place = (int(record["dpid"]), int(record["port_no"]))
    ref = HostRef(parse_mac(record["mac"]), ip, *place, known, bool(record.get("spoofed", False)))
    saved = SavedMembership(mode, group_expiry, timers, excluded, bool(record["leaving"]), start)
    port = core.ports.setdefault((ref.dpid, ref.port_no), MemberPort(ref.dpid, ref.port_no, core.older))
    core.members_table.restore(port, ref, group, saved, effects)
    core.forget_unused(port)


def _restore_group(
    core: KeptParts, record: Record, start: float, now: float, effects: list[MembershipEffect]
) -> None:
    port = core.ports.get((record["dpid"], record["port_no"]))
    membership = None if port is None else port.groups.get(parse_ip(record["group"]))
    if membership is not None:
        longest = core.queriers.timing(membership.family, record["dpid"]).membership_s
        v1_s, older_s = (_bounded(record[name], longest) for name in ("v1_s", "older_s"))
        membership.restore_older(start + v1_s, start + older_s)


def _restore_querier(
    core: KeptParts, record: Record, start: float, now: float, effects: list[MembershipEffect]
) -> None:
    other = OtherQuerier(
        parse_ip(record["address"]),
        parse_mac(record["mac"]),
        int(record["dpid"]),
        int(record["port_no"]),
        int(record["robustness"]),
        float(record["query_interval_s"]),
    )
    family = int(record["family"])
    until = start + float(record["remaining_s"])
    if (
        len(other.address) == (4 if family == 4 else 16)
        and until > now
        and core.queriers.yields_to(family, other.address)
        and core.router_admission.as_querier(HostRef(other.mac, other.address, other.dpid, other.port_no)).admit
    ):
        core.queriers.elect(family, other, until - now, now)


def _restore_router(
    core: KeptParts, record: Record, start: float, now: float, effects: list[MembershipEffect]
) -> None:
    dpid, port_no, family = int(record["dpid"]), int(record["port_no"]), int(record["family"])
    longest_s = max(HELLO_BELIEVED_S, core.queriers.timing(family, dpid).other_querier_s)
    routers = []
    for router in record["routers"]:
        host = HostRef(parse_mac(router["mac"]), parse_ip(router["address"]), dpid, port_no)
        verdict = core.router_admission.as_router(host)
        if verdict.admit:
            until = start + _bounded(router["remaining_s"], longest_s)
            priority = router.get("dr_priority")
            heard = Heard(host, until, verdict.groups, None if priority is None else int(priority))
            routers.append((HeardRouter(host.ip, bool(router["asks"])), heard))
    core.router_ports.restore((dpid, port_no, family), routers, now, effects)


def _restore_pim_joins(
    core: KeptParts, record: Record, start: float, now: float, effects: list[MembershipEffect]
) -> None:
    place, group = (int(record["dpid"]), int(record["port_no"])), parse_ip(record["group"])
    longest_s = core.router_ports.settings.join_believed_s
    joins, prunes = {}, {}
    for join in record["joins"]:
        channel, upstream = _channel(join, group)
        joins[channel] = Joined(upstream, start + _bounded(join["remaining_s"], longest_s))
    for prune in record.get("prunes", ()):
        channel, upstream = _channel(prune, group)
        since = start + _bounded(prune["holds_in_s"], OVERRIDE_S)
        prunes[channel] = Pruned(upstream, since, start + _bounded(prune["remaining_s"], longest_s))
    if core.router_ports.get(*place, 4 if len(group) == 4 else 6) is not None:
        core.pim_joins.restore(place, group, joins, prunes, now, effects)


def _channel(record: Record, group: bytes) -> tuple[Channel, bytes]:
    """Return the router and source of a join or prune, and the router that is asked."""
    router, upstream = parse_ip(record["router"]), parse_ip(record["upstream"])
    source = None if record["source"] is None else parse_ip(record["source"])
    if not is_multicast_ip(group) or any(len(a) != len(group) for a in (router, upstream, source or group)):
        raise ValueError("no join or prune")
    return (router, source), upstream


def _bounded(remaining_s: float, longest_s: float) -> float:
    return min(max(0.0, float(remaining_s)), longest_s)


_RESTORERS = {
    "member": _restore_member,
    "group": _restore_group,
    "querier": _restore_querier,
    "router": _restore_router,
    "pim-joins": _restore_pim_joins,
}
