"""What scripts cost a controller: joins per second of its processor time, with a script and without in turn."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from math import sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any

from control_plane import report_frames
from controllers import controller
from fabric_simulator.process import cpu_at_rest_s
from measure import Measurement, time_per_call_us
from probe_joins import COUNT, SCRIPTS

from apps.emulation.agents import REPOSITORY
from apps.emulation.controller import ControllerProcess
from apps.probe_points import recorded_points
from apps.simulated_fabric.lone import LoneSwitch
from apps.simulated_fabric.messages import FLOW_MOD
from apps.status_client import query
from controller.events import PacketReceived
from controller.probes.library import library
from controller.probes.live import LoopBudget, LoopRun
from controller.probes.script import load

PORTS = 48
JOINS = 500
"""Joins of a turn, at each of the controllers that are compared."""
AT_ONCE = 50
"""Joins after which it is the other controller's turn, so that what else runs meets both alike."""
IN_ONE_GO = 12_000
"""Joins after which it is the other's turn, where controllers are to have more to do than they can.

That is most of a second: a script has its share of each 100 ms that it begins to fire in, and of shorter goes that
would be more.
"""
TURNS, LONG_TURNS = 10, 5
GROUPS = 130_000
"""Groups that there are frames for: of all turns at one controller, and those before."""
WINDOW_BYTES = 1 << 16
LOADS = 1000
LONGEST_S = 3600
PACKETS_PER_S = 500

HEAVY = "int i; aggr n[1][0];" + "".join(
    f" {point} {{ for (i = 0; i < 400; i++) {{ n[i]++; }} }}"
    for point in ("multicast:event:PacketReceived", "discovery:event:PacketReceived") * 4
)

WITHOUT_PROBES = {"PYTHONPATH": os.pathsep.join((str(Path(__file__).parent / "without_probes"), str(REPOSITORY)))}
"""The environment of a controller that has no probes at all."""


class Bench:
    """A controller, a switch whose hosts join groups that nobody was in before, and scripts that look on."""

    def __init__(self, name: str, stack: ExitStack, env: Mapping[str, str] = MappingProxyType({})) -> None:
        self.process: ControllerProcess = stack.enter_context(controller(name, env=env))
        self.switch = LoneSwitch(1, PORTS, ("127.0.0.1", self.process.port))
        stack.callback(self.switch.close)
        self._frames: Iterator[bytes] = iter(report_frames(GROUPS, 3, PORTS))
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

    def join(self, count: int) -> float:
        """Join groups, and return joins per second of the controller's processor time."""
        frames = [next(self._frames) for _ in range(count)]
        self.known += frames
        return self.say(frames, len(frames))

    def say(self, frames: list[bytes], entries: int, per_s: float | None = None) -> float:
        """Send frames, wait for so many entries, and return frames per second of the controller's processor time."""
        before, sent, began_s = self.switch.received[FLOW_MOD], 0, time.monotonic()
        before_s = cpu_at_rest_s(self.process.pid)
        while sent < len(frames) or self.switch.received[FLOW_MOD] - before < entries:
            wanted = len(frames) if per_s is None else int((time.monotonic() - began_s) * per_s)
            while sent < min(wanted, len(frames)) and self.switch.unsent_bytes < WINDOW_BYTES:
                more = frames[sent : min(sent + 64, wanted)]
                self.switch.say(more)
                sent += len(more)
            self.switch.turn(0.0 if sent < min(wanted, len(frames)) else 0.002)
            assert time.monotonic() - began_s < 120, dict(self.switch.received)
        return len(frames) / (cpu_at_rest_s(self.process.pid) - before_s)


def join_in_turn(benches: Sequence[Bench], joins: int, at_once: int = AT_ONCE) -> list[float]:
    """Have the switches of controllers join groups some at a time, in turn; return joins per second of each."""
    took_s = [0.0 for _ in benches]
    order = list(range(len(benches)))
    for done in range(0, joins, at_once):
        for number in order:
            count = min(at_once, joins - done)
            took_s[number] += count / benches[number].join(count)
            for other in benches:  # switches that are silent are given up
                other.switch.turn(0.0)
        order = order[1:] + order[:1]
    return [joins / each_s for each_s in took_s]


def nothing_attached(name: str, joins: int) -> list[Measurement]:
    """Compare a controller at which a thousand scripts looked, one after the other, with two that know of none."""
    with ExitStack() as stack:
        plain, again = (Bench(name, stack, env=WITHOUT_PROBES) for _ in range(2))
        used = Bench(name, stack)
        answer = query(plain.process.socket, {"show": "probes"}, 30.0)
        assert "error" in answer, answer  # it has no probes
        for _ in range(LOADS):
            used.end(used.begin(COUNT))
            for bench in (plain, again, used):
                bench.switch.turn(0.0)
        ratios: list[float] = []
        anchors: list[float] = []
        join_in_turn((plain, again, used), joins)
        for _ in range(TURNS):
            without, other, rate = join_in_turn((plain, again, used), joins)
            ratios.append(rate / without)
            anchors.append(other / without)
    what = (
        f"{name}: joins, after {LOADS:,} scripts came and went, to joins of a controller without probes (goal 0.99)"
    )
    return [
        Measurement(what, "times", ratios),
        Measurement(f"{name}: anchor, two controllers without probes", "times", anchors),
    ]


def attached(name: str, joins: int) -> list[Measurement]:
    """Compare joins with scripts to joins without; all that happens must be counted."""
    found = [
        each
        for what, (script, firings, goal) in SCRIPTS.items()
        for each in _watched(name, joins, script, firings, f"a script of {what}", goal)
    ]
    return [*found, *_paced(name, joins)]


def _watched(
    name: str,
    joins: int,
    script: str,
    firings: int,
    what: str,
    goal: float,
    at_once: int = AT_ONCE,
    turns: int = TURNS,
) -> tuple[Measurement, Measurement]:
    """Compare two controllers, at which a script looks in turn: which one is the faster by itself is no matter.

    Nor is which one joins before the other, as that is the same one whichever the script looks at.
    """
    refused: list[float] = []

    def turn(watched: Bench, plain: Bench) -> float:
        number = watched.begin(script)
        rates = dict(zip((one, other), join_in_turn((one, other), joins, at_once), strict=True))
        ended = watched.end(number)
        happened = firings * joins
        assert (ended["fired"] + ended["skipped"], ended["faults"]) == (happened, {}), ended
        refused.append(100 * ended["skipped"] / happened)
        return rates[watched] / rates[plain]

    with ExitStack() as stack:
        one, other = Bench(name, stack), Bench(name, stack)
        join_in_turn((one, other), JOINS)
        ratios = [sqrt(turn(one, other) * turn(other, one)) for _ in range(turns)]
    return (
        Measurement(f"{name}: joins at full speed with {what} to without (goal {goal})", "times", ratios),
        Measurement(f"{name}: firings refused, {what}", "%", refused),
    )


def _paced(name: str, joins: int) -> list[Measurement]:
    with ExitStack() as stack:
        one, other = Bench(name, stack), Bench(name, stack)
        join_in_turn((one, other), joins)

        def turn(watched: Bench, plain: Bench) -> float:
            number = watched.begin(COUNT + " discovery:event:PacketReceived { n[dpid]++; }")
            rates = [0.0, 0.0]
            for at, bench in enumerate((watched, plain)):
                frames = bench.known[:PACKETS_PER_S]
                rates[at] = bench.say(frames, 0, PACKETS_PER_S)
            watched.switch.run_for(0.2)
            ended = watched.end(number)
            assert (ended["fired"], ended["skipped"]) == (2 * len(watched.known[:PACKETS_PER_S]), 0), ended
            return rates[0] / rates[1]

        ratios = [sqrt(turn(one, other) * turn(other, one)) for _ in range(TURNS)]
    what = f"{name}: reports, {PACKETS_PER_S} and {2 * PACKETS_PER_S:,} firings a second, to without (goal 0.99)"
    return [Measurement(what, "times", ratios)]


def overload(name: str, joins: int) -> list[Measurement]:
    """Have a script that takes far too long look on at 8 points.

    Controllers have more to do than they can, one after the other; and then fifty joins at a time in turn, where a
    share of the time is more of what a controller has to do, which is nothing while it is the other's turn.
    """
    what = "a script that takes too long"
    goes = f"{what}, {IN_ONE_GO:,} in one go,"
    busy = _watched(name, IN_ONE_GO, HEAVY, 8, goes, 0.9, at_once=IN_ONE_GO, turns=LONG_TURNS)
    return [*busy, *_watched(name, joins, HEAVY, 8, f"{what}, {AT_ONCE} in turn,", 0.9)]


def exactness(name: str, joins: int) -> list[Measurement]:
    """Count by scripts what the switch has sent and been sent: the same number, or the run ends here."""
    with ExitStack() as stack:
        bench = Bench(name, stack)
        edits, packets = bench.begin(library()["tree-changes"].text), bench.begin(COUNT)
        before = bench.switch.received[FLOW_MOD]
        bench.join(joins)
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
