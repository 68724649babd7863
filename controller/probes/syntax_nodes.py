"""Syntax nodes of which compiled scripts are made: names, calls, and values that are taken as scripts see them."""

from __future__ import annotations

import ast

from controller.probes import runtime
from controller.probes.value_kinds import INT, STRING, ValueKind

SHORT = (1 << 30) - 1
"""The greatest integer that Python compares faster than longer ones."""


def name(identifier: str) -> ast.Name:
    """Return a name that is read."""
    return ast.Name(identifier, ast.Load())


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of one of the functions that compiled scripts can reach."""
    return ast.Call(name(function), list(arguments), [])


def of_run(method: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of what runs the script."""
    return ast.Call(ast.Attribute(name("run"), method, ast.Load()), list(arguments), [])


def from_record(value: ast.expr, kind: ValueKind) -> ast.expr:
    """Return what takes a value of a record as scripts see it, without a call where it is as most are."""
    seen = ast.NamedExpr(ast.Name("seen", ast.Store()), value)
    if kind == INT:
        is_int = ast.Compare(call("type", seen), [ast.Is()], [name("int")])
        return _seen_where(ast.BoolOp(ast.And(), [is_int, _fits()]), "as_int")
    if kind == STRING:
        is_text = ast.Compare(call("type", seen), [ast.Is()], [name("text")])
        is_short = ast.Compare(call("len", name("seen")), [ast.LtE()], [ast.Constant(runtime.TEXT_BOUND)])
        return _seen_where(ast.BoolOp(ast.And(), [is_text, is_short]), "as_text")
    return _seen_where(ast.Compare(seen, [ast.IsNot()], [ast.Constant(None)]), "as_present")


def wrapped(value: ast.expr) -> ast.expr:
    """Return an integer that was computed as 64 bits hold it, without a call where it fits."""
    taken = ast.Compare(
        ast.NamedExpr(ast.Name("seen", ast.Store()), value), [ast.GtE()], [ast.Constant(runtime.LEAST)]
    )
    return _seen_where(ast.BoolOp(ast.And(), [taken, _compared(ast.LtE(), runtime.MOST)]), "wrap")


def _seen_where(condition: ast.expr, otherwise: str) -> ast.expr:
    """Return the value that a condition calls `seen` where it holds, and else what a function makes of it."""
    return ast.IfExp(condition, name("seen"), call(otherwise, name("seen")))


def _fits() -> ast.expr:
    """Return whether `seen` has 64 bits; Python compares integers of 30 bits faster than longer ones."""
    is_short = ast.BoolOp(ast.And(), [_compared(ast.GtE(), 0), _compared(ast.LtE(), SHORT)])
    is_long = ast.BoolOp(ast.And(), [_compared(ast.GtE(), runtime.LEAST), _compared(ast.LtE(), runtime.MOST)])
    return ast.BoolOp(ast.Or(), [is_short, is_long])


def _compared(sign: ast.cmpop, bound: int) -> ast.expr:
    return ast.Compare(name("seen"), [sign], [ast.Constant(bound)])


def variable(number: int, context: ast.expr_context | None = None) -> ast.Subscript:
    """Return a global variable."""
    return ast.Subscript(
        ast.Attribute(name("run"), "variables", ast.Load()), ast.Constant(number), context or ast.Load()
    )
