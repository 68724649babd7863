"""Scripts: checked whole, compiled, and fed with what happens at their points."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from lark import Token, Tree

from controller.probes.expressions import HELPERS, WORDS, AggregateShape, Declared, fault, integer_of, literal_of
from controller.probes.grammar import parse
from controller.probes.points import PointCatalogue, ProbePoint
from controller.probes.runtime import FiringFault, OutOfSteps, ProbeEnds, ProbeRun, Value
from controller.probes.statements import ClauseCompiler, kind_called
from controller.probes.value_kinds import STRING, ValueKind

CLAUSES_BOUND, POINTS_BOUND = 64, 512
VARIABLES_BOUND = 256
"""Global variables, bags and aggregates of a script together."""

MOST_KEY_PARTS = 8
"""Integers and strings in the keys of an aggregate together."""

BEGIN, END = "begin", "end"

Firing = Callable[[ProbeRun, Any, int, int, str, str], None]


class CompiledClause(NamedTuple):
    """A clause: the points at which it fires, one in `every`, and the function that a firing calls."""

    begins: bool
    ends: bool
    points: tuple[ProbePoint, ...]
    every: int
    function: Firing


class Probe:
    """A script that is loaded.

    Attributes
    ----------
    run
        What it has kept and lost.
    has_ended
        Whether it has called ``exit()``: it does not fire any more.
    """

    def __init__(self, clauses: list[CompiledClause], run: ProbeRun) -> None:
        self.run = run
        self.has_ended = False
        self._clauses = clauses
        self._seen = [0] * len(clauses)
        self._at: dict[tuple[str, str, type], list[int]] = {}
        for number, clause in enumerate(clauses):
            for point in clause.points:
                self._at.setdefault((point.app, point.what, point.record), []).append(number)

    @property
    def point_count(self) -> int:
        """How many points its clauses look at, `begin` and `end` aside."""
        return len(self._at)

    def begin(self, now_ns: int) -> None:
        """Have what is to be done at the beginning done."""
        for clause in self._clauses:
            if clause.begins:
                self._fire(clause, None, now_ns, "", BEGIN)

    def fire(self, app: str, what: str, record: Any, now_ns: int) -> None:
        """Have clauses look at a record that an app takes, or asks for."""
        for number in self._at.get((app, what, type(record)), ()):
            if self.has_ended:
                return
            clause = self._clauses[number]
            self._seen[number] += 1
            if self._seen[number] % clause.every == 0:
                self._fire(clause, record, now_ns, app, f"{app}:{what}:{type(record).__name__}")

    def end(self, now_ns: int) -> None:
        """Have what is to be done at the end done."""
        self.has_ended = False
        for clause in self._clauses:
            if clause.ends and not self.has_ended:
                self._fire(clause, None, now_ns, "", END)
        self.has_ended = True

    def _fire(self, clause: CompiledClause, record: Any, now_ns: int, app: str, point: str) -> None:
        self.run.fired += 1
        try:
            clause.function(self.run, record, now_ns, now_ns // 1_000_000_000, app, point)
        except FiringFault as found:
            self.run.faults[str(found)] += 1
        except OutOfSteps:
            self.run.faults["out of steps"] += 1
        except ProbeEnds:
            self.has_ended = True
        except Exception:  # who is looked at never sees it
            self.run.faults["defect of the probe"] += 1

    def document(self) -> dict[str, Any]:
        """Return all that it has found, JSON-able."""
        run = self.run
        return {
            "aggregates": {
                name: [
                    {**asdict(row), "keys": list(row.keys), "histogram": [list(each) for each in row.histogram]}
                    for row in run.rows(name)
                ]
                for name in run.aggregates
            },
            "printed": list(run.printed),
            "fired": run.fired,
            "skipped": run.skipped,
            "faults": dict(run.faults),
            "lost_keys": run.lost_keys,
            "lost_lines": run.lost_lines,
        }


def load(text: str, catalogue: PointCatalogue) -> Probe:
    """Return a script that is ready to fire; ScriptFault for the first thing that is wrong, with its place."""
    tree = parse(text)
    declared, values = _declarations(tree)
    written = [each for each in tree.children if isinstance(each, Tree) and each.data == "clause"]
    if len(written) > CLAUSES_BOUND:
        raise fault(written[CLAUSES_BOUND], f"a script has at most {CLAUSES_BOUND} clauses")
    # The first round shows which kinds bags have, which all places where they are read must know.
    for _ in range(2):
        clauses = [_clause(each, declared, catalogue) for each in written]
    count = sum(len(clause.points) for clause in clauses)
    if count > POINTS_BOUND:
        raise fault(tree, f"a script looks at {POINTS_BOUND} points at most, and this at {count}")
    return Probe(clauses, ProbeRun(values, declared.bags, declared.aggregates))


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


def _clause(tree: Tree[Token], declared: Declared, catalogue: PointCatalogue) -> CompiledClause:
    named, sampling, condition, block = tree.children
    every = _every(sampling)  # type: ignore[arg-type]
    points = tuple(dict.fromkeys(_points(named, catalogue)))  # type: ignore[arg-type]
    words = {str(each) for each in named.children}  # type: ignore[union-attr]
    is_bare = bool(words & {BEGIN, END})
    records = () if is_bare else tuple(dict.fromkeys(point.record for point in points))
    compiler = ClauseCompiler(declared, records)
    function = compiler.function(condition, block)  # type: ignore[arg-type]
    module = ast.fix_missing_locations(ast.Module([function], []))
    scope: dict[str, Any] = {"__builtins__": {}, **HELPERS}
    exec(compile(module, "<probe>", "exec"), scope)
    return CompiledClause(BEGIN in words, END in words, points, every, scope["clause"])


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
            near = catalogue.near(str(each))
            hint = f"; did you mean {near}?" if near else ""
            raise fault(each, f"there is no point {each}{hint}")
        yield from found
