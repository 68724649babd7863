"""Runs a plan on an emulated fabric under a live controller and measures what every receiver got."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from apps.emulation.agents import Agent
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.emulation.plan import (
    EventPlan,
    ExperimentPlan,
    GroupPlan,
    ReceiverPlan,
    SenderPlan,
    forced_lost_pct,
    stream_numbers,
)
from apps.emulation.processes import EmulationError
from apps.emulation.replay import ReplayPlan
from apps.emulation.traffic import DEFAULT_FRAME_BYTES, FRAME_OVERHEAD_BYTES, family_of
from controller.config.document import parse
from controller.config.faults import Faults
from controller.config.read import NodeReader
from topology.graph import Graph, NodeId

WARMUP_PHASE, MEASURED_PHASE = 0, 1
JOIN_TIMEOUT_S = 20.0
SLACK_S = 15.0
WARMUP_PACKETS = 20
"""Of each sender, before packets are replayed."""

REBALANCE_INTERVAL_S = 2.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what an experiment runs: the tree algorithm with its seed, the framework, the OpenFlow version."""

    algorithm: str
    seed: int = 1
    framework: Framework = "ryu"
    openflow: str = "1.3"

    @property
    def protocols(self) -> str:
        """The version as Open vSwitch names it."""
        return {"1.0": "OpenFlow10", "1.3": "OpenFlow13"}[self.openflow]


def policy_text(plan: ExperimentPlan, setting: Conditions) -> str:
    """Return the policy file of the run: the plan's, or one that admits all, with the algorithm and seed set."""
    document: dict[str, Any] = {"version": 1, "default": "allow"}
    if plan.policy is not None:
        document = _read_policy(plan.policy)
    multicast = {"rebalance_interval_s": REBALANCE_INTERVAL_S, **(document.get("multicast") or {})}
    document["multicast"] = {**multicast, "tree": setting.algorithm, "seed": setting.seed}
    if plan.capacities:
        # Emulated ports tell no speed of their own, or that of the machine they run on.
        document["discovery"] = {
            "link_capacity_bps": _switch_link_bps(plan.graph),
            **(document.get("discovery") or {}),
        }
    return yaml.safe_dump(document, sort_keys=False)


def _switch_link_bps(graph: Graph) -> float:
    """Return the least capacity of a link between switches, 0 (what their ports tell) where there is none."""
    hosts = set(graph.hosts())
    between = (link.capacity_bps for link in graph.links() if link.u not in hosts and link.v not in hosts)
    return min(between, default=0.0)


def _read_policy(path: Path) -> dict[str, Any]:
    faults = Faults()
    root = parse(path.read_text(encoding="utf-8"), faults)
    document = None if root is None else NodeReader(faults).plain(root, "")
    if faults.any_error or not isinstance(document, dict):
        raise EmulationError(f"{path} is no policy file: vsrt policy check {path}")
    expected = document.get("topology")
    if isinstance(expected, dict) and isinstance(expected.get("file"), str):
        expected["file"] = str((path.parent / expected["file"]).absolute())
    return document


def run_plan(
    plan: ExperimentPlan,
    setting: Conditions,
    progress: Progress = lambda text: None,
    replay: ReplayPlan | None = None,
) -> dict[str, Any]:
    """Run `plan` and return its result as ``vsrt emulate --json`` shows it; `replay` has packets sent as captured.

    Raises EmulationError where the network, the controller or a tool fails.
    """
    with tempfile.TemporaryDirectory(prefix="vsrt-run-") as directory:
        policy = Path(directory) / "policy.yaml"
        policy.write_text(policy_text(plan, setting), encoding="utf-8")
        controller = ControllerProcess(CONTROLLER_PORT, framework=setting.framework, policy=policy)
        fabric = EmulatedFabric(
            plan.graph,
            controller=controller,
            protocols=setting.protocols,
            capacities=plan.capacities,
            # A meter behind a patch link drops the packet for whatever its switch still had to send it to.
            patch_links=not plan.capacities and not any(event.do.startswith("link") for event in plan.events),
        )
        progress("starting the network")
        with fabric:
            return _Run(plan, setting, fabric, controller, progress, replay).measure()


class _Run:
    """One run on a network that is up."""

    def __init__(
        self,
        plan: ExperimentPlan,
        setting: Conditions,
        fabric: EmulatedFabric,
        controller: ControllerProcess,
        progress: Progress,
        replay: ReplayPlan | None,
    ) -> None:
        self._plan = plan
        self._replay = replay
        self._setting = setting
        self._fabric = fabric
        self._controller = controller
        self._progress = progress
        self._streams = stream_numbers(plan)
        self._moved: set[tuple[str, NodeId]] = set()

    def measure(self) -> dict[str, Any]:
        """Join, warm up, measure, and put the result together."""
        plan, fabric = self._plan, self._fabric
        self._controller.wait_discovered(fabric)
        fabric.announce()
        for group, receiver in plan.joins():
            self._join(group.group, receiver)
        self._progress("joined; waiting for the controller to know")
        self._wait_known()
        for group in plan.groups:
            for sender in group.senders:
                number = self._streams[group.group, sender.host]
                fabric.open_stream(number, sender.host, group.group, self._rate_bps(sender), seed=self._setting.seed)
        self._progress(f"warming up for {plan.warmup_s:g} s")
        fabric.send(WARMUP_PHASE)
        time.sleep(plan.warmup_s)
        if self._replay is None:
            self._progress(f"measuring for {plan.duration_s:g} s")
            self._carry_out_events(fabric.send(MEASURED_PHASE, plan.duration_s))
            fabric.wait_sent(plan.duration_s + SLACK_S)
            return self._result(fabric.sent(), fabric.settled(), self._groups())
        return self._replayed(self._replay)

    def _groups(self) -> dict[str, Any]:
        return {document["group"]: document for document in self._controller.show("groups")}

    def _rate_bps(self, sender: SenderPlan) -> float:
        """Return the rate of a sender; before a replay it makes the sender known, and is as high as that takes."""
        if self._replay is None or not self._plan.warmup_s:
            return sender.rate_bps
        return max(sender.rate_bps, WARMUP_PACKETS * DEFAULT_FRAME_BYTES * 8 / self._plan.warmup_s)

    def _carry_out_events(self, start_ns: int) -> None:
        for event in self._plan.events:
            time.sleep(max(0.0, start_ns / 1e9 + event.at_s - time.monotonic()))
            self._happen(event)

    def _replayed(self, replay: ReplayPlan) -> dict[str, Any]:
        plan, fabric = self._plan, self._fabric
        fabric.halt()
        with Agent("replayer") as agent:
            for group in plan.groups:
                for sender in group.senders:
                    agent.ask(
                        "open",
                        stream=self._streams[group.group, sender.host],
                        pid=fabric.pid(sender.host),
                        interface=fabric.interface(sender.host),
                        group=group.group,
                    )
            self._progress(f"replaying {replay.sent.total():,} packets for {replay.duration_s:,.1f} s")
            asked = agent.ask("replay", file=str(replay.records), speed=replay.speed, phase=MEASURED_PHASE)
            self._carry_out_events(asked["at_ns"])
            agent.ask("wait", timeout_s=replay.duration_s + max(SLACK_S, replay.duration_s))
            told = agent.ask("report")
        sent = fabric.sent()
        for number, counts in told["streams"].items():
            sent[number]["phases"][str(MEASURED_PHASE)] = counts
            sent[number]["max_lateness_ms"] = told["max_lateness_ms"]
        errors = sum(counts["errors"] for counts in told["streams"].values())
        return {
            **self._result(sent, fabric.settled(), self._groups()),
            "replay": {
                "capture": str(replay.capture),
                "speed": replay.speed,
                "packets": sum(counts["sent"] for counts in told["streams"].values()),
                "bytes": sum(counts["bytes"] for counts in told["streams"].values()),
                "planned": {"packets": replay.sent.total(), "bytes": replay.sizes_bytes.total()},
                "errors": errors,
                "skipped": dict(replay.skipped),
                "enlarged": replay.enlarged,
                "shortened": replay.shortened,
                "backward": replay.backward,
                "gap_error": told["gap_error"],
                "gap_errors": told["gap_errors"],
                "held_up_ms": round(told["held_up_ms"], 3),
            },
        }

    def _join(self, group: str, receiver: ReceiverPlan) -> None:
        fabric, ipv6 = self._fabric, ":" in group
        fabric.join(
            receiver.host,
            group,
            include=[fabric.address(host, ipv6=ipv6) for host in receiver.include],
            exclude=[fabric.address(host, ipv6=ipv6) for host in receiver.exclude],
            igmp_version=receiver.igmp_version,
        )

    def _wait_known(self) -> None:
        wanted = {
            (group.group, str(self._fabric.node(receiver.host).MAC()))
            for group in self._plan.groups
            for receiver in group.receivers
        }

        def known(groups: list[dict[str, Any]]) -> bool:
            return wanted <= {
                (document["group"], member["mac"])
                for document in groups
                for member in (*document["members"], *document["refused"])
            }

        self._controller.wait_until("groups", known, JOIN_TIMEOUT_S)

    def _happen(self, event: EventPlan) -> None:
        fabric = self._fabric
        match event.do:
            case "link-down":
                fabric.link_down(event.nodes[0], event.nodes[1])
            case "link-up":
                fabric.link_up(event.nodes[0], event.nodes[1])
            case "switch-down":
                fabric.switch_down(*event.nodes)
            case "switch-up":
                fabric.switch_up(*event.nodes)
            case "join":
                self._moved.add((event.group, event.nodes[0]))
                self._join(event.group, ReceiverPlan(event.nodes[0]))
            case "leave":
                self._moved.add((event.group, event.nodes[0]))
                fabric.leave(event.nodes[0], event.group)

    def _result(self, sent: dict[str, Any], received: dict[str, Any], groups: dict[str, Any]) -> dict[str, Any]:
        receivers, refused = [], []
        for group, receiver in self._all_receivers():
            entry = self._receiver_result(group, receiver, sent, received[f"{receiver.host} {group.group}"], groups)
            if self._refused(groups, group.group, receiver.host, "refused"):
                refused.append(
                    {"group": group.group, "host": receiver.host, "role": "receiver", "received": entry["received"]}
                )
            else:
                receivers.append(entry)
        for group in self._plan.groups:
            for sender in group.senders:
                if not self._sender_admitted(groups, group.group, sender.host):
                    refused.append({"group": group.group, "host": sender.host, "role": "sender"})
        expected = sum(entry["sent"] for entry in receivers)
        got = sum(entry["received"] for entry in receivers)
        return {
            "algorithm": self._setting.algorithm,
            "seed": self._setting.seed,
            "framework": self._setting.framework,
            "openflow": self._setting.openflow,
            "capacities": self._plan.capacities,
            "receivers": receivers,
            "lost_pct": _lost_pct(expected, got),
            "rate_bps": sum(entry["rate_bps"] for entry in receivers),
            "forced_lost_pct": (
                round(forced_lost_pct(self._plan.graph, self._plan.groups), 3) if self._plan.capacities else 0.0
            ),
            "refused": refused,
            "max_sender_lateness_ms": round(max((s["max_lateness_ms"] for s in sent.values()), default=0.0), 1),
        }

    def _all_receivers(self) -> list[tuple[GroupPlan, ReceiverPlan]]:
        planned = [(group, receiver) for group in self._plan.groups for receiver in group.receivers]
        known = {(group.group, receiver.host) for group, receiver in planned}
        by_address = {group.group: group for group in self._plan.groups}
        for event in self._plan.events:
            if event.do == "join" and (event.group, event.nodes[0]) not in known and event.group in by_address:
                planned.append((by_address[event.group], ReceiverPlan(event.nodes[0])))
                known.add((event.group, event.nodes[0]))
        return planned

    def _receiver_result(
        self,
        group: GroupPlan,
        receiver: ReceiverPlan,
        sent: dict[str, Any],
        document: dict[str, Any],
        groups: dict[str, Any],
    ) -> dict[str, Any]:
        expected = got = duplicates = size_bytes = 0
        overhead_bytes = FRAME_OVERHEAD_BYTES[family_of(group.group)]
        first_ms: list[float] = []
        for sender in group.senders:
            if not receiver.wants(sender.host) or not self._sender_admitted(groups, group.group, sender.host):
                continue
            number = self._streams[group.group, sender.host]
            phases = sent[str(number)]["phases"]
            tally = document["streams"].get(f"{number}:{MEASURED_PHASE}")
            if (group.group, receiver.host) in self._moved:
                # A receiver that came or went owes nothing outside the packets between its first and last.
                expected += tally["highest_sequence"] - tally["lowest_sequence"] + 1 if tally else 0
            else:
                expected += phases[str(MEASURED_PHASE)]["sent"]
            if tally:
                got += tally["received"]
                size_bytes += tally["payload_bytes"] + tally["received"] * overhead_bytes
                duplicates += tally["duplicates"]
            for phase, counts in phases.items():
                arrival = document["streams"].get(f"{number}:{phase}")
                if arrival:
                    since_ns = max(document["joined_ns"], counts["first_ns"])
                    first_ms.append((arrival["first_ns"] - since_ns) / 1e6)
                    break
        return {
            "group": group.group,
            "host": receiver.host,
            "sent": expected,
            "received": got,
            "lost_pct": _lost_pct(expected, got),
            "duplicates": duplicates,
            "bytes": size_bytes,
            "rate_bps": round(size_bytes * 8 / self._plan.duration_s),
            "first_packet_ms": round(min(first_ms), 3) if first_ms else None,
        }

    def _refused(self, groups: dict[str, Any], group: str, host: NodeId, key: str) -> bool:
        mac = str(self._fabric.node(host).MAC())
        return any(member["mac"] == mac for member in groups.get(group, {}).get(key, ()))

    def _sender_admitted(self, groups: dict[str, Any], group: str, host: NodeId) -> bool:
        mac = str(self._fabric.node(host).MAC())
        return not any(
            sender["mac"] == mac and not sender["admitted"] for sender in groups.get(group, {}).get("senders", ())
        )


def _lost_pct(expected: int, got: int) -> float:
    return round(100.0 * (1.0 - got / expected), 3) if expected else 0.0
