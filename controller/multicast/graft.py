"""What a switch changes on a tree that gets its first member or sender or loses its last, found from its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from controller.multicast.duties import sender_entry
from controller.multicast.group import Group
from controller.rules.compile import NO_DUTY, ChannelDuty, SwitchDuty, common_duty
from controller.rules.compile_shared import GroupDuty
from controller.trees.tree import Change, Tree
from topology.graph import NodeId

Look: TypeAlias = Callable[
    [Group, Tree, Change, int, Callable[[int, int], int]], "dict[int, GroupDuty | None] | None"
]
"""One of the functions below: what switches do otherwise, by the way of one of them."""

Local: TypeAlias = tuple[Look, int]
"""How to look at a change, and the switch that it is about."""

_NO_CHANNEL = ChannelDuty(None, (), ())


def grafted_duties(
    group: Group, tree: Tree, change: Change, dpid: int, port: Callable[[int, int], int]
) -> dict[int, GroupDuty | None] | None:
    """Return what switches do otherwise than before, now that a switch has members; None where that is not told so.

    A link carries a group only towards receivers. So the new way has outputs both ways; and where all receivers of
    before are together beyond one output of the switch that the way meets, the links up to them get an output back.
    Towards the first receiver of all every other switch of the tree has one output.

    Parameters
    ----------
    group
        No member of it names sources and no router port has it. `duties` are those of before.
    tree, change
        The tree with the new terminal, which stayed as it was but for the links added.
    dpid
        The switch that had no member before and has some now.
    port
        Port number at the first switch that leads to the second.
    """
    if change.removed or change.detached or change.attached or tree.detached:
        return None
    hosts = tuple(sorted(group.interests[dpid]))
    found: dict[int, GroupDuty | None] = {}
    if len(group.interests) == 1:
        _add(group, found, dpid, (), hosts)
        for farther, nearer in _away_from(tree, dpid):
            _add(group, found, farther, (port(farther, nearer),), ())
        return found
    at = dpid
    ports: tuple[int, ...] = ()
    for node, above in change.added:
        if node != at:
            return None
        _add(group, found, at, (*ports, port(at, above)), hosts)  # type: ignore[arg-type]
        ports, hosts = (port(above, at),), ()  # type: ignore[arg-type]
        at = above  # type: ignore[assignment]
    before = _add(group, found, at, ports, hosts)
    while not before[2] and len(before[1]) < 2:
        beyond = _neighbour_at(tree, at, before[1], port)
        if beyond is None:
            return None
        before = _add(group, found, beyond, (port(beyond, at),), ())
        at = beyond
    return found


def pruned_duties(
    group: Group, tree: Tree, change: Change, dpid: int, port: Callable[[int, int], int]
) -> dict[int, GroupDuty | None] | None:
    """Return what switches do otherwise than before, now that a switch has no members; None as in `grafted_duties`.

    Switches that left the tree do nothing more but for their senders, and the one where the way ended no longer
    sends there. Where what it still does is to send to one neighbour alone, that one has nobody left to serve
    through it; and so on, up to the next receiver or branch. Without any receiver no switch has outputs.

    Parameters
    ----------
    group, port
        As for `grafted_duties`.
    tree, change
        The tree without the terminal, or without its role, which stayed as it was but for the links removed.
    dpid
        The switch that had members before and has none now.
    """
    if change.added or change.detached or change.attached or tree.detached:
        return None
    if not group.interests:
        return {node: _less(group, node, None) for node in group.duties}
    found: dict[int, GroupDuty | None] = {}
    at, below = dpid, None
    for link in change.removed:
        if at not in link:
            return None
        found[at] = _less(group, at, None)
        at, below = link[link[0] == at], at  # type: ignore[assignment]
    if at not in tree:
        return None
    ports = set() if below is None else {port(at, below)}
    while True:
        duty = found[at] = _less(group, at, ports)
        left = duty.channels[0] if duty is not None and duty.channels else _NO_CHANNEL
        if left.host_ports or len(left.trunk_ports) > 1:
            return found
        beyond = _neighbour_at(tree, at, left.trunk_ports, port)
        if beyond is None:
            return None
        at, ports = beyond, {port(beyond, at)}


def sender_duties(
    group: Group, tree: Tree, change: Change, dpid: int, port: Callable[[int, int], int]
) -> dict[int, GroupDuty | None] | None:
    """Return what switches do otherwise than before, now that a switch has other senders; None as above.

    Where receivers are, the way of a first sender sends to the tree that was there, and nothing sends to it; that of
    a last one, which left the tree, has nothing more to do.

    Parameters
    ----------
    group, port
        As for `grafted_duties`.
    tree, change
        The tree with the terminal or without it, which stayed as it was but for links added, or links removed.
    dpid
        The switch whose senders are others than before.
    """
    if change.detached or change.attached or tree.detached or (change.added and change.removed):
        return None
    own, is_split = group.own_senders().items(), group.divides_at(dpid)
    senders = [sender_entry(key, sender, is_split) for key, sender in own if key.dpid == dpid]
    parts = group.part_entries(dpid)
    found: dict[int, GroupDuty | None] = {}
    at = dpid
    for node, above in change.added:
        if node != at:
            return None
        if group.interests:
            _add(group, found, at, (port(at, above),), ())  # type: ignore[arg-type]
        at = above  # type: ignore[assignment]
    for link in change.removed:
        if at not in link:
            return None
        found[at] = None
        at = link[link[0] == at]  # type: ignore[assignment]
    if at not in tree:
        return None
    duty = (found[dpid] if dpid in found else group.duties.get(dpid)) or NO_DUTY
    channels = duty.channels
    is_idle = not channels and not senders and not parts
    found[dpid] = None if is_idle else SwitchDuty(group.tree_version, channels, (*sorted(senders), *parts))
    return found


def _away_from(tree: Tree, start: int) -> Iterator[tuple[int, int]]:
    """Yield every other switch of a tree with the one before it on the way from `start`."""
    waiting: list[tuple[NodeId, NodeId | None]] = [(start, None)]
    while waiting:
        at, before = waiting.pop()
        for node in tree.neighbours(at):
            if node != before:
                waiting.append((node, at))
                yield node, at  # type: ignore[misc]


def _less(group: Group, at: int, ports: set[int] | None) -> SwitchDuty | None:
    """Return what a switch does that sends to some ports no more, or to none at all; None where that is nothing.

    Its host ports are those of its members.
    """
    old = group.duties.get(at) or NO_DUTY
    channel = _NO_CHANNEL
    if ports is not None and old.channels:
        trunk_ports = tuple([port_no for port_no in old.channels[0].trunk_ports if port_no not in ports])
        channel = ChannelDuty(None, trunk_ports, old.channels[0].host_ports if at in group.interests else ())
    if channel == _NO_CHANNEL:
        return SwitchDuty(group.tree_version, (), old.senders) if old.senders else None
    return SwitchDuty(group.tree_version, (channel,), old.senders)


def _add(
    group: Group, found: dict[int, GroupDuty | None], at: int, ports: tuple[int, ...], host_ports: tuple[int, ...]
) -> ChannelDuty:
    """Have a switch send to further ports, and return what it did before."""
    _, channels, senders = group.duties.get(at, NO_DUTY)  # type: ignore[misc]  # no tree here shares entries
    before = channels[0] if channels else _NO_CHANNEL
    trunk_ports = before[1] + ports
    if len(trunk_ports) > 1:
        trunk_ports = tuple(sorted(trunk_ports))
    duty = common_duty(group.tree_version, trunk_ports, host_ports or before[2])
    found[at] = duty._replace(senders=senders) if senders else duty
    return before


def _neighbour_at(tree: Tree, at: int, ports: tuple[int, ...], port: Callable[[int, int], int]) -> int | None:
    """Return the switch next on the tree to which the only one of some ports leads; None where it is not known."""
    for neighbour in tree.neighbours(at):
        if (port(at, neighbour),) == ports:  # type: ignore[arg-type]
            return neighbour  # type: ignore[return-value]
    return None


def changed_duties(before: Mapping[int, GroupDuty], after: Mapping[int, GroupDuty]) -> dict[int, GroupDuty | None]:
    """Return what switches do otherwise than before, None where that is nothing any more."""
    changed: dict[int, GroupDuty | None] = {dpid: None for dpid in before if dpid not in after}
    changed.update({dpid: duty for dpid, duty in after.items() if before.get(dpid) != duty})
    return changed
