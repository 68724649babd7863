"""What every file of the repository must keep to."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("topology", "controller", "apps")
MODULE_LINES = 500
FRAMEWORKS = {"ryu", "os_ken", "eventlet"}
IMPURE = FRAMEWORKS | {"socket", "threading", "asyncio", "time", "random", "mininet", "select", "subprocess"}
MACHINE_PATH = re.compile(rf"(?<![\w.])/(?:{'|'.join(('work', 'root', 'home'))})/\w")


HOW_IT_WAS_MADE = re.compile(
    "|".join(
        (
            r"\b[Ss]eed[s ]+0\d\d\b",  # a document by a number that readers do not have; `--seed 1` is a random seed
            r"\bshared/(?:data|seeds|spec|design)\b",
            r"(?<!networkx )\bissue #?\d+\b",
            r"\b[Aa]cceptance (?:run|test|criteri)",
        )
    )
)
WANTED = re.compile(
    "|".join(
        (
            r"\|[ \t]*[Ww]anted\b",  # a column of a table
            r"\b[Ww]anted:",
            r"(?:^|\n)Wanted\b",
            r"\(at (?:most|least)[^()\n]* wanted\)",
            r"\b(?:[Aa]ll|Not) met\b",
            r"(?:^|[.:]\s|\n)Met(?:[.:,]| (?:at|by|in|under|with)\b)",
        )
    )
)
"""A figure that is held against what somebody asked for: documents state the figure, the command and the limit."""


def tracked_files() -> list[Path]:
    """The repository's own files, also those not yet committed."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def modules(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def imported(path: Path) -> frozenset[str]:
    """The top-level packages that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return frozenset(found)


def relative(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_no_module_is_longer_than_its_limit() -> None:
    python = modules(*PACKAGES, "tests", "benchmarks")
    long = [path for path in python if len(path.read_text(encoding="utf-8").splitlines()) > MODULE_LINES]
    assert relative(long) == []


def test_the_framework_is_named_in_one_place_only() -> None:
    outside = [path for path in modules(*PACKAGES) if ROOT / "apps" / "openflow" not in path.parents]
    assert relative([path for path in outside if FRAMEWORKS & imported(path)]) == []


def test_the_cores_are_pure() -> None:
    cores = [path for path in modules("topology", "controller") if path != ROOT / "topology" / "mn.py"]
    found = {str(path.relative_to(ROOT)): IMPURE & imported(path) for path in cores}
    assert {name: impure for name, impure in found.items() if impure} == {}


def imports_by_module(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Which of these modules each imports: anywhere in it, and for types alone too."""
    found: dict[str, set[str]] = {}
    for name, source in sources.items():
        imported = found.setdefault(name, set())
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                members = {f"{node.module}.{alias.name}" for alias in node.names}
                imported.update(members & sources.keys() or {node.module})
        imported &= sources.keys() - {name}
    return found


def import_circle(sources: Mapping[str, str]) -> list[str]:
    """Modules each of which imports the one before it, from one back to itself; nothing where there are none."""
    try:
        TopologicalSorter(imports_by_module(sources)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_not_even_for_types() -> None:
    paths = [path for path in tracked_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PACKAGES]
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths}
    assert import_circle({names[path]: path.read_text(encoding="utf-8") for path in paths}) == []


def test_a_circle_of_imports_is_found() -> None:
    for again in (
        "import a.one",
        "from a import one",
        "from a.one import x",
        "if TYPE_CHECKING:\n    from a.one import X",
    ):
        sources = {"a": "", "a.one": "from a.two import y", "a.two": "def f():\n    import a.three", "a.three": again}
        assert set(import_circle(sources)) == {"a.one", "a.two", "a.three"}
        assert import_circle({**sources, "a.two": ""}) == []


def classes_by_name(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """In which of these modules a public class of each name is defined."""
    found: dict[str, list[str]] = {}
    for name, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name)
    return found


def test_no_class_name_stands_for_two_things() -> None:
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in modules(*PACKAGES)}
    assert {name: places for name, places in classes_by_name(sources).items() if len(places) > 1} == {}


def test_a_class_name_that_stands_for_two_things_is_found() -> None:
    sources = {"a": "class Host: ...", "b": "class Host: ...\nclass _Host: ...", "c": "class _Host: ..."}
    assert classes_by_name(sources) == {"Host": ["a", "b"]}


def test_no_file_names_a_path_of_some_machine() -> None:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def texts(*suffixes: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each file of ours with these suffixes, of all where none is given."""
    ours = (path for path in tracked_files() if "vendor" not in path.parts and path != Path(__file__))
    for path in ours:
        if not suffixes or path.suffix in suffixes:
            with suppress(UnicodeDecodeError):
                yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("pattern", "told", "fine"),
    [
        (HOW_IT_WAS_MADE, "Source: seed 004, 4.2", "two runs of `--seed 1`, seeds 1 to 8"),
        (HOW_IT_WAS_MADE, "the files in shared/data", "a shared data plane"),
        (WANTED, "| median | wanted |", "faster uplinks where wanted"),
        (WANTED, "below 10 ms. Met under Ryu.", "the entries it met, one per table"),
        (WANTED, "Wanted: at least 50.", "WantedBy=multi-user.target"),
    ],
)
def test_the_patterns_tell_such_words_from_others(pattern: re.Pattern[str], told: str, fine: str) -> None:
    assert pattern.search(told)
    assert pattern.search(fine) is None


def test_no_file_speaks_of_how_the_repository_was_made() -> None:
    assert [(name, match[0]) for name, text in texts() for match in HOW_IT_WAS_MADE.finditer(text)] == []


def test_documents_state_figures_and_not_what_was_wanted() -> None:
    assert [(name, match[0]) for name, text in texts(".md") for match in WANTED.finditer(text)] == []


TEXT_AT = {"Notice": 1, "give": 2, "add": 2}
"""Calls that tell operators something, and which argument is the text."""


def parts(node: ast.expr, assigned: dict[str, list[ast.expr]]) -> Iterator[ast.expr]:
    """The strings that an expression may stand for: through names that are assigned in its function, and choices."""
    if isinstance(node, ast.Name):
        for value in assigned.get(node.id, ()):
            yield from parts(value, {})
    elif isinstance(node, ast.IfExp):
        yield from (part for choice in (node.body, node.orelse) for part in parts(choice, assigned))
    elif isinstance(node, ast.Constant | ast.JoinedStr):
        yield node


def is_sentence(node: ast.expr) -> bool:
    """Whether a string begins with a capital and ends with a full stop; what an f-string is given counts as such."""
    pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
    first, last = (piece.value if isinstance(piece, ast.Constant) else None for piece in (pieces[0], pieces[-1]))
    begins = not isinstance(first, str) or first[:1].isupper() or not first[:1].isalpha()
    return begins and (not isinstance(last, str) or last.endswith("."))


def told(path: Path) -> Iterator[ast.expr]:
    """The texts of notices and events that a module makes, as far as they stand in the function that makes them."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                assigned.setdefault(node.targets[0].id, []).append(node.value)
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                at = TEXT_AT.get(called or "")
                is_event = called != "add" or "events" in ast.unparse(node.func)
                if at is not None and is_event and len(node.args) > at:
                    yield from parts(node.args[at], assigned)


def test_notices_and_events_are_sentences() -> None:
    found = [(path, text) for path in modules("controller", "apps") for text in told(path)]
    assert len(found) > 30
    assert [f"{path.relative_to(ROOT)}:{text.lineno}" for path, text in found if not is_sentence(text)] == []


def test_scripts_are_executable() -> None:
    scripts = [ROOT / "script" / "test", ROOT / "script" / "demo", ROOT / ".ci" / "run"]
    assert [path.name for path in scripts if not path.stat().st_mode & 0o100] == []
