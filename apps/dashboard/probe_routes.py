"""Scripts that look at the controller, by the API: who may write begins and ends them, who may read sees them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query
from starlette.responses import Response

from apps.dashboard.answers import JSON, encode
from apps.dashboard.probe_models import ProbeFoundModel, ProbeLibraryModel, ProbeModel, ProbeRequest, ProbesModel
from apps.dashboard.questions import Ask, By, answered, check_length
from apps.dashboard.routing import add_route
from controller.probes.library import library

ProbePath = Annotated[str, Path(pattern=r"^[0-9]{1,18}$", description="The script's id.")]
_LINES = r"^([0-9]{1,9}(,[0-9]{1,9}){0,15})?$"


def add_probe_reads(router: APIRouter, ask: Ask) -> None:
    """Add what reads; `ask` puts a question to the controller."""

    async def probes() -> Response:
        """Return the scripts that look at the controller now."""
        return await _answer(ask, {"show": "probes"})

    async def probe_library() -> Response:
        """Return the scripts that are shipped."""
        scripts = [{"name": each.name, "question": each.question, "script": each.text} for each in library().values()]
        return Response(encode({"scripts": scripts}), media_type=JSON)

    async def probe(
        number: ProbePath,
        lines: Annotated[
            str, Query(pattern=_LINES, description="Leave out lines that are known: `lines` of the last answer.")
        ] = "",
    ) -> Response:
        """Return what a script has found so far; one that nobody asks for in 5 s ends."""
        known = [int(count) for count in lines.split(",")] if lines else []
        return await _answer(ask, {"do": "probe-look", "id": number, "lines": known})

    add_route(router, "GET", "/probes", probes, ProbesModel)
    add_route(router, "GET", "/probes/library", probe_library, ProbeLibraryModel)
    add_route(router, "GET", "/probes/{number}", probe, ProbeFoundModel)


def add_probe_writes(router: APIRouter, ask: Ask) -> None:
    """Add what writes."""

    async def begin_probe(
        request: Annotated[ProbeRequest, Body(description="The script, and for how long.")], by: By
    ) -> Response:
        """Have a script look at the controller; as many at a time as `probes.scripts` of the policy says."""
        question = {"do": "probe-run", "script": request.script, "for_s": request.for_s, "by": by}
        check_length(question)
        return await _answer(ask, question)

    async def end_probe(number: ProbePath, by: By) -> Response:
        """End a script, and return what it has found."""
        return await _answer(ask, {"do": "probe-stop", "id": number, "by": by})

    add_route(router, "POST", "/probes", begin_probe, ProbeModel)
    add_route(router, "DELETE", "/probes/{number}", end_probe, ProbeFoundModel)


async def _answer(ask: Ask, question: dict[str, Any]) -> Response:
    return Response(encode(await answered(ask, question)), media_type=JSON)
