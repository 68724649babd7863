"""Queues are set up in real databases: whole, in place, and beside what others have there."""

from __future__ import annotations

import pytest

from controller.config.service_classes import ServiceClass
from controller.config.terms import parse_prefix
from controller.queues.core import SWITCHES_AT_ONCE
from controller.queues.events import DatabaseUpdated
from controller.queues.settings import QueuesChanged
from ovsdb_server import OvsdbServer
from topology.events import SwitchDown

from .conftest import CAPACITY_BPS, settings_of


@pytest.fixture
def bench(server, make_bench):
    """One switch with two ports to hosts and one to a switch, set up."""
    server.bridge("s1", 1, 3)
    bench = make_bench(settings_of(server.target))
    bench.switch(1, 2)
    bench.link(1, 3, 2, 1, 4e6)
    bench.wait(lambda: bench.answers)
    bench.settle()
    return bench


def rates(server, port):
    return {queue_id: int(config["min-rate"]) for queue_id, config in server.queues(port).items()}


def uuids(server):
    return {table: {row["_uuid"] for row in server.rows(table, "_uuid")} for table in ("QoS", "Queue")}


def test_every_port_has_its_queues_by_one_transaction(server, bench):
    assert len(bench.transacts) == 1
    for port in ("s1-1", "s1-2"):
        assert rates(server, port) == {0: 12_000, 1: 100_000, 5: 100_000, 6: 100_000, 7: 100_000}
    assert rates(server, "s1-3") == {0: 12_000, 1: 40_000, 5: 40_000, 6: 40_000, 7: 40_000}
    priorities = {queue_id: config["priority"] for queue_id, config in server.queues("s1-1").items()}
    assert priorities == {7: "0", 6: "1", 5: "2", 1: "6", 0: "7"}
    rows = server.rows("QoS", "type", "other_config", "external_ids")
    assert sorted(int(row["other_config"]["max-rate"]) for row in rows) == [4_000_000, CAPACITY_BPS, CAPACITY_BPS]
    assert {(row["type"], row["external_ids"]["vsrt-controller"]) for row in rows} == {("linux-htb", f"{1:016x}")}
    assert server.queues("s1") == {}, "the port of the switch itself"


def test_what_is_as_it_shall_be_is_not_written(bench):
    bench.feed(QueuesChanged(bench.core.settings._replace(interval_s=5.0)))
    bench.link(1, 3, 2, 1, 4e6)
    assert len(bench.transacts) == 1


def test_rows_are_changed_in_place(server, bench):
    before = uuids(server)
    bench.feed(QueuesChanged(bench.core.settings._replace(floor_pct=2.0)))
    bench.settle()
    assert rates(server, "s1-1")[6] == 200_000
    assert uuids(server) == before
    bench.link(1, 3, 2, 1, 8e6)
    bench.settle()
    assert rates(server, "s1-3")[6] == 160_000
    assert uuids(server) == before


def test_another_class_is_another_queue_and_the_others_stay(server, bench):
    before = uuids(server)
    bench.feed(QueuesChanged(bench.core.settings._replace(classes=bench.core.settings.classes[:1])))
    bench.settle()
    assert set(server.queues("s1-1")) == {0, 1, 6, 7}
    assert uuids(server)["QoS"] == before["QoS"]
    assert uuids(server)["Queue"] < before["Queue"]


@pytest.mark.parametrize("mtu_bytes", [1500, 9000])
def test_a_least_rate_is_a_packet_in_a_second_at_least(server, make_bench, mtu_bytes):
    server.bridge("s1", 1, 1, mtu_bytes=mtu_bytes)
    bench = make_bench(settings_of(server.target, floor_pct=0.0))
    bench.switch(1, 1)
    bench.wait(lambda: bench.answers)
    assert set(rates(server, "s1-1").values()) == {8 * mtu_bytes}


def test_ports_to_hosts_have_the_speed_that_they_tell_and_one_that_does_not_is_told_of(server, make_bench):
    server.bridge("s1", 1, 2)
    server.vsctl(
        "set", "Interface", "s1-1", "link_speed=1000000000", "--", "clear", "Interface", "s1-2", "link_speed"
    )
    bench = make_bench(settings_of(server.target, port_capacity_bps=0.0))
    bench.switch(1, 2)
    bench.wait(lambda: bench.answers)
    assert rates(server, "s1-1")[6] == 10_000_000
    assert server.queues("s1-2") == {}
    (notice,) = bench.told("queues-capacity-unknown")
    assert "1:2" in notice.text


def test_off_leaves_nothing_of_this_controller_and_all_of_others(server, bench):
    server.vsctl(
        "--",
        "--id=@q",
        "create",
        "Queue",
        "other_config:min-rate=5",
        "--",
        "create",
        "QoS",
        "type=linux-htb",
        "queues:3=@q",
    )
    bench.feed(QueuesChanged(bench.core.settings._replace(mode="off")))
    bench.settle()
    assert len(uuids(server)["QoS"]) == len(uuids(server)["Queue"]) == 1
    assert all(server.queues(port) == {} for port in ("s1-1", "s1-2", "s1-3"))


def test_a_port_with_the_qos_of_others_is_left_alone_and_told_of_until_that_goes(server, make_bench):
    server.bridge("s1", 1, 2)
    server.vsctl("set", "Port", "s1-1", "qos=@q", "--", "--id=@q", "create", "QoS", "type=linux-sfq")
    bench = make_bench(settings_of(server.target))
    bench.switch(1, 2)
    bench.wait(lambda: bench.answers)
    (notice,) = bench.told("qos-foreign")
    assert "1:1" in notice.text
    assert server.queues("s1-1") == {}
    assert set(server.queues("s1-2")) == {0, 1, 5, 6, 7}
    server.vsctl("clear", "Port", "s1-1", "qos")
    bench.wait(lambda: len(bench.transacts) == 2)
    bench.settle()
    assert set(server.queues("s1-1")) == {0, 1, 5, 6, 7}
    assert [row["type"] for row in server.rows("QoS", "type")].count("linux-sfq") == 1


def test_where_somebody_is_faster_nothing_is_half_written(server, make_bench):
    server.bridge("s1", 1, 2)
    bench = make_bench(settings_of(server.target))
    bench.before_transact = lambda: (
        server.vsctl("set", "Port", "s1-1", "qos=@q", "--", "--id=@q", "create", "QoS", "type=linux-sfq")
        if len(bench.transacts) == 1
        else None
    )
    bench.switch(1, 2)
    bench.wait(lambda: bench.answers)
    assert bench.answers[0].error is not None
    assert server.rows("Queue", "_uuid") == []
    assert len(bench.told("queues-not-written")) == 1
    bench.before_transact = lambda: None
    bench.advance(6.0)
    bench.wait(lambda: len(bench.answers) > 1 and bench.answers[-1].error is None)
    assert server.queues("s1-1") == {}
    assert set(server.queues("s1-2")) == {0, 1, 5, 6, 7}
    assert len(bench.told("qos-foreign")) == 1


def test_a_port_that_goes_takes_its_rows_along(server, bench):
    server.vsctl("del-port", "s1", "s1-2")
    bench.wait(lambda: len(bench.transacts) == 2)
    bench.settle()
    assert {table: len(rows) for table, rows in uuids(server).items()} == {"QoS": 2, "Queue": 10}


def test_a_bridge_that_goes_takes_its_rows_along(server, bench):
    bench.feed(SwitchDown(1))
    server.vsctl("del-br", "s1")
    bench.wait(lambda: len(bench.transacts) == 2)
    bench.settle()
    assert uuids(server) == {"QoS": set(), "Queue": set()}


def test_a_switch_that_is_away_keeps_its_queues(server, bench):
    bench.feed(SwitchDown(1), QueuesChanged(bench.core.settings._replace(floor_pct=3.0)))
    assert len(bench.transacts) == 1
    bench.switch(1, 2)
    bench.settle()
    assert rates(server, "s1-1")[6] == 300_000


def test_a_server_that_ends_is_told_of_once_and_found_again(server, bench):
    server.kill()
    bench.wait(lambda: bench.told("ovsdb-lost"))
    bench.feed(QueuesChanged(bench.core.settings._replace(floor_pct=2.0)))
    server.start()
    bench.wait(lambda: bench.told("ovsdb-back"))
    server.vsctl("set", "Bridge", "s1", f'datapath_id="{1:016x}"')
    bench.wait(lambda: len(bench.transacts) > 1)
    bench.settle()
    assert rates(server, "s1-1")[6] == 200_000
    assert {table: len(rows) for table, rows in uuids(server).items()} == {"QoS": 3, "Queue": 15}
    assert len(bench.told("ovsdb-lost")) == 1


def test_several_servers_have_each_their_switches(server, make_bench, tmp_path):
    (tmp_path / "other").mkdir()
    with OvsdbServer(tmp_path / "other") as other:
        server.bridge("s1", 1, 1)
        other.bridge("s2", 2, 1)
        bench = make_bench(settings_of(server.target, other.target))
        for dpid in (1, 2):
            bench.switch(dpid, 1)
        bench.wait(lambda: len(bench.answers) == 2)
        assert set(server.queues("s1-1")) == set(other.queues("s2-1")) == {0, 1, 5, 6, 7}


def test_many_switches_are_set_up_some_in_a_turn(server, make_bench):
    count = 3 * SWITCHES_AT_ONCE
    for dpid in range(1, count + 1):
        server.bridge(f"s{dpid}", dpid, 1)
    bench = make_bench(settings_of(server.target))
    for dpid in range(1, count + 1):
        bench.switch(dpid, 1)
    bench.wait(lambda: len(bench.answers) == count)
    bench.core.handle(QueuesChanged(bench.core.settings._replace(floor_pct=5.0)), bench.now)
    assert bench.core.next_deadline() == bench.now


@pytest.mark.parametrize(
    "updates",
    [
        {"QoS": {"u": {"new": {"queues": "x", "other_config": ["map", []], "external_ids": ["map", []]}}}},
        {"Bridge": {"u": {"new": {"datapath_id": "no number", "datapath_type": "", "ports": ["set", []]}}}},
        {"Port": {"u": 7}},
        {"Queue": None},
        [],
    ],
)
def test_what_makes_no_sense_is_told_of_and_the_server_is_read_anew(server, bench, updates):
    bench.feed(DatabaseUpdated(server.target, updates))
    assert bench.read_anew == [server.target]
    assert len(bench.told("ovsdb-malformed")) == 1
    bench.wait(lambda: bench.core.databases.servers)
    bench.feed(QueuesChanged(bench.core.settings._replace(floor_pct=2.0)))
    bench.settle()
    assert rates(server, "s1-1")[6] == 200_000


def test_switches_in_user_space_are_told_of(server, make_bench):
    server.bridge("s1", 1, 1)
    server.vsctl("set", "Bridge", "s1", "datapath_type=netdev")
    bench = make_bench(settings_of(server.target))
    bench.switch(1, 1)
    bench.wait(lambda: bench.answers)
    (notice,) = bench.told("queues-without-effect")
    assert dict(notice.fields) == {"dpid": 1}


def test_classes_that_code_points_do_not_tell_apart_are_told_of(server, make_bench):
    voice, video = (
        ServiceClass(name, importance, hosts=(parse_prefix(f"10.0.0.{importance}"),), dscp=46)
        for importance, name in ((1, "voice"), (2, "video"))
    )
    settings = settings_of(server.target)._replace(classes=(voice, video))
    bench = make_bench(settings)
    bench.switch(1, 1)
    (notice,) = bench.told("queues-share-code-point")
    assert "class voice to one host wait in queue 6 only" in notice.text
    assert "behind it in queue 5, since class video has the code point 46 as well" in notice.text
    assert dict(notice.fields) == {"classes": "voice"}
    bench.feed(QueuesChanged(settings._replace(floor_pct=2.0)))
    assert len(bench.told("queues-share-code-point")) == 1
    desk = ServiceClass("desk", 3, hosts=(parse_prefix("10.0.0.3"),))
    bench.feed(QueuesChanged(settings._replace(classes=(voice, video, desk))))
    assert dict(bench.told("queues-share-code-point")[-1].fields) == {"classes": "voice, desk"}
    bench.feed(QueuesChanged(settings._replace(classes=(voice,))))
    bench.feed(QueuesChanged(settings._replace(mode="off")))
    assert len(bench.told("queues-share-code-point")) == 2
