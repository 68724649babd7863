"""Installations from nothing, on a machine whose files are copies: by the how-to guides, and as a Debian package.

The Python packages are those of the environment that runs the tests, in the versions of the lock. The Debian package
takes them from a folder into which they are packed again, and so is installed from nothing; the guides' environments
find them where they are, for that pip can bring them is known by then.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from apps.emulation import processes
from apps.emulation.namespace import private_network
from apps.emulation.ovs import PrivateOpenVSwitch
from how_to import ROOT, SYSTEM_PATH, Reader, blocks, own_machine, wait

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

CONTROLLER = "192.0.2.1"
FOLDERS = ("/etc", "/usr", "/var")
HOME = "/usr/lib/vsrt-controller"
LEFT_OUT = shutil.ignore_patterns(".*", "build", "*.egg-info", "vsrt-state", "__pycache__")
BUILDS_WITH = {"setuptools", "wheel"}
TAG = re.compile(r"^Tag: (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def plain() -> dict[str, str]:
    """The environment of somebody who has just logged in."""
    return {"PATH": SYSTEM_PATH, "HOME": os.environ.get("HOME", "/root"), "DEBIAN_FRONTEND": "noninteractive"}


def needed_by(package: str) -> set[str]:
    """The names of all that a package needs, as it and these declare it."""
    done: set[tuple[str, str]] = set()
    left = {(package, "")}
    while left:
        name, extra = one = left.pop()
        done.add(one)
        for requirement in map(Requirement, metadata.requires(name) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                left |= {(canonicalize_name(requirement.name), each) for each in {*requirement.extras, ""}} - done
    return {name for name, _ in done} - {package}


def pack(name: str, folder: Path) -> None:
    """Write the wheel of an installed package, but for what pip makes of a wheel: commands and bytecode."""
    found = metadata.distribution(name)
    tags = [tag.split("-") for tag in TAG.findall(found.read_text("WHEEL") or "")]
    tag = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
    files = [file for file in found.files or () if ".." not in file.parts and file.suffix != ".pyc"]
    path = folder / f"{name.replace('-', '_')}-{found.version}-{tag}.whl"
    with ZipFile(path, "w", strict_timestamps=False) as wheel:
        for file in files:
            wheel.write(str(file.locate()), str(file))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The Debian package, built by a pip that takes packages from a folder that has all that the checkout needs."""
    packages, directory = tmp_path / "packages", tmp_path / "dist"
    packages.mkdir()
    for name in sorted(needed_by("vsrt-controller") | BUILDS_WITH):
        pack(name, packages)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages), "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
    command = [ROOT / "script" / "deb", directory]
    done = subprocess.run(command, env=os.environ | offline, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = directory.glob("*.deb")
    return found


def test_the_package_is_installed_runs_and_goes_without_a_trace(
    package: Path, plain: dict[str, str], tmp_path: Path
) -> None:
    with own_machine(tmp_path, tmp_path, FOLDERS) as around, private_network():
        with Reader(tmp_path, plain, around) as reader:
            # Triggers are other packages' work: the index of all manual pages of the machine is made anew.
            reader.run(f"dpkg --no-triggers --install {package}")
            assert reader.run("vsrt --version").startswith("vsrt 0.")
            assert "good" in reader.run("vsrt policy check /etc/vsrt/policy.yaml")
            reader.run("test -s /usr/share/man/man1/vsrt-run.1.gz -a -s /usr/share/bash-completion/completions/vsrt")
            reader.run("grep --quiet ^ExecStart=/usr/bin/vsrt /lib/systemd/system/vsrt-controller.service")
            reader.run(
                "vsrt run --config /etc/vsrt/policy.yaml --state-dir /var/lib/vsrt"
                " multicast unicast monitor anomaly dashboard"
            )
            status = json.loads(reader.run("vsrt show status --json"))
            assert status["switches"] == 0
            reader.run("curl --silent --fail --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8181/")
        with Reader(tmp_path, plain, around) as reader:
            reader.run("echo '# mine' >> /etc/vsrt/policy.yaml\ndpkg --no-triggers --remove vsrt-controller")
            reader.run(f"test ! -e {HOME} -a ! -e /usr/bin/vsrt")
            assert "# mine" in reader.run("cat /etc/vsrt/policy.yaml")
            reader.run("dpkg --no-triggers --purge vsrt-controller")
            reader.run("test ! -e /etc/vsrt -a ! -e /var/lib/vsrt")


def two_switches(datapath: str) -> None:
    """Two bridges with the datapath ids that Open vSwitch gives them, joined by a cable, with a host port each."""
    kind = "netdev" if datapath == "user" else "system"
    for name, other in (("br0", "br1"), ("br1", "br0")):
        processes.run("ovs-vsctl", "add-br", name, "--", "set", "bridge", name, f"datapath_type={kind}")
        processes.run("ip", "link", "add", f"{name}-host", "type", "veth", "peer", "name", f"{name}-far")
        for end in (f"{name}-host", f"{name}-far"):
            processes.run("ip", "link", "set", end, "up")
        processes.run("ovs-vsctl", "add-port", name, f"{name}-host")
        processes.run(
            *("ovs-vsctl", "add-port", name, f"to-{other}", "--", "set", "interface", f"to-{other}"),
            *("type=patch", f"options:peer=to-{name}"),
        )


def share_packages(reader: Reader, environment: str) -> None:
    """Let an environment see what the tests' own has, so that pip brings there only what differs."""
    seen = sysconfig.get_path("purelib")
    reader.run(f'echo {seen} >"$(echo {environment}/lib/python3.*/site-packages)/shared.pth"')


def test_switches_of_one_s_own_from_nothing_and_the_upgrade(plain: dict[str, str], tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, ignore=LEFT_OUT)
    install, write, start, point, see = blocks("own-switches.md")
    before, new, _, after = blocks("upgrade.md")
    # What builds a wheel is among what is shared. What is installed is compiled as it is first imported: all of it at
    # once takes longer than the rest.
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "off", "PIP_COMPILE": "0"}
    with own_machine(tmp_path, checkout) as around:
        installer = Reader(checkout, {**os.environ, **offline, **plain}, around)
        get_python, make_environment, *others = install.splitlines(keepends=True)
        installer.run(get_python + make_environment)
        share_packages(installer, "/opt/vsrt-0.1.0")
        assert "vsrt 0." in installer.run("".join(others) + write)
        make_environment, *others = new.splitlines(keepends=True)
        installer.run(make_environment)
        share_packages(installer, "/opt/vsrt-0.2.0")
        installer.run("".join(others))
        with private_network(), PrivateOpenVSwitch() as ovs:
            processes.run("ip", "address", "add", f"{CONTROLLER}/32", "dev", "lo")
            two_switches(ovs.datapath)
            with Reader(checkout, {**os.environ, **plain}, around) as reader:

                def status() -> dict[str, Any]:
                    found: dict[str, Any] = json.loads(reader.run("vsrt show status --json"))
                    return found

                def is_whole() -> bool:
                    wanted = {"ready": True, "switches": 2, "links": 1, "edge_ports": 2}
                    return wanted.items() <= status().items()

                reader.run(start)
                reader.run(point + point.replace("br0", "br1"))
                wait(is_whole)
                reader.run(see + before)
                reader.end_served()
                reader.run("ln --symbolic --force --no-dereference /opt/vsrt-0.2.0 /opt/vsrt")
                reader.run(start)
                wait(is_whole)
                in_use = reader.run(
                    "readlink --canonicalize $(/opt/vsrt/bin/python -I -c 'import apps; print(*apps.__path__)')"
                )
                assert in_use.startswith("/opt/vsrt-0.2.0/")
                reader.run(after)
                assert json.loads((checkout / "after.json").read_text()) == []
                assert not (checkout / "vsrt-state").exists()
