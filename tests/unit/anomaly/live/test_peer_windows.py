"""Peer groups with windows of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controller.anomaly.live import AnomalyCore
from controller.anomaly.live_events import AnomalyChanged
from controller.anomaly.live_state import all_changed, changes, restore
from controller.anomaly.live_view import AnomalySections
from controller.anomaly.live_windows import DueGroups, GroupSettings, chain_of
from controller.config.anomaly_settings import Anomaly, GroupWindows, PeerWindows
from controller.snapshot.events import State
from sampled_fabric import EDGE_PORT, SampledFabric

GENERAL = Anomaly(
    interval_s=1,
    smoothing_samples=4,
    window_samples=24,
    shift_samples=12,
    confirm_windows=2,
    learning_windows=12,
    least_windows=4,
    newcomer_windows=8,
    hold_off_windows=2,
)
SHORT = PeerWindows(smoothing_samples=2, window_samples=8, shift_samples=4)
LEARNT_S = 150.0


def with_groups(**windows: PeerWindows) -> Anomaly:
    return replace(
        GENERAL, groups=tuple(GroupWindows(name.replace("_", " "), each) for name, each in windows.items())
    )


def watched(fabric: SampledFabric, settings: Anomaly) -> AnomalyCore:
    core = AnomalyCore(settings, fabric.poll_s)
    for event in fabric.events():
        core.handle(event, 0.0)
    return core


def seconds_until_told(settings: Anomaly) -> float:
    """How long it takes until a cable that loses packets is told."""
    fabric = SampledFabric()
    core = watched(fabric, settings)
    assert fabric.feed(core, LEARNT_S) == []
    fabric.lossy[2, 1] = 0.1
    for second in range(1, 100):
        for effect in fabric.feed(core, 1):
            if effect.state is State.RAISED:
                assert effect.anomaly.member == "2:1"
                return second
    raise AssertionError("the cable was not told")


def learnt(core: AnomalyCore, *key: int) -> int:
    """Windows that a port was learnt from."""
    return int(core.learning.windows[core.members.row(key)].max())  # type: ignore[arg-type]


def test_a_group_with_shorter_windows_is_told_of_sooner():
    assert seconds_until_told(with_groups(tor_uplinks=SHORT)) < seconds_until_told(GENERAL) / 1.5


def test_other_groups_are_judged_as_often_as_before():
    fabric = SampledFabric()
    core = watched(fabric, with_groups(tor_uplinks=replace(SHORT, learning_windows=100)))
    fabric.feed(core, LEARNT_S)
    assert learnt(core, 1, 1) == pytest.approx(LEARNT_S / 4, abs=3)
    assert learnt(core, 1, EDGE_PORT) == pytest.approx(LEARNT_S / 12, abs=2)
    shown = {group["peer_group"]: group for group in AnomalySections(core).document()["peer_groups"]}
    assert (shown["tor uplinks"]["window_s"], shown["tor edge ports"]["window_s"]) == (8.0, 24.0)
    assert core.tally["windows-skipped"] == core.tally["groups-skipped"] == 0


def test_each_pod_has_the_windows_of_its_tier():
    settings = GroupSettings(with_groups(tor_uplinks=SHORT))
    assert settings.of("tor uplinks of pod 3") == settings.of("new in tor uplinks") == settings.of("tor uplinks")
    assert settings.of("tor edge ports") == settings.settings
    assert (settings.shifts, settings.longest) == ([4, 12], 24)


def test_another_window_of_one_group_has_that_group_alone_learnt_anew():
    fabric = SampledFabric()
    core = watched(fabric, GENERAL)
    fabric.feed(core, LEARNT_S)
    before = learnt(core, 1, EDGE_PORT)
    core.handle(AnomalyChanged(with_groups(tor_uplinks=replace(SHORT, window_samples=40)), fabric.poll_s), 0.0)
    assert (learnt(core, 1, 1), learnt(core, 1, EDGE_PORT)) == (0, before)
    assert fabric.feed(core, 60) == []
    assert learnt(core, 1, 1) > 0
    core.handle(AnomalyChanged(with_groups(tor_uplinks=SHORT), fabric.poll_s), 0.0)
    assert (learnt(core, 1, 1), learnt(core, 1, EDGE_PORT)) == (0, before)
    assert fabric.feed(core, 60) == []


def test_a_restart_with_another_window_of_one_group_keeps_what_the_others_learnt():
    fabric = SampledFabric()
    core = watched(fabric, with_groups(tor_edge_ports=SHORT))
    fabric.feed(core, LEARNT_S)
    all_changed(core)
    kept = changes(core, 1000)
    again = watched(fabric, with_groups(tor_edge_ports=SHORT, tor_uplinks=replace(SHORT, window_samples=40)))
    assert restore(again, kept) == len(core.members)
    assert (learnt(again, 1, 1), learnt(again, 1, EDGE_PORT)) == (0, learnt(core, 1, EDGE_PORT))
    row, former = again.members.row((1, EDGE_PORT)), core.members.row((1, EDGE_PORT))
    width = SHORT.window_samples
    assert np.array_equal(again.learning.reference[row, :, :width], core.learning.reference[former, :, :width])
    assert again.learning.bins("tor uplinks") == {}
    assert again.learning.bins("tor edge ports") == core.learning.bins("tor edge ports") != {}


def test_windows_that_are_those_of_all_groups_are_no_other_chain():
    same = PeerWindows(window_samples=GENERAL.window_samples)
    assert GroupSettings(with_groups(tor_uplinks=same)).chain(1.0) == GroupSettings(GENERAL).chain(1.0)
    other = GroupSettings(with_groups(tor_uplinks=SHORT)).chain(1.0)
    assert chain_of(other, "core downlinks") == GroupSettings(GENERAL).chain(1.0)
    assert chain_of(other, "tor uplinks of pod 1") != GroupSettings(GENERAL).chain(1.0)


def test_groups_that_wait_while_their_next_window_ends_are_left_out_and_others_are_not():
    due = DueGroups()
    assert due.over(4, 101) is None and due.over(12, 101) is None
    assert due.over(4, 104) == (100, 104)
    due.add(["a", "b"], 104, 4)
    assert due.over(12, 109) == (96, 108)
    due.add(["c"], 108, 12)
    assert due.over(4, 109) == (104, 108)
    assert due.give_up(4) == 2
    assert (len(due), due.next()) == (1, ("c", 108, 12))
    assert due.over(4, 111) is None
