"""Policies that were found in changes of the configuration, as documents of the API."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from apps.dashboard.model_parts import Identified, Time


class CandidateModel(Identified):
    """A policy that resources seem to follow, or (id `search`) what the search for them looked at last."""

    state: str | None = Field(default=None, description="new, accepted or ignored; search of the search itself.")
    by: str | None = None
    decided_s: Time = None
    path: str | None = Field(default=None, description="The file of an accepted one; of the search its log.")
    properties: list[str] | None = None
    types: list[str] | None = None
    resources: list[str] | None = None
    resource_count: int | None = None
    told_by: list[str] | None = None
    varieties: list[Any] | None = None
    variety_count: int | None = None
    deviations: list[Any] | None = None
    deviation_count: int | None = None
    near: list[Any] | None = None
    near_count: int | None = None
    bits_saved: float | None = None
    searched_s: Time = None
    lines: int | None = None
    beyond: int | None = None
    fault: str | None = None
