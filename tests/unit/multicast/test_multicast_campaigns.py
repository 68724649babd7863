"""Maintenance in the multicast core: drains by trees, the log, and what operators are told and refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.replays import read_lines
from controller.config.maintenance_settings import Maintenance
from controller.config.policy import Policy
from controller.effects import ActionRefused, ActionTaken
from controller.log import LogEntry
from controller.maintenance.errors import ErrorsMeasured
from controller.maintenance.forecast import DrainForecast
from controller.maintenance.model import CampaignState, Step
from controller.multicast.actions import ActionInvalid, read_action
from controller.multicast.core import MulticastCore
from controller.multicast.events import LoadsMeasured, LogFollowed, MaintenanceLooked
from controller.recording import write_line
from controller.trees.forest import Forest
from controller.trees.tree import RECEIVES, ROLES, SENDS
from controller.wire.addresses import parse_ip
from topology.generators import make
from topology.graph import Graph, NodeKind

POLICY = Policy(default_allow=True, maintenance=Maintenance(quiet_s=0.5, soak_s=1))
GROUP = parse_ip("239.1.2.3")
ORDER: dict[str, Any] = {
    "disruptive": False,
    "window": None,
    "expected_s": 60.0,
    "hook_limit_s": 60.0,
    "restarts": False,
}
ME = "me"


@pytest.fixture
def world(make_world: Callable[..., Any]) -> Any:
    """A fat tree with a group across it."""
    world = make_world(make("fattree", {"k": 4}), POLICY)
    world.join("h16")
    world.join("h9")
    world.send("h1")
    world.settle()
    return world


def upper(world: Any) -> list[int]:
    """Return the switches that no host is at."""
    at_hosts = {host.dpid for host in world.hosts.values()}
    return sorted(dpid for dpid in world.switches if dpid not in at_hosts)


def started(world: Any, *dpids: int) -> None:
    outcome = world.do("maintenance-start", switches=list(dpids) or upper(world), **ORDER, runner=ME)
    assert isinstance(outcome, ActionTaken), outcome


def look(world: Any, for_s: float = 0.5) -> None:
    for _ in range(round(for_s / 0.5)):
        world.feed(MaintenanceLooked(43200, ()))
        world.advance(0.5)


def until(world: Any, step: Step) -> int:
    for _ in range(200):
        found = world.core.campaigns.campaign.at(step)
        if found:
            return int(found[0].dpid)
        look(world)
    raise AssertionError([(w.dpid, w.step, w.reason) for w in world.core.campaigns.campaign.record.works.values()])


def upgrade(world: Any) -> int:
    dpid = until(world, Step.HOOK)
    assert isinstance(world.do("maintenance-hook-begin", dpid=dpid, runner=ME), ActionTaken)
    assert isinstance(world.do("maintenance-hook-end", dpid=dpid, runner=ME, fault=""), ActionTaken)
    return dpid


def check(world: Any) -> None:
    assert world.send("h1") == {"h16": 1, "h9": 1}


def test_each_switch_is_empty_when_it_is_upgraded_and_nothing_is_lost(world: Any) -> None:
    started(world)
    done = []
    while world.core.campaigns.is_under_way:
        if world.core.campaigns.campaign.at(Step.HOOK):
            dpid = until(world, Step.HOOK)
            assert dpid not in world.core.forest.tree(GROUP)
            before = world.switches[dpid].tables
            assert before is not None
            done.append(upgrade(world))
        look(world)
        check(world)
    assert sorted(done) == upper(world)
    assert world.core.switches.drained == set()


def test_another_controller_goes_on_with_what_the_log_has(world: Any) -> None:
    started(world)
    dpid = until(world, Step.HOOK)
    world.do("maintenance-hook-begin", dpid=dpid, runner=ME)
    world.settle()
    world.restart()
    campaign = world.core.campaigns.campaign
    assert [work.dpid for work in campaign.at(Step.HOOK)] == [dpid]
    assert world.core.switches.drained == {dpid}
    world.connect_all()
    world.advance(20)
    assert isinstance(world.do("maintenance-hook-end", dpid=dpid, runner=ME, fault=""), ActionTaken)
    until(world, Step.SOAKING)


def test_a_log_that_is_written_anew_has_the_campaign(world: Any) -> None:
    started(world)
    dpid = until(world, Step.HOOK)
    world.core.pending_writes.begin_anew(world.now)
    world.log = type(world.log)()
    world.advance(5)
    keys = {entry.key for entry in world.log.read()}
    assert {"maintenance", *(f"maintenance-switch/{each}" for each in upper(world))} <= keys
    assert f"drain/{dpid}" in keys


def test_who_follows_has_the_campaign_as_the_leader(world: Any) -> None:
    shadow = MulticastCore(POLICY, world.now)
    started(world)
    dpid = until(world, Step.HOOK)
    world.advance(1)
    shadow.handle(LogFollowed(world.log.read()), world.now)
    found = shadow.campaigns.campaign
    assert found is not None
    assert [work.dpid for work in found.at(Step.HOOK)] == [dpid]
    assert found.holds(dpid)
    gone = [LogEntry(entry.kind, entry.key, None) for entry in world.log.read() if entry.subject == "maintenance"]
    shadow.handle(LogFollowed(tuple(gone)), world.now)
    assert shadow.campaigns.campaign is None


def test_entries_of_a_former_campaign_go_with_it(world: Any) -> None:
    first, second, *_ = upper(world)
    started(world, first)
    world.do("maintenance-abort")
    look(world)
    started(world, second)
    world.advance(1)
    keys = {entry.key for entry in world.log.read()}
    assert f"maintenance-switch/{first}" not in keys
    assert f"maintenance-switch/{second}" in keys


def test_an_operator_does_not_take_the_drain_of_a_campaign_back(world: Any) -> None:
    started(world)
    dpid = until(world, Step.HOOK)
    refused = world.do("switch-undrain", dpid=dpid)
    assert isinstance(refused, ActionRefused)
    assert "is in maintenance" in refused.text


@pytest.mark.parametrize(
    ("name", "fields", "text"),
    [
        ("maintenance-start", {**ORDER, "switches": [1], "runner": ""}, "a campaign is under way"),
        ("maintenance-skip", {"dpid": 99}, "is no part of the campaign"),
        ("maintenance-hook-begin", {"dpid": 1, "runner": "another"}, "another command"),
    ],
)
def test_what_cannot_be_is_refused(world: Any, name: str, fields: dict[str, Any], text: str) -> None:
    started(world)
    refused = world.do(name, **fields)
    assert isinstance(refused, ActionRefused)
    assert text in refused.text


def test_without_a_campaign_there_is_nothing_to_pause(world: Any) -> None:
    refused = world.do("maintenance-pause")
    assert isinstance(refused, ActionRefused)
    assert "there is no campaign" in refused.text


def test_a_plan_says_the_waves_and_who_would_lose_packets(world: Any) -> None:
    outcome = world.do("maintenance-plan", switches=sorted(world.switches), **ORDER)
    assert isinstance(outcome, ActionTaken)
    plan = outcome.document
    assert sorted(dpid for wave in plan["waves"] for dpid in wave) == sorted(world.switches)
    assert len(plan["waves"]) == plan["least_waves"]
    assert plan["disruptive"] == sorted({host.dpid for host in world.hosts.values()})
    assert "would lose packets" in plan["refused"]
    assert world.core.campaigns.campaign is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("switches", "all"),
        ("switches", [-1]),
        ("disruptive", 1),
        ("window", [0]),
        ("window", [5, 5]),
        ("window", [0, 86400]),
        ("expected_s", True),
        ("hook_limit_s", 0),
        ("runner", "x" * 501),
    ],
)
def test_fields_that_make_no_sense_are_named(field: str, value: object) -> None:
    fields = {**ORDER, "switches": [1], "runner": ME, field: value}
    with pytest.raises(ActionInvalid) as invalid:
        read_action("maintenance-start", fields)
    assert invalid.value.field == field


def test_a_port_that_carries_something_keeps_a_switch_from_being_quiet(world: Any) -> None:
    started(world)
    dpid = until(world, Step.DRAINING)
    other = world.core.fabric.graph.neighbours(dpid)[0]
    link = world.core.fabric.graph.link(dpid, other)
    world.feed(LoadsMeasured(((other, link.v_port, dpid, 3e6),)))
    look(world, 5)
    (work,) = world.core.campaigns.campaign.at(Step.DRAINING)
    assert work.reason == f"its port {link.u_port} still carries 3,000,000 bit/s"
    world.feed(LoadsMeasured(((other, link.v_port, dpid, 0.0),)))
    assert until(world, Step.HOOK) == dpid


def test_errors_that_the_monitor_tells_of_halt_a_campaign(world: Any) -> None:
    polled = ErrorsMeasured(tuple(sorted(world.switches)), ())
    world.feed(polled)
    started(world)
    dpid = upgrade(world)
    assert until(world, Step.SOAKING) == dpid
    (work,) = world.core.campaigns.campaign.at(Step.SOAKING)
    for _ in range(2):
        look(world, 2)
        assert work.step is Step.SOAKING, "it is not known yet"
        world.feed(polled)
    far = work.links[0]
    world.feed(ErrorsMeasured((), ((far[2], far[3], 3.0),)))
    look(world, 1)
    assert work.reason.startswith(f"port {far[3]} of switch {far[2]}, at its other end, has 3 errors in a second")
    assert world.core.campaigns.campaign.state is CampaignState.HALTED
    assert dpid in world.core.switches.drained
    world.feed(ErrorsMeasured((), ((far[2], far[3], 0.0),)))
    assert isinstance(world.do("maintenance-resume", runner=""), ActionTaken)
    until(world, Step.SOAKING)
    for _ in range(3):
        look(world, 1)
        world.feed(polled)
    look(world, 1)
    assert work.step is Step.DONE


def test_the_documents_say_where_each_switch_is(world: Any) -> None:
    started(world)
    dpid = until(world, Step.HOOK)
    found = world.core.campaigns.section.changes(0, 100)["put"]
    assert found["campaign"]["state"] == CampaignState.RUNNING.value
    assert (found["campaign"]["hook"], found["campaign"]["switches"]) == (1, len(upper(world)))
    assert (found[str(dpid)]["step"], found[str(dpid)]["reason"]) == ("hook", "")


def leaf_spine() -> Graph:
    """Two leaves, 1 and 2, under two spines, 3 and 4, by links of 1 Gbit/s."""
    graph = Graph()
    for dpid in (1, 2, 3, 4):
        graph.add_node(dpid, NodeKind.TOR if dpid < 3 else NodeKind.SWITCH)
    for leaf in (1, 2):
        for spine in (3, 4):
            graph.add_link(leaf, spine, spine, leaf, 1e9)
    return graph


def test_a_forecast_moves_trees_and_the_rest_to_what_is_left() -> None:
    fabric = leaf_spine()
    forest = Forest(fabric.copy())
    for key, rate_bps in (("a", 300e6), ("b", 200e6)):
        forest.join(key, 1, ROLES[SENDS])
        forest.join(key, 2, ROLES[RECEIVES])
        forest.set_rate(key, 1, rate_bps)
    spines = {node for tree in forest for node in tree.nodes()} - {1, 2}
    assert spines == {3, 4}, "one group over each"
    forest.loads.measured([(1, 3, 3, 400e6), (1, 4, 4, 400e6)])
    forecast = DrainForecast(forest, fabric, Forest)
    as_it_is, without = forecast.busiest_pct(frozenset(), 0), forecast.busiest_pct(frozenset({3}), 1)
    assert as_it_is is not None and without is not None
    total = sum(forest.loads.bps[forest.loads.index[1][spine]] for spine in (3, 4))
    assert without == pytest.approx(100 * total / 1e9)
    assert without > as_it_is


def test_a_forecast_over_many_trees_takes_its_time() -> None:
    fabric = leaf_spine()
    forest = Forest(fabric.copy())
    for number in range(500):
        forest.join(number, 1, ROLES[SENDS])
        forest.join(number, 2, ROLES[RECEIVES])
    forecast = DrainForecast(forest, fabric, Forest)
    looks = 1
    while forecast.busiest_pct(frozenset({3}), 0) is None:
        looks += 1
    assert 2 <= looks <= 6


def test_switches_are_counted_by_step(world: Any) -> None:
    assert world.core.campaigns.counts() == {}
    started(world)
    until(world, Step.HOOK)
    counts = world.core.campaigns.counts()
    assert (counts["hook"], counts["waiting"], sum(counts.values())) == (1, len(upper(world)) - 1, len(upper(world)))


def test_what_is_asked_of_campaigns_is_read_again_from_a_recording(world: Any) -> None:
    for event in (
        read_action("maintenance-start", {**ORDER, "switches": [1, 2], "window": [5, 9], "runner": ME}),
        MaintenanceLooked(43200, (3, 4)),
    ):
        (line,) = read_lines([write_line("multicast", 1.0, "event", event)])
        assert line.content == event


def test_what_is_asked_leaves_an_event(world: Any) -> None:
    first, second, *_ = upper(world)
    log = world.core.sections.events.section
    version = log.changes(0, 1000)["version"]

    def kinds() -> list[str]:
        nonlocal version
        told = log.changes(version, 1000)
        version = told["version"]
        return [event["kind"] for event in told["put"].values() if event["kind"].startswith("maintenance")]

    started(world, first, second)
    assert kinds() == ["maintenance-started"]
    dpid = until(world, Step.HOOK)
    kinds()
    for name, fields, kind in (
        ("pause", {}, "maintenance-pause"),
        ("resume", {"runner": ""}, "maintenance-resume"),
        ("skip", {"dpid": first + second - dpid}, "maintenance-skip"),
        ("hook-begin", {"dpid": dpid, "runner": ME}, "maintenance-hook"),
        ("hook-end", {"dpid": dpid, "runner": ME, "fault": "exit status 3"}, "maintenance-failed"),
        ("abort", {}, "maintenance-abort"),
    ):
        assert isinstance(world.do(f"maintenance-{name}", **fields), ActionTaken)
        assert kinds() == [kind]
