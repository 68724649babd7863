"""What scripts cost a controller: joins per second of its processor time, with a script and without in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from control_plane import report_frames
from controllers import controller
from fabric_simulator.lone import LoneSwitch
from fabric_simulator.messages import FLOW_MOD
from measure import Measurement, time_per_call_us

from apps.emulation.controller import ControllerProcess
from apps.probe_points import recorded_points
from apps.status_client import query
from controller.events import PacketReceived
from controller.probes.library import library
from controller.probes.live import LoopBudget, LoopRun
from controller.probes.script import load

PORTS = 48
JOINS = 2000
TURNS = 10
WINDOW_BYTES = 1 << 16
LOADS = 1000
LONGEST_S = 3600
PACKETS_PER_S = 500

COUNT = "aggr n[1][0]; multicast:event:PacketReceived when (in_port != 99) { n[dpid]++; }"
LATENCY = """aggr us[1][0]; bag at; multicast:event:PacketReceived { at[dpid] <- now_ns; }
multicast:effect:Audit { us[host.dpid] <- (now_ns - at[host.dpid]) / 1000; }"""
EIGHT = """aggr n[1][0]; aggr who[0][1]; aggr size[0][0]; aggr us[1][0]; bag at;
multicast:event:PacketReceived { at[dpid] <- now_ns; } multicast:event:PacketReceived { n[dpid]++; }
multicast:event:PacketReceived { size <- len(data); } multicast:event:PacketReceived { n[in_port]++; }
multicast:effect:Audit { us[host.dpid] <- now_ns - at[host.dpid]; } multicast:effect:Audit { who[role]++; }
multicast:effect:Audit { n[host.port_no]++; } multicast:effect:Audit { who[decision.rule]++; }"""
HEAVY = "int i; aggr n[1][0];" + "".join(
    f" {point} {{ for (i = 0; i < 400; i++) {{ n[i]++; }} }}"
    for point in ("multicast:event:PacketReceived", "discovery:event:PacketReceived") * 4
)
SCRIPTS: Mapping[str, tuple[str, int, float]] = {
    "a count": (COUNT, 1, 0.98),
    "a latency": (LATENCY, 2, 0.96),
    "8 firings": (EIGHT, 8, 0.92),
}
"""Scripts, how often they fire for a join, and the least ratio of joins with them to those without."""


def spent_ns(pid: int) -> dict[str, int]:
    """Return the processor time that each thread of a process has taken."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has ended
            found[thread.name] = int((thread / "schedstat").read_text().split()[0])
    return found


class Bench:
    """A controller, a switch whose hosts join groups that nobody was in before, and scripts that look on."""

    def __init__(self, name: str, stack: ExitStack, joins: int) -> None:
        self.process: ControllerProcess = stack.enter_context(controller(name))
        self.switch = LoneSwitch(1, PORTS, ("127.0.0.1", self.process.port))
        stack.callback(self.switch.close)
        self.joins = joins
        self._frames: Iterator[bytes] = iter(report_frames(65_000, 3, PORTS))
        self.known: list[bytes] = []
        before = -1
        while before != self.switch.received[FLOW_MOD]:  # the ports open for hosts one after the other
            before = self.switch.received[FLOW_MOD]
            self.switch.run_for(1.0)

    def ask(self, **question: Any) -> Any:
        answer = query(self.process.socket, question, 30.0)
        assert "error" not in answer, answer
        return answer

    def begin(self, script: str) -> str:
        return str(self.ask(do="probe-run", script=script, for_s=LONGEST_S)["id"])

    def end(self, number: str) -> Any:
        return self.ask(do="probe-stop", id=number)

    def join(self) -> float:
        """Return joins per second of the controller's processor time, of as many as a turn has."""
        frames = [next(self._frames) for _ in range(self.joins)]
        self.known += frames
        return self.say(frames, len(frames))

    def say(self, frames: list[bytes], entries: int, per_s: float | None = None) -> float:
        """Send frames, wait for so many entries, and return frames per second of the controller's processor time."""
        before, sent, began_s = self.switch.received[FLOW_MOD], 0, time.monotonic()
        before_ns = spent_ns(self.process.pid)
        while sent < len(frames) or self.switch.received[FLOW_MOD] - before < entries:
            wanted = len(frames) if per_s is None else int((time.monotonic() - began_s) * per_s)
            while sent < min(wanted, len(frames)) and self.switch.unsent_bytes < WINDOW_BYTES:
                more = frames[sent : min(sent + 64, wanted)]
                self.switch.say(more)
                sent += len(more)
            self.switch.turn(0.0 if sent < min(wanted, len(frames)) else 0.002)
            assert time.monotonic() - began_s < 120, dict(self.switch.received)
        after_ns = spent_ns(self.process.pid)
        return len(frames) * 1e9 / sum(spent - before_ns.get(thread, 0) for thread, spent in after_ns.items())


def turns(without: Callable[[], float], with_it: Callable[[], float], count: int = TURNS) -> list[float]:
    """Return the ratios of pairs, each of which begins with the other one: what grows meets both alike."""
    ratios = []
    for number in range(count):
        if number % 2:
            one, other = with_it(), without()
        else:
            other = without()
            one = with_it()
        ratios.append(one / other)
    return ratios


def nothing_attached(name: str, joins: int) -> list[Measurement]:
    """Compare a controller at which no script ever looked with one at which a thousand did, one after the other."""
    with ExitStack() as stack:
        fresh, used = Bench(name, stack, joins), Bench(name, stack, joins)
        for _ in range(LOADS):
            used.end(used.begin(COUNT))
            for bench in (fresh, used):  # switches that are silent are given up
                bench.switch.turn(0.0)
        ratios = turns(fresh.join, used.join)
    what = f"{name}: joins, after {LOADS:,} scripts came and went, to joins where none did (goal 0.99)"
    return [Measurement(what, "times", ratios)]


def attached(name: str, joins: int) -> list[Measurement]:
    """Compare joins with scripts to joins without, in turn in one controller; all that happens must be counted."""
    found = []
    with ExitStack() as stack:
        bench = Bench(name, stack, joins)
        for what, (script, firings, goal) in SCRIPTS.items():
            refused: list[float] = []
            ratios = turns(bench.join, partial(_join_watched, bench, script, firings * joins, refused))
            told = f"{name}: joins at full speed with {what} to without (goal {goal})"
            found.append(Measurement(told, "times", ratios))
            found.append(Measurement(f"{name}: firings refused, {what}", "%", refused))
        frames = bench.known[:PACKETS_PER_S]

        def paced() -> float:
            return bench.say(frames, 0, PACKETS_PER_S)

        def paced_with_it() -> float:
            number = bench.begin(COUNT + " discovery:event:PacketReceived { n[dpid]++; }")
            rate = paced()
            bench.switch.run_for(0.2)
            ended = bench.end(number)
            assert (ended["fired"], ended["skipped"]) == (2 * len(frames), 0), ended
            return rate

        ratios = turns(paced, paced_with_it)
        what = f"{name}: reports, {PACKETS_PER_S} and {2 * PACKETS_PER_S:,} firings a second, to without (goal 0.99)"
        found.append(Measurement(what, "times", ratios))
    return found


def _join_watched(bench: Bench, script: str, happened: int, refused: list[float]) -> float:
    """Join while a script looks on, which must count all that happened, and note which part of it was refused."""
    number = bench.begin(script)
    rate = bench.join()
    ended = bench.end(number)
    assert (ended["fired"] + ended["skipped"], ended["faults"]) == (happened, {}), ended
    refused.append(100 * ended["skipped"] / happened)
    return rate


def overload(name: str, joins: int) -> list[Measurement]:
    """Have a script that takes far too long at 8 points look at joins at full speed."""
    with ExitStack() as stack:
        bench = Bench(name, stack, joins)
        refused: list[float] = []
        ratios = turns(bench.join, partial(_join_watched, bench, HEAVY, 8 * joins, refused))
    return [
        Measurement(f"{name}: joins with a script that takes too long, to without (goal 0.90)", "times", ratios),
        Measurement(f"{name}: its firings that were refused, and counted", "%", refused),
    ]


def exactness(name: str, joins: int) -> list[Measurement]:
    """Count by scripts what the switch has sent and been sent: the same number, or the run ends here."""
    with ExitStack() as stack:
        bench = Bench(name, stack, joins)
        edits, packets = bench.begin(library()["tree-changes"].text), bench.begin(COUNT)
        before = bench.switch.received[FLOW_MOD]
        bench.join()
        counted = sum(row["count"] for row in bench.end(edits)["aggregates"]["edits_of"])
        seen = sum(row["count"] for row in bench.end(packets)["aggregates"]["n"])
        assert (counted, seen) == (bench.switch.received[FLOW_MOD] - before, joins), (counted, seen)
    return [Measurement(f"{name}: edits and packets, counted by scripts as by the switch", "", [counted + seen])]


def firings() -> list[Measurement]:
    """Compare a firing with the same filter and count by CEL (in Rust) and simpleeval, where these are."""
    packet = PacketReceived(7, 3, bytes(64), False)
    script = load(
        "aggr n[1][0]; multicast:event:PacketReceived when (in_port == 3) { n[dpid]++; }", recorded_points()
    )
    run = LoopRun(script, time.monotonic_ns, time.thread_time_ns, LoopBudget(100.0), 4096)
    (watcher,) = run.watchers(script.points).values()
    contenders: dict[str, Callable[[], object]] = {"a firing: filter and count": partial(watcher, packet)}
    goals = {}
    for name, goal, make in (("CEL in Rust", 0.5, _cel), ("simpleeval", 0.25, _simpleeval)):
        try:
            contenders[name], goals[name] = make(packet), goal
        except ImportError:
            print(f"{name} is not installed, and left out")
    samples = time_per_call_us(contenders)
    ours = samples["a firing: filter and count"]
    ratios = [
        Measurement(
            f"a firing to {name} (goal {goal})", "times", [a / b for a, b in zip(ours, samples[name], strict=True)]
        )
        for name, goal in goals.items()
    ]
    return [*(Measurement(name, "us", values) for name, values in samples.items()), *ratios]


def _cel(packet: PacketReceived) -> Callable[[], object]:
    from cel import compile as compile_cel

    program, counts = compile_cel("in_port == 3"), {7: 0}

    def fire() -> None:
        if program.execute({"in_port": packet.in_port, "dpid": packet.dpid}):
            counts[packet.dpid] += 1

    return fire


def _simpleeval(packet: PacketReceived) -> Callable[[], object]:
    from simpleeval import SimpleEval

    evaluator, counts = SimpleEval(), {7: 0}
    parsed = evaluator.parse("in_port == 3")

    def fire() -> None:
        evaluator.names = {"in_port": packet.in_port, "dpid": packet.dpid}
        if evaluator.eval("in_port == 3", previously_parsed=parsed):
            counts[packet.dpid] += 1

    return fire
