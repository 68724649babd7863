"""Open vSwitch's database, as its own tools print it: VLANs of ports, bonds, snooping, and each line."""

from __future__ import annotations

import subprocess

import pytest

from controller.config.terms import SwitchPort
from controller.migration.ovs import read_ovs
from controller.migration.places import parse_places
from controller.migration.report import BadConfiguration, InputFile
from imported_policy import Imported, file_of
from ovsdb_server import OvsdbServer

TABLES = ("Bridge", "Port", "Interface")


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A database as an operator of Open vSwitch has it, told by `ovs-vsctl` and `ovsdb-client`."""
    with OvsdbServer(tmp_path_factory.mktemp("ovs")) as server:
        server.bridge("br0", 0x1A, 6)
        server.bridge("br1", 0x1B, 1)
        snooping = ("mcast-snooping-aging-time=310", "mcast-snooping-table-size=4096", "mac-aging-time=600")
        options = [f"other_config:{option}" for option in snooping]
        server.vsctl(
            "set", "Bridge", "br0", "mcast_snooping_enable=true", "fail_mode=secure", "stp_enable=true", *options
        )
        server.vsctl("set", "Bridge", "br0", "other_config:mcast-snooping-disable-flood-unregistered=true")
        server.vsctl("set", "Bridge", "br0", "protocols=OpenFlow10,OpenFlow13")
        server.vsctl("set", "Port", "br0-1", "tag=10")
        server.vsctl("set", "Port", "br0-2", "tag=10", "trunks=20,30", "vlan_mode=native-untagged")
        server.vsctl("set", "Port", "br0-3", "trunks=20,30", "other_config:mcast-snooping-flood=true")
        server.vsctl("set", "Port", "br0-4", "tag=10", "trunks=20", "vlan_mode=native-tagged")
        server.vsctl("set", "Port", "br0-5", "tag=10", "vlan_mode=dot1q-tunnel", "protected=true")
        bond = ["add-bond", "br0", "bond0", "e1", "e2", "lacp=active", "tag=20"]
        server.vsctl(*bond, "--", "set", "Interface", "e1", "ofport=11", "--", "set", "Interface", "e2", "ofport=12")
        server.vsctl("add-port", "br0", "to-br1", "--", "set", "Interface", "to-br1", "type=patch", "options:peer=x")
        server.vsctl("add-port", "br0", "tun0", "--", "set", "Interface", "tun0", "type=vxlan", "ofport=13")
        server.vsctl("set", "Interface", "br0-1", "ingress_policing_rate=1000")
        files = [InputFile(f"{table}.json", server.vsctl("--format=json", "list", table)) for table in TABLES]
        dump = subprocess.run(
            ["ovsdb-client", "--format=json", "dump", server.target], capture_output=True, text=True, check=True
        )
        yield files, InputFile("dump.json", dump.stdout), InputFile("show.txt", server.vsctl("show"))


@pytest.fixture(scope="module")
def bridge(database):
    return Imported(read_ovs(database[0], parse_places([])))


def vlans_at(policy, port, dpid=0x1A):
    found = policy.vlans.of(dpid, port, "tor")
    return found.untagged, sorted(set(found.vlans()) - {found.untagged})


def told(found):
    return {part.field: part for line in found.lines for part in line.parts if part.field}


def test_ports_are_in_the_vlans_that_the_switch_had_them_in(bridge):
    policy = bridge.policy
    assert vlans_at(policy, 1) == (10, [])
    assert vlans_at(policy, 2) == (10, [20, 30])
    assert vlans_at(policy, 3) == (None, [20, 30])
    assert vlans_at(policy, 4) == (10, [20])
    assert vlans_at(policy, 6) == (0, [10, 20, 30]), "a port without a tag carries all, its own without"
    assert vlans_at(policy, 11) == (20, [])
    assert {switch.name: switch.dpid for switch in policy.switches} == {"br0": 0x1A, "br1": 0x1B}


def test_bonds_routers_and_timers_are_the_switch_s(bridge):
    (bond,) = bridge.policy.link_aggregations
    assert (bond.name, bond.mode, bond.ports) == ("bond0", "lacp", (SwitchPort(0x1A, 11), SwitchPort(0x1A, 12)))
    assert bridge.policy.multicast.router_ports.static == {SwitchPort(0x1A, 3)}
    assert bridge.policy.multicast.querier.query_interval_s == 150, "members live 2 x 150 + 10 s"
    assert bridge.policy.limits.groups == 4096
    assert bridge.policy.unicast.host_timeout_s == 600


@pytest.mark.parametrize(
    ("field", "word", "said"),
    [
        ("br0", "idle", "the bridge's own port"),
        ("br0 fail_mode", "taken", "no packet passes"),
        ("br1 fail_mode", "impossible", "around every rule"),
        ("br0 protocols", "taken", "OpenFlow 1.3"),
        ("br0 stp_enable", "impossible", "spanning tree"),
        ("br0 mcast_snooping_enable", "taken", "who join them"),
        ("br1 mcast_snooping_enable", "changed", "floods"),
        ("br0 other_config:mcast-snooping-aging-time", "changed", "2 x 150 + 10 s"),
        ("br0 other_config:mcast-snooping-disable-flood-unregistered", "taken", "go nowhere"),
        ("br0-3 other_config:mcast-snooping-flood", "taken", "a router port"),
        ("br0-4 vlan_mode", "changed", "without a tag"),
        ("br0-5 vlan_mode", "impossible", "second tag"),
        ("br0-5 protected", "impossible", "kept apart"),
        ("br0-1 ingress_policing_rate", "impossible", "rates"),
        ("to-br1", "changed", "LLDP"),
        ("tun0 type", "changed", "a tunnel"),
        ("bond0 lacp", "taken", "link aggregation group"),
    ],
)
def test_a_column_is_reported(bridge, field, word, said):
    part = told(bridge)[field]
    assert part.outcome.word == word
    assert said in part.what


def test_a_dump_of_the_whole_database_says_the_same(database, bridge):
    dumped = Imported(read_ovs([database[1]], parse_places([])))
    assert {port: vlans_at(dumped.policy, port) for port in range(1, 14)} == {
        port: vlans_at(bridge.policy, port) for port in range(1, 14)
    }
    assert [line.text for line in dumped.lines] == database[1].text.splitlines()
    assert not [line for line in dumped.lines if "could not be told" in line.parts[0].what]


def test_what_show_prints_needs_to_be_told_ids_and_numbers(database):
    alone = Imported(read_ovs([database[2]], parse_places([])))
    assert alone.word("Bridge br0") == "impossible"
    assert "--at br0-1=DPID:PORT" in alone.said("Port br0-1")
    placed = Imported(read_ovs([database[2]], parse_places(["br0=0x1a", "br0-1=0x1a:1", "br0-2=0x1a:2"])))
    assert vlans_at(placed.policy, 1) == (10, [])
    assert vlans_at(placed.policy, 2) == (10, [20, 30])
    assert [line.text for line in placed.lines] == database[2].text.splitlines()


def test_every_line_of_what_show_prints_is_reported_once():
    found = Imported(read_ovs([file_of("ovs-show.txt")], parse_places(["br0=1", "p1=1:1"])))
    assert [line.text for line in found.lines] == file_of("ovs-show.txt").text.splitlines()
    assert not [line for line in found.lines if "could not be told" in line.parts[0].what]
    assert found.word("tag: 10") == "taken"
    assert found.word("trunks: [20, 30]") == "impossible"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 0, "empty"),
        ("hello\n", 1, "neither JSON tables"),
        ('{"data": []}', 1, "no table"),
        ('{"headings": ["name"],\n "data": [["a", "b"]]}', 2, "a row of 2 values, while there are 1 columns"),
        ('{"headings": ["name"], "data": [', 1, "JSON syntax"),
        ('{"headings": ["name", "vlan_mode", "tag"], "data": [["p", "access", 5000]]}', 1, "no VLAN"),
        ('{"headings": ["name", "datapath_id"], "data": [["b", "xyz"]]}', 1, "no datapath id"),
    ],
)
def test_what_is_no_database_is_a_fault_with_its_line(text, line, message):
    with pytest.raises(BadConfiguration) as refused:
        read_ovs([InputFile("t.json", text)], parse_places(["p=1:1"]))
    assert [fault for fault in refused.value.faults if fault.line == line and message in fault.message], refused.value
