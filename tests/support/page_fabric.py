"""A fabric of 20 switches as a controller tells it, for tests of the page."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fed_controller import FedController, event, group

TOKEN = "correct-horse-battery-staple"
CHROMIUM = "/usr/bin/chromium-headless-shell"
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
TREE = [[1, 5], [1, 7], [5, 13], [7, 15]]
RECEIVER = {"dpid": 13, "port_no": 1, "mac": "00:00:00:00:00:01", "ip": "10.0.0.1", "mode": "exclude", "sources": []}
INTRUDER = {**RECEIVER, "dpid": 15, "port_no": 2, "mac": "00:00:00:00:00:06", "ip": "10.0.0.6", "rule": "default"}
SENDER = {"dpid": 15, "port_no": 1, "mac": "00:00:00:00:00:05", "ip": "10.0.0.5", "admitted": True, "rule": "feed"}


class DrainedController(FedController):
    """A controller that also does what it is asked for switches, and remembers an hour of every port."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, documents())
        self.server.actions = {**self.server.actions, "port-history": self._history, "normalcy-bounds": self._bounds}

    @staticmethod
    def _history(fields: Mapping[str, Any]) -> Any:
        points = [
            {"time_s": 10 * at, "value": 1e6 + 1e5 * (at % 60), "lower": 8e5, "upper": 8e6} for at in range(1, 361)
        ]
        return {**fields, "step_s": 10, "points": points}

    @staticmethod
    def _bounds(fields: Mapping[str, Any]) -> Any:
        return {"bounds": [[1e5, 1e6]] * len(fields["times_s"])}

    def _action(self, name: str) -> Any:
        note = super()._action(name)

        def act(fields: Mapping[str, Any]) -> Any:
            answer = note(fields)
            if name in ("switch-drain", "switch-undrain"):
                id_ = str(fields["dpid"])
                self.put("switches", id_, {**self.documents["switches"][id_], "drained": name == "switch-drain"})
            return answer

        return act

    def change(self, section: str, id_: str, **fields: Any) -> None:
        self.put(section, id_, {**self.documents[section][id_], **fields})

    def load(self, link_id: str, utilisation_pct: float) -> None:
        """Let a link carry so much in the direction from its first end."""
        near, far = link_id.split("-")
        for port, way in ((near, "tx"), (far, "rx")):
            rates = {f"{way}_utilisation_pct": utilisation_pct, f"{way}_bps": utilisation_pct * 1e7}
            self.change("ports", port, **rates)


def fat_tree() -> dict[str, dict[str, Any]]:
    """Documents of a fat tree of 20 switches: 1 to 4 core, 5 to 12 aggregation, 13 to 20 ToR, with 16 hosts."""
    found: dict[str, dict[str, Any]] = {name: {} for name in ("switches", "links", "ports", "hosts")}
    state = {"ofp_version": 4, "connected": True, "in_sync": True, "drained": False, "cpu_pct": 12.5}
    state["fabric"] = "hall-a"
    tiers = {
        dpid: (3, "core") if dpid < 5 else (2, "aggregation") if dpid < 13 else (1, "tor") for dpid in range(1, 21)
    }
    for dpid, (level, tier) in tiers.items():
        found["switches"][str(dpid)] = {"dpid": dpid, "name": f"s{dpid}", "tier": tier, "level": level, **state}

    def put_port(dpid: int, port_no: int, role: str) -> None:
        rates = {
            f"{way}_{what}": 0.0 for way in ("rx", "tx") for what in ("bps", "pps", "utilisation_pct", "errors_pps")
        }
        key = {"dpid": dpid, "port_no": port_no, "role": role, "name": f"s{dpid}-eth{port_no}"}
        found["ports"][f"{dpid}:{port_no}"] = {**key, "speed_bps": 1e9, **rates}

    def put_link(dpid_a: int, port_a: int, dpid_b: int, port_b: int) -> None:
        ends = {"dpid_a": dpid_a, "port_a": port_a, "dpid_b": dpid_b, "port_b": port_b}
        found["links"][f"{dpid_a}:{port_a}-{dpid_b}:{port_b}"] = {**ends, "capacity_bps": 1e9}
        put_port(dpid_a, port_a, "trunk")
        put_port(dpid_b, port_b, "trunk")

    for pod in range(4):
        for side in range(2):
            aggregation, tor = 5 + 2 * pod + side, 13 + 2 * pod + side
            for at in range(2):
                put_link(1 + 2 * side + at, pod + 1, aggregation, at + 1)
                put_link(aggregation, 3 + at, 13 + 2 * pod + at, 3 + side)
                number = 4 * pod + 2 * side + at + 1
                host = {"mac": f"00:00:00:00:00:{number:02x}", "dpid": tor, "port_no": at + 1}
                found["hosts"][host["mac"]] = {**host, "ips": [f"10.0.0.{number}"]}
                put_port(tor, at + 1, "edge")
    return found


def documents() -> dict[str, dict[str, Any]]:
    """All that the controller of these tests tells."""
    served_group = group("239.1.1.1", members=[RECEIVER], refused=[INTRUDER], senders=[{**SENDER, "rate_bps": 2e6}])
    step = {"chosen": "13:1", "candidates": 16, "tied": 2, "reason": "least usage, the first of 2"}
    feed = "{name: feed, groups: [239.1.0.0/16], role: sender, hosts: any, action: allow}"
    policy = f"version: 1\nrules:\n  - {feed}\ndefault: deny\n"
    anomaly = {"member": "13:1", "peer_group": "tor", "metric": "tx_bps", "since_s": 60, "score": 3.25}
    fabric = fat_tree()
    fabric["ports"]["13:1"]["vlans"] = {"untagged": 10, "tagged": "20,30-35", "names": {"10": "storage"}}
    return {
        **fabric,
        "status": {"status": {"ready": True, "switches": 20, "apps": ["multicast"], "counters": {}}},
        "groups": {
            "239.1.1.1": {**served_group, "links": TREE, "size": 1},
            "239.1.1.2": group("239.1.1.2", links=[]),
        },
        "staged": {},
        "rules": {
            "feed": {"rule": "feed", "allow": 5, "deny": 0},
            "default": {"rule": "default", "allow": 0, "deny": 2},
        },
        "routers": {
            "queriers": {"queriers": []},
            "13:1:4@20": {
                "dpid": 13,
                "port_no": 1,
                "family": 4,
                "vlan": 20,
                "static": False,
                "routers": ["10.0.0.9"],
            },
        },
        "events": {
            "multicast-1": event(100, "switch 9 is part of the fabric", kind="switch-up", dpid=9),
            "multicast-2": event(
                *(200, "00:00:00:00:00:06 may not be a receiver of 239.1.1.1: default"),
                **{"kind": "receiver-refused", "severity": "warning", "dpid": 15, "port_no": 2, "group": "239.1.1.1"},
            ),
        },
        "alarms": {},
        "cleared-alarms": {},
        "anomalies": {"a1": {**anomaly, "verdict": "component", "text": "unlike its peers"}},
        "allocations": {
            "1": {"time_s": 10, "request": {"count": 1}, "ports": ["13:1"], "steps": [step], "error": None}
        },
        "cluster": {},
        "monitors": {},
        "scaling": {},
        "classes": {},
        "queues": {},
        "maintenance": {},
        "candidates": {},
        "runs": {},
        "tables": {},
        "policy": {"policy": {"path": "policy.yaml", "text": policy, "loaded_s": 60, "errors": []}},
    }


if __name__ == "__main__":
    DrainedController(Path(sys.argv[1])).start()
    sys.stdin.read()
