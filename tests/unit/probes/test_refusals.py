"""What is refused, where, and how it is said."""

from __future__ import annotations

import pytest

from controller.probes.grammar import NESTING_BOUND, ScriptFault
from controller.probes.script import CLAUSES_BOUND
from controller.probes.statements import LOOPS_BOUND, STATIC_STEPS

from .conftest import probe_of


@pytest.mark.parametrize(
    ("script", "line", "column", "text"),
    [
        ("begin {", 1, 8, "the script ends too early"),
        ("begin { 3; }", 1, 9, "'3' is not expected here"),
        ("begin { int x = $; }", 1, 17, "'$' is not expected here"),
        ("\n  app:event:Paket { }", 2, 3, "there is no point app:event:Paket; did you mean app:event:Packet?"),
        ("nothing:at:all { }", 1, 1, "there is no point nothing:at:all"),
        (
            'app:event:Packet { print("%d", size); }',
            1,
            32,
            "nothing is called size here; the points have colour, data",
        ),
        ('app:event:Packet { print("%s", secret); }', 1, 32, "nothing is called secret here"),
        ('begin { print("%d", dpid); }', 1, 21, "nothing is called dpid here"),
        ('*:*:* { print("%d", xid); }', 1, 21, "nothing is called xid here; the points have dpid"),
        ("app:event:Packet when (data) { }", 1, 24, "an integer is wanted here, and this is octets"),
        (
            'app:event:Packet { foreach (p in parts) { print("%s", p.text); } }',
            1,
            55,
            "Small or Large has no field text",
        ),
        ('begin { int x = 1; print("%d", x.y); }', 1, 32, "an integer has no fields"),
        ("begin { int x = 1; int x = 2; }", 1, 24, "x stands for something else here"),
        ("int len;", 1, 5, "len stands for something else already"),
        ('int a = "b";', 1, 9, "int is declared, and this is string"),
        ('int a; begin { a = "b"; }', 1, 20, "an integer is wanted here, and this is a string"),
        ("string s; begin { s++; }", 1, 19, "s is a string"),
        ("begin { a = 1; }", 1, 9, "a is no variable"),
        ("bag b; begin { b = 1; }", 1, 16, "b is no variable"),
        ("bag b; begin { b[1] = 1; }", 1, 16, "b[...] takes <-"),
        ('bag b; begin { b[1] <- 1; b[2] <- "x"; }', 1, 35, "b has int elsewhere, and string here"),
        ('bag b; begin { print("%s", b[1]); b[2] <- 1; }', 1, 28, "%s is not for this, which is int"),
        ("bag b; begin { b[1] <- 1; delete(b[1, 2]); }", 1, 34, "the keys of b are int elsewhere, and int, int here"),
        ("bag b; begin { b[1,2,3,4,5] <- 1; }", 1, 16, "a bag has 1 to 4 keys, not 5"),
        ("bag b; begin { b <- 1; }", 1, 16, "a bag has 1 to 4 keys, not 0"),
        ("aggr a[1][1]; begin { a[1]++; }", 1, 23, "the keys of a are declared as int, string, and int here"),
        ("aggr a[1][0]; begin { int x = a[1]; }", 1, 31, "a is an aggregate, which is not read"),
        ("aggr a[5][4];", 1, 1, "an aggregate has keys of 8 parts at most"),
        ("begin { break; }", 1, 9, "break stands in no loop"),
        ("begin { print(x); }", 1, 9, "print takes a format first"),
        ('begin { print("%n"); }', 1, 15, "a format has %d, %x and %s"),
        ('begin { print("%d"); }', 1, 9, "the format has room for 1 values, and 0 are given"),
        ('begin { len("a"); }', 1, 9, "len does nothing by itself"),
        ("begin { int x = exit(); }", 1, 17, "exit gives no value"),
        ('begin { int x = system("ls"); }', 1, 17, "no function system"),
        ("begin { int x = u8(1, 2); }", 1, 20, "u8 takes octets here, and this is an integer"),
        ("begin { int x = min(1); }", 1, 17, "min takes 2 arguments, not 1"),
        ("app:event:Packet sample 2/3 { }", 1, 18, "sampling is 1 in a number from 1 on"),
        ("app:event:Packet sample 1/0 { }", 1, 18, "sampling is 1 in a number from 1 on"),
        ("begin { int x = 123456789012345678901; }", 1, 17, "an integer has at most 20 digits"),
        ("begin { foreach (x in 3) { } }", 1, 23, "foreach goes through a list, and this is int"),
        ("app:event:Packet { foreach (p in parts) { p = 1; } }", 1, 43, "p is not set: it goes through a list"),
    ],
)
def test_a_fault_is_told_with_its_place(script: str, line: int, column: int, text: str):
    with pytest.raises(ScriptFault) as told:
        probe_of(script)
    assert (told.value.line, told.value.column) == (line, column), told.value
    assert text in told.value.text


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("begin { int x = " + "-1+" * (NESTING_BOUND + 1) + "1; }", "things lie in each other"),
        ("begin { int x = " + "!" * (NESTING_BOUND + 1) + "1; }", "things lie in each other"),
        ("begin { " + "while (1) { " * (LOOPS_BOUND + 1) + "}" * (LOOPS_BOUND + 2), "loops and tries"),
        ("begin { } " * (CLAUSES_BOUND + 1), "clauses"),
        ("begin { " + 'print("a"); ' * (STATIC_STEPS + 1) + "}", "steps"),
        ("//" + "a" * 70_000, "characters"),
        ("".join(f"int v{number}; " for number in range(300)), "names"),
    ],
)
def test_what_is_too_much_is_refused(script: str, text: str):
    with pytest.raises(ScriptFault, match=text):
        probe_of(script)


def test_the_deepest_that_is_allowed_can_be_run():
    probe = probe_of("begin { " + "while (1) { " * LOOPS_BOUND + "}" * (LOOPS_BOUND + 1))
    probe.begin(0)
    assert probe.run.faults == {"out of steps": 1}


@pytest.mark.parametrize("word", ["__class__", "_fields", "count", "index", "_replace", "__init__"])
def test_only_fields_are_seen(word: str):
    for script in (
        f'app:event:Packet {{ print("%s", str({word})); }}',
        f"app:event:Packet {{ foreach (p in parts) {{ int x = p.{word}; }} }}",
    ):
        with pytest.raises(ScriptFault):
            probe_of(script)
