"""Flow entries, groups and meters as values: what the controller wants on a switch and what that says it holds."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from controller.wire.addresses import format_mac

OFPP_CONTROLLER = 0xFFFFFFFD
"""Reserved port number of OpenFlow 1.3 for the controller; the 1.0 lowering translates it to 0xfffd."""


OFPP_IN_PORT = 0xFFFFFFF8
"""Reserved port number of OpenFlow 1.3 for the port by which the packet came; in 1.0 it is 0xfff8."""

_PORTS = {OFPP_CONTROLLER: "controller", OFPP_IN_PORT: "in_port"}


class Match(NamedTuple):
    """Fields to match, None where any value will do. `ip_src` and `ip_dst` are 4 or 16 bytes with a prefix length.

    `icmpv6_type`, `ip_dscp` (0 to 63) and the IPv6 fields are for OpenFlow 1.3 only. `tagged` asks for a VLAN tag,
    whichever; `vlan_id` (1 to 4094) for one with this id, outermost where there are several. It implies a tag: a
    match with both is refused by every version. `eth_type` is what follows the tags. A match with neither says
    nothing of tags in OpenFlow 1.3, where one entry takes the tagged frames before any other. OpenFlow 1.0 cannot
    ask for a tag, whichever: there it is for untagged frames, and a tagged match is for every frame, which it can
    drop only.
    """

    in_port: int | None = None
    eth_dst: bytes | None = None
    eth_src: bytes | None = None
    eth_type: int | None = None
    ip_proto: int | None = None
    ip_src: bytes | None = None
    ip_src_prefix: int | None = None
    ip_dst: bytes | None = None
    ip_dst_prefix: int | None = None
    icmpv6_type: int | None = None
    eth_dst_mask: bytes | None = None
    tagged: bool = False
    vlan_id: int | None = None
    ip_dscp: int | None = None


class Output(NamedTuple):
    """Send the packet out of `port_no`, to the controller (`OFPP_CONTROLLER`, whole) or back (`OFPP_IN_PORT`)."""

    port_no: int

    @property
    def text(self) -> str:
        """The action in words."""
        return f"output:{_PORTS.get(self.port_no, self.port_no)}"


class SetEthDst(NamedTuple):
    """Rewrite the destination MAC address."""

    mac: bytes

    @property
    def text(self) -> str:
        """The action in words."""
        return f"set eth_dst:{format_mac(self.mac)}"


class SetQueue(NamedTuple):
    """Have what is output from here on wait in this queue of its port.

    Right before an output OpenFlow 1.0 says both as one action (enqueue). `kind` keeps it unequal to other actions.
    """

    queue_id: int
    kind: str = "queue"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"queue:{self.queue_id}"


class SetDscp(NamedTuple):
    """Give an IP packet another code point, 0 to 63 (RFC 2474); `kind` keeps it unequal to other actions.

    The entry asks for IPv4 or IPv6 by its `eth_type`; OpenFlow 1.0 knows IPv4 alone.
    """

    dscp: int
    kind: str = "dscp"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"set ip_dscp:{self.dscp}"


class PushVlan(NamedTuple):
    """Give a frame without a VLAN tag an 802.1Q tag with this id (1 to 4094) and priority 0.

    `kind` keeps it unequal to other actions. What stands after it in the same entry has a tag to set or to pop.
    """

    vlan_id: int
    kind: str = "push-vlan"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"push vlan:{self.vlan_id}"


class SetVlan(NamedTuple):
    """Give the tag of a tagged frame another id (1 to 4094); `kind` keeps it unequal to other actions."""

    vlan_id: int
    kind: str = "set-vlan"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"set vlan:{self.vlan_id}"


class PopVlan(NamedTuple):
    """Take the outermost VLAN tag off a tagged frame."""

    kind: str = "pop-vlan"

    @property
    def text(self) -> str:
        """The action in words."""
        return "pop vlan"


FLOW_PARTS = 16
"""Into how many parts a switch divides flows. Each stands in the last byte of a MAC address."""


class SplitFlows(NamedTuple):
    """Put a packet into one of `FLOW_PARTS` by a hash of its addresses and ports of UDP or TCP.

    Its destination MAC address becomes `mac`, whose last byte is 0, with the part in that byte. Then it meets an
    entry of table SPLIT, if one matches, and what that does to the packet stays done. OpenFlow 1.3 only, and only
    switches that know the actions `multipath` and `resubmit` of Open vSwitch. `kind` keeps it unequal to others.
    """

    mac: bytes
    kind: str = "split"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"split flows:{format_mac(self.mac)}/{FLOW_PARTS}"


class ToGroup(NamedTuple):
    """Have a copy processed by a group (OpenFlow 1.3 only). `kind` keeps it unequal to other actions."""

    group_id: int
    kind: str = "group"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"group:{self.group_id:#x}"


class Goto(NamedTuple):
    """Continue in a later table (OpenFlow 1.3 only); always last. `kind` keeps it unequal to other actions."""

    table: int
    kind: str = "goto"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"goto:{self.table}"


class Meter(NamedTuple):
    """Pass through a meter first (OpenFlow 1.3 only); always first. `kind` keeps it unequal to other actions."""

    meter_id: int
    kind: str = "meter"

    @property
    def text(self) -> str:
        """The action in words."""
        return f"meter:{self.meter_id}"


class Opaque(NamedTuple):
    """An action or instruction read from a switch that the model cannot say; it is never put."""

    raw: bytes

    @property
    def text(self) -> str:
        """The action in words."""
        return f"other:{self.raw.hex()}"


Rewrite: TypeAlias = SetEthDst | SetDscp | SetQueue | PushVlan | SetVlan | PopVlan | SplitFlows
"""An action that changes a packet, or what becomes of it later."""

Action: TypeAlias = Output | Rewrite | ToGroup | Goto | Meter | Opaque

VLAN_ACTIONS = frozenset((PushVlan, SetVlan, PopVlan))

DSCP_MAX = 63
"""The greatest code point of IP packets: it has six bits (RFC 2474, 3)."""

VLAN_ID_MAX = 4094
"""VLANs have ids from 1; 0 is the id in a priority tag, 4095 is reserved (IEEE 802.1Q, 9.6)."""


class FlowKey(NamedTuple):
    """What identifies a flow entry within a switch."""

    table: int
    priority: int
    match: Match


class FlowEntry(NamedTuple):
    """A flow entry. An empty `actions` drops. `cookie` is the hash of its origin (see `cookie_of`)."""

    key: FlowKey
    actions: tuple[Action, ...]
    cookie: int
    idle_timeout_s: int = 0
    hard_timeout_s: int = 0


GROUP, METER = "group", "meter"
"""The kinds of resources: what a switch must hold before a flow entry can name it (OpenFlow 1.3 only)."""


_UNKNOWN_TYPE = 0xFF


class GroupKey(NamedTuple):
    """What identifies a group within a switch; the upper 16 bits of `group_id` are the tag of its app."""

    group_id: int
    kind: str = GROUP

    def unknown(self) -> GroupEntry:
        """Return a group of which no more is known than that it is there: equal to none that is desired."""
        return GroupEntry(self, _UNKNOWN_TYPE, ())


class MeterKey(NamedTuple):
    """What identifies a meter within a switch; `meter_id` // 256 is the last hexadecimal digit of its app's tag."""

    meter_id: int
    kind: str = METER

    def unknown(self) -> MeterEntry:
        """Return a meter of which no more is known than that it is there: equal to none that is desired."""
        return MeterEntry(self, 0, 0)


class GroupType(IntEnum):
    """What a group does with its buckets: executes all, one by the packet's flow, or the first whose port is up."""

    ALL = 0
    SELECT = 1
    FAST_FAILOVER = 3


class Bucket(NamedTuple):
    """Actions of a group on a copy of the packet. Select has a `weight`, fast failover a `watch_port`."""

    actions: tuple[Action, ...]
    weight: int = 0
    watch_port: int | None = None

    @property
    def text(self) -> str:
        """The bucket in words; ``drop`` where it does nothing."""
        parts = [f"weight:{self.weight}"] if self.weight else []
        parts += [] if self.watch_port is None else [f"watch:{self.watch_port}"]
        return ", ".join([*parts, *(action.text for action in self.actions)]) or "drop"


class GroupEntry(NamedTuple):
    """A group. `type` is a `GroupType`, or what else a switch says."""

    key: GroupKey
    type: int
    buckets: tuple[Bucket, ...]

    def document(self) -> dict[str, Any]:
        """Return the group in words: `group`, `type` and `buckets`."""
        known = self.type in GroupType.__members__.values()
        kind = GroupType(self.type).name.lower() if known else str(self.type)
        return {"group": f"{self.key.group_id:#x}", "type": kind, "buckets": [bucket.text for bucket in self.buckets]}


class MeterEntry(NamedTuple):
    """A meter that drops what exceeds `rate` and `burst`: kilobits (per second), or with `is_packets` packets.

    `opaque` is what a switch says that the model cannot say; it is never put.
    """

    key: MeterKey
    rate: int
    burst: int
    is_packets: bool = False
    opaque: bytes = b""

    def document(self) -> dict[str, Any]:
        """Return the meter in words: `meter`, `rate`, `burst` and `unit`; `other` where the model cannot say all."""
        unit = "packets/s" if self.is_packets else "kbit/s"
        meter = {"meter": self.key.meter_id, "rate": self.rate, "burst": self.burst, "unit": unit}
        return {**meter, "other": self.opaque.hex()} if self.opaque else meter


ResourceKey: TypeAlias = GroupKey | MeterKey
Resource: TypeAlias = GroupEntry | MeterEntry
Key: TypeAlias = FlowKey | GroupKey | MeterKey
Entry: TypeAlias = FlowEntry | GroupEntry | MeterEntry

METERS_PER_APP = 256

_NAMING = frozenset((ToGroup, Meter))


def names_resources(rule: FlowEntry) -> bool:
    """Tell whether a flow entry names a group or a meter."""
    return not _NAMING.isdisjoint(map(type, rule[1]))


def resources_of(entry: Entry | None) -> tuple[ResourceKey, ...]:
    """Return the groups and meters that an entry names; those name none."""
    if type(entry) is not FlowEntry or not names_resources(entry):
        return ()
    return tuple(
        GroupKey(action.group_id) if isinstance(action, ToGroup) else MeterKey(action.meter_id)
        for action in entry.actions
        if isinstance(action, ToGroup | Meter)
    )


def is_own(key: ResourceKey, app_tag: int) -> bool:
    """Tell whether a group or meter is of the app with this tag."""
    if isinstance(key, GroupKey):
        return key.group_id >> 16 == app_tag
    return key.meter_id // METERS_PER_APP == app_tag & 0xF
