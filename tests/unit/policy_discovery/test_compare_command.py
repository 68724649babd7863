"""`vsrt policy compare`: who another policy would refuse, or admit, instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main

POLICY = """version: 1
vlans: {names: {20: video}}
tenants:
  office: [10.0.0.0/24]
rules:
  - {name: feed, groups: [239.1.0.0/16], role: receiver, hosts: [office], action: allow}
  - {name: channel, groups: [232.1.1.1], role: receiver, hosts: [office], sources: [10.0.0.1], action: allow}
  - {name: in-video, groups: [239.2.0.0/16], role: receiver, hosts: [office], vlan: video, action: allow}
  - {name: studio, groups: [239.1.0.0/16], role: sender, hosts: [{dpid: 1, port: 1}], action: allow}
default: deny
"""


def line(number: int, group: str, role: str = "receiver", verdict: str = "allow", **also: Any) -> str:
    host = {"mac": f"02:00:00:00:00:0{number}", "ip": f"10.0.0.{number}", "dpid": 1, "port_no": number}
    told = {"time": f"2026-11-20T10:00:0{number}.000Z", "verdict": verdict, "rule": "default", "role": role}
    return json.dumps({**told, "group": group, "source": None, "host": host, "reason": "", **also})


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A policy, and a log of which it would decide five otherwise."""
    lines = [
        line(1, "239.1.1.1"),
        line(1, "239.1.1.1", "sender"),
        line(2, "239.1.1.1", "sender"),
        line(2, "239.2.1.1"),
        line(2, "239.2.1.1@20"),
        line(3, "232.1.1.1", source="10.0.0.1"),
        line(4, "232.1.1.1", source="10.0.0.9"),
        line(3, "232.1.1.1", source="10.0.0.9"),
        line(3, "232.1.1.1", source="10.0.0.1", time="2026-11-20T11:00:00.000Z"),
        line(5, "239.1.9.9", verdict="deny"),
    ]
    (tmp_path / "audit.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "staged.yaml").write_text(POLICY)
    return ["policy", "compare", str(tmp_path / "staged.yaml"), "--audit", str(tmp_path / "audit.jsonl")]


def test_who_would_be_refused_or_admitted_is_told(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["alike"] == 4
    refused = {(one["role"], one["group"], one["host"]["ip"], one["staged_rule"]) for one in found["refused"]}
    assert refused == {
        ("sender", "239.1.1.1", "10.0.0.2", "default"),
        ("receiver", "239.2.1.1", "10.0.0.2", "default"),
        ("receiver", "232.1.1.1", "10.0.0.3", "default"),
        ("receiver", "232.1.1.1", "10.0.0.4", "default"),
    }
    (admitted,) = found["admitted"]
    assert (admitted["host"]["ip"], admitted["rule"], admitted["staged_rule"]) == ("10.0.0.5", "default", "feed")


def test_people_read_numbers_and_a_table(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "--limit", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("4 pairs of host and group decided alike, 4 would be refused, 1 admitted\n")
    assert "and 3 more" in told


def test_what_was_proposed_refuses_nobody_that_it_was_made_of(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, into = files[-1], str(tmp_path / "proposed.yaml")
    assert main(["policy", "propose", "--audit", log, "-o", into]) == 0
    capsys.readouterr()
    assert main(["policy", "compare", into, "--audit", log, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refused"] == []


def test_a_faulty_policy_is_told_with_its_line(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(files[2]).write_text("version: 1\ndefault: perhaps\n")
    assert main(files) == 2
    assert f"{files[2]}:2: default" in capsys.readouterr().err
