"""Profiles of apps of this process: they look only while they run, and end with their apps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.openflow import live_profile
from apps.openflow.app import App
from apps.openflow.framework import DATAPATHS, SWITCHES
from apps.openflow.live_probes import LiveProbes
from apps.profile_file import read_profile
from apps.status_client import query
from controller.events import SwitchConnected
from served_app import NotingApp, NotingCore, serving

TIMEOUT_S = 10.0


class SwitchCore(NotingCore):
    """Takes switches."""

    handlers: dict[type, Any] = {SwitchConnected: None}  # noqa: RUF012


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[NotingApp, LiveProbes, Path]]:
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("VSRT_SOCKET", str(tmp_path / "s"))
    with serving(NotingApp) as (app,):
        app.core = SwitchCore()
        probes = LiveProbes()
        probes.join(app)
        try:
            yield app, probes, tmp_path
        finally:
            probes.leave(app)
        assert not is_looked_at(app)


def is_looked_at(app: App) -> bool:
    return any({"feed", "perform"} & set(vars(each)) for each in (app, DATAPATHS))


def ask(directory: Path, **question: Any) -> Any:
    return query(directory / "s", question, TIMEOUT_S)


def members(app: App) -> int:
    return int(app.ask(lambda: len(app.reactor._members)))


def test_nothing_is_in_the_way_before_and_after(served: tuple[NotingApp, LiveProbes, Path]) -> None:
    app, _probes, directory = served
    assert app.reactor is SWITCHES
    before = members(app)
    assert not is_looked_at(app)
    assert ask(directory, show="profile") == {"profile": None}
    begun = ask(directory, do="profile-start", name="one", by="me")
    assert begun["state"] == "running"
    assert is_looked_at(app)
    assert members(app) == before + 1
    ended = ask(directory, do="profile-stop")
    assert (ended["state"], ended["by"]) == ("ended", "me")
    assert not is_looked_at(app)
    assert members(app) == before
    assert ask(directory, show="profile") == {"profile": ended}
    assert read_profile(Path(ended["path"]), lambda *_told: None).end["ended"] == "it was stopped"


def test_it_ends_with_the_app_and_its_file_is_whole(served: tuple[NotingApp, LiveProbes, Path]) -> None:
    app, probes, directory = served
    path = Path(ask(directory, do="profile-start", name="two")["path"])
    app.ask(lambda: app.feed(SwitchConnected(7, 4, ())))
    probes.leave(app)
    assert not is_looked_at(app)
    profile = read_profile(path, lambda *_told: None)
    assert profile.end["ended"] == f"{app.name.lower()} ended"
    assert list(path.parent.glob("*.part")) == []


def test_a_disk_that_takes_nothing_is_told(served: tuple[NotingApp, LiveProbes, Path]) -> None:
    app, _probes, directory = served
    (directory / live_profile.DIRECTORY).write_text("a file in its place")
    refused = ask(directory, do="profile-start", name="three")
    assert refused["refused"] and "cannot be written" in refused["error"]
    assert not is_looked_at(app)


def test_so_many_are_kept_and_no_more(
    served: tuple[NotingApp, LiveProbes, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _app, _probes, directory = served
    monkeypatch.setattr(live_profile, "MOST_FILES", 1)
    ask(directory, do="profile-start", name="one")
    ask(directory, do="profile-stop")
    refused = ask(directory, do="profile-start", name="two")
    assert "has 1 profiles, and no more are kept: remove some" in refused["error"]


def test_spans_beyond_the_bound_end_it_and_are_counted(
    served: tuple[NotingApp, LiveProbes, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, _probes, directory = served
    monkeypatch.setattr(live_profile, "MOST_SPANS", 2)
    ask(directory, do="profile-start", name="full")
    for dpid in range(1, 6):
        app.ask(lambda dpid=dpid: app.feed(SwitchConnected(dpid, 4, ())))
    ended = ask(directory, do="profile-stop")
    assert (ended["spans"], ended["missed"]) == (2, 3)
