"""Firings: what clauses do, of which one function is made for those that fire together, and bound to a point."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any, NamedTuple

from controller.probes.expressions import HELPERS
from controller.probes.runtime import ProbeRun
from controller.probes.syntax_nodes import assign, call, name, of_run

Firing = Callable[[Any], None]
"""Fires clauses for a record, which is None at `begin` and `end`."""

Failed = Callable[[Exception, int], bool]
"""Takes what a clause raised, and how many are still to fire for the record; tells whether these are not to."""


class ClauseCode(NamedTuple):
    """What a clause does for a record.

    Attributes
    ----------
    body
        Its statements.
    kept
        What is looked up in the run once: by its name, the method that returns it for a bag or aggregate.
    reads_clock
        Whether something depends on the time.
    """

    body: list[ast.stmt]
    kept: Mapping[str, tuple[str, str]]
    reads_clock: bool


class FiringPlace(NamedTuple):
    """Where clauses fire: a run, the names of an app and of a point, and what tells the time in nanoseconds."""

    run: ProbeRun
    app: str
    point: str
    clock: Callable[[], int]


class FiringFunction:
    """A function for clauses that fire one after the other for a record, each as if it were alone.

    Parameters
    ----------
    clauses
        What they do.
    """

    def __init__(self, clauses: Sequence[ClauseCode]) -> None:
        module = ast.fix_missing_locations(ast.Module([_binding(clauses)], []))
        scope: dict[str, Any] = {"__builtins__": {}, **HELPERS}
        exec(compile(module, "<probe>", "exec"), scope)
        self._bind: Callable[..., FunctionType] = scope["bind"]

    def bound(self, place: FiringPlace, left: CellType, refused: Firing, failed: Failed) -> Firing:
        """Return what fires the clauses at a place.

        Parameters
        ----------
        place
            Where they fire.
        left
            How many clauses may fire yet, of which it takes one for each.
        refused
            Is called with the record where they may not all.
        failed
            Is called when a clause raises.
        """
        fire = self._bind(*place, refused, failed)
        cells = dict(zip(fire.__code__.co_freevars, fire.__closure__ or (), strict=True))
        cells["left"] = left
        return FunctionType(fire.__code__, fire.__globals__, fire.__name__, None, tuple(cells.values()))


def _binding(clauses: Sequence[ClauseCode]) -> ast.FunctionDef:
    """Return the function that looks up what clauses keep in a run, and returns what a firing calls."""
    kept = {bound: of for clause in clauses for bound, of in clause.kept.items()}
    looked_up = [assign(bound, of_run(method, ast.Constant(of))) for bound, (method, of) in kept.items()]
    fire = ast.FunctionDef("fire", _parameters("record"), _fire(clauses), [], None)
    body: list[ast.stmt] = [*looked_up, assign("left", ast.Constant(0)), fire, ast.Return(name("fire"))]
    return ast.FunctionDef("bind", _parameters(*FiringPlace._fields, "refused", "failed"), body, [], None)


def _fire(clauses: Sequence[ClauseCode]) -> list[ast.stmt]:
    count = len(clauses)
    left, some = name("left"), ast.Constant(count)
    is_short = ast.UnaryOp(ast.Not(), left) if count == 1 else ast.Compare(left, [ast.Lt()], [some])
    body: list[ast.stmt] = [
        ast.Nonlocal(["left"]),
        ast.If(is_short, [ast.Return(call("refused", name("record")))], []),
        assign("left", ast.BinOp(left, ast.Sub(), some)),
    ]
    if any(clause.reads_clock for clause in clauses):
        body.append(assign("now_ns", call("clock")))
    for number, clause in enumerate(clauses, 1):
        told = call("failed", name("error"), ast.Constant(count - number))
        handler = ast.ExceptHandler(name("Exception"), "error", [ast.If(told, [ast.Return(None)], [])])
        body.append(ast.Try(clause.body, [handler], [], []))
    return body


def _parameters(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(each) for each in names], None, [], [], None, [])
