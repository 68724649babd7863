"""The documents of controllers that share a fabric, and of monitors that share its switches."""

from __future__ import annotations

from pydantic import Field

from apps.dashboard.model_parts import Identified, Percent, Time


class ClusterMemberModel(Identified):
    """A controller among several; of the one that answers there is more."""

    member: str | None = None
    leads: bool | None = None
    epoch: int | None = None
    peer: str | None = None
    is_there: bool | None = None
    answers: bool | None = None
    course: str | None = Field(default=None, description="`following`, `taking-over`, `leading` or `leaving`.")
    store: str | None = Field(default=None, description="`answers`, or `silent`: members are as they were before.")
    store_silent_s: Time = Field(default=None, description="Since when the store is silent.")
    leads_since_s: Time = None
    leads_at_least: bool | None = Field(
        default=None, description="Whether it led already when the one that answers first looked."
    )
    gone_s: Time = Field(default=None, description="Since when one that was a member is none.")
    switches: int | None = Field(default=None, description="Switches that it is connected to.")
    switches_led: int | None = Field(default=None, description="Switches that have confirmed that it leads.")
    take_over_s: float | None = Field(default=None, description="How long its last take-over took.")
    log_lag_s: float | None = Field(default=None, description="For how long the entry of the log has waited longest.")
    problems: list[str] | None = Field(default=None, description="What is wrong, gravest first.")


class MonitorModel(Identified):
    """A monitor that shares the switches with others."""

    monitor: str | None = None
    is_there: bool | None = None
    gone_s: Time = Field(default=None, description="Since when one that was there is not.")
    divides: bool | None = Field(default=None, description="Whether it says who polls what.")
    drained: bool | None = None
    metrics: str | None = Field(default=None, description="Where its metrics are scraped.")
    connected: int | None = Field(default=None, description="Switches that it is connected to.")
    switches: int | None = Field(default=None, description="Switches that it polls.")
    ports: int | None = Field(default=None, description="Ports that it polls.")
    leaving: int | None = Field(default=None, description="Switches that it polls until their next monitor does.")
    load_pct: Percent = Field(default=None, description="Its part of what all monitors poll in a second.")
    unowned: int | None = Field(
        default=None, description="Of the one that divides: switches that monitors are connected to and none polls."
    )
