"""The policy file of a running app: what is in force, and what is wrong with the file since."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("os_ken")

from apps.policy_file import PolicyFile

LOGGER = logging.getLogger("policy")
GOOD, BAD = "version: 1\ndefault: allow\n", "version: 1\ndefault: maybe\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)
    monkeypatch.setenv("VSRT_CONFIG", str(path))
    return path


def test_a_faulty_file_leaves_the_policy_in_force_and_says_why(path: Path):
    file = PolicyFile(LOGGER)
    assert file.load().default_allow
    loaded_s, count = file.loaded_s, file.read_count
    assert (file.text, file.errors) == (GOOD, ())
    path.write_text(BAD)
    assert file.reload() is None
    assert file.errors == (f"{path}:2: default: expected one of allow, deny, found 'maybe'",)
    assert (file.text, file.loaded_s, file.read_count) == (GOOD, loaded_s, count + 1)
    assert file.poll() is None
    assert file.read_count == count + 1
    path.unlink()
    assert file.poll() is None
    assert file.errors == (f"{path}: No such file or directory",)
    path.write_text("version: 1\ndefault: deny\n")
    policy = file.reload()
    assert policy is not None
    assert not policy.default_allow
    assert file.errors == ()


def test_a_file_that_becomes_readable_is_read_though_nobody_wrote_it_again(path: Path):
    file = PolicyFile(LOGGER)
    file.load()
    path.chmod(0o600)
    assert file.poll() is not None
    assert file.poll() is None


@pytest.fixture
def hang_ups_are_harmless() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_ups_are_harmless")
def test_sighup_has_a_file_read_again_once_though_nobody_wrote_it(path: Path):
    file = PolicyFile(LOGGER)
    file.load()
    file.watch_signal()
    assert file.poll() is None
    for count in (2, 3):
        os.kill(os.getpid(), signal.SIGHUP)
        assert file.poll() is not None
        assert file.poll() is None
        assert file.read_count == count


@pytest.mark.usefixtures("hang_ups_are_harmless")
def test_sighup_for_a_faulty_file_tells_its_faults_once(path: Path, caplog: pytest.LogCaptureFixture):
    file = PolicyFile(LOGGER)
    file.load()
    file.watch_signal()
    path.write_text(BAD)
    os.kill(os.getpid(), signal.SIGHUP)
    assert file.poll() is None
    assert file.policy.default_allow
    assert file.poll() is None
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert told == [
        f"{path}:2: default: expected one of allow, deny, found 'maybe'",
        f"The policy file {path} is faulty: the running policy stays.",
    ]


@pytest.mark.usefixtures("hang_ups_are_harmless")
def test_where_sighup_cannot_be_watched_that_is_said_and_changes_count_all_the_same(
    path: Path, caplog: pytest.LogCaptureFixture
):
    file = PolicyFile(LOGGER)
    file.load()
    watching = threading.Thread(target=file.watch_signal)
    watching.start()
    watching.join()
    assert "SIGHUP does not reload the policy here" in caplog.text
    path.write_text("version: 1\ndefault: deny\n")
    policy = file.poll()
    assert policy is not None and not policy.default_allow


@pytest.mark.usefixtures("hang_ups_are_harmless")
def test_without_a_file_there_is_nothing_to_reload(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VSRT_CONFIG", raising=False)
    file = PolicyFile(LOGGER)
    assert not file.load().default_allow
    assert not file.policy.default_allow
    assert (file.text, file.loaded_s) == ("", None)
    file.watch_signal()
    os.kill(os.getpid(), signal.SIGHUP)
    assert (file.poll(), file.errors) == (None, ())
    assert file.reload() is None
    assert "VSRT_CONFIG" in file.errors[0]


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
    assert file.load().topology.switches == {1, 2}
    assert file.poll() is None
    write(1, 2, 3)
    policy = file.poll()
    assert policy is not None
    assert policy.topology.switches == {1, 2, 3}
    assert file.poll() is None
    fabric.write_text("{")
    assert file.poll() is None
    assert file.errors[0].startswith(f"{path}:2: topology.file: fabric.json:1: no JSON")
    assert file.policy.topology.switches == {1, 2, 3}
    write(1)
    policy = file.poll()
    assert policy is not None
    assert policy.topology.switches == {1}
