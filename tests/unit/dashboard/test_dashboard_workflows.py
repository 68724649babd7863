"""Workflows by the API: what is about a thing, plans, runs with a result per item, and runs of an earlier server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.dashboard import workflow_runs
from page_fabric import DrainedController
from workflow_files import write_workflows

Start = Callable[..., Any]


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[DrainedController]:
    controller = DrainedController(tmp_path / "state" / "vsrt.sock")
    (tmp_path / "state").mkdir()
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def begin(start: Start, fabric: DrainedController, tmp_path: Path) -> Start:
    folder = write_workflows(tmp_path / "workflows")

    def make(**changed: Any) -> Any:
        found = start(socket=str(fabric.path), **{"workflows": str(folder), **changed})
        found.wait_until(lambda: found.get("/status")["connected"])
        return found

    return make


def run(served: Any, name: str, query: str = "") -> Any:
    answer = served.write("POST", f"/workflows/{name}/runs{query}")
    assert answer.status_code == 200, answer.text
    number = answer.json()["id"]
    return ended(served, number)


def ended(served: Any, number: str) -> Any:
    def over() -> Any:
        found = served.get(f"/workflow-runs/{number}")
        return found if found["state"] not in ("running", "stopping") else None

    return served.wait_until(over)


def named(served: Any, query: str = "") -> list[str]:
    return [each["name"] for each in served.get(f"/workflows{query}")["workflows"]]


def test_what_is_about_a_thing_follows_the_thing_and_the_files(
    begin: Start, fabric: DrainedController, tmp_path: Path
) -> None:
    served = begin()
    assert served.get("/status")["dashboard"]["workflows"] is True
    assert named(served) == ["all-tors", "anew", "drain-all", "host", "note", "spare", "watch"]
    (fault,) = served.get("/workflows")["faults"]
    assert fault["name"] == "broken"
    assert "broken.yaml:2: steps[0].do: missing" in fault["text"]
    assert named(served, "?at=switch/1") == ["drain-all", "note", "spare"]
    fabric.change("switches", "1", tier="tor", connected=False)
    served.wait_until(lambda: named(served, "?at=switch/1") == ["all-tors", "spare"])
    more = 'version: 1\nat: "switches --select state=disconnected"\nsteps: [{name: a, do: "forget {at.dpid}"}]\n'
    (tmp_path / "workflows" / "gone.yaml").write_text(more)
    assert named(served, "?at=switch/1") == ["all-tors", "gone", "spare"]
    assert named(served, "?at=switch/2") == ["drain-all", "note", "spare"]


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/workflows?at=switch", 422, "at"),
        ("/workflows?at=switch/99", 404, "there is no switch 99"),
        ("/workflows?at=link/1", 422, "at"),
        ("/workflows/none/plan", 404, "there is no workflow none"),
        ("/workflows/.hidden/plan", 422, "name"),
        ("/workflow-runs/7", 404, "there is no such run"),
    ],
)
def test_what_is_not_there_is_told(begin: Start, path: str, status: int, told: str) -> None:
    answer = begin().client.get(path)
    assert answer.status_code == status
    assert told in answer.json()["detail"]


def test_a_run_has_a_result_for_each_item_and_is_in_the_name_of_who_asks(
    begin: Start, fabric: DrainedController, tmp_path: Path
) -> None:
    served = begin()
    plan = served.get("/workflows/note/plan?at=switch/1")
    assert [(step["name"], step["items"]) for step in plan["steps"]] == [("note", 1), ("ports", 4)]
    assert (plan["refused"], fabric.asked) == (None, [])
    found = run(served, "note", f"?at=switch/1&digest={plan['digest']}")
    assert (found["state"], found["done"], found["items"], found["by"]) == ("done", 5, 5, "operator")
    assert [(each["step"], each["state"]) for each in found["results"]] == [
        ("note", "done"),
        *[("ports", "done")] * 4,
    ]
    assert found["results"][1]["item"] == {"dpid": 1, "port_no": 1, "name": "s1-eth1"}
    assert [name for name, _ in fabric.asked] == ["switch-label-add", *["port-label-add"] * 4]
    assert fabric.asked_by == "operator"
    assert Path(found["path"]) == tmp_path / "state" / "workflow-runs" / "1-note.results.jsonl"
    assert [each["id"] for each in served.get("/workflow-runs")["runs"]] == ["1"]


@pytest.mark.parametrize(
    ("name", "query", "told"),
    [
        ("note", "", "it is begun at one of `switches --select tier=core`, and none is named"),
        ("note", "?at=switch/13", "13 is none of `switches --select tier=core`"),
        ("note", "?at=port/1:1", "1:1 is none of"),
        ("all-tors", "?at=switch/13", "it has no `at`"),
        ("drain-all", "", "2 of the 4 switches of hall-a, tier core would be drained"),
        ("broken", "", "do: missing"),
        ("note", f"?at=switch/1&digest={'0' * 64}", "the file has changed since it was looked at"),
    ],
)
def test_what_is_refused_leaves_nothing(
    begin: Start, fabric: DrainedController, tmp_path: Path, name: str, query: str, told: str
) -> None:
    served = begin()
    answer = served.write("POST", f"/workflows/{name}/runs{query}")
    assert answer.status_code == 409
    assert told in answer.json()["detail"]
    assert fabric.asked == []
    assert list((tmp_path / "state").glob("workflow-runs/*")) == []


def test_who_may_not_write_begins_nothing(begin: Start, fabric: DrainedController) -> None:
    served = begin()
    for path in ("/workflows/spare/runs?at=switch/1", "/workflow-runs/1/resume"):
        assert served.client.post(path).status_code == 401
        assert served.write("POST", path, token="a-token-that-nobody-has").status_code == 401
    assert served.client.delete("/workflow-runs/1").status_code == 401
    read_only = begin(token_file="")
    assert read_only.client.post("/workflows/spare/runs?at=switch/1").status_code == 403
    assert fabric.asked == []


def test_a_run_that_failed_is_gone_on_with_by_another_server_or_the_command(
    begin: Start, fabric: DrainedController, capsys: pytest.CaptureFixture[str]
) -> None:
    served = begin()
    fabric.refuse = ("not now", "dpid")
    found = run(served, "note", "?at=switch/1")
    assert (found["state"], found["results"][0]["text"]) == ("failed", "dpid: not now")
    served.close()
    fabric.refuse = None
    later = begin()
    assert [each["state"] for each in later.get("/workflow-runs")["runs"]] == ["failed"]
    assert later.write("POST", "/workflow-runs/1/resume").status_code == 200
    assert ended(later, "1")["state"] == "done"
    fabric.refuse = ("not now", "dpid")
    found = run(later, "spare", "?at=switch/2")
    fabric.refuse = None
    assert main(["batch", "resume", found["path"], "--socket", str(fabric.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 1
    assert fabric.asked[-1] == ("switch-drain", {"dpid": 2})


def test_a_controller_that_goes_away_ends_the_run_with_a_reason(begin: Start, fabric: DrainedController) -> None:
    served = begin()
    fabric.stop()
    answer = served.write("POST", "/workflows/spare/runs?at=switch/1")
    assert answer.status_code == 503
    assert answer.json()["reason"] == "disconnected"
    assert "vsrt.sock" in served.get("/workflows/spare/plan?at=switch/1")["refused"]


def test_runs_have_bounds(
    begin: Start, fabric: DrainedController, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow_runs, "KEPT", 2)
    monkeypatch.setattr(workflow_runs, "AT_ONCE", 1)
    served, let_go = begin(), threading.Event()
    for _ in range(3):
        run(served, "anew", "?at=group/239.1.1.1")
    files = sorted(path.name for path in (tmp_path / "state" / "workflow-runs").iterdir())
    assert files == ["2-anew.results.jsonl", "3-anew.results.jsonl"]
    real = fabric.server.actions["group-rebuild"]

    def slow(fields: Any) -> Any:
        assert let_go.wait(30)
        return real(fields)

    fabric.server.actions = {**fabric.server.actions, "group-rebuild": slow}
    first = served.write("POST", "/workflows/anew/runs?at=group/239.1.1.1").json()
    try:
        answer = served.write("POST", "/workflows/anew/runs?at=group/239.1.1.2")
        assert answer.status_code == 409
        assert "1 workflows run already" in answer.json()["detail"]
        again = served.write("POST", f"/workflow-runs/{first['id']}/resume")
        assert "goes on already" in again.json()["detail"]
        assert served.write("DELETE", f"/workflow-runs/{first['id']}").json()["state"] == "stopping"
    finally:
        let_go.set()
    assert ended(served, first["id"])["state"] == "done"


def test_results_that_cannot_be_written_are_told(begin: Start, fabric: DrainedController, tmp_path: Path) -> None:
    served = begin()
    (tmp_path / "state" / "workflow-runs").write_text("in the way")
    answer = served.write("POST", "/workflows/spare/runs?at=switch/1")
    assert answer.status_code == 502
    assert "workflow-runs" in answer.json()["detail"]
    assert fabric.asked == []


def test_without_a_folder_there_are_none(begin: Start) -> None:
    served = begin(workflows="")
    assert served.get("/status")["dashboard"]["workflows"] is False
    assert served.get("/workflows") == {"workflows": [], "faults": []}
    assert served.write("POST", "/workflows/spare/runs?at=switch/1").status_code == 404
