"""`vsrt do` by the socket and by the API: what the controller is asked, and what becomes of refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.cli.main import main
from apps.openflow.questions import Unanswered
from controller.alarms.actions import FIELDS
from controller.alarms.actions import read_action as read_alarm_action
from controller.multicast.actions import read_action
from fed_controller import FedController, multicast_documents
from served_dashboard import served

TOKEN = "0123456789abcdefghij"
PORT = {"dpid": 3, "port_no": 2}


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FedController]:
    controller = FedController(tmp_path_factory.mktemp("controller") / "vsrt.sock", multicast_documents())
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture(scope="module")
def api(controller: FedController) -> Iterator[list[str]]:
    token = controller.path.with_name("token")
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    with served(controller.path, token_file=str(token)) as address:
        yield ["--url", address, "--token-file", str(token)]


@pytest.fixture(params=["socket", "url"])
def source(request: pytest.FixtureRequest, controller: FedController) -> Iterator[list[str]]:
    yield ["--socket", str(controller.path)] if request.param == "socket" else request.getfixturevalue("api")
    controller.asked.clear()
    controller.answers.clear()
    controller.refuse = None
    controller.late = None


@pytest.mark.parametrize(
    ("words", "action", "fields", "told"),
    [
        ("drain 3", "switch-drain", {"dpid": 3}, "switch 0000000000000003 is drained"),
        ("drain leaf10", "switch-drain", {"dpid": 10}, "switch leaf10 is drained"),
        ("forget 3", "switch-forget", {"dpid": 3}, "0000000000000003 is forgotten"),
        ("forget leaf10:1-1:3", "link-forget", {"link": "1:3-10:1"}, "leaf10:1-1:3 is forgotten"),
        ("forget 3:1-1:3", "link-forget", {"link": "1:3-3:1"}, "3:1-1:3 is forgotten"),
        (
            "acknowledge link-failed:1:3-3:1",
            "alarm-acknowledge",
            {"key": "link-failed:1:3-3:1"},
            "the alarm link-failed:1:3-3:1 is acknowledged",
        ),
        ("undrain 0x3", "switch-undrain", {"dpid": 3}, "switch 0000000000000003 is not drained"),
        ("rebuild 239.1.1.1", "group-rebuild", {"group": "239.1.1.1"}, "the tree of 239.1.1.1 is built anew"),
        ("rebuild FF0E::0:1", "group-rebuild", {"group": "ff0e::1"}, "the tree of ff0e::1 is built anew"),
        ("alias add 239.1.1.1", "alias-add", {"group": "239.1.1.1"}, "239.1.1.1 gets one more alias"),
        ("alias remove 239.1.1.1", "alias-remove", {"group": "239.1.1.1"}, "239.1.1.1 gives an alias back"),
        ("swap-in 239.1.1.1", "group-swap-in", {"group": "239.1.1.1"}, "239.1.1.1 goes into the flow tables"),
        ("swap-out 239.1.1.1", "group-swap-out", {"group": "239.1.1.1"}, "239.1.1.1 goes out of the flow tables"),
        ("pin 239.1.1.1", "group-pin", {"group": "239.1.1.1"}, "239.1.1.1 stays in the flow tables"),
        ("unpin 239.1.1.1", "group-unpin", {"group": "239.1.1.1"}, "239.1.1.1 may go out of the flow tables"),
        ("reload", "policy-reload", {}, "the policy is in force"),
        ("reset-counters", "counters-reset", {}, "counters are 0"),
        (
            "static-member add 239.1.1.1 3:2",
            "static-member-add",
            {"group": "239.1.1.1", **PORT},
            "is a static member",
        ),
        (
            "static-member remove ff0e::1 3:2",
            "static-member-remove",
            {"group": "ff0e::1", **PORT},
            "is no static member",
        ),
        (
            "address take video --name cam7",
            "address-take",
            {"pool": "video", "name": "cam7"},
            "cam7 has an address of the pool video",
        ),
        (
            "address release video --name cam7",
            "address-release",
            {"pool": "video", "name": "cam7"},
            "cam7 has no address of the pool video from now on",
        ),
        (
            "label add leaf10 rack=b7",
            "switch-label-add",
            {"dpid": 10, "key": "rack", "value": "b7"},
            "leaf10 has the label rack=b7",
        ),
        (
            "label add 3:2 room=a.1",
            "port-label-add",
            {**PORT, "key": "room", "value": "a.1"},
            "3:2 has the label room=a.1",
        ),
        (
            "label remove leaf10 rack",
            "switch-label-remove",
            {"dpid": 10, "key": "rack"},
            "the label rack that leaf10 was given is taken back",
        ),
        (
            "label remove 3:2 room",
            "port-label-remove",
            {**PORT, "key": "room"},
            "the label room that 0000000000000003:2 was given is taken back",
        ),
        ("router-port add 3:2 4", "router-port-add", {**PORT, "family": 4}, "leads to a router of IPv4"),
        ("router-port remove 3:2 6", "router-port-remove", {**PORT, "family": 6}, "is no set router port of IPv6"),
    ],
)
def test_the_controller_is_asked_for_it(
    controller: FedController,
    source: list[str],
    capsys: pytest.CaptureFixture[str],
    words: str,
    action: str,
    fields: dict[str, Any],
    told: str,
):
    assert main(["do", *words.split(), *source]) == 0
    assert told in capsys.readouterr().out
    assert main(["do", *words.split(), *source, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"done": action, **fields}
    assert controller.asked == [(action, fields)] * 2
    if action != "policy-reload":
        known = read_alarm_action(action, fields, None) if action in FIELDS else read_action(action, fields)
        assert known is not None


@pytest.mark.parametrize(("begun", "told"), [(False, "nothing was done"), (True, "may still take effect")])
def test_an_answer_that_does_not_come_in_time_says_what_became_of_the_action(
    controller: FedController, source: list[str], capsys: pytest.CaptureFixture[str], begun: bool, told: str
):
    controller.late = Unanswered(begun)
    assert main(["do", "reload", *source]) == 1
    assert told in capsys.readouterr().err
    assert controller.asked == []


@pytest.mark.parametrize(
    ("words", "action", "answer", "told"),
    [
        ("drain 3", "switch-drain", {"transit_count": 0, "local_count": 0}, "switch 0000000000000003 is drained"),
        (
            "drain 3",
            "switch-drain",
            {"transit_count": 1, "transit": ["239.1.1.1"], "local_count": 2},
            "switch 0000000000000003 is drained; "
            "groups that cross it still, since nothing else connects them: 1 (239.1.1.1); "
            "groups with members or senders at its own ports: 2",
        ),
        ("rebuild 239.1.1.1", "group-rebuild", {"changed": False, "links": 3}, "is built anew; nothing changed"),
        ("rebuild 239.1.1.1", "group-rebuild", {"changed": True, "links": 3, "links_before": 4}, "3 links, 4 before"),
        ("reload", "policy-reload", {"rules": 7}, "the policy is in force; 7 rules"),
        ("static-member add 239.1.1.1 3:2", "static-member-add", {"served": False}, "once the port leads to hosts"),
        (
            "address take video --name cam7",
            "address-take",
            {"address": "239.10.0.0", "mac": "01:00:5e:0a:00:00", "in_pool": False},
            "cam7 has an address of the pool video; 239.10.0.0 (MAC address 01:00:5e:0a:00:00); "
            "the pool has this address no more",
        ),
        ("label add leaf10 rack=b7", "switch-label-add", {"labels": {"rack": "b7", "pod": "2"}}, "pod=2, rack=b7"),
        ("drain 3", "switch-drain", {"kept": False}, "cannot write its journal, so a restart will undo it"),
    ],
)
def test_what_the_controller_remarks_is_told(
    controller: FedController,
    source: list[str],
    capsys: pytest.CaptureFixture[str],
    words: str,
    action: str,
    answer: dict[str, Any],
    told: str,
):
    controller.answers[action] = answer
    assert main(["do", *words.split(), *source]) == 0
    assert capsys.readouterr().out.endswith(f"{told}\n")


def test_a_refusal_is_told_with_its_field_and_exits_with_1(
    controller: FedController, source: list[str], capsys: pytest.CaptureFixture[str]
):
    controller.refuse = ("there is no switch 99", "dpid")
    assert main(["do", "drain", "99", *source, "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "dpid: there is no switch 99" in captured.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("drain x", "SWITCH: 'x' is no datapath id"),
        ("rebuild 10.0.0.1", "GROUP: 10.0.0.1 is not within the multicast addresses"),
        ("static-member add 239.1.1.1 3", "SWITCH:PORT: '3' is no port"),
        ("static-member add nothing 3:1", "GROUP: 'nothing' is no IP address"),
        ("router-port add 3:2 5", "FAMILY: invalid choice: 5"),
        ("address take 7video --name cam7", "POOL: '7video' can be none"),
        ("address take video --name ..", "--name: '..' can be none"),
        ("address take video", "--name"),
        ("label add leaf10 rack", "KEY=VALUE: 'rack' is no label"),
        ("label add leaf10 tier=core", "known of every switch"),
        ("label add leaf10 rack=b=7", "KEY=VALUE: 'rack=b=7' is no label"),
        ("label add 3:eth9 rack=b7", "SWITCH[:PORT]"),
        ("explode", "VERB: invalid choice: 'explode'"),
    ],
)
def test_bad_input_asks_nobody_and_exits_with_2(
    controller: FedController, source: list[str], capsys: pytest.CaptureFixture[str], words: str, told: str
):
    assert main(["do", *words.split(), *source]) == 2
    assert told in capsys.readouterr().err
    assert controller.asked == []


def test_the_controller_is_told_who_asks(
    controller: FedController, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("LOGNAME", "operator")
    assert main(["do", "reload", "--socket", str(controller.path)]) == 0
    assert controller.asked_by == "operator"
    controller.asked.clear()


def test_without_the_token_nothing_is_done(
    controller: FedController, api: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    wrong = tmp_path / "wrong"
    wrong.write_text("another-token-of-some-length")
    for source in (api[:2], [*api[:2], "--token-file", str(wrong)]):
        assert main(["do", "reload", *source]) == 1
        captured = capsys.readouterr()
        assert "token" in captured.err.lower()
        assert "another-token" not in captured.err
    assert controller.asked == []


def test_an_app_that_knows_no_actions_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    controller = FedController(tmp_path / "vsrt.sock", {})
    controller.server.actions = {}
    controller.start()
    try:
        assert main(["do", "reload", "--socket", str(controller.path)]) == 1
        assert "no app of this controller does policy-reload" in capsys.readouterr().err
        assert main(["show", "ports", "--socket", str(controller.path)]) == 1
        assert "no app of this controller offers ports" in capsys.readouterr().err
    finally:
        controller.stop()
