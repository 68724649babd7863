"""Open vSwitch by TLS, with certificates of its own tools: let in, refused, and certificates replaced meanwhile."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.cli.snapshot_socket import SocketSource
from apps.emulation.controller import RYU_TLS_OPTIONS, TLS_OPTIONS, ControllerProcess, Framework
from apps.emulation.namespace import private_network
from apps.emulation.ovs import PrivateOpenVSwitch
from apps.emulation.processes import EmulationError, run
from apps.tls_files import TlsFiles
from certificates import Authority
from controller.snapshot.reader import Fields
from how_to import blocks

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

PORT = 6653
TIMEOUT_S = 60.0
GUIDE, WHERE = "encrypt-openflow.md", "/etc/vsrt"
BRIDGES = ("tls1", "tls2")
DPIDS = (0x11, 0x12)


class Pki:
    """What the guide has made: two authorities, a controller, switches."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "pki"
        make, self.vsrt, self.ryu, *_ = (block.replace(WHERE, str(directory)) for block in blocks(GUIDE))
        self._revoking = next(block for block in blocks(GUIDE) if "-revoke" in block).strip().splitlines()
        run("sh", "-ec", make)
        self._sign = next(line for line in make.splitlines() if line.endswith(" req+sign leaf1 switch"))
        self.controller_ca = self._directory / "controllerca" / "cacert.pem"
        self.switch_ca = self._directory / "switchca" / "cacert.pem"

    def made(self, name: str) -> tuple[Path, Path]:
        """Return the certificate and the key of a controller or a switch."""
        return self._directory / f"{name}-cert.pem", self._directory / f"{name}-privkey.pem"

    def revoke(self, *lost: tuple[Path, Path]) -> Path:
        """Revoke certificates of switches as the guide does, and return the file of the list."""
        revoke, write = (line.replace(WHERE, str(self._directory.parent)) for line in self._revoking[1:])
        for certificate, _ in lost:
            run("sh", "-ec", f"cd {self.switch_ca.parent}; {revoke.replace('../leaf1-cert.pem', str(certificate))}")
        run("sh", "-ec", f"cd {self.switch_ca.parent}; {write}")
        return Path(write.split()[-1])

    def issue(self, name: str, kind: str) -> tuple[Path, Path]:
        """Make one more certificate as the guide does."""
        run("sh", "-ec", f"cd {self._directory}; {self._sign.replace('leaf1 switch', f'{name} {kind}')}")
        return self.made(name)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def switches() -> Iterator[None]:
    with private_network(), PrivateOpenVSwitch("user"):
        for bridge, dpid in zip(BRIDGES, DPIDS, strict=True):
            settings = ("datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13")
            other = f"other-config:datapath-id={dpid:016x}"
            run("ovs-vsctl", "--timeout=10", "add-br", bridge, "--", "set", "bridge", bridge, *settings, other)
        yield


def connect(bridge: str, protocol: str = "ssl") -> None:
    options = ("--", "set", "controller", bridge, "max_backoff=1000")
    run("ovs-vsctl", "--timeout=10", "set-controller", bridge, f"{protocol}:127.0.0.1:{PORT}", *options)


def is_connected(bridge: str) -> bool:
    return run("ovs-vsctl", "--timeout=10", "get", "controller", bridge, "is_connected").strip() == "true"


def until(condition: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < ends_s
        time.sleep(0.05)


def documents(controller: ControllerProcess, section: str) -> list[Fields]:
    snapshot = next(SocketSource(controller.socket).follow((section,)))
    return [document.fields for document in snapshot.section(section).documents.values()]


@pytest.fixture
def unplugged(switches: None) -> Iterator[None]:
    yield
    for bridge in BRIDGES:
        run("ovs-vsctl", "--timeout=10", "del-controller", bridge, "--", "del-ssl")


@pytest.mark.each_framework
def test_switches_are_let_in_by_their_certificates_alone(
    framework: Framework, pki: Pki, unplugged: None, tmp_path: Path
) -> None:
    certificate, key = (Path(shutil.copy(path, tmp_path)) for path in pki.made("controller"))
    good, bad = pki.made("leaf1"), pki.issue(f"stranger-{framework}", "controller")
    lists, names = pki.revoke(), tmp_path / "switches.txt"
    names.write_text("leaf1 id:*\nlost-* id:*\n")
    tls = TlsFiles(certificate, key, pki.switch_ca, lists, names)
    with ControllerProcess(PORT, framework=framework, apps=("multicast",), tls=tls) as controller:
        in_guide = (pki.ryu if framework == "ryu" else pki.vsrt).split()
        options = zip(
            RYU_TLS_OPTIONS if framework == "ryu" else TLS_OPTIONS[:3],
            (*pki.made("controller"), pki.switch_ca),
            strict=True,
        )
        assert all(in_guide[in_guide.index(option) + 1] == str(path) for option, path in options)

        def present(own: tuple[Path, Path]) -> None:
            """Have Open vSwitch show a certificate from its next connection on."""
            run("ovs-vsctl", "--timeout=10", "set-ssl", str(own[1]), str(own[0]), str(pki.controller_ca))

        def known(dpid: int) -> Fields:
            return next((switch for switch in documents(controller, "switches") if switch["dpid"] == dpid), {})

        def alarms() -> list[str]:
            return [alarm["text"] for alarm in documents(controller, "alarms") if "tls-faulty" in alarm["key"]]

        present(bad)
        connect("tls2")
        controller.wait_log("A switch that connected from 127.0.0.1 was refused: its certificate is not accepted")
        assert not known(DPIDS[1])

        present(good)
        connect("tls1")
        until(lambda: known(DPIDS[0]).get("in_sync"))
        assert known(DPIDS[0])["encrypted"] is True
        assert f"port {PORT}, by TLS" in controller.log()

        connect("tls2", "tcp")
        controller.wait_log("A switch that connected from 127.0.0.1 was refused: it does not speak TLS.")
        told = [event["text"] for event in documents(controller, "events") if event["kind"] == "switch-refused"]
        assert len(told) == 2
        assert not is_connected("tls2")

        renewed = pki.issue(f"renewed-{framework}", "controller")
        shutil.copy(renewed[0], certificate)
        until(alarms)
        assert f"certificate: {certificate} with key {key}: key values mismatch" in alarms()[0]
        run("ovs-vsctl", "--timeout=10", "del-controller", "tls1")
        until(lambda: not known(DPIDS[0])["connected"])
        connect("tls1")
        until(lambda: known(DPIDS[0])["connected"])  # by the pair that was read before
        shutil.copy(renewed[1], key)
        until(lambda: not alarms())
        connect("tls2")
        until(lambda: known(DPIDS[1]).get("in_sync"))
        assert known(DPIDS[0])["connected"]
        assert controller.log().count("switch-cut-off") == 0

        present(pki.issue(f"other-{framework}", "switch"))
        run("ovs-vsctl", "--timeout=10", "del-controller", "tls2")
        connect("tls2")
        controller.wait_log(f"was refused: its certificate is for other-{framework} id:")

        lost = pki.issue(f"lost-{framework}", "switch")
        pki.revoke(lost)
        present(lost)
        run("ovs-vsctl", "--timeout=10", "del-controller", "tls2")
        connect("tls2")
        controller.wait_log(
            "A switch that connected from 127.0.0.1 was refused: its certificate is not accepted: certificate rev"
        )
        present(good)
        until(lambda: all(known(dpid)["connected"] for dpid in DPIDS))
        lists.write_text("no list")
        until(lambda: any("the file has no revocation list" in text for text in alarms()))


@pytest.mark.each_framework
@pytest.mark.parametrize("case", ["another's key", "expired"])
def test_no_controller_starts_with_a_certificate_that_has_expired_or_that_its_key_does_not_fit(
    framework: Framework, pki: Pki, tmp_path: Path, case: str
) -> None:
    certificate, key = pki.made("controller")[0], pki.made("leaf1")[1]
    said = f"certificate: {certificate} with key {key}: key values mismatch"
    if case == "expired":
        certificate, key = Authority(tmp_path).issue("over", days=-1)
        said = f"certificate: {certificate}: certificate has expired"
    tls = TlsFiles(certificate, key)
    with (
        private_network(),
        pytest.raises(EmulationError, match=re.escape(said)),
        ControllerProcess(PORT, framework=framework, apps=("multicast",), tls=tls),
    ):
        pass


@pytest.mark.each_framework
def test_a_certificate_speaks_for_the_datapath_ids_alone_that_its_name_is_bound_to(
    framework: Framework, pki: Pki, unplugged: None, tmp_path: Path
) -> None:
    """Two switches have one certificate, which is that of the first."""
    certificate, key = pki.made("leaf1")
    names = tmp_path / "switches.txt"
    names.write_text(f"leaf1 id:* = {DPIDS[0]:#x}\nleaf2 id:* = {DPIDS[1]:#x}\n")
    tls = TlsFiles(*pki.made("controller"), pki.switch_ca, names=names)
    with ControllerProcess(PORT, framework=framework, apps=("multicast",), tls=tls) as controller:

        def in_sync() -> set[Any]:
            return {switch["dpid"] for switch in documents(controller, "switches") if switch["in_sync"]}

        def refusals() -> list[str]:
            return [event["text"] for event in documents(controller, "events") if event["kind"] == "switch-refused"]

        run("ovs-vsctl", "--timeout=10", "set-ssl", str(key), str(certificate), str(pki.controller_ca))
        connect("tls1")
        until(lambda: in_sync() == {DPIDS[0]})
        connect("tls2")
        until(refusals)
        (told,) = refusals()
        assert f"it says that it is {DPIDS[1]:016x}, and its certificate is for leaf1 id:" in told
        assert told.endswith(f"which line 1 of {names} binds to another datapath id.")
        assert in_sync() == {DPIDS[0]}
        names.write_text(f"leaf1 id:* = {DPIDS[0]:#x}, {DPIDS[1]:016x}\n")
        until(lambda: in_sync() == set(DPIDS))
        assert len(refusals()) == 1
        assert all(switch["connected"] for switch in documents(controller, "switches"))


@pytest.mark.each_framework
def test_a_switch_that_speaks_tls_where_plain_tcp_is_taken_is_told_of_and_another_served(
    framework: Framework, pki: Pki, unplugged: None
) -> None:
    certificate, key = pki.made("leaf1")
    run("ovs-vsctl", "--timeout=10", "set-ssl", str(key), str(certificate), str(pki.controller_ca))
    with ControllerProcess(PORT, framework=framework, apps=("multicast",)) as controller:
        connect("tls1")
        controller.wait_log(
            "A switch that connected from 127.0.0.1 was refused: it speaks TLS, and this port takes plain TCP."
        )
        connect("tls2", "tcp")
        until(lambda: any(switch["in_sync"] for switch in documents(controller, "switches")))
        (known,) = documents(controller, "switches")
        assert (known["dpid"], known["encrypted"]) == (DPIDS[1], False)
        assert not is_connected("tls1")
