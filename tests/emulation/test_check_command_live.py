"""`vsrt check` on Open vSwitch names what was deleted, added and altered by hand, and `--repair` cures it.

OpenFlow 1.0 gives an altered entry another cookie: there it is missing, and the other one is foreign.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import time
from typing import Any

import pytest

from apps.cli.main import main
from controller.multicast.due import RESTART_GRACE_LONGEST_S
from controller.rules.pipeline import FORWARD, PRIORITY_GROUP
from tests.emulation.conftest import POLICY
from tests.emulation.test_check_live import entries
from topology.graph import Graph

pytestmark = pytest.mark.emulation
FRAMEWORK = "os-ken"

UNCHECKED = POLICY + "check: {interval_s: 0}\n"
"""No check in the background that would be faster."""

OURS, STRANGE = "0x5602000000000077", "0x1234"


@pytest.fixture(scope="module", params=["OpenFlow13", "OpenFlow10"])
def bench(request: pytest.FixtureRequest, diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {"protocols": request.param, "patch_links": True}


def check(live: Any, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the command; return its exit status and document."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main(["check", "--json", "--socket", str(live.controller.socket), *words])
    return status, json.loads(printed.getvalue())


def found(document: dict[str, Any], part: str = "tables") -> dict[tuple[str, int, str], int]:
    """How many entries of each kind a check names, by app and switch."""
    return {
        (table["app"], table["dpid"], kind): table[kind]["count"]
        for table in document[part]
        for kind in ("missing", "altered", "extra", "foreign")
        if table[kind]["count"]
    }


def wait_grace_over(live: Any, dpid: int) -> None:
    """Wait until an entry that nobody desires is kept no longer for the sake of hosts that may report."""
    deadline = time.monotonic() + RESTART_GRACE_LONGEST_S
    while ("multicast", dpid, "extra") not in found(check(live)[1]):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_what_was_changed_by_hand_is_named_and_cured_while_other_streams_lose_nothing(live: Any, group: str) -> None:
    other = f"{group[:-1]}3"
    live.join(group, "h3")
    live.stream(1, "h1", group)
    live.join(other, "h4")
    live.fabric.run_on("h1", "ping", "-c", "1", "-W", "2", live.fabric.address("h3"))
    live.set_policy(UNCHECKED)
    live.wait_ready()
    assert check(live)[1]["clean"] is True
    fabric, ofctl = live.fabric, live.fabric.ofctl
    switches = fabric.graph.switches()
    whole = {switch: entries(live, switch) for switch in switches}
    (at,) = {place["dpid"] for place in live.document(other)["members"]}
    leaf = next(switch for switch in switches if fabric.dpid(switch) == at)
    spare = next(switch for switch in switches if switch != leaf)

    new = fabric.protocols == "OpenFlow13"
    table = f"table={FORWARD if new else 0},"
    strict = f"{table}priority={PRIORITY_GROUP + 7},ip,nw_dst=239.77.0.1"
    ofctl("add-flow", spare, f"cookie={OURS},{strict},actions=drop")
    wait_grace_over(live, fabric.dpid(spare))
    fabric.send(1)
    ofctl("add-flow", spare, f"cookie={STRANGE},{table}priority=3,ip,nw_dst=10.77.0.1,actions=drop")
    ofctl("mod-flows", leaf, f"{table if not new else 'table=3,'}dl_dst={live.mac('h1')},actions=drop")
    ofctl("del-flows", leaf, f"{table}ip,nw_dst={other}")
    dpid, beside = at, fabric.dpid(spare)
    held = {switch: entries(live, switch) for switch in switches}

    status, document = check(live)
    assert status == 1
    differs = found(document)
    assert differs.pop(("multicast", dpid, "missing")) == len(
        [entry for entry in whole[leaf] - held[leaf] if f"nw_dst={other}" in entry]
    )
    assert differs.pop(("multicast", beside, "extra")) == 1
    entry = re.compile(rf"cookie=0x5603.*,dl_dst={live.mac('h1')} ")
    assert len([text for text in whole[leaf] if entry.search(text)]) == 1, "one entry of unicast was altered"
    if new:
        assert differs.pop(("unicast", dpid, "altered")) == 1
    else:
        assert differs.pop(("unicast", dpid, "missing")) == 1
        assert differs.pop(("discovery", dpid, "foreign")) == 1
    assert differs.pop(("discovery", beside, "foreign")) == 1
    assert differs == {}
    assert {switch: entries(live, switch) for switch in switches} == held, "a check alone changes nothing"

    status, document = check(live, "--repair", "--force")
    assert status == 0
    assert {kind for *_, kind in found(document, "left")} == {"foreign"}
    strange = {entry for entry in held[spare] if STRANGE in entry}
    assert len(strange) == 1
    live.wait_ready()
    for switch in switches:
        assert entries(live, switch) - strange == whole[switch], switch
    live.halt()
    live.assert_all_received(1, f"h3 {group}")
