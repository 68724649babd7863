"""Workflows by the API: who may read sees which there are and what they would do, who may write begins them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from apps.cli.batch_results import digest_of
from apps.cli.common import InputError, OperationFailed
from apps.cli.snapshot_source import ConnectionLost
from apps.dashboard.answers import JSON, Problem, encode
from apps.dashboard.board import Board
from apps.dashboard.questions import By
from apps.dashboard.routing import add_route
from apps.dashboard.workflow_models import (
    WorkflowPlanModel,
    WorkflowRunFoundModel,
    WorkflowRunModel,
    WorkflowRunsModel,
    WorkflowsModel,
)
from apps.dashboard.workflow_runs import NAME, Offered, WorkflowRuns, place_of
from apps.workflows.planned import KINDS, offered_at
from controller.snapshot.reader import Document

T = TypeVar("T")

FEW = 100
"""Items of a step that a plan names."""

PLANS_AT_ONCE = 2

At = Annotated[
    str | None,
    Query(
        pattern=f"^({'|'.join(KINDS)})/.{{1,64}}$",
        description="A thing: `switch`, `port`, `group` or `host`, and behind `/` its id as lists have it.",
    ),
]
NamePath = Annotated[str, Path(pattern=f"^{NAME}$", description="Name of a workflow.")]
RunPath = Annotated[str, Path(pattern=r"^[0-9]{1,9}$", description="The run's id.")]
Digest = Annotated[
    str, Query(pattern=r"^([0-9a-f]{64})?$", description="Begin only while the file is the one of this digest.")
]


class _Routes:
    """What answers; files and the controller's socket are read on other threads than the event loop's."""

    def __init__(self, board: Board, runs: WorkflowRuns) -> None:
        self._board = board
        self._runs = runs
        self._planning = asyncio.Semaphore(PLANS_AT_ONCE)

    async def workflows(self, at: At = None) -> Response:
        """Return the workflows there are, or those that are about one thing."""
        thing = self._thing(at)
        found: list[dict[str, Any]] = []
        faults: list[dict[str, str]] = []
        for each in self._runs.folder.offered():
            try:
                if each.workflow is not None and (thing is None or self._is_about(each, *thing)):
                    found.append(_told(each))
            except (InputError, OperationFailed) as error:
                faults.append({"name": each.name, "text": str(error)})
            if each.fault:
                faults.append({"name": each.name, "text": each.fault})
        return _answer({"workflows": found, "faults": faults})

    async def workflow_plan(self, name: NamePath, at: At = None) -> Response:
        """Say what a workflow would do now, and for what."""
        key = self._key(at)
        offered = self._offered(name)
        workflow = offered.workflow
        plan, refused = None, None
        async with self._planning:
            try:
                plan = await asyncio.to_thread(self._runs.plan, name, key)
            except (InputError, OperationFailed) as error:
                refused = str(error)
        if plan is not None:
            workflow = plan.workflow
        return _answer(
            {
                "name": name,
                "about": workflow.about if workflow else "",
                "digest": digest_of(plan.data) if plan else "",
                "steps": [
                    {
                        "name": step.name,
                        "do": " ".join(step.words),
                        "for_each": " ".join(step.for_each),
                        "items": len(plan.items[step.name]) if plan else None,
                        "of": [place_of(item) for item in plan.items[step.name][:FEW]] if plan else [],
                    }
                    for step in (workflow.steps if workflow else ())
                ],
                "refused": refused,
            }
        )

    async def workflow_runs(self) -> Response:
        """Return the runs whose results are kept, the newest first."""
        return _answer({"runs": await _done(self._runs.documents)})

    async def workflow_run(self, number: RunPath) -> Response:
        """Return a run, and what became of each item."""
        run = await _done(self._runs.run, int(number))
        return _answer({**run.document(), "results": list(run.told())})

    async def begin_workflow(self, name: NamePath, by: By, at: At = None, digest: Digest = "") -> Response:
        """Begin a workflow; each item is done in the name of who asks."""
        key = self._key(at)
        self._offered(name)
        return _answer((await _done(self._runs.begin, name, key, by, digest)).document())

    async def resume_workflow(self, number: RunPath, by: By) -> Response:
        """Go on with what a run has not done."""
        return _answer((await _done(self._runs.resume, int(number), by)).document())

    async def stop_workflow(self, number: RunPath, by: By) -> Response:
        """Have a run end after the item that is being done."""
        return _answer((await _done(self._runs.stop, int(number))).document())

    def _offered(self, name: str) -> Offered:
        found = next((each for each in self._runs.folder.offered() if each.name == name), None)
        if found is None:
            raise Problem(404, f"there is no workflow {name}")
        return found

    def _key(self, at: str | None) -> str | None:
        thing = self._thing(at)
        return None if thing is None else thing[1].id

    def _thing(self, at: str | None) -> tuple[str, Document] | None:
        """Return the section and the document that a query names; Problem where there is no such thing."""
        if at is None:
            return None
        kind, _, id_ = at.partition("/")
        document = self._board.section(KINDS[kind]).documents.get(id_)
        if document is None:
            raise Problem(404, f"there is no {kind} {id_}")
        return KINDS[kind], document

    def _is_about(self, offered: Offered, section: str, document: Document) -> bool:
        assert offered.workflow is not None
        return offered_at(offered.workflow, document, section, self._board.snapshot)


def add_workflow_reads(router: APIRouter, board: Board, runs: WorkflowRuns) -> None:
    """Add what reads."""
    routes = _Routes(board, runs)
    add_route(router, "GET", "/workflows", routes.workflows, WorkflowsModel)
    add_route(router, "GET", "/workflows/{name}/plan", routes.workflow_plan, WorkflowPlanModel)
    add_route(router, "GET", "/workflow-runs", routes.workflow_runs, WorkflowRunsModel)
    add_route(router, "GET", "/workflow-runs/{number}", routes.workflow_run, WorkflowRunFoundModel)


def add_workflow_writes(router: APIRouter, board: Board, runs: WorkflowRuns) -> None:
    """Add what writes."""
    routes = _Routes(board, runs)
    add_route(router, "POST", "/workflows/{name}/runs", routes.begin_workflow, WorkflowRunModel)
    add_route(router, "POST", "/workflow-runs/{number}/resume", routes.resume_workflow, WorkflowRunModel)
    add_route(router, "DELETE", "/workflow-runs/{number}", routes.stop_workflow, WorkflowRunModel)


async def _done(what: Callable[..., T], *words: Any) -> T:
    """Return what is done on another thread; Problem where it is refused or cannot be done."""
    try:
        return await asyncio.to_thread(what, *words)
    except KeyError:
        raise Problem(404, "there is no such run") from None
    except InputError as error:
        raise Problem(409, str(error)) from None
    except ConnectionLost as error:
        raise Problem(503, f"the controller does not answer: {error}", reason="disconnected") from None
    except OperationFailed as error:
        raise Problem(502, str(error)) from None


def _told(offered: Offered) -> dict[str, Any]:
    assert offered.workflow is not None
    return {
        "name": offered.name,
        "about": offered.workflow.about,
        "categories": list(offered.workflow.categories),
        "at": " ".join(offered.workflow.at),
        "steps": [step.name for step in offered.workflow.steps],
    }


def _answer(document: dict[str, Any]) -> Response:
    return Response(encode(document), media_type=JSON)
