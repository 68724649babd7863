"""`vsrt template` on databases of Open vSwitch: all of a template or nothing, and undone as it was before."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from apps import ovsdb_requests
from apps.cli.main import main
from fed_controller import FedController, multicast_documents
from ovsdb_server import OvsdbServer
from terminal import on_terminal

FILE = """\
version: 1
templates:
  edge:
    about: ports to hosts
    select: dpid=26
    bridge: {"other_config:mac-aging-time": "600"}
    port: {"other_config:mcast-snooping-flood": "true"}
  standalone: {bridge: {fail_mode: standalone}}
"""


@pytest.fixture
def databases(tmp_path, monkeypatch):
    """Two servers with a bridge each, whose switch daemon is not there to be waited for."""
    monkeypatch.setattr(ovsdb_requests, "TAKEN_S", 0)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        servers = []
        for number in (0x1A, 0x1B):
            directory = tmp_path / f"db{number:x}"
            directory.mkdir()
            server = stack.enter_context(OvsdbServer(directory))
            server.bridge(f"br{number:x}", number, 2)
            servers.append(server)
        (tmp_path / "t.yaml").write_text(FILE)
        yield servers


def template(databases, capsys, *words, json_too=True):
    """Run a verb against all databases, and return its status and what it printed."""
    targets = [word for server in databases for word in ("--db", server.target)] if words[0] != "history" else []
    status = main(["template", *words, *targets, *(["--json"] if json_too else [])])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if json_too and captured.out else captured.out, captured.err


def bridge_of(server):
    (row,) = server.rows("Bridge", "fail_mode", "protocols", "stp_enable", "other_config")
    return row


def test_what_is_otherwise_is_told_changed_and_undone(databases, capsys):
    databases[0].vsctl("set", "Bridge", "br1a", "stp_enable=true", "other_config:keep=me")
    before = [bridge_of(server) for server in databases]
    status, told, _ = template(databases, capsys, "check", "openflow-fabric")
    assert status == 1
    assert {(change["name"], change["setting"]) for change in told["changes"]} >= {
        ("br1a", "stp_enable"),
        ("br1b", "fail_mode"),
    }
    assert [bridge_of(server) for server in databases] == before, "a check changes nothing"

    status, told, _ = template(databases, capsys, "apply", "openflow-fabric")
    assert (status, told["run"]) == (0, 1)
    after = bridge_of(databases[0])
    assert (after["fail_mode"], after["protocols"], after["stp_enable"]) == ("secure", "OpenFlow13", False)
    assert after["other_config"] == {"keep": "me", "disable-in-band": "true"}
    assert template(databases, capsys, "check", "openflow-fabric")[0] == 0
    assert template(databases, capsys, "apply", "openflow-fabric")[1]["run"] is None

    status, told, _ = template(databases, capsys, "undo")
    assert status == 0
    assert [bridge_of(server) for server in databases] == before
    runs = template(databases, capsys, "history")[1]
    assert [(run["number"], run["undoes"], run["state"]) for run in runs] == [(1, None, "done"), (2, 1, "done")]
    assert template(databases, capsys, "undo")[0] == 2, "there is nothing left to undo"


def test_how_many_databases_are_done_stands_on_the_terminal(databases, capsys, monkeypatch):
    terminal = on_terminal(monkeypatch)
    assert template(databases, capsys, "apply", "openflow-fabric")[0] == 0
    assert terminal.drew("databases read")
    assert terminal.drew("databases changed")


def test_templates_that_fight_change_nothing(databases, capsys):
    before = [bridge_of(server) for server in databases]
    status, _, err = template(databases, capsys, "apply", "openflow-fabric", "standalone", "-f", "t.yaml")
    assert status == 2
    assert "Bridge br1a, fail_mode: openflow-fabric (shipped:6) wants secure, and standalone (t.yaml:8) wants" in err
    assert [bridge_of(server) for server in databases] == before
    assert template(databases, capsys, "history")[1] == []


def test_what_one_server_refuses_is_taken_back_at_the_other(databases, capsys, monkeypatch):
    before = [bridge_of(server) for server in databases]
    real = ovsdb_requests.OvsdbRequests.change

    def change(self, operations):
        if self.target == databases[1].target:
            databases[1].vsctl("set", "Bridge", "br1b", "fail_mode=standalone")  # somebody is faster
        return real(self, operations)

    monkeypatch.setattr(ovsdb_requests.OvsdbRequests, "change", change)
    status, _, err = template(databases, capsys, "apply", "openflow-fabric")
    assert status == 1
    assert "a setting was changed meanwhile; nothing is changed" in err
    assert bridge_of(databases[0]) == before[0]
    assert bridge_of(databases[1]) == {**before[1], "fail_mode": "standalone"}
    assert [run["state"] for run in template(databases, capsys, "history")[1]] == ["failed"]


def test_an_undo_that_would_undo_another_s_change_is_refused(databases, capsys):
    template(databases, capsys, "apply", "openflow-fabric")
    databases[1].vsctl("set", "Bridge", "br1b", "fail_mode=standalone")
    status, _, err = template(databases, capsys, "undo")
    assert status == 1
    assert "Bridge br1b, fail_mode: [standalone] now, and not [secure] as it was made" in err
    assert bridge_of(databases[0])["fail_mode"] == "secure", "nothing is undone"


def test_a_command_that_was_killed_can_be_undone(databases, capsys, monkeypatch, tmp_path):
    template(databases, capsys, "apply", "openflow-fabric")
    history = tmp_path / "templates.jsonl"
    lines = history.read_text().splitlines(keepends=True)
    history.write_text(lines[0] + lines[1][:5])  # it was killed before it had written that all is done
    assert [run["state"] for run in template(databases, capsys, "history")[1]] == ["begun"]
    assert template(databases, capsys, "undo")[0] == 0
    assert bridge_of(databases[0])["fail_mode"] != "secure"
    assert [run["state"] for run in template(databases, capsys, "history")[1]] == ["begun", "done"]


def test_a_selector_chooses_by_what_the_controller_knows(databases, capsys, tmp_path):
    documents = multicast_documents()
    documents["switches"] = {"26": {"dpid": 26, "name": "br1a", "tier": "tor", "labels": {}}}
    documents["ports"] = {"26:1": {"dpid": 26, "port_no": 1, "name": "br1a-1", "state": "edge", "labels": {}}}
    controller = FedController(tmp_path / "vsrt.sock", documents)
    controller.start()
    try:
        words = ("check", "edge", "-f", "t.yaml", "--socket", str(controller.path))
        status, told, _ = template(databases, capsys, *words)
    finally:
        controller.stop()
    assert status == 1
    assert {(change["table"], change["name"]) for change in told["changes"]} == {
        ("Bridge", "br1a"),
        ("Port", "br1a-1"),
    }


def test_an_exported_template_is_what_the_bridge_has(databases, capsys, tmp_path):
    template(databases, capsys, "apply", "openflow-fabric")
    _, printed, _ = template(databases, capsys, "export", "br1a", json_too=False)
    (tmp_path / "br1a.yaml").write_text(printed)
    assert template(databases, capsys, "check", "br1a", "-f", "br1a.yaml")[0] == 0
    databases[1].vsctl("set", "Bridge", "br1b", "stp_enable=true")
    _, told, _ = template(databases, capsys, "check", "br1a", "-f", "br1a.yaml")
    assert [(change["name"], change["setting"]) for change in told["changes"]] == [("br1b", "stp_enable")]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("check", "no-such"), 2, "there is no 'no-such'"),
        (("check", "edge", "-f", "gone.yaml"), 2, "gone.yaml: No such file"),
        (("check", "openflow-fabric", "--db", "nonsense"), 2, "neither unix:PATH nor tcp"),
        (("check", "openflow-fabric", "--db", "unix:/nowhere"), 1, "unix:/nowhere: No such file"),
        (("undo", "7"), 2, "has no run 7 to undo"),
        (("export", "br9"), 2, "there is no 'br9', but br1a"),
    ],
)
def test_bad_words_are_told(databases, capsys, words, status, message):
    found, _, err = template(databases, capsys, *words)
    assert found == status
    assert message in err


def test_templates_are_listed(databases, capsys):
    assert main(["template", "list", "-f", "t.yaml"]) == 0
    out = capsys.readouterr().out
    assert "openflow-fabric  every switch  fail_mode, protocols" in out
    assert "dpid=26" in out
