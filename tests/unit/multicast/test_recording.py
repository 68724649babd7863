"""A recorded run can be done again, in any process, with the same effects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from apps.cli.main import main
from apps.replays import MAKERS, read_lines, replay
from controller.alarms.core import AlarmCore
from controller.alarms.events import ConditionReported, ForgetLinkAsked
from controller.alarms.known import read_cable
from controller.config.alarm_settings import Alarms, ExpectedTopology
from controller.config.policy import Policy, Role, Rule, Tenant
from controller.config.registrations import Registration, Registrations
from controller.config.settings import Limits, Monitor, Multicast, RouterPorts
from controller.config.terms import MacAddress, SwitchPort, parse_prefix
from controller.config.vlans import PortVlans, VlanEntry, Vlans
from controller.discovery.core import DiscoveryCore
from controller.discovery.settings import DiscoverySettings
from controller.events import PacketReceived, Port, PortChanged, SwitchConnected
from controller.log import LogEntry, LogEntryKind
from controller.multicast.events import PolicyLoaded
from controller.performance.poller_core import MonitorChanged, MonitorCore
from controller.performance.requests import StatsReceived
from controller.recording import WRITTEN_AS, RecordingInvalid, plain, write_line
from controller.rules.model import FlowEntry, FlowKey, Match
from controller.snapshot.events import Severity
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastSettings
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType
from topology.events import HostLearnt, PortRole, PortRoleChanged, SwitchUp

POLICY = Policy(
    tenants=(Tenant("red", (parse_prefix("10.0.0.0/29"), MacAddress(b"\x02\0\0\0\0\x09"))),),
    rules=(
        Rule("red", (parse_prefix("239.0.0.0/8"),), frozenset(Role), True, tenants=("red",), line=7),
        Rule("port", (parse_prefix("232.0.0.0/8"),), frozenset({Role.RECEIVER}), True, hosts=(SwitchPort(1, 1),)),
    ),
    limits=Limits(reports_per_second_per_port=50),
    multicast=Multicast(fast_leave=True, router_ports=RouterPorts(static=frozenset({SwitchPort(2, 1)}))),
    vlans=Vlans(entries=(VlanEntry(PortVlans(10, frozenset({20})), ports=(SwitchPort(1, 1),)),)),
    registrations=Registrations((Registration(20, (parse_prefix("239.5.0.0/16"),), frozenset({10})),)),
    monitor={"thresholds": (1, 2.5, "x")},
)


def recorded(world):
    """Have what the core is given and asks for written down."""
    lines = [write_line("multicast", world.now, "start", {"policy": world.policy})]
    handle = world.handle

    def written(event):
        lines.append(write_line("multicast", world.now, "event", event))
        effects = handle(event)
        lines.extend(write_line("multicast", world.now, "effect", effect) for effect in effects)
        return effects

    world.handle = written
    return lines


@pytest.fixture
def run(make_world):
    world = make_world("avalanche24", POLICY, start=False)
    lines = recorded(world)
    world.connect_all()
    world.settle()
    for name in ("h2", "h5", "h9", "h20", "h24"):
        world.join(name)
        world.join(name, parse_ip("ff0e::1"))
    sources = [world.hosts[name].v4 for name in ("h5", "h3", "h4")]
    world.record("h2", RecordType.ALLOW_NEW_SOURCES, parse_ip("232.1.1.1"), *sources)
    for name in ("h1", "h3", "h12"):
        world.send(name)
    world.settle()
    world.leave("h5")
    world.cut(*sorted(next(iter(world.links))))
    world.advance(3.0)
    world.do("switch-drain", dpid=max(world.switches))
    world.do("static-member-add", dpid=world.hosts["h7"].dpid, port_no=world.hosts["h7"].port_no, group="239.1.2.3")
    world.do("router-port-add", dpid=world.hosts["h8"].dpid, port_no=world.hosts["h8"].port_no, family=6)
    world.settle()
    world.do("switch-undrain", dpid=max(world.switches))
    world.do("group-rebuild", group="239.1.2.3")
    world.do("switch-drain", dpid=999)
    world.feed(PolicyLoaded(replace(POLICY, default_allow=True, multicast=Multicast(seed=7))))
    world.advance(20.0)
    return lines


def effects_of(lines):
    return [line for line in lines if '"effect":' in line]


def test_a_run_replays_to_the_same_effects(run):
    again = [write_line("multicast", at_s, "effect", effect) for at_s, effect in replay(read_lines(run), "multicast")]
    assert len(again) > 100
    assert again == effects_of(run)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_a_run_replays_in_another_process(run, tmp_path, hash_seed):
    file = tmp_path / "run.jsonl"
    file.write_text("\n".join(run) + "\n")
    command = [sys.executable, "-m", "apps.cli.main", "replay", str(file)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines() == effects_of(run)


def test_one_document_holds_the_same_effects(run, tmp_path, capsys):
    file = tmp_path / "run.jsonl"
    file.write_text("\n".join(run) + "\n")
    assert main(["replay", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["app"] == "multicast"
    assert [{"app": "multicast", **line} for line in document["effects"]] == list(map(json.loads, effects_of(run)))


PORT = Port(3, "s1-eth3", b"\x02\0\0\0\0\x03", True, 1e9)
VALUES = [
    SwitchConnected(1, 4, (PORT, PORT)),
    PortChanged(1, PORT, True),
    PacketReceived(1, 2, bytes(range(60))),
    PortRoleChanged(1, 2, PortRole.EDGE),
    HostLearnt(b"\x02\0\0\0\0\x03", 1, 2, (bytes(4), bytes(16))),
    PolicyLoaded(POLICY),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_written_is_read_again(value):
    (line,) = read_lines([write_line("multicast", 1.5, "event", value)])
    assert line == ("multicast", 1.5, "event", value)


def test_every_app_can_be_replayed():
    discovery = DiscoveryCore(DiscoverySettings(), bytes(16))
    monitor = MonitorCore(Monitor(), 1.0, 1.7e9)
    unicast = UnicastCore(UnicastSettings())
    alarms = AlarmCore(Alarms(), ExpectedTopology(), 1.0, 1.7e9)
    full = ConditionReported("unicast", "table-full", "1", Severity.CRITICAL, "A table is full.", 1)
    lines = [
        write_line("discovery", 1.0, "start", {"settings": DiscoverySettings(), "secret": bytes(16)}),
        write_line("unicast", 1.0, "start", {"settings": UnicastSettings()}),
        write_line("alarms", 1.0, "start", {"settings": Alarms(), "topology": ExpectedTopology(), "at_s": 1.7e9}),
        write_line("monitor", 1.0, "start", {"monitor": Monitor(), "at_s": 1.7e9}),
    ]
    expected = {"discovery": [], "unicast": [], "monitor": [], "alarms": []}
    for app, core, event in (
        ("discovery", discovery, SwitchConnected(1, 4, (PORT,))),
        ("unicast", unicast, SwitchConnected(1, 4, (PORT,))),
        ("unicast", unicast, SwitchUp(1, 4)),
        ("alarms", alarms, full),
        ("alarms", alarms, ForgetLinkAsked(read_cable("1:1-2:1"))),
        ("monitor", monitor, SwitchConnected(1, 4, (PORT,))),
        ("monitor", monitor, MonitorChanged(Monitor(interval_s=1))),
        ("monitor", monitor, StatsReceived(1, 4, 7, b"\4\x13", 1.7e9)),
    ):
        lines.append(write_line(app, 2.0, "event", event))
        expected[app] += core.handle(event, 2.0)
    assert {*expected, "multicast", "datapath"} == set(MAKERS)
    for app, effects in expected.items():
        assert effects
        assert [effect for _, effect in replay(read_lines(lines), app)] == effects


@pytest.mark.parametrize(
    "text",
    [
        "{\n",
        "[]",
        '{"app": "multicast", "t": 1}',
        '{"app": "multicast", "event": {"$": "DeadlineReached"}}',
        '{"app": "multicast", "t": 1, "event": {"$": "Unheard"}}',
        '{"app": "multicast", "t": 1, "event": {"$": "SwitchUp", "dpid": 1}}',
        '{"app": "multicast", "t": 1, "event": {"$": "bytes", "hex": "xy"}}',
    ],
)
def test_faulty_lines_are_told(text, tmp_path, capsys):
    with pytest.raises(RecordingInvalid, match="line 2"):
        list(read_lines(["", text]))
    file = tmp_path / "faulty.jsonl"
    file.write_text("\n" + text + "\n")
    assert main(["replay", str(file)]) == 2
    assert "line 2" in capsys.readouterr().err


def test_events_before_a_start_and_unknown_apps_are_told(tmp_path):
    lines = [write_line("multicast", 1.0, "event", SwitchUp(1, 4))]
    with pytest.raises(RecordingInvalid, match="before its start"):
        list(replay(read_lines(lines), "multicast"))
    with pytest.raises(RecordingInvalid, match="no app"):
        list(replay(read_lines(lines), "magic"))
    assert main(["replay", str(tmp_path / "absent.jsonl")]) == 2


def test_types_keep_the_names_that_recordings_have_called_them_by():
    written = plain(FlowEntry(FlowKey(1, 2, Match()), (), 3))
    assert (written["$"], written["key"]["$"], written["key"]["match"]["$"]) == ("Rule", "RuleKey", "Match")
    entry = LogEntry.of_record(LogEntryKind.DECISION, "tree/1", {"n": 1})
    assert plain(entry)["$"] == "Entry"
    (line,) = read_lines([write_line("multicast", 1.5, "event", entry)])
    assert line.content == entry


@pytest.mark.parametrize("kind", WRITTEN_AS)
def test_what_is_written_by_another_name_is_there(kind):
    module, _, name = kind.rpartition(".")
    assert isinstance(getattr(import_module(module), name), type)


def test_arrays_are_lists_and_what_is_not_known_is_null():
    assert plain(np.array([[1.5, np.nan], [0.0, 2.0]])) == [[1.5, None], [0.0, 2.0]]
    assert plain(np.array([(1 << 64) - 1], np.uint64)) == [(1 << 64) - 1]


def test_what_has_no_place_is_our_own_fault():
    with pytest.raises(TypeError):
        plain(object())
