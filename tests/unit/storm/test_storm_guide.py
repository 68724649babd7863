"""The guide for storms, command by command, against a controller as it stands there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from controllers import controller

from apps.cli.main import main
from apps.emulation.controller import ControllerProcess
from how_to import ROOT, blocks

GUIDE = "size-a-controller.md"
PORT = "16653"
AMPLE_MS = "5000"


@pytest.fixture(scope="module")
def process() -> Iterator[ControllerProcess]:
    pytest.importorskip("os_ken")
    start = shlex.split(blocks(GUIDE)[0])
    policy = (ROOT / start[start.index("--config") + 1]).read_text(encoding="utf-8")
    apps = tuple(word for word in start[2:] if word in ("multicast", "unicast"))
    with controller("vsrt-os-ken", policy, apps) as process:
        yield process


def played(process: ControllerProcess, block: str, *more: str) -> int:
    program, *words = shlex.split(block)
    assert (program, words[0]) == ("vsrt", "storm")
    return main([*(str(process.port) if word == PORT else word for word in words), "--slo-ms", AMPLE_MS, *more])


def test_storms_of_the_guide_are_played(process: ControllerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    start, storm, off_and_leaving, steps = blocks(GUIDE)
    assert PORT in start
    for block in (storm, off_and_leaving):
        assert played(process, block) == 0
        assert "the goal of 5000 ms is kept" in capsys.readouterr().out
    few = steps.replace("2000", "200").replace("--sigma-s 2", "--sigma-s 0.2")
    assert played(process, few, "--groups", "1", "--json") == 0
    assert '"largest": 400' in capsys.readouterr().out
