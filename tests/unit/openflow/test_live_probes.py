"""Scripts that look at apps which run, by questions on the status socket."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.openflow import live_probes, questions
from apps.openflow.app import App
from apps.openflow.live_probes import CLIENT_GONE, ENDED_BOUND, LEASE_S, STOPPED, TIME_OVER, LiveProbes
from apps.policy_file import PolicyFile, PolicyReading
from apps.status_client import query
from controller.config.policy import Policy
from controller.config.probe_settings import Probes
from controller.config.settings import Monitor, PrometheusEndpoint
from controller.durations import parse_duration
from controller.effects import Notice
from controller.events import DeadlineReached, PacketReceived
from controller.probes.findings import ROWS_LOOKED_AT
from controller.probes.live import EXITED, OVER_BUDGET
from served_app import NotingApp, NotingCore, serving

TIMEOUT_S = 10.0
COUNT = "aggr n[1][0]; noting:event:PacketReceived { n[dpid]++; }"


class Core(NotingCore):
    """Takes packets, and notices what those of switch 9 are."""

    handlers: dict[type, Any] = {PacketReceived: None, DeadlineReached: None}  # noqa: RUF012

    def handle(self, event: Any, now: float) -> list[Notice]:
        super().handle(event, now)
        return [Notice("ninth", "It is of switch 9.")] if getattr(event, "dpid", 0) == 9 else []


class Beside(App):
    """An app on a loop of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.core = Core()
        self.policy_file = PolicyFile(self.logger)
        self.policy_file.reading = PolicyReading(
            Policy(monitor=Monitor(prometheus=PrometheusEndpoint(enabled=False)))
        )


class Beyond(Beside):
    """Another one."""


class Bench:
    """Three apps, the scripts that look at them, and who asks for them."""

    def __init__(self, apps: tuple[NotingApp, Beside, Beyond], probes: LiveProbes, path: Path) -> None:
        self.apps = apps
        self.app, self.beside, self.beyond = apps
        self.probes = probes
        self.path = path

    def ask(self, **question: Any) -> Any:
        return query(self.path, question, TIMEOUT_S)

    def begin(self, script: str, **fields: Any) -> str:
        answer = self.ask(do="probe-run", script=script, **fields)
        assert "error" not in answer, answer
        return str(answer["id"])

    def look(self, number: str, **fields: Any) -> Any:
        return self.ask(do="probe-look", id=number, **fields)

    def feed(self, *dpids: int) -> None:
        self.app.packets_received([PacketReceived(dpid, 1, b"", False) for dpid in dpids])

    def on_loop(self, work: Callable[[], Any]) -> Any:
        return self.app.ask(work)

    def feed_on_loop(self, *dpids: int) -> None:
        self.on_loop(lambda: self.feed(*dpids))

    @property
    def is_as_it_was(self) -> bool:
        return not any({"feed", "perform"} & set(vars(app)) for app in self.apps)

    @contextmanager
    def busy(self, app: App) -> Iterator[None]:
        """Keep the loop of an app busy, so that questions wait."""
        begun, over = threading.Event(), threading.Event()

        def hold() -> None:
            begun.set()
            over.wait()

        app.reactor.call(hold)
        assert begun.wait(TIMEOUT_S)
        try:
            yield
        finally:
            over.set()

    def ask_busy(self, app: App, **question: Any) -> queue.Queue[Any]:
        """Ask on a thread, until the question waits for the loop; return where the answer will be."""
        answers: queue.Queue[Any] = queue.Queue()
        before = app.reactor.backlog
        threading.Thread(target=lambda: answers.put(self.ask(**question))).start()
        self.wait(lambda: app.reactor.backlog > before)
        return answers

    def wait(self, reached: Callable[[], Any]) -> Any:
        until_s = time.monotonic() + TIMEOUT_S
        while not (found := reached()):
            assert time.monotonic() < until_s
            time.sleep(0.01)
        return found


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("VSRT_SOCKET", str(tmp_path / "s"))
    with serving(NotingApp, Beside, Beyond) as apps:
        apps[0].core = Core()
        probes = LiveProbes()
        for app in apps:
            probes.join(app)
        bench = Bench(apps, probes, tmp_path / "s")
        try:
            yield bench
        finally:
            for app in apps:
                probes.leave(app)
        assert bench.is_as_it_was


def test_a_script_counts_what_happens_until_it_is_stopped(bench: Bench, tmp_path: Path):
    number = bench.begin(COUNT, by="me")
    assert [probe["id"] for probe in bench.ask(show="probes")["probes"]] == [number]
    bench.feed_on_loop(7, 7, 8)
    found = bench.look(number)
    rows = [(row["keys"], row["count"]) for row in found["aggregates"]["n"]]
    assert (found["ended"], rows, found["fired"]) == (None, [([7], 2), ([8], 1)], 3)
    stopped = bench.ask(do="probe-stop", id=number)
    assert (stopped["ended"], stopped["fired"]) == (STOPPED, 3)
    bench.feed_on_loop(7)
    assert bench.look(number)["fired"] == 3 and bench.is_as_it_was
    assert bench.ask(show="probes") == {"probes": []}
    actions = tmp_path / "actions.jsonl"
    begun, ended = bench.wait(lambda: (lines := actions.read_text().splitlines())[1:] and map(json.loads, lines))
    assert (begun["action"], begun["asked"]["script"], begun["by"]) == ("probe-run", COUNT, "me")
    assert (ended["action"], ended["by"]) == ("probe-end", "me")
    assert ended["asked"] == {"id": number, "script": COUNT, "why": STOPPED}


def test_effects_are_seen_and_performed(bench: Bench):
    number = bench.begin(
        'noting:effect:Notice { print("%s", kind); } begin { print("begin"); } end { print("end"); }'
    )
    bench.feed_on_loop(1, 9)
    looked = bench.look(number)
    assert looked["printed"] == ["begin", "ninth"] and bench.app.texts == ["It is of switch 9."]
    assert bench.look(number, lines=looked["lines"])["printed"] == []
    assert bench.ask(do="probe-stop", id=number, lines=looked["lines"])["printed"] == ["end"]


def test_two_scripts_at_one_point_do_not_disturb_each_other(bench: Bench):
    first, second = bench.begin(COUNT), bench.begin("aggr n[1][0]; *:event:Packet* sample 1/2 { n[in_port]++; }")
    bench.feed_on_loop(7, 7)
    bench.ask(do="probe-stop", id=first)
    bench.feed_on_loop(7, 7)
    assert (bench.look(first)["fired"], bench.look(second)["fired"]) == (2, 2)


def test_rows_that_several_loops_found_are_counted_together(bench: Bench):
    number = bench.begin("aggr n[0][1]; *:event:PacketReceived { n[app]++; }")
    bench.feed_on_loop(7)
    bench.beside.ask(lambda: bench.beside.feed(PacketReceived(7, 1, b"", False)))
    found = bench.look(number)
    assert ([row["keys"] for row in found["aggregates"]["n"]], found["rows"]) == ([["beside"], ["noting"]], {"n": 2})


def test_what_nobody_looks_at_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    assert LEASE_S <= 10
    monkeypatch.setattr(live_probes, "LEASE_S", 0.05)
    number = bench.begin(COUNT)
    bench.wait(lambda: bench.is_as_it_was)
    assert bench.look(number)["ended"] == CLIENT_GONE


def test_it_ends_when_its_time_is_over_and_when_it_says_so(bench: Bench):
    for script, for_s, reason in ((COUNT, 0.1, TIME_OVER), ("begin { exit(); }", 60, EXITED)):
        number = bench.begin(script, for_s=for_s)
        assert bench.wait(lambda number=number: bench.look(number)["ended"]) == reason
        assert bench.is_as_it_was


def test_one_that_takes_too_much_is_unloaded_and_told_of(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("controller.probes.live.FULL_WINDOWS", 1)
    bench.app.policy_file.reading = bench.app.policy_file.reading._replace(
        policy=Policy(probes=Probes(budget_pct=0.01))
    )
    number = bench.begin("int i; noting:event:PacketReceived { for (i = 0; i < 900; i++) { } }")

    def fed_until_ended() -> Any:
        bench.feed_on_loop(7)
        return bench.look(number)["ended"]

    assert bench.wait(fed_until_ended) == OVER_BUDGET
    assert bench.is_as_it_was
    bench.wait(lambda: bench.app.texts == [f"The probe {number} was unloaded: {OVER_BUDGET}."])


def test_a_timer_fires_each_period_and_no_more_when_it_is_stopped(bench: Bench):
    number = bench.begin('int n; noting:timer:10ms when (late_us >= 0) { n++; print("%s %d", point, n); }')
    printed = bench.wait(lambda: (lines := bench.look(number)["printed"])[2:] and lines)
    assert printed[:3] == [f"noting:timer:10ms {count}" for count in (1, 2, 3)]
    fired = bench.ask(do="probe-stop", id=number)["fired"]
    later = bench.begin("noting:timer:10ms { }")
    bench.wait(lambda: bench.look(later)["fired"] > 2)
    assert bench.look(number)["fired"] == fired


def test_periods_that_a_loop_missed_are_left_out_and_it_is_told_how_late_it_came(bench: Bench):
    number = bench.begin("aggr late[0][0]; noting:timer:20ms { late <- late_us; }")
    bench.wait(lambda: bench.look(number)["fired"])
    until_s = time.monotonic() + 0.2
    with bench.busy(bench.app):
        bench.wait(lambda: time.monotonic() > until_s)
    row = bench.wait(lambda: (row := bench.look(number)["aggregates"]["late"][0])["max"] > 150_000 and row)
    assert [count for least, count in row["histogram"] if least >= 131_072] == [1]


def test_a_profile_tells_what_a_busy_loop_is_doing(bench: Bench):
    number = bench.begin(
        "aggr doing[0][1]; aggr deep[1][0]; noting:profile:150 { doing[stack(4)]++; deep[len(stack)]++; }"
    )
    beside = bench.begin("aggr doing[0][1]; beside:profile:150 { doing[stack(9)]++; }")

    def hold_until(waited: threading.Event) -> None:
        waited.wait(TIMEOUT_S)

    over = threading.Event()
    bench.app.reactor.call(hold_until, over)
    bench.wait(lambda: bench.app.reactor.backlog > 5)
    over.set()
    doing = bench.wait(lambda: bench.look(number)["aggregates"]["doing"])
    held = [row["keys"][0] for row in doing if "hold_until" in row["keys"][0]]
    assert held and held[0].split(" < ")[-1].endswith("Reactor._do"), doing
    bench.ask(do="probe-stop", id=number)
    assert "hold_until" not in str(bench.ask(do="probe-stop", id=beside)["aggregates"])
    bench.wait(lambda: not [each for each in threading.enumerate() if each.name.startswith("profile-")])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"script": "begin {\n  x = 1;\n}"}, "line 2, column 3: x is no variable"),
        ({"script": "multicast:event:PacketReceived { }"}, "line 1, column 1: there is no point multicast:event"),
        (
            {"script": "noting:timer:5 { }"},
            "line 1, column 1: there is no point noting:timer:5; did you mean noting:timer",
        ),
        ({"script": "begin, noting:timer:2h { }"}, "line 1, column 8: there is no point noting:timer:2h; did you"),
        (
            {"script": "noting:profile:151 { }"},
            "line 1, column 1: there is no point noting:profile:151; did you mean",
        ),
        ({"script": "beyound:timer:1s { }"}, "line 1, column 1: there is no point beyound:timer:1s"),
        ({"script": 'noting:timer:1s { print("%s", stack(2)); }'}, "line 1, column 31: stack is known at profile"),
        ({"script": 'noting:profile:9 { print("%s", stack()); }'}, "line 1, column 32: stack takes 1 argument"),
        ({"script": 7}, "script: must be the text"),
        ({}, "script: must be the text"),
        ({"script": COUNT, "for_s": 1e9}, "for_s: 1000000000.0 is not within"),
        ({"script": COUNT, "for_s": True}, "for_s: True is not within"),
    ],
)
def test_what_cannot_be_is_refused(bench: Bench, fields: dict[str, Any], told: str):
    answer = bench.ask(do="probe-run", **fields)
    assert answer["refused"] and answer["error"].startswith(told)
    assert bench.is_as_it_was


def test_a_policy_may_forbid_scripts_and_bound_them(bench: Bench):
    reading = bench.app.policy_file.reading
    bench.app.policy_file.reading = reading._replace(policy=Policy(probes=Probes(scripts=1, keys=2)))
    number = bench.begin(COUNT)
    assert "1 scripts run already" in bench.ask(do="probe-run", script=COUNT)["error"]
    bench.feed_on_loop(1, 2, 3)
    assert bench.look(number)["lost_keys"] == 1
    bench.app.policy_file.reading = reading._replace(policy=Policy(probes=Probes(enabled=False)))
    assert "switched off" in bench.ask(do="probe-run", script=COUNT)["error"]


def test_one_that_ends_on_a_loop_does_not_begin_on_another(bench: Bench):
    clauses = (f"{app}:event:PacketReceived {{ exit(); }}" for app in ("noting", "beside", "beyond"))
    with bench.busy(bench.beside):
        begun = bench.ask_busy(bench.beside, do="probe-run", script=" ".join(clauses))
        bench.feed_on_loop(7)
        bench.wait(lambda: "feed" not in vars(bench.app))
    assert bench.look(begun.get(timeout=TIMEOUT_S)["id"])["ended"] == EXITED
    assert bench.is_as_it_was


def test_what_ends_while_it_is_looked_at_is_shown_whole_once_it_is_told_to_have_ended(bench: Bench):
    number = bench.begin(COUNT)
    bench.feed_on_loop(*range(2 * ROWS_LOOKED_AT))
    with bench.busy(bench.app):
        stopped = bench.ask_busy(bench.app, do="probe-stop", id=number)
        looked = bench.ask_busy(bench.app, do="probe-look", id=number)
    found = looked.get(timeout=TIMEOUT_S)
    assert found["ended"] is None or len(found["aggregates"]["n"]) == 2 * ROWS_LOOKED_AT
    assert len(stopped.get(timeout=TIMEOUT_S)["aggregates"]["n"]) == 2 * ROWS_LOOKED_AT


def test_an_app_ends_though_its_loop_is_busy(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(questions, "BEGIN_S", 0.05)
    bench.begin(COUNT)
    with bench.busy(bench.app):
        bench.probes.leave(bench.app)
        assert not bench.is_as_it_was
    bench.wait(lambda: bench.is_as_it_was)


def test_where_the_log_cannot_be_written_it_is_told_and_made_up_for(bench: Bench, tmp_path: Path):
    actions = tmp_path / "actions.jsonl"
    actions.mkdir()
    bench.ask(do="probe-stop", id=bench.begin(COUNT))
    assert str(actions) in bench.on_loop(lambda: bench.probes.log_fault(bench.app))
    assert bench.on_loop(lambda: bench.probes.log_fault(bench.beside)) is None
    actions.rmdir()
    assert bench.on_loop(lambda: bench.probes.log_fault(bench.app)) is None
    assert [json.loads(line)["action"] for line in actions.read_text().splitlines()] == ["probe-run", "probe-end"]


def test_few_of_those_that_ended_are_kept(bench: Bench):
    numbers = [bench.begin(COUNT) for _ in range(3)]
    for number in numbers:
        bench.ask(do="probe-stop", id=number)
    for _ in range(2 * ENDED_BOUND):
        bench.ask(do="probe-stop", id=bench.begin(COUNT))
    assert "no script" in bench.look(numbers[0])["error"]


def test_functions_are_seen_on_the_loop_of_the_app_and_have_their_code_back(bench: Bench):
    code = parse_duration.__code__
    name = "controller.durations.parse_duration"
    script = f"""
        aggr entered[0][2]; aggr left[0][1]; aggr took[0][1];
        *:enter:{name} {{ entered[app, text]++; }}
        beside:exit:{name} {{ left[app]++; took[app] <- took_ns; }}
    """
    number = bench.begin(script)
    assert parse_duration.__code__ is not code
    bench.on_loop(lambda: parse_duration("5s"))
    bench.beside.ask(lambda: [parse_duration("7s") for _ in range(3)])
    assert parse_duration("9s") == 9.0
    found = bench.ask(do="probe-stop", id=number)
    rows = {name: [(row["keys"], row["count"]) for row in rows] for name, rows in found["aggregates"].items()}
    assert rows["entered"] == [(["beside", "7s"], 3), (["noting", "5s"], 1)]
    assert rows["left"] == [(["beside"], 3)] and found["aggregates"]["took"][0]["min"] > 0
    assert (found["fired"], found["faults"]) == (7, {})
    assert parse_duration.__code__ is code


def test_points_that_stay_are_seen(bench: Bench):
    number = bench.begin("aggr n[2][1]; *:point:packet-in { n[dpid, port_no, app]++; }")
    bench.feed_on_loop(7, 7, 8)
    rows = [(row["keys"], row["count"]) for row in bench.ask(do="probe-stop", id=number)["aggregates"]["n"]]
    assert rows == [([7, 1, "noting"], 2), ([8, 1, "noting"], 1)]
