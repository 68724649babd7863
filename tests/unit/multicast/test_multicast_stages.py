"""Stages are handed what they read and edit, never all that there is."""

from __future__ import annotations

import ast
from pathlib import Path

STAGES = Path(__file__).resolve().parents[3] / "controller" / "multicast" / "stages.py"


def handed_on_whole(source: str) -> list[int]:
    """The lines at which code hands `self` on, or a function that can reach it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Lambda):
            found += [each.lineno for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == "self"]
        elif isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            found += [each.lineno for each in given if isinstance(each, ast.Name) and each.id == "self"]
    return found


def test_no_stage_is_handed_the_core() -> None:
    assert handed_on_whole(STAGES.read_text(encoding="utf-8")) == []


def test_it_is_found_where_the_core_is_handed_on() -> None:
    for given in ("Stage(self)", "Stage(1, core=self)", "Stage(lambda: self.policy)"):
        assert handed_on_whole(f"def build(self):\n    return {given}") == [2]
    assert handed_on_whole("def build(self):\n    return Stage(self.plane)") == []
