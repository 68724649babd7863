"""A template on a real Open vSwitch: it goes by what was applied, and by what was before once that is undone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main
from apps.emulation.processes import run
from how_to import ROOT, SYSTEM_PATH, Reader, blocks, files
from private_bridge import private_bridge

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]


def columns(bridge: str) -> dict[str, Any]:
    """Return what the switch's database has."""
    names = ("fail_mode", "protocols", "rstp_enable", "other_config")
    told = json.loads(run("ovs-vsctl", "--format=json", f"--columns={','.join(names)}", "list", "Bridge", bridge))
    return dict(zip(told["headings"], told["data"][0], strict=True))


def speaks_openflow13(bridge: str) -> bool:
    """Tell whether the switch itself, not its database, speaks OpenFlow 1.3 and nothing older."""
    told = run("ovs-ofctl", "--protocols=OpenFlow13", "show", bridge)
    return "OFPT_FEATURES_REPLY (OF1.3)" in told


def test_a_switch_goes_by_a_template_and_by_what_was_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with private_bridge("br0"):
        database = f"unix:{os.environ['OVS_RUNDIR']}/db.sock"
        monkeypatch.chdir(tmp_path)
        run("ovs-vsctl", "set", "Bridge", "br0", "rstp_enable=true", "protocols=OpenFlow10", "fail_mode=standalone")
        before = columns("br0")
        assert main(["template", "check", "openflow-fabric", "--db", database]) == 1
        assert main(["template", "apply", "openflow-fabric", "--db", database, "--json"]) == 0
        told = capsys.readouterr().out.splitlines()[-1]
        (remark,) = json.loads(told)["remarks"]  # none that ovs-vswitchd was late
        assert remark.startswith("Bridge br0, other_config:disable-in-band: nothing becomes true, and a switch that")
        after = columns("br0")
        assert (after["fail_mode"], after["protocols"], after["rstp_enable"]) == ("secure", "OpenFlow13", False)
        assert speaks_openflow13("br0")
        assert main(["template", "check", "openflow-fabric", "--db", database]) == 0
        assert main(["template", "undo"]) == 0
        assert columns("br0") == before
        assert "OFPT_FEATURES_REPLY (xid" in run("ovs-ofctl", "--protocols=OpenFlow10", "show", "br0")


def test_the_guide_has_a_switch_go_by_templates_and_back(tmp_path: Path) -> None:
    page = "hold-switches-to-a-template.md"
    for name, text in files(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    see, have_so, take_back, begin = blocks(page)
    with private_bridge("br0"):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VSRT_")}
        environment |= {"PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}", "PYTHONPATH": str(ROOT)}
        environment |= {"OVSDB": f"unix:{os.environ['OVS_RUNDIR']}/db.sock", "HOME": str(tmp_path)}
        with Reader(tmp_path, environment) as reader:
            seen = reader.run(see)
            assert "openflow-fabric" in seen and "something is otherwise" in seen
            reader.run(have_so)
            assert columns("br0")["protocols"] == "OpenFlow13"
            assert '"mac-aging-time"' in json.dumps(columns("br0")["other_config"])
            history = reader.run(take_back)
            assert history.count("openflow-fabric, aging") == 2
            assert "undid run 1" in history
            assert columns("br0")["protocols"] != "OpenFlow13"
            assert "mcast_snooping_enable: false" in reader.run(begin)
