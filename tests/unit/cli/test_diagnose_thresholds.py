from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from apps.cli.main import main

START_S = 1_767_225_600
SAMPLES = 400
TRAIN = f"{START_S}:{START_S + 15 * 250}"
CHAIN = ("--interval", "15", "--window", "20", "--shift", "10", "--smoothing", "3")
MEMBERS = {"a1": "up", "a2": "up", "a3": "up", "a4": "up", "b1": "down", "b2": "down", "b3": "down", "b4": "down"}


def metric_file(path: Path, members: dict[str, str], *, from_sample: int = 0, metrics: tuple[str, ...] = ("await",)):
    """Write ports of which a3 waits long from sample 300 on; `octets` only counts upwards."""
    lines = ["timestamp,member,peer_group,metric,value"]
    for place, (member, group) in enumerate(members.items()):
        values = np.random.default_rng(place).gamma(4, 2, SAMPLES)
        values[300:] += 30 * (member == "a3")
        for row in range(from_sample, SAMPLES):
            at_s = START_S + 15 * (row + 1)
            lines.append(f"{at_s},{member},{group},await,{values[row]:.4f}")
            if "octets" in metrics:
                lines.append(f"{at_s},{member},{group},octets,{values[: row + 1].sum():.4f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def day(tmp_path: Path) -> Path:
    return metric_file(tmp_path / "day.csv", MEMBERS, metrics=("await", "octets"))


def diagnosed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main(["diagnose", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["diagnose", *map(str, arguments), "--json"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.strip()


def kept(capsys: pytest.CaptureFixture[str], day: Path, *options: str) -> tuple[Path, dict]:
    path = day.with_name("thresholds.json")
    return path, diagnosed(capsys, "--input", day, "--train", TRAIN, "--save-thresholds", path, *CHAIN, *options)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--threshold", "group"),
        ("--threshold", "pooled"),
        ("--offsets", "remove"),
        ("--form", "median"),
        ("--form", "binned"),
        ("--metric", "await"),
        ("--shift", "4"),
        ("--shift", "4", "--offsets", "remove"),
    ],
)
def test_kept_thresholds_give_the_scores_of_the_training_itself(
    day: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
):
    path, trained = kept(capsys, day, *options)
    chosen = options if options[:1] == ("--metric",) else ()
    later = diagnosed(capsys, "--input", day, "--thresholds", path, *chosen)
    assert later == trained
    assert max(later["scores"], key=lambda one: one["score"])["member"] == "a3"


def test_the_scope_decides_whose_thresholds_are_equal(day: Path, capsys: pytest.CaptureFixture[str]):
    found = {}
    for scope in ("member", "group", "pooled"):
        path, _ = kept(capsys, day, "--threshold", scope)
        groups = json.loads(path.read_text(encoding="utf-8"))["groups"]
        limits = {g: {m["peers"] for m in metrics["await"]["members"].values()} for g, metrics in groups.items()}
        found[scope] = [len(limits["up"]), len(limits["down"]), len(limits["up"] | limits["down"])]
    assert (found["group"], found["pooled"]) == ([1, 1, 2], [1, 1, 1])
    assert min(found["member"]) > 2


def test_a_day_of_faults_alone_is_judged_by_an_earlier_one(
    day: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, _ = kept(capsys, day, "--metric", "await")
    sick = metric_file(tmp_path / "sick.csv", MEMBERS, from_sample=300)
    found = diagnosed(capsys, "--input", sick, "--metric", "await", "--thresholds", path)
    scores = {member: [one["score"] for one in found["scores"] if one["member"] == member] for member in MEMBERS}
    assert min(scores["a3"]) > 1
    assert {one["member"] for one in found["faulty"]} == {"a3"}


def test_members_that_came_since_are_peers_of_each_other(
    day: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, _ = kept(capsys, day, "--metric", "await")
    grown = metric_file(tmp_path / "grown.csv", {**MEMBERS, "a8": "up", "a9": "up"})
    found = diagnosed(capsys, "--input", grown, "--metric", "await", "--thresholds", path)
    groups = {one["member"]: one["peer_group"] for one in found["scores"]}
    assert (groups["a8"], groups["a9"], groups["a1"]) == ("new in up", "new in up", "up")


def test_training_anew_replaces_the_file(day: Path, capsys: pytest.CaptureFixture[str]):
    path, _ = kept(capsys, day)
    before = json.loads(path.read_text(encoding="utf-8"))
    later = f"{START_S + 15 * 50}:{START_S + 15 * 290}"
    diagnosed(capsys, "--input", day, "--train", later, "--save-thresholds", path, *CHAIN)
    after = json.loads(path.read_text(encoding="utf-8"))
    assert (before["trained"]["start"], after["trained"]["start"]) == (START_S, START_S + 15 * 50)
    assert before["groups"] != after["groups"]


def test_what_changes_no_distance_may_differ(day: Path, capsys: pytest.CaptureFixture[str]):
    path, trained = kept(capsys, day)
    doubled = diagnosed(capsys, "--input", day, "--thresholds", path, "--margin", "2", "--confirm", "2")
    assert doubled["settings"]["confirm_windows"] == 2
    peak = max(one["score"] for one in trained["scores"])
    assert max(one["score"] for one in doubled["scores"]) < peak


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--window", "30"), "--window: 30, the thresholds are for 20; train anew for it"),
        (("--form", "median"), "--form: median, the thresholds are for pairs; train anew for it"),
        (("--threshold", "pooled"), "--threshold: pooled, the thresholds are for member; train anew for it"),
        (("--train", TRAIN), "--thresholds: thresholds come from the file or from --train, not from both"),
        (("--save-thresholds", "x.json"), "--save-thresholds: name the time without faults with --train"),
        (("--margin", "0"), "--margin: expected a positive number, found 0.0"),
    ],
)
def test_options_that_do_not_fit_are_named(
    day: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
):
    path, _ = kept(capsys, day)
    assert refused(capsys, "--input", day, "--thresholds", path, *options).endswith(message)


def test_metrics_and_groups_without_thresholds_are_named(
    day: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    alone = metric_file(tmp_path / "alone.csv", MEMBERS)
    path, _ = kept(capsys, alone)
    assert refused(capsys, "--input", day, "--thresholds", path).endswith(
        "day.csv: metric: no thresholds for 'octets' in peer group 'up'; there are some for await"
    )
    other = metric_file(tmp_path / "other.csv", dict.fromkeys(MEMBERS, "left"))
    assert refused(capsys, "--input", other, "--thresholds", path).endswith(
        "other.csv: peer_group: no thresholds for 'left'; there are some for down, up"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format: expected 'vsrt-peer-thresholds', found \"other\""),
        ({"version": 9}, "version: expected 5, found 9"),
        ({"settings": {}}, "settings.interval_s: the field is missing"),
        ({"groups": {}}, "groups: the file holds no thresholds"),
        ({"groups": {"up": {"await": 3}}}, "groups.up.await: expected an object, found 3"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(day: Path, capsys: pytest.CaptureFixture[str], change: dict, message: str):
    path, _ = kept(capsys, day)
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, **change}), encoding="utf-8")
    assert refused(capsys, "--input", day, "--thresholds", path) == f"vsrt: {path}: {message}"


def test_a_limit_or_setting_that_is_none_is_named(day: Path, capsys: pytest.CaptureFixture[str]):
    path, _ = kept(capsys, day)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["groups"]["up"]["await"]["members"]["a2"]["own"] = 0
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "groups.up.await.members.a2.own: expected a positive number" in refused(
        capsys, "--input", day, "--thresholds", path
    )
    document["settings"]["form"] = "squares"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "settings.form: expected one of pairs, binned, median" in refused(
        capsys, "--input", day, "--thresholds", path
    )
    path.write_text("{", encoding="utf-8")
    assert f"{path}:1:" in refused(capsys, "--input", day, "--thresholds", path)
    assert "No such file" in refused(capsys, "--input", day, "--thresholds", path.with_name("none.json"))
