"""`vsrt show` against the socket of a core that runs."""

from __future__ import annotations

import json
import logging

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
    sections = world.core.sections
    server = StatusServer(
        path,
        {},
        lambda answer: answer(),
        logging.getLogger("show"),
        app="multicast",
        sections=sections.by_name(),
        refresh=lambda: sections.refresh(world.now),
    )
    server.start()
    world.join("h2", GROUP)
    world.join("h3", parse_ip("239.9.1.1"))
    world.settle()
    world.send("h1", GROUP)
    world.settle()
    yield world, str(path)
    server.stop()


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (["status"], "groups"),
        (["groups"], "239.1.1.1"),
        (["group", "239.1.1.1"], "member "),
        (["members"], "239.1.1.1"),
        (["refusals"], "239.9.1.1"),
        (["switches"], "OPENFLOW"),
        (["links"], "CAPACITY"),
        (["ports"], "edge"),
        (["hosts"], "10.0.0.1"),
        (["rules"], "never"),
        (["routers"], "this controller"),
        (["events"], "receiver-refused"),
    ],
)
def test_tables_tell_what_the_core_knows(running, capsys, what, told):
    _, path = running
    assert main(["show", *what, "--socket", path]) == 0
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("what", VIEWS)
def test_json_has_all_that_the_view_has(running, capsys, what):
    world, path = running
    assert main(["show", what, "--socket", path, "--json"]) == 0
    assert without_ids(json.loads(capsys.readouterr().out)) == json.loads(json.dumps(VIEWS[what](world.core)))


def without_ids(value):
    if isinstance(value, dict):
        return {name: without_ids(child) for name, child in value.items() if name != "id"}
    return [without_ids(child) for child in value] if isinstance(value, list) else value


def test_nobody_there_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("VSRT_SOCKET", raising=False)
    assert main(["show", "status"]) == 1
    assert f"{tmp_path}/vsrt.sock: no controller answers" in capsys.readouterr().err
