"""Who asks, and what is answered."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Host(NamedTuple):
    """A host as it is seen on the wire: `ip` is None where none is known of it, `known` what it holds beside."""

    mac: bytes
    ip: bytes | None
    dpid: int
    port_no: int
    known: tuple[bytes, ...] = ()


class HostLike(Protocol):
    """A hashable record with the fields of `Host`, such as another NamedTuple."""

    @property
    def mac(self) -> bytes:
        """MAC address, 6 bytes."""

    @property
    def ip(self) -> bytes | None:
        """IP address, 4 or 16 bytes."""

    @property
    def dpid(self) -> int:
        """The datapath it is at."""

    @property
    def port_no(self) -> int:
        """The port it is at."""

    @property
    def known(self) -> tuple[bytes, ...]:
        """The IP addresses that it is known to hold at that port, `ip` among them or not."""


class Decision(NamedTuple):
    """Whether a host may have its role in a group, and the name of the rule that says so, or ``default``."""

    admit: bool
    rule: str
    reason: str
