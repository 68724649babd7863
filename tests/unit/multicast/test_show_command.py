"""`vsrt show` against the socket of a core that runs."""

from __future__ import annotations

import json
import logging
from functools import partial

import pytest

from apps.cli.main import main
from apps.status_server import StatusServer
from controller.config.policy import Policy, Role, Rule
from controller.config.terms import parse_prefix
from controller.multicast.view import VIEWS
from controller.wire.addresses import parse_ip

GROUP = parse_ip("239.1.1.1")
DENIED = Rule("never", (parse_prefix("239.9.0.0/16"),), frozenset(Role), False, any_host=True)


@pytest.fixture
def running(make_world, tmp_path):
    world = make_world("leaf-spine", Policy(rules=(DENIED,), default_allow=True))
    path = tmp_path / "vsrt.sock"
    views = {name: partial(view, world.core) for name, view in VIEWS.items()}
    server = StatusServer(path, views, lambda answer: answer(), logging.getLogger("show"))
    server.start()
    yield world, str(path)
    server.stop()


def test_tables_tell_what_the_core_knows(running, capsys):
    world, path = running
    world.join("h2", GROUP)
    world.join("h3", parse_ip("239.9.1.1"))
    world.settle()
    world.send("h1", GROUP)
    world.settle()
    shown = {}
    for what in VIEWS:
        assert main(["show", what, "--socket", path]) == 0
        shown[what] = capsys.readouterr().out
    assert "groups" in shown["status"]
    assert " member " in shown["groups"]
    assert "refused member" in shown["groups"]
    assert "rule default" in shown["groups"]
    assert "never" in shown["rules"]
    assert "this controller" in shown["routers"]


@pytest.mark.parametrize("what", VIEWS)
def test_json_is_the_view_itself(running, capsys, what):
    world, path = running
    assert main(["show", what, "--socket", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(VIEWS[what](world.core)))


def test_nobody_there_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("VSRT_SOCKET", raising=False)
    assert main(["show", "status"]) == 1
    assert f"{tmp_path}/vsrt.sock: no controller answers" in capsys.readouterr().err
