"""From a group's tree, members and senders to flow entries, for OpenFlow 1.0 and 1.3.

First what each switch has to do (`SwitchDuty`), which knows nothing of OpenFlow; then two lowerings of it.
A link carries a channel towards v only if a receiver of that channel is on v's side, so one flow entry per switch
and channel serves every sender: the ingress port is left out by the switch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from controller.kernel.domains import family_of
from controller.rules.group_match import GroupMatch
from controller.rules.model import (
    OFPP_CONTROLLER,
    Action,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Output,
    SetDscp,
    SetEthDst,
    SetQueue,
    SplitFlows,
)
from controller.rules.pipeline import (
    ADMIT,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    FORWARD,
    OPENFLOW_1_0,
    OPENFLOW_1_3,
    PRIORITY_CHANNEL,
    PRIORITY_GROUP,
    PRIORITY_SENDER,
    SENDER_COOKIE_BIT,
    SPLIT,
)
from controller.wire.addresses import group_mac

Source: TypeAlias = bytes | None
"""A source address, or None for every source that no member names."""

RuleSet: TypeAlias = dict[FlowKey, FlowEntry]


def by_key(rules: Iterable[FlowEntry]) -> RuleSet:
    """Return entries by their keys."""
    return {rule.key: rule for rule in rules}


_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class SenderEntry(NamedTuple):
    """A sender at a port of its own switch; one that is not `admitted` is dropped there.

    Its packets get the code point `dscp` (0 to 63), and keep what they have where that is None. Those of one that
    `is_split` take the trees of their parts (`PartEntry`).
    """

    port_no: int
    mac: bytes
    address: bytes
    admitted: bool
    dscp: int | None = None
    is_split: bool = False


class PartEntry(NamedTuple):
    """A part of the flows that all split senders at a switch send: it takes this tree. No sender has the `mac`."""

    part: int
    mac: bytes = b""


class ChannelDuty(NamedTuple):
    """Where a switch sends packets of one channel: first over trunks, then to hosts and routers."""

    source: Source
    trunk_ports: tuple[int, ...]
    host_ports: tuple[int, ...]


class SwitchDuty(NamedTuple):
    """All that one switch does for one group. `tree_version` is below `TREE_VERSIONS` (see `versioned_mac`).

    `senders` are those that send by the tree, and then the parts of flows that take it.
    """

    tree_version: int
    channels: tuple[ChannelDuty, ...]
    senders: tuple[SenderEntry | PartEntry, ...]


NO_DUTY = SwitchDuty(0, (), ())


@lru_cache(maxsize=16384)
def common_duty(tree_version: int, trunk_ports: tuple[int, ...], host_ports: tuple[int, ...]) -> SwitchDuty:
    """Return what a switch without senders does that treats all sources alike; groups that have it do so share it."""
    return SwitchDuty(tree_version, (ChannelDuty(None, trunk_ports, host_ports),), ())


TREE_VERSIONS = 16
"""Trees that one group may have side by side while traffic moves from one to another.

Where switches share the entries of a tree (`compile_shared`), its version n is told as n + `TREE_VERSIONS`.
"""

COVERED_VERSIONS = 2 * TREE_VERSIONS
"""The tree version of a group under covering tree n (`compile_cover`) is this and n."""

COVER_PREFIX = b"\x03\x4f\0\0"
"""How the destination MAC addresses begin that packets carry over covering trees; the rest is the number of one.

Under `VERSION_MASK` they are of no tree version.
"""

VERSION_MASK = b"\xff\x0f\0\0\0\0"
"""The bits of a destination MAC address that tell the version of such a tree, whichever ports the others name."""


def versioned_mac(group: bytes, tree_version: int) -> bytes:
    """Return the destination MAC address that packets of `group` carry inside the fabric.

    Version 0 is the group's own address (RFC 1112, RFC 2464). The others have the U/L bit (IEEE 802) flipped, which
    leaves multicast addresses that no host uses, and differ in the second byte.
    """
    mac = group_mac(group)
    return bytes((mac[0] ^ 0x02, mac[1] ^ (tree_version - 1) % TREE_VERSIONS)) + mac[2:] if tree_version else mac


_PART_PREFIX = b"\x4e\0\0\0"


def parts_mac(group: bytes) -> bytes:
    """Return the address from which parts of flows to a group are counted (`SplitFlows`).

    It begins as those of tree versions and is none of them, so that a packet whose part has no entry is dropped.
    """
    return versioned_mac(group, 1)[:1] + _PART_PREFIX + b"\0"


def part_of(match: Match) -> int | None:
    """Return the part of flows that an entry of table SPLIT is about, None for other entries."""
    mac = match.eth_dst
    return None if mac is None or match.eth_dst_mask is not None or mac[1:5] != _PART_PREFIX else mac[5]


def tree_version_of(match: Match) -> int:
    """Return the tree version of the packets that an entry of a group matches."""
    if match.eth_dst is None or match.ip_dst is None or part_of(match) is not None:
        return 0
    if match.eth_dst[:4] == COVER_PREFIX:
        return COVERED_VERSIONS + int.from_bytes(match.eth_dst[4:], "big")
    mac = group_mac(match.ip_dst)
    if match.eth_dst_mask == VERSION_MASK:
        return TREE_VERSIONS + 1 + ((match.eth_dst[1] ^ mac[1]) & VERSION_MASK[1]) % (TREE_VERSIONS - 1)
    return 0 if match.eth_dst[0] == mac[0] else (match.eth_dst[1] ^ mac[1]) % (TREE_VERSIONS - 1) + 1


def channel_duties(
    neighbours: Mapping[int, AbstractSet[int]],
    port: Callable[[int, int], int],
    members: Mapping[int, Mapping[Source, Iterable[int]]],
    sources: Iterable[Source],
) -> dict[int, tuple[ChannelDuty, ...]]:
    """Compute what each switch of a tree does for each channel.

    Parameters
    ----------
    neighbours
        The tree: the switches next to each switch on it.
    port
        Port number at the first switch that leads to the second.
    members
        Per switch and channel, the ports that want it. A source a switch does not list is not wanted there.
    sources
        The channels to compute, None (every other source) among them.

    Returns
    -------
    dict
        Per switch, the channels in the order given. A named source that is treated like any other is left out; so
        is an empty duty for other sources.
    """
    root = next(iter(neighbours), None)
    if root is None:
        return {}
    order, parent = _preorder(neighbours, root)
    result: dict[int, list[ChannelDuty]] = {dpid: [] for dpid in order}
    default: dict[int, ChannelDuty] = {}
    for source in sorted(sources, key=lambda source: (source is not None, source or b"")):
        below = {dpid: 1 if members.get(dpid, {}).get(source) else 0 for dpid in order}
        for dpid in reversed(order):
            if dpid != root:
                below[parent[dpid]] += below[dpid]
        for dpid in order:
            trunks = []
            for neighbour in neighbours[dpid]:
                beyond = below[neighbour] if parent.get(neighbour) == dpid else below[root] - below[dpid]
                if beyond:
                    trunks.append(port(dpid, neighbour))
            trunks.sort()
            duty = ChannelDuty(source, tuple(trunks), tuple(sorted(members.get(dpid, {}).get(source, ()))))
            if source is None:
                default[dpid] = duty
                if duty[1:] != ((), ()):
                    result[dpid].append(duty)
            elif duty[1:] != default.get(dpid, _NOTHING)[1:]:
                result[dpid].append(duty)
    return {dpid: tuple(duties) for dpid, duties in result.items()}


_NOTHING = ChannelDuty(None, (), ())


def _preorder(neighbours: Mapping[int, AbstractSet[int]], root: int) -> tuple[list[int], dict[int, int]]:
    order: list[int] = []
    parent: dict[int, int] = {}
    stack = [root]
    while stack:
        dpid = stack.pop()
        order.append(dpid)
        for neighbour in neighbours[dpid]:
            if neighbour != parent.get(dpid):
                parent[neighbour] = dpid
                stack.append(neighbour)
    return order, parent


def _actions(group: bytes, duty: ChannelDuty, carried_version: int, tree_version: int) -> tuple[Action, ...]:
    """Build the output list for packets that arrive as `carried_version` and travel on as `tree_version`."""
    if not carried_version and not tree_version:
        return _outputs(duty.trunk_ports + duty.host_ports)
    actions: list[Action] = []
    carried = carried_version
    if duty.trunk_ports:
        if tree_version != carried:
            actions.append(SetEthDst(versioned_mac(group, tree_version)))
            carried = tree_version
        actions += [Output(port_no) for port_no in duty.trunk_ports]
    if duty.host_ports:
        if carried:
            actions.append(SetEthDst(versioned_mac(group, 0)))
        actions += [Output(port_no) for port_no in duty.host_ports]
    return tuple(actions)


def _group_match(group: bytes, tree_version: int, source: Source) -> Match:
    bits = 8 * len(group)
    eth_type = ETH_TYPE_IPV4 if bits == 32 else ETH_TYPE_IPV6
    source_bits = None if source is None else bits
    mac = versioned_mac(group, tree_version) if tree_version else group_mac(group)
    return _new(
        Match, (None, mac, None, eth_type, None, source, source_bits, group, bits, None, None, False, None, None)
    )


def common_key(group: bytes) -> FlowKey:
    """Return the key of a group's entry for all sources that no member names, at OpenFlow 1.3 and tree version 0.

    It is made at each call: who has the group at several switches keeps it.
    """
    if len(group) != 4:
        return _new(FlowKey, (FORWARD, PRIORITY_GROUP, _group_match(group, 0, None)))
    mac = group_mac(group)
    fields = (None, mac, None, ETH_TYPE_IPV4, None, None, None, group, 32, None, None, False, None, None)
    return _new(FlowKey, (FORWARD, PRIORITY_GROUP, _new(GroupMatch, fields)))


@lru_cache(maxsize=16384)
def _channel_key(table: int, group: bytes, tree_version: int, source: Source) -> FlowKey:
    priority = PRIORITY_GROUP if source is None else PRIORITY_CHANNEL
    return _new(FlowKey, (table, priority, _group_match(group, tree_version, source)))


@lru_cache(maxsize=16384)
def _sender_key(table: int, group: bytes, sender: SenderEntry) -> FlowKey:
    match = _group_match(group, 0, sender.address)._replace(in_port=sender.port_no, eth_src=sender.mac)
    return FlowKey(table, PRIORITY_SENDER, match)


def default_rule(ofp_version: int, group: bytes, tree_version: int, duty: ChannelDuty, cookie: int) -> FlowEntry:
    """Return the entry for all sources that no member names, which is all of a switch without senders and others."""
    key = _channel_key(0 if ofp_version == OPENFLOW_1_0 else FORWARD, group, tree_version, None)
    actions = _actions(group, duty, tree_version, tree_version) if tree_version else outputs_alike(duty)
    return _new(FlowEntry, (key, actions, cookie, 0, 0))


@lru_cache(maxsize=16384)
def outputs_alike(duty: ChannelDuty) -> tuple[Action, ...]:
    """Return the output list of a channel for packets of tree version 0, all of whose ports have frames alike."""
    return _outputs(duty.trunk_ports + duty.host_ports)


@lru_cache(maxsize=16384)
def _outputs(ports: tuple[int, ...]) -> tuple[Action, ...]:
    return tuple(map(output_to, ports))


@lru_cache(maxsize=4096)
def output_to(port_no: int) -> Output:
    """Return the output to a port: one object for all lists, whose hashes and encodings read it again and again."""
    return _new(Output, (port_no,))


def marked(sender: SenderEntry) -> tuple[Action, ...]:
    """Return what gives the packets of a sender their code point, nothing where they keep the one that they have."""
    return () if sender.dscp is None else (SetDscp(sender.dscp),)


def queued(rules: RuleSet, queue_id: int | None) -> RuleSet:
    """Return entries whose packets wait in a queue at every port to which they send them; None: as they are."""
    if queue_id is None:
        return rules
    return {key: queued_rule(rule, queue_id) for key, rule in rules.items()}


def queued_rule(rule: FlowEntry, queue_id: int) -> FlowEntry:
    """Return an entry whose packets wait in a queue at every port to which it sends them."""
    actions = _queued(rule.actions, queue_id)
    return rule if actions is rule.actions else rule._replace(actions=actions)


@lru_cache(maxsize=16384)
def _queued(actions: tuple[Action, ...], queue_id: int) -> tuple[Action, ...]:
    first = next((index for index, action in enumerate(actions) if isinstance(action, Output)), None)
    return actions if first is None else (*actions[:first], SetQueue(queue_id), *actions[first:])


def entered(group: bytes, sender: SenderEntry, tree_version: int, table: int) -> tuple[Action, ...]:
    """Return what has the packets of an admitted sender go on to a table, on the tree or the trees that they take."""
    if sender.is_split:
        return (*marked(sender), SplitFlows(parts_mac(group)), Goto(table))
    if tree_version:
        return (*marked(sender), SetEthDst(versioned_mac(group, tree_version)), Goto(table))
    return (*marked(sender), Goto(table))


@lru_cache(maxsize=16384)
def _part_key(group: bytes, vlan_id: int, part: int) -> FlowKey:
    match = _group_match(group, 0, None)
    return FlowKey(
        SPLIT, PRIORITY_GROUP, match._replace(eth_dst=parts_mac(group)[:5] + bytes((part,)), vlan_id=vlan_id or None)
    )


def part_rule(group: bytes, vlan_id: int, entry: PartEntry, tree_version: int, cookie: int) -> FlowEntry:
    """Return the entry that has a part of flows take a tree; VLAN 0 is the fabric's own domain."""
    key = _part_key(group, vlan_id, entry.part)
    return FlowEntry(key, (SetEthDst(versioned_mac(group, tree_version)),), cookie | SENDER_COOKIE_BIT)


def lower_to_1_3(group: bytes, duty: SwitchDuty, cookie: int) -> RuleSet:
    """Lower to two tables: senders in ADMIT (which picks the tree version), channels in FORWARD."""
    rules: RuleSet = {}
    version = duty.tree_version
    for sender in duty.senders:
        if type(sender) is PartEntry:
            rule = part_rule(group, 0, sender, version, cookie)
            rules[rule.key] = rule
            continue
        assert type(sender) is SenderEntry
        key = _sender_key(ADMIT, group, sender)
        actions = entered(group, sender, version, FORWARD) if sender.admitted else ()
        rules[key] = FlowEntry(key, actions, cookie | SENDER_COOKIE_BIT)
    for channel in duty.channels:
        key = _channel_key(FORWARD, group, version, channel.source)
        rules[key] = _new(FlowEntry, (key, _actions(group, channel, version, version), cookie, 0, 0))
    return rules


def lower_to_1_0(group: bytes, duty: SwitchDuty, cookie: int) -> RuleSet:
    """Lower to one table: a sender's entry carries the outputs of its channel itself.

    IPv6 groups cannot be expressed; the caller checks `supports` first.
    """
    rules: RuleSet = {}
    version = duty.tree_version
    by_source = {channel.source: channel for channel in duty.channels}
    default = by_source.get(None, _NOTHING)
    for sender in duty.senders:
        assert type(sender) is SenderEntry  # switches of this version divide no flows
        key = _sender_key(0, group, sender)
        channel = by_source.get(sender.address, default)
        actions = _actions(group, channel, 0, version) if sender.admitted else ()
        rules[key] = FlowEntry(key, (*marked(sender), *actions) if actions else (), cookie | SENDER_COOKIE_BIT)
    for channel in duty.channels:
        key = _channel_key(0, group, version, channel.source)
        rules[key] = FlowEntry(key, _actions(group, channel, version, version), cookie)
    return rules


LOWER: dict[int, Callable[[bytes, SwitchDuty, int], RuleSet]] = {
    OPENFLOW_1_0: lower_to_1_0,
    OPENFLOW_1_3: lower_to_1_3,
}


def supports(ofp_version: int, group: bytes) -> str | None:
    """Return None where a switch of this OpenFlow version can forward `group`, the reason where it cannot."""
    if ofp_version != OPENFLOW_1_0 or family_of(group) == 4:
        return None
    return "OpenFlow 1.0 has no IPv6 match: IPv6 groups need OpenFlow 1.3"


def differences(
    before: Mapping[FlowKey, FlowEntry], after: Mapping[FlowKey, FlowEntry]
) -> tuple[list[FlowEntry], list[FlowKey]]:
    """Return the entries to put and the keys to remove that lead from one set of rules to another."""
    puts = [rule for key, rule in after.items() if before.get(key) != rule]
    removes = [key for key in before if key not in after]
    return puts, removes


def common_outputs(rule: FlowEntry, old: FlowEntry | None) -> FlowEntry:
    """Return an entry without those of its output ports that an older one of the same key has not (None: all)."""
    had = () if old is None else old.actions
    kept = tuple(
        action for action in rule.actions if not isinstance(action, Output | SetQueue) or _is_kept(action, had)
    )
    queue = next((action for action in rule.actions if isinstance(action, SetQueue)), None)
    kept = kept if queue is None else _queued(kept, queue.queue_id)
    return rule if kept == rule.actions else rule._replace(actions=kept)


def _is_kept(action: Output | SetQueue, had: tuple[Action, ...]) -> bool:
    return isinstance(action, Output) and (action.port_no == OFPP_CONTROLLER or action in had)
