from __future__ import annotations

import argparse
import errno
import io
import json
import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from apps.cli import main as cli
from apps.cli.common import InputError, OperationFailed, emit_json, emit_table, read_topology
from apps.cli.examples import EXAMPLES
from apps.cli.help_text import commands_of
from apps.cli.standard_output import OutputFailed, StandardOutput
from topology.generators import make

ROOT = Path(__file__).parents[3]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert f"\n    {name}" in shown


def test_help_is_shown_soon_since_no_command_is_imported() -> None:
    heavy = "numpy", "pyarrow", "networkx", "matplotlib", "yaml", "ssl", "controller", "topology"
    program = f"import sys; from apps.cli.main import main; main(['--help']); found = set({heavy}) & set(sys.modules)"
    program += "; sys.exit(str(found))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "set()"


def test_examples_are_of_commands_there_are_and_parse() -> None:
    parser = cli.build_parser()
    commands = {command.prog for command in commands_of(parser)}
    assert set(EXAMPLES) == commands
    for line, _ in (example for examples in EXAMPLES.values() for example in examples):
        words = shlex.split(line.removeprefix("sudo ").partition(" > ")[0])
        assert parser.parse_args(words[1:]).command in cli.COMMANDS


def test_every_command_tells_its_exit_status_and_an_example() -> None:
    for command in commands_of(cli.build_parser()):
        shown = command.format_help()
        assert "Exit status: 0 done" in shown
        assert f"\n  {EXAMPLES[command.prog][0][0]}" in shown
        assert command.description is not None


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("vsrt ")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["--nonsense"], ["topology"], ["topology", "nonsense"]])
def test_a_wrong_command_line_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: vsrt" in captured.err


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (InputError("file.yaml:3: bad"), 2, "vsrt: file.yaml:3: bad\n"),
        (OperationFailed("no room"), 1, "vsrt: no room\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_become_exit_codes(
    error: BaseException,
    status: int,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(args: argparse.Namespace) -> int:
        raise error

    command = SimpleNamespace(NAME="topology", HELP="fails", add_arguments=lambda parser: None, run=run)
    monkeypatch.setitem(sys.modules, "apps.cli.topology_command", command)
    monkeypatch.setattr("apps.cli.topology_command", command, raising=False)
    assert cli.main(["topology"]) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", shown)


def test_every_command_takes_json_wherever_it_ends() -> None:
    parser = cli.build_parser()
    choices = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    for command in choices.values():
        ends = [command]
        for end in ends:
            ends += [
                below
                for action in end._actions
                if isinstance(action, argparse._SubParsersAction)
                for below in action.choices.values()
            ]
            assert "--json" in end._option_string_actions
    for line in (["topology", "--json", "list"], ["topology", "list", "--json"]):
        assert parser.parse_args(line).json is True
    assert parser.parse_args(["topology", "list"]).json is False


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "apps.cli.main", "topology", "make", "fattree"],
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


SHORT, LONG, HELP = ("--version",), ("policy", "schema"), ("storm", "--help")
NO_ROOM = "vsrt: standard output: No space left on device\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [SHORT, LONG, HELP])
def test_a_disk_without_room_is_told(arguments: tuple[str, ...], unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "apps.cli.main", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, NO_ROOM)


@pytest.mark.parametrize("closed", ["1", "2"])
def test_what_it_was_started_without_is_not_needed(tmp_path: Path, closed: str) -> None:
    """Nor written into the first file that it opens."""
    made = tmp_path / "policy.yaml"
    (tmp_path / "frr.conf").write_text("frr version 8.4\n")
    words = ("-m", "apps.cli.main", "import", "frr", str(tmp_path / "frr.conf"), "-o", str(made))
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}>&-', "sh", sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert made.read_text().startswith("version: 1\n") or made.read_text().startswith("#")


@pytest.mark.parametrize(
    ("number", "told"), [(errno.ENOSPC, "standard output: No space left on device"), (errno.EPIPE, "")]
)
def test_faults_of_standard_output_are_told_from_others(number: int, told: str) -> None:
    class Faulty(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(number, os.strerror(number))

        def flush(self) -> None:
            self.write("")

    output = StandardOutput(Faulty())
    for does in (partial(output.write, "a line\n"), output.flush):
        with pytest.raises(OutputFailed) as raised:
            does()
        assert str(raised.value) == told
    assert output.writable()


def test_emit_json_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json({"a": [1, None, "é"]})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"a": [1, None, "é"]}
    assert shown.count("\n") == 1
    with pytest.raises(ValueError):
        emit_json(float("nan"))


def test_tables_align_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    emit_table(("NAME", "COUNT"), [("a", 5), ("longer", 1200)])
    assert capsys.readouterr().out.splitlines() == ["NAME    COUNT", "a           5", "longer   1200"]
    emit_table(("NAME", "COUNT"), [])
    assert capsys.readouterr().out == "NAME  COUNT\n"
    emit_table(("WHAT", "COUNT", "LAST"), [("a", 5, 7), ("fault", "the file is empty"), ("none",)])
    assert capsys.readouterr().out.splitlines() == [
        "WHAT   COUNT  LAST",
        "a          5     7",
        "fault  the file is empty",
        "none",
    ]


def test_topology_files_are_read_or_refused_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    assert cli.main(["topology", "make", "avalanche24", "-o", str(path)]) == 0
    assert list(read_topology(path).graph.links()) == list(make("avalanche24").links())
    path.write_text('{"nodes": [\n]')
    for wrong, words in ((path, "t.json:2: "), (tmp_path / "none.json", "No such file"), (tmp_path, "directory")):
        with pytest.raises(InputError, match=words):
            read_topology(wrong)
