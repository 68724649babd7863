"""How routes of the API are added that answer with documents encoded already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter


def add_route(router: APIRouter, method: str, path: str, endpoint: Callable[..., Any], model: Any) -> None:
    """Add a route, which the API's description calls as `endpoint` is called, with the model of its answer."""
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        operation_id=endpoint.__name__,
        responses={200: {"model": model}},
        response_model=None,
    )
