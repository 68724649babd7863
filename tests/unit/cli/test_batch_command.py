"""`vsrt batch`: a result for each item, going on after a failure, and no workflow that drains all."""

from __future__ import annotations

import json

import pytest

from apps.cli.main import main
from fed_controller import FedController, multicast_documents
from terminal import on_terminal

WORK = """\
version: 1
steps:
  - {name: take, do: address take video --name cam7}
  - {name: label, for_each: switches --select tier=tor, do: "label add {item.dpid} work=planned"}
  - {name: member, do: "static-member add {take.address} 1:2"}
"""


def switch(dpid, tier="tor", **fields):
    known = {"connected": True, "in_sync": True, "drained": False, "labels": {}, "fabric": None}
    return {"dpid": dpid, "name": f"s{dpid}", "tier": tier, **known, **fields}


@pytest.fixture
def controller(tmp_path, monkeypatch):
    documents = multicast_documents()
    documents["switches"] = {str(dpid): switch(dpid) for dpid in range(1, 5)}
    documents["switches"]["9"] = switch(9, "core")
    controller = FedController(tmp_path / "vsrt.sock", documents)
    controller.answers["address-take"] = {"address": "239.10.0.1"}
    controller.start()
    monkeypatch.setenv("VSRT_SOCKET", str(controller.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(WORK)
    yield controller
    controller.stop()


def ran(capsys, *words):
    status = main(["batch", *words, "--json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else None, captured.err


def done(controller):
    return [(name, fields) for name, fields in controller.asked]


def test_every_item_of_every_step_is_done_once_with_what_earlier_steps_answered(controller, capsys):
    status, told, _ = ran(capsys, "run", "w.yaml")
    assert (status, told["done"], told["items"]) == (0, 6, 6)
    assert [(record["step"], record["item"], record["state"]) for record in told["told"]] == [
        ("take", 0, "done"),
        *(("label", number, "done") for number in range(4)),
        ("member", 0, "done"),
    ]
    assert [name for name, _ in done(controller)] == ["address-take", *["switch-label-add"] * 4, "static-member-add"]
    assert [fields["dpid"] for name, fields in done(controller) if name == "switch-label-add"] == [1, 2, 3, 4]
    assert done(controller)[-1][1]["group"] == "239.10.0.1"
    assert ran(capsys, "run", "w.yaml")[0] == 2, "its results are there already"


def test_a_check_says_what_would_be_done_and_does_nothing(controller, capsys):
    status, told, _ = ran(capsys, "check", "w.yaml")
    assert status == 0
    assert [(step["name"], step["items"]) for step in told["steps"]] == [("take", 1), ("label", 4), ("member", 1)]
    assert controller.asked == []


def test_a_run_stops_at_what_fails_and_resume_goes_on_there(controller, capsys, tmp_path):
    controller.answers["address-take"] = {}
    status, told, _ = ran(capsys, "run", "w.yaml")
    assert (status, told["done"]) == (1, 5)
    assert told["told"][-1]["state"] == "failed"
    assert "{take.address} stands for nothing" in told["told"][-1]["text"]
    results = tmp_path / "w.yaml.results.jsonl"
    records = [json.loads(line) for line in results.read_text().splitlines()]
    for record in records:
        if record.get("step") == "take" and record["state"] == "done":
            record["answer"]["address"] = "239.10.0.1"
    torn = '{"step": "member", "it'  # it was killed as it wrote
    results.write_text("".join(f"{json.dumps(record)}\n" for record in records) + torn)
    controller.asked.clear()
    status, told, _ = ran(capsys, "resume", "w.yaml.results.jsonl")
    assert (status, told["done"]) == (0, 6)
    assert [name for name, _ in done(controller)] == ["static-member-add"]
    assert ran(capsys, "resume", "w.yaml.results.jsonl")[1]["told"] == []


def test_what_the_controller_refuses_is_a_result(controller, capsys):
    controller.refuse = ("no such pool", "pool")
    status, told, _ = ran(capsys, "run", "w.yaml")
    assert status in (1, 2)
    assert told["told"][0]["state"] == "failed"
    assert "no such pool" in told["told"][0]["text"]


def test_a_workflow_that_drains_all_is_refused_and_nothing_is_done(controller, capsys, tmp_path):
    (tmp_path / "d.yaml").write_text(
        'version: 1\nsteps: [{name: all, for_each: switches, do: "drain {item.dpid}"}]\n'
    )
    for verb in ("check", "run"):
        status, _, err = ran(capsys, verb, "d.yaml")
        assert status == 2
        assert "step all: 2 of the 4 switches of the fabric, tier tor would be drained, and 3 must stay in use" in err
    assert controller.asked == []
    assert not (tmp_path / "d.yaml.results.jsonl").exists()


def test_drains_by_name_count_and_so_do_those_that_are_drained_already(controller, capsys, tmp_path):
    (tmp_path / "d.yaml").write_text("version: 1\nsteps: [{name: one, do: drain s2}]\n")
    assert ran(capsys, "check", "d.yaml")[0] == 0
    controller.put("switches", "1", switch(1, drained=True))
    assert ran(capsys, "check", "d.yaml")[0] == 2


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("[{name: a, do: rm -rf}]", "invalid choice: 'rm'"),
        ("[{name: a, do: drain 1 --socket /x}]", "one controller"),
        ("[{name: a, for_each: switches --select pod=9, do: reload}]", "none fits pod=9"),
        ("[{name: a, for_each: nonsense, do: reload}]", "invalid choice: 'nonsense'"),
        ("[{name: a, do: label add 1}]", "KEY=VALUE"),
    ],
)
def test_words_that_make_no_sense_are_refused_with_their_line(controller, capsys, tmp_path, steps, message):
    (tmp_path / "b.yaml").write_text(f"version: 1\nsteps: {steps}\n")
    status, _, err = ran(capsys, "run", "b.yaml")
    assert status == 2
    assert "b.yaml:2: " in err
    assert message in err
    assert controller.asked == []


def test_workflows_are_listed_by_what_they_are_about(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = "steps: [{name: a, do: reload}, {name: b, do: reset-counters}]\n"
    (tmp_path / "one.yaml").write_text(f"version: 1\nabout: cams\ncategories: [cameras, night]\n{steps}")
    (tmp_path / "two.yaml").write_text(f"version: 1\n{steps}")
    (tmp_path / "policy.yaml").write_text("version: 1\ndefault: deny\n")
    assert main(["batch", "list"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["one.yaml", "cameras,night", "2", "cams"],
        ["two.yaml", "-", "2", "-"],
    ]
    one = {"about": "cams", "categories": ["cameras", "night"], "steps": ["a", "b"]}
    assert ran(capsys, "list", ".", "--category", "night") == (0, [{"file": "one.yaml", **one}], "")
    status, _, err = ran(capsys, "list", "policy.yaml")
    assert status == 2, "a file that is named must be one"
    assert "policy.yaml:1: " in err


def test_a_workflow_to_begin_with_can_be_read(controller, capsys, tmp_path):
    assert ran(capsys, "init", "new.yaml")[0] == 0
    assert ran(capsys, "init", "new.yaml")[0] == 2
    text = (tmp_path / "new.yaml").read_text().replace("tier=core", "tier=tor").replace("leaf1:7", "1:7")
    (tmp_path / "new.yaml").write_text(text)
    assert ran(capsys, "check", "new.yaml")[0] == 0


def test_another_workflow_than_that_of_the_results_is_not_gone_on_with(controller, capsys, tmp_path):
    ran(capsys, "run", "w.yaml")
    (tmp_path / "w.yaml").write_text(WORK + "\n")
    status, _, err = ran(capsys, "resume", "w.yaml.results.jsonl")
    assert status == 2
    assert "another one" in err


AT = """\
version: 1
at: switches --select tier=core
steps:
  - {name: own, do: "label add {at.dpid} work=planned"}
  - {name: others, for_each: "switches --select dpid!={at.dpid},tier=tor", do: "label add {item.dpid} by={at.name}"}
"""


def test_a_workflow_is_begun_at_one_thing(controller, capsys, tmp_path):
    (tmp_path / "at.yaml").write_text(AT)
    status, told, _ = ran(capsys, "run", "at.yaml", "--at", "s9")
    assert (status, told["done"]) == (0, 5)
    assert controller.asked[0] == ("switch-label-add", {"dpid": 9, "key": "work", "value": "planned"})
    assert [fields["value"] for _, fields in controller.asked[1:]] == ["s9"] * 4
    results = tmp_path / "at.yaml.results.jsonl"
    results.write_text(results.read_text().splitlines()[0] + "\n")
    controller.asked.clear()
    assert ran(capsys, "resume", results.name)[1]["done"] == 5
    assert controller.asked[0][1]["dpid"] == 9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "none is named"),
        (("--at", "s1"), "1 is none of `switches --select tier=core`"),
        (("--at", "s77"), "no switch has that name"),
    ],
)
def test_what_a_workflow_is_not_begun_at_is_refused(controller, capsys, tmp_path, words, message):
    (tmp_path / "at.yaml").write_text(AT)
    status, _, err = ran(capsys, "run", "at.yaml", *words)
    assert (status, controller.asked) == (2, [])
    assert message in err
    assert not (tmp_path / "at.yaml.results.jsonl").exists()


@pytest.mark.parametrize("at", ["rules", "nonsense", "switches --select x"])
def test_words_of_what_it_is_begun_at_make_sense(controller, capsys, tmp_path, at):
    (tmp_path / "at.yaml").write_text(AT.replace("switches --select tier=core", at))
    status, _, err = ran(capsys, "check", "at.yaml", "--at", "s9")
    assert status == 2
    assert "at.yaml: at: " in err


def test_how_far_it_is_stands_on_the_terminal_and_not_in_the_answer(controller, capsys, monkeypatch):
    terminal = on_terminal(monkeypatch)
    assert main(["batch", "run", "w.yaml", "--json"]) == 0
    assert terminal.drew("items")
    assert json.loads(capsys.readouterr().out)["done"] == 6
