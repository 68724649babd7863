"""Flow entries as values: what the controller wants on a switch and what a switch says it holds."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

OFPP_CONTROLLER = 0xFFFFFFFD
"""Reserved port number of OpenFlow 1.3 for the controller; the 1.0 lowering translates it to 0xfffd."""


OFPP_IN_PORT = 0xFFFFFFF8
"""Reserved port number of OpenFlow 1.3 for the port by which the packet came; in 1.0 it is 0xfff8."""


class Match(NamedTuple):
    """Fields to match, None where any value will do. `ip_src` and `ip_dst` are 4 or 16 bytes with a prefix length.

    `icmpv6_type` and the IPv6 fields exist in OpenFlow 1.3 only. `tagged` asks for a VLAN tag, whichever. A match
    without it says nothing of tags in OpenFlow 1.3, where one entry takes the tagged frames before any other.
    OpenFlow 1.0 cannot ask for a tag: there it is for untagged frames, and a tagged match is for every frame, to come
    last.
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


class Output(NamedTuple):
    """Send the packet out of `port_no`, to the controller (`OFPP_CONTROLLER`, whole) or back (`OFPP_IN_PORT`)."""

    port_no: int


class SetEthDst(NamedTuple):
    """Rewrite the destination MAC address."""

    mac: bytes


class Goto(NamedTuple):
    """Continue in a later table (OpenFlow 1.3 only); always last. `kind` keeps it unequal to other actions."""

    table: int
    kind: str = "goto"


class Meter(NamedTuple):
    """Pass through a meter first (OpenFlow 1.3 only); always first. `kind` keeps it unequal to other actions."""

    meter_id: int
    kind: str = "meter"


class Opaque(NamedTuple):
    """An action or instruction read from a switch that the model cannot say; it is never put."""

    raw: bytes


Action: TypeAlias = Output | SetEthDst | Goto | Meter | Opaque


class RuleKey(NamedTuple):
    """What identifies a flow entry within a switch."""

    table: int
    priority: int
    match: Match


class Rule(NamedTuple):
    """A flow entry. An empty `actions` drops. `cookie` is the hash of its origin (see `cookie_of`)."""

    key: RuleKey
    actions: tuple[Action, ...]
    cookie: int
    idle_timeout_s: int = 0
    hard_timeout_s: int = 0
