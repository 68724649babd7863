"""What of a controller's documents is configuration, and which change of it somebody made."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydantic")

from apps.dashboard.models import PortModel, RouterModel, SwitchModel
from controller.policy_discovery.configuration import (
    CONFIGURED,
    Configuration,
    Resource,
    policy_properties,
)

OBSERVED = {
    "switches": {
        *("id", "dpid", "dpid_hex", "ofp_version", "encrypted", "tier", "level", "fabric", "connected", "in_sync"),
        *("disconnected_s", "up", "answered_s", "cpu_pct", "memory_pct"),
    },
    "ports": {
        *("id", "dpid", "dpid_hex", "port_no", "role", "speed_bps", "rx_bps", "tx_bps", "rx_pps", "tx_pps"),
        *("rx_utilisation_pct", "tx_utilisation_pct", "rx_errors_pps", "tx_errors_pps", "rx_dropped_pps"),
        *("tx_dropped_pps", "sampled_s", "port_metric", "usage", "disqualified", "score", "peer_group", "verdict"),
    },
    "routers": {
        *("id", "queriers", "dpid", "dpid_hex", "port_no", "family", "vlan", "on_request", "routers", "groups"),
        *("reported", "joined"),
    },
}
"""What of the documents nobody sets: what a thing is, what it counts, and what was found out about it."""

PORT = {"id": "1:3", "dpid": 1, "port_no": 3, "name": "eth3", "role": "edge", "rx_bps": 5.0, "labels": {}}


def changed(configuration: Configuration, *documents: tuple[str, dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    for section, fields in documents:
        configuration.put(section, fields)
    found = [(change.resource.name, change.name, change.old, change.new) for change in configuration.changes()]
    configuration.taken()
    return found


@pytest.mark.parametrize(
    ("section", "model"), [("switches", SwitchModel), ("ports", PortModel), ("routers", RouterModel)]
)
def test_each_field_is_configuration_or_observed(section, model):
    configured = set(CONFIGURED[section]) if section in CONFIGURED else {"static"}
    assert configured | OBSERVED[section] == set(model.model_fields)
    assert not configured & OBSERVED[section]


def test_what_is_told_first_is_usual_and_what_differs_later_a_change():
    configuration = Configuration({}, from_nothing=False)
    assert changed(configuration, ("ports", PORT)) == []
    assert changed(configuration, ("ports", {**PORT, "rx_bps": 9.0, "speed_bps": 1e9})) == []
    labelled = {**PORT, "labels": {"rack": "b7"}}
    assert changed(configuration, ("ports", labelled)) == [("1:3", "labels.rack", "", "b7")]
    members = {**labelled, "static_members": [{"group": "239.1.1.1", "set_by": "operator", "served": True}]}
    assert changed(configuration, ("ports", members)) == []  # it was not told before whether there are any
    assert changed(configuration, ("ports", {**members, "static_members": []})) == [
        ("1:3", "static_members.239.1.1.1", "operator", "")
    ]
    assert changed(configuration, ("ports", {**PORT, "static_members": []})) == [("1:3", "labels.rack", "b7", "")]


def test_from_nothing_all_that_is_set_is_a_change():
    configuration = Configuration({}, from_nothing=True)
    switch = {"id": "1", "dpid": 1, "name": "leaf1", "drained": False, "connected": True, "cpu_pct": 3.0}
    assert changed(configuration, ("switches", switch)) == [
        ("1", "name", "", "leaf1"),
        ("1", "drained", "", "false"),
    ]


def test_what_was_recorded_last_is_compared_with_what_is_told_first():
    known = {Resource("port", "1:3"): {"labels.rack": "b7", "labels.pod": ""}}
    configuration = Configuration(known, from_nothing=False)
    assert changed(configuration, ("ports", {**PORT, "labels": {"rack": "b8", "row": "2"}})) == [
        ("1:3", "labels.rack", "b7", "b8")
    ]
    configuration = Configuration(known, from_nothing=False)
    assert changed(configuration, ("ports", {**PORT, "labels": {"pod": "1"}})) == [
        ("1:3", "labels.pod", "", "1"),
        ("1:3", "labels.rack", "b7", ""),
    ]


def test_vlans_that_are_not_shown_while_no_host_is_behind_a_port_have_not_changed():
    configuration = Configuration({}, from_nothing=False)
    tagged = {**PORT, "vlans": {"untagged": 10, "tagged": "20-29", "names": {"10": "a"}}}
    assert changed(configuration, ("ports", {**PORT, "role": "trunk"})) == []
    assert changed(configuration, ("ports", tagged)) == []
    assert changed(configuration, ("ports", {**PORT, "role": "trunk"})) == []
    assert changed(configuration, ("ports", tagged)) == []
    other = {**tagged, "vlans": {"untagged": 11, "tagged": "20-29", "names": {}}}
    assert changed(configuration, ("ports", other)) == [("1:3", "vlans.untagged", "10", "11")]
    assert changed(configuration, ("ports", PORT)) == [
        ("1:3", "vlans.tagged", "20-29", ""),
        ("1:3", "vlans.untagged", "11", ""),
    ]


def test_router_ports_are_properties_of_their_ports_and_stay_while_their_switch_is_away():
    configuration = Configuration({}, from_nothing=False)
    switch = {"id": "1", "dpid": 1, "connected": True}
    router = {"id": "1:3:4", "dpid": 1, "port_no": 3, "family": 4, "static": False, "routers": ["10.0.0.1"]}
    assert changed(configuration, ("switches", switch), ("routers", router)) == []
    assert changed(configuration, ("routers", {**router, "static": True})) == [("1:3", "router_port.4", "", "true")]
    changed(configuration, ("switches", {**switch, "connected": False}))
    configuration.remove("routers", "1:3:4")
    assert changed(configuration) == []
    changed(configuration, ("switches", switch))
    configuration.remove("routers", "1:3:4")
    assert changed(configuration) == [("1:3", "router_port.4", "true", "")]


def test_a_change_that_is_taken_back_before_it_is_recorded_is_none():
    configuration = Configuration({}, from_nothing=False)
    changed(configuration, ("ports", PORT))
    configuration.put("ports", {**PORT, "labels": {"rack": "b7"}})
    configuration.put("ports", PORT)
    assert configuration.changes() == []


def test_settings_of_a_policy_go_by_where_they_stand():
    text = """\
version: 1
rules:
  - {name: all, groups: [239.0.0.0/8], action: allow}
  - {name: rest, action: deny}
tenants: [a, b]
multicast: {querier: {interval_s: 20}}
"""
    assert policy_properties(text) == {
        "version": "1",
        "rules.all.name": "all",
        "rules.all.groups": '["239.0.0.0/8"]',
        "rules.all.action": "allow",
        "rules.rest.name": "rest",
        "rules.rest.action": "deny",
        "tenants": '["a", "b"]',
        "multicast.querier.interval_s": "20",
    }
    assert policy_properties("rules: [{name: a, x: 1}, {name: a, x: 2}]") == {
        "rules": '[{"name": "a", "x": "1"}, {"name": "a", "x": "2"}]'
    }
    assert policy_properties("{") == policy_properties("") == {}


def test_settings_of_the_policy_that_changed_at_a_reload():
    configuration = Configuration({}, from_nothing=False)
    policy = {"id": "policy", "path": "policy.yaml", "text": "version: 1\ndefault: allow\n"}
    assert changed(configuration, ("policy", policy)) == []
    assert changed(configuration, ("policy", {**policy, "text": "version: 1\ndefault: deny\n"})) == [
        ("policy", "default", "allow", "deny")
    ]
