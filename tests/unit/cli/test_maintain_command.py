"""`vsrt maintain`: what the controller is asked, and what becomes of the program that upgrades."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from apps.cli import maintain_command
from apps.cli.common import OperationFailed
from apps.cli.main import main
from apps.cli.snapshot_source import Action, ConnectionLost
from controller.snapshot.reader import Snapshot
from patience import wait_until


class FakeController:
    """Two switches that are to be upgraded as soon as a campaign begins, reached as a snapshot source."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.lost = 0
        self.forgets: list[str] = []
        self.refusal = ""
        self.version = 1
        self.changed = threading.Condition()
        self.campaign: dict[str, Any] = {}
        self.steps: dict[int, dict[str, Any]] = {}

    def do(self, action: Action) -> Any:
        asked = dict(action.question)
        verb = asked["do"].removeprefix("maintenance-")
        if verb == "hook-end" and self.lost:
            self.lost -= 1
            raise ConnectionLost("nobody answers")
        if self.refusal:
            raise OperationFailed(self.refusal)
        with self.changed:
            self.asked.append(asked)
            self.act(verb, asked)
            self.version += 1
            self.changed.notify_all()
        if self.forgets and self.forgets[0] == verb:
            self.die(asked)
        return self.summary()

    def die(self, asked: Mapping[str, Any]) -> None:
        """Begin anew as a controller that was killed: the answer is lost, or what was answered is."""
        self.forgets.pop(0)
        if asked["do"] == "maintenance-hook-begin":
            raise ConnectionLost("nobody answers")
        with self.changed:
            self.steps[asked["dpid"]] |= {"step": "hook", "claimed": True, "reason": ""}
            self.campaign["state"] = "running"
            self.version += 1
            self.changed.notify_all()

    def act(self, verb: str, asked: Mapping[str, Any]) -> None:
        if verb in ("start", "resume"):
            self.campaign = {"state": "running", "runner": asked["runner"], "hook_limit_s": 5.0}
            if verb == "start":
                self.steps = {dpid: {"step": "hook", "claimed": False, "reason": ""} for dpid in asked["switches"]}
        elif verb == "hook-begin":
            self.steps[asked["dpid"]]["claimed"] = True
        elif verb == "hook-end":
            step = "failed" if asked["fault"] else "done"
            self.steps[asked["dpid"]] |= {"step": step, "claimed": False, "reason": asked["fault"]}
            steps = [each["step"] for each in self.steps.values()]
            if "hook" not in steps:
                self.campaign["state"] = "halted" if "failed" in steps else "done"
        elif verb == "abort":
            self.campaign["state"] = "aborted"

    def count(self, step: str) -> int:
        return sum(each["step"] == step for each in self.steps.values())

    def summary(self) -> dict[str, Any]:
        counts = {name: self.count(name) for name in ("done", "failed", "skipped", "hook")}
        return {**self.campaign, **counts, "switches": len(self.steps), "in_work": counts["hook"], "waits_for": ""}

    def follow(self, sections: Sequence[str], beside: Sequence[str] = ()) -> Iterator[Snapshot]:
        told = -1
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.version > told, 10)  # noqa: B023
                told = self.version
                documents = self.documents(sections)
            snapshot = Snapshot()
            for section, put in documents.items():
                for id_, fields in put.items():
                    snapshot.tell(section, id_, fields)
            yield snapshot

    def documents(self, sections: Sequence[str]) -> dict[str, dict[str, Any]]:
        if "maintenance" not in sections:
            labels = {1: {"pod": "1"}, 2: {"pod": "2"}}
            return {
                "switches": {
                    str(d): {"dpid": d, "name": f"s{d}", "tier": "core", "labels": labels[d]} for d in (1, 2)
                }
            }
        put: dict[str, Any] = {}
        if self.campaign:
            put["campaign"] = self.summary()
            for dpid, each in self.steps.items():
                put[str(dpid)] = {
                    "dpid": dpid,
                    "name": f"s{dpid}",
                    "tier": "core",
                    "redundancy_group": "core-1",
                    **each,
                }
        return {"maintenance": put}


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> FakeController:
    fake = FakeController()
    monkeypatch.setattr(maintain_command, "open_source", lambda _args: fake)
    return fake


def hook(tmp_path: Path, text: str) -> str:
    path = tmp_path / "hook"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_each_switch_is_upgraded_by_the_program(
    controller: FakeController, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = hook(tmp_path, f'echo "$1 $2 $VSRT_TIER $VSRT_GROUP" >> {tmp_path}/ran')
    assert main(["maintain", "start", "--hook", program, "--json"]) == 0
    assert sorted((tmp_path / "ran").read_text().splitlines()) == ["0x1 s1 core core-1", "0x2 s2 core core-1"]
    told = json.loads(capsys.readouterr().out)
    assert told["campaign"]["state"] == "done"
    assert [fields["step"] for fields in told["switches"]] == ["done", "done"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("exit 3", "exit status 3"),
        ("kill -9 $$", "ended by SIGKILL"),
        ("sleep 100 & wait", "it did not end within 1 s, and was ended"),
        ("trap '' TERM; sleep 100 & wait", "it did not end within 1 s, and was ended"),
    ],
)
def test_a_program_that_fails_or_hangs_halts_the_campaign(
    controller: FakeController,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    fault: str,
) -> None:
    monkeypatch.setattr("apps.cli.maintain_runner.KILL_AFTER_S", 0.2)
    program = hook(tmp_path, f"echo $$ > {tmp_path}/$1; {text}")
    assert main(["maintain", "start", "s1", "--hook", program, "--hook-limit", "1"]) == 1
    assert controller.asked[-1]["fault"] == fault
    assert f"failed: s1 ({fault})" in capsys.readouterr().out
    group = int((tmp_path / "0x1").read_text())
    wait_until(lambda: not processes_of(group), os.getpid(), 10)


def processes_of(group: int) -> list[str]:
    """The processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(path.parent.name)
    return found


def test_a_program_may_leave_something_running(controller: FakeController, tmp_path: Path) -> None:
    program = hook(tmp_path, f"sleep 100 & echo $! > {tmp_path}/$1; exit 0")
    began_s = time.monotonic()
    assert main(["maintain", "start", "s1", "--hook", program]) == 0
    assert time.monotonic() < began_s + 50
    Path("/proc", (tmp_path / "0x1").read_text().strip(), "stat").read_text()
    os.kill(int((tmp_path / "0x1").read_text()), signal.SIGKILL)


def test_a_controller_that_is_away_is_told_when_it_is_back(
    controller: FakeController, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.cli.maintain_runner.AGAIN_S", 0.01)
    controller.lost = 3
    assert main(["maintain", "start", "s1", "--hook", hook(tmp_path, "exit 0")]) == 0
    assert controller.lost == 0


def test_an_upgrade_goes_on_over_the_death_of_a_controller_that_had_not_answered_or_not_kept_it(
    controller: FakeController, tmp_path: Path
) -> None:
    controller.forgets = ["hook-begin", "hook-end", "hook-end"]
    program = hook(tmp_path, f"echo $1 >> {tmp_path}/ran")
    assert main(["maintain", "start", "s1", "--hook", program]) == 0
    assert controller.forgets == []
    assert (tmp_path / "ran").read_text() == "0x1\n"
    told = [asked["do"].removeprefix("maintenance-") for asked in controller.asked]
    assert told == ["start", "hook-begin", "hook-begin", "hook-end", "hook-end", "hook-end"]


def test_what_became_of_an_upgrade_is_not_told_of_the_next_one(controller: FakeController, tmp_path: Path) -> None:
    """The first fails; an operator has it tried again while the command runs, and the controller dies just then."""
    failed, go_on = tmp_path / "failed", tmp_path / "go-on"
    program = hook(
        tmp_path,
        f"[ $1 = 0x2 ] && {{ while [ ! -e {go_on} ]; do sleep 0.02; done; exit 0; }}\n"
        f"[ -e {failed} ] || {{ touch {failed}; exit 3; }}",
    )
    status: list[int] = []
    command = threading.Thread(target=lambda: status.append(main(["maintain", "start", "--hook", program])))
    command.start()
    wait_until(lambda: controller.steps and controller.steps[1]["step"] == "failed", os.getpid(), 10)
    with controller.changed:
        controller.forgets = ["hook-begin"]
        controller.steps[1] |= {"step": "hook", "claimed": False, "reason": ""}
        controller.version += 1
        controller.changed.notify_all()
    try:
        wait_until(lambda: controller.steps[1]["step"] != "hook", os.getpid(), 10)
        assert controller.steps[1]["step"] == "done"
    finally:
        go_on.touch()
        command.join(20)
    assert status == [0]


def test_a_command_that_another_one_replaced_ends_its_program(
    controller: FakeController, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = hook(tmp_path, f"echo $$ > {tmp_path}/$1; exec sleep 100")
    status: list[int] = []
    first = threading.Thread(target=lambda: status.append(main(["maintain", "start", "s1", "--hook", program])))
    first.start()
    wait_until(lambda: (tmp_path / "0x1").exists() and (tmp_path / "0x1").read_text(), os.getpid(), 10)
    controller.do(Action({"do": "maintenance-resume", "runner": "another"}, "POST", ""))
    first.join(20)
    assert status == [1]
    assert "another command upgrades" in capsys.readouterr().out
    wait_until(lambda: not processes_of(int((tmp_path / "0x1").read_text())), os.getpid(), 10)


def test_a_refusal_is_told_and_nothing_runs(
    controller: FakeController, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    controller.refusal = "state: a campaign is under way: abort it first"
    assert main(["maintain", "start", "--hook", hook(tmp_path, f"touch {tmp_path}/ran")]) == 1
    assert "a campaign is under way" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--select", "pod=9"], "--select: pod=9 matches no switch"),
        (["--select", "rack=9"], "--select: no switch has rack"),
        (["--select", "pod"], "--select: position 4"),
        (["s1", "--select", "pod=1"], "--select: not with switches by name"),
        (["s9"], "SWITCH: "),
        (["--window", "22:00"], "--window: '22:00' is no window"),
        (["--window", "22:00-22:00"], "--window: it begins when it ends"),
        (["--expected", "0"], "--expected: 0 s is not from 1"),
        (["--hook", "/no/such/program"], "--hook: /no/such/program is no program"),
    ],
)
def test_bad_words_are_named(
    controller: FakeController, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    assert main(["maintain", "start", "--hook", hook(tmp_path, "exit 0"), *words]) == 2
    assert text in capsys.readouterr().err
    assert controller.asked == []


def test_switches_are_selected_by_their_labels(controller: FakeController, tmp_path: Path) -> None:
    words = ["--select", "pod=2", "--window", "22:00-06:00", "--disruptive", "--restarts"]
    assert main(["maintain", "start", *words, "--hook", hook(tmp_path, "exit 0")]) == 0
    start = controller.asked[0]
    assert start["switches"] == [2]
    assert (start["window"], start["disruptive"], start["restarts"]) == ([79200, 21600], True, True)


def test_status_says_where_each_switch_is(
    controller: FakeController, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["maintain", "status"]) == 0
    assert capsys.readouterr().out == "there was no campaign\n"
    main(["maintain", "start", "s1", "--hook", hook(tmp_path, "exit 3")])
    capsys.readouterr()
    assert main(["maintain", "status"]) == 0
    told = capsys.readouterr().out
    assert "s1      core-1  failed  exit status 3" in told
    assert "the campaign is halted: 0 of 1 switches are done, 1 failed" in told
