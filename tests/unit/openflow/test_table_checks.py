"""Checks that operators ask for, as an app carries them out: which switches are read, when, and what is answered."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.findings_search import BOUND, STEPS, FindingsSearch
from apps.state_faults import LOOKED_AT_BYTES, unreadable_files
from apps.status_server import QuestionRefused
from apps.table_checks import READ_AT_ONCE, REPORTS_PER_ANSWER, TableChecks
from controller.effects import TableSurveyed
from controller.events import CheckRequested


class OneApp:
    """An app whose loop does what waits when it is told to."""

    def __init__(self, name: str = "Multicast", switches: int = 20) -> None:
        self.name = name
        self.logger = logging.getLogger("app")
        self.switches = list(range(1, switches + 1))
        self.fed: deque[CheckRequested] = deque()
        self.waiting: deque[Any] = deque()
        self.left = threading.Event()
        self.turns = 0

    def connected_switches(self) -> list[int]:
        return self.switches

    def feed(self, event: CheckRequested) -> None:
        self.fed.append(event)

    def later(self, work: Any) -> None:
        self.waiting.append(work)
        self.left.set()

    def turn(self) -> None:
        while self.waiting:
            self.turns += 1
            self.waiting.popleft()()


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OneApp:
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    return OneApp()


def answer(checks: TableChecks, app: OneApp) -> None:
    asked = app.fed.popleft()
    assert asked.order is not None
    checks.surveyed(TableSurveyed(asked.dpid, asked.order.number, {"dpid": asked.dpid, "state": "read"}))
    app.turn()


def test_switches_are_read_some_at_a_time_and_each_once(app: OneApp) -> None:
    checks = TableChecks(app)  # type: ignore[arg-type]
    acts = checks.actions()
    assert acts["check-multicast"]({}) == {"number": 1, "switches": 20}
    app.turn()
    seen = []
    while app.fed:
        assert len(app.fed) <= READ_AT_ONCE
        seen.append(app.fed[0].dpid)
        assert app.fed[0].order is not None and not app.fed[0].order.repair
        answer(checks, app)
    assert seen == app.switches
    first = acts["check-multicast-report"]({"number": 1, "after": 0})
    assert (len(first["reports"]), first["done"]) == (REPORTS_PER_ANSWER, False)
    rest = acts["check-multicast-report"]({"number": 1, "after": REPORTS_PER_ANSWER})
    assert (len(rest["reports"]), rest["done"]) == (20 - REPORTS_PER_ANSWER, True)
    assert first["reports"][0] == {"app": "multicast", "dpid": 1, "state": "read"}


def test_one_check_is_under_way_at_a_time_and_reports_of_no_other_count(app: OneApp) -> None:
    checks = TableChecks(app)  # type: ignore[arg-type]
    acts = checks.actions()
    acts["check-multicast"]({"dpid": 3, "repair": True, "force": True})
    with pytest.raises(QuestionRefused, match="under way"):
        acts["check-multicast"]({})
    app.turn()
    checks.surveyed(TableSurveyed(3, 7, {}))
    checks.surveyed(TableSurveyed(4, 1, {}))
    assert acts["check-multicast-report"]({"number": 1})["reports"] == []
    assert app.fed[0].order is not None and app.fed[0].order.repair and app.fed[0].order.force
    answer(checks, app)
    assert acts["check-multicast-report"]({"number": 1})["done"]
    assert acts["check-multicast"]({"dpid": 3})["number"] == 2
    with pytest.raises(QuestionRefused, match="number"):
        acts["check-multicast-report"]({"number": 1})


def test_discovery_alone_lists_what_is_foreign(app: OneApp) -> None:
    for name, lists in (("Discovery", True), ("Unicast", False)):
        app.name = name
        checks = TableChecks(app)  # type: ignore[arg-type]
        checks.actions()[f"check-{name.lower()}"]({"dpid": 1})
        app.turn()
        order = app.fed.popleft().order
        assert order is not None and order.foreign is lists


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"dpid": "3"}, "dpid"),
        ({"dpid": -1}, "dpid"),
        ({"dpid": True}, "dpid"),
        ({"repair": 1}, "repair"),
        ({"force": "yes"}, "force"),
        ({"switch": 3}, "switch"),
    ],
)
def test_what_cannot_be_read_is_refused_and_logged(app: OneApp, tmp_path: Path, fields: Any, field: str) -> None:
    with pytest.raises(QuestionRefused, match=f"^{field}: ") as caught:
        TableChecks(app).actions()["check-multicast"]({**fields, "by": "ann"})  # type: ignore[arg-type]
    assert caught.value.field == field
    (line,) = (tmp_path / "actions.jsonl").read_text().splitlines()
    assert {"action": "check-multicast", "verdict": "refused", "by": "ann"}.items() <= json.loads(line).items()


def test_findings_are_searched_a_bit_at_a_time_in_what_was_read_aside(app: OneApp) -> None:
    steps = [None if number % 2 else {"kind": "odd", "text": str(number)} for number in range(5 * STEPS)]
    readers: list[int] = []

    def begin() -> Any:
        return lambda: readers.append(threading.get_ident()), lambda _read: iter(steps)

    ask = FindingsSearch(app, begin).actions()["check-findings"]  # type: ignore[arg-type]
    assert ask({}) == {"done": False, "count": 0, "findings": []}
    assert app.left.wait(10.0)
    assert ask({})["done"] is False
    app.turn()
    told = ask({})
    assert (told["done"], told["count"], len(told["findings"])) == (True, 5 * STEPS // 2, BOUND)
    assert len(readers) == 1 and readers[0] != threading.get_ident()
    assert app.turns == 6
    assert ask({})["done"] is False, "the next question looks anew"


def test_a_search_that_fails_ends(app: OneApp) -> None:
    def broken(_read: Any) -> Any:
        raise OSError("no such disk")
        yield

    for read, search in ((lambda: 1 // 0, lambda _read: iter([{"kind": "odd"}])), (lambda: None, broken)):
        app.left.clear()
        ask = FindingsSearch(app, lambda r=read, s=search: (r, s)).actions()["check-findings"]  # type: ignore
        ask({})
        assert app.left.wait(10.0)
        with suppress(OSError):
            app.turn()
        assert ask({}) == {"done": True, "count": 0, "findings": []}


def test_files_that_cannot_be_read_are_found(tmp_path: Path) -> None:
    good = '{"kind":"group"}\n'
    (tmp_path / "journal.jsonl").write_text(good + "torn\n" + good + '{"being": "writ')
    (tmp_path / "hosts.jsonl").write_text(good + '{"being": "writ')
    (tmp_path / "audit.jsonl").write_text(good * (LOOKED_AT_BYTES // len(good) + 100))
    (tmp_path / "alarms.sqlite").write_bytes(b"SQLite format 3\0" + bytes(84))
    (tmp_path / "anomaly.sqlite").write_bytes(b"something else")
    (tmp_path / "allocation.sqlite").write_bytes(b"")
    assert list(unreadable_files(tmp_path)) == [
        (str(tmp_path / "anomaly.sqlite"), "it is no SQLite database"),
        (str(tmp_path / "journal.jsonl"), "1 of its last 3 lines are no JSON"),
    ]
    assert list(unreadable_files(tmp_path / "nowhere")) == [(str(tmp_path / "nowhere"), "No such file or directory")]
