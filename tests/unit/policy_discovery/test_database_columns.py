"""What of an Open vSwitch database is configuration, by its own schema, and of which switch or port each row is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.emulation.ovs import SCHEMA
from apps.ovsdb_requests import OvsdbRequests
from controller.policy_discovery.configuration import Resource
from controller.policy_discovery.database_columns import (
    CONFIGURED_COLUMNS,
    FOLLOWED,
    ColumnShape,
    ColumnsInvalid,
    DatabaseProperties,
    column_requests,
)
from ovsdb_server import OvsdbServer

NO_CONFIGURATION = {
    "Bridge": {
        *("auto_attach", "controller", "datapath_id", "datapath_version", "external_ids", "flow_tables", "ipfix"),
        *("mirrors", "name", "netflow", "ports", "rstp_status", "sflow", "status"),
    },
    "Port": {
        *("bond_active_slave", "external_ids", "interfaces", "name", "qos", "rstp_statistics", "rstp_status"),
        *("statistics", "status"),
    },
    "Interface": {
        *("admin_state", "bfd_status", "cfm_fault", "cfm_fault_status", "cfm_flap_count", "cfm_health"),
        *("cfm_remote_mpids", "cfm_remote_opstate", "duplex", "error", "external_ids", "ifindex", "lacp_current"),
        *("link_resets", "link_speed", "link_state", "mac_in_use", "mtu", "name", "ofport", "statistics", "status"),
    },
    "Controller": {"external_ids", "is_connected", "role", "status"},
}
"""What a row is called, what belongs to it, what the switch counts or found out, and what others keep about it."""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with OvsdbServer(tmp_path_factory.mktemp("db")) as server:
        requests = OvsdbRequests(server.target)
        try:
            return requests.schema()
        finally:
            requests.close()


@pytest.mark.parametrize("table", CONFIGURED_COLUMNS)
def test_each_column_of_open_vswitch_is_configuration_or_declared_not_to_be(table, schema):
    columns = schema["tables"][table]["columns"]
    configured = set(CONFIGURED_COLUMNS[table])
    assert configured | NO_CONFIGURATION[table] == set(columns)
    assert not configured & NO_CONFIGURATION[table]
    assert set(FOLLOWED[table]) <= NO_CONFIGURATION[table]
    assert not {name for name in configured if columns[name].get("ephemeral")}
    assert {name: _declared(columns[name]["type"]) for name in configured} == dict(CONFIGURED_COLUMNS[table])
    assert set(column_requests(schema)[table]["columns"]) == configured | set(FOLLOWED[table])


def _declared(given: Any) -> tuple[ColumnShape, bool]:
    """Return what a column has by its type (RFC 7047, 3.2)."""
    if isinstance(given, str):
        return ColumnShape.NEEDED, given == "string"
    key = given["key"] if isinstance(given["key"], str) else given["key"]["type"]
    if "value" in given:
        assert given["value"] == "string"
        return ColumnShape.MAP, True
    amount = given.get("min", 1), given.get("max", 1)
    shapes = {(1, 1): ColumnShape.NEEDED, (0, 1): ColumnShape.OPTIONAL}
    return shapes.get(amount, ColumnShape.SET), key == "string"


def test_columns_that_an_older_open_vswitch_lacks_are_not_asked_for():
    schema = json.loads(SCHEMA.read_bytes())
    del schema["tables"]["Port"]["columns"]["protected"]
    assert "protected" not in column_requests(schema)["Port"]["columns"]
    del schema["tables"]["Interface"]["columns"]["ofport"]
    assert "ofport" in column_requests(schema)["Interface"]["columns"]


NO_MEMBERS: list[Any] = ["set", []]


def uuid(name: str) -> list[str]:
    return ["uuid", name]


def rows(**changes: Any) -> dict[str, dict[str, Any]]:
    """A bridge with a port, its only one."""
    tables: dict[str, dict[str, Any]] = {
        "Bridge": {"b": {"datapath_id": "000000000000001a", "ports": uuid("p"), "controller": NO_MEMBERS}},
        "Port": {"p": {"interfaces": uuid("i")}},
        "Interface": {"i": {"ofport": 3}},
        "Controller": {},
    }
    for key, value in changes.items():
        table, column = key.split("_", 1)
        next(iter(tables[table].values()))[column] = value
    return {table: {id_: {"new": row} for id_, row in found.items()} for table, found in tables.items()}


def told(found: Any) -> dict[tuple[str, str], dict[str, str]]:
    return {(columns.resource.name, columns.field): columns.properties for columns in found}


def test_values_are_texts_and_what_has_none_is_not_set():
    found = DatabaseProperties().read(
        rows(
            Bridge_fail_mode="secure",
            Bridge_stp_enable=False,
            Bridge_rstp_enable=True,
            Bridge_protocols=["set", ["OpenFlow13", "OpenFlow10"]],
            Bridge_other_config=["map", [["mac-aging-time", "600"], ["flood", ""]]],
            Port_tag=0,
            Port_trunks=20,
            Port_lacp=NO_MEMBERS,
            Interface_mtu_request=9000,
            Interface_ingress_policing_rate=0,
            Interface_statistics=["map", [["rx_bytes", 7]]],
        )
    )
    assert told(found) == {
        ("26", "bridge"): {
            "bridge.fail_mode": "secure",
            "bridge.rstp_enable": "true",
            "bridge.protocols": '["OpenFlow10", "OpenFlow13"]',
            "bridge.other_config:mac-aging-time": "600",
            "bridge.other_config:flood": "",
        },
        ("26", "controller"): {},
        ("26:3", "port"): {"port.tag": "0", "port.trunks": "[20]"},
        ("26:3", "interface"): {"interface.mtu_request": "9000"},
    }
    assert {columns.resource.kind for columns in found} == {"switch", "port"}


def test_what_has_no_number_yet_says_nothing_and_all_of_it_when_it_has():
    database = DatabaseProperties()
    assert database.read(rows(Bridge_datapath_id=NO_MEMBERS, Interface_mtu_request=9000)) == []
    update = {"Bridge": rows()["Bridge"]}
    assert told(database.updated(update))["26:3", "interface"] == {"interface.mtu_request": "9000"}
    for number in (NO_MEMBERS, -1, 65534):
        assert ("26:3", "interface") not in told(database.read(rows(Interface_ofport=number)))
    update = {"Interface": rows(Interface_ofport=5, Interface_mtu_request=1500)["Interface"]}
    assert told(database.updated(update))["26:5", "interface"] == {"interface.mtu_request": "1500"}


def test_a_port_of_several_interfaces_is_told_at_each_and_one_that_is_gone_at_none():
    database = DatabaseProperties()
    tables = rows(Port_interfaces=["set", [uuid("i"), uuid("j")]], Port_lacp="active")
    tables["Interface"]["j"] = {"new": {"ofport": 4}}
    both = told(database.read(tables))
    assert both["26:3", "port"] == both["26:4", "port"] == {"port.lacp": "active"}
    gone = {"Interface": {"j": {"old": {}}}, "Port": rows(Port_lacp="passive")["Port"]}
    assert told(database.updated(gone)) == {("26:3", "port"): {"port.lacp": "passive"}, ("26:3", "interface"): {}}


def test_controllers_are_told_together_by_what_they_have_in_common():
    database = DatabaseProperties()
    tables = rows(Bridge_controller=["set", [uuid("c"), uuid("d")]])
    tables["Controller"] = {
        "c": {"new": {"target": "tcp:192.0.2.2:6653", "inactivity_probe": 9, "max_backoff": 1000}},
        "d": {"new": {"target": "tcp:192.0.2.1:6653", "max_backoff": 1000}},
    }
    assert told(database.read(tables))["26", "controller"] == {
        "controller.target": '["tcp:192.0.2.1:6653", "tcp:192.0.2.2:6653"]',
        "controller.inactivity_probe": '["", "9"]',
        "controller.max_backoff": "1000",
    }
    other = {"Controller": {"d": {"new": {"target": "tcp:192.0.2.1:6653", "inactivity_probe": 9}}}}
    assert told(database.updated(other))["26", "controller"]["controller.inactivity_probe"] == "9"
    alone = {"Bridge": rows(Bridge_controller=uuid("c"))["Bridge"], "Controller": {"d": {"old": {}}}}
    assert told(database.updated(alone))["26", "controller"]["controller.target"] == "tcp:192.0.2.2:6653"


def test_what_is_not_read_again_is_forgotten():
    database = DatabaseProperties()
    database.read(rows())
    assert database.read({}) == []
    assert database.updated({"Controller": {"c": {"new": {"target": "tcp:192.0.2.2:6653"}}}}) == []


@pytest.mark.parametrize(
    "updates",
    [
        {"Bridge": {"b": {"new": {}}}},
        rows(Bridge_datapath_id="x"),
        rows(Bridge_other_config="x"),
        rows(Bridge_ports=[]),
        rows(Port_tag=["set", [1, 2]]),
        {"Port": []},
    ],
)
def test_what_makes_no_sense_is_told(updates):
    with pytest.raises(ColumnsInvalid):
        DatabaseProperties().read(updates)


def test_resources_are_those_of_the_feed():
    found = DatabaseProperties().read(rows())
    assert [columns.resource for columns in found] == [
        *(Resource("switch", "26"), Resource("switch", "26")),
        *(Resource("port", "26:3"), Resource("port", "26:3")),
    ]
