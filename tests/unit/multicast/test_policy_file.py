"""The policy file of a running app: what is in force, and what is wrong with the file since."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("os_ken")

from apps.policy_file import PolicyFile, PolicyReading, follow_policy
from controller.config import load_policy

LOGGER = logging.getLogger("policy")
GOOD, BAD, OTHER = (f"version: 1\ndefault: {default}\n" for default in ("allow", "maybe", "deny"))
TIMEOUT_S = 30.0


def await_true(reached: Callable[[], bool]) -> None:
    latest = time.monotonic() + TIMEOUT_S
    while not reached():
        assert time.monotonic() < latest
        time.sleep(0.01)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)
    monkeypatch.setenv("VSRT_CONFIG", str(path))
    return path


def test_a_faulty_file_leaves_the_policy_in_force_and_says_why(path: Path):
    file = PolicyFile(LOGGER)
    first = file.load()
    assert first.policy.default_allow
    assert (first.text, first.errors) == (GOOD, ())
    path.write_text(BAD)
    faulty = file.reload()
    assert faulty.errors == (f"{path}:2: default: expected one of allow, deny, found 'maybe'",)
    assert faulty == first._replace(errors=faulty.errors, number=first.number + 1)
    assert file.poll() is faulty
    path.unlink()
    assert file.poll().errors == (f"{path}: No such file or directory",)
    path.write_text(OTHER)
    reading = file.reload()
    assert not reading.policy.default_allow
    assert (reading.errors, reading.text) == ((), OTHER)


def test_a_file_that_becomes_readable_is_read_though_nobody_wrote_it_again(path: Path):
    file = PolicyFile(LOGGER)
    before = file.load()
    path.chmod(0o600)
    reading = file.poll()
    assert reading.number == before.number + 1
    assert file.poll() is reading


@pytest.fixture(autouse=True)
def hang_ups_are_harmless() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


def test_sighup_has_a_file_read_again_once_though_nobody_wrote_it(path: Path):
    file = PolicyFile(LOGGER)
    number = file.load().number
    file.watch_signal()
    assert file.poll().number == number
    for count in (1, 2):
        os.kill(os.getpid(), signal.SIGHUP)
        assert file.poll().number == number + count
        assert file.poll().number == number + count


def test_sighup_for_a_faulty_file_tells_its_faults_once(path: Path, caplog: pytest.LogCaptureFixture):
    file = PolicyFile(LOGGER)
    file.load()
    file.watch_signal()
    path.write_text(BAD)
    os.kill(os.getpid(), signal.SIGHUP)
    reading = file.poll()
    assert reading.errors and reading.policy.default_allow
    assert file.poll() is reading
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert told == [
        f"{path}:2: default: expected one of allow, deny, found 'maybe'",
        f"The policy file {path} is faulty: the running policy stays.",
    ]


def test_where_sighup_cannot_be_watched_that_is_said_and_changes_count_all_the_same(
    path: Path, caplog: pytest.LogCaptureFixture
):
    file = PolicyFile(LOGGER)
    file.load()
    watching = threading.Thread(target=file.watch_signal)
    watching.start()
    watching.join()
    assert "SIGHUP does not reload the policy here" in caplog.text
    path.write_text(OTHER)
    assert not file.poll().policy.default_allow


def test_without_a_file_there_is_nothing_to_reload(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VSRT_CONFIG", raising=False)
    file = PolicyFile(LOGGER)
    first = file.load()
    assert first == PolicyReading()
    assert not first.policy.default_allow
    file.watch_signal()
    os.kill(os.getpid(), signal.SIGHUP)
    assert file.poll() is first
    assert "VSRT_CONFIG" in file.reload().errors[0]


def test_a_faulty_file_at_the_start_ends_the_app(path: Path):
    path.write_text(BAD)
    with pytest.raises(SystemExit, match="default: expected one of allow, deny"):
        PolicyFile(LOGGER).load()
    path.unlink()
    with pytest.raises(SystemExit, match="No such file or directory"):
        PolicyFile(LOGGER).load()


def test_the_topology_file_that_it_names_is_followed(path: Path):
    fabric = path.parent / "fabric.json"

    def write(*dpids: int) -> None:
        nodes = ", ".join(f'{{"id": {dpid}, "dpid": {dpid}}}' for dpid in dpids)
        fabric.write_text(f'{{"nodes": [{nodes}], "links": []}}')

    write(1, 2)
    path.write_text("version: 1\ntopology: {file: fabric.json}\n")
    file = PolicyFile(LOGGER)
    first = file.load()
    assert first.policy.topology.switches == {1, 2}
    assert file.poll() is first
    write(1, 2, 3)
    second = file.poll()
    assert second.policy.topology.switches == {1, 2, 3}
    assert file.poll() is second
    fabric.write_text("{")
    faulty = file.poll()
    assert faulty.errors[0].startswith(f"{path}:2: topology.file: fabric.json:1: no JSON")
    assert faulty.policy.topology.switches == {1, 2, 3}
    write(1)
    assert file.poll().policy.topology.switches == {1}


def in_force(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "is in force" in record.getMessage()]


def test_the_file_is_read_once_for_all_apps_and_told_in_force_when_the_last_has_taken_it(
    path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    apps = [follow_policy(name) for name in ("unicast", "alarms", "monitor")]
    assert {app.reading.number for app in apps} == {1}
    path.write_text(OTHER)
    os.kill(os.getpid(), signal.SIGHUP)
    taken: list[PolicyReading] = []
    apps[0].start()
    try:
        for app in apps:
            assert in_force(caplog) == []
            await_true(lambda app=app: app.take(taken.append) or app.reading.number > 1)  # type: ignore[misc]
            app.take(taken.append)
        assert in_force(caplog) == [f"The policy file {path} is in force in every app: alarms, monitor, unicast."]
        assert [reading.text for reading in taken] == [OTHER] * 3
        assert taken[0].policy is taken[1].policy is taken[2].policy
        assert caplog.text.count("was read") == 1
    finally:
        for app in apps:
            app.leave()


def test_a_policy_is_not_in_force_in_an_app_that_could_not_go_by_it(path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    one, other = follow_policy("unicast"), follow_policy("alarms")
    path.write_text(OTHER)
    one.reload()

    def fail(_reading: PolicyReading) -> None:
        raise ValueError

    one.take(lambda _reading: None)
    with pytest.raises(ValueError):
        other.take(fail)
    assert in_force(caplog) == []


def test_a_faulty_file_is_taken_by_every_app_and_never_told_in_force(path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    apps = [follow_policy(name) for name in ("unicast", "alarms")]
    path.write_text(BAD)
    apps[0].reload()
    taken: list[PolicyReading] = []
    for app in apps:
        app.take(taken.append)
    assert [len(reading.errors) for reading in taken] == [1, 1]
    assert all(reading.policy.default_allow for reading in taken)
    assert in_force(caplog) == []
    assert caplog.text.count("is faulty") == 1


class Others:
    """Who shares the fabric: a policy is in force when they know it."""

    def __init__(self) -> None:
        self.why: str | None = "nobody hears"
        self.asked: list[PolicyReading] = []

    def admits(self, reading: PolicyReading) -> str | None:
        self.asked.append(reading)
        return self.why


def test_a_policy_waits_until_those_who_share_the_fabric_know_it(path: Path):
    one, other = follow_policy("unicast"), follow_policy("alarms")
    reader, others = one.reader, Others()
    reader.gate = others
    path.write_text(OTHER)
    read = one.reload()
    assert read.text == OTHER
    taken: list[PolicyReading] = []
    for _ in range(2):
        assert reader.pass_on() == "nobody hears"
        one.take(taken.append)
    assert (taken, others.asked) == ([], [read, read])
    others.why = None
    assert [reader.pass_on(), reader.pass_on()] == [None, None]
    for app in (one, other):
        app.take(taken.append)
    assert [reading.text for reading in taken] == [OTHER, OTHER]
    assert len(others.asked) == 3


def test_a_faulty_file_leaves_the_policy_in_force_that_others_share(path: Path):
    one = follow_policy("unicast")
    reader, others = one.reader, Others()
    reader.gate = others
    shared = reader.file.reading._replace(policy=load_policy(OTHER), text="shared")
    reader.put_in_force(shared)
    path.write_text(BAD)
    assert one.reload().errors
    assert reader.pass_on() is None
    taken: list[PolicyReading] = []
    one.take(taken.append)
    assert (taken[0].policy, taken[0].text, len(taken[0].errors)) == (shared.policy, "shared", 1)
    assert not others.asked
