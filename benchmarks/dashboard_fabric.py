"""A fabric that is not there: the change feed of a synthetic fat tree on a Unix socket, to load the page and the API.

    python benchmarks/dashboard_fabric.py --socket fabric.sock [--k 16] [--groups 1000] [--seed 1] [--json]
    vsrt dashboard --socket fabric.sock

Every `--interval` seconds the rates of `--busy` percent of the ports change, and a member joins or leaves with an
event. Actions are answered by what they would change. Runs until it is ended.
"""

from __future__ import annotations

import argparse
import json
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from controller.snapshot.log import DocumentLog, changes
from topology.generators import make
from topology.graph import NodeId, NodeKind

Document = dict[str, Any]

SPEED_BPS = 10e9
EVENTS = 1000
LINE_BYTES = 65536
SEVERITIES = ("info", "warning", "critical")


class Fabric:
    """The documents of a fat tree as multicast, monitor and allocator would tell them."""

    def __init__(self, k: int, groups: int, seed: int) -> None:
        self.lock = threading.Lock()
        self.epoch = f"{time.time_ns():x}"
        self.generator = np.random.default_rng(seed)
        self.graph = make("fattree", {"k": k})
        self.dpids = {node: number for number, node in enumerate(self.graph.switches(), 1)}
        self.documents: dict[str, dict[str, dict[str, Document]]] = {"multicast": {}, "monitor": {}, "allocator": {}}
        self.sections: dict[str, dict[str, DocumentLog[str]]] = {}
        self.hosts: list[tuple[str, int, int, str]] = []
        for app, names in OFFERED.items():
            for name in names:
                self._offer(app, name)
        self._make_switches()
        self._make_ports()
        for number in range(groups):
            self._make_group(number)
        self._make_rest()

    def _offer(self, app: str, name: str) -> None:
        documents: dict[str, Document] = {}
        self.documents[app][name] = documents
        self.sections.setdefault(name, {})[app] = DocumentLog(lambda: list(documents), documents.get)

    def put(self, app: str, name: str, id_: str, document: Document) -> None:
        self.documents[app][name][id_] = document
        self.sections[name][app].touch(id_)

    def remove(self, app: str, name: str, id_: str) -> None:
        if self.documents[app][name].pop(id_, None) is not None:
            self.sections[name][app].touch(id_)

    def _make_switches(self) -> None:
        tiers = {NodeKind.TOR: 1, NodeKind.AGGREGATION: 2, NodeKind.CORE: 3}
        for node, dpid in self.dpids.items():
            kind = self.graph.kind(node)
            self.put(
                "multicast",
                "switches",
                str(dpid),
                {
                    "dpid": dpid,
                    "ofp_version": "1.3",
                    "tier": str(kind),
                    "level": tiers.get(kind, 0),
                    "connected": True,
                    "in_sync": True,
                    "drained": False,
                },
            )
            use = {"up": True, "answered_s": time.time(), "cpu_pct": 10.0, "memory_pct": 30.0}
            self.put("monitor", "switches", str(dpid), use)

    def _make_ports(self) -> None:
        for link in self.graph.links():
            ends = [(link.u, link.u_port, link.v), (link.v, link.v_port, link.u)]
            for node, port_no, other in ends:
                if node not in self.dpids:
                    continue
                dpid, is_edge = self.dpids[node], other not in self.dpids
                key = {"dpid": dpid, "port_no": port_no}
                id_ = f"{dpid}:{port_no}"
                self.put("multicast", "ports", id_, {**key, "role": "edge" if is_edge else "trunk"})
                self.put("monitor", "ports", id_, self._rates(f"s{dpid}-eth{port_no}"))
                self.put("allocator", "ports", id_, {"port_metric": 0.1, "usage": None, "disqualified": None})
                if is_edge:
                    self._make_host(dpid, int(port_no or 0))
            if link.u in self.dpids and link.v in self.dpids:
                low, high = sorted([(self.dpids[link.u], link.u_port), (self.dpids[link.v], link.v_port)])
                document = {"dpid_a": low[0], "port_a": low[1], "dpid_b": high[0], "port_b": high[1]}
                id_ = f"{low[0]}:{low[1]}-{high[0]}:{high[1]}"
                self.put("multicast", "links", id_, {**document, "capacity_bps": SPEED_BPS})

    def _make_host(self, dpid: int, port_no: int) -> None:
        number = len(self.hosts) + 1
        mac = ":".join(f"{octet:02x}" for octet in (2 << 40 | number).to_bytes(6, "big"))
        ip = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        self.hosts.append((mac, dpid, port_no, ip))
        self.put("multicast", "hosts", mac, {"mac": mac, "dpid": dpid, "port_no": port_no, "ips": [ip]})

    def _rates(self, name: str) -> Document:
        rx, tx = (float(rate) for rate in self.generator.beta(0.6, 2.5, 2) * SPEED_BPS)
        quiet = {f"{way}_{what}_pps": 0.0 for way in ("rx", "tx") for what in ("errors", "dropped")}
        return {
            "name": name,
            "speed_bps": SPEED_BPS,
            "rx_bps": round(rx),
            "tx_bps": round(tx),
            "rx_pps": round(rx / 8000),
            "tx_pps": round(tx / 8000),
            "rx_utilisation_pct": round(100 * rx / SPEED_BPS, 2),
            "tx_utilisation_pct": round(100 * tx / SPEED_BPS, 2),
            **quiet,
            "sampled_s": round(time.time(), 3),
        }

    def _make_group(self, number: int) -> None:
        size = int(min(1 + self.generator.geometric(0.2), len(self.hosts)))
        chosen = self.generator.choice(len(self.hosts), size, replace=False)
        members = [self._member(*self.hosts[index]) for index in chosen]
        address = f"239.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
        sender = self.hosts[int(self.generator.integers(len(self.hosts)))]
        document = {
            "group": address,
            "links": self._tree([int(member["dpid"]) for member in members] + [sender[1]]),
            "detached": [],
            "members": members,
            "refused": [self._member(*self.hosts[0])] if number % 50 == 0 else [],
            "senders": [
                {
                    **{
                        name: value
                        for name, value in self._member(*sender).items()
                        if name not in ("mode", "sources")
                    },
                    "admitted": True,
                    "rule": "all",
                    "rate_bps": 1_000_000,
                }
            ],
            "unsupported": None,
            "static_members": [],
            "size": len(members),
            "rate_bps": 1_000_000,
        }
        self.put("multicast", "groups", address, document)

    @staticmethod
    def _member(mac: str, dpid: int, port_no: int, ip: str) -> Document:
        return {"dpid": dpid, "port_no": port_no, "mac": mac, "ip": ip, "mode": "exclude", "sources": []}

    def _tree(self, dpids: list[int]) -> list[list[int]]:
        """Paths by the lowest neighbours up to one core switch: a tree in a fat tree."""
        nodes = {dpid: node for node, dpid in self.dpids.items()}
        links: set[tuple[int, int]] = set()
        levels: dict[NodeId, int] = {}
        for node in self.dpids:
            levels[node] = {NodeKind.TOR: 1, NodeKind.AGGREGATION: 2, NodeKind.CORE: 3}.get(self.graph.kind(node), 0)
        for dpid in dpids:
            node = nodes[dpid]
            while levels[node] < 3:
                above = min(
                    (other for other in self.graph.neighbours(node) if levels.get(other, 0) > levels[node]),
                    key=lambda other: self.dpids[other],
                )
                links.add((min(self.dpids[node], self.dpids[above]), max(self.dpids[node], self.dpids[above])))
                node = above
        return [list(link) for link in sorted(links)]

    def _make_rest(self) -> None:
        for number in range(20):
            self.event(f"something of kind {number} happened")
        querier = {"family": 4, "ours": True, "address": None, "dpid": None, "port_no": None, "robustness": 2}
        self.put("multicast", "routers", "queriers", {"queriers": [{**querier, "query_interval_s": 125.0}]})
        self.put("multicast", "rules", "all", {"rule": "all", "allow": 12, "deny": 3})
        text = "version: 1\nrules:\n  - {name: all, groups: [224.0.0.0/4], role: any, hosts: [any], action: allow}\n"
        policy = {"path": "policy.yaml", "text": text, "loaded_s": time.time(), "errors": []}
        self.put("multicast", "policy", "policy", policy)
        for number in range(5):
            step = {"chosen": "1:1", "candidates": 4, "tied": 1, "reason": "the lowest metric"}
            decision = {
                "time_s": time.time(),
                "request": {"ports": 1},
                "ports": ["1:1"],
                "steps": [step],
                "error": None,
            }
            self.put("allocator", "allocations", str(number), decision)
        self.status()

    def status(self) -> None:
        told = self.documents["multicast"]
        counts = {name: len(told[name]) for name in ("switches", "links", "hosts", "groups")}
        self.put(
            "multicast",
            "status",
            "status",
            {
                "ready": True,
                **counts,
                "edge_ports": len(self.hosts),
                "counters": {"joins": 12},
                "framework": "synthetic",
                "started_s": time.time(),
                "apps": list(OFFERED),
            },
        )

    def event(self, text: str) -> None:
        events = self.documents["monitor"]["events"]
        number = 1 + max((int(id_.partition("-")[2]) for id_ in events), default=0)
        document = {
            "time_s": round(time.time(), 3),
            "source": "monitor",
            "kind": "synthetic",
            "severity": SEVERITIES[number % 3],
            "state": "happened",
            "text": text,
            "dpid": 1 + number % len(self.dpids),
            "port_no": 1,
            "group": None,
        }
        self.put("monitor", "events", f"monitor-{number}", document)
        if len(events) > EVENTS:
            self.remove("monitor", "events", next(iter(events)))

    def toggle_member(self, address: str, host: int) -> bool:
        """Let a host join a group, or leave it; return whether it joined."""
        group = self.documents["multicast"]["groups"][address]
        mac, dpid, port_no, ip = self.hosts[host]
        others = [member for member in group["members"] if member["mac"] != mac]
        joined = len(others) == len(group["members"])
        members = [*others, self._member(mac, dpid, port_no, ip)] if joined else others
        dpids = [int(member["dpid"]) for member in members] + [int(sender["dpid"]) for sender in group["senders"]]
        changed = {**group, "members": members, "size": len(members), "links": self._tree(dpids)}
        self.put("multicast", "groups", address, changed)
        return joined

    def step(self, busy_pct: float) -> None:
        """Let a second pass."""
        ports = self.documents["monitor"]["ports"]
        ids = list(ports)
        for index in self.generator.choice(len(ids), int(len(ids) * busy_pct / 100), replace=False):
            id_ = ids[index]
            self.put("monitor", "ports", id_, self._rates(ports[id_]["name"]))
        groups = list(self.documents["multicast"]["groups"])
        if groups:
            address = groups[int(self.generator.integers(len(groups)))]
            joined = self.toggle_member(address, int(self.generator.integers(len(self.hosts))))
            self.event(f"a host {'joined' if joined else 'left'} {address}")

    def answer(self, question: Mapping[str, Any]) -> Document:
        """Answer a question of the socket."""
        if "changes" in question:
            return self._changes(question)
        return self._do(dict(question))

    def _changes(self, question: Mapping[str, Any]) -> Document:
        fresh = question.get("epoch") not in (None, self.epoch)
        limit, answer = int(question.get("limit", 500)), {}
        for name, versions in question["changes"].items():
            seen = versions if isinstance(versions, dict) and not fresh else {}
            answer[name] = {
                app: changes({name: section}, {name: int(seen.get(app, 0))}, limit)[name]
                for app, section in self.sections.get(name, {}).items()
            }
        return {"epoch": self.epoch, "names": list(self.sections), "sections": answer}

    def _do(self, question: Document) -> Document:
        action = question.pop("do", None)
        if action == "port-history":
            start_s, step_s = round(time.time()) - 3600, 10.0
            values = self.generator.beta(0.6, 2.5, 360) * SPEED_BPS
            points = [{"time_s": start_s + step_s * at, "value": round(value)} for at, value in enumerate(values)]
            return {**question, "step_s": step_s, "points": points}
        if action in ("switch-drain", "switch-undrain"):
            switches = self.documents["multicast"]["switches"]
            document = switches.get(str(question["dpid"]))
            if document is None:
                return {"error": f"there is no switch {question['dpid']}", "refused": True, "field": "dpid"}
            self.put(
                "multicast", "switches", str(question["dpid"]), {**document, "drained": action == "switch-drain"}
            )
        elif action not in ACTIONS:
            return {"error": f'ask with one line of JSON: {{"do": one of {", ".join(ACTIONS)}}}'}
        self.event(f"{action} {json.dumps(question)}")
        return {"done": action, **question}


OFFERED = {
    "multicast": ("status", "switches", "links", "ports", "hosts", "groups", "rules", "routers", "policy", "events"),
    "monitor": ("switches", "ports", "events"),
    "allocator": ("ports", "allocations"),
}
ACTIONS = (
    *("policy-reload", "static-member-add", "static-member-remove", "router-port-add", "router-port-remove"),
    *(
        "switch-drain",
        "switch-undrain",
        "switch-forget",
        "group-rebuild",
        "counters-reset",
        "allocate",
        "port-history",
    ),
)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def serve(fabric: Fabric, path: Path) -> Callable[[], None]:
    """Answer questions at `path` in the background; what is returned ends that."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline(LINE_BYTES):
                with fabric.lock:
                    answer = fabric.answer(json.loads(line))
                self.wfile.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")

    path.unlink(missing_ok=True)
    server = _Server(str(path), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        path.unlink(missing_ok=True)

    return stop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between changes")
    parser.add_argument("--busy", type=float, default=100.0, help="percent of ports whose rates change each time")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    fabric = Fabric(args.k, args.groups, args.seed)
    stop = serve(fabric, args.socket)
    counts = {name: sum(len(fabric.documents[app].get(name, ())) for app in OFFERED) for name in fabric.sections}
    print(json.dumps(counts) if args.json else f"{args.socket}: {counts}", flush=True)
    try:
        while True:
            time.sleep(args.interval)
            with fabric.lock:
                fabric.step(args.busy)
    except KeyboardInterrupt:
        stop()
        sys.exit(0)


if __name__ == "__main__":
    main()
