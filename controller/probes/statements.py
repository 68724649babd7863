"""Statements and clauses of scripts, made into Python's syntax nodes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from lark import Token, Tree

from controller.probes.expressions import (
    WORDS,
    Declared,
    Expressions,
    KeyNodes,
    Typed,
    fault,
    text_of,
)
from controller.probes.firing import ClauseCode
from controller.probes.grammar import ScriptFault
from controller.probes.syntax_nodes import assign, call, from_record, name, of_run, variable, wrapped
from controller.probes.value_kinds import INT, STRING, ValueKind

LOOPS_BOUND = 16
"""Loops and tries that lie in each other."""

STATIC_STEPS = 4096
"""Syntax nodes of a clause without loops, at most."""

SAMPLES_TOGETHER = 8
"""Statements of a clause without loops that add samples; where it has more they are summed after each firing."""

_CONVERSION = re.compile(r"%(%|-?0?\d{0,2}[dxs])")


def kind_called(word: Token | str) -> ValueKind:
    """Return the kind that a declaration names."""
    return INT if str(word) == "int" else STRING


class ClauseCompiler(Expressions):
    """Compiles one clause: its filter and its block; where it `surveys`, only to know the kinds that bags have."""

    def __init__(self, declared: Declared, records: Sequence[type], *, surveys: bool = False) -> None:
        super().__init__(declared, records)
        self._surveys = surveys
        self._made = 0
        self._loops = 0
        self._nested = 0
        self._sampling = 0
        self.has_loops = False

    def clause(self, condition: Tree[Token] | None, block: Tree[Token]) -> ClauseCode:
        """Return what a firing does."""
        test: ast.expr | None = None
        if condition is not None:
            with self._survey():
                test = self.truth(condition.children[0])  # type: ignore[arg-type]
        body = self.block(block) or [ast.Pass()]
        if self.has_loops:
            body.insert(0, assign("steps", ast.Constant(0)))
        elif self.nodes > STATIC_STEPS:
            raise fault(block, f"a clause without loops has at most {STATIC_STEPS} steps, and this has {self.nodes}")
        body += self._summed()
        return ClauseCode([ast.If(test, body, [])] if test is not None else body, self.kept, self.reads_clock)

    def _summed(self) -> list[ast.stmt]:
        """Return what sums samples after a firing that may have added many."""
        summed = ast.Expr(of_run("sum_samples"))
        if self._sampling and self.has_loops:
            return [ast.If(ast.Compare(name("steps"), [ast.Gt()], [name("STEPS_TOGETHER")]), [summed], [])]
        return [summed] if self._sampling > SAMPLES_TOGETHER else []

    def block(self, tree: Tree[Token]) -> list[ast.stmt]:
        """Return the statements of a block, whose variables end with it."""
        with self._scope():
            return [node for each in tree.children for node in self._statement(each)]  # type: ignore[arg-type]

    def _statement(self, tree: Tree[Token]) -> list[ast.stmt]:
        self.nodes += 1
        does: Callable[[Tree[Token]], list[ast.stmt]] = getattr(self, f"_do_{tree.data}")
        with self._survey():
            return does(tree)
        return []

    def _survey(self) -> AbstractContextManager[None]:
        """Go on after a fault where only the kinds of bags are looked for, which later statements may tell."""
        return suppress(ScriptFault) if self._surveys else nullcontext()

    @contextmanager
    def _scope(self) -> Any:
        before = dict(self.locals)
        try:
            yield
        finally:
            self.locals = before

    @contextmanager
    def _nesting(self, tree: Tree[Token]) -> Any:
        """Know how many loops and tries the statements are in."""
        self._nested += 1
        if self._nested > LOOPS_BOUND:
            raise fault(tree, f"more than {LOOPS_BOUND} loops and tries lie in each other here")
        try:
            yield
        finally:
            self._nested -= 1

    def _local(self, token: Token, kind: ValueKind) -> str:
        """Return what a new local variable is called in Python."""
        identifier = str(token)
        if identifier in WORDS or identifier in self.declared or identifier in self.locals:
            raise fault(token, f"{identifier} stands for something else here")
        self._made += 1
        self.locals[identifier] = f"local{self._made}", kind
        return self.locals[identifier][0]

    # Statements, by their names in the grammar

    def _do_declare(self, tree: Tree[Token]) -> list[ast.stmt]:
        word, token, value = tree.children
        kind = kind_called(word)  # type: ignore[arg-type]
        compiled = self.of_kind(value, kind)  # type: ignore[arg-type]
        return [assign(self._local(token, kind), compiled)]  # type: ignore[arg-type]

    def _do_set(self, tree: Tree[Token]) -> list[ast.stmt]:
        place, value = tree.children
        target, kind = self._variable(place)  # type: ignore[arg-type]
        return [ast.Assign([target], self.of_kind(value, kind))]  # type: ignore[arg-type]

    def _do_add(self, tree: Tree[Token]) -> list[ast.stmt]:
        place, value = tree.children
        target, kind = self._variable(place)  # type: ignore[arg-type]
        before = self._read(place)  # type: ignore[arg-type]
        more = self.of_kind(value, kind)  # type: ignore[arg-type]
        after = call("join", before, more) if kind == STRING else wrapped(ast.BinOp(before, ast.Add(), more))
        return [ast.Assign([target], after)]

    def _do_store(self, tree: Tree[Token]) -> list[ast.stmt]:
        place, value = tree.children
        token, *keys = place.children  # type: ignore[union-attr]
        keys = [key for key in keys if key is not None]
        if str(token) in self.declared.aggregates:
            return [self._sampled(token, keys, self.of_kind(value, INT))]  # type: ignore[arg-type]
        self._bag(token)
        stored = self.scalar(value)  # type: ignore[arg-type]
        known = self.declared.bags[str(token)]
        if known is not None and stored.kind != known:
            raise fault(value, f"{token} has {known} elsewhere, and {stored.kind} here")
        self.declared.bags[str(token)] = stored.kind
        return self._stored(token, self.bag_keys(token, keys), stored.node)  # type: ignore[arg-type]

    def _do_increment(self, tree: Tree[Token]) -> list[ast.stmt]:
        (place,) = tree.children
        token, *keys = place.children  # type: ignore[union-attr]
        if str(token) in self.declared.aggregates:
            return self._counted(token, [key for key in keys if key is not None])
        target, kind = self._variable(place)  # type: ignore[arg-type]
        if kind != INT:
            raise fault(tree, f"{token} is a string")
        return [ast.Assign([target], wrapped(ast.BinOp(self._read(place), ast.Add(), ast.Constant(1))))]  # type: ignore[arg-type]

    def _do_break(self, tree: Tree[Token]) -> list[ast.stmt]:
        return [self._in_loop(tree, ast.Break())]

    def _do_continue(self, tree: Tree[Token]) -> list[ast.stmt]:
        return [self._in_loop(tree, ast.Continue())]

    def _in_loop(self, tree: Tree[Token], node: ast.stmt) -> ast.stmt:
        if not self._loops:
            raise fault(tree, f"{tree.data} stands in no loop")
        return node

    def _do_if(self, tree: Tree[Token]) -> list[ast.stmt]:
        condition, then, otherwise = tree.children
        test = self.truth(condition)  # type: ignore[arg-type]
        body = self.block(then)  # type: ignore[arg-type]
        orelse: list[ast.stmt] = []
        if isinstance(otherwise, Tree):
            orelse = self._do_if(otherwise) if otherwise.data == "if" else self.block(otherwise)
        return [ast.If(test, body or [ast.Pass()], orelse)]

    def _do_try(self, tree: Tree[Token]) -> list[ast.stmt]:
        with self._nesting(tree):
            tried, caught = (self.block(child) or [ast.Pass()] for child in tree.children)  # type: ignore[arg-type]
        faults = ast.Tuple([name("FiringFault"), name("AttributeError")], ast.Load())
        return [ast.Try(tried, [ast.ExceptHandler(faults, None, caught)], [], [])]

    def _do_while(self, tree: Tree[Token]) -> list[ast.stmt]:
        condition, block = tree.children
        test = self.truth(condition)  # type: ignore[arg-type]
        return [ast.While(test, self._looped(block), [])]  # type: ignore[arg-type]

    def _do_for(self, tree: Tree[Token]) -> list[ast.stmt]:
        """Take the step before each round but the first, so that `continue` takes it too."""
        first, condition, step, block = tree.children
        with self._scope():
            begin = self._statement(first)  # type: ignore[arg-type]
            self._made += 1
            goes_on = f"round{self._made}"
            leave = ast.If(ast.UnaryOp(ast.Not(), self.truth(condition)), [ast.Break()], [])  # type: ignore[arg-type]
            stepped = ast.If(name(goes_on), self._statement(step), [])  # type: ignore[arg-type]
            marked = assign(goes_on, ast.Constant(1))
            body = [stepped, marked, leave, *self._looped(block)]  # type: ignore[arg-type]
        zero = assign(goes_on, ast.Constant(0))
        return [*begin, zero, ast.While(ast.Constant(1), body, [])]

    def _do_foreach(self, tree: Tree[Token]) -> list[ast.stmt]:
        token, of, block = tree.children
        items = self.compile(of)  # type: ignore[arg-type]
        if items.kind.name != "list":
            raise fault(of, f"foreach goes through a list, and this is {items.kind}")
        kind = items.kind.of[0]
        with self._scope():
            local = self._local(token, kind)  # type: ignore[arg-type]
            taken = assign(local, from_record(name(local), kind))
            body = [taken, *self._looped(block)]  # type: ignore[arg-type]
        return [ast.For(ast.Name(local, ast.Store()), items.node, body, [])]

    def _looped(self, block: Tree[Token]) -> list[ast.stmt]:
        """Return the body of a loop, each round of which counts its steps."""
        self.has_loops = True
        before = self.nodes
        self._loops += 1
        with self._nesting(block):
            body = self.block(block)
        self._loops -= 1
        cost = ast.Constant(self.nodes - before + 1)
        counted = assign("steps", ast.BinOp(name("steps"), ast.Add(), cost))
        over = ast.Compare(name("steps"), [ast.Gt()], [name("STEPS_BOUND")])
        return [counted, ast.If(over, [ast.Raise(call("OutOfSteps"), None)], []), *body]

    def _do_call(self, tree: Tree[Token]) -> list[ast.stmt]:
        function, *given = tree.children
        arguments = [each for each in given if each is not None]
        does: Callable[..., ast.expr] | None = {
            "print": self._print,
            "printa": self._of_aggregate,
            "clear": self._of_aggregate,
            "delete": self._delete,
            "exit": self._exit,
        }.get(str(function))
        if does is None:
            raise fault(tree, f"{function} does nothing by itself")
        return [ast.Expr(does(tree, arguments))]

    def _print(self, tree: Tree[Token], arguments: Sequence[Tree[Token]]) -> ast.expr:
        form = arguments[0].children[0] if arguments and arguments[0].data == "literal" else None
        if not isinstance(form, Token) or form.type != "STRING":
            raise fault(tree, 'print takes a format first: print("%d of %s", count, group)')
        template = text_of(form)
        wanted = [found for found in _CONVERSION.findall(template) if found != "%"]
        if "%" in _CONVERSION.sub("", template):
            raise fault(form, "a format has %d, %x and %s, and %% for the sign")
        values = [self.scalar(each) for each in arguments[1:]]
        if len(values) != len(wanted):
            raise fault(tree, f"the format has room for {len(wanted)} values, and {len(values)} are given")
        for conversion, value, argument in zip(wanted, values, arguments[1:], strict=True):
            if value.kind != (STRING if conversion.endswith("s") else INT):
                raise fault(argument, f"%{conversion} is not for this, which is {value.kind}")
        nodes: list[ast.expr] = [value.node for value in values]
        filled = ast.BinOp(ast.Constant(template), ast.Mod(), ast.Tuple(nodes, ast.Load()))
        return of_run("print", self.now(), filled)

    def _of_aggregate(self, tree: Tree[Token], arguments: Sequence[Tree[Token]]) -> ast.expr:
        function = str(tree.children[0])
        if len(arguments) != 1 or arguments[0].data != "name":
            raise fault(tree, f"{function} takes an aggregate")
        aggregate = str(arguments[0].children[0])
        if aggregate not in self.declared.aggregates:
            raise fault(arguments[0], f"{aggregate} is no aggregate")
        if function == "printa":
            return of_run("print_aggregate", self.now(), ast.Constant(aggregate))
        return of_run("clear", ast.Constant(aggregate))

    def _delete(self, tree: Tree[Token], arguments: Sequence[Tree[Token]]) -> ast.expr:
        if len(arguments) != 1 or arguments[0].data != "index":
            raise fault(tree, "delete takes what is to go: delete(bag[key])")
        bag, *keys = arguments[0].children
        self._bag(bag)
        return of_run("delete", ast.Constant(str(bag)), self.bag_keys(bag, keys).taken)  # type: ignore[arg-type]

    def _exit(self, tree: Tree[Token], arguments: Sequence[Tree[Token]]) -> ast.expr:
        if arguments:
            raise fault(tree, "exit takes nothing")
        return of_run("end")

    def _sampled(self, token: Any, keys: list[Any], sample: ast.expr) -> ast.stmt:
        """Note a sample, which is summed with others."""
        self._sampling += 1
        known = self.known_or_taken(self.aggregate_keys(token, keys), "samples", token)
        noted = ast.Subscript(name(self.keep("noted", token)), known, ast.Load())
        return ast.Expr(ast.Call(ast.Attribute(noted, "append", ast.Load()), [sample], []))

    def _stored(self, token: Any, keys: KeyNodes, value: ast.expr) -> list[ast.stmt]:
        """Put a value into a bag: in place where its key is there already."""
        bag = name(self.keep("bag", token))
        key = ast.NamedExpr(ast.Name("key", ast.Store()), keys.taken if keys.raw is None else keys.raw)
        place = ast.Subscript(bag, name("key"), ast.Store())
        return [
            ast.If(
                ast.Compare(key, [ast.In()], [bag]),
                [ast.Assign([place], value)],
                [ast.Expr(self.of_kept("put", token, keys.seen_in("key"), value))],
            )
        ]

    def _counted(self, token: Any, keys: list[Any]) -> list[ast.stmt]:
        """Count a sample of 1: in place where its key is there already."""
        nodes = self.aggregate_keys(token, keys)
        taken, known, before = nodes.taken, nodes.raw, list[ast.stmt]()
        if known is None and keys:
            before, taken, known = [assign("key", taken)], name("key"), name("key")
        place = ast.Subscript(name(self.keep("ones", token)), known or taken, ast.Store())
        new = ast.ExceptHandler(name("KeyError"), None, [ast.Expr(self.of_kept("count", token, taken))])
        return [*before, ast.Try([ast.AugAssign(place, ast.Add(), ast.Constant(1))], [new], [], [])]

    def _variable(self, place: Tree[Token]) -> tuple[ast.expr, ValueKind]:
        """Return a variable that is set."""
        token, *keys = place.children
        identifier = str(token)
        if keys and keys[0] is not None:
            raise fault(place, f"{identifier}[...] takes <-")
        if identifier in self.locals:
            local, kind = self.locals[identifier]
            if kind not in (INT, STRING):
                raise fault(place, f"{identifier} is not set: it goes through a list")
            return ast.Name(local, ast.Store()), kind
        if identifier in self.declared.variables:
            number, kind = self.declared.variables[identifier]
            return variable(number, ast.Store()), kind
        raise fault(place, f"{identifier} is no variable")

    def _read(self, place: Tree[Token]) -> ast.expr:
        read: Typed = self._name(place)
        return read.node
