"""How queriers and ports with multicast routers become rows of a table, and one document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from apps.cli.called import SnapshotNames
from apps.cli.show_cells import Fields, Row, place


def router_rows(router: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the rows of the queriers, or the row of a router port."""
    for querier in router.get("queriers") or ():
        where = f" in fabric {querier['fabric']}" if querier.get("fabric") else ""
        what = f"querier of IPv{querier['family']}{_in_vlan(querier)}{where}"
        if querier["address"] is None:
            yield what, "-", "this controller" if querier["ours"] else "nobody"
        else:
            yield what, place(querier, called), querier["address"]
    if "family" in router:
        yield f"router port of IPv{router['family']}{_in_vlan(router)}", place(router, called), _why_router(router)


def _in_vlan(fields: Fields) -> str:
    return f" in VLAN {fields['vlan']}" if fields.get("vlan") else ""


def _why_router(router: Fields) -> str:
    heard = ", ".join(router.get("routers") or ()) or "-"
    how = "static" if router.get("static") else heard
    how = f"{how}, gets what it asks for" if router.get("on_request") else how
    if joined := router.get("joined"):
        how += f", joined {joined['group_count']} group{'s' * (joined['group_count'] != 1)}"
    if reported := router.get("reported"):
        protocol, count = "IGMP" if router["family"] == 4 else "MLD", reported["group_count"]
        how += f", is reported {count} group{'s' * (count != 1)} in {protocol}v{reported['version']}"
    return how


def routers_document(found: Sequence[Fields]) -> dict[str, Any]:
    """Return what is known of queriers and router ports, as one document."""
    queriers = [querier for fields in found for querier in fields.get("queriers") or ()]
    return {"queriers": queriers, "router_ports": [fields for fields in found if "family" in fields]}
