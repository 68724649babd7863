"""Workflows and their runs as documents of the API."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from apps.dashboard.model_parts import Described


class WorkflowModel(Described):
    """A workflow that can be begun."""

    name: str = Field(description="What its file is called, without `.yaml`.")
    about: str
    categories: list[str]
    at: str = Field(description="What it is begun at, in words of `vsrt show`; empty where it is at nothing.")
    steps: list[str]


class WorkflowFaultModel(Described):
    """A file of the folder that is no workflow, and why."""

    name: str
    text: str


class WorkflowsModel(Described):
    """The workflows of the folder, or those that are about one thing."""

    workflows: list[WorkflowModel]
    faults: list[WorkflowFaultModel]


class PlannedStepModel(Described):
    """A step, and for what it would be done: the first of these, and how many there are."""

    name: str
    do: str
    for_each: str
    items: int | None = Field(None, description="For how many it would be done; null where it is refused.")
    of: list[dict[str, Any]] = Field(description="The first items: what of them a page can name them by.")


class WorkflowPlanModel(Described):
    """What a workflow would do now."""

    name: str
    about: str
    digest: str = Field(description="Stands for the file: with it a run begins only while that is the same.")
    steps: list[PlannedStepModel]
    refused: str | None = Field(None, description="Why it would not be begun.")


class WorkflowRunModel(Described):
    """A run of a workflow."""

    id: str
    workflow: str
    about: str
    at: str | None = Field(None, description="The id of the document that it was begun at.")
    by: str | None = None
    begun_s: float | None = None
    state: Literal["running", "stopping", "done", "failed", "stopped"]
    done: int
    items: int
    fault: str | None = Field(None, description="Why it could not go on, where that is no item's result.")
    path: str = Field(description="The file of its results, which `vsrt batch resume` takes.")


class WorkflowRunsModel(Described):
    """The runs whose results are kept, the newest first."""

    runs: list[WorkflowRunModel]


class ItemResultModel(Described):
    """What became of an item of a step."""

    step: str
    item: dict[str, Any]
    state: Literal["waiting", "begun", "done", "failed"]
    text: str


class WorkflowRunFoundModel(WorkflowRunModel):
    """A run, and what became of each item."""

    results: list[ItemResultModel]
