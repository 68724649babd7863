"""`vsrt classes`: its documents, its tables, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main

PORT = {
    "capacity_bps": 10_000_000,
    "floor_pct": 1,
    "classes": [
        {"name": "feed", "importance": 1, "offered_bps": 1e6, "packet_bytes": 1500, "goal": {"delay_ms": 2}},
        {"name": "video", "importance": 2, "offered_bps": 9e6, "packet_bytes": 1500, "goal": {"loss_pct": 0}},
        {"name": "backup", "importance": 6, "offered_bps": 9e6, "packet_bytes": 1500, "goal": None},
    ],
}
GROUP = {"importance": 1, "trees": 1, "queue": 2, "utilisation": 0.9, "gain": True, "enabled": True}
STATE = {
    "now_s": 100,
    "free": 1,
    "per_group": 4,
    "last_goal_s": 70,
    "last_efficiency_s": None,
    "last_helped_importance": None,
    "classes": [{"name": "feed", "importance": 1, "performance_index": 2, "queue_share": 0.5, "groups": ["hot"]}],
    "groups": {"hot": {**GROUP, "last_action_s": None}},
}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    def command(name: str, content: Any, *words: str, status: int = 0) -> tuple[Any, str]:
        path = tmp_path / "input.json"
        path.write_text(json.dumps(content))
        found = main(["classes", name, "--input", str(path), *words])
        out, err = capsys.readouterr()
        assert found == status, err
        return (json.loads(out) if "--json" in words and out else out), err

    return command


def test_limits(capsys: pytest.CaptureFixture[str]):
    assert main(["classes", "limits", "--servers", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"limits_pct": pytest.approx([20, 37.0156, 46.4292])}
    assert main(["classes", "limits", "--servers", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == ["trees  limit %", "    1     20.0", "    2     37.0"]
    assert main(["classes", "limits", "--servers", "0"]) == 2
    assert "--servers: 0 is not" in capsys.readouterr().err


def test_clusters(call):
    samples = {"a": {"x": 1}, "b": {"y": 5}, "c": {"x": 5, "y": 0.4}}
    assert call("clusters", {"samples": samples}, "--json")[0] == {"clusters": [["a", "c"], ["b"]]}
    assert call("clusters", {"samples": samples})[0] == "a, c\nb\n"


def test_rates(call):
    document, _ = call("rates", PORT, "--json")
    assert document == {
        "min_rate_bps": {"feed": 7_100_000, "video": 2_800_000, "backup": 100_000},
        "infeasible": {"video": 6_650_000},
    }
    assert "video          2800000        6650000" in call("rates", PORT)[0]


def test_transfers(call):
    document, _ = call("transfers", STATE, "--json")
    reason = "class feed misses its goal (index 2.00), and the pool has a free alias"
    assert document == {"transfers": [{"by": "goal", "from": None, "to": "hot", "reason": reason}]}
    assert "goal  the pool  hot" in call("transfers", STATE)[0]
    assert call("transfers", {**STATE, "free": 0})[0] == "No tree would move.\n"


def test_the_pace_is_told(call):
    late = {**STATE, "last_goal_s": 90}
    late["groups"] = {"hot": {**GROUP, "queue": 0.1}}
    assert call("transfers", late, "--json")[0]["transfers"] == []
    assert len(call("transfers", late, "--json", "--pace", "fast")[0]["transfers"]) == 1


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with the value at a path such as ``classes.0.goal``; absent where it is Ellipsis."""
    copy = json.loads(json.dumps(document))
    *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
    inner = copy
    for part in way:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return copy


@pytest.mark.parametrize(
    ("name", "document", "told"),
    [
        ("clusters", {}, "input.samples: missing"),
        ("clusters", {"samples": {"a": {"x": -1}}}, "samples.a.x: -1 is not a number from 0 on"),
        ("clusters", {"samples": {"a": 1}}, "samples.a: expected an object"),
        ("rates", changed(PORT, "capacity_bps", 0), "capacity_bps: 0 is below 1"),
        ("rates", changed(PORT, "floor_pct", 101), "floor_pct: 101 is not from 0 to 100"),
        ("rates", changed(PORT, "classes.1.name", "feed"), "classes[1].name: 'feed' is the name of another class"),
        ("rates", changed(PORT, "classes.0.importance", 0), "classes[0].importance: 0 is below 1"),
        ("rates", changed(PORT, "classes.0.importance", 7), "classes[0].importance: 7 is not from 1 to 6"),
        ("rates", changed(PORT, "classes.0.goal", {}), "classes[0].goal: expected one of loss_pct, delay_ms"),
        (
            "rates",
            changed(PORT, "classes.0.goal", {"delay_ms": 2, "loss_pct": 1}),
            "classes[0].goal: expected one of loss_pct, delay_ms, velocity_pct, rate_bps, found 2 goals",
        ),
        ("rates", changed(PORT, "classes.0.goal", {"speed": 2}), "classes[0].goal.speed: unknown field"),
        ("rates", changed(PORT, "classes.0.goal", {"loss_pct": 100}), "classes[0].goal.loss_pct: 100 is not from"),
        ("rates", changed(PORT, "classes.2.goal", {"loss_pct": 1}), "classes[2].goal: a class of importance 6"),
        ("rates", changed(PORT, "classes.0.packet_bytes", 0), "classes[0].packet_bytes: 0 is not from 1 to 65535"),
        ("rates", changed(PORT, "classes.0.offered_bps", ...), "classes[0].offered_bps: missing"),
        ("transfers", changed(STATE, "groups.hot.trees", 0), "groups.hot.trees: 0 is below 1"),
        ("transfers", changed(STATE, "groups.hot.gain", 1), "groups.hot.gain: expected true or false"),
        ("transfers", changed(STATE, "groups.hot.last_action_s", "x"), "groups.hot.last_action_s: expected a number"),
        ("transfers", changed(STATE, "per_group", 16), "per_group: 16 is not from 0 to 15"),
        ("transfers", changed(STATE, "classes.0.groups", ["cold"]), "classes[0].groups[0]: 'cold' is none of groups"),
        ("transfers", changed(STATE, "classes.0.queue_share", 2), "classes[0].queue_share: 2 is not from 0 to 1"),
        ("transfers", changed(STATE, "classes", {}), "classes: expected a list"),
        ("transfers", [], "input: expected an object"),
    ],
)
def test_bad_input_is_told_with_its_place(call, name: str, document: Any, told: str):
    _, err = call(name, document, status=2)
    assert told in err and "input.json: " in err
