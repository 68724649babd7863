"""Covering trees as switches have them, and which groups may be under each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from controller.multicast.common_forms import CommonForms
from controller.multicast.group import Group
from controller.multicast.router_table import RouterInterests
from controller.rules.compile import TREE_VERSIONS, SwitchDuty
from controller.rules.compile_cover import HIGHEST_COVER, CoverDuty, cover_of, is_covered
from controller.rules.compile_shared import GroupDuty
from controller.trees.tree import Tree
from topology.graph import Graph

CoverLink = tuple[int, int, int, int]
"""A link of a covering tree: two switches, and the port at each."""


class Cover(NamedTuple):
    """A covering tree, which stays as it is as long as it is used: its links, and what each switch has of them.

    Packets of all groups under it wait in the queue `queue_id`, None where there are no queues.
    """

    number: int
    links: tuple[CoverLink, ...]
    adjacent: Mapping[int, AbstractSet[int]]
    ports: Mapping[tuple[int, int], int]
    queue_id: int | None = None

    def port(self, dpid: int, neighbour: int) -> int:
        """Return the port at a switch of the tree that leads to the next one."""
        return self.ports[dpid, neighbour]

    def duties(self, tree_version: int, duties: Mapping[int, SwitchDuty]) -> dict[int, GroupDuty]:
        """Return what switches do for a group under the tree, of what they would over a tree of its own like it.

        Those without its hosts send by all links of the tree, and where they have but one do nothing.
        """
        found: dict[int, GroupDuty] = {}
        for dpid, duty in duties.items():
            if has_hosts(duty):
                found[dpid] = duty
            elif len(self.adjacent[dpid]) > 1:
                found[dpid] = CoverDuty(tree_version, (), (), self.outputs(dpid))
        return found

    def outputs(self, dpid: int) -> tuple[int, ...]:
        """Return the ports of all links of the tree at a switch."""
        return tuple(sorted(self.ports[dpid, near] for near in self.adjacent[dpid]))


def has_hosts(duty: GroupDuty) -> bool:
    """Tell whether a switch has hosts of a group, or routers, by what it does for it."""
    return bool(duty.senders) or any(channel.host_ports for channel in duty.channels)


def cover_with(number: int, links: Iterable[CoverLink], queue_id: int | None = None) -> Cover:
    """Return a covering tree with these links."""
    links = tuple(links)
    adjacent: dict[int, set[int]] = {}
    ports: dict[tuple[int, int], int] = {}
    for u, v, u_port, v_port in links:
        adjacent.setdefault(u, set()).add(v)
        adjacent.setdefault(v, set()).add(u)
        ports[u, v], ports[v, u] = u_port, v_port
    return Cover(number, links, adjacent, ports, queue_id)


class Channel(NamedTuple):
    """What one source sends to a group: members name it."""

    address: bytes
    source: bytes


Covered: TypeAlias = bytes | Channel
"""What may be under a covering tree: a group, by its name, or a channel by itself."""


def channel_switches(group: Group, source: bytes, routers: RouterInterests) -> set[int]:
    """Return the switches with admitted senders of a channel, or with members or routers that want it."""
    found = {key.dpid for key, sender in group.senders.items() if sender.admitted and key.address == source}
    return found | channel_members(group, source, routers)


def channel_members(group: Group, source: bytes, routers: RouterInterests) -> set[int]:
    """Return the switches with members or routers that want a channel."""
    return {
        dpid
        for at_switches in (group.interests, routers)
        for dpid, interests in at_switches.items()
        if any(interest.wants(source) for interest in interests.values())
    }


class Covers:
    """The covering trees there are, by number, and who is under them; `forms` tells which switches may be on them.

    Attributes
    ----------
    trees
        The trees in use.
    under, groups
        The number of the tree of each group under one, and the groups by that number.
    moved
        The groups that went under a tree or left one, of which nobody has taken note.
    changed
        The numbers of those that are new, or no more, and of which the log was not told.
    is_watched
        Whether there may be trees, or groups that are to leave one, so that somebody has to look after them.
    """

    def __init__(self, forms: CommonForms) -> None:
        self.trees: dict[int, Cover] = {}
        self.under: dict[bytes, int] = {}
        self.groups: dict[int, dict[bytes, None]] = {}
        self.channels: dict[int, dict[Channel, None]] = {}
        self.moved: dict[bytes, None] = {}
        self.changed: dict[int, None] = {}
        self.is_watched = False
        self._forms = forms
        self._last = 0

    def of(self, group: Group) -> Cover | None:
        """Return the tree that a group is under, None where it has its own."""
        return self.trees.get(cover_of(group.tree_version)) if is_covered(group.tree_version) else None

    def note(self, address: bytes, tree_version: int) -> None:
        """Take in which tree version a group has from here on, that was under a tree, or is now."""
        before = self.under.pop(address, None)
        if before is not None:
            groups = self.groups[before]
            del groups[address]
            if not groups:
                del self.groups[before]
        if is_covered(tree_version):
            number = self.under[address] = cover_of(tree_version)
            self.groups.setdefault(number, {})[address] = None
        elif before is None:
            return
        self.moved[address] = None

    def holds(self, group: Group, tree_version: int, trees: Sequence[Tree]) -> bool:
        """Tell whether a group, whose own trees are these, may be under the covering tree of a version."""
        cover = self._fit(group, cover_of(tree_version))
        return cover is not None and all(tree.terminals.keys() <= cover.adjacent.keys() for tree in trees)

    def holds_channel(self, group: Group, source: bytes, number: int, routers: RouterInterests) -> bool:
        """Tell whether a covering tree may have the channel of a source, which members of a group name."""
        cover = self._fit(group, number)
        if cover is None or source not in (group.named_sources or ()):
            return False
        return channel_switches(group, source, routers) <= cover.adjacent.keys()

    def _fit(self, group: Group, number: int) -> Cover | None:
        """Return a covering tree that may have a group as far as its switches and queue go."""
        cover = self.trees.get(number)
        if cover is None or cover.queue_id != group.queue_id or not cover.adjacent.keys() <= self._forms.covering:
            return None
        return cover

    def set_apart(self, group: Group, source: bytes, number: int) -> None:
        """Take in which covering tree the channel of a source is under from here on, 0 where that is none."""
        apart = dict(group.apart or ())
        channel = Channel(group.address, source)
        before = apart.pop(source, 0)
        if before:
            channels = self.channels[before]
            del channels[channel]
            if not channels:
                del self.channels[before]
        if number:
            apart[source] = number
            self.channels.setdefault(number, {})[channel] = None
        elif not before:
            return
        group.apart = apart or None
        self.moved[group.address] = None

    def leave_apart(self, group: Group, routers: RouterInterests) -> bool:
        """Have channels be apart no more whose covering trees do not hold them; tell whether there were any."""
        gone = [
            source
            for source, number in (group.apart or {}).items()
            if not self.holds_channel(group, source, number, routers)
        ]
        for source in gone:
            self.set_apart(group, source, 0)
        return bool(gone)

    def adopt_apart(self, group: Group, apart: Iterable[tuple[bytes, int]], routers: RouterInterests) -> None:
        """Have those channels of a group be apart that were in an earlier run, as far as trees hold them."""
        for source in group.apart or ():
            self.set_apart(group, source, 0)
        if group.is_out or group.trees is not None or is_covered(group.tree_version):
            return
        for source, number in apart:
            if self.holds_channel(group, source, number, routers):
                self.set_apart(group, source, number)

    def add(self, links: Iterable[CoverLink], queue_id: int | None) -> Cover:
        """Have another tree, by a number that none has had for long."""
        number = self._last
        while number == self._last or number in self.trees:
            number = number % HIGHEST_COVER + 1
        self._last = number
        cover = self.trees[number] = cover_with(number, links, queue_id)
        self.changed[number] = None
        self.is_watched = True
        return cover

    def remove(self, number: int) -> None:
        """Have a tree no more: groups that are under it get their own as soon as they are compiled."""
        if self.trees.pop(number, None) is not None:
            self.changed[number] = None

    def restore(self, covers: Iterable[Cover]) -> None:
        """Have the trees of an earlier run, or of another controller."""
        for cover in covers:
            self.trees[cover.number] = cover
            self._last = max(self._last, cover.number)
            self.is_watched = True

    def adopted(self, group: Group, tree_version: int, trees: Sequence[Tree]) -> int:
        """Return the version of a group that had this in an earlier run: of its own tree where no cover has it."""
        if is_covered(tree_version) and (
            group.is_out or group.trees is not None or not self.holds(group, tree_version, trees)
        ):
            tree_version %= TREE_VERSIONS
        self.note(group.address, tree_version)
        return tree_version

    def broken(self, graph: Graph) -> list[int]:
        """Return the trees of which a link is no more, or a switch cannot be on one."""
        fit = self._forms.covering
        return [
            cover.number
            for cover in self.trees.values()
            if not cover.adjacent.keys() <= fit or any(_is_gone(link, graph) for link in cover.links)
        ]


def _is_gone(link: CoverLink, graph: Graph) -> bool:
    u, v, u_port, v_port = link
    cable = graph.cable(u, v, u_port) if u in graph and v in graph and graph.has_link(u, v) else None
    return cable is None or cable.v_port != v_port
