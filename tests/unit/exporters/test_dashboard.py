"""The Grafana dashboards ask for what is exported, in queries that Prometheus understands."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from apps.exporters import controller_metrics, metrics
from apps.exporters.exposition import MetricFamily, Type

DIRECTORY = Path(__file__).parents[3] / "dashboards"
FAMILIES: dict[str, tuple[MetricFamily, ...]] = {
    "performance.json": metrics.FAMILIES,
    "controller.json": controller_metrics.FAMILIES,
}
TYPES = {family.name: family.type for families in FAMILIES.values() for family in families}
NAME = re.compile(r"\b(?:vsrt|process)_\w+")
GRAFANA = {"$__rate_interval": "1m", "$class": ".*", "$dpid": ".*", "$top": "10"}


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def file(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def dashboard(file: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DIRECTORY / file).read_text())
    return document


@pytest.fixture(scope="module")
def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def family(name: str) -> str:
    """The family of a series: a histogram has three sorts of them."""
    short = re.sub("_(bucket|sum|count)$", "", name)
    return short if TYPES.get(short) is Type.HISTOGRAM else name


def test_every_dashboard_that_is_shipped_is_tested() -> None:
    assert {path.name for path in DIRECTORY.glob("*.json")} == set(FAMILIES)


def test_every_query_is_about_exported_metrics(file: str, dashboard: dict[str, Any], expressions: list[str]) -> None:
    queries = [variable["definition"] for variable in dashboard["templating"]["list"] if "definition" in variable]
    asked = [{family(name) for name in NAME.findall(text)} for text in [*expressions, *queries]]
    assert all(asked), "every query names a metric"
    assert set().union(*asked) - set(TYPES) == set()
    wanted = {exported.name for exported in FAMILIES[file]}
    assert wanted - set().union(*asked) == set(), "every metric is on the dashboard"


def test_counters_are_shown_as_rates_and_gauges_are_not(expressions: list[str]) -> None:
    for expression in expressions:
        for name in NAME.findall(expression):
            rated = re.search(rf"\b(rate|increase)\({name}\b", expression) is not None
            assert rated == (TYPES[family(name)] is not Type.GAUGE), expression


def test_prometheus_understands_every_query(expressions: list[str], tmp_path: Path, promtool: str) -> None:
    rules = []
    for number, expression in enumerate(expressions):
        for name, value in GRAFANA.items():
            expression = expression.replace(name, value)
        assert "$" not in expression
        rules.append({"record": f"dashboard:query:{number}", "expr": expression})
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_grafana_finds_what_it_needs(dashboard: dict[str, Any]) -> None:
    assert dashboard["schemaVersion"] >= 36
    assert dashboard["id"] is None, "Grafana gives the number"
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in dashboard["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
    text = json.dumps(dashboard["panels"])
    assert set(re.findall(r"\$\{?(\w+)", text)) <= {*variables, "__rate_interval"}


def test_no_panel_lies_over_another(dashboard: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
