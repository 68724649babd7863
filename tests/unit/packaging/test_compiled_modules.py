"""What a build with VSRT_COMPILE=1 compiles, and that nothing but its speed tells it from the sources.

Where that variable is set these tests, as those of the cores, run over such a build (script/test).
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from controller.admission.host import Decision
from controller.effects import ApplyEdits, Put
from controller.membership.events import ANY_SOURCE, FilterMode, HostRef, Interest, InterestChanged
from controller.multicast.group import SenderKey
from controller.recording import plain
from controller.rules.model import Match, Output, Rule, RuleKey
from controller.trees.tree import Change

ROOT = Path(__file__).parents[3]
TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["vsrt"]["compiled"]
IS_COMPILED = os.environ.get("VSRT_COMPILE") == "1"


def sources() -> list[str]:
    found = [path for name in ("topology", "controller") for path in (ROOT / name).rglob("*.py")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py")


def is_left_out(source: str) -> bool:
    return any(source == name or source.startswith(f"{name}/") for name in TABLE["left-out"])


def is_listed(source: str) -> bool:
    return source in TABLE["modules"] or str(Path(source).parent) in TABLE["modules"]


COMPILED = [source for source in sources() if is_listed(source) and not is_left_out(source)]


def module_name(source: str) -> str:
    return source.removesuffix(".py").replace("/", ".")


def test_every_module_of_the_cores_is_compiled_or_left_out_for_a_reason():
    assert [source for source in sources() if not is_listed(source) and not is_left_out(source)] == []
    assert all(reason for reason in TABLE["left-out"].values())


def test_the_lists_name_what_there_is():
    names = [*TABLE["modules"], *TABLE["left-out"]]
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_the_listed_modules_run_compiled_where_that_was_asked_for_and_no_other_does():
    running = {}
    for source in COMPILED:
        file = importlib.import_module(module_name(source)).__file__
        running[source] = file is not None and file.endswith(tuple(EXTENSION_SUFFIXES))
    assert running == dict.fromkeys(COMPILED, IS_COMPILED)
    plain_modules = {module_name(source) for source in sources()} - set(map(module_name, COMPILED))
    files = [str(sys.modules[name].__file__) for name in plain_modules & sys.modules.keys()]
    assert files
    assert [file for file in files if not file.endswith(".py")] == []


KEY = RuleKey(2, 100, Match(eth_dst=b"\x01\0\x5e\1\1\1", eth_type=0x0800))
RECORDS = [
    Change("239.1.1.1", (("leaf1", "spine1"),)),
    Decision(True, "rule", "all"),
    HostRef(b"\x02\0\0\0\0\1", b"\x0a\0\0\1", 1, 2),
    Interest(FilterMode.EXCLUDE, frozenset()),
    InterestChanged(1, 2, b"\xef\1\1\1", ANY_SOURCE),
    SenderKey(1, 2, b"\x02\0\0\0\0\1", b"\x0a\0\0\1"),
    Rule(KEY, (Output(1), Output(2)), 0x5A),
    ApplyEdits(1, 7, (Put(Rule(KEY, (Output(1),), 0x5A)),)),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_are_equal_shown_and_pickled_as_tuples_with_names_are(record: tuple[object, ...]):
    kind = type(record)
    again = pickle.loads(pickle.dumps(record))
    assert (again, type(again), hash(again)) == (record, kind, hash(record))
    assert kind(*record) == record == tuple(record)
    assert record != kind(*record[:-1], "another")
    assert repr(record).startswith(f"{kind.__name__}({kind._fields[0]}=")  # type: ignore[attr-defined]
    assert kind.__module__ in map(module_name, sources())
    assert plain(record)["$"] == kind.__name__
    with pytest.raises(AttributeError):
        setattr(record, kind._fields[0], None)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("variable", "command", "told"),
    [("yes", "bdist_wheel", "VSRT_COMPILE is 1"), ("1", "editable_wheel", "not for editable installations")],
)
def test_a_build_that_cannot_be_had_is_refused_in_words(variable: str, command: str, told: str):
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", command, "--help"],
        cwd=ROOT,
        env={**os.environ, "VSRT_COMPILE": variable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert told in done.stderr
