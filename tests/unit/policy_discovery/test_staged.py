"""A staged policy: what it would decide otherwise, within bounds, and the file that it is read from."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from apps import staged_policy as staged_app
from apps.staged_policy import StagedPolicy
from controller.admission import Decision, Host, Role
from controller.config import load_policy
from controller.multicast.effects import Audit
from controller.policy_discovery import staged
from controller.policy_discovery.staged import StagedDecisions
from controller.wire.addresses import parse_ip

STRICT = (
    "version: 1\nrules:\n  - {name: one, groups: [239.1.1.1], role: receiver, hosts: [10.0.0.1], action: allow}\n"
)
ALLOWED, DENIED = Decision(True, "default", ""), Decision(False, "old", "")


def host(number: int) -> Host:
    return Host(bytes(5) + bytes([number]), parse_ip(f"10.0.0.{number}"), 1, number)


def told(decisions: StagedDecisions) -> list[tuple[Any, ...]]:
    documents = [decisions.document(key) for key in decisions.otherwise()]
    return [(one["would_be"], one["ip"], one["staged_rule"], one["count"]) for one in documents if one is not None]


@pytest.fixture
def decisions() -> StagedDecisions:
    found = StagedDecisions()
    found.use(load_policy(STRICT))
    return found


def judge(
    decisions: StagedDecisions, number: int, made: Decision = ALLOWED, now_s: float = 0.0, group: str = "239.1.1.1"
) -> None:
    decisions.judge(made, host(number), parse_ip(group), Role.RECEIVER, None, now_s)


def test_only_what_would_be_decided_otherwise_is_told(decisions: StagedDecisions) -> None:
    judge(decisions, 1)
    judge(decisions, 2)
    judge(decisions, 2)
    judge(decisions, 1, DENIED)
    assert told(decisions) == [("admitted", "10.0.0.1", "one", 1), ("refused", "10.0.0.2", "default", 2)]
    assert decisions.alike == 1
    judge(decisions, 1)
    assert told(decisions) == [("refused", "10.0.0.2", "default", 2)]


def test_each_source_that_a_receiver_asks_for_is_judged_for_itself(decisions: StagedDecisions) -> None:
    of_one = STRICT.replace("receiver, ", "receiver, sources: [10.0.0.9], ").replace("239.", "232.")
    decisions.use(load_policy(of_one))
    for source in ("10.0.0.8", "10.0.0.9", "10.0.0.8", "10.0.0.9"):
        decisions.judge(ALLOWED, host(1), parse_ip("232.1.1.1"), Role.RECEIVER, parse_ip(source), 0.0)
    (refused,) = (decisions.document(key) for key in decisions.otherwise())
    assert refused is not None
    assert (refused["source"], refused["count"], decisions.alike) == ("10.0.0.8", 2, 2)


def test_what_no_rule_decided_is_not_judged(decisions: StagedDecisions) -> None:
    judge(decisions, 1, Decision(False, "limits.groups", ""))
    judge(decisions, 1, Decision(False, "(spoofed)", ""))
    decisions.judge(DENIED, host(1), None, Role.ROUTER, None, 0.0)
    assert (told(decisions), decisions.alike) == ([], 0)


def test_without_a_staged_policy_nothing_is_judged() -> None:
    decisions = StagedDecisions()
    judge(decisions, 2)
    assert (told(decisions), decisions.alike) == ([], 0)


def test_what_is_told_is_bounded_and_forgotten_after_a_day(
    decisions: StagedDecisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "OTHERWISE_BOUND", 2)
    for number in (2, 3, 4, 2):
        judge(decisions, number, now_s=float(number))
    assert ([row[1] for row in told(decisions)], decisions.beyond) == (["10.0.0.2", "10.0.0.3"], 1)
    assert decisions.counts() == {"refused": 2, "admitted": 0, "beyond": 1, "alike": 0}
    assert [key.mac[-1] for key in decisions.forget(86402.5)] == [2]
    assert decisions.counts()["refused"] == 1
    assert [row[1] for row in told(decisions)] == ["10.0.0.3"]


def staged_policy(
    later: Callable[[Callable[[], None]], bool] = lambda work: work() is None, present: Sequence[Audit] = ()
) -> StagedPolicy:
    """Return one that reads its file at once."""
    return StagedPolicy(logging.getLogger("test"), lambda work: work(), later, lambda: iter(list(present)))


def test_the_file_is_judged_by_when_it_is_there_and_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "staged.yaml"
    monkeypatch.setenv("VSRT_STAGED", str(path))
    policy = staged_policy()
    audit = Audit(ALLOWED, host(2), parse_ip("239.1.1.1"), Role.RECEIVER, None)

    def shown() -> dict[str, Any]:
        return policy.documents.changes(0, 100)["put"]

    policy.add(audit)
    assert shown()["alike"]["errors"] == [] and len(shown()) == 1
    path.write_text(STRICT)
    policy.look()
    policy.add(audit)
    assert shown()["239.1.1.1 receiver 00:00:00:00:00:02"]["would_be"] == "refused"
    path.write_text(STRICT + "default: perhaps\n")
    policy.look()
    assert "default" in shown()["alike"]["errors"][0]
    assert len(shown()) == 2
    path.write_text("version: 1\ndefault: allow\n")
    policy.look()
    policy.add(audit)
    policy.look()
    assert (len(shown()), shown()["alike"]["count"], shown()["alike"]["errors"]) == (1, 1, [])
    path.unlink()
    policy.look()
    assert shown()["alike"]["loaded_s"] is None


def test_the_file_is_read_aside_and_counts_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "staged.yaml"
    monkeypatch.setenv("VSRT_STAGED", str(path))
    aside: list[Callable[[], None]] = []
    loop: list[Callable[[], None]] = []
    takes = [False, True]

    def later(work: Callable[[], None]) -> bool:
        loop.append(work)
        return takes.pop(0)

    policy = StagedPolicy(logging.getLogger("test"), aside.append, later, lambda: iter(()))
    path.write_text(STRICT)
    policy.look()
    policy.look()
    (read,) = aside
    read()  # the loop takes no more work: it is read again
    policy.look()
    aside[1]()
    assert policy.documents.changes(0, 100)["put"]["alike"]["loaded_s"] is None
    loop[1]()
    assert policy.documents.changes(0, 100)["put"]["alike"]["loaded_s"] is not None


def test_a_file_that_was_never_good_judges_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "staged.yaml"
    path.write_text("default: perhaps\n")
    monkeypatch.setenv("VSRT_STAGED", str(path))
    policy = staged_policy()
    assert f"{path} cannot be used: nothing is judged" in caplog.text
    path.write_text(STRICT)
    policy.look()
    path.write_text("default: perhaps\n")
    policy.look()
    assert f"{path} cannot be used: that of before is judged by" in caplog.text


def test_a_pipe_is_no_policy_and_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "staged.yaml"
    os.mkfifo(path)
    monkeypatch.setenv("VSRT_STAGED", str(path))
    policy = staged_policy()
    (fault,) = policy.documents.changes(0, 100)["put"]["alike"]["errors"]
    assert "is a pipe" in fault
    path.unlink()
    path.write_text(STRICT)
    policy.look()
    assert policy.documents.changes(0, 100)["put"]["alike"]["errors"] == []


def test_the_topology_file_that_it_names_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "staged.yaml"
    path.write_text("version: 1\ntopology: {file: fabric.json}\n")
    monkeypatch.setenv("VSRT_STAGED", str(path))
    policy = staged_policy()
    (fault,) = policy.documents.changes(0, 100)["put"]["alike"]["errors"]
    assert "fabric.json" in fault
    (tmp_path / "fabric.json").write_text('{"switches": [], "links": []}')
    policy.look()
    assert fault not in policy.documents.changes(0, 100)["put"]["alike"]["errors"]


def test_those_who_are_there_are_judged_in_turns_and_told_while_they_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "staged.yaml"
    path.write_text(STRICT)
    monkeypatch.setenv("VSRT_STAGED", str(path))
    monkeypatch.setattr(staged_app, "PRESENT_PER_TURN", 2)
    now_s = 1e9
    monkeypatch.setattr(staged_app.time, "time", lambda: now_s)
    turns: list[Callable[[], None]] = []
    present = [Audit(ALLOWED, host(n), parse_ip("239.1.1.1"), Role.RECEIVER, None) for n in range(2, 7)]
    policy = staged_policy(lambda work: turns.append(work) is None, present)

    def shown() -> dict[str, Any]:
        return {id_: told["count"] for id_, told in policy.documents.changes(0, 100)["put"].items()}

    policy.look()
    policy.look()
    assert len(turns) == 1
    assert len(shown()) == 1 + 2
    while turns:
        turns.pop()()
    assert len(shown()) == 1 + 5
    del present[3:]
    for _ in range(6):
        now_s += staged_app.PRESENT_INTERVAL_S
        policy.look()
        while turns:
            turns.pop()()
    policy.look()
    assert list(shown().values()) == [0, 1, 1, 1]


def test_a_policy_that_is_staged_no_more_judges_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "staged.yaml"
    path.write_text(STRICT)
    monkeypatch.setenv("VSRT_STAGED", str(path))
    turns: list[Callable[[], None]] = []
    asked = Audit(ALLOWED, host(2), parse_ip("239.1.1.1"), Role.RECEIVER, None)
    policy = staged_policy(lambda work: turns.append(work) is None, [asked])
    policy.look()
    assert turns
    path.unlink()
    policy.look()
    while turns:
        turns.pop()()
    policy.look()
    assert [told["loaded_s"] for told in policy.documents.changes(0, 100)["put"].values()] == [None]
    assert policy.counts() == {}


def test_without_a_file_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VSRT_STAGED", raising=False)
    policy = staged_policy()
    policy.add(Audit(ALLOWED, host(2), parse_ip("239.1.1.1"), Role.RECEIVER, None))
    policy.look()
    assert policy.documents.changes(0, 100)["put"] == {}
