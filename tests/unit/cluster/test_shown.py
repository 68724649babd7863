"""What operators see of a cluster."""

from __future__ import annotations

import pytest

from apps.cluster.attendance import REMEMBERED_BOUND, REMEMBERED_S, Attendance
from apps.cluster.messages import Seen
from apps.cluster.monitors_shown import MonitorsSection
from apps.cluster.shown import ClusterSection, cluster_figures
from controller.cluster.effects import Leading
from controller.cluster.engine import KeyCondition
from controller.cluster.keys import Leader
from controller.cluster.monitor_states import MonitorsSeen, MonitorState
from controller.cluster.place import PlaceCore

LEADER = Leader("c2", "run", 7, "10.0.0.2:6700")
PEERS = {"c1": "10.0.0.1:6700", "c2": "10.0.0.2:6700"}
POLICY = "version: 1\ndefault: allow\n"


NO_MONITORS = MonitorsSeen({}, 0)
IDLE = MonitorState(False, False, "10.0.0.1:9471", 3, 0, 0, 0, None)


def look(
    shown: ClusterSection,
    core: PlaceCore,
    seen: Seen,
    now_s: float,
    lag_s: float = 0.0,
    monitors: MonitorsSeen = NO_MONITORS,
) -> list[str]:
    """Have it seen and shown; return what is told to be wrong."""
    shown.saw(seen, now_s)
    shown.refresh(core, seen, lag_s, monitors)
    (own,) = (document for document in shown.documents.values() if document["answers"])
    return list(own["problems"])


def since(shown: ClusterSection, name: str) -> tuple[float | None, bool | None]:
    document = shown.documents[name]
    return document["leads_since_s"], document["leads_at_least"]


@pytest.fixture
def core() -> PlaceCore:
    return PlaceCore(3.0)


def test_members_are_shown_and_who_leads(core: PlaceCore):
    shown = ClusterSection("c1")
    look(shown, core, Seen(LEADER, 7, ("c1", "c2"), False, 1, PEERS), 100.0)
    first = shown.section.changes(0, 10)
    assert [(each["member"], each["leads"], each["epoch"]) for each in first["put"].values()] == [
        ("c1", False, None),
        ("c2", True, 7),
    ]
    assert first["put"]["c1"]["course"] == "following"
    assert "course" not in first["put"]["c2"]
    look(shown, core, Seen(LEADER, 7, ("c1", "c2"), False, 1, PEERS), 101.0)
    assert shown.section.changes(first["version"], 10)["put"] == {}
    look(shown, core, Seen(None, 7, ("c1",), True, 1, {"c1": PEERS["c1"]}), 102.0)
    after = shown.section.changes(first["version"], 10)
    assert (after["put"]["c2"]["is_there"], after["put"]["c2"]["gone_s"]) == (False, 102.0)
    assert (after["put"]["c1"]["store"], after["put"]["c1"]["store_silent_s"]) == ("silent", 102.0)


def test_since_when_somebody_leads_is_known_to_who_saw_it_begin(core: PlaceCore):
    shown = ClusterSection("c1")
    leads = Seen(LEADER, 7, ("c1", "c2"), False, 1, PEERS)
    look(shown, core, leads, 100.0)
    assert since(shown, "c2") == (100.0, True), "it led already when this one came"
    look(shown, core, leads._replace(leader=None), 110.0)
    look(shown, core, leads._replace(leader=LEADER._replace(member="c1", epoch=8)), 111.0)
    assert since(shown, "c1") == (111.0, False) and since(shown, "c2") == (None, None)
    look(shown, core, leads._replace(leader=LEADER._replace(member="c1", epoch=8)), 500.0)
    assert since(shown, "c1") == (111.0, False)


def test_what_is_wrong_is_said_and_is_over_again(core: PlaceCore):
    shown = ClusterSection("c1")
    whole = Seen(LEADER, 7, ("c1", "c2"), False, 1, PEERS)
    assert look(shown, core, whole, 1.0) == []
    assert look(shown, core, whole._replace(leader=None), 2.0) == [
        "Nobody leads: switches forward by the entries that they have."
    ]
    assert look(shown, core, whole._replace(members=("c1",)), 3.0) == [
        "c2 leads, and is no member any more: it is followed when its lease is over.",
        "c2 is gone.",
    ]
    assert "The store does not answer" in look(shown, core, whole._replace(is_store_silent=True), 4.0)[0]
    assert look(shown, core, whole, 5.0, 3.2) == ["The log is behind what the leader wrote for 3 s."]
    monitors = MonitorsSeen({"m1": IDLE._replace(drained=True, switches=2)}, 3)
    assert look(shown, core, whole, 6.0, 0.0, monitors) == [
        "3 switches that monitors are connected to are polled by none.",
        "m1 is drained and still has 2 switches.",
        "No monitor divides the switches.",
    ]
    one = MonitorsSeen({"m1": IDLE._replace(divides=True, drained=True, switches=1)}, 1)
    assert look(shown, core, whole, 6.5, 0.0, one) == [
        "1 switch that monitors are connected to is polled by none.",
        "m1 is drained and still has 1 switch.",
    ]
    assert look(shown, core, whole._replace(members=("c2",)), 7.0) == [
        "This controller is no member: the store has given up its lease, and it cannot lead."
    ]
    assert look(shown, core, whole, 8.0, 0.0, MonitorsSeen({"m1": IDLE._replace(divides=True)}, 0)) == []


def test_a_member_that_could_not_be_followed_is_said_to_be_alone(core: PlaceCore):
    alone = Seen(LEADER, 7, ("c2",), False, 1, PEERS)
    assert look(ClusterSection("c2"), core, alone, 1.0) == ["c2 is the only member: nobody could take over."]


def test_another_controller_of_the_same_name_is_told_with_its_address(core: PlaceCore):
    shown = ClusterSection("c1", "10.0.0.1:6700")
    assert look(shown, core, Seen(LEADER, 7, ("c1", "c2"), False, 1, PEERS), 1.0) == []
    told = (
        "Another controller, at 10.0.0.9:6700, is a member by this one's name, c1: give each a name of its own "
        "(VSRT_MEMBER), and start it anew."
    )
    registered = Seen(LEADER, 7, ("c1", "c2"), False, 1, {**PEERS, "c1": "10.0.0.9:6700"})
    assert look(shown, core, registered, 2.0) == [told]
    leads = Seen(Leader("c1", "another run", 8, "10.0.0.9:6700"), 8, ("c1", "c2"), False, 1, PEERS)
    assert look(shown, core, leads, 3.0) == [told]
    assert look(ClusterSection("c1"), core, registered, 4.0) == [], "one that nobody hears cannot tell"


def test_who_is_gone_is_forgotten_after_a_day_and_beyond_a_bound():
    attendance = Attendance()
    attendance.see(["a", "b"], 0.0)
    attendance.see(["b"], 10.0)
    assert attendance.gone_s == {"a": 10.0}
    attendance.see(["a", "b"], 20.0)
    assert attendance.gone_s == {}
    attendance.see([f"c{number}" for number in range(REMEMBERED_BOUND + 9)], 30.0)
    attendance.see([], 40.0)
    assert len(attendance.gone_s) == REMEMBERED_BOUND
    attendance.see([], 41.0 + REMEMBERED_S)
    assert attendance.gone_s == {}


def test_monitors_are_told_with_those_that_are_gone():
    section = MonitorsSection()
    section.see({"m1": IDLE._replace(divides=True), "m2": IDLE}, 4, 1.0)
    assert section.documents["m1"] == {
        **{"monitor": "m1", "is_there": True, "divides": True, "drained": False, "metrics": "10.0.0.1:9471"},
        **{"connected": 3, "switches": 0, "ports": 0, "leaving": 0, "load_pct": None, "unowned": 4},
    }
    assert "unowned" not in section.documents["m2"]
    section.see({"m2": IDLE}, 0, 2.0)
    assert section.documents["m1"] == {"monitor": "m1", "is_there": False, "gone_s": 2.0}


def test_figures(core: PlaceCore):
    core.handle(Leading(8, KeyCondition("epoch", 1), True, 0.0), 10.0)
    found = {
        family.name: samples for family, samples in cluster_figures(core, Seen(LEADER, 7, ("c1",), True), 2, 3, 0.25)
    }
    assert {
        name.removeprefix("vsrt_cluster_"): [value for _, value in samples] for name, samples in found.items()
    } == {
        "leader": [0],
        "epoch": [7],
        "members": [1],
        "engine_up": [0],
        "take_overs_total": [2],
        "take_over_seconds": [],
        "journal_lag_seconds": [0.25],
        "refused_total": [3],
    }
