"""`vsrt simulate --overcommit`: its document, its table, packets from a file, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.main import main

SMALL = ("--topology", "avalanche24", "--vms", "100", "--groups", "40", "--group-size", "3:6", "--algorithms", "vsrt")


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        status = main(["simulate", *SMALL, *words])
    except SystemExit as ended:
        status = int(str(ended.code))
    out, err = capsys.readouterr()
    return status, out, err


def test_groups_that_send_in_turn(capsys: pytest.CaptureFixture[str]):
    words = ("--overcommit", "10", "--sessions", "20:120", "--traffic-s", "100")
    status, out, _ = call(capsys, *words, "--json")
    found = json.loads(out)["overcommit"]
    assert status == 0
    assert found["table"] == 10 < found["most_needed"] and found["switches_too_small"] > 0
    assert 0 < found["misses"] < found["packets"] and found["turned_away"] <= found["misses"]
    assert 70 < found["counted_s"] < 76
    assert max(need["alone"] for need in found["needed"].values()) == found["most_needed"]
    lines = call(capsys, *words)[1].splitlines()
    told = next(line for line in lines if line.startswith("Tables of 10 entries"))
    assert f"all groups at once need up to {found['most_needed']}" in told
    assert lines[-1].split()[:2] == [f"{found['packets']:,}", f"{found['misses']:,}"]


def test_packets_of_a_file_have_the_groups_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    groups, packets = tmp_path / "groups.csv", tmp_path / "packets.csv"
    groups.write_text("group,members,rate_bps\nnews,h1;h9,1e6\nvideo,h1;h9,1e6\n")
    packets.write_text("time_s,group\n" + "".join(f"{number},news\n" for number in range(9)) + "9,video\n10,news\n")
    words = ("--groups-file", str(groups), "--overcommit", "2", "--packets", str(packets))
    status, out, err = call(capsys, *words, "--json")
    assert status == 0, err
    found = json.loads(out)["overcommit"]
    assert (found["packets"], found["misses"], found["swaps_in"]) == (8, 1, 1)
    packets.write_text("time_s,group\n0,news\n1,weather\n")
    assert call(capsys, *words)[::2] == (2, f"vsrt: {packets}:3: group: there is no group 'weather'\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--overcommit", "0"), "vsrt: --overcommit: 0 is not a whole number from 1"),
        (("--sessions", "3:4"), "vsrt: --sessions: needs --overcommit"),
        (("--overcommit", "9", "--sessions", "3"), "'3' is not two positive numbers of seconds"),
        (("--overcommit", "9", "--traffic-s", "0"), "vsrt: --traffic-s: 0 is not above 0"),
        (("--overcommit", "9", "--traffic-s", "9", "--packets", "f"), "vsrt: --traffic-s: not together with"),
        (("--overcommit", "9", "--packets", "none.csv"), "vsrt: none.csv: No such file"),
        (("--cover-spurious-pct", "5"), "vsrt: --cover-spurious-pct: needs --overcommit"),
        (
            ("--overcommit", "9", "--cover-spurious-pct", "101"),
            "vsrt: --cover-spurious-pct: 101 is not from 0 to 100",
        ),
        (
            ("--overcommit", "9", "--cover-spurious-pct", "nan"),
            "vsrt: --cover-spurious-pct: nan is not from 0 to 100",
        ),
    ],
)
def test_bad_input_is_told(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str):
    status, _, err = call(capsys, *words)
    assert status == 2 and said in err


def test_silent_groups_under_covering_trees_leave_fewer_misses(capsys: pytest.CaptureFixture[str]):
    words = ("--topology", "portland-p6", "--vms", "2000", "--groups", "400", "--overcommit", "18")
    words += ("--capacity-bps", "1e10", "--sessions", "10:200", "--traffic-s", "120")
    alone = json.loads(call(capsys, *words, "--json")[1])["overcommit"]
    found = json.loads(call(capsys, *words, "--cover-spurious-pct", "100", "--json")[1])["overcommit"]
    assert "covers" not in alone
    covers = found["covers"]
    assert covers["went_under"] >= covers["covered"] + covers["left"]
    assert covers["left"] > 0 and covers["packets"] > 0
    assert found["misses"] < alone["misses"]
    lines = call(capsys, *words, "--cover-spurious-pct", "100")[1].splitlines()
    assert lines[-3] == "Under covering trees, from the first packet on:"
    assert lines[-1].split()[:2] == [f"{covers['trees']}", f"{covers['covered']}"]
    none = json.loads(call(capsys, *words, "--cover-spurious-pct", "0", "--json")[1])["overcommit"]["covers"]
    assert none["fullest_pct"] == none["in_vain"] == 0
