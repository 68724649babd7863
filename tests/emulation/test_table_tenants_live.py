"""Tenants whose groups share the tables of Open vSwitch: each has what it is entitled to, and no packet is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from several_controllers import vsrt
from tests.emulation.test_overcommit_live import FRAME_BYTES, MEMBER, TABLE, bench, counted, group_of, limit_tables

__all__ = ["bench"]

pytestmark = pytest.mark.emulation

EACH = 40
RATE_BPS = 6_400
SENDERS = {"video": "h1", "backup": "h2"}
MOST_PHASES = 8
BY_SENDERS = 1
"""The table of those that senders have entries in, which is the fullest."""


@pytest.fixture(scope="module")
def policy_between() -> str:
    return f"""\
version: 1
default: allow
limits: {{groups_per_port: 1024, senders_per_port: 1024, reports_per_second_per_port: 10000}}
multicast: {{querier: {{response_interval_s: 1, last_member_interval_s: 0.2}}}}
tenants: {{video: [10.0.0.1], backup: [10.0.0.2]}}
overcommit:
  mode: swap
  capacity: {{default: {TABLE}}}
  tenants: {{video: {{shares: 3}}, backup: {{reservation: 4, limit: 30}}}}
"""


def fullest(live: Any) -> dict[str, Any]:
    """Return the table in which the senders of both tenants have entries."""
    tables = json.loads(vsrt(live.controller, "show", "tables", "--json"))
    rows = [row for row in tables if row["table"] == BY_SENDERS and row["tenants"]]
    return max(rows, key=lambda row: row["entries"])


def are_as_entitled(tenants: dict[str, dict[str, Any]]) -> bool:
    """Tell whether both tenants have entries, and each within one of those that it is entitled to."""
    found = tenants.values()
    return len(found) == len(SENDERS) and all(abs(each["entries"] - each["entitled"]) <= 1 for each in found)


@pytest.mark.each_framework
def test_tenants_have_what_they_are_entitled_to(live: Any) -> None:
    limit_tables(live)
    streams = {name: range(first, first + EACH) for name, first in (("backup", 0), ("video", EACH))}
    for name, numbers in streams.items():
        for number in numbers:
            live.fabric.join(MEMBER, group_of(number))
            live.fabric.open_stream(number, SENDERS[name], group_of(number), RATE_BPS, frame_bytes=FRAME_BYTES)
    live.controller.wait_until(
        "groups", lambda groups: sum(1 for found in groups if found["members"]) >= 2 * EACH, timeout_s=60
    )
    phases = {1: list(streams["backup"])}
    live.send(1, 3.0, *phases[1])

    def alone() -> dict[str, int]:
        return {each["tenant"]: each["entries"] for each in fullest(live)["tenants"]}

    live.controller.wait_until("status", lambda _: alone() == {"backup": 30})
    tenants: dict[str, dict[str, Any]] = {}
    while not are_as_entitled(tenants) and len(phases) < MOST_PHASES:
        phase = len(phases) + 1
        phases[phase] = [*streams["backup"], *streams["video"]]
        live.send(phase, 4.0, *phases[phase])
        tenants = {each["tenant"]: each for each in fullest(live)["tenants"]}
    assert are_as_entitled(tenants), tenants
    assert tenants["video"]["entries"] > 2 * tenants["backup"]["entries"]
    sent, seen = live.fabric.sent(), live.fabric.settled()
    for phase, numbers in phases.items():
        for number in numbers:
            tally = seen[f"{MEMBER} {group_of(number)}"]["streams"].get(f"{number}:{phase}", {})
            wanted = sent[str(number)]["phases"][str(phase)]["sent"]
            assert (tally.get("received", 0), tally.get("duplicates", 0)) == (wanted, 0), (phase, number)
    assert counted(live, "table-full") == 0
