"""Functions are looked at by exchange of their code: what they do stays the same, and afterwards it is their own."""

from __future__ import annotations

import inspect
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

import looked_at
from apps.function_watch import FunctionWatch, Looker
from apps.probe_points import recorded_points
from controller.probes.functions import ENTER, EXIT, LoadedFunctions
from controller.probes.grammar import ScriptFault
from controller.probes.points import POINTS_BOUND, PointCatalogue
from controller.probes.script import Probe, load
from controller.wire.addresses import format_ip

FUNCTIONS = LoadedFunctions("looked_at", ())
CATALOGUE = PointCatalogue([], timed=("app", "other"), functions=FUNCTIONS)
NOT_COMPILED = "scripts look at functions that are not"
NAMES = [
    *("Base.__init__", "Base.grow", "Derived.grow", "Derived.halved", "Derived.of", "every_kind", "factorial"),
    *("fails", "generates", "hides", "makes_closure"),
]


@pytest.fixture
def watch() -> FunctionWatch:
    return FunctionWatch(FUNCTIONS, itertools.count(0, 7).__next__)


@pytest.fixture
def seen(watch: FunctionWatch) -> Iterator[list[Any]]:
    """What is seen of all functions, entered and left."""
    found: list[Any] = []
    codes = {name: FUNCTIONS.find(f"looked_at.{name}").__code__ for name in NAMES}
    ends = [look(watch, what, name, found) for name in NAMES for what in (ENTER, EXIT)]
    yield found
    for end in ends:
        end()
    assert all(FUNCTIONS.find(f"looked_at.{name}").__code__ is code for name, code in codes.items())


def look(watch: FunctionWatch, what: str, name: str, found: list[Any]) -> Callable[[], None]:
    def watcher(record: Any) -> None:
        found.append((what, name, record._asdict()))

    return watch.watch(what, f"looked_at.{name}", Looker(lambda: True, watcher))


def test_plain_functions_and_methods_are_found_and_nothing_that_is_made_of_them():
    assert FUNCTIONS.names() == [f"looked_at.{name}" for name in NAMES]
    for name in ("is_cached", "opens", "Base.doubled", "Made.__init__", "makes_closure.add", "Base", "nothing"):
        assert FUNCTIONS.find(f"looked_at.{name}") is None, name


def test_what_is_seen_of_a_function_is_what_its_annotations_tell():
    def fields(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        found = FUNCTIONS.fields(f"looked_at.{name}")
        return found.entered._fields, found.left._fields

    assert fields("every_kind") == (("first", "second", "named"), ("result", "took_ns"))
    assert fields("hides") == (("point",), ("took_ns",))
    assert fields("makes_closure") == (("by",), ("took_ns",))
    assert fields("Derived.of") == (("size",), ("took_ns",))


def test_arguments_of_every_kind_reach_the_function(seen: list[Any]):
    assert looked_at.every_kind(1) == "1b()3[]"
    assert looked_at.every_kind(1, "c", 4, 5, named=6, more=7) == "1c(4, 5)6[('more', 7)]"
    entered = [record for what, _name, record in seen if what == ENTER]
    assert entered == [{"first": 1, "second": "b", "named": 3}, {"first": 1, "second": "c", "named": 6}]
    with pytest.raises(TypeError):
        looked_at.every_kind(first=1)  # type: ignore[call-arg]
    assert len(seen) == 4


def test_each_turn_of_a_recursion_is_seen(seen: list[Any]):
    assert looked_at.factorial(3) == 6
    told = [(what, record.get("of"), record.get("result")) for what, _name, record in seen]
    assert told == [
        (ENTER, 3, None),
        (ENTER, 2, None),
        (ENTER, 1, None),
        (EXIT, None, 1),
        (EXIT, None, 2),
        (EXIT, None, 6),
    ]
    assert [record["took_ns"] for what, _name, record in seen if what == EXIT] == [7, 21, 35]


def test_what_is_raised_passes_and_is_left_without_a_result(seen: list[Any]):
    with pytest.raises(KeyError) as raised:
        looked_at.fails(5)
    assert raised.value.args == (5,)
    assert seen == [(ENTER, "fails", {"number": 5}), (EXIT, "fails", {"result": None, "took_ns": 7})]


def test_generators_closures_and_methods_do_what_they_did(seen: list[Any]):
    assert list(looked_at.generates(3)) == [0, 1, 2]
    assert looked_at.makes_closure(2)(5) == 7
    derived = looked_at.Derived.of(3)
    grow = derived.grow
    assert (grow(2), looked_at.Derived.halved(9), derived.doubled, looked_at.Made(4).number) == (7, 4, 14, 4)
    entered = [name for what, name, _record in seen if what == ENTER]
    assert entered == [
        *("generates", "makes_closure", "Derived.of", "Base.__init__", "Derived.grow", "Base.grow", "Derived.halved")
    ]


def test_methods_that_are_kept_in_tables_are_reached(watch: FunctionWatch):
    table, found = {"grow": looked_at.Base(1).grow}, list[Any]()
    end = look(watch, ENTER, "Base.grow", found)
    assert table["grow"](2) == 3
    end()
    assert table["grow"](2) == 5
    assert found == [(ENTER, "Base.grow", {"by": 2})]


def test_a_function_tells_of_itself_what_it_did(seen: list[Any]):
    signature = "(first: 'int', /, second: 'str' = 'b', *rest: 'int', named: 'int' = 3, **others: 'int') -> 'str'"
    assert str(inspect.signature(looked_at.every_kind)) == signature
    assert looked_at.factorial.__code__.co_qualname == "factorial"
    assert inspect.getsourcelines(looked_at.factorial)[0][0] == "def factorial(of: int) -> int:\n"


def test_who_is_on_another_loop_is_not_called(watch: FunctionWatch):
    found: list[str] = []
    here = {"loop": "one"}
    for loop in ("one", "two"):
        looker = Looker(lambda loop=loop: here["loop"] == loop, lambda _record, loop=loop: found.append(loop))
        watch.watch(ENTER, "looked_at.factorial", looker)
    looked_at.factorial(1)
    here["loop"] = "two"
    looked_at.factorial(1)
    assert found == ["one", "two"]


def test_a_thousand_looks_leave_the_same_code(watch: FunctionWatch):
    code = looked_at.factorial.__code__
    for _ in range(1000):
        first, second = (look(watch, what, "factorial", []) for what in (ENTER, EXIT))
        assert looked_at.factorial.__code__ is not code
        first()
        assert looked_at.factorial(4) == 24 and looked_at.factorial.__code__ is not code
        second()
        assert looked_at.factorial.__code__ is code


def test_scripts_name_functions_in_full_or_by_pattern():
    assert [point.name for point in CATALOGUE.find("app:enter:looked_at.fails")] == ["app:enter:looked_at.fails"]
    assert [point.said for point in CATALOGUE.find("app:exit:looked_at.Derived.*")] == [
        *("looked_at.Derived.grow", "looked_at.Derived.halved", "looked_at.Derived.of")
    ]
    assert [point.app for point in CATALOGUE.find("*:enter:looked_at.fails")] == ["app", "other"]
    assert CATALOGUE.find("app:*:looked_at.fails") == CATALOGUE.find("none:enter:looked_at.fails") == []


@pytest.mark.parametrize(
    ("point", "why"),
    [
        ("app:enter:looked_at.built_in", "looked_at.built_in is compiled here"),
        ("app:enter:looked_at.is_cached", "looked_at.is_cached is made by what decorates it"),
        (
            "app:enter:looked_at.factorail",
            "there is no point app:enter:looked_at.factorail; did you mean app:enter:looked_at.factorial",
        ),
        ("app:enter:looked_at.Base.doubled", "there is no point"),
        ("app:enter:sys.exit", "scripts look at no function of sys"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_with_its_reason_and_place(point: str, why: str):
    with pytest.raises(ScriptFault) as refused:
        load(f"aggr n[0][0];\n  {point} {{ }}", CATALOGUE)
    assert why in refused.value.text and (refused.value.line, refused.value.column) == (2, 3)


def test_a_pattern_that_matches_compiled_functions_alone_is_refused_with_that():
    compiled = LoadedFunctions("_json", ())
    assert json.decoder.scanstring is sys.modules["_json"].scanstring
    for pattern in ("_json.scan*", "_json.make_encoder.*"):
        assert compiled.refusal(pattern) == f"what {pattern} matches is compiled here, and {NOT_COMPILED}"
    assert compiled.refusal("_json.none*") == FUNCTIONS.refusal("_json.scan*") == ""


def test_a_pattern_of_more_functions_than_a_script_may_have_is_refused():
    every = recorded_points()
    assert len(every.find("multicast:enter:*")) == POINTS_BOUND + 1
    with pytest.raises(ScriptFault, match=f"looks at {POINTS_BOUND} points at most"):
        load("multicast:enter:* { }", every)


def test_a_firing_is_made_of_nothing_that_is_looked_at():
    """No firing begins within another one: what all that scripts can do is made of is not among the functions."""
    recorded_points()
    functions = LoadedFunctions()
    script = """
    aggr a[1][1]; bag b; int total; string text = "x";
    app:enter:looked_at.factorial {
        b[of] <- str(of); total += min(of, max(2, log2(of + 8)));
        a[of, text] <- now_ns + time_s; a[of, text]++;
        if (has(b, of)) { text = b[of] + ip(of); }
        print("%d %s %x", of, app, total); printa(a); clear(a); delete(b[of]);
    }
    """
    loaded = load(script, CATALOGUE)
    probe = Probe(loaded)
    record = FUNCTIONS.fields("looked_at.factorial").entered(3)
    called: set[str] = set()

    def trace(frame: Any, event: str, _argument: Any) -> None:
        if event == "call":
            called.add(f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}")

    sys.setprofile(trace)
    try:
        probe.fire_at(loaded.points[0], record, 5)
    finally:
        sys.setprofile(None)
    assert not probe.run.faults
    ours = {name for name in called if name.startswith("controller.")}
    assert "controller.wire.addresses.format_ip" in ours or not isinstance(format_ip, FunctionType)  # compiled
    assert not ours & set(functions.names())
