"""Expressions of scripts: their kinds are checked, and they are made into a closed set of Python's syntax nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lark import Token, Tree

from controller.probes import runtime
from controller.probes.grammar import ScriptFault
from controller.probes.points import StackSample
from controller.probes.syntax_nodes import call, divided, from_record, name, taken_as, variable, wrapped
from controller.probes.value_kinds import INT, OCTETS, STRING, ValueKind, common_fields

MOST_DIGITS = 20
"""Digits of an integer that is written out."""

MOST_KEYS = 4
"""Keys of a bag."""


class Typed(NamedTuple):
    """A compiled expression and the kind of its values.

    `raw` is the field of a record that it reads, as it is; `unbound` an integer before it is held by 64 bits.
    """

    node: ast.expr
    kind: ValueKind
    raw: ast.expr | None = None
    unbound: ast.expr | None = None


class KeyNodes(NamedTuple):
    """Keys as scripts see them, and, where all are fields of records, `raw`: as these have them.

    One key is kept as it is, and several or none as a tuple.
    What equals a key that is there already is that key, whatever else it is: it is found without a look at it.
    """

    taken: ast.expr
    raw: ast.expr | None
    kinds: tuple[ValueKind, ...]

    def seen_in(self, identifier: str) -> ast.expr:
        """Return keys as scripts see them, of a name that has them as records do, or as scripts see them already."""
        if self.raw is None:
            return name(identifier)
        if len(self.kinds) == 1:
            return taken_as(name(identifier), self.kinds[0])
        parts = (ast.Subscript(name(identifier), ast.Constant(at), ast.Load()) for at in range(len(self.kinds)))
        return ast.Tuple([taken_as(part, kind) for part, kind in zip(parts, self.kinds, strict=True)], ast.Load())


class AggregateShape(NamedTuple):
    """How many integers, and then strings, the keys of an aggregate have."""

    integers: int
    strings: int


class Declared:
    """What a script declares: global variables by number, aggregates, and bags with the kinds that stores show."""

    def __init__(self) -> None:
        self.variables: dict[str, tuple[int, ValueKind]] = {}
        self.aggregates: dict[str, AggregateShape] = {}
        self.bags: dict[str, ValueKind | None] = {}
        self.bag_keys: dict[str, tuple[ValueKind, ...]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.variables or name in self.aggregates or name in self.bags


class Function(NamedTuple):
    """A function that scripts call: what carries it out, the kinds that each argument may have, and its own."""

    does: Callable[..., Any]
    takes: tuple[tuple[ValueKind, ...], ...]
    gives: ValueKind


_ADDRESS = (OCTETS,)
FUNCTIONS: Mapping[str, Function] = {
    "ip": Function(runtime.ip_text, ((OCTETS, INT),), STRING),
    "mac": Function(runtime.mac_text, (_ADDRESS,), STRING),
    "prefix": Function(runtime.prefix_text, (_ADDRESS, (INT,)), STRING),
    "u8": Function(runtime.unsigned(1), ((OCTETS,), (INT,)), INT),
    "u16": Function(runtime.unsigned(2), ((OCTETS,), (INT,)), INT),
    "u32": Function(runtime.unsigned(4), ((OCTETS,), (INT,)), INT),
    "min": Function(min, ((INT,), (INT,)), INT),
    "max": Function(max, ((INT,), (INT,)), INT),
    "log2": Function(runtime.log2_floor, ((INT,),), INT),
}
AMBIENT: Mapping[str, ValueKind] = {"now_ns": INT, "time_s": INT, "app": STRING, "point": STRING}
"""What is known at every point."""

WORDS = frozenset({*FUNCTIONS, *AMBIENT, "len", "str", "has", "print", "printa", "clear", "delete", "exit", "stack"})
"""Names that mean something: nothing else is declared by them."""

HELPERS: dict[str, Any] = {
    **{f"call_{name}": each.does for name, each in FUNCTIONS.items()},
    "call_stack": runtime.stack_text,
    **{
        name: getattr(runtime, name)
        for name in (
            *("wrap", "divide", "remainder", "shift_left", "shift_right", "join"),
            *("as_int", "as_text", "as_present", "as_decimal", "as_hex", "name_of"),
            *("FiringFault", "OutOfSteps", "STEPS_BOUND", "STEPS_TOGETHER"),
        )
    },
    "AttributeError": AttributeError,
    "Exception": Exception,
    "KeyError": KeyError,
    "int": int,
    "len": len,
    "text": str,
    "type": type,
}
"""All that compiled scripts can reach by name."""

_ARITHMETIC = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor}
_CALLED = {"/": "divide", "%": "remainder", "<<": "shift_left", ">>": "shift_right"}
_DIVIDED = {"/": ast.FloorDiv, "%": ast.Mod}
"""What does the same where nothing is negative."""
_COMPARED = {"==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def fault(at: Tree[Token] | Token, text: str) -> ScriptFault:
    """Return a fault with the place of a part of the script."""
    where: Any = at if isinstance(at, Token) else at.meta
    return ScriptFault(text, getattr(where, "line", 1), getattr(where, "column", 1))


def text_of(token: Token | str) -> str:
    """Return what a literal string says."""
    found, inside = [], str(token)[1:-1]
    position = 0
    while position < len(inside):
        two = inside[position : position + 2]
        found.append(_ESCAPES.get(two, inside[position]))
        position += 2 if two in _ESCAPES else 1
    return "".join(found)[: runtime.TEXT_BOUND]


def integer_of(token: Token) -> int:
    """Return an integer that is written out."""
    if len(token) > MOST_DIGITS:
        raise fault(token, f"an integer has at most {MOST_DIGITS} digits")
    return int(token, 16) if token.type == "HEX" else int(token)


def literal_of(tree: Tree[Token]) -> tuple[int | str, ValueKind]:
    """Return the value of a literal, which may have a sign."""
    *sign, token = (child for child in tree.children if isinstance(child, Token))
    if token.type == "STRING":
        return text_of(token), STRING
    return runtime.wrap(integer_of(token) * (-1 if sign == ["-"] else 1)), INT


class Expressions:
    """Compiles the expressions of one clause.

    Parameters
    ----------
    declared
        What the script declares.
    records
        The types of what its points give, empty where they give nothing.
    """

    def __init__(self, declared: Declared, records: Sequence[type]) -> None:
        self.declared = declared
        self.locals: dict[str, tuple[str, ValueKind]] = {}
        self.nodes = 0
        self.reads_clock = False
        """Whether something depends on the time."""
        self.kept: dict[str, tuple[str, str]] = {}
        """What is looked up in the run once: by its name, the method that returns it for a bag or aggregate."""
        self._fields = common_fields(records) if records else {}
        self._is_profile = tuple(records) == (StackSample,)

    def compile(self, tree: Tree[Token]) -> Typed:
        """Return an expression, checked."""
        self.nodes += 1
        found: Typed = getattr(self, f"_{tree.data}")(tree)
        return found

    def of_kind(self, tree: Tree[Token], kind: ValueKind) -> ast.expr:
        """Return an expression that must have a kind."""
        return self.kind_is(tree, self.compile(tree), kind)

    def kind_is(self, tree: Tree[Token], found: Typed, kind: ValueKind) -> ast.expr:
        """Return a compiled expression that must have a kind."""
        if found.kind != kind:
            raise fault(tree, f"{_a(kind)} is wanted here, and this is {_a(found.kind)}")
        return found.node

    def scalar(self, tree: Tree[Token]) -> Typed:
        """Return an expression that must be an integer or a string."""
        found = self.compile(tree)
        if found.kind not in (INT, STRING):
            raise fault(tree, f"an integer or a string is wanted here, and this is {_a(found.kind)}")
        return found

    def truth(self, tree: Tree[Token]) -> ast.expr:
        """Return an integer as a condition; of a comparison, without a detour over 1 and 0."""
        node = self.of_kind(tree, INT)
        is_flag = isinstance(node, ast.IfExp) and _is_constant(node.body, 1) and _is_constant(node.orelse, 0)
        return node.test if is_flag else node  # type: ignore[attr-defined]

    def bag_keys(self, bag: Token, trees: Sequence[Tree[Token]]) -> KeyNodes:
        """Return keys of a bag, which have the kinds that they had where it was first used."""
        if not 1 <= len(trees) <= MOST_KEYS:
            raise fault(bag, f"a bag has 1 to {MOST_KEYS} keys, not {len(trees)}")
        keys = [self.scalar(tree) for tree in trees]
        kinds = tuple(key.kind for key in keys)
        known = self.declared.bag_keys.setdefault(str(bag), kinds)
        if kinds != known:
            raise fault(bag, f"the keys of {bag} are {_list(known)} elsewhere, and {_list(kinds)} here")
        return _keys(keys)

    def aggregate_keys(self, aggregate: Token, trees: Sequence[Tree[Token]]) -> KeyNodes:
        """Return keys of an aggregate, as it is declared."""
        shape = self.declared.aggregates[str(aggregate)]
        keys = [self.scalar(tree) for tree in trees]
        wanted = (INT,) * shape.integers + (STRING,) * shape.strings
        kinds = tuple(key.kind for key in keys)
        if kinds != wanted:
            declared = _list(wanted)
            raise fault(aggregate, f"the keys of {aggregate} are declared as {declared}, and {_list(kinds)} here")
        return _keys(keys)

    def known_or_taken(self, keys: KeyNodes, method: str, kept: Any) -> ast.expr:
        """Return keys for what a run keeps by them: as they are in the record, where it has something by these."""
        if keys.raw is None:
            return keys.taken
        known = ast.NamedExpr(ast.Name("known", ast.Store()), keys.raw)
        is_there = ast.Compare(known, [ast.In()], [name(self.keep(method, kept))])
        return ast.IfExp(is_there, name("known"), keys.seen_in("known"))

    # Each kind of expression, by its name in the grammar

    def _literal(self, tree: Tree[Token]) -> Typed:
        value, kind = literal_of(tree)
        return Typed(ast.Constant(value), kind)

    def _name(self, tree: Tree[Token]) -> Typed:
        identifier = str(tree.children[0])
        if identifier in self.locals:
            local, kind = self.locals[identifier]
            return Typed(name(local), kind)
        if identifier in self.declared.variables:
            number, kind = self.declared.variables[identifier]
            return Typed(variable(number), kind)
        if identifier in AMBIENT:
            return Typed(self._ambient(identifier), AMBIENT[identifier])
        if identifier in self._fields:
            kind = self._fields[identifier]
            raw = ast.Attribute(name("record"), identifier, ast.Load())
            return Typed(from_record(raw, kind), kind, raw)
        if identifier in self.declared:
            raise fault(tree, f"{identifier} has keys: write {identifier}[...]")
        raise fault(tree, self._unknown(identifier))

    def _ambient(self, identifier: str) -> ast.expr:
        if identifier == "time_s":
            return ast.BinOp(self.now(), ast.FloorDiv(), ast.Constant(1_000_000_000))
        return self.now() if identifier == "now_ns" else name(identifier)

    def now(self) -> ast.expr:
        """Return the time of the firing, which is asked for then."""
        self.reads_clock = True
        return name("now_ns")

    def of_kept(self, method: str, kept: Any, *arguments: ast.expr) -> ast.Call:
        """Return a call of what a run has for a bag or an aggregate."""
        return call(self.keep(method, kept), *arguments)

    def keep(self, method: str, kept: Any) -> str:
        """Return the name of what a method of the run returns for a bag or an aggregate."""
        bound = f"{method}_{kept}"
        self.kept[bound] = method, str(kept)
        return bound

    def _unknown(self, identifier: str) -> str:
        if not self._fields:
            return f"nothing is called {identifier} here"
        return f"nothing is called {identifier} here; the points have {', '.join(sorted(self._fields))}"

    def _field(self, tree: Tree[Token]) -> Typed:
        of, field = self.compile(tree.children[0]), str(tree.children[1])  # type: ignore[arg-type]
        if of.kind.name != "record":
            raise fault(tree, f"{_a(of.kind)} has no fields")
        fields = common_fields(of.kind.of)
        if field not in fields:
            raise fault(tree, f"{of.kind} has no field {field}; it has {', '.join(sorted(fields)) or 'none'}")
        raw = ast.Attribute(of.raw or of.node, field, ast.Load())  # None has no field, which is a fault of its own
        return Typed(from_record(raw, fields[field]), fields[field], raw)

    def _index(self, tree: Tree[Token]) -> Typed:
        bag, *keys = tree.children
        kind = self._bag(bag)
        nodes = self.bag_keys(bag, keys)  # type: ignore[arg-type]
        if nodes.raw is None:
            return Typed(self.of_kept("look_up", bag, nodes.taken), kind or INT)
        taken = self.of_kept("look_up", bag, nodes.seen_in("known"))
        kept = name(self.keep("bag", bag))
        known = ast.NamedExpr(ast.Name("known", ast.Store()), nodes.raw)
        found = ast.Subscript(kept, name("known"), ast.Load())
        return Typed(ast.IfExp(ast.Compare(known, [ast.In()], [kept]), found, taken), kind or INT)

    def _bag(self, token: Any) -> ValueKind | None:
        if str(token) not in self.declared.bags:
            what = "an aggregate, which is not read" if str(token) in self.declared.aggregates else "no bag"
            raise fault(token, f"{token} is {what}")
        return self.declared.bags[str(token)]

    def _choice(self, tree: Tree[Token]) -> Typed:
        condition, first, second = (child for child in tree.children)
        one = self.compile(first)  # type: ignore[arg-type]
        return Typed(ast.IfExp(self.truth(condition), one.node, self.of_kind(second, one.kind)), one.kind)  # type: ignore[arg-type]

    def _or(self, tree: Tree[Token]) -> Typed:
        return _flag(ast.BoolOp(ast.Or(), [self.truth(child) for child in tree.children]))  # type: ignore[arg-type]

    def _and(self, tree: Tree[Token]) -> Typed:
        return _flag(ast.BoolOp(ast.And(), [self.truth(child) for child in tree.children]))  # type: ignore[arg-type]

    def _bit_or(self, tree: Tree[Token]) -> Typed:
        return self._operated(tree.children[0], "|", tree.children[1])

    def _bit_xor(self, tree: Tree[Token]) -> Typed:
        return self._operated(tree.children[0], "^", tree.children[1])

    def _bit_and(self, tree: Tree[Token]) -> Typed:
        return self._operated(tree.children[0], "&", tree.children[1])

    def _equal(self, tree: Tree[Token]) -> Typed:
        first, sign, second = tree.children
        one = self.scalar(first)  # type: ignore[arg-type]
        return _flag(ast.Compare(one.node, [_COMPARED[str(sign)]()], [self.of_kind(second, one.kind)]))  # type: ignore[arg-type]

    def _relation(self, tree: Tree[Token]) -> Typed:
        first, sign, second = tree.children
        compared = _COMPARED[str(sign)]()
        return _flag(ast.Compare(self.of_kind(first, INT), [compared], [self.of_kind(second, INT)]))  # type: ignore[arg-type]

    def _shift(self, tree: Tree[Token]) -> Typed:
        return self._operated(*tree.children)

    def _sum(self, tree: Tree[Token]) -> Typed:
        first, sign, second = tree.children
        if str(sign) == "+":
            one = self.scalar(first)  # type: ignore[arg-type]
            if one.kind == STRING:
                return Typed(call("join", one.node, self.of_kind(second, STRING)), STRING)  # type: ignore[arg-type]
        return self._operated(*tree.children)

    def _product(self, tree: Tree[Token]) -> Typed:
        return self._operated(*tree.children)

    def _operated(self, first: Any, sign: Any, second: Any) -> Typed:
        dividend = self.compile(first)
        one, other = self.kind_is(first, dividend, INT), self.of_kind(second, INT)
        if str(sign) in _DIVIDED and _is_positive(other):
            quotient = divided(one, dividend.unbound, _DIVIDED[str(sign)](), _CALLED[str(sign)], other)
            return Typed(quotient, INT)
        if str(sign) in _CALLED:
            return Typed(call(_CALLED[str(sign)], one, other), INT)
        found = ast.BinOp(one, _ARITHMETIC[str(sign)](), other)
        return Typed(wrapped(found), INT, unbound=found)

    def _unary(self, tree: Tree[Token]) -> Typed:
        sign, of = tree.children
        value = self.of_kind(of, INT)  # type: ignore[arg-type]
        match str(sign):
            case "!":
                return _flag(ast.UnaryOp(ast.Not(), value))
            case "~":
                return Typed(ast.UnaryOp(ast.Invert(), value), INT)
            case "-":
                return Typed(wrapped(ast.UnaryOp(ast.USub(), value)), INT)
        return Typed(value, INT)

    def _call(self, tree: Tree[Token]) -> Typed:
        function, *given = tree.children
        arguments = [each for each in given if each is not None]
        match str(function):
            case "len":
                return self._len(tree, arguments)
            case "str":
                return self._str(tree, arguments)
            case "has":
                return self._has(tree, arguments)
            case "stack":
                return self._stack(tree, arguments)
        known = FUNCTIONS.get(str(function))
        if known is None:
            raise fault(tree, f"{function} gives no value" if str(function) in WORDS else f"no function {function}")
        _check_count(tree, str(function), len(arguments), len(known.takes))
        compiled = [self.compile(each) for each in arguments]  # type: ignore[arg-type]
        for each, kinds, argument in zip(compiled, known.takes, arguments, strict=True):
            if each.kind not in kinds:
                wanted = " or ".join(_a(kind) for kind in kinds)
                raise fault(argument, f"{function} takes {wanted} here, and this is {_a(each.kind)}")
        return Typed(call(f"call_{function}", *(each.node for each in compiled)), known.gives)

    def _len(self, tree: Tree[Token], arguments: Sequence[Any]) -> Typed:
        _check_count(tree, "len", len(arguments), 1)
        of = self.compile(arguments[0])
        if of.kind.name not in ("string", "octets", "list"):
            raise fault(arguments[0], f"{_a(of.kind)} has no length")
        return Typed(call("len", of.node), INT)

    def _str(self, tree: Tree[Token], arguments: Sequence[Any]) -> Typed:
        _check_count(tree, "str", len(arguments), 1)
        of = self.compile(arguments[0])
        does = {"int": "as_decimal", "octets": "as_hex", "record": "name_of"}.get(of.kind.name)
        if of.kind == STRING:
            return of
        if does is None:
            raise fault(arguments[0], f"{_a(of.kind)} is no string")
        return Typed(call(does, of.node), STRING)

    def _has(self, tree: Tree[Token], arguments: Sequence[Any]) -> Typed:
        if not arguments or arguments[0].data != "name":
            raise fault(tree, "has takes a bag and its keys")
        bag = arguments[0].children[0]
        self._bag(bag)
        return Typed(self.of_kept("has", bag, self.bag_keys(bag, arguments[1:]).taken), INT)

    def _stack(self, tree: Tree[Token], arguments: Sequence[Any]) -> Typed:
        if not self._is_profile:
            raise fault(tree, "stack is known at profile points alone, such as multicast:profile:97")
        _check_count(tree, "stack", len(arguments), 1)
        taken = ast.Attribute(name("record"), "stack", ast.Load())
        return Typed(call("call_stack", taken, self.of_kind(arguments[0], INT)), STRING)


def _check_count(tree: Tree[Token], function: str, given: int, wanted: int) -> None:
    if given != wanted:
        raise fault(tree, f"{function} takes {wanted} argument{'s' if wanted > 1 else ''}, not {given}")


def _flag(condition: ast.expr) -> Typed:
    return Typed(ast.IfExp(condition, ast.Constant(1), ast.Constant(0)), INT)


def _is_positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 0


def _is_constant(node: ast.expr, value: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def _keys(keys: Sequence[Typed]) -> KeyNodes:
    taken, kinds = _key([key.node for key in keys]), tuple(key.kind for key in keys)
    raws = [key.raw for key in keys if key.raw is not None]
    return KeyNodes(taken, _key(raws) if keys and len(raws) == len(keys) else None, kinds)


def _key(nodes: list[ast.expr]) -> ast.expr:
    return nodes[0] if len(nodes) == 1 else ast.Tuple(nodes, ast.Load())


def _a(kind: ValueKind) -> str:
    return {"int": "an integer", "string": "a string", "octets": "octets"}.get(kind.name, f"a {kind}")


def _list(kinds: Sequence[ValueKind]) -> str:
    return ", ".join(str(kind) for kind in kinds) or "none"
