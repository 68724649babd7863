"""The wheel and the source archive: built without a network, complete, and at work away from the repository."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("topology", "controller", "apps")
LEFT_OUT = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist", "vsrt-state")
BUILD = "import sys, setuptools.build_meta as b; _, to = sys.argv; b.build_wheel(to); b.build_sdist(to)"
RUN = "import sys; sys.path.insert(0, sys.argv[1]); from apps.cli.main import main; sys.exit(main(sys.argv[2:]))"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with both; the build writes beside the sources, so it gets a copy of them."""
    directory = tmp_path_factory.mktemp("build")
    shutil.copytree(ROOT, directory / "source", ignore=LEFT_OUT)
    shutil.copy(ROOT / ".dockerignore", directory / "source")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD, directory / "dist"],
        cwd=directory / "source",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return directory / "dist"


@pytest.fixture(scope="module")
def wheel(archives: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(archives.glob("*.whl")))


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    wheel.extractall(target)
    return target


def files_below(*names: str) -> set[str]:
    """Return the repository's files in some folders, but for compiled ones."""
    found = (path for name in names for path in (ROOT / name).rglob("*"))
    return {str(path.relative_to(ROOT)) for path in found if path.is_file() and "__pycache__" not in path.parts}


def vsrt(installed: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-c", RUN, installed, *words]
    return subprocess.run([str(word) for word in command], cwd=installed, capture_output=True, text=True, check=False)


def test_the_wheel_has_every_file_of_the_packages(wheel: zipfile.ZipFile):
    assert files_below(*PACKAGES) - set(wheel.namelist()) == set()


def test_the_wheel_has_the_files_that_operators_take(wheel: zipfile.ZipFile):
    shared = {
        name.partition(".data/data/share/vsrt-controller/")[2]
        for name in wheel.namelist()
        if ".data/data/share/" in name
    }
    assert files_below("policies", "dashboards", "scenarios") - shared == set()
    assert "systemd/vsrt-controller.service" in shared
    assert any(name.endswith("dist-info/LICENSE") for name in wheel.namelist())


def test_the_wheel_has_nothing_else(wheel: zipfile.ZipFile):
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.startswith("vsrt_controller-")} == set(PACKAGES)


def test_the_source_archive_has_what_it_takes_to_test_it(archives: Path):
    with tarfile.open(next(archives.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = (*PACKAGES, "tests", "docs", "script", "packaging", "policies", "scenarios", "dashboards", "benchmarks")
    assert files_below(*folders) - names == set()
    assert {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "pyproject.toml",
        "requirements.lock",
        "mkdocs.yml",
    } - names == set()


def test_the_command_works_where_it_is_installed(installed: Path, tmp_path: Path):
    shown = vsrt(installed, "--help")
    assert (shown.returncode, shown.stdout[:11]) == (0, "usage: vsrt")
    fabric = tmp_path / "fabric.json"
    assert vsrt(installed, "topology", "make", "fattree", "--k", "4", "-o", fabric).returncode == 0
    tree = vsrt(installed, "tree", fabric, "--members", "h1,h5,h9", "--json")
    assert (tree.returncode, '"algorithm": "vsrt"' in tree.stdout) == (0, True)


def test_its_policies_and_its_schema_are_good(installed: Path):
    policies = sorted(installed.rglob("share/vsrt-controller/policies/*.yaml"))
    assert [vsrt(installed, "policy", "check", path).returncode for path in policies] == [0, 0, 0]
    schema = (installed / "controller" / "config" / "policy.schema.json").read_text(encoding="utf-8")
    assert vsrt(installed, "policy", "schema").stdout == schema
