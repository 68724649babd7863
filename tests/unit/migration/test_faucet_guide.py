"""The guide that moves a fabric from Faucet, command by command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from apps.cli.main import main
from how_to import GUIDES, blocks, files

GUIDE = "move-from-faucet.md"


def test_what_the_guide_has_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files(GUIDE).items():
        Path(name).write_text(text)
    page = (GUIDES / GUIDE).read_text(encoding="utf-8")
    report, answers, _ = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    see, write, explain, _start, _look = blocks(GUIDE)
    assert main(shlex.split(see)[1:]) == 1
    assert capsys.readouterr().out.startswith(report)
    importing, checking = write.splitlines()
    assert main(shlex.split(importing)[1:]) == 1
    assert main(shlex.split(checking)[1:]) == 0
    capsys.readouterr()
    for line in explain.splitlines():
        assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out == answers
