"""Templates about rows that switches and ports refer to, and about what can cut a switch off from its controller."""

from __future__ import annotations

import json

import pytest

from apps import ovsdb_requests
from apps.cli.main import main
from ovsdb_server import OvsdbServer

FILE = """\
version: 1
templates:
  probes:
    about: controllers are asked for life signs
    controller: {inactivity_probe: 9000, "other_config:dscp": "46"}
  slow: {resources: ["26:1"], qos: {"other_config:max-rate": "500"}, queue: {"other_config:max-rate": "9", dscp: 46}}
  slow-both: {resources: ["26:1", "26:2"], qos: {"other_config:max-rate": "500"}}
  slow-three: {resources: ["26:1", "26:2", "26:3"], qos: {"other_config:max-rate": "500"}}
  mirrors: {mirror: {snaplen: 128, select_all: true}}
  site: {bridge: {"external_ids:site": b7}, interface: {"external_ids:cable": red}}
  silent: {controller: {enable_async_messages: false}}
  in-band: {controller: {connection_mode: in-band}}
  newest: {bridge: {protocols: [OpenFlow15]}}
  oldest: {bridge: {protocols: [OpenFlow10, OpenFlow15]}}
  elsewhere:
    controller: {target: "tcp:192.0.2.9:6653"}
    qos: {"external_ids:vsrt-controller": "26"}
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A bridge with two controllers and a mirror; ports 1 and 2 have one QoS in common, port 3 has none."""
    monkeypatch.setattr(ovsdb_requests, "TAKEN_S", 0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.yaml").write_text(FILE)
    with OvsdbServer(tmp_path) as server:
        server.bridge("br1a", 0x1A, 3)
        server.vsctl(
            *("set-controller", "br1a", "tcp:192.0.2.1:6653", "tcp:192.0.2.2:6653"),
            *("--", "set", "Port", "br1a-1", "qos=@q", "--", "set", "Port", "br1a-2", "qos=@q"),
            *("--", "--id=@q", "create", "QoS", "type=linux-htb", "queues:1=@u", "other_config:max-rate=900"),
            *("--", "--id=@u", "create", "Queue", "other_config:max-rate=200"),
            *("--", "--id=@m", "create", "Mirror", "name=m0", "--", "set", "Bridge", "br1a", "mirrors=@m"),
        )
        yield server


def template(server, capsys, *words):
    targets = () if words[0] == "list" else ("--db", server.target)
    file = () if words[0] == "undo" else ("-f", "t.yaml")
    status = main(["template", *words, *file, *targets, "--json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else None, captured.err


def test_all_controllers_of_a_bridge_are_held_to_what_a_template_says_and_keep_their_targets(server, capsys):
    assert template(server, capsys, "check", "probes")[0] == 1
    assert template(server, capsys, "apply", "probes")[0] == 0
    rows = server.rows("Controller", "target", "inactivity_probe", "other_config")
    assert {row["target"] for row in rows} == {"tcp:192.0.2.1:6653", "tcp:192.0.2.2:6653"}
    assert all((row["inactivity_probe"], row["other_config"]) == (9000, {"dscp": "46"}) for row in rows)
    assert template(server, capsys, "check", "probes")[0] == 0
    assert template(server, capsys, "undo")[0] == 0
    assert {tuple(row["other_config"]) for row in server.rows("Controller", "other_config")} == {()}


def test_a_row_that_several_ports_refer_to_is_changed_only_where_the_template_is_about_all_of_them(server, capsys):
    status, told, error = template(server, capsys, "apply", "slow")
    assert (status, told) == (1, None)
    assert "t.yaml:6: slow: QoS br1a-1: br1a-2 has it too, which it is not about" in error
    assert server.rows("QoS", "other_config") == [{"other_config": {"max-rate": "900"}}]
    assert template(server, capsys, "apply", "slow-both")[0] == 0
    assert server.rows("QoS", "other_config") == [{"other_config": {"max-rate": "500"}}]


def test_queues_of_a_port_s_own_are_changed(server, capsys):
    server.vsctl("clear", "Port", "br1a-2", "qos")
    assert template(server, capsys, "apply", "slow")[0] == 0
    assert server.rows("Queue", "other_config", "dscp") == [{"other_config": {"max-rate": "9"}, "dscp": 46}]
    assert template(server, capsys, "check", "slow")[0] == 0


def test_a_port_without_such_a_row_is_told_and_nothing_is_changed(server, capsys):
    status, told, _ = template(server, capsys, "check", "slow-three")
    assert status == 1
    assert told["obstacles"] == ["t.yaml:8: slow-three: br1a-3 has no QoS"]
    assert template(server, capsys, "apply", "slow-three")[0] == 1
    assert server.rows("QoS", "other_config") == [{"other_config": {"max-rate": "900"}}]


def test_rows_that_the_controller_keeps_for_its_queues_are_left_alone(server, capsys):
    uuid = server.vsctl("--bare", "--columns=_uuid", "find", "QoS")
    server.vsctl("set", "QoS", uuid.strip(), "external_ids:vsrt-controller=26")
    status, _, error = template(server, capsys, "apply", "slow-both")
    assert status == 1
    assert "this controller keeps it for queues of its policy" in error


def test_mirrors_and_external_ids_are_settings(server, capsys):
    assert template(server, capsys, "apply", "mirrors", "site")[0] == 0
    assert server.rows("Mirror", "snaplen", "select_all") == [{"snaplen": 128, "select_all": True}]
    assert server.rows("Bridge", "external_ids") == [{"external_ids": {"site": "b7"}}]
    assert template(server, capsys, "check", "mirrors", "site")[0] == 0


@pytest.mark.parametrize("name", ["silent", "in-band", "newest"])
def test_what_can_cut_a_switch_off_is_refused_unless_it_is_said_that_it_may(server, capsys, name):
    status, told, error = template(server, capsys, "apply", name)
    assert (status, told) == (2, None)
    assert "can cut switches off from their controller, and nothing is changed; --may-disconnect does it" in error
    assert template(server, capsys, "check", name)[1]["disconnects"]
    status, told, _ = template(server, capsys, "apply", name, "--may-disconnect")
    assert status == 0
    assert told["remarks"] and "becomes" in told["remarks"][0]
    assert template(server, capsys, "check", name)[0] == 0


def test_an_undo_that_can_cut_a_switch_off_is_refused_too(server, capsys):
    server.vsctl("set", "Bridge", "br1a", "protocols=OpenFlow15")
    assert template(server, capsys, "apply", "oldest")[0] == 0
    assert template(server, capsys, "undo")[0] == 2
    assert template(server, capsys, "undo", "--may-disconnect")[0] == 0
    assert server.rows("Bridge", "protocols") == [{"protocols": "OpenFlow15"}]


def test_which_controllers_a_bridge_has_is_no_setting(server, capsys):
    status, _, error = template(server, capsys, "apply", "elsewhere", "--may-disconnect")
    assert status == 2
    assert "t.yaml:16: elsewhere: target: Controller has no such column that can be set" in error
    assert "t.yaml:17: elsewhere: external_ids:vsrt-controller: this controller marks its own rows with it" in error
