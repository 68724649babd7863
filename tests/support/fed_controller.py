"""A controller's status socket with documents that a test sets, and with actions that it notes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apps.openflow.questions import Unanswered
from apps.status_server import QuestionRefused, StatusServer
from controller.scaling.advised import Advised, advised_document
from controller.snapshot.log import DocumentLog

ACTIONS = (
    "policy-reload",
    "static-member-add",
    "static-member-remove",
    "router-port-add",
    "router-port-remove",
    "switch-drain",
    "switch-undrain",
    "switch-forget",
    "link-forget",
    "alarm-acknowledge",
    "group-rebuild",
    "alias-add",
    "alias-remove",
    "group-swap-in",
    "group-swap-out",
    "group-pin",
    "group-unpin",
    "drain-monitor",
    "undrain-monitor",
    "counters-reset",
    "address-take",
    "address-release",
    *(f"{what}-label-{verb}" for what in ("switch", "port") for verb in ("add", "remove")),
    "check-findings",
    "check-discovery-findings",
    "hand-over",
    *(f"candidate-{verb}" for verb in ("accept", "ignore", "consider")),
    *(f"maintenance-{verb}" for verb in ("plan", "start", "pause", "resume", "skip", "abort")),
    *(f"maintenance-hook-{what}" for what in ("begin", "end")),
    *(f"check-{app}{what}" for app in ("discovery", "multicast", "unicast") for what in ("", "-report")),
)


class FedController:
    """Serves `documents`, section by section, on the Unix socket at `path`."""

    def __init__(self, path: Path, documents: Mapping[str, Mapping[str, Any]], app: str = "multicast") -> None:
        self.path = path
        self.documents = {name: dict(section) for name, section in documents.items()}
        self.sections = {name: self._section(name) for name in self.documents}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.asked_by: str | None = None
        self.answers: dict[str, dict[str, Any]] = {}
        self.refuse: tuple[str, str | None] | None = None
        self.busy: str | None = None
        self.late: Unanswered | None = None
        self.server = StatusServer(
            path,
            {},
            self._ask,
            logging.getLogger("fed"),
            {name: self._action(name) for name in ACTIONS},
            app=app,
            sections=self.sections,
        )

    def _ask(self, answer: Callable[[], Any]) -> Any:
        if self.busy is not None:
            raise TimeoutError(self.busy)
        return answer()

    def start(self) -> None:
        self.server.start()

    def stop(self) -> None:
        self.server.stop()

    def put(self, section: str, id_: str, document: dict[str, Any] | None) -> None:
        """Set a document; None takes it away."""
        if document is None:
            self.documents[section].pop(id_, None)
        else:
            self.documents[section][id_] = document
        self.sections[section].touch(id_)

    def _section(self, name: str) -> DocumentLog[str]:
        return DocumentLog(lambda: list(self.documents[name]), lambda id_: self.documents[name].get(id_))

    def _action(self, name: str) -> Any:
        def act(fields: Mapping[str, Any]) -> dict[str, Any]:
            if self.refuse is not None:
                raise QuestionRefused(*self.refuse)
            if self.late is not None:
                raise self.late
            asked = dict(fields)
            self.asked_by = asked.pop("by", None)
            self.asked.append((name, asked))
            return {"done": name, **asked, **self.answers.get(name, {})}

        return act


ALARM = {
    "key": "link-failed:1:4-3:3",
    "kind": "link-failed",
    "subject": "1:4-3:3",
    "severity": "warning",
    "state": "raised",
    "since_s": 60.0,
    "text": "The link 1:4 - 3:3 has failed; other links carry on.",
    "dpid": 1,
    "port_no": 4,
    "occurrences": 2,
    "over_s": None,
    "acknowledged_by": "ann",
    "acknowledged_s": 70.0,
    "consequences": [{"kind": "port-down", "text": "Port 1:4 is down.", "dpid": 1, "port_no": 4}],
    "consequence_count": 1,
}
CLEARED_ALARM = {
    "key": "link-failed:1:4-3:3",
    "kind": "link-failed",
    "subject": "1:4-3:3",
    "severity": "warning",
    "state": "cleared",
    "since_s": 60.0,
    "cleared_s": 100.0,
    "text": "The link 1:4 - 3:3 has failed; other links carry on.",
    "dpid": 1,
    "port_no": 4,
    "dpid_a": 1,
    "port_a": 4,
    "dpid_b": 3,
    "port_b": 3,
    "occurrences": 2,
    "acknowledged_by": None,
    "acknowledged_s": None,
    "part_of": None,
}
MEMBER = {"dpid": 3, "port_no": 2, "mac": "00:00:00:00:00:02", "ip": "10.0.0.2", "mode": "exclude", "sources": []}
REFUSED = {
    "dpid": 4,
    "port_no": 7,
    "mac": "00:00:00:00:00:07",
    "ip": None,
    "mode": "include",
    "sources": ["10.0.0.1"],
    "rule": "others",
    "reason": "the rule is about 239.1.0.0/16",
}
SENDER = {
    "dpid": 1,
    "port_no": 1,
    "mac": "00:00:00:00:00:01",
    "ip": "10.0.0.1",
    "admitted": True,
    "rule": "feed",
    "service_class": "market",
    "dscp": 46,
    "rate_bps": 2_000_000,
}
INTRUDER = {**SENDER, "dpid": 4, "port_no": 9, "ip": "10.0.0.9", "admitted": False, "rule": "default", "dscp": None}
QUERIER = {
    "family": 4,
    "ours": True,
    "address": None,
    "dpid": None,
    "port_no": None,
    "robustness": 2,
    "query_interval_s": 125,
}
QUERIER_ELSEWHERE = {**QUERIER, "family": 6, "ours": False, "address": "fe80::9", "dpid": 3, "port_no": 2}
NAMED = {10: "leaf10"}
STATUS = {"ready": True, "switches": 3, "groups": 2, "started_s": 0, "apps": ["multicast"], "counters": {"joins": 7}}
POLICY = {"path": "policy.yaml", "text": "version: 1\ndefault: deny\n", "loaded_s": 60, "errors": []}
TREE = {"links": [[1, 3], [3, 4]], "detached": [], "unsupported": None}


def group(address: str, **fields: Any) -> dict[str, Any]:
    """Return the document of a group."""
    nobody: dict[str, Any] = {"members": [], "refused": [], "senders": [], "static_members": []}
    return {"group": address, **TREE, **nobody, "size": 0, "rate_bps": 0, **fields}


def event(at_s: float, text: str, **fields: Any) -> dict[str, Any]:
    """Return the document of an event."""
    place = {"dpid": None, "port_no": None, "group": None}
    words = {"source": "multicast", "kind": "note", "severity": "info", "state": "happened"}
    return {"time_s": at_s, "text": text, **words, **place, **fields}


def multicast_documents() -> dict[str, dict[str, Any]]:
    """Return what a multicast app may tell of a small fabric."""
    served = group(
        "239.1.1.1",
        members=[MEMBER],
        refused=[REFUSED],
        senders=[SENDER, INTRUDER],
        static_members=[{"dpid": 3, "port_no": 5}],
        size=1,
        rate_bps=2_000_000,
        aliases=[{"number": 1, "links": [[1, 3]], "senders": 1, "rate_bps": 1_000_000, "state": "bound"}],
        queue_packets=0.25,
        utilisation_pct=12.5,
    )
    switch = {"ofp_version": 4, "level": 1, "connected": True, "in_sync": True, "drained": False}
    return {
        "status": {
            "status": {
                "ready": True,
                "switches": 3,
                "groups": 2,
                "started_s": 0,
                "apps": ["multicast"],
                "counters": {"joins": 7},
            }
        },
        "switches": {
            str(dpid): {
                **switch,
                "dpid": dpid,
                "name": NAMED.get(dpid),
                "tier": "tor" if dpid > 1 else "core",
                "fabric": "hall-a",
                "drained": dpid == 4,
                "labels": {"pod": "2"} if dpid == 3 else {},
            }
            for dpid in (1, 3, 4, 10)
        },
        "links": {"1:3-3:1": {"dpid_a": 1, "port_a": 3, "dpid_b": 3, "port_b": 1, "capacity_bps": 1e9}},
        "ports": {
            f"{dpid}:{port_no}": {
                "dpid": dpid,
                "port_no": port_no,
                "role": role,
                "vlans": {"untagged": 10, "tagged": "20,30-35", "names": {"10": "storage"}}
                if port_no == 10
                else None,
            }
            for dpid, port_no, role in ((1, 3, "trunk"), (3, 1, "trunk"), (3, 2, "edge"), (3, 10, "edge"))
        },
        "hosts": {MEMBER["mac"]: {"mac": MEMBER["mac"], "dpid": 3, "port_no": 2, "ips": ["10.0.0.2", "fe80::2"]}},
        "groups": {"239.1.1.1": served, "239.1.1.2": group("239.1.1.2"), "ff0e::1": group("ff0e::1")},
        "alarms": {ALARM["key"]: ALARM},
        "cleared-alarms": {
            "9": {**CLEARED_ALARM, "cleared_s": 100.0},
            "10": {**CLEARED_ALARM, "severity": "critical", "cleared_s": 200.0, "acknowledged_by": "ann"},
        },
        "staged": {
            "alike": {
                **{"would_be": "alike", "count": 4, "beyond": 0},
                **{"path": "staged.yaml", "loaded_s": 90.0, "errors": []},
            },
            "239.1.1.1 receiver": {
                **{"would_be": "refused", "role": "receiver", "group": "239.1.1.1", "ip": "10.0.0.2", "dpid": 3},
                **{"port_no": 2, "mac": MEMBER["mac"], "rule": "zebra", "staged_rule": "default", "count": 1},
            },
        },
        "candidates": {
            "search": {"state": "search", "path": "changes.jsonl", "searched_s": 90.0, "fault": None},
            "00112233aabb": {
                **{"state": "new", "properties": ["labels.guard", "labels.mtu"], "told_by": [], "resource_count": 5},
                **{"resources": ["1:1", "1:2", "1:3", "1:4", "1:5"], "deviation_count": 1, "near_count": 0},
            },
        },
        "rules": {
            "zebra": {"rule": "zebra", "allow": 5, "deny": 0, "since_s": 60.0},
            "default": {"rule": "default", "allow": 0, "deny": 2, "since_s": 60.0},
        },
        "routers": {
            "queriers": {
                "queriers": [
                    QUERIER,
                    {**QUERIER, "family": 6, "ours": False, "address": "fe80::9", "dpid": 3, "port_no": 2},
                ]
            },
            "3:2:6": {"dpid": 3, "port_no": 2, "family": 6, "vlan": None, "static": True},
            "3:2:4@20": {"dpid": 3, "port_no": 2, "family": 4, "vlan": 20, "static": False, "routers": ["10.0.0.9"]},
        },
        "versions": {
            "3": {
                **{"dpid": 3, "ofp_version": 4, "igmp_version": 3, "mld_version": 1},
                "queriers": [
                    {"family": 4, "vlan": None, "ours": True, "address": None, "version": 3},
                    {"family": 6, "vlan": None, "ours": False, "address": "fe80::9", "version": 1},
                    {"family": 4, "vlan": 20, "ours": False, "address": "10.0.0.9", "version": 2},
                ],
                "older_hosts": [{"port_no": 7, "vlan": None, "family": 4, "version": 2}],
                **{"manufacturer": "Nicira, Inc.", "hardware": "Open vSwitch", "software": "3.1.0"},
                **{"serial": "None", "datapath": "\\x1b[31mleaf3"},
            },
            "4": {
                **{"dpid": 4, "ofp_version": 1, "igmp_version": None, "mld_version": None},
                "queriers": [{"family": 4, "vlan": None, "ours": False, "address": None, "version": None}],
                "older_hosts": [],
            },
        },
        "events": {
            "multicast-9": event(100, "older", severity="warning", dpid=3, port_no=2),
            "multicast-10": event(200, "newer\x1b[31m <b>bold</b>", group="239.1.1.1"),
        },
        "cluster": {
            "one": {"member": "one", "leads": True, "epoch": 7, "peer": "10.0.0.1:7000", "is_there": True},
            "two": {
                **{"member": "two", "leads": False, "epoch": None, "peer": "10.0.0.2:7000", "is_there": True},
                **{"answers": True, "store": "answers", "switches": 4, "switches_led": 0, "take_over_s": None},
            },
        },
        "policy": {
            "policy": {"path": "policy.yaml", "text": "version: 1\ndefault: deny\n", "loaded_s": 60, "errors": []}
        },
    }


def monitor_documents() -> dict[str, dict[str, Any]]:
    """Return what a monitor may tell of the same fabric."""
    rates = {"rx_bps": 5e6, "rx_utilisation_pct": 0.5, "tx_utilisation_pct": 2.5, "speed_bps": 1e9}
    errors = {"rx_errors_pps": 0.0, "tx_errors_pps": 1.0}
    return {
        "ports": {
            "3:1": {"name": "s3-eth1", "tx_bps": 25e6, **rates, **errors},
            "3:2": {"name": "s3-eth2", "tx_bps": 1e6, **rates, **errors},
        },
        "switches": {"3": {"up": True, "answered_s": 60.0, "cpu_pct": 12.5, "memory_pct": None}},
    }


def scaling_documents() -> dict[str, dict[str, Any]]:
    """Return what a monitor may tell of how many there should be, after an interval with a gap and one without."""
    gap = Advised(5890751, 300, 3, 0, 1, gap="m2 told nothing of the interval.")
    said = Advised(5890752, 300, 3, 0, 1, load=2.85, usage=0.95, scarcest="processor", lateness=0.181, is_met=True)
    said = said._replace(learner="yesterday", rule="the load now takes 4", wanted=4, wanted_pace=1, cost_h=24.0)
    said = said._replace(expected_lateness=0.02, others={"yesterday": 4, "threshold": 5}, is_ordered=True)
    return {"scaling": {str(each.number): advised_document(each) for each in (gap, said)}}


def table_documents() -> dict[str, dict[str, Any]]:
    """Return what the app of multicast may tell of a flow table that groups go in and out of."""
    counts = {
        "capacity": 2000,
        "pinned": 40,
        "entries": 1950,
        "groups": 1700,
        "groups_covered": 120,
        "groups_out": 300,
    }
    tenants = [
        {"tenant": "video", "entries": 1300, "active": 900, "entitled": 1306.7},
        {"tenant": None, "entries": 650, "active": 650, "entitled": 653.3},
    ]
    used = {"hits": 120_000, "faults": 75, "tenants": tenants}
    return {"tables": {"3/2": {"dpid": 3, "table": 2, **counts, "state": "low", **used}}}


def pool_documents() -> dict[str, dict[str, Any]]:
    """Return what the app of multicast may tell of pools of addresses, one of which is in no range any more."""
    pool = {"pool": "video", "ranges": ["239.10.0.0/24", "239.10.1.0/24"], "addresses": 512, "taken": 2, "outside": 1}
    cam1 = {"pool": "video", "name": "cam1", "address": "239.10.0.0", "mac": "01:00:5e:0a:00:00", "in_pool": True}
    cam2 = {**cam1, "name": "cam2", "address": "239.9.0.7", "mac": "01:00:5e:09:00:07", "in_pool": False}
    return {"pools": {"video": pool}, "addresses": {"video/cam1": cam1, "video/cam2": cam2}}


def run_documents() -> dict[str, dict[str, Any]]:
    """Return what a controller may tell of a profile and of a storm that have ended."""
    times = {"mean_ms": 20.1, "p50_ms": 10.1, "p95_ms": 87.0, "p99_ms": 117.1}
    profile = {
        **{"run": "profile", "name": "evening", "path": "profiles/evening.parquet", "by": "ann", "begun_s": 60.0},
        **{"for_s": 600.0, "state": "ended", "ended": "it was stopped", "fault": None, "spans": 1003, "missed": 0},
        "under_way": 4,
        "operations": [{"operation": "join", "count": 1000, "others": 3, **times, "max_ms": 177.2}],
    }
    played = {"joins": 1000, "peak_per_s": 200.0, "p50_ms": 10.1, "p95_ms": 87.0, "p99_ms": 117.1, "unserved": 2}
    storm = {
        **{"run": "storm", "by": "ann", "begun_s": 61.0, "state": "ended", "stage": "joins", "done": 1000},
        **{"total": 1000, "joins": 1000, "target": "127.0.0.1:6653", "shape": "normal", "switches": 12},
        **{"sigma_s": 2.0, "slo_ms": 50.0, "fault": "", "storms": [{**played, "keeps_goal": False}]},
    }
    return {"runs": {"profile": profile, "storm": storm}}


def queue_documents() -> dict[str, dict[str, Any]]:
    """Return what the app of queues may tell of a class that somebody sends in, and of one that nobody does."""
    market = {"service_class": "market", "importance": 1, "queue_id": 6, "goal": {"delay_ms": 2.0}, "index": 1.25}
    backup = {
        "service_class": "backup",
        "importance": 6,
        "queue_id": 1,
        "goal": None,
        "index": None,
        "missing_bps": 0,
    }
    queue = {"dpid": 3, "port_no": 1, "queue_id": 6, "classes": ["market"], "min_rate_bps": 2_100_000}
    return {
        "classes": {"market": {**market, "dpid": 3, "port_no": 1, "missing_bps": 400_000}, "backup": backup},
        "queues": {
            "3:1/6": {**queue, "tx_bps": 2_000_000, "dropped_pps": 1.5, "index": 1.25, "missing_bps": 400_000}
        },
    }


def anomaly_documents() -> dict[str, dict[str, Any]]:
    """Return what an anomaly app and an allocator may tell."""
    anomaly = {"member": "3:2", "peer_group": "tor", "metric": "tx_bps", "since_s": 60, "score": 3.25}
    shortage = {"requested": 9, "allocated": 1}
    step = {"chosen": "3:10", "candidates": 2, "tied": 1, "reason": "least usage"}
    return {
        "anomalies": {"a1": {**anomaly, "verdict": "component", "text": "unlike its peers"}},
        "allocations": {
            "1": {"time_s": 10, "request": {"count": 1}, "ports": ["3:10"], "steps": [step], "error": None},
            "2": {
                "time_s": 20,
                "request": {"count": 9},
                "ports": [],
                "steps": [],
                "error": shortage,
            },
        },
    }
