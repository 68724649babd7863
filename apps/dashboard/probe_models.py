"""Scripts that look at the controller, and what they find, as documents of the API."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from apps.dashboard.model_parts import Described


class ProbeRequest(BaseModel):
    """A script that is to look at the controller."""

    script: Annotated[str, Field(description="Its text (docs/probes.md).")]
    for_s: Annotated[float, Field(ge=0.1, le=86400, description="It ends after so many seconds at the latest.")] = 60


class ProbeModel(Described):
    """A script that looks at the controller, or did."""

    id: str
    script: str
    points: int = Field(description="Points at which it looks.")
    by: str | None = None
    begun_s: float
    for_s: float
    ended: str | None = Field(None, description="Why it has ended; null while it runs.")


class ProbesModel(Described):
    """The scripts that look at the controller now."""

    probes: list[ProbeModel]


class AggregateRowModel(Described):
    """Samples of one key."""

    keys: list[int | str]
    count: int
    sum: int
    min: int
    max: int
    histogram: list[tuple[int, int]] = Field(
        description="How many samples there are from each power of two up to the next, or down to it below 0."
    )


class ProbeFoundModel(ProbeModel):
    """A script and what it has found so far: of each aggregate the rows with most samples, and all once it ended."""

    aggregates: dict[str, list[AggregateRowModel]]
    rows: dict[str, int] = Field(description="How many rows each aggregate has.")
    sampled: list[str] = Field(description="Aggregates of which the values of samples say something.")
    printed: list[str] = Field(description="Lines that it has printed, those left out that `lines` counts.")
    lines: list[int] = Field(description="Lines that each loop's part of it has printed so far.")
    fired: int
    skipped: int = Field(description="How often there was no time for it to look.")
    faults: dict[str, int]
    lost_keys: int
    lost_lines: int


class LibraryScriptModel(Described):
    """A script that is shipped."""

    name: str
    question: str
    script: str


class ProbeLibraryModel(Described):
    """The scripts that are shipped."""

    scripts: list[LibraryScriptModel]
