"""What the apps share of each switch: the first of them answers for its turns, its failures and its recording."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.openflow.datapaths import Datapaths
from controller.events import BarrierReplied, ControllerRole, RoleWanted, SwitchConnected
from controller.rules.installer import Installer


class App:
    """An app that shares; `failures` says what its turns did not do to their end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turn_count = 0
        self.failures: list[Exception] = []

    def has_connection(self, _dpid: int) -> bool:
        return True

    def perform(self, effects: Any) -> None:
        raise AssertionError(effects)

    def told(self, told: Any) -> None:
        raise AssertionError(told)

    def measured(self, work: Callable[[Any], None], event: Any) -> None:
        self.turn_count += 1
        try:
            work(event)
        except Exception as failure:
            self.failures.append(failure)


class Sharing:
    """Two apps that share."""

    def __init__(self) -> None:
        loop = SimpleNamespace(add=lambda _member, is_first: None, remove=lambda _member: None)
        southbound = SimpleNamespace(add_asker=lambda _asker, _tag: None, remove_asker=lambda _asker: None)
        self.datapaths = Datapaths(loop, southbound)  # type: ignore[arg-type]
        self.first, self.second = App("multicast"), App("unicast")
        for number, app in enumerate((self.first, self.second)):
            self.core = self.datapaths.core_for(app)
            self.datapaths.add(app, number)


def test_turns_and_failures_count_as_those_of_an_app(monkeypatch: pytest.MonkeyPatch) -> None:
    sharing = Sharing()
    sharing.datapaths.due()
    assert (sharing.first.turn_count, sharing.second.turn_count, sharing.first.failures) == (1, 0, [])

    def fail(_event: Any, _now: float) -> Any:
        raise LookupError("an entry that nobody knows")

    monkeypatch.setattr(sharing.core, "handle", fail)
    sharing.datapaths.answered(BarrierReplied(1, 7))
    assert [str(failure) for failure in sharing.first.failures] == ["an entry that nobody knows"]
    monkeypatch.undo()
    sharing.datapaths.remove(sharing.first)
    before = sharing.first.turn_count
    sharing.datapaths.answered(BarrierReplied(1, 8))
    assert (sharing.first.turn_count, sharing.second.turn_count) == (before, 1), "another one answers for it then"


def test_an_app_that_ends_owns_nothing_more_and_the_recording_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recording.jsonl"
    monkeypatch.setenv("VSRT_RECORD", str(path))
    sharing = Sharing()
    for number, tag in enumerate((0x5602, 0x5603)):
        installer = Installer(tag, number, datapath=sharing.core)
    sharing.datapaths.remove(sharing.first)
    (request,) = installer.handle(SwitchConnected(1, 4, ()), 0.0)
    assert (request.cookie, request.cookie_mask) == (0x5603 << 48, 0xFFFF << 48)
    events = [json.loads(line).get("event") for line in path.read_text().splitlines()]
    assert {"$": "OwnerLeft", "xid_tag": 0} in events


def test_a_role_that_is_wanted_is_asked_for_by_an_app_that_knows_the_connection() -> None:
    sharing = Sharing()
    Installer(0x5602, 0, datapath=sharing.core).handle(SwitchConnected(1, 4, ()), 0.0)
    sharing.datapaths.want_role(RoleWanted(ControllerRole.SLAVE, 5))
    (failure,) = sharing.first.failures
    assert "RequestRole" in str(failure), "the app was given it to perform"


def test_one_app_tells_that_the_recording_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recording.jsonl"
    monkeypatch.setenv("VSRT_RECORD", str(path))
    sharing = Sharing()
    assert sharing.datapaths.recording_fault(sharing.first) is None
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
    try:
        sharing.datapaths.answered(BarrierReplied(1, 7))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    fault = sharing.datapaths.recording_fault(sharing.first)
    assert fault is not None and str(path) in fault
    assert sharing.datapaths.recording_fault(sharing.second) is None
