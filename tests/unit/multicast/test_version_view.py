"""Which versions are told to be in force at a switch, and what it says of itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.config.multicast_settings import Querier
from controller.config.policy import Policy
from controller.config.settings import Multicast
from controller.events import PacketReceived, SwitchDescription
from controller.multicast import version_view
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.packets import Query

OURS = {"vlan": None, "ours": True, "address": None}
DESCRIPTION = SwitchDescription("maker", "hardware", "3.1.0", "7", "leaf 1")


class Told:
    """The section of versions of a world, as one who follows it has it."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.version = 0
        self.known: dict[int, dict[str, Any]] = {}

    def read(self) -> dict[int, dict[str, Any]]:
        self.world.now += 1.0
        sections = self.world.core.sections
        sections.refresh(self.world.now)
        delta = sections.versions.changes(self.version, 1000)
        self.version = delta["version"]
        self.known.update({int(dpid): document for dpid, document in json.loads(json.dumps(delta["put"])).items()})
        assert self.known == {dpid: sections.versions.changes(0, 1000)["put"][str(dpid)] for dpid in self.known}
        return self.known


def asked_by(world: Any, name: str, version: int) -> bytes:
    """Another router's general query, with an address that wins the election."""
    host = world.hosts[name]
    asked = Query(4, version, host.mac, parse_ip("10.0.0.1"), None, (), 10.0, False, 2, 125.0)
    return encode(asked if version == 3 else asked._replace(robustness=None, query_interval_s=None))


def test_a_switch_has_the_versions_of_its_fabric_and_what_it_says_of_itself(make_world):
    world = make_world("leaf-spine")
    told = Told(world)
    first, second, *_ = sorted(world.switches)
    document = told.read()[first]
    assert (document["igmp_version"], document["mld_version"]) == (3, 2)
    assert document["queriers"] == [{**OURS, "family": 4, "version": 3}, {**OURS, "family": 6, "version": 2}]
    assert (document["manufacturer"], document["datapath"], document["older_hosts"]) == (None, None, [])
    world.core.sections.described(first, DESCRIPTION)
    seen = told.read()
    assert {name: seen[first][name] for name in DESCRIPTION._fields} == DESCRIPTION._asdict()
    assert seen[second]["serial"] is None
    world.disconnect(first)
    assert told.read()[first]["software"] == "3.1.0"


def test_a_port_has_hosts_of_an_older_version_until_their_reports_count_no_more(make_world):
    world = make_world("leaf-spine")
    told, host = Told(world), world.hosts["h1"]
    older = {"port_no": host.port_no, "vlan": None, "family": 4}
    told.read()
    world.join("h1", version=2)
    assert told.read()[host.dpid]["older_hosts"] == [{**older, "version": 2}]
    world.join("h1", parse_ip("239.1.2.4"), version=1)
    world.join("h1", parse_ip("ff1e::1"), version=1)
    mld = {**older, "family": 6, "version": 1}
    expected = [{**older, "version": 1}, {**older, "version": 2}, mld]
    assert told.read()[host.dpid]["older_hosts"] == expected
    world.settle()
    world.restart()
    told = Told(world)
    assert told.read()[host.dpid]["older_hosts"] == expected, "the log has the timers of older versions"
    world.now += 260.0
    assert told.read()[host.dpid]["older_hosts"] == []


def test_hosts_of_the_newest_version_are_not_told(make_world):
    world = make_world("leaf-spine")
    told = Told(world)
    world.join("h1")
    assert told.read()[world.hosts["h1"].dpid]["older_hosts"] == []


def test_a_port_that_is_gone_has_no_older_hosts(make_world):
    world = make_world("leaf-spine")
    told, host = Told(world), world.hosts["h1"]
    world.join("h1", version=2)
    assert told.read()[host.dpid]["older_hosts"]
    world.core.memberships.own.port_removed(host.dpid, host.port_no, world.now)
    assert told.read()[host.dpid]["older_hosts"] == []


@pytest.mark.parametrize("version", [3, 2])
def test_the_version_is_that_of_the_router_that_asks(make_world, version):
    world = make_world(
        "leaf-spine", Policy(default_allow=True, multicast=Multicast(querier=Querier(accept_others=True)))
    )
    told, host = Told(world), world.hosts["h1"]
    world.feed(PacketReceived(host.dpid, host.port_no, asked_by(world, "h1", version)))
    seen = told.read()
    querier = {**OURS, "family": 4, "ours": False, "address": "10.0.0.1", "version": version}
    assert [each["queriers"][0] for each in seen.values()] == [querier] * len(seen)
    assert {each["igmp_version"] for each in seen.values()} == {version}
    assert {each["mld_version"] for each in seen.values()} == {2}


def test_descriptions_are_bounded(make_world, monkeypatch):
    monkeypatch.setattr(version_view, "DESCRIBED_BOUND", 2)
    world = make_world("leaf-spine")
    told = Told(world)
    switches = sorted(world.switches)[:3]
    for dpid in switches:
        world.core.sections.described(dpid, DESCRIPTION)
    assert [told.read()[dpid]["serial"] for dpid in switches] == [None, "7", "7"]
