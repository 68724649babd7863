"""Entries that groups share at the cores of a fat tree: the MAC address of a packet names the ports it leaves by.

A switch whose neighbours on a tree have no host of the group does the same for every group that it sends to the same
ports. So the switch before it writes these ports into the destination MAC address of its packets, and it has one
entry for each set of ports; the switch behind it goes by the IP address of the group, and writes back what its own
neighbours go by. A set of ports in an address always means the same: a packet that carries the one of before, or of
another tree, goes where that says, and never elsewhere. Its entry needs to know neither group nor tree version.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from controller.rules.compile import (
    TREE_VERSIONS,
    VERSION_MASK,
    ChannelDuty,
    PartEntry,
    RuleSet,
    SenderEntry,
    Source,
    SwitchDuty,
    versioned_mac,
)
from controller.rules.compile_cover import CoverDuty
from controller.rules.cookies import SHARED_COOKIE
from controller.rules.model import Action, FlowEntry, FlowKey, Match, Output, SetEthDst
from controller.rules.pipeline import (
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    FORWARD,
    PRIORITY_PORT_SET,
    SENDER_COOKIE_BIT,
    VLAN_FORWARD,
)

HIGHEST_SHARED_PORT = 32
"""The addresses have a bit for each port up to this one: switches share no entry that sends by a higher one."""

PortBits: TypeAlias = int
"""A set of ports: bit n - 1 is port n, 1 to `HIGHEST_SHARED_PORT`."""

Onward: TypeAlias = tuple[tuple[int, PortBits], ...]
"""By port to a switch that shares its entries, the ports by which packets leave that one."""

_MARK = 0x80
SHARED_MASK = b"\xff\xf0\xff\xff\xff\xff"
"""What an entry for a set of ports asks of an address: all but the tree version."""


class SharedDuty(NamedTuple):
    """What a switch does that shares its entries: only where packets go, by channel."""

    tree_version: int
    channels: tuple[ChannelDuty, ...]
    senders: tuple[SenderEntry, ...] = ()
    kind: str = "shared"


class BesideDuty(NamedTuple):
    """What a switch does that is next to such: `onward` says what it writes into packets, for each of `channels`."""

    tree_version: int
    channels: tuple[ChannelDuty, ...]
    senders: tuple[SenderEntry, ...]
    onward: tuple[Onward, ...]


TreeDuty: TypeAlias = SwitchDuty | SharedDuty | BesideDuty | CoverDuty
"""What a switch does on one tree of a group."""


class ApartDuty(NamedTuple):
    """What a switch does for a group of which some channels are under covering trees by themselves.

    `own` is what it does on the tree of all others, None for nothing, and `apart` what it does for each of these
    channels. `channels` and `senders` are those of all, and `tree_version` is that of the first covering tree.
    """

    tree_version: int
    channels: tuple[ChannelDuty, ...]
    senders: tuple[SenderEntry | PartEntry, ...]
    own: TreeDuty | None
    apart: tuple[TreeDuty, ...]


GroupDuty: TypeAlias = TreeDuty | ApartDuty
"""What a switch does for a group."""


def shares(tree_version: int) -> bool:
    """Tell whether switches may share the entries of a group's tree, by its version (see `TREE_VERSIONS`).

    So they may under a covering tree.
    """
    return tree_version > TREE_VERSIONS


def port_set_mac(group: bytes, tree_version: int, ports: PortBits) -> bytes:
    """Return the destination MAC address that packets of `group` (4 or 16 bytes) carry to a switch that shares.

    It begins as `versioned_mac` does, with a bit of the second byte flipped that no tree version flips; the last four
    bytes are the ports. No group's own address, and none of a tree version, is among these.
    """
    mac = versioned_mac(group, tree_version)
    return bytes((mac[0], mac[1] ^ _MARK)) + ports.to_bytes(4, "big")


def shared_duties(
    duties: Mapping[int, GroupDuty],
    neighbours: Mapping[int, AbstractSet[int]],
    port: Callable[[int, int], int],
    rewriting: Container[int],
) -> dict[int, GroupDuty]:
    """Return what switches do of which some share their entries.

    Those share that have neither hosts of the group nor a neighbour on the tree that has any, or that shares.

    Parameters
    ----------
    duties
        What each does; those that share already, or are next to such, are left as they are.
    neighbours
        The trees: the switches next to each switch on them.
    port
        Port number at the first switch that leads to the second.
    rewriting
        The switches that can match part of an address and write another one: those of OpenFlow 1.3.
    """
    found: dict[int, GroupDuty] = dict(duties)
    inner = {dpid: duty for dpid, duty in duties.items() if _is_inner(duty) and dpid in rewriting}
    beside: dict[int, dict[int, tuple[ChannelDuty, ...]]] = {}
    sharing: set[int] = set()
    for dpid in sorted(inner):
        duty = inner[dpid]
        near = [neighbour for neighbour in neighbours.get(dpid, ()) if neighbour in duties]
        ports = {number for channel in duty.channels for number in channel.trunk_ports}
        if (
            not near
            or not inner.keys() >= set(near)
            or not sharing.isdisjoint(near)
            or max(ports) > HIGHEST_SHARED_PORT
        ):
            continue
        sharing.add(dpid)
        found[dpid] = SharedDuty(duty.tree_version, duty.channels)
        for neighbour in near:
            beside.setdefault(neighbour, {})[port(neighbour, dpid)] = duty.channels
    for dpid, by_port in beside.items():
        found[dpid] = _beside(duties[dpid], by_port)
    return found


def _is_inner(duty: GroupDuty) -> bool:
    """Tell whether a switch only sends packets on to other switches, and shares nothing yet."""
    if type(duty) is not SwitchDuty or duty.senders or any(channel.host_ports for channel in duty.channels):
        return False
    return any(channel.trunk_ports for channel in duty.channels)


def _channel_of(channels: Iterable[ChannelDuty], source: Source) -> ChannelDuty | None:
    """Return the channel of a source: its own where it has one, else that of all others."""
    found = None
    for channel in channels:
        if channel.source == source:
            return channel
        if channel.source is None:
            found = channel
    return found


def _beside(duty: GroupDuty, by_port: Mapping[int, tuple[ChannelDuty, ...]]) -> BesideDuty:
    """Return what a switch does next to some that share, whose channels are known by the ports that lead to them.

    Sources that it treats alike may go on by different ports from there.
    """
    known = dict.fromkeys(channel.source for channel in duty.channels)
    for beyond in by_port.values():
        known.update(dict.fromkeys(channel.source for channel in beyond))
    channels: list[ChannelDuty] = []
    onward: list[Onward] = []
    others: tuple[object, ...] = ((), (), ())
    for source in sorted(known, key=lambda source: (source is not None, source or b"")):
        own = _channel_of(duty.channels, source)
        if own is None:
            continue
        ways = []
        for trunk in own.trunk_ports:
            beyond_it = _channel_of(by_port.get(trunk, ()), source)
            if beyond_it is not None:
                ways.append((trunk, _bits(beyond_it.trunk_ports)))
        does = (own.trunk_ports, own.host_ports, tuple(ways))
        if source is None:
            others = does
        if source is None or does != others:
            channels.append(ChannelDuty(source, own.trunk_ports, own.host_ports))
            onward.append(tuple(ways))
    return BesideDuty(duty.tree_version, tuple(channels), (), tuple(onward))


@lru_cache(maxsize=4096)
def _bits(ports: tuple[int, ...]) -> PortBits:
    return sum(1 << port_no - 1 for port_no in ports)


def shared_rules(group: bytes, in_vlan: bool, duty: SharedDuty) -> RuleSet:
    """Return the entries of a switch that shares them: one for each set of ports, whatever the group and its VLAN.

    `group` (4 or 16 bytes) tells the family, which has addresses of its own.
    """
    sets = dict.fromkeys(channel.trunk_ports for channel in duty.channels if channel.trunk_ports)
    rules = [_port_set_rule(VLAN_FORWARD if in_vlan else FORWARD, len(group), ports) for ports in sets]
    return {rule.key: rule for rule in rules}


@lru_cache(maxsize=4096)
def _port_set_rule(table: int, group_bytes: int, ports: tuple[int, ...]) -> FlowEntry:
    family = bytes(group_bytes)
    mac = port_set_mac(family, 1, _bits(ports))
    value = bytes(byte & kept for byte, kept in zip(mac, SHARED_MASK, strict=True))
    match = Match(eth_dst=value, eth_dst_mask=SHARED_MASK, eth_type=_eth_type(family))
    return FlowEntry(FlowKey(table, PRIORITY_PORT_SET, match), tuple(map(Output, ports)), SHARED_COOKIE)


def is_shared(rule: FlowEntry) -> bool:
    """Tell whether an entry is one that groups share."""
    return rule.cookie == SHARED_COOKIE


def in_shared_form(group: bytes, duty: SwitchDuty | BesideDuty, rules: RuleSet) -> RuleSet:
    """Return the entries of a switch of OpenFlow 1.3 on a tree on which others share theirs.

    The packets of a tree version are known by the part of their address that is the same whichever ports it names. So
    they have the same keys next to switches that share and elsewhere.

    Parameters
    ----------
    group
        The address of the group, 4 or 16 bytes.
    duty
        What the switch does.
    rules
        The entries that say so where nobody shares.
    """
    carried = versioned_mac(group, duty.tree_version)
    part = bytes(byte & kept for byte, kept in zip(carried, VERSION_MASK, strict=True))
    onward: dict[Source, Onward] = {}
    is_beside = isinstance(duty, BesideDuty)
    if isinstance(duty, BesideDuty):
        onward = {channel.source: ways for channel, ways in zip(duty.channels, duty.onward, strict=True)}
    found: RuleSet = {}
    for key, rule in rules.items():
        if rule.cookie & SENDER_COOKIE_BIT:
            found[key] = rule
            continue
        match = key.match._replace(eth_dst=part, eth_dst_mask=VERSION_MASK)
        actions = rule.actions
        if is_beside:
            actions = _written(group, duty.tree_version, onward.get(key.match.ip_src, ()), actions)
        found[FlowKey(key.table, key.priority, match)] = rule._replace(key=key._replace(match=match), actions=actions)
    return found


def _written(group: bytes, tree_version: int, onward: Onward, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return an output list that writes into packets what each switch beyond goes by, whatever they carry so far."""
    to_sharing = {port_no for port_no, _ in onward}
    rest = [action for action in actions if not (isinstance(action, Output) and action.port_no in to_sharing)]
    written: list[Action] = []
    for port_no, ports in onward:
        written += [SetEthDst(port_set_mac(group, tree_version, ports)), Output(port_no)]
    if rest:
        written.append(SetEthDst(versioned_mac(group, tree_version)))
    return (*written, *rest)


def _eth_type(group: bytes) -> int:
    return ETH_TYPE_IPV4 if len(group) == 4 else ETH_TYPE_IPV6
