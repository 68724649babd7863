"""What can be changed by the API; the guard has asked for the token before a request comes here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Security
from fastapi.security import HTTPBearer
from starlette.responses import Response

from apps.dashboard.answers import JSON, Problem, encode
from apps.dashboard.models import Done
from apps.dashboard.reads import PROBLEMS, AddressPath, Ask, DpidPath, PortPath, answered, group_address

FamilyPath = Annotated[Literal["4", "6"], Path(description="IP version.")]
QUESTION_BYTES = 65_000
"""The longest question that the controller's socket takes."""

BY = "the API"
"""On whose behalf the controller is asked, for its audit log; the log of writes has the client."""

_RESERVED = ("do", "show", "changes")


def writes(ask: Ask) -> APIRouter:
    """Return the routes; `ask` puts a question to the controller."""
    bearer = HTTPBearer(scheme_name="token", auto_error=False, description="The token of `dashboard.token_file`.")
    router = APIRouter(responses=PROBLEMS, dependencies=[Security(bearer)], default_response_class=Response)

    async def do(action: str, **fields: Any) -> Response:
        return Response(encode(await answered(ask, {**fields, "do": action})), media_type=JSON)

    async def do_by(action: str, **fields: Any) -> Response:
        return await do(action, by=BY, **fields)

    def route(method: str, path: str) -> Any:
        def add(endpoint: Any) -> Any:
            router.add_api_route(
                path,
                endpoint,
                methods=[method],
                operation_id=endpoint.__name__,
                response_model=None,
                responses={200: {"model": Done}},
            )
            return endpoint

        return add

    @route("POST", "/policy/reload")
    async def reload_policy() -> Response:
        """Read the policy file anew."""
        return await do_by("policy-reload")

    @route("PUT", "/groups/{address}/static-members/{dpid}/{port_no}")
    async def add_static_member(address: AddressPath, dpid: DpidPath, port_no: PortPath) -> Response:
        """Let a port have a group whatever its hosts say."""
        return await do_by("static-member-add", group=group_address(address), dpid=dpid, port_no=port_no)

    @route("DELETE", "/groups/{address}/static-members/{dpid}/{port_no}")
    async def remove_static_member(address: AddressPath, dpid: DpidPath, port_no: PortPath) -> Response:
        """Let a port have a group only where its hosts ask for it."""
        return await do_by("static-member-remove", group=group_address(address), dpid=dpid, port_no=port_no)

    @route("PUT", "/routers/{dpid}/{port_no}/{family}")
    async def add_router_port(dpid: DpidPath, port_no: PortPath, family: FamilyPath) -> Response:
        """Let a port have every group, as one that leads to a multicast router."""
        return await do_by("router-port-add", dpid=dpid, port_no=port_no, family=int(family))

    @route("DELETE", "/routers/{dpid}/{port_no}/{family}")
    async def remove_router_port(dpid: DpidPath, port_no: PortPath, family: FamilyPath) -> Response:
        """Take that back."""
        return await do_by("router-port-remove", dpid=dpid, port_no=port_no, family=int(family))

    @route("PUT", "/switches/{dpid}/drain")
    async def drain_switch(dpid: DpidPath) -> Response:
        """Have trees leave a switch, without loss where the rest of the fabric connects."""
        return await do_by("switch-drain", dpid=dpid)

    @route("DELETE", "/switches/{dpid}/drain")
    async def undrain_switch(dpid: DpidPath) -> Response:
        """Let trees use a switch again."""
        return await do_by("switch-undrain", dpid=dpid)

    @route("POST", "/groups/{address}/rebuild")
    async def rebuild_group(address: AddressPath) -> Response:
        """Build a group's tree anew beside the old one, then move to it."""
        return await do_by("group-rebuild", group=group_address(address))

    @route("POST", "/counters/reset")
    async def reset_counters() -> Response:
        """Let counters begin anew."""
        return await do_by("counters-reset")

    @route("POST", "/allocations")
    async def allocate(
        request: Annotated[dict[str, Any], Body(description="As `vsrt allocate live` sends.")],
    ) -> Response:
        """Have the allocator choose ports."""
        reserved = next((name for name in _RESERVED if name in request), None)
        if reserved is not None:
            raise Problem(422, f"{reserved}: no field of a request", field=reserved)
        try:
            length = len(encode(request))
        except ValueError:
            raise Problem(422, "the request holds a number that JSON has not") from None
        if length > QUESTION_BYTES:
            raise Problem(413, f"the request is longer than {QUESTION_BYTES} bytes")
        return await do("allocate", **request)

    return router
