"""Rolling maintenance by the API: who may write begins, pauses and ends campaigns."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from apps.dashboard.answers import JSON, encode
from apps.dashboard.board import Board
from apps.dashboard.models import DoneModel
from apps.dashboard.places import known_dpid
from apps.dashboard.questions import Ask, By, answered, check_length
from controller.maintenance.model import LONGEST_STEP_S, USUAL

Switches = Annotated[
    str, Query(pattern=r"^[0-9]{1,20}(,[0-9]{1,20})*$", description="Datapath ids, with commas between.")
]
Seconds = Annotated[float, Query(ge=1, le=LONGEST_STEP_S)]
Window = Annotated[
    str,
    Query(pattern=r"^([0-9]{1,5},[0-9]{1,5})?$", description="Seconds of the day; empty for always."),
]
Runner = Annotated[str, Query(max_length=64, description="Stands for who upgrades the switches.")]


def _order(
    switches: Switches,
    disruptive: bool = USUAL.disruptive,
    window: Window = "",
    expected_s: Seconds = USUAL.expected_s,
    hook_limit_s: Seconds = USUAL.hook_limit_s,
    restarts: bool = USUAL.restarts,
) -> dict[str, Any]:
    return {
        "switches": [int(each) for each in switches.split(",")],
        "disruptive": disruptive,
        "window": [int(each) for each in window.split(",")] if window else None,
        "expected_s": expected_s,
        "hook_limit_s": hook_limit_s,
        "restarts": restarts,
    }


Order = Annotated[dict[str, Any], Depends(_order)]


def add_maintenance_writes(router: APIRouter, board: Board, ask: Ask) -> None:
    """Add what writes; the board knows what switches are called."""

    async def do(verb: str, by: str, **fields: Any) -> Response:
        question = {"do": f"maintenance-{verb}", **fields, "by": by}
        check_length(question)
        return Response(encode(await answered(ask, question)), media_type=JSON)

    async def plan_maintenance(order: Order, by: By) -> Response:
        """Say in which order switches would be maintained, and what speaks against it."""
        return await do("plan", by, **order)

    async def start_maintenance(order: Order, by: By, runner: Runner) -> Response:
        """Begin a campaign."""
        return await do("start", by, **order, runner=runner)

    async def pause_maintenance(by: By) -> Response:
        """Begin no other switch."""
        return await do("pause", by)

    async def resume_maintenance(by: By, runner: Runner = "") -> Response:
        """Go on, and try again what failed."""
        return await do("resume", by, runner=runner)

    async def abort_maintenance(by: By) -> Response:
        """Begin no other switch, and end when those in work have."""
        return await do("abort", by)

    async def skip_maintenance(by: By, dpid: Annotated[str, Query(max_length=64)]) -> Response:
        """Leave a switch out that waits or has failed."""
        return await do("skip", by, dpid=known_dpid(board, dpid))

    async def hook(
        by: By,
        what: Annotated[str, Path(pattern="^(begin|end)$")],
        dpid: Annotated[str, Query(max_length=64)],
        runner: Runner,
        fault: Annotated[str, Query(max_length=500, description="What went wrong; empty where all went well.")] = "",
    ) -> Response:
        """Say that the upgrade of a switch begins, or has ended."""
        told = {"fault": fault} if what == "end" else {}
        return await do(f"hook-{what}", by, dpid=known_dpid(board, dpid), runner=runner, **told)

    for path, endpoint in (
        ("plan", plan_maintenance),
        ("start", start_maintenance),
        ("pause", pause_maintenance),
        ("resume", resume_maintenance),
        ("abort", abort_maintenance),
        ("skip", skip_maintenance),
        ("hook-{what}", hook),
    ):
        router.add_api_route(
            f"/maintenance/{path}",
            endpoint,
            methods=["POST"],
            operation_id=f"{endpoint.__name__}",
            response_model=None,
            responses={200: {"model": DoneModel}},
        )
