"""The description is served, is OpenAPI 3.1, and every operation of it keeps to it, whatever it is asked."""

from __future__ import annotations

import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from apps.dashboard.limits import ServerLimits
from apps.dashboard.reads import LISTS

GOOD = {"Authorization": "Bearer correct-horse-battery-staple"}
EXAMPLES = 6
"""Requests per operation and kind of input."""


@pytest.fixture(scope="module")
def limits() -> ServerLimits:
    """Bounds for a client that tries a wrong token at every operation."""
    return ServerLimits(guesses=10_000)


@pytest.fixture(scope="module")
def described(dashboard: Any) -> dict[str, Any]:
    found: dict[str, Any] = dashboard.get("/openapi.json")
    return found


@pytest.fixture(scope="module")
def api(dashboard: Any, described: dict[str, Any]) -> Any:
    return schemathesis.openapi.from_dict(described)


def test_it_describes_every_path(described: dict[str, Any]) -> None:
    assert described["openapi"].startswith("3.1")
    paths = described["paths"]
    assert {f"/api/v1/{name}" for name in LISTS} <= set(paths)
    for path, method in (("status", "get"), ("stream", "get"), ("policy/reload", "post"), ("allocations", "post")):
        assert method in paths[f"/api/v1/{path}"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    writes = [found for methods in paths.values() for method, found in methods.items() if method != "get"]
    assert writes
    assert all(found["security"] == [{"token": []}] for found in writes)
    assert not any("security" in methods["get"] for methods in paths.values() if "get" in methods)


def test_it_lists_the_values_of_a_parameter_that_has_no_others(described: dict[str, Any]) -> None:
    def schema(path: str, name: str) -> dict[str, Any]:
        found = described["paths"][f"/api/v1/{path}"]["get"]["parameters"]
        (parameter,) = [parameter for parameter in found if parameter["name"] == name]
        return dict(parameter["schema"])

    for path in ("events", "alarms", "cleared-alarms"):
        (values,) = [choice["enum"] for choice in schema(path, "severity")["anyOf"] if "enum" in choice]
        assert values == ["info", "warning", "critical"]
    assert schema("ports/{dpid}/{port_no}/history", "metric")["enum"][:2] == ["rx_bps", "tx_bps"]
    assert re.match(schema("stream", "sections")["pattern"], "ports,alarms")
    assert not re.match(schema("stream", "sections")["pattern"], "ports,colours")


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_operation_keeps_to_its_description(dashboard: Any, api: Any, mode: GenerationMode) -> None:
    checked = 0
    for found in api.exclude(path_regex="/stream$").get_all_operations():
        operation = found.ok()
        strategy = operation.as_strategy(generation_mode=mode)

        @seed(1)
        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=strategy)
        def keeps_to_it(case: Any) -> None:
            case.call_and_validate(base_url=dashboard.url, headers=GOOD, timeout=10)

        try:
            keeps_to_it()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, operation.label
            continue
        checked += 1
    assert checked > 10
