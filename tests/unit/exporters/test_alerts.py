"""Every alert that is shipped fires on what it is about, in its own words, and clears when that is over."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from apps.exporters import controller_metrics, metrics

ALERTS = Path(__file__).parents[3] / "dashboards" / "vsrt-alerts.yml"
INSTANCE = {"job": "vsrt", "instance": "c1"}
STEP_S = 15
CALM, TROUBLE, CALM_AGAIN = 80, 80, 80
"""Steps for which the series are as they should be, as they should not, and as they should again: 20 minutes each."""


class Case(NamedTuple):
    """Series with their values while all is well and while not (``+``: a rise per step), and what is then told.

    `calm_again` is for how many steps all is well again, more than the alert looks back.
    """

    series: dict[str, tuple[str, str]]
    labels: dict[str, str]
    summary: str
    calm_again: int = CALM_AGAIN


def flat(value: str) -> Any:
    return (value, value)


CASES = {
    "ControllerDown": Case(
        {"up{}": ("1", "0")},
        {"severity": "critical"},
        "The controller at c1 does not answer: what is on switches stays, but no join, sender or repair is served.",
    ),
    "ControllerRestarts": Case(
        {"process_start_time_seconds{}": ("+0", "+7")},
        {"severity": "warning"},
        "The controller at c1 has started 60 times anew within 15 minutes.",
    ),
    "MemberGone": Case(
        {"vsrt_cluster_members{}": ("3", "2")},
        {"severity": "warning", "instance": ""},
        'A controller of the cluster is gone: 2 are left. "vsrt show cluster" tells which.',
    ),
    "PolicyFaulty": Case(
        {
            'vsrt_policy_last_load_successful{app="multicast"}': ("1", "0"),
            'vsrt_policy_last_load_successful{app="discovery"}': flat("1"),
        },
        {"severity": "critical"},
        "The policy file of the controller at c1 is faulty: the policy of before stays in force.",
    ),
    "CriticalAlarm": Case(
        {'vsrt_alarms{severity="critical"}': ("0", "2"), 'vsrt_alarms{severity="warning"}': flat("5")},
        {"severity": "critical"},
        '2 critical alarms are open at the controller at c1: "vsrt show alarms" tells which.',
    ),
    "SwitchDisconnected": Case(
        {
            'vsrt_switch_connected{dpid="0000000000000007"}': ("1", "0"),
            'vsrt_switch_info{dpid="0000000000000007",name="leaf7",ofp_version="1.3"}': flat("1"),
        },
        {"dpid": "0000000000000007", "name": "leaf7", "severity": "critical"},
        "Switch 0000000000000007 (leaf7) has been without a connection to the controller for a minute.",
    ),
    "SwitchSilent": Case(
        {'vsrt_switch_up{dpid="0000000000000007",class="tor"}': ("1", "0")},
        {"dpid": "0000000000000007", "class": "tor", "severity": "warning"},
        "Switch 0000000000000007 has not answered polls for a minute.",
    ),
    "SwitchOutOfSync": Case(
        {
            'vsrt_switch_in_sync{dpid="0000000000000007"}': ("1", "0"),
            'vsrt_switch_connected{dpid="0000000000000007"}': flat("1"),
            'vsrt_switch_in_sync{dpid="0000000000000008"}': flat("0"),
            'vsrt_switch_connected{dpid="0000000000000008"}': flat("0"),
        },
        {"dpid": "0000000000000007", "severity": "critical"},
        "Switch 0000000000000007 is connected, but has not held what multicast wants of it for 2 minutes.",
    ),
    "TableFull": Case(
        {'vsrt_switch_waiting_flow_entries{dpid="0000000000000007",app="multicast"}': ("0", "12")},
        {"dpid": "0000000000000007", "app": "multicast", "severity": "critical"},
        "A table of switch 0000000000000007 is full: 12 entries of multicast wait for room.",
    ),
    "LinkDown": Case(
        {'vsrt_link_up{dpid_a="0000000000000001",port_a="2",dpid_b="0000000000000003",port_b="4"}': ("1", "0")},
        {
            "dpid_a": "0000000000000001",
            "port_a": "2",
            "dpid_b": "0000000000000003",
            "port_b": "4",
            "severity": "warning",
        },
        "The link 0000000000000001:2 - 0000000000000003:4 is down.",
    ),
    "JoinsSlow": Case(
        {
            'vsrt_join_latency_seconds_bucket{le="1"}': ("+100", "+0"),
            'vsrt_join_latency_seconds_bucket{le="2.5"}': ("+100", "+100"),
            'vsrt_join_latency_seconds_bucket{le="+Inf"}': ("+100", "+100"),
        },
        {"severity": "warning"},
        "One join in a hundred takes switches more than 2.485s to confirm.",
    ),
    "ManyRefusals": Case(
        {
            'vsrt_admission_decisions_total{rule="default",verdict="deny"}': ("+15", "+300"),
            'vsrt_admission_decisions_total{rule="default",verdict="allow"}': flat("+3000"),
        },
        {"rule": "default", "severity": "warning"},
        "The rule default refuses 20 joins and senders a second.",
    ),
    "TreesRepairedOften": Case(
        {"vsrt_tree_repairs_total{}": ("+1", "+50")},
        {"severity": "warning"},
        "Lost links and switches changed trees 3k times within 15 minutes: something flaps.",
    ),
    "LoopHeldUp": Case(
        {'vsrt_app_metrics_age_seconds{app="multicast"}': ("0.002", "45")},
        {"app": "multicast", "severity": "critical"},
        "The loop of multicast has not answered for 45s: what it serves is held up.",
    ),
    "LoopBacklog": Case(
        {'vsrt_app_backlog_events{app="multicast"}': ("3", "128")},
        {"app": "multicast", "severity": "warning"},
        "128 events have waited for the loop of multicast for a minute.",
    ),
    "LoopBusy": Case(
        {'vsrt_app_turn_seconds_sum{app="multicast"}': ("+1", "+13.5")},
        {"app": "multicast", "severity": "warning"},
        "The loop of multicast is busy for 90% of the time.",
    ),
    "PortErrors": Case(
        {'vsrt_port_receive_crc_errors_total{dpid="0000000000000007",port_no="3"}': ("+0", "+10")},
        {"dpid": "0000000000000007", "port_no": "3", "severity": "warning"},
        "Port 0000000000000007:3 has more than 120 CRC errors an hour.",
        calm_again=280,
    ),
    "HotLink": Case(
        {'vsrt_port_transmit_utilisation_ratio{dpid="0000000000000007",port_no="3",class="tor"}': ("0.4", "0.95")},
        {"dpid": "0000000000000007", "port_no": "3", "severity": "warning"},
        "Port 0000000000000007:3 has been above 90 % for 2 minutes.",
    ),
    "OutputFaulty": Case(
        {'vsrt_output_faulty{output="history"}': ("0", "1")},
        {"output": "history", "severity": "warning"},
        "The monitor has not been able to write to history for 5 minutes.",
    ),
}


def values(well: str, unwell: str, calm_again: int) -> str:
    """The values of a series over the three times."""
    found: list[float] = []
    for each, count in ((well, CALM), (unwell, TROUBLE), (well, calm_again)):
        rises = each.startswith("+")
        for _ in range(count):
            found.append(float(each) + (found[-1] if rises and found else 0) if rises else float(each))
    return " ".join(f"{value:g}" if value < 1e5 else repr(value) for value in found)


def labelled(series: str) -> str:
    """A series with the labels that a scrape adds."""
    added = ",".join(f'{name}="{value}"' for name, value in INSTANCE.items())
    return series.replace("{}", "{" + added + "}") if "{}" in series else series[:-1] + "," + added + "}"


def rules() -> list[str]:
    return re.findall(r"^ +- alert: (\w+)$", ALERTS.read_text(), re.M)


def test_every_alert_has_a_case_and_is_about_exported_metrics() -> None:
    assert sorted(CASES) == sorted(rules())
    names = {family.name for family in (*metrics.FAMILIES, *controller_metrics.FAMILIES)}
    expressions = "\n".join(re.findall(r"^ +expr: (.+)$", ALERTS.read_text(), re.M))
    asked = set(re.findall(r"\b(?:vsrt|process)_\w+", expressions))
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in asked} - names == set()


def group(alert: str, case: Case) -> dict[str, Any]:
    """What promtool is to try: the alert is silent, fires, and is silent again."""
    labels = {name: value for name, value in {**INSTANCE, **case.labels}.items() if value}
    fires = {"exp_labels": labels, "exp_annotations": {"summary": case.summary}}
    moments = [(CALM - 1, []), (CALM + TROUBLE - 1, [fires]), (CALM + TROUBLE + case.calm_again - 1, [])]
    return {
        "interval": f"{STEP_S}s",
        "input_series": [
            {"series": labelled(name), "values": values(*each, case.calm_again)} for name, each in case.series.items()
        ],
        "alert_rule_test": [
            {"eval_time": f"{step * STEP_S}s", "alertname": alert, "exp_alerts": expected}
            for step, expected in moments
        ],
    }


def promtool_says(promtool: str, directory: Path, cases: dict[str, Case]) -> str:
    """Return what promtool finds wrong with the alerts, nothing where they do as they should."""
    document = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": f"{STEP_S}s",
        "tests": [group(*case) for case in cases.items()],
    }
    path = directory / "test.json"
    path.write_text(json.dumps(document))
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_alert_fires_in_its_own_words_and_clears(tmp_path: Path, promtool: str) -> None:
    assert promtool_says(promtool, tmp_path, CASES) == ""


def test_an_alert_that_does_not_fire_or_says_something_else_is_found(tmp_path: Path, promtool: str) -> None:
    well = CASES["LinkDown"]
    (series,) = well.series
    for wrong in (well._replace(series={series: ("1", "1")}), well._replace(summary="The link is down.")):
        assert "LinkDown" in promtool_says(promtool, tmp_path, {"LinkDown": wrong})
