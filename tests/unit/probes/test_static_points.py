"""Points that keep their names: what they give is what the records behind them say, counted in recordings."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any

import pytest

from apps.probe_points import asked_for, recorded_points
from apps.replays import Replay, probe_replay, read_lines
from controller.admission.host import Decision, Host
from controller.config.policy import Role
from controller.discovery.core import DiscoveryCore
from controller.effects import ActionRefused, ActionTaken
from controller.events import PacketReceived
from controller.multicast.core import MulticastCore
from controller.multicast.effects import Audit
from controller.probes.grammar import ScriptFault
from controller.probes.script import Probe, load
from controller.probes.static_points import STATIC_POINTS
from controller.unicast.core import UnicastCore
from wire_frames import GROUP, GROUP6, HOST, HOST6, MAC, V3_ROUTERS, igmp, mld, mld2, record, v2, v3

CASES = Path(__file__).parents[2] / "conformance"
RUNS = sorted(path for path in (CASES / "multicast").iterdir() if path.is_dir())


def lines_of(case: Path) -> list[str]:
    return [line for path in sorted(case.glob("*-input.jsonl")) for line in path.read_text().splitlines()]


def found(case: Path, script: str, again: Replay | None = None) -> Probe:
    probe = Probe(load(script, recorded_points()))
    probe_replay(read_lines(lines_of(case)), [probe], again)
    assert probe.run.faults == Counter()
    return probe


def counts(probe: Probe, name: str) -> dict[tuple[Any, ...], int]:
    return {row.keys: row.count for row in probe.run.rows(name)}


def given(name: str, *records: Any) -> list[Any]:
    """What a point gives of records, one after the other."""
    by_kind = {source.kind: source.derive for source in STATIC_POINTS[name].sources}
    return [each for record in records for each in by_kind[type(record)](record, None)]


def packet(frame: bytes) -> PacketReceived:
    return PacketReceived(7, 3, frame, False)


def tagged(frame: bytes, vlan: int) -> bytes:
    return frame[:12] + (0x8100).to_bytes(2, "big") + (0xE000 | vlan).to_bytes(2, "big") + frame[12:]


@pytest.mark.parametrize("case", RUNS, ids=lambda path: path.name)
def test_what_points_of_multicast_give_is_what_is_in_the_records_behind_them(case: Path):
    probe = found(
        case,
        """
        aggr packets[2][0]; aggr received[2][0]; aggr confirmed[2][0]; aggr replied[2][0];
        aggr edits[1][1]; aggr applied[1][1]; aggr verdicts[1][2]; aggr audits[1][2];
        aggr keys[0][1]; aggr written[0][1];
        multicast:point:packet-in { packets[dpid, port_no]++; }
        multicast:event:PacketReceived { received[dpid, in_port]++; }
        datapath:point:confirmed { confirmed[dpid, xid]++; }
        datapath:event:BarrierReplied { replied[dpid, xid]++; }
        datapath:point:edit { edits[dpid, operation]++; }
        datapath:effect:ApplyEdits { foreach (each in edits) { applied[dpid, str(each)]++; } }
        multicast:point:join { verdicts[dpid, role, rule]++; }
        multicast:point:refused { verdicts[dpid, role, rule]++; }
        multicast:effect:Audit when (role == "receiver" || !decision.admit) {
            audits[host.dpid, role, decision.rule]++;
        }
        multicast:point:journal { keys[key]++; }
        multicast:effect:WriteLog { foreach (entry in entries) { written[entry.key]++; } }
        """,
    )
    for point, behind in (
        ("packets", "received"),
        ("confirmed", "replied"),
        ("verdicts", "audits"),
        ("keys", "written"),
    ):
        assert counts(probe, point) == counts(probe, behind), point
    applied = {(dpid, kind.lower()): count for (dpid, kind), count in counts(probe, "applied").items()}
    assert counts(probe, "edits") == applied != {}
    assert counts(probe, "packets") != {} != counts(probe, "confirmed")


def test_reports_are_read_as_they_are_said_whatever_carries_them():
    frames = [
        igmp(v2(), GROUP),
        igmp(v2(0x17), GROUP),
        igmp(v3(record(4, GROUP), record(6, GROUP, HOST)), V3_ROUTERS),
        mld(mld2(record(3, GROUP6))),
        tagged(igmp(v3(record(3, GROUP)), V3_ROUTERS), 20),
        igmp(b"\x16\0\0", GROUP),
        b"",
    ]
    said = given("report", *map(packet, frames))
    shown = [(each.vlan, each.group, each.kind, each.sources) for each in said]
    assert shown == [
        (0, GROUP, "MODE_IS_EXCLUDE", ()),
        (0, GROUP, "CHANGE_TO_INCLUDE", ()),
        (0, GROUP, "CHANGE_TO_EXCLUDE", ()),
        (0, GROUP, "BLOCK_OLD_SOURCES", (HOST,)),
        (0, GROUP6, "CHANGE_TO_INCLUDE", ()),
        (20, GROUP, "CHANGE_TO_INCLUDE", ()),
    ]
    assert {(each.dpid, each.port_no, each.mac) for each in said} == {(7, 3, MAC)}
    assert [each.host for each in said] == [HOST, HOST, HOST, HOST, HOST6, HOST]
    left = given("leave", *map(packet, frames))
    assert [(each.vlan, each.group) for each in left] == [(0, GROUP), (0, GROUP), (0, GROUP6), (20, GROUP)]


def test_no_frame_keeps_a_point_from_giving():
    chance = Random(1)
    sound = [igmp(v2(), GROUP), mld(mld2(record(3, GROUP6))), tagged(igmp(v3(record(3, GROUP)), V3_ROUTERS), 20)]
    for _ in range(3000):
        frame = bytearray(chance.choice(sound)[: chance.randrange(120)])
        for _ in range(chance.randrange(4)):
            if frame:
                frame[chance.randrange(len(frame))] = chance.randrange(256)
        for name in ("report", "leave", "packet-in"):
            given(name, packet(bytes(frame)))


def test_verdicts_say_who_was_judged_and_by_which_rule():
    host = Host(MAC, HOST, 7, 3)
    audits = [
        Audit(Decision(admit, rule, reason), host, GROUP, role, None)
        for role, admit, rule, reason in (
            (Role.RECEIVER, True, "all", ""),
            (Role.RECEIVER, False, "none", "denied"),
            (Role.SENDER, True, "all", ""),
            (Role.SENDER, False, "none", "denied"),
        )
    ]
    assert given("join", *audits) == [(7, 3, MAC, HOST, GROUP, "receiver", None, "all", "")]
    assert given("refused", *audits) == [
        (7, 3, MAC, HOST, GROUP, "receiver", None, "none", "denied"),
        (7, 3, MAC, HOST, GROUP, "sender", None, "none", "denied"),
    ]


def test_actions_that_are_done_and_refused_are_told_apart():
    assert given("action", ActionTaken({}), ActionRefused("dpid", "dpid: 9 is no switch")) == [
        (False, "", ""),
        (True, "dpid", "dpid: 9 is no switch"),
    ]


def test_trees_that_change_are_told_by_group():
    probe = found(
        CASES / "multicast" / "link-fails-and-returns",
        """
        aggr changes[0][1]; multicast:point:tree-changed { changes[group]++; }
    """,
    )
    assert set(counts(probe, "changes")) == {("239.1.1.1",)}


def test_samples_are_those_of_the_ports_and_switches_that_were_read():
    probe = found(
        CASES / "performance" / "wrap-reset-and-threshold",
        """
        aggr of_port[2][0]; aggr of_switch[1][0]; aggr bits[2][0]; aggr sums[1][0];
        fabric:sample:port {
            of_port[dpid, port_no]++;
            try { bits[dpid, port_no] <- rx_bps; } catch { }
        }
        fabric:sample:switch {
            of_switch[dpid] <- ports;
            try { sums[dpid] <- rx_bps; } catch { }
        }
        """,
    )
    by_switch: Counter[int] = Counter()
    for (dpid, _port_no), count in counts(probe, "of_port").items():
        by_switch[dpid] += count
    assert {row.keys[0]: row.sum for row in probe.run.rows("of_switch")} == by_switch != {}
    carried: Counter[int] = Counter()
    for row in probe.run.rows("bits"):
        carried[row.keys[0]] += row.sum
    for row in probe.run.rows("sums"):
        assert abs(row.sum - carried[row.keys[0]]) <= 64  # whole bits of each reading


def test_functions_are_counted_in_a_recording_as_often_as_they_are_called_and_change_nothing():
    case = CASES / "multicast" / "link-fails-and-returns"
    name = "controller.multicast.core.MulticastCore.handle"
    if not isinstance(MulticastCore.handle, FunctionType):
        with pytest.raises(ScriptFault, match="handle is compiled here"):
            load(f"*:enter:{name} {{ }}", recorded_points())
        return

    class Noting(Replay):
        def __init__(self) -> None:
            super().__init__()
            self.said: list[str] = []

        def take(self, line: Any) -> Any:
            effects = list(super().take(line))
            self.said += map(repr, effects)
            return effects

    alone, probed = Noting(), Noting()
    probe_replay(read_lines(lines_of(case)), [], alone)
    script = f"""
        aggr entered[0][1]; aggr left[0][1]; aggr took[0][0]; aggr events[0][0];
        *:enter:{name} {{ entered[app]++; }}
        multicast:exit:{name} {{ left[app]++; took <- took_ns; }}
        discovery:enter:{name} {{ left["elsewhere"]++; }}
        monitor:enter:{name} {{ left["on another loop"]++; }}
    """
    probe = found(case, script, probed)
    assert probed.said == alone.said != []
    lines = [json.loads(line) for line in lines_of(case)]
    events = sum("event" in line and line["app"] == "multicast" for line in lines)
    assert counts(probe, "entered") == {("discovery",): events}
    assert counts(probe, "left") == {("multicast",): events, ("elsewhere",): events}
    assert [row.sum for row in probe.run.rows("took")] == [0]


def test_what_an_absent_record_has_is_absent_and_can_be_caught():
    audit = Audit(None, None, None, Role.RECEIVER, None)  # type: ignore[arg-type]
    script = """int x; aggr n[1][0]; bag b;
    multicast:effect:Audit { x = host.dpid; } multicast:effect:Audit { n[host.port_no]++; }
    multicast:effect:Audit { n[host.port_no] <- 1; } multicast:effect:Audit { b[host.port_no] <- 1; }
    multicast:effect:Audit { try { x = b[host.port_no]; } catch { print("none"); } }"""
    probe = Probe(load(script, recorded_points()))
    probe.fire("multicast", "effect", audit, 0)
    run = probe.run
    assert (run.faults, run.printed, run.rows("n"), run.bags) == ({"absent value": 4}, ["none"], [], {"b": {}})


@pytest.mark.parametrize("core", [DiscoveryCore, MulticastCore, UnicastCore])
def test_a_core_that_is_compiled_has_the_same_points(core: type):
    compiled = type("Compiled", (), {"handle": lambda self: None, "__module__": core.__module__})
    assert asked_for(compiled) == asked_for(core) != frozenset()
