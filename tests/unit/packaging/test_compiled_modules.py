"""What a build with VSRT_COMPILE=1 compiles, and that nothing but its speed tells it from the sources.

Where that variable is set these tests, as those of the cores, run over such a build (script/test).
"""

from __future__ import annotations

import ast
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
from controller.recording import plain, written_as
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.trees.tree import Change

ROOT = Path(__file__).parents[3]
TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["vsrt"]["compiled"]
IS_COMPILED = os.environ.get("VSRT_COMPILE") == "1"


def sources() -> list[str]:
    found = [path for name in ("topology", "controller") for path in (ROOT / name).rglob("*.py")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py")


def is_left_out(source: str) -> bool:
    by_itself = source in TABLE["modules"]
    return any(source == name or (source.startswith(f"{name}/") and not by_itself) for name in TABLE["left-out"])


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


def asked_again(tree: ast.AST) -> list[str]:
    """Return what is known not to be None where a call may have made it None, and is asked for again after it.

    mypyc goes by what is known: there the attribute is taken for what it was, and a None raises TypeError.
    """
    found = []
    for outer in ast.walk(tree):
        for name in none_tests(outer.test, ast.IsNot) if isinstance(outer, ast.If) else ():
            inside = [node for part in outer.body for node in ast.walk(part)]
            calls = [node.lineno for node in inside if isinstance(node, ast.Call)]
            told = [node.lineno for node in inside if isinstance(node, ast.Assign) and name in ast.unparse(node)]
            for inner in inside:
                if isinstance(inner, ast.If | ast.IfExp | ast.While) and name in none_tests(inner.test):
                    before = [line for line in calls if line < inner.lineno]
                    if before and not any(before[0] <= line < inner.lineno for line in told):
                        found.append(f"{name}, line {inner.lineno}")
    return found


def none_tests(test: ast.expr, *kinds: type[ast.cmpop]) -> list[str]:
    """Return the attributes that a condition compares with None."""
    return [
        ast.unparse(node.left)
        for node in ast.walk(test)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Attribute)
        and isinstance(node.ops[0], kinds or (ast.Is, ast.IsNot))
        and ast.unparse(node.comparators[0]) == "None"
    ]


def test_nothing_that_a_call_may_have_made_none_is_asked_for_again_where_it_is_known_not_to_be():
    again = {source: asked_again(ast.parse((ROOT / source).read_text(encoding="utf-8"))) for source in COMPILED}
    assert {source: names for source, names in again.items() if names} == {}


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("f(a)\n    if a.b is not None: g()", True),
        ("f(a)\n    while a.b is None: g()", True),
        ("a.b = f(a)\n    if a.b is not None: g()", False),
        ("if a.b is not None: g()", False),
        ("f(a)\n    if a.c is not None: g()", False),
    ],
)
def test_what_is_asked_for_again_is_found(body: str, is_found: bool):
    assert bool(asked_again(ast.parse(f"if a.b is not None and x:\n    {body}\n"))) is is_found


KEY = FlowKey(2, 100, Match(eth_dst=b"\x01\0\x5e\1\1\1", eth_type=0x0800))
RECORDS = [
    Change("239.1.1.1", (("leaf1", "spine1"),)),
    Decision(True, "rule", "all"),
    HostRef(b"\x02\0\0\0\0\1", b"\x0a\0\0\1", 1, 2),
    Interest(FilterMode.EXCLUDE, frozenset()),
    InterestChanged(1, 2, b"\xef\1\1\1", ANY_SOURCE),
    SenderKey(1, 2, b"\x02\0\0\0\0\1", b"\x0a\0\0\1"),
    FlowEntry(KEY, (Output(1), Output(2)), 0x5A),
    ApplyEdits(1, 7, (Put(FlowEntry(KEY, (Output(1),), 0x5A)),)),
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
    assert plain(record)["$"] == written_as(kind)
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
