"""Windows of single peer groups, `anomaly.groups`: what they may say, and every fault with its line."""

from __future__ import annotations

import pytest

from controller.anomaly.live_groups import PeerGroups
from controller.config import PolicyInvalid, load_policy
from controller.config.anomaly_settings import PEER_GROUPS, Anomaly, GroupWindows, PeerWindows
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp


def anomaly(*lines: str) -> Anomaly:
    return load_policy("version: 1\nanomaly:\n" + "".join(f"  {line}\n" for line in lines)).anomaly


def test_groups_have_windows_of_their_own():
    settings = anomaly("window_samples: 80", "groups:", "  tor uplinks: {window_samples: 20, shift_samples: 10}")
    assert settings.groups == (GroupWindows("tor uplinks", PeerWindows(window_samples=20, shift_samples=10)),)
    own = settings.with_windows(settings.groups[0].windows)
    assert (own.window_samples, own.shift_samples, own.confirm_windows) == (20, 10, settings.confirm_windows)
    assert settings.window_samples == 80


def test_faults_have_their_lines():
    with pytest.raises(PolicyInvalid) as caught:
        anomaly(
            "groups:",
            "  tor uplink: {window_samples: 20}",
            "  core downlinks: {window_samples: 3, confirm: 2}",
            "  switches: 5",
        )
    assert [tuple(error) for error in caught.value.errors] == [
        (4, "anomaly.groups['tor uplink']", "unknown peer group 'tor uplink'; did you mean 'tor uplinks'?"),
        (5, "anomaly.groups['core downlinks'].confirm", "unknown key; did you mean 'confirm_windows'?"),
        (5, "anomaly.groups['core downlinks'].window_samples", "3 is not within 4 and 960"),
        (6, "anomaly.groups.switches", "expected a mapping, found the number '5'"),
    ]


@pytest.mark.parametrize("hosts", [False, True])
def test_every_group_that_a_fabric_has_can_be_named(hosts: bool):
    groups = PeerGroups()
    for dpid in range(1, 8):
        groups.apply(SwitchUp(dpid, 4))
    for low, high in ((1, 3), (2, 3), (1, 4), (2, 4), (3, 5), (4, 5), (3, 6), (5, 6), (1, 7)):
        groups.apply(PortRoleChanged(low, high, PortRole.TRUNK))
        groups.apply(PortRoleChanged(high, low, PortRole.TRUNK))
        groups.apply(LinkUp(low, high, high, low, 1e9))
    for dpid in (1, 2) if hosts else ():
        groups.apply(PortRoleChanged(dpid, 50, PortRole.EDGE))
        groups.apply(HostLearnt(bytes((2, 0, 0, 0, 0, dpid)), dpid, 50, ()))
    found = set(groups.of("tier").groups.values())
    assert len(found) >= (6 if hosts else 2)
    assert found <= set(PEER_GROUPS)
