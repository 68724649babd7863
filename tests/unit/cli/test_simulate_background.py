"""`vsrt simulate --background`: who knows of the others' traffic meets less of it."""

from __future__ import annotations

import json

import pytest

from apps.cli.main import main

OPTIONS = ["simulate", "--topology", "fattree", "--groups", "60", "--capacity-bps", "1e10", "--algorithms", "vsrt"]


def run(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    code = main([*OPTIONS, *options])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_trees_and_paths_that_go_by_port_metrics_meet_less_than_those_that_go_by_nothing(
    capsys: pytest.CaptureFixture[str],
):
    code, out, _ = run(capsys, "--background", "20", "--seeds", "4", "--json")
    assert code == 0
    found = json.loads(out)["background"]
    for load in ("trees", "paths"):
        for figure in ("meets_pct", "busy_pct"):
            assert found[load]["metric"][figure] < found[load]["unaware"][figure]


def test_the_same_seed_gives_the_same(capsys: pytest.CaptureFixture[str]):
    first, again = (json.loads(run(capsys, "--background", "20", "--json")[1])["background"] for _ in range(2))
    assert first == again


def test_a_table_says_what_each_way_meets(capsys: pytest.CaptureFixture[str]):
    _, out, _ = run(capsys, "--background", "20")
    assert "Others use 20 % of the cables on average" in out
    assert out.count("port metrics") == 2


@pytest.mark.parametrize("value", ["0", "101", "nan"])
def test_a_share_out_of_range_is_refused(value: str, capsys: pytest.CaptureFixture[str]):
    code, _, err = run(capsys, "--background", value)
    assert code == 2 and "--background" in err


def test_too_many_groups_are_refused(capsys: pytest.CaptureFixture[str]):
    code, _, err = run(capsys, "--background", "20", "--groups", "20000")
    assert code == 2 and "--background" in err
