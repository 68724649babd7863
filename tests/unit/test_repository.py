"""What every file of the repository must keep to."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("topology", "controller", "apps")
MODULE_LINES = 500
FRAMEWORKS = {"ryu", "os_ken", "eventlet"}
IMPURE = FRAMEWORKS | {"socket", "threading", "asyncio", "time", "random", "mininet", "select", "subprocess"}
MACHINE_PATH = re.compile(rf"(?<![\w.])/(?:{'|'.join(('work', 'root', 'home'))})/\w")


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


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def relative(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_no_module_is_longer_than_its_limit() -> None:
    python = modules(*PACKAGES, "tests", "benchmarks")
    long = [path for path in python if len(path.read_text(encoding="utf-8").splitlines()) > MODULE_LINES]
    assert relative(long) == []


def test_the_framework_is_named_in_one_place_only() -> None:
    outside = [path for path in modules(*PACKAGES) if ROOT / "apps" / "openflow" not in path.parents]
    assert relative([path for path in outside if FRAMEWORKS & set(imported(path))]) == []


def test_the_cores_are_pure() -> None:
    cores = [path for path in modules("topology", "controller") if path != ROOT / "topology" / "mn.py"]
    found = {str(path.relative_to(ROOT)): IMPURE & set(imported(path)) for path in cores}
    assert {name: impure for name, impure in found.items() if impure} == {}


def test_no_file_names_a_path_of_some_machine() -> None:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def test_scripts_are_executable() -> None:
    scripts = [ROOT / "script" / "test", ROOT / "script" / "demo", ROOT / ".ci" / "run"]
    assert [path.name for path in scripts if not path.stat().st_mode & 0o100] == []
