"""What operators say of policies that were found, by the API: accepted ones become files, nothing is put in force."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from apps.dashboard.answers import JSON, encode
from apps.dashboard.models import DoneModel
from apps.dashboard.questions import Ask, By, answered

CandidatePath = Annotated[str, Path(pattern="^[0-9a-f]{12}(-[0-9]{1,4})?$", description="The candidate's id.")]


def add_candidate_writes(router: APIRouter, ask: Ask) -> None:
    """Add what writes; `ask` puts a question to the controller."""

    async def do(verb: str, candidate: str, by: str) -> Response:
        question = {"do": f"candidate-{verb}", "id": candidate, "by": by}
        return Response(encode(await answered(ask, question)), media_type=JSON)

    async def accept_candidate(candidate: CandidatePath, by: By) -> Response:
        """Write a policy that was found into a file of the controller's directory."""
        return await do("accept", candidate, by)

    async def ignore_candidate(candidate: CandidatePath, by: By) -> Response:
        """Say that a policy that was found is none; that is kept."""
        return await do("ignore", candidate, by)

    async def consider_candidate(candidate: CandidatePath, by: By) -> Response:
        """Take back what was said of a policy that was found; a file that was written stays."""
        return await do("consider", candidate, by)

    for verb, endpoint in (
        ("accept", accept_candidate),
        ("ignore", ignore_candidate),
        ("consider", consider_candidate),
    ):
        router.add_api_route(
            f"/candidates/{{candidate}}/{verb}",
            endpoint,
            methods=["POST"],
            operation_id=endpoint.__name__,
            response_model=None,
            responses={200: {"model": DoneModel}},
        )
