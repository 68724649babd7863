"""The documents of service classes and of their queues."""

from __future__ import annotations

from pydantic import Field

from apps.dashboard.model_parts import Dpid, Identified, PortNo


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
