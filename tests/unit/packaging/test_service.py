"""The systemd unit and the container files name what is there."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from apps.cli.main import build_parser
from apps.registry import USUAL_APPS
from controller.config import load_policy

PACKAGING = Path(__file__).parents[3] / "packaging"
UNIT = PACKAGING / "systemd" / "vsrt-controller.service"
CONTAINER = PACKAGING / "container"


def unit_lines(key: str) -> list[str]:
    return re.findall(rf"(?m)^{key}=(.*)$", UNIT.read_text(encoding="utf-8"))


def test_systemd_accepts_the_unit(tmp_path: Path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze")
    vsrt = Path(sys.executable).with_name("vsrt")
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/vsrt/bin/vsrt", str(vsrt)), encoding="utf-8")
    done = subprocess.run([analyze, "verify", "--man=no", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_s_commands_are_those_of_vsrt():
    apps = next(re.findall(r'"VSRT_APPS=(.*)"', line) for line in unit_lines("Environment"))[0].split()
    assert tuple(apps) == USUAL_APPS
    for line in unit_lines("ExecStartPre") + unit_lines("ExecStart"):
        words = shlex.split(line)
        assert words[0] == "/opt/vsrt/bin/vsrt"
        build_parser().parse_args(
            [word for word in words[1:] if word != "$VSRT_APPS"] + apps * ("$VSRT_APPS" in words)
        )


def test_keys_of_the_unit_stand_once():
    keys = re.findall(r"(?m)^(\w+)=", UNIT.read_text(encoding="utf-8"))
    assert sorted({key for key in keys if keys.count(key) > 1}) == ["Environment", "SystemCallFilter"]


def test_the_container_s_command_is_one_of_vsrt():
    text = (CONTAINER / "Containerfile").read_text(encoding="utf-8")
    (entry,) = re.findall(r"(?m)^ENTRYPOINT (\[.*\])$", text)
    (command,) = re.findall(r"(?m)^CMD (\[.*\])$", text)
    assert json.loads(entry) == ["vsrt"]
    args = build_parser().parse_args(json.loads(command))
    assert (args.command, str(args.config)) == ("run", "/etc/vsrt/policy.yaml")
    assert tuple(args.apps) == USUAL_APPS


def test_files_that_containers_take_are_there():
    services = yaml.safe_load((CONTAINER / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for service in services.values():
        context = (CONTAINER / service["build"]["context"]).resolve()
        containerfile = context / service["build"]["dockerfile"]
        copied = re.findall(r"(?m)^COPY (?!--)(\S+) ", containerfile.read_text(encoding="utf-8"))
        assert copied
        assert [name for name in copied if not (context / name).exists()] == []
    load_policy((CONTAINER / "policy.yaml").read_bytes())


def test_open_vswitch_is_pointed_at_the_controller():
    services = yaml.safe_load((CONTAINER / "compose.yaml").read_text(encoding="utf-8"))["services"]
    address = services["controller"]["networks"]["control"]["ipv4_address"]
    assert services["openvswitch"]["environment"]["CONTROLLER"] == f"tcp:{address}:6653"
    script = CONTAINER / "openvswitch.sh"
    assert script.stat().st_mode & 0o100
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
