"""The documents as the repository shows them: commands parse, files they name are there, links lead somewhere."""

import json
import re
import shlex
from pathlib import Path

import pytest

from apps.cli.main import build_parser, main

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


LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors that a Markdown page's headings get where repositories are shown."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_in_the_repository(page: Path):
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_readme_s_figures_are_what_its_command_prints(capsys: pytest.CaptureFixture[str]):
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    command = re.search(r"`vsrt (simulate --seed 1 [^`]*)` prints", text)
    assert command is not None
    assert main([*shlex.split(command[1]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["algorithms"]
    for name in ("vsrt", "vsrt-literal", "pim-sm-fixed-core"):
        assert f"{found[name]['max_pct']:.1f} %" in text[command.end() :][:300]
