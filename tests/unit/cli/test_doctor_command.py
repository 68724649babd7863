"""`vsrt doctor`: what is found of switches, policy and alarms, by the socket and by the API, and the exit status."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("os_ken")

from apps.cli.main import main
from fed_controller import FedController, multicast_documents, queue_documents, table_documents
from served_dashboard import served

TOKEN = "0123456789abcdefghij"
POLICY = {"path": "policy.yaml", "text": "version: 1\ndefault: deny\n", "loaded_s": 60, "errors": []}


def healthy():
    """Return the documents of a fabric of which there is nothing to tell."""
    documents = {
        **multicast_documents(),
        "alarms": {},
        "policy": {"policy": POLICY},
        "classes": {},
        "tables": {},
        "runs": {},
    }
    documents["switches"] = {
        key: {**fields, "encrypted": True, "drained": False} for key, fields in documents["switches"].items()
    }
    return documents


@pytest.fixture
def controller(tmp_path):
    controller = FedController(tmp_path / "vsrt.sock", healthy())
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def doctor(controller, capsys):
    """Return what asks the doctor by the socket: its status and what it says."""

    def ask(*words):
        status = main(["doctor", "--socket", str(controller.path), *words])
        return status, capsys.readouterr().out

    return ask


def found(answer):
    status, out = answer
    document = json.loads(out)
    assert status == bool(document["findings"]) == (not document["healthy"])
    return {finding["kind"]: finding for finding in document["findings"]}


def test_a_healthy_fabric_is_status_0(doctor):
    status, out = doctor()
    assert status == 0
    assert out == "nothing to tell: all switches are connected, in sync, and speak OpenFlow over TLS\n"


def test_the_doctor_is_asked_over_the_api_too(controller, capsys):
    controller.documents["switches"]["10"]["encrypted"] = False
    token = controller.path.with_name("token")
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    with served(controller.path, token_file=str(token)) as address:
        status = main(["doctor", "--url", address, "--json"])
    assert set(found((status, capsys.readouterr().out))) == {"plain-tcp"}


@pytest.mark.parametrize(
    ("field", "value", "kind", "text"),
    [
        ("connected", False, "not-connected", "Switch leaf10 is not connected."),
        ("in_sync", False, "not-in-sync", "Switch leaf10 does not hold what it should."),
        ("encrypted", False, "plain-tcp", "Switch leaf10 speaks OpenFlow over plain TCP."),
        ("ofp_version", 1, "openflow-1.0", "Switch leaf10 speaks OpenFlow 1.0."),
    ],
)
def test_a_switch_that_is_to_be_looked_at_is_named(controller, doctor, field, value, kind, text):
    controller.documents["switches"]["10"][field] = value
    findings = found(doctor("--json"))
    assert set(findings) == {kind}
    assert (findings[kind]["text"], findings[kind]["dpids"]) == (text, [10])
    status, out = doctor()
    assert status == 1
    assert text in out


def test_several_switches_are_one_finding(controller, doctor):
    for fields in controller.documents["switches"].values():
        fields["encrypted"] = False
    finding = found(doctor("--json"))["plain-tcp"]
    assert finding["text"].startswith("4 switches speak OpenFlow over plain TCP: ")
    assert finding["dpids"] == [1, 3, 4, 10]


def test_a_switch_that_is_away_is_neither_behind_nor_unencrypted(controller, doctor):
    controller.documents["switches"]["3"] |= {"connected": False, "in_sync": False, "encrypted": None}
    assert set(found(doctor("--json"))) == {"not-connected"}


def test_no_switch_is_no_health(controller, doctor):
    controller.documents["switches"] = {}
    assert set(found(doctor("--json"))) == {"no-switches"}


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"errors": ["line 3: no"]}, "policy-faulty"),
        ({"text": "version: 1\ndefault: allow\n"}, "default-allow"),
        ({"text": "version: 1\ndefault: 'allow' # all\n"}, "default-allow"),
        ({"path": None, "text": ""}, "no-policy"),
    ],
)
def test_a_policy_that_is_to_be_looked_at_is_told(controller, doctor, changed, kind):
    controller.documents["policy"]["policy"] = {**POLICY, **changed}
    assert set(found(doctor("--json"))) == {kind}


def test_a_rule_that_allows_is_no_default(controller, doctor):
    text = "version: 1\nrules:\n  - {name: a, role: any, hosts: [any], groups: [239.0.0.0/8], action: allow}\n"
    controller.documents["policy"]["policy"] = {**POLICY, "text": text}
    assert found(doctor("--json")) == {}


def test_open_alarms_are_told_until_somebody_has_them(controller, doctor):
    alarm = next(iter(multicast_documents()["alarms"].values()))
    seen = {**alarm, "acknowledged_by": "ann"}
    controller.documents["alarms"] = {"a": {**alarm, "acknowledged_by": None}, "b": seen}
    assert found(doctor("--json"))["alarms"]["text"] == "1 alarm is open that nobody has acknowledged."
    controller.documents["alarms"] = {"b": seen}
    assert found(doctor("--json")) == {}


def test_without_a_controller_the_doctor_fails(tmp_path, capsys):
    assert main(["doctor", "--socket", str(tmp_path / "nowhere.sock")]) == 1
    assert "vsrt: " in capsys.readouterr().err


def test_classes_that_miss_their_goals_and_what_they_lack_are_told(controller, doctor):
    controller.documents["classes"] = queue_documents()["classes"]
    findings = found(doctor("--json"))
    assert set(findings) == {"goal-missed", "goal-infeasible"}
    assert findings["goal-missed"]["text"].startswith("1 service class misses its goal: market (index 1.25 at ")
    assert findings["goal-missed"]["dpids"] == [3]
    assert findings["goal-infeasible"]["text"] == "Ports lack capacity for goals: 400 kbit/s for market."


def test_tables_that_are_short_of_entries_are_told(controller, doctor):
    controller.documents["tables"] = table_documents()["tables"]
    findings = found(doctor("--json"))
    assert set(findings) == {"tables-short"}
    assert findings["tables-short"]["dpids"] == [3]


@pytest.mark.parametrize(
    ("lines", "said", "advice"),
    [
        (
            "edits: {window: fixed}",
            "2: edits.window: a join at a switch that is programmed anew waits",
            "`window: line`",
        ),
        ("edits: {delay_s: 1.5}", "2: edits.delay_s: a join may wait 1.5 s", "`delay_s: 0.25` or less"),
        (
            "discovery: {lldp_interval_s: 10}",
            "2: discovery.lldp_interval_s: a link that dies",
            "`lldp_interval_s: 2`",
        ),
        (
            "multicast:\n  querier: {last_member_interval_s: 5}",
            "3: multicast.querier.last_member_interval_s: a port is sent a group for 10 s",
            "`multicast.fast_leave`",
        ),
        (
            "multicast:\n  querier: {last_member_count: 4}",
            "multicast.querier.last_member_interval_s: a port is sent a group for 4 s",
            "`multicast.fast_leave`",
        ),
        ("limits: {groups_per_port: 500}", "limits.reports_per_second_per_port: a port may be in 500", ": 500`"),
        ("overcommit: {mode: swap}", "2: overcommit.mode: the first packets of a group", "`vsrt do pin GROUP`"),
        ("cluster: {engine: etcd, lease_s: 20}", "2: cluster.lease_s: after a controller dies", "`lease_s: 3`"),
    ],
)
def test_settings_that_cost_latency_are_told_with_line_and_cure(controller, doctor, lines, said, advice):
    controller.documents["policy"]["policy"] = {**POLICY, "text": f"version: 1\n{lines}\ndefault: deny\n"}
    findings = found(doctor("--json"))
    assert set(findings) == {"latency"}
    assert said in findings["latency"]["text"]
    assert advice in findings["latency"]["advice"]


@pytest.mark.parametrize(
    "lines",
    [
        "edits: {window: aimd, delay_s: 0.1}",
        "multicast: {fast_leave: true, querier: {last_member_interval_s: 5}}",
        "limits: {groups_per_port: 500, reports_per_second_per_port: 500}",
        "overcommit: {mode: tenants}",
        "cluster: {lease_s: 20}",
        "edits: [",
        "",
    ],
)
def test_settings_that_cost_none_are_not_told(controller, doctor, lines):
    controller.documents["policy"]["policy"] = {**POLICY, "text": f"version: 1\n{lines}\n"}
    assert found(doctor("--json")) == {}


def test_a_profile_that_runs_costs_latency(controller, doctor):
    controller.documents["runs"] = {"profile": {"run": "profile", "name": "noon", "state": "running"}}
    findings = found(doctor("--json"))
    assert findings["latency"]["text"].startswith("The profile noon runs")
    controller.documents["runs"]["profile"]["state"] = "ended"
    assert found(doctor("--json")) == {}
