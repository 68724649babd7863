"""What the decoders return: frozen records of plain bytes, numbers and tuples."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias


class RecordType(IntEnum):
    """Group record types of IGMPv3 (RFC 9776, 4.2.13) and MLDv2 (RFC 9777, 5.2.12)."""

    MODE_IS_INCLUDE = 1
    MODE_IS_EXCLUDE = 2
    CHANGE_TO_INCLUDE = 3
    CHANGE_TO_EXCLUDE = 4
    ALLOW_NEW_SOURCES = 5
    BLOCK_OLD_SOURCES = 6


class GroupRecord(NamedTuple):
    """One group of a membership report; addresses are 4 or 16 bytes."""

    type: RecordType
    group: bytes
    sources: tuple[bytes, ...] = ()


class Report(NamedTuple):
    """A membership report or leave, IGMP (`family` 4) or MLD (`family` 6).

    `version` is the protocol's own: 1 to 3 for IGMP, 1 and 2 for MLD. Older versions are given as records:
    a join as MODE_IS_EXCLUDE {}, an IGMPv2 leave or MLDv1 done as CHANGE_TO_INCLUDE {}.
    """

    family: int
    version: int
    eth_src: bytes
    source: bytes
    records: tuple[GroupRecord, ...]


class Query(NamedTuple):
    """A membership query. `group` is None in a general query; v3/v2-MLD fields are None in older versions.

    A `robustness` or `query_interval_s` of 0 says that the querier states none: the receiver's own default holds.
    """

    family: int
    version: int
    eth_src: bytes
    source: bytes
    group: bytes | None
    sources: tuple[bytes, ...]
    max_response_s: float
    suppress: bool
    robustness: int | None
    query_interval_s: float | None


class PimHello(NamedTuple):
    """A PIM hello (RFC 7761, 4.9.2): a multicast router is at this port for `holdtime_s`, 0 (it leaves) to inf.

    `dr_priority` is its bid for designated router, None where it makes none.
    """

    family: int
    eth_src: bytes
    source: bytes
    holdtime_s: float
    dr_priority: int | None = None


class PimSource(NamedTuple):
    """A source of a join or prune. In one for every source `address` is the rendezvous point (`is_wildcard`).

    `is_rpt` says that it is about the shared tree, not that of the source.
    """

    address: bytes
    is_wildcard: bool = False
    is_rpt: bool = False


class PimGroup(NamedTuple):
    """What is joined and pruned of a group, or of all groups of a prefix."""

    group: bytes
    prefix_bits: int
    joins: tuple[PimSource, ...]
    prunes: tuple[PimSource, ...]


class PimJoinPrune(NamedTuple):
    """A PIM join and prune message (RFC 7761, 4.9.5): a router asks another one, `upstream`, for `holdtime_s`."""

    family: int
    eth_src: bytes
    source: bytes
    upstream: bytes
    holdtime_s: float
    groups: tuple[PimGroup, ...]


class Data(NamedTuple):
    """An IP packet to a multicast group that is no membership message; `length_bytes` counts from the IP header."""

    family: int
    eth_src: bytes
    source: bytes
    group: bytes
    length_bytes: int


class Arp(NamedTuple):
    """An Ethernet/IPv4 ARP packet; `operation` 1 is a request, 2 a reply."""

    eth_src: bytes
    eth_dst: bytes
    operation: int
    sender_mac: bytes
    sender_ip: bytes
    target_mac: bytes
    target_ip: bytes


class Neighbour(NamedTuple):
    """A neighbour solicitation or advertisement (RFC 4861); `mac` is its link-layer option, None where absent."""

    eth_src: bytes
    eth_dst: bytes
    source: bytes
    destination: bytes
    solicitation: bool
    target: bytes
    mac: bytes | None


class UnicastPacket(NamedTuple):
    """An IP packet to one host; source and destination are IP addresses."""

    family: int
    eth_src: bytes
    eth_dst: bytes
    source: bytes
    destination: bytes


class Lldp(NamedTuple):
    """One of our own discovery frames: it left `port_no` of `dpid`; `token` is proof of that."""

    dpid: int
    port_no: int
    token: bytes


class ForeignLldp(NamedTuple):
    """LLDP of another sender that says in which VLAN (1 to 4094) its port has frames without a tag.

    `port_id` is what it calls the port, empty where that is no text of 64 printable ASCII characters at most.
    """

    eth_src: bytes
    port_id: str
    port_vlan_id: int


class LacpEnd(NamedTuple):
    """One end of a link by LACP: a port of a system, the key of those it may be bundled with, its state."""

    system_priority: int
    system: bytes
    key: int
    port_priority: int
    port: int
    state: int


class Lacpdu(NamedTuple):
    """An LACP data unit: the end that sent it, and what that knows of the other one."""

    eth_src: bytes
    actor: LacpEnd
    partner: LacpEnd


class Ignored(NamedTuple):
    """A well-formed frame that is none of the above (an unknown EtherType, a foreign LLDP, ...)."""

    reason: str


class Malformed(NamedTuple):
    """A frame that breaks its protocol; `reason` is a short stable key for a counter, such as ``igmp-checksum``."""

    reason: str


Packet: TypeAlias = (
    Report
    | Query
    | PimHello
    | PimJoinPrune
    | Data
    | Arp
    | Neighbour
    | UnicastPacket
    | Lldp
    | ForeignLldp
    | Lacpdu
    | Ignored
    | Malformed
)
