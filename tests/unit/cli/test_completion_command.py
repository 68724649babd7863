"""`vsrt completion`: the scripts, read and run by the shells themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from apps.cli import main as cli
from apps.cli.completion_command import SHELLS, script

BASH = shutil.which("bash")
DRIVER = """
source "$1"
cd "$2"
shift 2
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMPREPLY=()
compopt() { :; }
"$(complete -p vsrt | sed 's/.*-F \\([^ ]*\\).*/\\1/')" vsrt "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("completion")
    paths = {shell: directory / f"vsrt.{shell}" for shell in SHELLS}
    for shell, path in paths.items():
        path.write_text(script(cli.build_parser(), shell))
    return paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fabric.json").touch()
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        (["sh"], {"show"}, {"tree", "fabric.json"}),
        (["show", "gr"], {"groups"}, {"status"}),
        (["policy", ""], {"check", "explain"}, {"fabric.json"}),
        (["topology", "make", "--fan"], {"--fanout"}, {"--k"}),
        (["tree", "--algorithm", "vsrt-"], {"vsrt-literal"}, {"steiner"}),
        (["tree", "fab"], {"fabric.json"}, {"folder"}),
        (["allocate", "ports", "--input", "f"], {"fabric.json"}, set()),
        (["simulate", "--plot", "f"], {"folder"}, {"fabric.json"}),
        (["do", "dr"], {"drain"}, {"undrain"}),
        (["do", "static-member", ""], {"add", "remove"}, {"drain"}),
        (["show", "status", "--token-file", "f"], {"fabric.json"}, set()),
        (["run", "--state-dir", "f"], {"folder"}, {"fabric.json"}),
        (["completion", ""], {"bash", "zsh", "fish"}, {"tcsh"}),
    ],
)
def test_bash_completes(
    scripts: dict[str, Path], folder: Path, words: list[str], offered: set[str], not_offered: set[str]
) -> None:
    done = subprocess.run(
        [BASH or "", "--norc", "-c", DRIVER, "driver", str(scripts["bash"]), str(folder), "vsrt", *words],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    found = {line.rstrip("/ ") for line in done.stdout.splitlines()}
    assert offered <= found, done.stderr
    assert not not_offered & found


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_its_script(scripts: dict[str, Path], shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = subprocess.run([shell, "-n", scripts[shell]], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes(scripts: dict[str, Path], folder: Path) -> None:
    def offered(line: str) -> set[str]:
        text = f"cd {folder}; source {scripts['fish']}; complete -C '{line}'"
        done = subprocess.run(["fish", "-N", "-c", text], capture_output=True, text=True, timeout=20, check=True)
        return {found.partition("\t")[0] for found in done.stdout.splitlines()}

    assert {"show", "simulate"} <= offered("vsrt s")
    assert "fabric.json" in offered("vsrt tree fab")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(
    scripts: dict[str, Path], shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", shell]) == 0
    assert capsys.readouterr().out.rstrip() == scripts[shell].read_text().rstrip()
    assert cli.main(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"] == scripts[shell].read_text()


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "tcsh"]) == 2
    assert "SHELL" in capsys.readouterr().err
