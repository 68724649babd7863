"""The guide for profiles, command by command, against a controller that has a storm meanwhile."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from controllers import OPEN_POLICY, controller

from apps.cli.main import main
from how_to import GUIDES, blocks

GUIDE = "where-the-time-goes.md"
STORM = "storm --joins 120 --sigma-s 0.3 --switches 3 --ports 6 --groups 20 --slo-ms 5000"


def test_what_the_guide_has_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("os_ken")
    start, stop, read, page, compare = (shlex.split(block)[1:] for block in blocks(GUIDE))
    monkeypatch.chdir(tmp_path)
    with controller("vsrt-os-ken", OPEN_POLICY, ("multicast", "monitor")) as process:
        monkeypatch.setenv("VSRT_SOCKET", str(process.socket))
        for name in ("before", "after"):
            assert main([name if word == "before" else word for word in start]) == 0
            assert main([*STORM.split(), "--port", str(process.port)]) == 0
            capsys.readouterr()
            assert main(stop) == 0
            path = capsys.readouterr().out.partition(": ")[0]
            assert path.endswith(f"profiles/{name}.parquet")
            shutil.copy(path, f"{name}.parquet")
    assert main(read) == 0
    told = capsys.readouterr().out
    (shown,) = re.findall(r"^```text\n(.*?)^```$", (GUIDES / GUIDE).read_text(), re.MULTILINE | re.DOTALL)
    assert told.splitlines()[1].split() == shown.splitlines()[1].split()
    assert "join" in told and "loop " in told
    assert main(page) == 0
    assert Path("before.html").read_text().count("<svg") >= 3
    capsys.readouterr()
    assert main([*compare, "--tolerance", "10000"]) == 0
    assert "beside the earlier one" in capsys.readouterr().out
