"""Cases as folders: numbered inputs, and what the core asks for after each.

`NN-input.jsonl` has lines of a recording (the first one its start; `about` says what happens and is not read),
`NN-output.jsonl` the effects. Frames stand for themselves in hexadecimal. VSRT_UPDATE=1 writes the outputs anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from apps.replays import MAKERS, read_lines
from controller.recording import write_line

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/*/01-input.jsonl"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: str(path.relative_to(HERE)))
def test_case(case: Path) -> None:
    core = None
    steps = sorted(case.glob("*-input.jsonl"))
    assert [step.name for step in steps] == [f"{number:02}-input.jsonl" for number in range(1, len(steps) + 1)]
    for step in steps:
        effects = []
        for line in read_lines(step.read_text(encoding="utf-8").splitlines()):
            if line.kind == "start":
                core = MAKERS[line.app](line.content, line.at_s, None)
                continue
            assert core is not None
            effects += [
                write_line(line.app, line.at_s, "effect", made) for made in core.handle(line.content, line.at_s)
            ]
        output = step.with_name(step.name.replace("input", "output"))
        if os.environ.get("VSRT_UPDATE"):
            output.write_text("".join(effect + "\n" for effect in effects), encoding="utf-8")
        expected = output.read_text(encoding="utf-8").splitlines()
        assert [json.loads(effect) for effect in effects] == [json.loads(effect) for effect in expected], step.name


def test_there_are_cases() -> None:
    assert {case.parent.name for case in CASES} == {"membership", "multicast", "performance"}
