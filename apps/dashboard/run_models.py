"""The documents of runs: a profile of the controller, and a storm against it."""

from __future__ import annotations

from pydantic import Field

from apps.dashboard.model_parts import Described, Identified


class RunOperationModel(Described):
    """What an operation of a profile took so far, in milliseconds."""

    operation: str
    count: int = Field(description="How many are done.")
    others: int = Field(description="How many ended otherwise.")
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None


class PlayedStormModel(Described):
    """What a storm showed that was played to its end."""

    joins: int
    peak_per_s: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    unserved: int
    keeps_goal: bool


class RunModel(Identified):
    """A profile (`run` is ``profile``), or a storm (``storm``), as it goes on, or as it ended."""

    run: str | None = None
    by: str | None = None
    begun_s: float | None = None
    state: str | None = Field(
        default=None,
        description="Of a profile running, ending or ended; of a storm playing, ended, or lost: told of no more.",
    )
    fault: str | None = None
    name: str | None = None
    path: str | None = Field(default=None, description="The profile's file, where the controller runs.")
    for_s: float | None = Field(default=None, description="How long the profile is to run.")
    ended: str | None = Field(default=None, description="Why the profile ended.")
    spans: int | None = Field(default=None, description="Operations that have ended.")
    missed: int | None = Field(default=None, description="Operations that found no room.")
    under_way: int | None = Field(default=None, description="Operations that go on.")
    operations: list[RunOperationModel] | None = None
    target: str | None = Field(default=None, description="Where the storm is played.")
    shape: str | None = None
    switches: int | None = None
    sigma_s: float | None = None
    slo_ms: float | None = Field(default=None, description="The goal: what the 99th percentile may be.")
    stage: str | None = Field(default=None, description="What of the storm goes on, `done` of `total`.")
    done: int | None = None
    total: int | None = None
    joins: int | None = None
    storms: list[PlayedStormModel] | None = Field(default=None, description="Those that were played.")
