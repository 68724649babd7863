"""Scripts: checked whole, compiled, and fed with what happens at their points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from types import CellType
from typing import Any, NamedTuple

from lark import Token, Tree

from controller.probes.expressions import WORDS, AggregateShape, Declared, fault, integer_of, literal_of
from controller.probes.firing import ClauseCode, Failed, Firing, FiringFunction, FiringPlace
from controller.probes.grammar import parse
from controller.probes.points import POINTS_BOUND, PointCatalogue, ProbePoint
from controller.probes.runtime import KEYS_BOUND, SUMMED_EVERY, ProbeRun, Value
from controller.probes.statements import ClauseCompiler, kind_called
from controller.probes.value_kinds import STRING, ValueKind

CLAUSES_BOUND = 64
VARIABLES_BOUND = 256
"""Global variables, bags and aggregates of a script together."""

MOST_KEY_PARTS = 8
"""Integers and strings in the keys of an aggregate together."""

BEGIN, END = "begin", "end"

_MANY = 1 << 62
"""More firings than a recording has."""


class CompiledClause(NamedTuple):
    """A clause: the points at which it fires, one in `every`, and what it does."""

    begins: bool
    ends: bool
    points: tuple[ProbePoint, ...]
    every: int
    code: ClauseCode


class Together(NamedTuple):
    """Clauses that fire together for a record, by number, or one of which one in `every` does."""

    numbers: tuple[int, ...]
    every: int


class Script:
    """A script that is checked and compiled, and has not begun.

    Attributes
    ----------
    text
        What it was made of.
    clauses
        Its clauses, in order.
    at
        Which clauses fire at each of its points, `begin` and `end` aside, in order.
    """

    def __init__(
        self, text: str, clauses: Sequence[CompiledClause], values: Sequence[Value], names: Declared
    ) -> None:
        self.text = text
        self.clauses = tuple(clauses)
        self._values, self._bags, self._aggregates = tuple(values), tuple(names.bags), tuple(names.aggregates)
        numbers: dict[ProbePoint, list[int]] = {}
        for number, clause in enumerate(clauses):
            for point in clause.points:
                numbers.setdefault(point, []).append(number)
        self.at: Mapping[ProbePoint, tuple[Together, ...]] = {
            point: tuple(self._together(at)) for point, at in numbers.items()
        }
        several = {each.numbers for together in self.at.values() for each in together if len(each.numbers) > 1}
        codes = [clause.code for clause in clauses]
        self._functions: dict[tuple[int, ...], FiringFunction] = {
            (number,): FiringFunction([code]) for number, code in enumerate(codes)
        }
        self._functions |= {each: FiringFunction([codes[number] for number in each]) for each in several}

    def _together(self, numbers: Sequence[int]) -> Iterator[Together]:
        for every, same in groupby(numbers, lambda number: self.clauses[number].every):
            if every == 1:
                yield Together(tuple(same), 1)
            else:
                yield from (Together((number,), every) for number in same)

    @property
    def points(self) -> tuple[ProbePoint, ...]:
        """The points that its clauses look at, `begin` and `end` aside, each once."""
        return tuple(dict.fromkeys(point for clause in self.clauses for point in clause.points))

    def bound(
        self, numbers: tuple[int, ...], place: FiringPlace, left: CellType, refused: Firing, failed: Failed
    ) -> Firing:
        """Return what fires clauses, one or such as are `Together`, at a place; see `FiringFunction`."""
        return self._functions[numbers].bound(place, left, refused, failed)

    def new_run(self, *, keys: int = KEYS_BOUND, lines_per_s: int | None = None) -> ProbeRun:
        """Return a run in which nothing has been seen yet."""
        return ProbeRun(self._values, self._bags, self._aggregates, keys=keys, lines_per_s=lines_per_s)


class Probe:
    """A script that runs.

    Attributes
    ----------
    script
        What it runs.
    run
        What it has kept and lost.
    has_ended
        Whether it has called ``exit()``: it does not fire any more.
    """

    def __init__(self, script: Script, run: ProbeRun | None = None) -> None:
        self.script = script
        self.run = script.new_run() if run is None else run
        self.has_ended = False
        self._now_ns = 0
        self._left = CellType(_MANY)
        self._sum_at = SUMMED_EVERY
        self._seen = [0] * len(script.clauses)
        self._begin = [self._bound((n,), "", BEGIN) for n, clause in enumerate(script.clauses) if clause.begins]
        self._end = [self._bound((n,), "", END) for n, clause in enumerate(script.clauses) if clause.ends]

    @cached_property
    def _at(self) -> dict[ProbePoint, list[tuple[Together, Firing]]]:
        return {
            point: [(each, self._bound(each.numbers, point.app, point.name)) for each in together]
            for point, together in self.script.at.items()
        }

    def begin(self, now_ns: int) -> None:
        """Have what is to be done at the beginning done."""
        self._now_ns = now_ns
        for firing in self._begin:
            self._fire(firing, None)

    def fire(self, app: str, what: str, record: Any, now_ns: int) -> None:
        """Have clauses look at a record that an app takes, or asks for."""
        self.fire_at(ProbePoint(app, what, type(record)), record, now_ns)

    def fire_at(self, point: ProbePoint, record: Any, now_ns: int) -> None:
        """Have clauses look at what a point gives."""
        self._now_ns = now_ns
        for together, firing in self._at.get(point, ()):
            if self.has_ended:
                return
            number = together.numbers[0]
            self._seen[number] += 1
            if self._seen[number] % together.every == 0:
                self._fire(firing, record)

    def end(self, now_ns: int) -> None:
        """Have what is to be done at the end done."""
        self._now_ns = now_ns
        self.has_ended = False
        for firing in self._end:
            if not self.has_ended:
                self._fire(firing, None)
        self.has_ended = True

    def _bound(self, numbers: tuple[int, ...], app: str, point: str) -> Firing:
        place = FiringPlace(self.run, app, point, lambda: self._now_ns)
        return self.script.bound(numbers, place, self._left, self._refused, self._failed)

    def _refused(self, _record: Any) -> None:
        raise AssertionError("there is no bound")

    def _failed(self, error: Exception, to_come: int) -> bool:
        self.has_ended = self.run.failed(error)
        if self.has_ended:
            self._left.cell_contents += to_come
        return self.has_ended

    def _fire(self, firing: Firing, record: Any) -> None:
        firing(record)
        run = self.run
        run.fired = _MANY - self._left.cell_contents
        if run.fired >= self._sum_at:
            run.sum_samples()
            self._sum_at = run.fired + SUMMED_EVERY


def load(text: str, catalogue: PointCatalogue) -> Script:
    """Return a script that is ready to run; ScriptFault for the first thing that is wrong, with its place."""
    tree = parse(text)
    declared, values = _declarations(tree)
    written = [each for each in tree.children if isinstance(each, Tree) and each.data == "clause"]
    if len(written) > CLAUSES_BOUND:
        raise fault(written[CLAUSES_BOUND], f"a script has at most {CLAUSES_BOUND} clauses")
    points = [tuple(dict.fromkeys(_points(each.children[0], catalogue))) for each in written]  # type: ignore[arg-type]
    if sum(map(len, points)) > POINTS_BOUND:
        raise fault(tree, f"a script looks at {POINTS_BOUND} points at most, and this at more")
    for each, at in zip(written, points, strict=True):  # to know the kinds of bags, which all who read them must know
        _compile(each, at, declared, surveys=True)
    clauses = [_clause(each, at, declared) for each, at in zip(written, points, strict=True)]
    return Script(text, clauses, values, declared)


def _declarations(tree: Tree[Token]) -> tuple[Declared, list[Value]]:
    declared, values = Declared(), list[Value]()
    for each in tree.children:
        if not isinstance(each, Tree) or each.data == "clause":
            continue
        token = next(child for child in each.children if isinstance(child, Token) and child.type == "NAME")
        if str(token) in declared or str(token) in WORDS:
            raise fault(token, f"{token} stands for something else already")
        if len(declared.variables) + len(declared.bags) + len(declared.aggregates) >= VARIABLES_BOUND:
            raise fault(token, f"a script declares at most {VARIABLES_BOUND} names")
        if each.data == "bag":
            declared.bags[str(token)] = None
        elif each.data == "aggr":
            declared.aggregates[str(token)] = _shape(each)
        else:
            word, _, literal = each.children
            value, kind = _first_value(kind_called(word), literal)  # type: ignore[arg-type]
            declared.variables[str(token)] = len(values), kind
            values.append(value)
    return declared, values


def _shape(tree: Tree[Token]) -> AggregateShape:
    _, *counts = tree.children
    integers, strings = (integer_of(count) for count in counts)  # type: ignore[arg-type]
    if integers + strings > MOST_KEY_PARTS:
        raise fault(tree, f"an aggregate has keys of {MOST_KEY_PARTS} parts at most")
    return AggregateShape(integers, strings)


def _first_value(kind: ValueKind, literal: Tree[Token] | None) -> tuple[Value, ValueKind]:
    if literal is None:
        return ("" if kind == STRING else 0), kind
    value, found = literal_of(literal)
    if found != kind:
        raise fault(literal, f"{kind} is declared, and this is {found}")
    return value, kind


def _clause(tree: Tree[Token], points: tuple[ProbePoint, ...], declared: Declared) -> CompiledClause:
    named, sampling, _condition, _block = tree.children
    every = _every(sampling)  # type: ignore[arg-type]
    code = _compile(tree, points, declared, surveys=False)
    words = {str(each) for each in named.children}  # type: ignore[union-attr]
    return CompiledClause(BEGIN in words, END in words, points, every, code)


def _compile(tree: Tree[Token], points: tuple[ProbePoint, ...], declared: Declared, *, surveys: bool) -> ClauseCode:
    """Return what a clause does at each of its points."""
    named, _sampling, condition, block = tree.children
    is_bare = any(str(each) in (BEGIN, END) for each in named.children)  # type: ignore[union-attr]
    records = () if is_bare else tuple(dict.fromkeys(point.record for point in points))
    return ClauseCompiler(declared, records, surveys=surveys).clause(condition, block)  # type: ignore[arg-type]


def _every(sampling: Tree[Token] | None) -> int:
    if sampling is None:
        return 1
    one, of = (integer_of(each) for each in sampling.children)  # type: ignore[arg-type]
    if one != 1 or not 1 <= of <= 1_000_000_000:
        raise fault(sampling, "sampling is 1 in a number from 1 on: sample 1/100")
    return of


def _points(named: Tree[Token], catalogue: PointCatalogue) -> Iterator[ProbePoint]:
    for each in named.children:
        if str(each) in (BEGIN, END):
            continue
        found = catalogue.find(str(each))
        if not found:
            raise fault(each, catalogue.why_none(str(each)))
        yield from found
