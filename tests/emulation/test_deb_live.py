"""The Debian package: built, installed, run, removed and purged, on a machine whose files are copies."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from apps.emulation.namespace import private_network
from how_to import ROOT, SYSTEM_PATH, Reader, own_machine

pytestmark = pytest.mark.emulation

FOLDERS = ("/etc", "/usr", "/var")
HOME = "/usr/lib/vsrt-controller"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("deb")
    done = subprocess.run([ROOT / "script" / "deb", directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = directory.glob("*.deb")
    return found


def test_the_package_is_installed_runs_and_goes_without_a_trace(package: Path, tmp_path: Path) -> None:
    environment = {"PATH": SYSTEM_PATH, "HOME": os.environ.get("HOME", "/root"), "DEBIAN_FRONTEND": "noninteractive"}
    with own_machine(tmp_path, tmp_path, FOLDERS) as around, private_network():
        with Reader(tmp_path, environment, around) as reader:
            reader.run(f"dpkg --install {package}")
            assert reader.run("vsrt --version").startswith("vsrt 0.")
            assert "good" in reader.run("vsrt policy check /etc/vsrt/policy.yaml")
            reader.run("test -s /usr/share/man/man1/vsrt-run.1.gz -a -s /usr/share/bash-completion/completions/vsrt")
            reader.run("grep --quiet ^ExecStart=/usr/bin/vsrt /lib/systemd/system/vsrt-controller.service")
            reader.run(
                "vsrt run --config /etc/vsrt/policy.yaml --state-dir /var/lib/vsrt multicast monitor dashboard"
            )
            status = json.loads(reader.run("vsrt show status --json"))
            assert status["switches"] == 0
            reader.run("curl --silent --fail --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8181/")
        with Reader(tmp_path, environment, around) as reader:
            reader.run("echo '# mine' >> /etc/vsrt/policy.yaml\ndpkg --remove vsrt-controller")
            reader.run(f"test ! -e {HOME} -a ! -e /usr/bin/vsrt")
            assert "# mine" in reader.run("cat /etc/vsrt/policy.yaml")
            reader.run("dpkg --purge vsrt-controller")
            reader.run("test ! -e /etc/vsrt -a ! -e /var/lib/vsrt")
