"""What a group's members, senders and tree have each switch do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

from controller.effects import Notice
from controller.membership.events import FilterMode, Interest
from controller.multicast.covers import Cover
from controller.multicast.group import Group, Sender, SenderKey
from controller.multicast.router_table import RouterInterests
from controller.rules.compile import (
    ChannelDuty,
    PartEntry,
    SenderEntry,
    Source,
    SwitchDuty,
    channel_duties,
    supports,
)
from controller.trees.tree import Tree
from controller.wire.addresses import format_ip


def group_duties(
    group: Group,
    trees: Iterable[Tree | Cover],
    port: Callable[[int, int], int],
    routers: RouterInterests,
    apart: Collection[bytes] = (),
) -> dict[int, SwitchDuty]:
    """Return what each switch does for a group; switches with nothing to do are left out.

    Parameters
    ----------
    group, trees
        The group and its trees, or the covering tree that it is under, no two of which have a switch in common;
        terminals that are on none get nothing.
    port
        Port number at the first switch that leads to the second.
    routers
        What router ports get of a group that is served at all.
    apart
        Sources whose channels are on none of these trees.
    """
    channels: dict[int, tuple[ChannelDuty, ...]] = {}
    sources = dict.fromkeys(group.named_sources or ())
    for interests in routers.values():
        for interest in interests.values():
            sources.update(dict.fromkeys(interest.sources))
    for source in apart:
        sources.pop(source, None)
    members = members_of(group, sources, routers)
    for tree in trees:
        channels |= channel_duties(
            tree.adjacent,  # type: ignore[arg-type]
            port,
            members,
            (None, *sources),
        )
    senders = senders_of(group, apart)
    duties = {}
    for dpid in channels.keys() | senders.keys() | (group.parts or {}).keys():
        own: tuple[SenderEntry | PartEntry, ...] = tuple(sorted(senders.get(dpid, ())))
        entries = own if group.parts is None else own + group.part_entries(dpid)
        if entries or channels.get(dpid):
            duties[dpid] = SwitchDuty(group.tree_version, channels.get(dpid, ()), entries)
    return duties


def refusals(group: Group, served: Callable[[int], bool]) -> dict[int, SwitchDuty]:
    """Return duties that drop every sender of a group at its own port, at the switches that can."""
    duties = {}
    for dpid, entries in senders_of(group).items():
        if served(dpid):
            duties[dpid] = SwitchDuty(0, (), tuple(sorted(entry._replace(admitted=False) for entry in entries)))
    return duties


def where_supported(
    group: Group, duties: dict[int, SwitchDuty], ofp_versions: Mapping[int, int]
) -> tuple[dict[int, SwitchDuty], str | None]:
    """Return what switches do for a group and None, or `refusals` and the reason where one cannot do its part."""
    for dpid in duties:
        why = supports(ofp_versions.get(dpid, 0), group.address)
        if why is not None:
            served = refusals(group, lambda at: supports(ofp_versions.get(at, 0), group.address) is None)
            return served, f"switch {dpid}: {why}"
    return duties, None


def not_served(address: bytes, reason: str) -> Notice:
    """Return the notice that a group is not served."""
    name = format_ip(address)
    return Notice("group-unsupported", f"Group {name} is not served: {reason}.", (("group", name),))


def duties_out(group: Group) -> dict[int, SwitchDuty]:
    """Return what switches do for a group that is out of their tables: they drop its refused senders."""
    duties = {}
    for dpid, entries in senders_of(group).items():
        refused = tuple(sorted(entry for entry in entries if not entry.admitted))
        if refused:
            duties[dpid] = SwitchDuty(0, (), refused)
    return duties


def receivers_of(
    group: Group, source: bytes, trees: Iterable[Tree], routers: RouterInterests
) -> Iterator[tuple[int, int]]:
    """Yield every (dpid, OIF) on the trees of a group with a member or router that wants a packet of `source`."""
    for dpid in (dpid for tree in trees for dpid in tree.nodes()):
        at_switch = routers.get(dpid, {})  # type: ignore[call-overload]
        to_routers = [port_no for port_no, interest in at_switch.items() if interest.wants(source)]
        for port_no, interest in group.interests.get(dpid, {}).items():  # type: ignore[call-overload]
            if interest.wants(source) and port_no not in to_routers:
                yield dpid, port_no  # type: ignore[misc]
        for port_no in to_routers:
            yield dpid, port_no  # type: ignore[misc]


def members_of(
    group: Group, sources: Iterable[bytes], routers: RouterInterests
) -> dict[int, dict[Source, list[int]]]:
    """Return by switch which ports, to hosts and routers, want each of some sources, and which every other one."""
    members: dict[int, dict[Source, list[int]]] = {}
    for dpid, interests in group.interests.items():
        members[dpid] = _wanting(interests, sources)
    for dpid, at_switch in routers.items():
        wanted = members.setdefault(dpid, {})
        for source, port_nos in _wanting(at_switch, sources).items():
            wanted[source] = sorted({*wanted.get(source, ()), *port_nos})
    return members


def _wanting(ports: Mapping[int, Interest], sources: Iterable[bytes]) -> dict[Source, list[int]]:
    """Return which ports want each of some sources, and which every other one (None)."""
    wanted: dict[Source, list[int]] = {}
    others = [port_no for port_no, interest in ports.items() if interest.mode is FilterMode.EXCLUDE]
    if others:
        wanted[None] = others
    for source in sources:
        wanting = [port_no for port_no, interest in ports.items() if interest.wants(source)]
        if wanting:
            wanted[source] = wanting
    return wanted


def sender_entry(key: SenderKey, sender: Sender, is_split: bool) -> SenderEntry:
    """Return what the switch of a sender does with its packets; it `is_split` where they take trees by their flow."""
    return SenderEntry(
        key.port_no, key.mac, key.address, sender.admitted, sender.mark.dscp, is_split and sender.admitted
    )


def senders_of(group: Group, apart: Container[bytes] = ()) -> dict[int, list[SenderEntry]]:
    """Return what switches do with the packets of each sender, but for those of channels that are apart."""
    senders: dict[int, list[SenderEntry]] = {}
    for key, sender in group.own_senders().items():
        if not (sender.admitted and key.address in apart):
            senders.setdefault(key.dpid, []).append(sender_entry(key, sender, group.divides_at(key.dpid)))
    return senders
