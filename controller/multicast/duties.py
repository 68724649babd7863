"""What a group's members, senders and tree have each switch do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from controller.membership.events import FilterMode
from controller.multicast.group import Group, Sender, SenderKey
from controller.rules.compile import (
    ChannelDuty,
    SenderEntry,
    Source,
    SwitchDuty,
    channel_duties,
)
from controller.trees.tree import Tree

Ports = Mapping[int, AbstractSet[int]]
"""Port numbers by dpid."""


def group_duties(
    group: Group, trees: Iterable[Tree], port: Callable[[int, int], int], router_ports: Ports
) -> dict[int, SwitchDuty]:
    """Return what each switch does for a group; switches with nothing to do are left out.

    Parameters
    ----------
    group, trees
        The group and its trees, no two of which have a switch in common; terminals that are on none get nothing.
    port
        Port number at the first switch that leads to the second.
    router_ports
        Ports that get every packet of a group that is served at all.
    """
    channels: dict[int, tuple[ChannelDuty, ...]] = {}
    members = _members(group, router_ports)
    for tree in trees:
        channels |= channel_duties(
            tree.adjacent,  # type: ignore[arg-type]
            port,
            members,
            (None, *(group.named_sources or ())),
        )
    senders = _senders(group)
    duties = {}
    for dpid in channels.keys() | senders.keys():
        entries = tuple(sorted(senders.get(dpid, ())))
        if entries or channels.get(dpid):
            duties[dpid] = SwitchDuty(group.tree_version, channels.get(dpid, ()), entries)
    return duties


def refusals(group: Group, served: Callable[[int], bool]) -> dict[int, SwitchDuty]:
    """Return duties that drop every sender of a group at its own port, at the switches that can."""
    duties = {}
    for dpid, entries in _senders(group).items():
        if served(dpid):
            duties[dpid] = SwitchDuty(0, (), tuple(sorted(entry._replace(admitted=False) for entry in entries)))
    return duties


def receivers_of(
    group: Group, source: bytes, trees: Iterable[Tree], router_ports: Ports
) -> Iterator[tuple[int, int]]:
    """Yield every (dpid, OIF) on the trees of a group with a member or router that wants a packet of `source`."""
    for dpid in (dpid for tree in trees for dpid in tree.adjacent):
        at_switch = router_ports.get(dpid, ())  # type: ignore[call-overload]
        for port_no, interest in group.interests.get(dpid, {}).items():  # type: ignore[call-overload]
            if interest.wants(source) and port_no not in at_switch:
                yield dpid, port_no  # type: ignore[misc]
        for port_no in at_switch:
            yield dpid, port_no  # type: ignore[misc]


def _members(group: Group, router_ports: Ports) -> dict[int, dict[Source, list[int]]]:
    sources = group.named_sources or ()
    members: dict[int, dict[Source, list[int]]] = {}
    for dpid, ports in group.interests.items():
        wanted: dict[Source, list[int]] = {}
        others = [port_no for port_no, interest in ports.items() if interest.mode is FilterMode.EXCLUDE]
        if others:
            wanted[None] = others
        for source in sources:
            wanting = [port_no for port_no, interest in ports.items() if interest.wants(source)]
            if wanting:
                wanted[source] = wanting
        members[dpid] = wanted
    for dpid, port_nos in router_ports.items():
        wanted = members.setdefault(dpid, {})
        for channel in (None, *sources):
            wanted[channel] = sorted({*wanted.get(channel, ()), *port_nos})
    return members


def sender_entry(key: SenderKey, sender: Sender) -> SenderEntry:
    """Return what the switch of a sender does with its packets."""
    return SenderEntry(key.port_no, key.mac, key.address, sender.admitted, sender.dscp)


def _senders(group: Group) -> dict[int, list[SenderEntry]]:
    senders: dict[int, list[SenderEntry]] = {}
    for key, sender in group.senders.items():
        senders.setdefault(key.dpid, []).append(sender_entry(key, sender))
    return senders
