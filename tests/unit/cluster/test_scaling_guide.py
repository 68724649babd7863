"""The guide to scaling monitors: its policies are taken, and its program starts and ends what it is told to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from controller.config import load_policy
from how_to import blocks

GUIDE = "scale-monitors.md"

SSH = """\
#!/bin/sh
# Does on "machines", which are files in RUNNING, what systemctl would.
machine=$2
case "$4$5" in
    --quietis-active) [ -e "$RUNNING/$machine" ] ;;
    startvsrt-monitor) : > "$RUNNING/$machine" ;;
    stopvsrt-monitor) rm "$RUNNING/$machine" ;;
    *) echo "not known: $*" >&2; exit 2 ;;
esac
"""


class Machines:
    """Machines m1 to m4, and which of them have a monitor that runs."""

    def __init__(self, directory: Path, *running: str) -> None:
        self.running = directory / "running"
        self.running.mkdir()
        for name in running:
            (self.running / name).touch()
        (directory / "monitors").write_text("m1\nm2\nm3\nm4\n")
        self.program = directory / "scale-monitors"
        self.program.write_text(next(block for block in blocks(GUIDE, "sh") if block.startswith("#!/bin/sh")))
        ssh = directory / "ssh"
        ssh.write_text(SSH)
        for path in (self.program, ssh):
            path.chmod(0o755)
        self.environment = {
            "PATH": f"{directory}:{os.environ['PATH']}",
            "RUNNING": str(self.running),
            "VSRT_MONITORS": str(directory / "monitors"),
        }

    def scale(self, count: int, drained: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(self.program), "monitors", str(count)]
        environment = {**self.environment, "VSRT_SCALING_DRAINED": drained}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def there(self) -> set[str]:
        return {path.name for path in self.running.iterdir()}


def test_it_starts_what_lacks_and_no_more(tmp_path: Path) -> None:
    machines = Machines(tmp_path, "m1", "m3")
    assert machines.scale(3).returncode == 0
    assert machines.there() == {"m1", "m2", "m3"}
    assert machines.scale(3).returncode == 0
    assert machines.there() == {"m1", "m2", "m3"}


def test_it_ends_those_that_were_drained(tmp_path: Path) -> None:
    machines = Machines(tmp_path, "m1", "m2", "m3", "m4")
    assert machines.scale(2, "m4 m2").returncode == 0
    assert machines.there() == {"m1", "m3"}


def test_it_says_what_it_cannot_do(tmp_path: Path) -> None:
    done = Machines(tmp_path, "m1").scale(6)
    assert (done.returncode, done.stderr) == (1, "2 monitors could not be started: no machine is left\n")


@pytest.mark.parametrize("number", [0, 1])
def test_its_policies_are_taken(number: int) -> None:
    text = blocks(GUIDE, "yaml")[number]
    if number:
        text = blocks(GUIDE, "yaml")[0].rpartition("scaling:")[0] + text
    policy = load_policy(text)
    assert (policy.scaling.mode, policy.scaling.limit) == (("advise", "apply")[number], 6)
    assert policy.warnings == ()
