"""The documents of rolling maintenance."""

from __future__ import annotations

from pydantic import Field

from apps.dashboard.model_parts import Dpid, Identified


class MaintenanceModel(Identified):
    """A campaign (id `campaign`), or a switch of it."""

    state: str | None = Field(default=None, description="running, paused, halted, aborting, aborted or done.")
    runner: str | None = None
    phase: int | None = None
    phases: int | None = None
    switches: int | None = None
    in_work: int | None = None
    done: int | None = None
    failed: int | None = None
    skipped: int | None = None
    waits_for: str | None = None
    dpid: Dpid = None
    name: str | None = None
    tier: str | None = None
    redundancy_group: str | None = None
    step: str | None = Field(
        default=None, description="waiting, draining, hook, back, soaking, done, failed or skipped."
    )
    reason: str | None = None
