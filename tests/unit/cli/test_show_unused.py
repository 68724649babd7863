"""`vsrt show unused`: rules that never decided, tenants without hosts, addresses of pools that nobody uses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from apps.cli.show_unused import UNUSED_TITLES, unused_rows
from apps.tenants.hosts import PolicyUnreadable
from apps.tenants.unused import unused
from told_snapshot import policy_section, told

POLICY = """\
version: 1
tenants:
  video: [10.0.0.0/24]
  lab: ["02:00:00:00:00:07"]
  empty: [10.9.0.0/16]
rules:
  - {name: feed, role: sender, groups: [239.1.0.0/16], hosts: [video], action: allow}
  - {name: narrow, role: sender, groups: [239.1.1.0/24], hosts: [video], action: deny}
  - {name: idle, role: receiver, groups: [239.2.0.0/16], hosts: [lab], action: allow}
default: deny
"""
HOST = {"mac": "02:00:00:00:00:01", "dpid": 3, "port_no": 1, "ips": ["10.0.0.9", "fd00::9"]}
CARD = {"mac": "02:00:00:00:00:07", "dpid": 3, "port_no": 2, "ip": None}


def counts(name: str, allow: int = 0, deny: int = 0) -> dict[str, Any]:
    return {"rule": name, "allow": allow, "deny": deny, "since_s": 60.0}


def found(**sections: Any) -> list[dict[str, Any]]:
    return [document.fields for document in unused(told(sections))]


def test_rules_that_never_decided_say_since_when_and_which_one_is_before_them():
    rules = {name: counts(name) for name in ("narrow", "idle", "default")}
    seen = found(policy=policy_section(POLICY), rules={"feed": counts("feed", allow=3), **rules})
    told_of = [(each["name"], each["line"], each["since_s"]) for each in seen if each["kind"] == "rule"]
    assert told_of == [("narrow", 8, 60.0), ("idle", 9, 60.0)]
    assert seen[0]["reason"] == "It cannot decide: rule feed before it matches whenever it does."
    assert seen[1]["reason"] == "It never decided."


def test_a_rule_that_denied_is_used():
    rules = {"idle": counts("idle", deny=1), "feed": counts("feed", allow=1)}
    assert {each["kind"] for each in found(policy=policy_section(POLICY), rules=rules)} == {"tenant"}


def test_a_tenant_has_the_hosts_that_are_known_and_those_that_groups_tell_of():
    groups = {"239.2.0.1": {"group": "239.2.0.1", "refused": [CARD]}}
    assert [each["name"] for each in found(policy=policy_section(POLICY))] == ["video", "lab", "empty"]
    seen = found(policy=policy_section(POLICY), hosts={HOST["mac"]: HOST}, groups=groups)
    assert [(each["kind"], each["name"], each["line"]) for each in seen] == [("tenant", "empty", 5)]


def test_addresses_of_pools_are_used_by_members_ports_and_admitted_senders_in_any_vlan():
    addresses = {
        f"video/{name}": {"pool": "video", "name": name, "address": f"239.10.0.{number}"}
        for number, name in enumerate(("member", "port", "sender", "vlan", "refused", "nobody"))
    }
    groups = {
        "239.10.0.0": {"members": [CARD]},
        "239.10.0.1": {"static_members": [{"dpid": 3, "port_no": 5}]},
        "239.10.0.2": {"senders": [{**CARD, "admitted": True}]},
        "239.10.0.3@20": {"members": [CARD]},
        "239.10.0.4": {"senders": [{**CARD, "admitted": False}], "refused": [CARD]},
        "239.10.0.4@20": {"refused": [CARD]},
    }
    assert [(each["name"], each["reason"]) for each in found(addresses=addresses, groups=groups)] == [
        ("video/nobody", "Nobody sends to 239.10.0.5 or gets it."),
        ("video/refused", "Nobody sends to 239.10.0.4 or gets it; 3 hosts are refused."),
    ]


def test_a_row_has_the_time_from_which_a_rule_was_counted():
    (rule,) = [each for each in found(rules={"idle": counts("idle")}) if each["kind"] == "rule"]
    called: Any = SimpleNamespace(clock=lambda time_s: f"at {time_s}")
    assert dict(zip(UNUSED_TITLES, next(unused_rows(rule, called)), strict=True)) == {
        "WHAT": "rule",
        "NAME": "idle",
        "LINE": "-",
        "SINCE (UTC)": "at 60.0",
        "WHY": "It never decided.",
    }


def test_the_topology_file_that_a_policy_names_is_not_needed():
    text = POLICY + "topology: {file: fabric.yaml}\n"
    assert [each["name"] for each in found(policy=policy_section(text))] == ["video", "lab", "empty"]


def test_a_policy_of_another_version_is_told_with_its_fault():
    with pytest.raises(PolicyUnreadable, match="cannot be read here, perhaps for it has another version: policy:2"):
        found(policy=policy_section("version: 1\nmystery: 7\n"))
