"""Several controllers of one fabric, and the store that they share, as processes of an emulation's network."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from apps.cluster.etcd import Access, EtcdEngine
from apps.emulation import processes
from apps.emulation.controller import DEFAULT_APPS, ControllerProcess, Framework
from apps.emulation.processes import EmulationError
from controller.cluster.engine import Page, ReadPage
from controller.cluster.keys import Keys, Leader, read_leader

FABRIC = "emulated"
ETCD_PORT, ETCD_PEER_PORT, PEER_PORT = 2379, 2380, 6700
START_TIMEOUT_S = 30.0
LEADER_TIMEOUT_S = 20.0
POLL_S = 0.02

POLICY = """\
monitor: {{prometheus: {{port: 0}}}}
cluster:
  engine: etcd
  endpoints: {endpoints}
  fabric: {fabric}
"""


class Store:
    """One server of etcd, at every address of the network's loopback."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="vsrt-etcd-")
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Run it, with what it has on the disk; EmulationError where it is not installed."""
        program = shutil.which("etcd")
        if program is None:
            raise EmulationError("etcd (Debian package etcd-server) is not installed")
        peer = f"http://127.0.0.1:{ETCD_PEER_PORT}"
        command = [
            *(program, "--name", "one", "--data-dir", f"{self._directory.name}/data"),
            *("--listen-client-urls", f"http://0.0.0.0:{ETCD_PORT}"),
            *("--advertise-client-urls", f"http://127.0.0.1:{ETCD_PORT}"),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"one={peer}", "--auto-compaction-retention", "1"),
        ]
        self._process = processes.start(command, log=Path(self._directory.name) / "log")

    @property
    def pid(self) -> int:
        """Its process id."""
        if self._process is None:
            raise EmulationError("the store does not run")
        return self._process.pid

    def read(self, prefix: str) -> Page:
        """Return keys that begin with a prefix."""
        engine = EtcdEngine(Access((f"http://127.0.0.1:{ETCD_PORT}",)))
        try:
            reply = engine.ask(ReadPage(prefix))
        finally:
            engine.close()
        if type(reply) is not Page:
            raise EmulationError(f"the store does not answer: {reply}")
        return reply

    def wait(self) -> None:
        """Wait until it answers."""
        _wait("the store answers", self._answers, START_TIMEOUT_S)

    def _answers(self) -> bool:
        try:
            self.read("/")
        except EmulationError:
            return False
        return True

    def kill(self) -> None:
        """End it at once; what it has on the disk stays."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def empty(self) -> None:
        """Have it lose everything."""
        self.kill()
        shutil.rmtree(f"{self._directory.name}/data")
        self.launch()
        self.wait()

    def close(self) -> None:
        """End it and remove its files."""
        self.kill()
        self._directory.cleanup()


class Cluster:
    """Controllers c1, c2, ... and their store: the `controller` of an `EmulatedFabric`.

    `policy` is that of all, but for the section `cluster`, which has lines of `settings` too. Each controller reaches
    the store by an address of its own, so that it can be cut off from it.
    """

    def __init__(
        self,
        directory: Path,
        port: int,
        count: int = 2,
        *,
        policy: str = "version: 1\ndefault: allow\n",
        settings: Sequence[str] = (),
        framework: Framework = "os-ken",
        apps: Sequence[str] = DEFAULT_APPS,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.store = Store()
        self.members: dict[str, ControllerProcess] = {}
        self._policies: dict[str, Path] = {}
        self.ports = tuple(range(port, port + count))
        for number, member_port in enumerate(self.ports, 1):
            section = POLICY.format(endpoints=f"http://127.0.0.{10 + number}:{ETCD_PORT}", fabric=FABRIC)
            path = self._policies[f"c{number}"] = directory / f"c{number}.yaml"
            path.write_text(policy + section + "".join(f"  {line}\n" for line in settings))
            own = {"VSRT_MEMBER": f"c{number}", "VSRT_PEER": f"127.0.0.1:{PEER_PORT + number}"}
            self.members[f"c{number}"] = ControllerProcess(
                member_port, framework=framework, policy=path, apps=apps, env={**(env or {}), **own}
            )

    def launch(self) -> None:
        """Start the store, then all controllers."""
        self.store.launch()
        self.store.wait()
        for member in self.members.values():
            member.launch()

    def wait_listening(self) -> None:
        """Wait until all controllers listen for switches."""
        for member in self.members.values():
            member.wait_listening()

    def close(self) -> None:
        """End all."""
        for member in self.members.values():
            member.close()
        self.store.close()

    def leader(self) -> Leader | None:
        """Return who leads, as the store has it."""
        held = {held.key: held.value for held in self.store.read(Keys(FABRIC).lead).held}
        value = held.get(Keys(FABRIC).leader)
        return None if value is None else read_leader(value)

    def policy_of(self, name: str) -> Path:
        """Return the policy file of a member."""
        return self._policies[name]

    def wait_journal(self, reached: Callable[[set[str]], bool], timeout_s: float = LEADER_TIMEOUT_S) -> None:
        """Wait until the entries of the journal, by their keys, are as they are to be."""
        prefix = Keys(FABRIC).journal

        keys: set[str] = set()

        def found() -> bool:
            keys.clear()
            keys.update(held.key.removeprefix(prefix) for held in self.store.read(prefix).held)
            return reached(keys)

        try:
            _wait("the journal is as it is to be", found, timeout_s)
        except EmulationError as error:
            raise EmulationError(f"{error}: {sorted(keys)}") from error

    def names(self) -> set[str]:
        """Return who is a member, as the store has it."""
        prefix = Keys(FABRIC).members
        return {held.key.removeprefix(prefix) for held in self.store.read(prefix).held}

    def wait_leader(self, above: int = 0, timeout_s: float = LEADER_TIMEOUT_S) -> Leader:
        """Wait until somebody leads in an epoch above `above`."""
        found: list[Leader] = []

        def leads() -> bool:
            leader = self.leader()
            if leader is not None and leader.epoch > above:
                found.append(leader)
            return bool(found)

        _wait(f"somebody leads in an epoch above {above}", leads, timeout_s)
        return found[0]

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"== {name}\n{member.log()[-6000:]}" for name, member in self.members.items())


def _wait(what: str, reached: Callable[[], Any], timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not reached():
        if time.monotonic() > deadline_s:
            raise EmulationError(f"after {timeout_s:g} s it does not hold that {what}")
        time.sleep(POLL_S)
