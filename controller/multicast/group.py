"""One group: who wants it and who sends to it, and the flow entries desired for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Protocol, TypeAlias

from controller.admission.marks import UNMARKED, Mark
from controller.kernel.domains import domain_of, family_of
from controller.membership.events import Interest
from controller.multicast.flow_parts import FlowParts, PartKey
from controller.multicast.rate_meter import RateMeter
from controller.rules.compile import PartEntry
from controller.rules.compile_shared import GroupDuty, is_shared, shares
from controller.rules.model import FlowEntry, FlowKey
from controller.trees.islands import AliasKey
from controller.trees.tree import Key
from topology.aggregations import Place
from topology.graph import NodeId


class SenderKey(NamedTuple):
    """A sender of a group: its port, MAC address and IP address."""

    dpid: int
    port_no: int
    mac: bytes
    address: bytes


FlowName: TypeAlias = SenderKey | PartKey
"""What takes one tree as a whole: a sender, or a part of the flows of all senders at its switch."""


@dataclass(slots=True)
class Sender:
    """What is known of a sender; `rate_bps` is measured from its entry's counters, `placed_bps` what trees know.

    `mark` is its service class, and the code point that its packets get. `alias` is the number of the further tree
    that they take, 0 for the group's own, None before it was chosen. `since_s` is when it became known.
    `packet_count` is what its entry counted when it was read last, and `sent_s` when one was read that had grown.
    """

    admitted: bool
    rule: str
    seen_s: float
    rate_bps: float = 0.0
    placed_bps: float = 0.0
    mark: Mark = UNMARKED
    alias: int | None = None
    since_s: float = field(default=0.0, compare=False)
    meter: RateMeter = field(default_factory=RateMeter, repr=False, compare=False)
    packet_count: int = field(default=0, repr=False, compare=False)
    sent_s: float = field(default=-inf, repr=False, compare=False)


class InterestFollower(Protocol):
    """Who follows what the members of every group want."""

    def interest_changed(
        self, group: Group, place: Place, before: Interest | None, after: Interest | None, now: float
    ) -> None:
        """Take note that the members at an outgoing interface want something else now, None being nothing."""


class Group:
    """A group with members or senders, over its own tree; an alias is another of the same group, over a further tree.

    Attributes
    ----------
    address
        The group's name in its domain: its address, with the VLAN behind it where it is in one.
    vlan_id
        The VLAN that the group is in, 0 for the fabric's own domain.
    interests
        What the admitted members at each port want, per switch and port.
    named_sources
        How many interests name each source: these have channels of their own.
    senders
        Admitted and refused senders, of all trees of the group.
    key, number
        The key of its tree in the forest, and the number of the alias, 0 for the group itself.
    trees
        The group itself, then its aliases, which share this list, `interests` and `senders`; None without aliases.
    parts
        By switch, the parts of what its senders there send, which all trees share; None where no flows are divided.
    duties, rules
        What each switch is to do and the entries that say so, per dpid.
    tree_version
        The version that packets carry inside the fabric (see `versioned_mac`).
    apart
        The numbers of the covering trees that channels are under by themselves, by their sources; None without any.
        `Covers.set_apart` alone changes it.
    arrives
        Whether it came in, and switches may have entries of it to confirm still.
    left_links, left_s, unconfirmed
        Links that left the tree of this version lately, with the times at which those failed that left because they
        did (`inf` for the others), when the last one left, and (dpid, key) of the entries that may still send over
        them.
    left_is_within
        Whether it is known that the tree and these links hold no cycle, and that none of them failed.
    old_versions
        Per other version the entries that may still be on switches.
    unsupported
        Why the group is not served, None where it is.
    held
        The group's entries of an earlier run are left as they are for now.
    is_out
        Switches have no entries of the group but those that drop refused senders: the controller hands its packets
        on, until it is in again.
    common_key
        The key of its entry for all sources that no member names, at switches of OpenFlow 1.3 and tree version 0,
        where any has had one.
    queue_id, queues
        The queue that its packets wait in, and how many admitted senders are of each; None where there are none.
    is_standing
        Whether all switches of an alias have confirmed its entries, so that flows may begin on it.
    is_leaving
        Whether an alias is being taken away.
    """

    __slots__ = (
        "address",
        "apart",
        "arrives",
        "common_key",
        "cookie",
        "duties",
        "held",
        "interests",
        "is_leaving",
        "is_out",
        "is_standing",
        "key",
        "left_is_within",
        "left_links",
        "left_s",
        "named_sources",
        "number",
        "old_versions",
        "parts",
        "queue_id",
        "queues",
        "rules",
        "senders",
        "tree_version",
        "trees",
        "unconfirmed",
        "unsupported",
        "vlan_id",
    )

    def __init__(self, address: bytes, cookie: int, tree_version: int, held: bool) -> None:
        self.address = address
        self.vlan_id = 0 if len(address) == 4 else domain_of(address)
        self.cookie = cookie
        self.tree_version = tree_version
        self.held = held
        self.apart: dict[bytes, int] | None = None
        self.arrives = False
        self.interests: dict[int, dict[int, Interest]] = {}
        self.senders: dict[SenderKey, Sender] = {}
        self.named_sources: Counter[bytes] | None = None
        self.duties: dict[int, GroupDuty] = {}
        self.rules: dict[int, tuple[FlowEntry, ...]] = {}
        self.left_links: dict[frozenset[NodeId], float] | None = None
        self.left_is_within = False
        self.left_s = 0.0
        self.unconfirmed: set[tuple[int, FlowKey]] | None = None
        self.old_versions: dict[int, set[tuple[int, FlowKey]]] | None = None
        self.unsupported: str | None = None
        self.common_key: FlowKey | None = None
        self.queue_id: int | None = None
        self.queues: Counter[int] | None = None
        self.key: Key = address
        self.number = 0
        self.trees: list[Group] | None = None
        self.parts: dict[int, FlowParts] | None = None
        self.is_standing, self.is_leaving, self.is_out = True, False, False

    def add_alias(self, number: int, tree_version: int) -> Group:
        """Give the group a further tree by this number, of which no switch knows yet."""
        alias = Group(self.address, self.cookie, tree_version, False)
        alias.key, alias.number, alias.is_standing = AliasKey(self.address, number), number, False
        alias.queue_id, alias.parts = self.queue_id, self.parts
        alias.interests, alias.senders, alias.named_sources = self.interests, self.senders, self.named_sources
        if self.trees is None:
            self.trees = [self]
        alias.trees = self.trees
        self.trees.append(alias)
        return alias

    def is_fresh(self) -> bool:
        """Tell whether the group's entries have nothing to do with any that switches may still have of it."""
        if self.held or self.is_out or self.unconfirmed is not None or self.trees is not None:
            return False
        return not (self.tree_version and shares(self.tree_version))

    def is_nowhere(self) -> bool:
        """Tell whether no switch has an entry of the group that is out, is to have one, or may have a former one."""
        return not self.rules and self.unconfirmed is None and all(each.admitted for each in self.senders.values())

    def all_trees(self) -> Sequence[Group]:
        """Return the group itself, then its aliases."""
        return self.trees or (self,)

    def own_senders(self) -> Mapping[SenderKey, Sender]:
        """Return the senders whose packets take this tree; of those that are divided it is the one of before."""
        if self.trees is None:
            return self.senders
        return {key: sender for key, sender in self.senders.items() if (sender.alias or 0) == self.number}

    @property
    def family(self) -> int:
        """4 or 6."""
        return family_of(self.address)

    @property
    def is_wanted(self) -> bool:
        """Whether the group has a member or an admitted sender, so that routers are to get it."""
        return bool(self.interests) or any(sender.admitted for sender in self.senders.values())

    def parts_at(self, dpid: int) -> FlowParts | None:
        """Return the parts of flows at a switch, None where they are not divided there."""
        return None if self.parts is None else self.parts.get(dpid)

    def divides_at(self, dpid: int) -> bool:
        """Tell whether the entries of senders at a switch divide their packets."""
        parts = self.parts_at(dpid)
        return parts is not None and parts.is_used

    def part_entries(self, dpid: int) -> tuple[PartEntry, ...]:
        """Return the parts of flows at a switch that take this tree."""
        parts = self.parts_at(dpid)
        if parts is None:
            return ()
        return tuple([PartEntry(part) for part, number in enumerate(parts.trees) if number == self.number])

    def part_count(self) -> int:
        """Return how many parts of flows take this tree, those of all switches together."""
        return sum(parts.trees.count(self.number) for parts in (self.parts or {}).values())

    def rate_at(self, dpid: int) -> float:
        """Return what is sent by this tree at a switch, as far as it was measured, in bit/s."""
        parts = self.parts_at(dpid)
        if parts is not None:
            return parts.rate_of(self.number)
        own = self.own_senders().items()
        return sum([sender.rate_bps for key, sender in own if key.dpid == dpid and sender.admitted], 0.0)

    def rate_bps(self) -> float:
        """Return what is sent by this tree, as far as it was measured, in bit/s."""
        divided = self.parts or {}
        own = self.own_senders().items()
        whole = [sender.rate_bps for key, sender in own if sender.admitted and key.dpid not in divided]
        return sum(whole, 0.0) + sum([parts.rate_of(self.number) for parts in divided.values()], 0.0)

    def sends_at(self, dpid: int) -> bool:
        """Tell whether an admitted sender of this tree, or a part of what some send, is at a switch."""
        parts = self.parts_at(dpid)
        if parts is not None and (self.number in parts.trees or parts.is_used):
            return self.number in parts.trees
        return any(key.dpid == dpid and sender.admitted for key, sender in self.own_senders().items())

    def own_entries(self) -> set[tuple[int, FlowKey]]:
        """Return the entries that the group shares with no other."""
        return {(dpid, rule.key) for dpid, rules in self.rules.items() for rule in rules if not is_shared(rule)}

    def set_duty(self, dpid: int, duty: GroupDuty | None, rules: tuple[FlowEntry, ...]) -> None:
        """Note what a switch is to do, None being nothing, and the entries that say so."""
        if duty is None:
            self.duties.pop(dpid, None)
        else:
            self.duties[dpid] = duty
        if rules:
            self.rules[dpid] = rules
        else:
            self.rules.pop(dpid, None)

    def set_interest(self, dpid: int, port_no: int, interest: Interest | None) -> Interest | None:
        """Replace what a port wants, None being nothing, and return what it wanted before."""
        ports = self.interests.get(dpid)
        if ports is None:
            ports = self.interests[dpid] = {}
        before = ports.get(port_no)
        if interest is None:
            ports.pop(port_no, None)
            if not ports:
                del self.interests[dpid]
        else:
            ports[port_no] = interest
        gone = before.sources if before is not None else None
        named = interest.sources if interest is not None else None
        if gone or named:
            counts = self.named_sources if self.named_sources is not None else Counter()
            counts.update(named or ())
            counts.subtract(gone or ())
            counts += Counter()
            self.named_sources = counts or None
        return before
