"""Values of the membership core: filter modes, interests, hosts, and the effects it emits."""

from __future__ import annotations

from collections.abc import Callable, Container
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from controller.effects import Notice
from controller.wire.packets import Query


class FilterMode(IntEnum):
    """Filter mode of a host, a port or a router (RFC 9776, 3.2)."""

    INCLUDE = 1
    EXCLUDE = 2


class Interest(NamedTuple):
    """What a port wants of one group: only `sources` (INCLUDE), or every source but them (EXCLUDE)."""

    mode: FilterMode
    sources: frozenset[bytes]

    def wants(self, source: bytes) -> bool:
        """Tell whether packets of this source are to be forwarded."""
        return (source in self.sources) is (self.mode is FilterMode.INCLUDE)


ANY_SOURCE = Interest(FilterMode.EXCLUDE, frozenset())


class HostRef(NamedTuple):
    """Who asks: MAC and IP address of a host and the edge port it was heard at; `ip` as in its last report.

    `known` are the IP addresses that it is known to hold there. `spoofed`: `ip` is another host's, or was and is not
    known to be its own; such a host is refused.
    """

    mac: bytes
    ip: bytes
    dpid: int
    port_no: int
    known: tuple[bytes, ...] = ()
    spoofed: bool = False


Admit: TypeAlias = Callable[[HostRef, bytes, bytes | None], bool]


class RouterVerdict(NamedTuple):
    """Whether a host may be a multicast router, by which rule or setting, and of which groups (None: every one)."""

    admit: bool
    rule: str
    reason: str
    groups: Container[bytes] | None = None


AdmitRouter: TypeAlias = Callable[[HostRef], RouterVerdict | None]
"""What the policy says of a host that speaks as a router; None where that is left to the settings."""


class Member(NamedTuple):
    """One host's membership of one group, for inspection.

    `sources` are those with a running timer (the include list, or the requested list of EXCLUDE mode), `excluded`
    those without; `expires_at` is when the membership ends unless refreshed, `leaving` that its host has left and
    the answer to the queries is awaited. `since` is when it was first asked for; of one from before a restart, when
    the journal told of it last.
    """

    host: HostRef
    group: bytes
    mode: FilterMode
    sources: frozenset[bytes]
    excluded: frozenset[bytes]
    admitted: bool
    leaving: bool
    expires_at: float
    since: float


class SavedMembership(NamedTuple):
    """A host's membership of a group as the journal keeps it, with absolute times; `since`: when that was written."""

    mode: FilterMode
    group_expiry: float
    timers: dict[bytes, float]
    excluded: frozenset[bytes]
    leaving: bool
    since: float


class QuerierStatus(NamedTuple):
    """The querier of a family: this controller (`is_ours`), or the router of `address` at a port, or nobody.

    `version` is that of IGMP or MLD in which it asks, None where nobody does or it was not heard since a restart.
    """

    family: int
    is_ours: bool
    address: bytes | None
    mac: bytes | None
    dpid: int | None
    port_no: int | None
    expires_at: float | None
    robustness: int
    query_interval_s: float
    version: int | None


class InterestChanged(NamedTuple):
    """A port's merged interest in a group is another one now; None: nobody there wants the group."""

    dpid: int
    port_no: int
    group: bytes
    interest: Interest | None


class RouterPortChanged(NamedTuple):
    """A multicast router of a family is behind a port from now on, or no longer.

    It may have the groups that are in one of `groups`; every group where that is None. A port `on_request` is sent
    none of them for the router's sake, but those that somebody there reports membership of, as at any port. To one
    that is `proxied` the controller itself reports what all members want together (RFC 4605). One `on_join` gets what
    is joined there by PIM too (`RouterJoined`).
    """

    dpid: int
    port_no: int
    family: int
    present: bool
    groups: frozenset[Container[bytes]] | None = None
    on_request: bool = False
    proxied: bool = False
    on_join: bool = False


class RouterJudged(NamedTuple):
    """A host that speaks as a router was admitted, or refused, for the audit log."""

    host: HostRef
    verdict: RouterVerdict


class SendQuery(NamedTuple):
    """Send a membership query out of an edge port; `group` None is a general query.

    `version` is the protocol's own (1 to 3 for IGMP, 1 and 2 for MLD). `suppress` is the S flag, `robustness` the
    QRV and `query_interval_s` the QQI of the newest versions.
    """

    dpid: int
    port_no: int
    family: int
    version: int
    group: bytes | None
    sources: tuple[bytes, ...]
    max_response_s: float
    suppress: bool
    robustness: int
    query_interval_s: float


class RouterJoined(NamedTuple):
    """What routers behind a port have joined of a group by PIM, or are asked for by another's join; None: nothing."""

    dpid: int
    port_no: int
    group: bytes
    interest: Interest | None


class RouterAsked(NamedTuple):
    """A router behind a proxied router port asks for memberships."""

    dpid: int
    port_no: int
    query: Query


class MembershipRefused(NamedTuple):
    """The policy refuses a host a group: with any source where `source` is None, else from that source."""

    host: HostRef
    group: bytes
    source: bytes | None


MembershipEffect: TypeAlias = (
    InterestChanged
    | RouterPortChanged
    | RouterJudged
    | RouterAsked
    | RouterJoined
    | SendQuery
    | MembershipRefused
    | Notice
)
