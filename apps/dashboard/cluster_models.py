"""The documents of controllers that share a fabric, of monitors that share its switches, and of their number."""

from __future__ import annotations

from pydantic import BaseModel, Field

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


class LearnerModel(BaseModel):
    """What a learner would have."""

    learner: str
    monitors: int


class ScalingModel(Identified):
    """How monitors that share the switches fared in an interval, and how many there should be."""

    interval: int | None = Field(
        default=None, description="Its number: it began so many times its length after 1970."
    )
    interval_s: int | None = Field(default=None, description="How long it is.")
    began_s: Time = None
    ended_s: Time = None
    monitors: int | None = Field(default=None, description="Monitors at work.")
    drained: int | None = Field(default=None, description="Monitors that were left without switches.")
    pace: int | None = Field(default=None, description="How many times the policy's time is between two polls.")
    gap: str | None = Field(default=None, description="Why nothing can be said of the interval, if so.")
    load: float | None = Field(default=None, description="Work that came, in monitors that it keeps busy.")
    load_before: float | None = Field(default=None, description="The same one period before the next interval.")
    usage: float | None = Field(default=None, description="How much is taken of the scarcest resource, 1 being all.")
    scarcest: str | None = None
    lateness: float | None = Field(
        default=None, description="What 99 of 100 polls did not exceed, in intervals between polls."
    )
    skipped: int | None = Field(default=None, description="Polls that were skipped.")
    given_up: int | None = Field(default=None, description="Requests given up whose switch answered after all.")
    slo: str | None = Field(default=None, description="`met`, `missed` or `unknown`.")
    period: int | None = Field(
        default=None, description="After how many intervals loads repeat, where that is known."
    )
    learner: str | None = None
    rule: str | None = Field(default=None, description="Why it advises that.")
    wanted: int | None = Field(default=None, description="Monitors that there should be.")
    wanted_pace: int | None = None
    expected_lateness: float | None = Field(default=None, description="What lateness would become.")
    cost_h: float | None = Field(default=None, description="Monitor hours a day more, fewer where it is negative.")
    withheld: str | None = Field(default=None, description="Why it is not acted on, if so.")
    is_ordered: bool | None = Field(default=None, description="Whether it was to be done at once.")
    placement: str | None = Field(
        default=None, description="Which monitor would be better on another machine, if so."
    )
    outcome: str | None = Field(
        default=None, description="What became of what was to be done, and when it is tried again, if so."
    )
    begun_s: Time = Field(default=None, description="Since when it is being done, if so.")
    text: str | None = Field(default=None, description="The advice as a sentence.")
    learners: list[LearnerModel] | None = Field(default=None, description="What each learner would have.")
