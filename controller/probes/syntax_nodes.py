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


def assign(identifier: str, value: ast.expr) -> ast.Assign:
    """Return a statement that gives a name a value."""
    return ast.Assign([ast.Name(identifier, ast.Store())], value)


def of_run(method: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of what runs the script."""
    return ast.Call(ast.Attribute(name("run"), method, ast.Load()), list(arguments), [])


def from_record(value: ast.expr, kind: ValueKind) -> ast.expr:
    """Return what takes a value of a record as scripts see it, without a call where it is as most are."""
    seen = ast.NamedExpr(ast.Name("seen", ast.Store()), value)
    if kind == INT:
        is_int = ast.Compare(call("type", seen), [ast.Is()], [name("int")])
        is_seen: ast.expr = ast.BoolOp(ast.And(), [is_int, _fits()])
    elif kind == STRING:
        is_text = ast.Compare(call("type", seen), [ast.Is()], [name("text")])
        is_short = ast.Compare(call("len", name("seen")), [ast.LtE()], [ast.Constant(runtime.TEXT_BOUND)])
        is_seen = ast.BoolOp(ast.And(), [is_text, is_short])
    else:
        is_seen = ast.Compare(seen, [ast.IsNot()], [ast.Constant(None)])
    return ast.IfExp(is_seen, name("seen"), taken_as(name("seen"), kind))


def taken_as(value: ast.expr, kind: ValueKind) -> ast.Call:
    """Return a call that takes a value of a record as scripts see it."""
    return call({INT: "as_int", STRING: "as_text"}.get(kind, "as_present"), value)


def wrapped(value: ast.expr) -> ast.expr:
    """Return an integer that was computed as 64 bits hold it, without a call where it fits."""
    return ast.IfExp(_is_within(value, runtime.LEAST, runtime.MOST), name("seen"), call("wrap", name("seen")))


def divided(
    value: ast.expr, unbound: ast.expr | None, operator: ast.operator, function: str, by: ast.expr
) -> ast.expr:
    """Return an integer divided by a positive one, without a call where it is not negative.

    What it is before 64 bits hold it, where it is not held by these, is looked at once for both.
    """
    if unbound is None:
        taken = ast.NamedExpr(ast.Name("seen", ast.Store()), value)
        is_plain: ast.expr = ast.Compare(taken, [ast.GtE()], [ast.Constant(0)])
        held: ast.expr = name("seen")
    else:
        is_plain = _is_within(unbound, 0, runtime.MOST)
        held = call("wrap", name("seen"))
    return ast.IfExp(is_plain, ast.BinOp(name("seen"), operator, by), call(function, held, by))


def _is_within(value: ast.expr, least: int, most: int) -> ast.expr:
    """Return whether a value, which is called `seen` from there on, is within bounds."""
    taken = ast.NamedExpr(ast.Name("seen", ast.Store()), value)
    is_great = ast.Compare(taken, [ast.GtE()], [ast.Constant(least)])
    return ast.BoolOp(ast.And(), [is_great, _compared(ast.LtE(), most)])


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
