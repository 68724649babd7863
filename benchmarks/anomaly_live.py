"""Cost and memory of the live comparison: `PYTHONPATH=. python benchmarks/anomaly_live.py --ports 10000`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from measure import Measurement, report

from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import PortsSampled
from controller.config.anomaly_settings import Anomaly
from controller.events import DeadlineReached
from sampled_fabric import START_S
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp

POLL_S = 10.0
PORTS_PER_LEAF = 64
UPLINKS = 16


def fabric(core: AnomalyCore, ports: int) -> dict[int, tuple[tuple[int, int], ...]]:
    """Tell a core of leaves with 48 hosts and 16 uplinks each, and return the ports of every switch."""
    leaves = max(1, ports // (PORTS_PER_LEAF + UPLINKS))
    found: dict[int, list[tuple[int, int]]] = {}
    spines = range(100_001, 100_001 + UPLINKS)
    for dpid in (*range(1, leaves + 1), *spines):
        core.handle(SwitchUp(dpid, 4), 0.0)
    for leaf in range(1, leaves + 1):
        for index, spine in enumerate(spines, 1):
            core.handle(LinkUp(leaf, index, spine, leaf, 1e10), 0.0)
            found.setdefault(leaf, []).append((leaf, index))
            found.setdefault(spine, []).append((spine, leaf))
        for port_no in range(UPLINKS + 1, PORTS_PER_LEAF + 1):
            core.handle(PortRoleChanged(leaf, port_no, PortRole.EDGE), 0.0)
            found[leaf].append((leaf, port_no))
        core.handle(HostLearnt(leaf.to_bytes(6, "big"), leaf, UPLINKS + 1, ()), 0.0)
    return {dpid: tuple(keys) for dpid, keys in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", type=int, default=10_000)
    parser.add_argument("--windows", type=int, default=3, help="windows measured, after the first")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    settings = Anomaly()
    core = AnomalyCore(settings, POLL_S)
    switches = fabric(core, arguments.ports)
    ports = sum(map(len, switches.values()))
    rng = np.random.default_rng(1)
    window_s = settings.interval_s * settings.shift_samples
    lead_s = settings.interval_s * (settings.window_samples + settings.smoothing_samples)
    feed_us, judge_ms, share_pct = [], [], []
    spent_s, since_s = 0.0, 0.0
    for poll in range(int((lead_s + (arguments.windows + 1) * window_s) / POLL_S)):
        at_s = START_S + POLL_S * poll
        fed_s = 0.0
        for keys in switches.values():
            count = len(keys)
            per_s = rng.poisson(1000.0, (count, 12)).astype(float)
            per_s[:, 4:] = 0.0
            interval_s = np.full(count, POLL_S)
            utilisation_pct = per_s[:, :2] / 1000.0
            sample = PortsSampled(keys, np.full(count, at_s), interval_s, per_s, utilisation_pct, {})
            start = time.process_time()
            core.handle(sample, 0.0)
            fed_s += time.process_time() - start
        judged_s = 0.0
        while core.next_deadline() is not None:
            start = time.process_time()
            core.handle(DeadlineReached(), 0.0)
            judge_ms.append(1000 * (time.process_time() - start))
            judged_s += judge_ms[-1] / 1000
        feed_us.append(1e6 * fed_s / ports)
        spent_s, since_s = spent_s + fed_s + judged_s, since_s + POLL_S
        if judged_s:
            if core.tally["windows"] > ports:
                share_pct.append(100 * spent_s / since_s)
            spent_s = since_s = 0.0
    report(
        [
            Measurement(f"a sample of a port ({ports} ports)", "us", feed_us[1:]),
            Measurement("one step of judging a window", "ms", judge_ms),
            Measurement(f"share of a core, polls every {POLL_S:g} s", "%", share_pct),
            Measurement("arrays, per port", "bytes", [core.bytes_per_member]),
        ],
        as_json=arguments.json,
        source="anomaly_live",
    )


if __name__ == "__main__":
    main()
