"""The documents of service classes, of their queues, and of flow tables."""

from __future__ import annotations

from pydantic import Field

from apps.dashboard.model_parts import Described, Dpid, Identified, PortNo


class ClassModel(Identified):
    """A service class, and how far it is from its goal at the port where it is farthest."""

    service_class: str | None = None
    importance: int | None = None
    queue_id: int | None = None
    goal: dict[str, float] | None = None
    index: float | None = Field(default=None, description="Above 1 the goal is missed.")
    dpid: Dpid = None
    port_no: PortNo = None
    ports: int | None = None
    missing_bps: int | None = None
    competes_with: list[str] | None = None


class PortQueueModel(Identified):
    """A queue of a port: what it is sure of, and what it sends."""

    dpid: Dpid = None
    port_no: PortNo = None
    queue_id: int | None = None
    classes: list[str] | None = None
    min_rate_bps: int | None = None
    capacity_bps: float | None = None
    tx_bps: int | None = None
    dropped_pps: float | None = None
    missing_bps: int | None = None
    index: float | None = Field(default=None, description="Above 1 a goal of its classes is missed.")


class TableTenantModel(Described):
    """What a tenant has of a flow table that tenants share."""

    tenant: str | None = Field(default=None, description="Null for all whose senders are of none that has shares.")
    entries: int | None = None
    active: int | None = Field(default=None, description="Those of groups that had packets lately.")
    entitled: float | None = Field(default=None, description="What its shares and what it uses entitle it to.")


class FlowTableModel(Identified):
    """A flow table that groups have entries in, where these may be out of it."""

    dpid: Dpid = None
    table: int | None = None
    capacity: int | None = Field(default=None, description="Entries that it has room for; null where nobody knows.")
    pinned: int | None = Field(default=None, description="Entries that stay whatever groups do.")
    entries: int | None = Field(default=None, description="Entries of groups that may leave.")
    groups: int | None = None
    groups_covered: int | None = Field(
        default=None, description="Groups with hosts at the switch that are under covering trees."
    )
    groups_out: int | None = Field(default=None, description="Groups with hosts at the switch that are out.")
    state: str | None = Field(default=None, description="How short it is of free entries: high, soft, hard or low.")
    hits: int | None = Field(default=None, description="Packets to groups that were in, from the switch's hosts.")
    faults: int | None = Field(default=None, description="Packets to groups that were out, from the switch's hosts.")
    tenants: list[TableTenantModel] | None = None
