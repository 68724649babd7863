"""On which line a verdict stands."""

from __future__ import annotations

import pytest

from controller.config.verdict_lines import verdict_line

TEXT = """version: 1
rules:
  - {name: feed, groups: [239.1.0.0/16], role: any, hosts: [any], action: allow}
  - name: default-feed
    groups: [239.2.0.0/16]
    role: any
    hosts: [any]
    action: deny
limits:
  groups: 4
default: deny
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("feed", 3),
        ("default-feed", 4),
        ("limits.groups", 10),
        ("default", 11),
        ("limits.hosts", None),
        ("none", None),
    ],
)
def test_rules_settings_and_the_default_have_their_lines(name: str, line: int | None):
    assert verdict_line(TEXT, name) == line


@pytest.mark.parametrize("text", ["", "[", "7", "rules: 3", "rules: [3, {x: y}]", "limits: []"])
def test_what_is_no_policy_has_none(text: str):
    assert verdict_line(text, "limits.groups") is None
