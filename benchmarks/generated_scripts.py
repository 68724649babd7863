"""Probe scripts that nobody wrote: made by chance from the grammar, most of them right, and changed by chance."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from controller.probes.points import ProbePoint
from controller.probes.value_kinds import ValueKind, fields_of

FUNCTIONS_OF_INT = (
    "min(%s, %s)",
    "max(%s, %s)",
    "(%s ? %s : 3)",
    "%s + %s",
    "%s - %s",
    "%s * %s",
    "%s / %s",
    "%s %% %s",
)
COMPARED = (
    "%s == %s",
    "%s < %s",
    "%s >= %s && 1",
    "!%s || %s",
    "(%s & %s)",
    "(%s ^ ~%s)",
    "(%s << %s)",
    "(%s >> %s)",
)
MANGLED = '{}()[];,"<-+=!&|^~%?:.0123456789abcdefxyz \n$\u00e9'
WORDS = (
    *("begin", "end", "int", "string", "bag", "aggr", "if", "else", "while", "for", "foreach", "in", "try", "catch"),
    *(
        "break",
        "continue",
        "when",
        "sample",
        "exit()",
        "printa(a1)",
        "delete(b1[1])",
        "<-",
        "++",
        "+=",
        "now_ns",
        "dpid",
    ),
    *(
        "__class__",
        "__builtins__",
        "has(b1, 1)",
        "u32(data, 99999)",
        "9999999999999999999",
        "1/0",
        "{",
        "}",
        ";",
        "(",
    ),
)


class ScriptMaker:
    """Makes scripts over some points.

    Parameters
    ----------
    chance
        Draws everything.
    points
        Where clauses may look.
    """

    def __init__(self, chance: Random, points: list[ProbePoint]) -> None:
        self._chance = chance
        self._points = points
        self._numbers: list[str] = []
        self._texts: list[str] = []
        self._octets: list[str] = []
        self._lists: list[str] = []
        self._made = 0
        self._in_loop = False

    def script(self) -> str:
        """Return a script that should be taken."""
        clauses = "\n".join(self._clause() for _ in range(self._chance.randint(1, 4)))
        return (
            f'bag b1; bag b2; aggr a1[1][0]; aggr a2[0][1]; aggr a3[0][0]; int g1 = 3; string g2 = "x";\n{clauses}\n'
        )

    def changed(self, script: str) -> str:
        """Return a script with a few changes, most of which make it wrong."""
        chance = self._chance
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(script) + 1)
            match chance.randrange(4):
                case 0:
                    script = script[:at] + script[at + chance.randint(1, 8) :]
                case 1:
                    script = script[:at] + chance.choice(MANGLED) + script[at:]
                case 2:
                    script = script[:at] + " " + chance.choice(WORDS) + " " + script[at:]
                case _:
                    other = chance.randrange(len(script) + 1)
                    script = script[:at] + script[other : other + 30] + script[at:]
        return script

    def _clause(self) -> str:
        chance = self._chance
        if chance.random() < 0.2:
            where, fields = chance.choice(("begin", "end")), {}
        else:
            point = chance.choice(self._points)
            where, fields = point.name, fields_of(point.record)
        self._numbers = ["now_ns", "time_s", "g1", *self._named(fields, "int")]
        self._texts = ["point", "app", "g2", *self._named(fields, "string")]
        self._octets = self._named(fields, "octets")
        self._lists = self._named(fields, "list")
        condition = f" when ({self._number(2)})" if chance.random() < 0.3 else ""
        sampling = (
            f" sample 1/{chance.randint(1, 5)}" if where not in ("begin", "end") and chance.random() < 0.2 else ""
        )
        return f"{where}{sampling}{condition} {self._block(3)}"

    def _named(self, fields: dict[str, ValueKind], kind: str) -> list[str]:
        return [name for name, each in fields.items() if each.name == kind]

    def _block(self, depth: int) -> str:
        numbers, texts = list(self._numbers), list(self._texts)
        body = " ".join(self._statement(depth) for _ in range(self._chance.randint(1, 3)))
        self._numbers, self._texts = numbers, texts
        return "{ " + body + " }"

    def _statement(self, depth: int) -> str:
        plain: list[Callable[[], str]] = [
            lambda: f"b1[{self._number(1)}] <- {self._number(2)};",
            lambda: f"b2[{self._text(1)}, {self._number(1)}] <- {self._text(1)};",
            lambda: f"a1[{self._number(1)}] <- {self._number(2)};",
            lambda: f"a2[{self._text(1)}]++;",
            lambda: "a3++;",
            lambda: f"g1 = {self._number(2)};",
            lambda: f"g2 += {self._text(1)};",
            lambda: f'print("%d %s", {self._number(2)}, {self._text(1)});',
            lambda: f"delete(b1[{self._number(1)}]);",
            lambda: "printa(a1);",
            lambda: "clear(a2);",
            self._declared,
        ]
        deep: list[Callable[[], str]] = [
            lambda: f"if ({self._number(2)}) {self._block(depth - 1)} else {self._block(depth - 1)}",
            lambda: f"try {self._block(depth - 1)} catch {self._block(depth - 1)}",
            lambda: f"while ({self._number(1)}) {self._looped(depth)}",
            lambda: f"for (g1 = 0; g1 < {self._chance.randint(0, 9)}; g1++) {self._looped(depth)}",
            lambda: self._each(depth),
        ]
        if self._in_loop and self._chance.random() < 0.1:
            return self._chance.choice(("break;", "continue;"))
        return self._chance.choice(plain if depth <= 0 else plain + deep)()

    def _declared(self) -> str:
        self._made += 1
        if self._chance.random() < 0.5:
            said = f"int n{self._made} = {self._number(2)};"
            self._numbers.append(f"n{self._made}")
        else:
            said = f"string t{self._made} = {self._text(1)};"
            self._texts.append(f"t{self._made}")
        return said

    def _looped(self, depth: int) -> str:
        before, self._in_loop = self._in_loop, True
        block = self._block(depth - 1)
        self._in_loop = before
        return block

    def _each(self, depth: int) -> str:
        if not self._lists:
            return "a3 <- 1;"
        self._made += 1
        return f"foreach (e{self._made} in {self._chance.choice(self._lists)}) {self._looped(depth)}"

    def _number(self, depth: int) -> str:
        chance = self._chance
        if depth <= 0 or chance.random() < 0.4:
            return (
                chance.choice(self._numbers) if chance.random() < 0.6 else str(chance.choice((0, 1, 7, 255, 1 << 62)))
            )
        found = [
            *(
                lambda form=form: form % (self._number(depth - 1), self._number(depth - 1))
                for form in FUNCTIONS_OF_INT
            ),
            *(lambda form=form: form % (self._number(depth - 1), self._number(depth - 1)) for form in COMPARED),
            lambda: f"log2({self._number(depth - 1)})",
            lambda: f"len({self._text(depth - 1)})",
            lambda: f"b1[{self._number(depth - 1)}]",
            lambda: f"has(b2, {self._text(depth - 1)}, {self._number(depth - 1)})",
            lambda: f"u16({chance.choice(self._octets)}, {self._number(depth - 1)})" if self._octets else "1",
        ]
        return f"({chance.choice(found)()})"

    def _text(self, depth: int) -> str:
        chance = self._chance
        if depth <= 0 or chance.random() < 0.5:
            return chance.choice(self._texts) if chance.random() < 0.7 else '"a\\n%"'
        found = [
            lambda: f"{self._text(depth - 1)} + {self._text(depth - 1)}",
            lambda: f"str({self._number(depth - 1)})",
            lambda: f"ip({chance.choice(self._octets)})" if self._octets else '"-"',
            lambda: f"mac({chance.choice(self._octets)})" if self._octets else '"-"',
        ]
        return chance.choice(found)()
