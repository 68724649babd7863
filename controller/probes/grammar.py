"""The grammar of probe scripts, and the fault that every refusal is told by: a text with its line and column."""

from __future__ import annotations

from functools import cache

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

SCRIPT_BOUND = 65_536
"""Characters of a script."""

NESTING_BOUND = 128
"""How deep blocks and expressions may lie in each other."""

GRAMMAR = r"""
start: (bag | aggr | variable | clause)*

bag: "bag" NAME ";"
aggr: "aggr" NAME "[" INT "]" "[" INT "]" ";"
variable: TYPE NAME ["=" (literal | signed)] ";"
clause: points [sampling] [filter] block
points: (POINT | BEGIN | END) ("," (POINT | BEGIN | END))*
sampling: "sample" INT "/" INT
filter: "when" "(" _expr ")"

block: "{" _statement* "}"
_statement: _simple ";" | break ";" | continue ";" | if | try | while | for | foreach
break: "break"
continue: "continue"
if: "if" "(" _expr ")" block ["else" (block | if)]
try: "try" block "catch" block
while: "while" "(" _expr ")" block
for: "for" "(" _simple ";" _expr ";" _simple ")" block
foreach: "foreach" "(" NAME "in" _expr ")" block

_simple: declare | set | add | store | increment | call
declare: TYPE NAME "=" _expr
set: place "=" _expr
add: place "+=" _expr
store: place "<-" _expr
increment: place "++"
place: NAME ["[" _expr ("," _expr)* "]"]
call: NAME "(" [_expr ("," _expr)*] ")"

_expr: _ternary
_ternary: _or | choice
choice: _or "?" _expr ":" _ternary
_or: _and | or
or: _or "||" _and
_and: _bit_or | and
and: _and "&&" _bit_or
_bit_or: _bit_xor | bit_or
bit_or: _bit_or "|" _bit_xor
_bit_xor: _bit_and | bit_xor
bit_xor: _bit_xor "^" _bit_and
_bit_and: _equality | bit_and
bit_and: _bit_and "&" _equality
_equality: _relation | equal
equal: _equality EQUAL _relation
_relation: _shift | relation
relation: _relation RELATION _shift
_shift: _sum | shift
shift: _shift SHIFT _sum
_sum: _product | sum
sum: _sum SIGN _product
_product: _unary | product
product: _product FACTOR _unary
_unary: _postfix | unary
unary: (NOT | SIGN | INVERT) _unary
_postfix: _primary | field | index
field: _postfix "." NAME
index: NAME "[" _expr ("," _expr)* "]"
_primary: call | name | literal | "(" _expr ")"
name: NAME
literal: INT | HEX | STRING
signed: SIGN INT

BEGIN: "begin"
END: "end"
TYPE.2: /(int|string)(?=\s)/
POINT.3: /[A-Za-z0-9_*?-]+:[a-z*]+:[A-Za-z0-9_*?.-]+/
EQUAL: "==" | "!="
RELATION: "<=" | ">=" | "<" | ">"
SHIFT.2: "<<" | ">>"
SIGN: "+" | "-"
FACTOR: "*" | "/" | "%"
NOT: "!"
INVERT: "~"
NAME: /[A-Za-z_][A-Za-z0-9_]*/
HEX.2: /0[xX][0-9A-Fa-f]+/
INT: /[0-9]+/
STRING: /"([^"\\\n]|\\[nt"\\])*"/
COMMENT: "//" /[^\n]/* | "/*" /(.|\n)*?/ "*/"

%import common.WS
%ignore WS
%ignore COMMENT
"""


class ScriptFault(ValueError):  # noqa: N818
    """A script is refused; `line` and `column` count from 1."""

    def __init__(self, text: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {text}")
        self.text = text
        self.line = line
        self.column = column


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse(script: str) -> Tree[Token]:
    """Return the tree of a script; ScriptFault says where it ends to be one."""
    if len(script) > SCRIPT_BOUND:
        raise ScriptFault(f"a script has at most {SCRIPT_BOUND:,} characters", 1, 1)
    try:
        tree: Tree[Token] = _parser().parse(script)
    except UnexpectedEOF:
        raise _at_end(script) from None
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise _at_end(script) from None
        raise ScriptFault(f"{str(error.token)!r} is not expected here", error.line, error.column) from None
    except UnexpectedCharacters as error:
        raise ScriptFault(f"{error.char!r} is not expected here", error.line, error.column) from None
    except UnexpectedInput as error:
        raise ScriptFault("this cannot be read", error.line, error.column) from None
    _check_depth(tree)
    return tree


def _check_depth(tree: Tree[Token]) -> None:
    level = [tree]
    for _ in range(NESTING_BOUND):
        level = [child for each in level for child in each.children if isinstance(child, Tree)]
        if not level:
            return
    deepest = level[0].meta
    raise ScriptFault(f"more than {NESTING_BOUND} things lie in each other here", deepest.line, deepest.column)


def _at_end(script: str) -> ScriptFault:
    lines = script.split("\n")
    return ScriptFault("the script ends too early", len(lines), len(lines[-1]) + 1)
