"""Commands in the documents: each `vsrt` line parses, and the files of the repository that it names are there."""

import re
import shlex
from pathlib import Path

import pytest

from apps.cli.main import build_parser

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}\S.*$", re.MULTILINE)
REPOSITORY_FILE = re.compile(r"(?:policies|scenarios|packaging|script|dashboards|topology|benchmarks)/[\w./-]+")
STOPS = {"|", ">", ">>", "&&", "&", ";"}


def command_lines(text: str) -> list[str]:
    """Return the lines of a page that are meant for a shell."""
    fenced = "".join(FENCED.findall(text)).replace("\\\n", " ").splitlines()
    return [line.strip() for line in fenced + INDENTED.findall(text)]


def vsrt_words(line: str) -> list[str] | None:
    """Return the arguments that a line gives to `vsrt`; None where it calls something else."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    while words and (words[0] == "sudo" or re.fullmatch(r"\w+=\S*", words[0])):
        del words[0]
    if not words or Path(words[0]).name != "vsrt":
        return None
    ends = [position for position, word in enumerate(words) if word in STOPS or word.startswith(">")]
    return words[1 : min(ends, default=len(words))]


COMMANDS = [
    (str(page.relative_to(ROOT)), line)
    for page in PAGES
    for line in command_lines(page.read_text(encoding="utf-8"))
    if vsrt_words(line) is not None
]
PARSER = build_parser()


def test_commands_are_found():
    assert len(COMMANDS) > 50
    assert {page for page, _ in COMMANDS} >= {"README.md", "docs/tutorial/first-group.md", "docs/how-to/upgrade.md"}


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_documented_command_parses(page: str, line: str):
    try:
        PARSER.parse_args(vsrt_words(line))
    except SystemExit as leaving:
        assert leaving.code in (0, None), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_commands_name_are_there(page: Path):
    named = [
        path
        for line in command_lines(page.read_text(encoding="utf-8"))
        if "NAME" not in line
        for path in re.findall(rf"(?<![\w/.-]){REPOSITORY_FILE.pattern}", line)
    ]
    assert [path for path in named if not (ROOT / path.rstrip(".")).exists()] == []
