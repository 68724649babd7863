"""What operators see of a cluster."""

from __future__ import annotations

import pytest

from apps.cluster.messages import Seen
from apps.cluster.shown import ClusterSection, cluster_figures
from controller.cluster.effects import Leading
from controller.cluster.engine import KeyCondition
from controller.cluster.keys import Leader
from controller.cluster.place import PlaceCore

LEADER = Leader("c2", "run", 7, "10.0.0.2:6700")
PEERS = {"c1": "10.0.0.1:6700", "c2": "10.0.0.2:6700"}
POLICY = "version: 1\ndefault: allow\n"


@pytest.fixture
def core() -> PlaceCore:
    return PlaceCore(3.0)


def test_members_are_shown_and_who_leads(core: PlaceCore):
    shown = ClusterSection("c1")
    shown.refresh(core, Seen(LEADER, 7, ("c1", "c2"), False, 1, PEERS))
    first = shown.section.changes(0, 10)
    assert [(each["member"], each["leads"], each["epoch"]) for each in first["put"].values()] == [
        ("c1", False, None),
        ("c2", True, 7),
    ]
    assert first["put"]["c1"]["course"] == "following"
    assert "course" not in first["put"]["c2"]
    shown.refresh(core, Seen(LEADER, 7, ("c1", "c2"), False, 1, PEERS))
    assert shown.section.changes(first["version"], 10)["put"] == {}
    shown.refresh(core, Seen(None, 7, ("c1",), True, 1, {"c1": PEERS["c1"]}))
    after = shown.section.changes(first["version"], 10)
    assert (after["remove"], after["put"]["c1"]["store"]) == (["c2"], "silent")


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
