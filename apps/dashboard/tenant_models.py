"""The documents about the tenants of the policy: who is connected, and what nobody uses."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from apps.dashboard.model_parts import Described, Dpid, Hexadecimal, Identified, PortNo, Rate, Time


class ReceivedGroupModel(Described):
    """A group that a host is served; `static`: whatever it asks for."""

    group: str
    since_s: Time = None
    static: bool


class SentGroupModel(Described):
    """A group that a host is admitted to send to."""

    group: str
    since_s: Time = None
    rate_bps: Rate = None


class TenantConnectionModel(Identified):
    """A host of a tenant with what it receives and sends; it is there once for each of its tenants."""

    tenant: str | None = Field(default=None, description="Null for a host of none.")
    mac: str | None = Field(default=None, description="Null for a port with static members.")
    ips: list[str]
    dpid: Dpid = None
    dpid_hex: Hexadecimal = None
    port_no: PortNo = None
    vlan: int | None = None
    receives: list[ReceivedGroupModel]
    sends: list[SentGroupModel]
    rate_bps: Rate = None
    since_s: Time = Field(default=None, description="Since when the oldest of these is known.")


class UnusedModel(Identified):
    """A rule that never decided, a tenant without hosts, or an address of a pool that nobody uses."""

    kind: Literal["rule", "tenant", "address"]
    name: str
    line: int | None = Field(default=None, description="Where it stands in the policy file.")
    address: str | None = None
    since_s: Time = Field(default=None, description="Since when a rule is counted.")
    reason: str
