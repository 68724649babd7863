"""Where a controller's processor time for a join goes, stage by stage, from what a switch sends to what it is sent.

    PYTHONPATH=. python benchmarks/join_stages.py [--k 16] [--groups 600] [--burst 5400] [--json]

The burst of `live_fabric.py --parts start,hosts,joins`, with a clock of the loop's own processor time that the stages
of a join stop and start in the controller. A stage's time is without those that it calls, without what looking at the
clock takes, and without what it takes while nobody joins. Times of the other threads, and of Python's cyclic
collector, which runs within stages, stand beside them. The clock makes a join dearer: compare shares, and take the
whole from `live_fabric.py`.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from fabric_arguments import add_fabric_arguments, fabric_of
from fabric_simulator import parts
from fabric_simulator.parts import Amounts
from fabric_simulator.run import LiveRun, live_run
from measure import print_json, print_table

from apps.cli.main import main as vsrt
from apps.emulation.controller import ControllerProcess

STAGES = {
    "turns of the loop, waiting for sockets": ["apps.openflow.reactor:Reactor._turn"],
    "deadlines asked for": [
        "apps.openflow.app:App.deadline_s",
        "apps.openflow.datapaths:Datapaths.deadline_s",
    ],
    "sockets read": ["apps.openflow.connection:Connection._read"],
    "messages told apart, handed over": ["apps.openflow.southbound:Southbound.take"],
    "turns of apps, events, effects": ["apps.openflow.app:App._turn", "apps.openflow.datapaths:Datapaths._turn"],
    "cores: dispatch of events": [
        "controller.multicast.core:MulticastCore.handle",
        "controller.datapath.core:DatapathCore.handle",
    ],
    "frames: budgets, domain, place of the host": ["controller.multicast.frames:MulticastIntake.packet_received"],
    "frames decoded": ["controller.multicast.frames:decode_once"],
    "membership": ["controller.membership.core:MembershipCore.report_received"],
    "admission": ["controller.multicast.gate:ReceiverGate.admit"],
    "interests: domains, link aggregation, notes for page and log": [
        "controller.multicast.membership_effects:MembershipEffects.apply"
    ],
    "groups": ["controller.multicast.groups:GroupPlane.interest_changed"],
    "trees": ["controller.trees.forest:Forest.join"],
    "OIF lists": ["controller.multicast.groups:GroupPlane._locally"],
    "flow entries compiled": [
        "controller.multicast.group_rules:default_rule",
        "controller.multicast.group_rules:GroupRules.lower",
        "controller.multicast.group_rules:GroupRules.default",
    ],
    "flow entries handed over": [
        "controller.rules.installer:Installer.put",
        "controller.rules.installer:Installer.change",
    ],
    "batches made": ["controller.datapath.core:DatapathCore.on_deadline"],
    "batches encoded": ["controller.rules.lowering:Lowering.encode_batch"],
    "sent": ["apps.openflow.connection:Connection.send", "apps.openflow.connection:Connection.flush"],
    "barrier replies": ["controller.datapath.core:DatapathCore.barrier_replied"],
    "readings of switches": [
        "controller.datapath.core:DatapathCore.flow_stats_received",
        "controller.rules.installer:Installer.flow_stats_received",
    ],
    "log: values made": ["controller.multicast.journal:MulticastJournal.on_deadline"],
    "log: handed to its thread": ["apps.multicast:MulticastApp._write_log", "apps.log_keeper:LogKeeper._done"],
    "audit": ["apps.state_dir:AuditLog.add"],
    "what is due of multicast beside": ["controller.multicast.core:MulticastCore._deadline_reached"],
    "unicast": ["controller.unicast.core:UnicastCore.handle"],
    "discovery": ["controller.discovery.core:DiscoveryCore.handle"],
}
"""What each stage is timed by: functions as they are called, by module and name."""

ELSEWHERE = "elsewhere on the loop"
LOOP_IS = "apps.openflow.reactor:Reactor._run"
SPENT_FILE = "VSRT_JOIN_STAGES"
ASKED = signal.SIGUSR2


class StageClock:
    """Processor time of one thread, shared out among stages; each has what is left by those that it calls."""

    def __init__(self) -> None:
        self.thread: int | None = None
        self.spent_s = dict.fromkeys([*STAGES, ELSEWHERE], 0.0)
        self.looks = dict.fromkeys(self.spent_s, 0)
        self.collected_s = self._collecting_s = 0.0
        self._stage, self._since_s = ELSEWHERE, 0.0
        self._look_s = 0.0

    def timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return a function whose time is that of a stage where the thread calls it."""
        clock, spent_s, looks, now_s = self, self.spent_s, self.looks, time.thread_time

        @functools.wraps(function)
        def timing(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() != clock.thread:
                return function(*arguments, **named)
            began_s, before = now_s(), clock._stage
            spent_s[before] += began_s - clock._since_s
            looks[before] += 1
            looks[stage] += 1
            clock._stage, clock._since_s = stage, began_s
            try:
                return function(*arguments, **named)
            finally:
                ended_s = now_s()
                spent_s[stage] += ended_s - clock._since_s
                clock._stage, clock._since_s = before, ended_s

        return timing

    def begin(self) -> None:
        """Time the calling thread from here on."""
        count = 20000
        self.thread = threading.get_ident()
        nothing = self.timed(lambda: None, ELSEWHERE)
        self._since_s = began_s = time.thread_time()
        for _ in range(count):
            nothing()
        self._since_s = time.thread_time()
        self._look_s = (self._since_s - began_s) / count / 2
        for counts in (self.spent_s, self.looks):
            counts.update(dict.fromkeys(counts, 0))
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        now_s = time.thread_time()
        if phase == "start":
            self._collecting_s = now_s
        else:
            self.collected_s += now_s - self._collecting_s

    def write(self, path: Path) -> None:
        """Add a line with what every stage has taken so far, without the looks at the clock."""
        spent_s = {stage: took_s - self.looks[stage] * self._look_s for stage, took_s in self.spent_s.items()}
        with path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"spent_s": spent_s, "collected_s": self.collected_s}) + "\n")


def serve() -> None:
    """Be the controller, with a clock in it."""
    clock, path = StageClock(), Path(os.environ[SPENT_FILE])
    for stage, names in STAGES.items():
        for name in names:
            replace(name, lambda function, stage=stage: clock.timed(function, stage))

    def timed_loop(run: Callable[[Any], None]) -> Callable[[Any], None]:
        def runs(reactor: Any) -> None:
            if reactor.name == "switches":
                clock.begin()
            run(reactor)

        return runs

    replace(LOOP_IS, timed_loop)
    signal.signal(ASKED, lambda _number, _frame: clock.write(path))
    vsrt()


def find(name: str) -> tuple[Any, str, Any]:
    """Return the module or class that has what is named so, its name there, and what it is; KeyError for nothing."""
    module, _, path = name.partition(":")
    holder: Any = importlib.import_module(module)
    *outer, last = path.split(".")
    for part in outer:
        holder = vars(holder)[part]
    return holder, last, vars(holder)[last]


def replace(name: str, change: Callable[[Any], Any]) -> None:
    """Put what `change` makes of a function, method or property in its place."""
    holder, last, found = find(name)
    setattr(holder, last, property(change(found.fget)) if isinstance(found, property) else change(found))


class TimedController(ControllerProcess):
    """A controller with a clock, which says what stages took when it is asked."""

    def command(self) -> list[str]:
        """Return the command line that starts this file instead of ``vsrt``."""
        _, *arguments = super().command()
        return [sys.executable, __file__, "--serve", *arguments]

    def launch(self) -> None:
        """Start the controller."""
        os.environ[SPENT_FILE] = str(self.spent_path)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        super().launch()

    @property
    def spent_path(self) -> Path:
        """Where it writes what stages took."""
        return self.directory / "stages.jsonl"


class Spent(NamedTuple):
    """What was spent until a moment, in seconds: by stage, by the collector, and by each thread of the process."""

    past_s: float
    stages: dict[str, float]
    collected_s: float
    threads: dict[int, float]


def spent(run: LiveRun) -> Spent:
    """Ask the controller."""
    path: Path = run.process.spent_path  # type: ignore[attr-defined]
    known = path.read_text().count("\n") if path.exists() else 0
    os.kill(run.process.pid, ASKED)
    run.fabric.run_until(lambda: path.exists() and path.read_text().count("\n") > known, run.timeout_s)
    told = json.loads(path.read_text().splitlines()[known])
    threads = {
        int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9
        for task in Path(f"/proc/{run.process.pid}/task").iterdir()
    }
    return Spent(time.monotonic(), told["spent_s"], told["collected_s"], threads)


def beyond_rest(rest: tuple[Spent, Spent], busy: tuple[Spent, Spent], joins: int) -> dict[str, float]:
    """Return microseconds a join by stage, of what was spent while hosts joined beyond what it is at rest."""

    def taken(of: Callable[[Spent], float]) -> float:
        (idle, idle_end), (began, ended) = rest, busy
        a_second = (of(idle_end) - of(idle)) / (idle_end.past_s - idle.past_s)
        return 1e6 * (of(ended) - of(began) - a_second * (ended.past_s - began.past_s)) / joins

    found = {stage: taken(lambda at, stage=stage: at.stages[stage]) for stage in busy[0].stages}
    loop = max(busy[1].threads, key=lambda thread: busy[1].threads[thread] - busy[0].threads.get(thread, 0.0))
    found["the loop, with looks at the clock"] = taken(lambda at: at.threads[loop])
    found["the cyclic collector, within the above"] = taken(lambda at: at.collected_s)
    found["other threads: the log, other apps"] = taken(
        lambda at: sum(took_s for thread, took_s in at.threads.items() if thread != loop)
    )
    return found


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Run a controller, have hosts join, and return the stages."""
    amounts = Amounts(groups=arguments.groups, burst=arguments.burst)
    with live_run(fabric_of(arguments, k=arguments.k), controller=TimedController) as run:
        parts.start(run, amounts)
        parts.hosts(run, amounts)
        run.populate(arguments.groups, 1)
        run.wait_quiet()
        run.fabric.run_for(parts.REST_S)
        idle = spent(run)
        run.fabric.run_for(arguments.rest_s)
        began = spent(run)
        joins = parts.join_at_once(run, amounts)
        return beyond_rest((idle, began), (began, spent(run)), joins)


def main() -> None:
    """Print the stages of a join."""
    if sys.argv[1:2] == ["--serve"]:
        del sys.argv[1]
        sys.argv[0] = "vsrt"
        serve()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", type=int, default=16, help="ports per switch of the fat tree (default: %(default)s)")
    add_fabric_arguments(parser)
    parser.add_argument("--groups", type=int, default=600)
    parser.add_argument("--burst", type=int, default=5400, help="hosts that join (default: %(default)s)")
    parser.add_argument("--rest-s", type=float, default=5.0, help="how long rest is measured (default: %(default)s)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments)
    if arguments.json:
        print_json({"benchmark": Path(__file__).name, "us_per_join": found})
        return
    print_table(("stage", "us a join"), [(stage, f"{us:.1f}") for stage, us in found.items()])


if __name__ == "__main__":
    main()
