"""Joins of more groups than may be out of Open vSwitch's tables are refused, shown, and served once there is room."""

from __future__ import annotations

import json
from typing import Any

import pytest

from several_controllers import vsrt
from tests.emulation.test_overcommit_live import FRAME_BYTES, bench, counted, group_of

__all__ = ["bench"]

pytestmark = pytest.mark.emulation

STORE, KEPT = 24, 8
VIDEO, OTHER = "h5", "h7"
RATE_BPS = 16_000
ASKED = 40


@pytest.fixture(scope="module")
def policy_between() -> str:
    return f"""\
version: 1
default: allow
limits: {{groups_per_port: 1024, senders_per_port: 1024, reports_per_second_per_port: 10000}}
multicast: {{fast_leave: true, querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
tenants: {{video: [10.0.0.5]}}
overcommit:
  mode: swap
  store: {STORE}
  capacity: {{default: 100}}
  tenants: {{video: {{reservation: 4, limit: {KEPT + 4}}}}}
"""


def served(live: Any, host: str) -> set[str]:
    """Return the groups that a host, of no tenant or of `video`, is served."""
    address = f"10.0.0.{host.removeprefix('h')}"
    groups = live.controller.show("groups")
    return {one["group"] for one in groups if any(member["ip"] == address for member in one["members"])}


def refused(live: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(vsrt(live.controller, "show", "refusals", "--json"))
    return found


@pytest.mark.each_framework
def test_joins_beyond_the_store_are_refused_and_served_once_there_is_room(live: Any) -> None:
    for number in range(ASKED):
        live.fabric.join(OTHER, group_of(number))
    live.controller.wait_until("status", lambda _: len(refused(live)) == ASKED - STORE + KEPT, timeout_s=60)
    before = served(live, OTHER)
    assert len(before) == STORE - KEPT
    assert {one["rule"] for one in refused(live)} == {"overcommit.store"}
    assert counted(live, "swap-slots-refused") >= ASKED - STORE + KEPT
    for number in range(ASKED, ASKED + KEPT + 2):
        live.fabric.join(VIDEO, group_of(number))
    live.controller.wait_until("groups", lambda _: len(served(live, VIDEO)) == KEPT, timeout_s=60)
    live.fabric.leave(OTHER, min(before))
    live.controller.wait_until("groups", lambda _: bool(served(live, OTHER) - before), timeout_s=60)
    (group,) = served(live, OTHER) - before
    live.fabric.open_stream(1, "h1", group, RATE_BPS, frame_bytes=FRAME_BYTES)
    live.send(1, 1.0, 1)
    sent, seen = live.fabric.sent(), live.fabric.settled()
    wanted = sent["1"]["phases"]["1"]["sent"]
    assert seen[f"{OTHER} {group}"]["streams"]["1:1"]["received"] == wanted > 0
    assert (len(served(live, OTHER)), len(served(live, VIDEO))) == (STORE - KEPT, KEPT)
    assert counted(live, "table-full") == 0
