"""The policy file of a running app: what is in force, and what is wrong with the file since."""

from __future__ import annotations

import logging
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


def test_without_a_file_there_is_nothing_to_reload(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VSRT_CONFIG", raising=False)
    file = PolicyFile(LOGGER)
    assert not file.load().default_allow
    assert file.reload() is None
    assert "VSRT_CONFIG" in file.errors[0]


def test_a_faulty_file_at_the_start_ends_the_app(path: Path):
    path.write_text(BAD)
    with pytest.raises(SystemExit, match="default: expected one of allow, deny"):
        PolicyFile(LOGGER).load()
    path.unlink()
    with pytest.raises(SystemExit, match="No such file or directory"):
        PolicyFile(LOGGER).load()
