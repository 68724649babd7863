"""What a controller is told of itself as a member of a cluster: what cannot be is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apps.cluster.own_settings import HIGHEST, LED, own_settings
from apps.cluster.settings import member_name, peer_address
from apps.cluster.sidecar_settings import SidecarSettings, access
from apps.tls_files import SettingsInvalid
from controller.cluster.member_settings import MemberSettings
from controller.config.load import load_policy

MEMBER = MemberSettings("hall", "c1", "run")


@pytest.mark.parametrize("text", ["0.0.0.0:6700", "[::]:6700"])
def test_an_address_that_no_other_can_reach_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VSRT_PEER", text)
    with pytest.raises(SettingsInvalid, match=r"VSRT_PEER: others are told .*: give one of this machine's addresses"):
        peer_address()


@pytest.mark.parametrize("text", ["nonsense", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:x", ":6700"])
def test_what_is_no_address_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VSRT_PEER", text)
    with pytest.raises(SettingsInvalid, match="is no ADDRESS:PORT"):
        peer_address()


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.0.0.1:6700", ("10.0.0.1", 6700)), ("[2001:db8::1]:6700", ("2001:db8::1", 6700)), ("c1:6700", ("c1", 6700))],
)
def test_addresses(text: str, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VSRT_PEER", text)
    assert peer_address() == address


@pytest.mark.parametrize("name", ["a/b", "a\tb", "x" * 65])
def test_a_name_that_is_no_key_is_refused(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VSRT_MEMBER", name)
    with pytest.raises(SettingsInvalid, match=r"VSRT_MEMBER: .* cannot name a member"):
        member_name()


@pytest.mark.parametrize("setting", ["ca", "certificate", "key"])
def test_a_file_that_is_not_there_is_named(setting: str, tmp_path: Path):
    path = tmp_path / "absent.pem"
    settings = SidecarSettings(MEMBER, ("https://10.0.0.1:2379",))._replace(**{setting: str(path)})
    with pytest.raises(SettingsInvalid, match=f"cluster.{setting}: {path}: No such file"):
        access(settings)


def test_who_begins_anew_knows_its_epochs_and_no_program_that_it_starts_does(monkeypatch: pytest.MonkeyPatch):
    policy = load_policy("{version: 1, cluster: {engine: etcd, endpoints: 'http://127.0.0.1:2379', fabric: hall}}")
    monkeypatch.setenv(HIGHEST, "42")
    monkeypatch.setenv(LED, "41")
    member = own_settings(policy).member
    assert (member.highest_epoch, member.led_epoch) == (42, 41)
    assert HIGHEST not in os.environ
    assert LED not in os.environ
