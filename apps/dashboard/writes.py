"""What can be changed by the API; the guard has asked for the token before a request comes here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Query, Security
from fastapi.security import HTTPBearer
from starlette.responses import Response

from apps.dashboard.answers import JSON, Problem, encode
from apps.dashboard.board import Board
from apps.dashboard.candidate_routes import add_candidate_writes
from apps.dashboard.maintenance_routes import add_maintenance_writes
from apps.dashboard.models import DoneModel
from apps.dashboard.places import known_dpid, port_number, switch_dpid
from apps.dashboard.probe_routes import add_probe_writes
from apps.dashboard.questions import Ask, By, answered, check_length
from apps.dashboard.reads import PROBLEMS, AddressPath, PortPath, SwitchPath, TablesPath, group_address
from apps.dashboard.workflow_routes import add_workflow_writes
from apps.dashboard.workflow_runs import WorkflowRuns
from controller.alarms.actions import KEY_LENGTH
from controller.config.terms import ADDRESS_NAME, LABEL_KEY, LABEL_VALUE, POOL_NAME, RESERVED_LABELS, is_label_key

FamilyPath = Annotated[Literal["4", "6"], Path(description="IP version.")]
_KEY = r"^[A-Za-z0-9][ -.0-\[\]-~]*$"
"""Keys of alarms are printable ASCII; no path may hold a slash or a backslash that is not its own."""

MonitorPath = Annotated[str, Path(pattern=_KEY, max_length=64, description="Name of a monitor.")]

LabelKeyPath = Annotated[
    str,
    Path(
        max_length=63,
        description="Key of a label; `tier`, `dpid`, `name`, `state` and `fabric` are none.",
        json_schema_extra={"pattern": f"^{LABEL_KEY}$", "not": {"enum": list(RESERVED_LABELS)}},
    ),
]
LabelValue = Annotated[str, Query(pattern=f"^{LABEL_VALUE}$", description="What the label says.")]

PoolPath = Annotated[str, Path(pattern=f"^{POOL_NAME}$", description="Name of a pool.")]
AddressNamePath = Annotated[str, Path(pattern=f"^{ADDRESS_NAME}$", description="Whose the address is.")]

_RESERVED = ("do", "show", "changes")


def label_key(text: str) -> str:
    """Return the key of a label; Problem where a text can be none."""
    if not is_label_key(text):
        raise Problem(404, f"there is no label {text!r}: no label can be called that")
    return text


def writes(board: Board, ask: Ask, runs: WorkflowRuns) -> APIRouter:
    """Return the routes; `ask` puts a question to the controller, the board knows what switches are called."""
    bearer = HTTPBearer(
        scheme_name="token", auto_error=False, description="A token of `dashboard.token_file`: an operator's."
    )
    router = APIRouter(responses=PROBLEMS, dependencies=[Security(bearer)], default_response_class=Response)

    async def do(action: str, **fields: Any) -> Response:
        return Response(encode(await answered(ask, {**fields, "do": action})), media_type=JSON)

    def place(dpid: str, port_no: str) -> dict[str, int]:
        of_switch = switch_dpid(board, dpid)
        return {"dpid": of_switch, "port_no": port_number(board, of_switch, port_no)}

    def route(method: str, path: str) -> Any:
        def add(endpoint: Any) -> Any:
            router.add_api_route(
                path,
                endpoint,
                methods=[method],
                operation_id=endpoint.__name__,
                response_model=None,
                responses={200: {"model": DoneModel}},
            )
            return endpoint

        return add

    @route("POST", "/policy/reload")
    async def reload_policy(by: By) -> Response:
        """Read the policy file anew."""
        return await do("policy-reload", by=by)

    @route("PUT", "/groups/{address}/static-members/{dpid}/{port_no}")
    async def add_static_member(address: AddressPath, dpid: SwitchPath, port_no: PortPath, by: By) -> Response:
        """Let a port have a group whatever its hosts say."""
        return await do("static-member-add", by=by, group=group_address(address), **place(dpid, port_no))

    @route("DELETE", "/groups/{address}/static-members/{dpid}/{port_no}")
    async def remove_static_member(address: AddressPath, dpid: SwitchPath, port_no: PortPath, by: By) -> Response:
        """Let a port have a group only where its hosts ask for it."""
        return await do("static-member-remove", by=by, group=group_address(address), **place(dpid, port_no))

    @route("PUT", "/routers/{dpid}/{port_no}/{family}")
    async def add_router_port(dpid: SwitchPath, port_no: PortPath, family: FamilyPath, by: By) -> Response:
        """Let a port have every group, as one that leads to a multicast router."""
        return await do("router-port-add", by=by, **place(dpid, port_no), family=int(family))

    @route("DELETE", "/routers/{dpid}/{port_no}/{family}")
    async def remove_router_port(dpid: SwitchPath, port_no: PortPath, family: FamilyPath, by: By) -> Response:
        """Take that back."""
        return await do("router-port-remove", by=by, **place(dpid, port_no), family=int(family))

    @route("PUT", "/switches/{dpid}/drain")
    async def drain_switch(dpid: SwitchPath, by: By) -> Response:
        """Have trees leave a switch, without loss where the rest of the fabric connects."""
        return await do("switch-drain", by=by, dpid=switch_dpid(board, dpid))

    @route("DELETE", "/switches/{dpid}/drain")
    async def undrain_switch(dpid: SwitchPath, by: By) -> Response:
        """Let trees use a switch again."""
        return await do("switch-undrain", by=by, dpid=switch_dpid(board, dpid))

    @route("DELETE", "/switches/{dpid}")
    async def forget_switch(dpid: SwitchPath, by: By) -> Response:
        """Show a switch no longer that is gone and is not to come back."""
        return await do("switch-forget", by=by, dpid=switch_dpid(board, dpid))

    @route("DELETE", "/links/{link}")
    async def forget_link(
        link: Annotated[
            str,
            Path(pattern=r"^[0-9]{1,20}:[0-9]{1,10}-[0-9]{1,20}:[0-9]{1,10}$", description="The link's id."),
        ],
        by: By,
    ) -> Response:
        """Expect a link no more that is missing."""
        return await do("link-forget", by=by, link=link)

    @route("PUT", "/alarms/{key}/acknowledgement")
    async def acknowledge_alarm(
        key: Annotated[str, Path(pattern=_KEY, max_length=KEY_LENGTH, description="The alarm's key.")],
        by: By,
    ) -> Response:
        """Say that an open alarm was seen and is taken care of."""
        return await do("alarm-acknowledge", key=key, by=by)

    @route("POST", "/groups/{address}/rebuild")
    async def rebuild_group(address: AddressPath, by: By) -> Response:
        """Build a group's tree anew beside the old one, then move to it."""
        return await do("group-rebuild", by=by, group=group_address(address))

    @route("POST", "/groups/{address}/aliases")
    async def add_alias(address: AddressPath, by: By) -> Response:
        """Give a group one more tree from the pool, where measures move trees."""
        return await do("alias-add", by=by, group=group_address(address))

    @route("DELETE", "/groups/{address}/aliases")
    async def remove_alias(address: AddressPath, by: By) -> Response:
        """Take the alias that a group got last."""
        return await do("alias-remove", by=by, group=group_address(address))

    @route("POST", "/groups/{address}/entries")
    async def swap_in(address: AddressPath, by: By) -> Response:
        """Have a group in the flow tables before a packet asks for it."""
        return await do("group-swap-in", by=by, group=group_address(address))

    @route("DELETE", "/groups/{address}/entries")
    async def swap_out(address: AddressPath, by: By) -> Response:
        """Take a group out of the flow tables until its next packet."""
        return await do("group-swap-out", by=by, group=group_address(address))

    @route("PUT", "/groups/{address}/pin")
    async def pin_group(address: AddressPath, by: By) -> Response:
        """Keep a group in the flow tables whatever it sends."""
        return await do("group-pin", by=by, group=group_address(address))

    @route("DELETE", "/groups/{address}/pin")
    async def unpin_group(address: AddressPath, by: By) -> Response:
        """Let a pinned group go out of the flow tables again."""
        return await do("group-unpin", by=by, group=group_address(address))

    @route("PUT", "/switches/{dpid}/labels/{key}")
    async def add_switch_label(dpid: SwitchPath, key: LabelKeyPath, value: LabelValue, by: By) -> Response:
        """Give a switch a label, in the place of the policy's of that key."""
        return await do("switch-label-add", by=by, dpid=switch_dpid(board, dpid), key=label_key(key), value=value)

    @route("DELETE", "/switches/{dpid}/labels/{key}")
    async def remove_switch_label(dpid: SwitchPath, key: LabelKeyPath, by: By) -> Response:
        """Take a label of a switch back that an operator gave it."""
        return await do("switch-label-remove", by=by, dpid=switch_dpid(board, dpid), key=label_key(key))

    @route("PUT", "/ports/{dpid}/{port_no}/labels/{key}")
    async def add_port_label(
        dpid: SwitchPath, port_no: PortPath, key: LabelKeyPath, value: LabelValue, by: By
    ) -> Response:
        """Give a port a label, in the place of the policy's of that key."""
        return await do("port-label-add", by=by, **place(dpid, port_no), key=label_key(key), value=value)

    @route("DELETE", "/ports/{dpid}/{port_no}/labels/{key}")
    async def remove_port_label(dpid: SwitchPath, port_no: PortPath, key: LabelKeyPath, by: By) -> Response:
        """Take a label of a port back that an operator gave it."""
        return await do("port-label-remove", by=by, **place(dpid, port_no), key=label_key(key))

    @route("PUT", "/pools/{pool}/addresses/{name}")
    async def take_address(pool: PoolPath, name: AddressNamePath, by: By) -> Response:
        """Give somebody the next free address of a pool, or say which one it is that they have."""
        return await do("address-take", by=by, pool=pool, name=name)

    @route("DELETE", "/pools/{pool}/addresses/{name}")
    async def release_address(pool: PoolPath, name: AddressNamePath, by: By) -> Response:
        """Give the address of a pool back that somebody has."""
        return await do("address-release", by=by, pool=pool, name=name)

    @route("POST", "/checks/{app}")
    async def begin_check(
        app: TablesPath,
        by: By,
        dpid: Annotated[str | None, Query(max_length=64, description="One switch; all without.")] = None,
        repair: Annotated[bool, Query(description="Have entries that differ put right.")] = False,
        force: Annotated[bool, Query(description="Repair more than 5 % of a switch's entries too.")] = False,
    ) -> Response:
        """Begin to compare what switches hold with what they shall."""
        place = {} if dpid is None else {"dpid": known_dpid(board, dpid)}
        return await do(f"check-{app}", by=by, **place, repair=repair, force=force)

    @route("POST", "/cluster/hand-over")
    async def hand_over(
        by: By,
        to: Annotated[str, Query(max_length=64, description="The member that shall lead; any other without.")] = "",
    ) -> Response:
        """Have another controller lead."""
        return await do("hand-over", by=by, **({"to": to} if to else {}))

    @route("PUT", "/monitors/{monitor}/drain")
    async def drain_monitor(monitor: MonitorPath, by: By) -> Response:
        """Have a monitor give its switches to others."""
        return await do("drain-monitor", by=by, monitor=monitor)

    @route("DELETE", "/monitors/{monitor}/drain")
    async def undrain_monitor(monitor: MonitorPath, by: By) -> Response:
        """Let a monitor have its part of the switches again."""
        return await do("undrain-monitor", by=by, monitor=monitor)

    @route("POST", "/counters/reset")
    async def reset_counters(by: By) -> Response:
        """Let counters begin anew."""
        return await do("counters-reset", by=by)

    @route("POST", "/allocations")
    async def allocate(
        request: Annotated[dict[str, Any], Body(description="As `vsrt allocate live` sends.")],
    ) -> Response:
        """Have the allocator choose ports."""
        reserved = next((name for name in _RESERVED if name in request), None)
        if reserved is not None:
            raise Problem(422, f"{reserved}: no field of a request", field=reserved)
        check_length(request)
        return await do("allocate", **request)

    add_probe_writes(router, ask)
    add_candidate_writes(router, ask)
    add_maintenance_writes(router, board, ask)
    add_workflow_writes(router, board, runs)
    return router
