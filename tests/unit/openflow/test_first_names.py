"""Apps call switches by their names from the first text on: those of the policy, else those of an earlier run."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from os_ken.base import app_manager

from apps.discovery import DiscoveryApp
from apps.emulation import status
from apps.multicast import MulticastApp
from apps.switch_names import FILE_NAME
from apps.unicast import UnicastApp
from controller.effects import Notice
from controller.events import Port, SwitchConnected, SwitchDescription, SwitchDisconnected
from topology.events import SwitchUp

POLICY = "version: 1\nswitches: {leaf4: {dpid: 4}}\ndiscovery: {switch_grace_s: 0}\n"
PORTS = (Port(1, "p1", bytes(6), True, 1e9),)
NOTICE = Notice("entries-repaired", "The flow entries of switch 4 differ.", (("dpid", 4),))


def called(datapath: str) -> SwitchDescription:
    return SwitchDescription("maker", "hardware", "software", "7", datapath)


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("VSRT_CONFIG", str(tmp_path / "policy.yaml"))
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    for name in ("VSRT_SOCKET", "VSRT_AUDIT_LOG"):
        monkeypatch.delenv(name, raising=False)
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@contextmanager
def running(make: Callable[[], Any]) -> Iterator[Any]:
    app = make()
    app_manager.register_app(app)
    app.start()
    try:
        yield app
    finally:
        app.stop()
        app_manager.unregister_app(app)


def texts(path: Path, app: Any) -> list[str]:
    put = status.query(path / "vsrt.sock", {"changes": {"events": 0}})["sections"]["events"][app.name.lower()]["put"]
    return [event["text"] for event in put.values()]


def come_and_go(app: Any) -> None:
    app.ask(lambda: app.feed(SwitchConnected(4, 4, PORTS)))
    app.ask(lambda: app.feed(SwitchDisconnected(4)))


def test_discovery_names_a_switch_as_the_policy_does(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with caplog.at_level(logging.INFO), running(DiscoveryApp) as app:
        come_and_go(app)
        assert [text.split(" has ")[0] for text in texts(tmp_path, app)] == ["Switch leaf4"]
    assert "switch-lost: Switch leaf4 has lost its connection" in caplog.text


def test_unicast_names_a_switch_as_the_policy_does_and_follows_it(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with running(UnicastApp) as app:
        app.ask(lambda: app.notice(NOTICE))
        assert texts(tmp_path, app) == ["The flow entries of switch leaf4 differ."]
        (tmp_path / "policy.yaml").write_text(POLICY.replace("leaf4", "tor-4"))
        app.policy_file.reload()
        app.ask(app.ticked)
        app.ask(lambda: app.notice(NOTICE))
        assert texts(tmp_path, app)[1] == "The flow entries of switch tor-4 differ."


def test_what_a_switch_called_itself_is_known_after_a_restart_before_it_says_so_again(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\ndiscovery: {switch_grace_s: 0}\n")
    with running(DiscoveryApp) as app:
        come_and_go(app)
        app.ask(lambda: app.described(4, called("leaf4")))
        app.ask(lambda: app.described(5, called("None")))
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {"0000000000000004": "leaf4"}
    with running(DiscoveryApp) as app:
        come_and_go(app)
        assert [text.split(" has ")[0] for text in texts(tmp_path, app)] == ["Switch leaf4"]
    with running(MulticastApp) as app:
        app.ask(lambda: app.feed(SwitchConnected(4, 4, PORTS)))
        app.ask(lambda: app.feed(SwitchUp(4, 4)))
        assert any("leaf4" in text for text in texts(tmp_path, app))
        assert not any("0000000000000004" in text for text in texts(tmp_path, app))
    with running(UnicastApp) as app:
        app.ask(lambda: app.notice(NOTICE))
        assert texts(tmp_path, app) == ["The flow entries of switch leaf4 differ."]


def test_a_name_that_a_switch_gave_up_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    with running(DiscoveryApp) as app:
        app.ask(lambda: app.described(4, called("leaf4")))
        app.ask(app.ticked)
        app.ask(lambda: app.described(4, called("None")))
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"x": "leaf4"}', "\x00", "[" * 60000])
def test_a_damaged_file_is_told_and_written_anew(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    (tmp_path / FILE_NAME).write_text(content)
    with running(DiscoveryApp) as app:
        app.ask(lambda: app.described(4, called("leaf4")))
    assert f"{FILE_NAME} cannot be read" in caplog.text
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {"0000000000000004": "leaf4"}


def test_a_file_that_cannot_be_written_is_told_until_it_can(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    with running(DiscoveryApp) as app:
        blocked = tmp_path / f"{FILE_NAME}.new"
        blocked.mkdir()
        app.ask(lambda: app.described(4, called("leaf4")))
        app.ask(app.ticked)
        assert "cannot be written" in app._names_file.fault
        blocked.rmdir()
        app.ask(app.ticked)
        assert app._names_file.fault is None
    assert json.loads((tmp_path / FILE_NAME).read_text()) == {"0000000000000004": "leaf4"}
