"""Several controllers of one fabric, and the store that they share, as processes of an emulation's network."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from typing import Any

from apps.cluster.etcd import Access, EtcdEngine, EtcdError
from apps.emulation import processes
from apps.emulation.controller import DEFAULT_APPS, ControllerProcess, Framework
from apps.emulation.processes import EmulationError
from controller.cluster.engine import KeyPage, ReadPage
from controller.cluster.keys import Keys, Leader, read_leader

FABRIC = "emulated"
ETCD_PORT, ETCD_PEER_PORT, PEER_PORT = 2379, 2380, 6700
PORTS_APART = 100
START_TIMEOUT_S = 60.0
STORE_DEADLINE_S = 10.0
"""A store on a busy machine is no silent one."""

LEADER_TIMEOUT_S = 60.0
POLL_S = 0.02

POLICY = """\
monitor: {{prometheus: {{port: 0}}}}
cluster:
  engine: etcd
  endpoints: {endpoints}
  fabric: {fabric}
"""


class StoreServer:
    """One server of etcd, at every address of the network's loopback, on ports of its own."""

    def __init__(self, directory: Path, number: int, count: int) -> None:
        self.port, self.peer_port = (port + PORTS_APART * number for port in (ETCD_PORT, ETCD_PEER_PORT))
        peers = (ETCD_PEER_PORT + PORTS_APART * other for other in range(count))
        self._members = ",".join(f"n{at}=http://127.0.0.1:{port}" for at, port in enumerate(peers))
        self._name = f"n{number}"
        self._data, self._log = directory / self._name, directory / f"{self._name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, *options: str) -> None:
        """Run it, with what it has on the disk; EmulationError where it is not installed."""
        program = shutil.which("etcd")
        if program is None:
            raise EmulationError("etcd (Debian package etcd-server) is not installed")
        peer = f"http://127.0.0.1:{self.peer_port}"
        command = [
            *(program, "--name", self._name, "--data-dir", str(self._data)),
            *("--listen-client-urls", f"http://0.0.0.0:{self.port}"),
            *("--advertise-client-urls", f"http://127.0.0.1:{self.port}"),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", self._members, "--auto-compaction-retention", "1", *options),
        ]
        self._process = processes.start(command, log=self._log)

    @property
    def pid(self) -> int:
        """Its process id."""
        if self._process is None:
            raise EmulationError("the server of the store does not run")
        return self._process.pid

    def leads(self) -> bool:
        """Tell whether it is the one that the others of the store follow."""
        engine = EtcdEngine(Access((f"http://127.0.0.1:{self.port}",)))
        try:
            status = engine.question("/v3/maintenance/status")
        except (EtcdError, OSError, HTTPException, ValueError):
            return False
        finally:
            engine.close()
        return bool(status.get("leader")) and status["leader"] == status["header"]["member_id"]

    def kill(self) -> None:
        """End it at once; what it has on the disk stays."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def forget(self) -> None:
        """Remove what it has on the disk."""
        shutil.rmtree(self._data)

    def copy_to(self, directory: Path) -> None:
        """Copy what it has on the disk."""
        shutil.copytree(self._data, directory / self._name)

    def copy_from(self, directory: Path) -> None:
        """Have on the disk what was copied to a directory."""
        shutil.copytree(directory / self._name, self._data)


class EtcdServer:
    """What the controllers share: `count` servers of etcd, each told `options` beside what it needs."""

    def __init__(self, count: int = 1, options: Sequence[str] = ()) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="vsrt-etcd-")
        self.servers = [StoreServer(Path(self._directory.name), number, count) for number in range(count)]
        self._options = tuple(options)

    def launch(self) -> None:
        """Run all servers, with what they have on the disk."""
        for server in self.servers:
            server.launch(*self._options)

    def endpoints(self, address: str) -> str:
        """Return where servers are reached at an address of the loopback, with spaces between."""
        return " ".join(f"http://{address}:{server.port}" for server in self.servers)

    def engine(self) -> EtcdEngine:
        """Return what asks the store, which is to be closed."""
        return EtcdEngine(Access(tuple(self.endpoints("127.0.0.1").split())), STORE_DEADLINE_S)

    def read(self, prefix: str) -> KeyPage:
        """Return keys that begin with a prefix; a server that is busy or without others is asked again."""
        give_up_s = time.monotonic() + STORE_DEADLINE_S
        with closing(self.engine()) as engine:
            while type(reply := engine.ask(ReadPage(prefix))) is not KeyPage:
                if time.monotonic() > give_up_s:
                    raise EmulationError(f"the store does not answer: {reply}")
                time.sleep(POLL_S)
        return reply

    def wait(self) -> None:
        """Wait until it answers."""
        wait_that("the store answers", self._answers, START_TIMEOUT_S)

    def _answers(self) -> bool:
        try:
            self.read("/")
        except EmulationError:
            return False
        return True

    def wait_leading(self) -> StoreServer:
        """Wait until one server leads the others, and return it."""
        leading: list[StoreServer] = []

        def leads() -> bool:
            leading[:] = [server for server in self.servers if server.leads()]
            return bool(leading)

        wait_that("a server of the store leads the others", leads, START_TIMEOUT_S)
        return leading[0]

    def kill(self) -> None:
        """End all servers at once; what they have on the disk stays."""
        for server in self.servers:
            server.kill()

    def empty(self) -> None:
        """Have it lose everything."""
        self.kill()
        for server in self.servers:
            server.forget()
        self.launch()
        self.wait()

    def back_up(self) -> Path:
        """Have a copy of what it has on the disk, while it does not run for a moment; return where."""
        self.kill()
        backup = Path(self._directory.name) / "backup"
        for server in self.servers:
            server.copy_to(backup)
        self.launch()
        self.wait()
        return backup

    def set_back(self, backup: Path) -> None:
        """Have it go on with what it had when it was backed up."""
        self.kill()
        for server in self.servers:
            server.forget()
            server.copy_from(backup)
        self.launch()
        self.wait()

    def close(self) -> None:
        """End it and remove its files."""
        self.kill()
        self._directory.cleanup()


def store_address(number: int) -> str:
    """Return the address of the loopback by which a controller reaches the store, and others hear it."""
    return f"127.0.0.{10 + number}"


class EmulatedCluster:
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
        store: EtcdServer | None = None,
    ) -> None:
        self.store = store or EtcdServer()
        self.members: dict[str, ControllerProcess] = {}
        self._policies: dict[str, Path] = {}
        self.ports = tuple(range(port, port + count))
        for number, member_port in enumerate(self.ports, 1):
            section = POLICY.format(endpoints=self.store.endpoints(store_address(number)), fabric=FABRIC)
            path = self._policies[f"c{number}"] = directory / f"c{number}.yaml"
            path.write_text(policy + section + "".join(f"  {line}\n" for line in settings))
            own = {"VSRT_MEMBER": f"c{number}", "VSRT_PEER": f"{store_address(number)}:{PEER_PORT}"}
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
        self._wait_log("the journal", Keys(FABRIC).journal, reached, timeout_s)

    def wait_hosts(self, reached: Callable[[set[str]], bool], timeout_s: float = LEADER_TIMEOUT_S) -> None:
        """Wait until hosts and trunks in the log, by their keys, are as they are to be."""
        self._wait_log("the log of hosts", Keys(FABRIC).hosts, reached, timeout_s)

    def _wait_log(self, what: str, prefix: str, reached: Callable[[set[str]], bool], timeout_s: float) -> None:
        keys: set[str] = set()

        def found() -> bool:
            keys.clear()
            keys.update(held.key.removeprefix(prefix) for held in self.store.read(prefix).held)
            return reached(keys)

        try:
            wait_that(f"{what} is as it is to be", found, timeout_s)
        except EmulationError as error:
            raise EmulationError(f"{error}: {sorted(keys)}") from error

    def registered(self) -> dict[str, int]:
        """Return who is a member, as the store has it, and in which revision each said so last."""
        prefix = Keys(FABRIC).members
        return {held.key.removeprefix(prefix): held.revision for held in self.store.read(prefix).held}

    def wait_leader(self, above: int = 0, timeout_s: float = LEADER_TIMEOUT_S) -> Leader:
        """Wait until somebody leads in an epoch above `above`."""
        found: list[Leader] = []

        def leads() -> bool:
            leader = self.leader()
            if leader is not None and leader.epoch > above:
                found.append(leader)
            return bool(found)

        wait_that(f"somebody leads in an epoch above {above}", leads, timeout_s)
        return found[0]

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"== {name}\n{member.log()[-6000:]}" for name, member in self.members.items())


def wait_that(what: str, reached: Callable[[], Any], timeout_s: float) -> None:
    """Wait until something holds; EmulationError, which says what, where it does not in time."""
    deadline_s = time.monotonic() + timeout_s
    while not reached():
        if time.monotonic() > deadline_s:
            raise EmulationError(f"after {timeout_s:g} s it does not hold that {what}")
        time.sleep(POLL_S)
