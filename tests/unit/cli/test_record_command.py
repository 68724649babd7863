from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from apps.cli.main import main
from apps.cli.metric_file import read_metric_file

SADC = Path("/usr/lib/sysstat/sadc")


def program(folder: Path, script: str) -> Path:
    path = folder / "sadc"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_program_gets_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    fake = program(tmp_path, 'echo "$@" > "$5"; exec sleep 1')
    before_s = datetime.now(UTC).timestamp()
    words = ["record", "-o", str(tmp_path / "out"), "--program", str(fake), "--files", "1", "--activities", "XDISK"]
    assert main([*words, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["files"]
    (path,) = (tmp_path / "out").iterdir()
    assert entry["file"] == str(path)
    assert before_s - 1 <= datetime.fromisoformat(path.stem).timestamp() <= entry["start"] <= before_s + 120
    assert path.read_text(encoding="utf-8").split() == ["-S", "XDISK", "1", str(entry["records"]), str(path)]
    assert entry["records"] == int(entry["end"] - entry["start"]) + 1


@pytest.mark.parametrize(
    ("script", "message"),
    [("exit 3", r"ended with status 3 after \d+\.\d s\n"), ("exit 0", r"ended with status 0 after \d+\.\d s\n")],
)
def test_a_program_that_ends_at_once_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, message: str
):
    fake = program(tmp_path, script)
    assert main(["record", "-o", str(tmp_path / "out"), "--interval", "60", "--program", str(fake)]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_what_cannot_be_done_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = ["record", "-o", str(tmp_path), "--program", str(program(tmp_path, "exit 0"))]
    assert main(["record", "-o", str(tmp_path), "--program", str(tmp_path / "none")]) == 1
    assert f"{tmp_path / 'none'}: No such file or directory" in capsys.readouterr().err
    for option in ("--interval", "--files"):
        assert main([*out, option, "0"]) == 2
        assert f"{option}: expected at least 1, found 0" in capsys.readouterr().err
    file = tmp_path / "file"
    file.touch()
    assert main([*out, "-o", str(file / "below")]) == 1
    assert "Not a directory" in capsys.readouterr().err


@pytest.mark.skipif(not SADC.exists(), reason="needs sysstat")
def test_sysstat_records_until_told_to_stop(tmp_path: Path):
    command = [sys.executable, "-m", "apps.cli.main", "record", "-o", str(tmp_path), "--json"]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert recorder.stderr is not None
    assert "records, one every 1 s" in recorder.stderr.readline()
    words = ["sadf", "-d", "", "--", "-n", "DEV"]
    while len(read_lines(words, next(iter(tmp_path.glob("*.sa")), None))) < 2:
        assert recorder.poll() is None
    recorder.send_signal(signal.SIGTERM)
    output, _ = recorder.communicate(timeout=20)
    assert recorder.returncode == 0
    (entry,) = json.loads(output)["files"]
    metrics = tmp_path / "metrics.csv"
    metrics.write_text("\n".join(read_lines(words, Path(entry["file"]))) + "\n", encoding="utf-8")
    assert {one.name.peer_group for one in read_metric_file(metrics).series} == {"IFACE"}


def read_lines(words: list[str], path: Path | None) -> list[str]:
    if path is None:
        return []
    words = [word or str(path) for word in words]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
