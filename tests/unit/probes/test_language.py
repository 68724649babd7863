"""What scripts mean: values, statements, bags, aggregates, points."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.probes import runtime
from controller.probes.findings import document, found
from controller.probes.script import Probe, load

from .conftest import CATALOGUE, Answer, Colour, Packet, printed, run

INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)


def in_64_bits(value: int) -> int:
    return int.from_bytes((value % (1 << 64)).to_bytes(8, "big"), "big", signed=True)


@given(INTEGERS, INTEGERS)
def test_integers_have_64_bits_as_in_c(first: int, second: int):
    script = """
    int a; int b;
    begin { print("%d %d %d %d %d %d", a + b, a - b, a * b, a & b, a | b, a ^ b); }
    begin { print("%d %d %d %d %d", ~a, -a, a << 3, a >> 3, (a < b) + 2 * (a == b) + 4 * (a >= b)); }
    begin { print("%d %d", a / 7, a % 7); }
    begin when (b != 0) { print("%d %d", a / b, a % b); }
    """.replace("int a;", f"int a = {first};").replace("int b;", f"int b = {second};")
    found = [[int(word) for word in line.split()] for line in printed(script)]
    expected = [first + second, first - second, first * second, first & second, first | second, first ^ second]
    assert found[0] == list(map(in_64_bits, expected))
    compared = (first < second) + 2 * (first == second) + 4 * (first >= second)
    assert found[1] == [in_64_bits(~first), in_64_bits(-first), in_64_bits(first << 3), first >> 3, compared]
    for divisor, (quotient, remainder) in zip((7, second), found[2:], strict=False):
        assert in_64_bits(quotient * divisor + remainder) == first
        assert abs(remainder) < abs(divisor) and (not remainder or (remainder < 0) == (first < 0))
    assert len(found) == (4 if second else 3)


def test_operators_bind_as_in_c():
    line = printed('begin { print("%d %d %d %d", 1 + 2 * 3, 1 | 2 == 2, 8 >> 1 + 1, !0 && 1 ? 5 : 6); }')
    assert line == ["7 1 2 5"]


def test_strings_are_joined_compared_and_cut():
    assert printed('begin { string s = "a" + "b"; s += "c"; print("%s %d %d", s, s == "abc", len(s)); }') == [
        "abc 1 3"
    ]
    long = printed(
        'string s = "0123456789abcdef"; begin { for (int i = 0; i < 9; i += 1) { s += s; } print("%d", len(s)); }'
    )
    assert long == [str(runtime.TEXT_BOUND)]


def test_comments_hexadecimal_numbers_and_escapes():
    assert printed('/* a\n comment */ begin { print("%d\\t%x %%", 0x1F, 255); } // end') == ["31\tff %"]


def test_arguments_of_a_point(packet: Packet):
    script = """
    app:event:Packet {
        print("%d %d %s %d %s %s", dpid, u16(data, 2), colour, rate, ip(u32(data, 0)), str(data) == "" ? "-" : point);
        foreach (port in ports) { print("port %d", port); }
        foreach (part in parts) { print("%s %d", str(part), part.number); }
        print("%d %d", len(data), len(parts));
    }
    """
    assert printed(script, packet) == [
        "7 515 red 1 0.1.2.3 app:event:Packet",
        *("port 3", "port 4", "Small 1", "Large 2", "16 2"),
    ]


def test_addresses():
    packet = Packet(1, b"\2\0\0\0\0\1", group=bytes([239, 1, 2, 3]))
    script = 'app:event:Packet { print("%s %s %s", ip(group), prefix(group, 16), mac(data)); }'
    assert printed(script, packet) == ["239.1.2.3 239.1.0.0/16 02:00:00:00:00:01"]


def test_loops_end_and_go_on():
    script = """
    begin {
        for (int i = 0; i < 6; i += 1) { if (i == 1) { continue; } if (i == 4) { break; } print("%d", i); }
        int k = 3;
        while (k > 0) { k += -1; if (k == 1) { continue; } print("k %d", k); }
    }
    """
    assert printed(script) == ["0", "2", "3", "k 2", "k 0"]


def test_variables_end_with_their_block_and_globals_stay():
    script = """
    int total = 5; string last;
    app:event:Packet { int here = dpid; total += here; last = str(here); }
    end { int here = 1; print("%d %s %d", total, last, here); }
    """
    assert printed(script, Packet(2, b""), Packet(3, b"")) == ["10 3 1"]


def test_what_is_missing_is_caught_or_counted():
    script = """
    bag seen;
    app:event:Packet { print("%d", u8(data, 3)); }
    app:event:Packet { try { print("%s", ip(group)); } catch { print("none"); } }
    app:event:Packet { seen[dpid] <- 1 / (dpid - 2); }
    app:event:Packet { print("%d", seen[dpid]); delete(seen[dpid]); }
    """
    probe = run(script, [Packet(2, b"abc"), Packet(3, b"abcd")])
    assert probe.run.printed == ["none", "100", "none", "1"]
    assert probe.run.faults == {"offset beyond the data": 1, "division by zero": 1, "missing key": 1}
    assert probe.run.fired == 8 and probe.run.bags == {"seen": {}}


def test_time_between_two_points_by_key():
    script = """
    aggr wait[1][0]; bag sent;
    app:event:Packet { sent[dpid] <- now_ns; }
    app:effect:Answer when (has(sent, dpid)) { wait[dpid] <- now_ns - sent[dpid]; delete(sent[dpid]); }
    """
    probe = run(script, [Packet(1, b""), Packet(2, b""), Answer(2, 0), Answer(1, 0), Answer(1, 0)])
    rows = {row.keys: (row.count, row.sum, row.histogram) for row in probe.run.rows("wait")}
    assert rows == {(2,): (1, 1000, ((512, 1),)), (1,): (1, 3000, ((2048, 1),))}


def test_aggregates_have_count_sum_bounds_and_histogram():
    script = "aggr sizes[0][1]; app:event:Packet { sizes[colour] <- dpid; }"
    (row,) = document([found(run(script, [Packet(number, b"") for number in (1, 5, 6, 0, -3)]).run)])["aggregates"][
        "sizes"
    ]
    assert (row["keys"], row["count"], row["sum"], row["min"], row["max"]) == (["red"], 5, 9, -3, 6)
    assert row["histogram"] == [[-2, 1], [0, 1], [1, 1], [4, 2]]


def test_an_aggregate_without_keys_is_printed_and_cleared():
    script = "aggr all[0][0]; app:event:Packet { all++; } app:effect:Answer { printa(all); clear(all); }"
    probe = run(script, [Packet(1, b""), Packet(1, b""), Answer(1, 1)])
    assert probe.run.printed == ["all[] count 2 mean 1 min 1 max 1"] and not probe.run.rows("all")


def test_one_in_several_fires():
    script = "aggr all[0][0]; app:event:Packet sample 1/3 { all <- dpid; }"
    (row,) = run(script, [Packet(number, b"") for number in range(1, 11)]).run.rows("all")
    assert (row.count, row.sum) == (3, 3 + 6 + 9)


def test_patterns_look_at_several_points_and_see_what_all_of_them_have():
    script = 'aggr at[0][2]; *:*:* { at[point, app]++; } app:e*:* { print("%d", dpid); }'
    probe = run(script, [Packet(1, b""), Answer(2, 3)])
    assert probe.run.printed == ["1", "2"]
    assert {row.keys for row in probe.run.rows("at")} == {("app:event:Packet", "app"), ("app:effect:Answer", "app")}


def test_a_script_that_exits_ends_once_and_what_is_at_the_end_is_done():
    script = 'app:event:Packet { print("%d", dpid); if (dpid == 2) { exit(); } } end { print("end"); }'
    assert printed(script, *(Packet(number, b"") for number in range(1, 5))) == ["1", "2", "end"]


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runtime, "LINES_BOUND", 3)
    text = 'bag b; aggr a[1][0]; app:event:Packet { b[dpid] <- 1; a[dpid]++; print("%d", dpid); }'
    script = load(text, CATALOGUE)
    probe = Probe(script, script.new_run(keys=2))
    for number in (1, 2, 3, 1, 4):
        probe.fire("app", "event", Packet(number, b""), 0)
    run_ = probe.run
    assert (run_.lost_keys, run_.lost_lines, len(run_.bags["b"]), len(run_.rows("a"))) == (4, 2, 2, 2)
    assert next(row for row in run_.rows("a") if row.keys == (1,)).count == 2


def test_all_bags_share_one_room_which_comes_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runtime, "ROOM_BOUND", 2 * runtime.PAIR_ROOM)
    script = "bag b; bag c; begin { b[1] <- 1; c[1] <- 1; c[2] <- 2; delete(b[1]); b[9] <- 1; }"
    run_ = run(script).run
    assert (run_.lost_keys, run_.bags) == (1, {"b": {9: 1}, "c": {1: 1}})


def test_a_loop_that_does_not_end_is_ended():
    probe = run('begin { while (1) { } } begin { print("next"); }')
    assert probe.run.faults == {"out of steps": 1} and probe.run.printed == ["next"]


def test_nothing_catches_the_want_of_steps():
    assert run("begin { try { while (1) { } } catch { } }").run.faults == {"out of steps": 1}


def test_keys_are_as_scripts_see_them_whatever_a_record_has():
    script = """aggr n[1][0]; aggr sizes[1][0]; bag last;
    app:effect:Answer { n[dpid]++; sizes[dpid] <- xid; last[dpid] <- xid; print("%d", last[dpid]); }"""
    alike: list[Any] = [1, True, 1.0, 1.9, (1 << 64) + 1, 1]
    for records in (alike, alike[::-1], [alike[3], *alike], [alike[4], *alike]):
        found = run(script, [Answer(dpid, 5 + at) for at, dpid in enumerate(records)]).run
        for name in ("n", "sizes"):
            ((row),) = found.rows(name)
            assert (row.keys, type(row.keys[0]), row.count) == ((1,), int, len(records))
        assert found.bags["last"] == {1: 4 + len(records)} and type(next(iter(found.bags["last"]))) is int
        assert found.printed == [str(5 + at) for at in range(len(records))] and not found.faults


def test_keys_that_are_texts_are_as_scripts_see_them_too():
    script = "aggr n[0][1]; app:event:Packet { n[colour]++; }"
    colours: list[Any] = [Colour.RED, "red", "r" * 300, "r" * 400, None, "red"]
    found = run(script, [Packet(1, b"", colour) for colour in colours]).run
    assert {row.keys: row.count for row in found.rows("n")} == {("red",): 3, ("r" * 256,): 2}
    assert all(type(row.keys[0]) is str for row in found.rows("n")[1:]) and dict(found.faults) == {"absent value": 1}


def test_samples_are_all_there_whenever_somebody_looks():
    script = """aggr a[1][0]; aggr b[0][0];
    app:effect:Answer { a[dpid] <- xid - 3; printa(a); b <- xid; if (xid == 2) { clear(b); } }"""
    records = [Answer(7, xid) for xid in range(1300)]
    found = run(script, records).run
    (row,) = found.rows("a")
    assert (row.count, row.sum, row.min, row.max) == (1300, sum(range(-3, 1297)), -3, 1296)
    assert dict(row.histogram) == {-2: 2, -1: 1, 0: 1} | {
        1 << bits: min(1 << bits, 1297 - (1 << bits)) for bits in range(11)
    }
    (row,) = found.rows("b")
    assert (row.count, row.sum, row.min) == (1297, sum(range(3, 1300)), 3)
    assert found.printed[:2] == [
        "a[7] count 1 mean -3 min -3 max -3",
        "a[7] count 2 mean -2.5 min -3 max -2",
    ]


def test_samples_of_loops_are_all_there_also_of_those_that_are_ended():
    script = "aggr a[0][0]; int i; app:effect:Answer { for (i = 0; i < xid; i++) { a <- i; } }"
    found = run(script, [Answer(1, 5), Answer(1, 900), Answer(1, 1 << 40), Answer(1, 2)]).run
    assert dict(found.faults) == {"out of steps": 1}
    (row,) = found.rows("a")
    assert row.count > 5 + 900 + 2 + 900 and row.min == 0


def test_samples_for_which_there_is_no_key_are_counted_each(monkeypatch: pytest.MonkeyPatch):
    text = "aggr a[1][0]; app:effect:Answer { a[dpid] <- xid; }"
    script = load(text, CATALOGUE)
    probe = Probe(script, script.new_run(keys=2))
    for dpid in (1, 2, 3, 1, 3, 4):
        probe.fire("app", "effect", Answer(dpid, 5), 0)
    assert [row.count for row in probe.run.rows("a")] == [2, 1] and probe.run.lost_keys == 3
