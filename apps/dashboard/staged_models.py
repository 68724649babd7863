"""What a staged policy would decide otherwise, as a document of the API."""

from __future__ import annotations

from apps.dashboard.model_parts import Dpid, Identified, PortNo, Time


class StagedModel(Identified):
    """What a staged policy would decide otherwise of a host, role and group; `alike` counts what it would not."""

    would_be: str | None = None
    role: str | None = None
    group: str | None = None
    source: str | None = None
    mac: str | None = None
    ip: str | None = None
    dpid: Dpid = None
    port_no: PortNo = None
    rule: str | None = None
    staged_rule: str | None = None
    reason: str | None = None
    count: int | None = None
    first_s: Time = None
    last_s: Time = None
    beyond: int | None = None
    path: str | None = None
    loaded_s: Time = None
    errors: list[str] | None = None
