"""A run that was recorded can be done again without switches, and ends as the live one did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.replays import SHARERS, Replay, read_lines
from controller.multicast.view import VIEWS
from controller.rules.pipeline import DISCOVERY_TAG, MULTICAST_TAG, UNICAST_TAG
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where all apps of all controllers of this module record what they are given."""
    path = tmp_path_factory.mktemp("recording") / "run.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSRT_RECORD", str(path))
        yield path


@pytest.fixture(scope="module")
def bench(recording: Path, diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


@pytest.mark.each_framework
def test_a_live_run_is_replayed(live: Any, group: str, recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    closed = group.replace("239.1.", "239.9.", 1)
    live.join(group, "h2", "h3")
    live.stream(1, "h1", group)
    for host in ("h3", "h4"):
        live.fabric.join(host, closed)
    live.wait_members(closed, {"h3"}, {"h4"})
    live.fabric.join("h2", "ff1e::99")
    live.wait_members("ff1e::99", {"h2"})
    live.fabric.link_down(*live.tree(group)[0])
    live.wait_ready(links=3)
    live.fabric.leave("h2", group)
    live.wait_members(group, {"h3"})
    live.halt()
    shown = live.controller.show("groups")
    rules = live.controller.show("rules")

    again = Replay()
    with recording.open() as file:
        for line in read_lines(file):
            if line.app in SHARERS:
                again.take(line)
    core = again.cores["multicast"]
    assert without_rates(VIEWS["groups"](core)) == without_rates(shown)
    since_s = {live["since_s"] - again["since_s"] for live, again in zip(rules, VIEWS["rules"](core), strict=True)}
    assert len({round(lag_s, 3) for lag_s in since_s}) == 1, (
        "a replay's clock is another one, by as much for all rules"
    )
    assert without_times(VIEWS["rules"](core)) == without_times(rules)

    decisions = (live.controller.directory / "state" / "audit.jsonl").read_text().count("\n")
    made = {app: list(replayed(recording, app, capsys)) for app in ("multicast", "unicast", "datapath", "discovery")}
    assert [effect["$"] for effect in made["multicast"]].count("Audit") >= decisions > 0
    assert "SwitchUp" in {effect["$"] for effect in made["discovery"]}
    batches = [effect["edits"] for effect in made["datapath"] if effect["$"] == "ApplyEdits"]
    owners = {edit["rule"]["cookie"] >> 48 for edits in batches for edit in edits if edit["$"] == "Put"}
    assert {DISCOVERY_TAG, MULTICAST_TAG, UNICAST_TAG} <= owners


def replayed(recording: Path, app: str, capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, Any]]:
    """Yield the effects that the command prints of an app."""
    assert main(["replay", str(recording), "--app", app]) == 0
    for line in capsys.readouterr().out.splitlines():
        yield json.loads(line)["effect"]


def without_times(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What does not depend on the clock by which counts began."""
    return [{name: value for name, value in rule.items() if name != "since_s"} for rule in rules]


def without_rates(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What changes neither from one reading of counters to the next nor with the clock."""
    told = json.loads(json.dumps(groups))
    for group in told:
        group["rate_bps"] = None
        for one in (*group["members"], *group["refused"], *group["senders"]):
            one |= {"rate_bps": None, "since_s": None}
    return list(told)
