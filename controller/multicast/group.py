"""One group: who wants it and who sends to it, and the flow entries desired for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from controller.admission.marks import UNMARKED, Mark
from controller.kernel.domains import domain_of, family_of
from controller.membership.events import Interest
from controller.multicast.rate_meter import RateMeter
from controller.rules.compile_shared import GroupDuty, shares
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


@dataclass(slots=True)
class Sender:
    """What is known of a sender; `rate_bps` is measured from its entry's counters, `placed_bps` what trees know.

    `mark` is its service class, and the code point that its packets get. `alias` is the number of the further tree
    that they take, 0 for the group's own, None before it was chosen. `since_s` is when it became known.
    `packet_count` is what its entry counted when it was read last.
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
    duties, rules
        What each switch is to do and the entries that say so, per dpid.
    tree_version
        The version that packets carry inside the fabric (see `versioned_mac`).
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
        self.is_standing, self.is_leaving, self.is_out = True, False, False

    def add_alias(self, number: int, tree_version: int) -> Group:
        """Give the group a further tree by this number, of which no switch knows yet."""
        alias = Group(self.address, self.cookie, tree_version, False)
        alias.key, alias.number, alias.is_standing = AliasKey(self.address, number), number, False
        alias.queue_id = self.queue_id
        alias.interests, alias.senders, alias.named_sources = self.interests, self.senders, self.named_sources
        if self.trees is None:
            self.trees = [self]
        alias.trees = self.trees
        self.trees.append(alias)
        return alias

    def is_fresh(self) -> bool:
        """Tell whether the group's entries have nothing to do with any that switches may still have of it."""
        is_plain = self.unconfirmed is None and self.trees is None and not shares(self.tree_version)
        return is_plain and not self.held and not self.is_out

    def all_trees(self) -> Sequence[Group]:
        """Return the group itself, then its aliases."""
        return self.trees or (self,)

    def own_senders(self) -> Mapping[SenderKey, Sender]:
        """Return the senders whose packets take this tree."""
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

    def sends_at(self, dpid: int) -> bool:
        """Tell whether an admitted sender of this tree is at a switch."""
        return any(key.dpid == dpid and sender.admitted for key, sender in self.own_senders().items())

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
