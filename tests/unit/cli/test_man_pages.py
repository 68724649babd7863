"""Manual pages: one for each command, which formatters read without a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from apps.cli import main as cli
from apps.cli.man_pages import pages

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pages") / "man1"
    done = subprocess.run(
        [sys.executable, "-m", "apps.cli.man_pages", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"{directory}: {len(cli.COMMANDS) + 1} pages\n"
    return directory


def test_there_is_a_page_for_every_command(directory: Path) -> None:
    assert {path.name for path in directory.iterdir()} == {"vsrt.1", *(f"vsrt-{name}.1" for name in cli.COMMANDS)}


def test_a_page_has_arguments_subcommands_examples_and_exit_status() -> None:
    page = pages()["vsrt-do.1"]
    for wanted in (
        ".SH NAME\nvsrt\\-do \\- have a running controller",
        '.SS "vsrt do static\\-member add"',
        "\\fB\\-\\-token\\-file\\fR \\fIFILE\\fR",
        ".SH EXAMPLES",
        "\\fBvsrt do drain 3\\fR",
        ".SH EXIT STATUS",
        "\\fBVSRT_SOCKET\\fR",
    ):
        assert wanted in page


@pytest.mark.parametrize(
    "command",
    [["groff", "-man", "-ww", "-z", "-Tutf8"], ["mandoc", "-T", "lint", "-W", "warning"]],
    ids=lambda c: c[0],
)
def test_formatters_have_nothing_to_say(directory: Path, command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run(
        [*command, *sorted(directory.iterdir())], capture_output=True, text=True, timeout=60, check=False
    )
    told = [line for line in (done.stdout + done.stderr).splitlines() if "missing date" not in line]
    assert told == []


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-m", "apps.cli.man_pages", str(tmp_path / "file" / "man1")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Not a directory" in done.stderr
