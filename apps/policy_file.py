"""The policy file of a process: read once for all its apps, each of which goes by it when it has taken it.

It is read at the start, on SIGHUP, when an operator asks for it and when the file changes.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from apps.environment import policy_path
from apps.fabric_file import FabricFile, Stamp, stamp_of
from apps.openflow.framework import hub
from controller.config.cluster_settings import NO_ENGINE
from controller.config.faults import PolicyInvalid, describe
from controller.config.load import load_policy
from controller.config.policy import Policy

LOGGER = logging.getLogger("vsrt")

LOOK_S = 0.5
"""How often it is looked whether the file is another, or SIGHUP came."""


def policy_faults(fault: PolicyInvalid | OSError, path: Path) -> tuple[str, ...]:
    """Return what is wrong with a policy file, a line for each fault."""
    if isinstance(fault, PolicyInvalid):
        return tuple(describe(error, str(path)) for error in fault.errors)
    return (f"{path}: {fault.strerror or fault}",)


class PolicyReading(NamedTuple):
    """What a reading of the file came to.

    `policy` is the one to go by, `text` what it was read from and `loaded_s` when, in seconds since 1970; a faulty
    file leaves these as they were, and `errors` says what is wrong. `number` grows with each reading.
    """

    policy: Policy = Policy()
    text: str = ""
    loaded_s: float | None = None
    errors: tuple[str, ...] = ()
    number: int = 0


class PolicyFile:
    """Follows the file named by VSRT_CONFIG; without one the built-in policy admits nobody.

    The topology file that it names is followed too. Any thread may use it.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self.path = policy_path()
        self.reading = PolicyReading()
        self._logger = logger
        self._asked = False
        self._fabric = FabricFile(self.path)
        self._stamp = self._read_stamp()
        self._lock = threading.Lock()

    def load(self) -> PolicyReading:
        """Read the policy; SystemExit with every fault where it cannot be used."""
        if self.path is None:
            self._logger.warning("No policy file is set (VSRT_CONFIG): every join and every sender is refused.")
            return self.reading
        with self._lock:
            self._read()
        if self.reading.errors:
            raise SystemExit("\n".join(f"vsrt: {line}" for line in self.reading.errors))
        return self.reading

    def watch_signal(self) -> None:
        """Let SIGHUP ask for a reload; only the main thread may say so."""
        try:
            signal.signal(signal.SIGHUP, self._on_signal)
        except ValueError:
            self._logger.warning("SIGHUP does not reload the policy here; a change of the file does.")

    def poll(self) -> PolicyReading:
        """Read the file again where that was asked for or it was written; return the latest reading."""
        if self.path is None:
            return self.reading
        with self._lock:
            if self._asked or self._read_stamp() != self._stamp or self._fabric.has_changed():
                self._reload()
            return self.reading

    def reload(self) -> PolicyReading:
        """Read the file again; return what that came to."""
        with self._lock:
            if self.path is None:
                return self.reading._replace(errors=("VSRT_CONFIG is not set: there is no policy file",))
            self._reload()
            return self.reading

    def _reload(self) -> None:
        self._stamp, self._asked = self._read_stamp(), False
        self._read()
        reading = self.reading
        if reading.errors:
            for line in reading.errors:
                self._logger.error("%s", line)
            self._logger.error("The policy file %s is faulty: the running policy stays.", self.path)
        else:
            self._logger.info("The policy file %s was read: it has %d rules.", self.path, len(reading.policy.rules))

    def _read(self) -> None:
        assert self.path is not None
        self._fabric = FabricFile(self.path)
        number = self.reading.number + 1
        try:
            content = self.path.read_bytes()
            policy = load_policy(content, str(self.path), self._fabric.read)
        except (PolicyInvalid, OSError) as fault:
            self.reading = self.reading._replace(errors=policy_faults(fault, self.path), number=number)
        else:
            self.reading = PolicyReading(policy, content.decode(errors="replace"), time.time(), (), number)

    def _on_signal(self, _number: int, _frame: Any) -> None:
        self._asked = True

    def _read_stamp(self) -> Stamp | None:
        return None if self.path is None else stamp_of(self.path)


class PolicyGate(Protocol):
    """Has a policy that was read be that of all controllers which share a fabric."""

    def admits(self, reading: PolicyReading) -> str | None:
        """Return why a policy is not in force yet, None where it is; on a thread that may wait."""


class PolicyReader:
    """The thread that reads the file of a process, and which app goes by which reading; any thread may use it.

    That the last app has taken a policy is logged.

    Attributes
    ----------
    in_force
        What apps are to go by.
    gate
        Who is asked before what was read is in force; None where this controller is alone.
    apps
        The reading that each app goes by.
    """

    def __init__(self, file: PolicyFile) -> None:
        self.file = file
        self.in_force = file.reading
        self.gate: PolicyGate | None = None
        self.apps: dict[str, int] = {}
        self._passed = self._told = file.reading.number
        self._lock = threading.Lock()
        self._passing = threading.Lock()
        self._is_running = False

    def reload(self) -> PolicyReading:
        """Read the file again and return what that came to; where there is a gate, `pass_on` is to follow."""
        reading = self.file.reload()
        if self.gate is None:
            self.pass_on()
        return reading

    def pass_on(self) -> str | None:
        """Put what was read last in force, if it may be; return why not. On a thread that may wait for the gate."""
        with self._passing:
            reading = self.file.reading
            if reading.number == self._passed:
                return None
            why = None if self.gate is None or reading.errors else self.gate.admits(reading)
            if why is None:
                self._passed = reading.number
                self.put_in_force(self.in_force._replace(errors=reading.errors) if reading.errors else reading)
            return why

    def put_in_force(self, reading: PolicyReading) -> None:
        """Have apps go by a policy."""
        with self._lock:
            self.in_force = reading._replace(number=self.in_force.number + 1)

    def start(self) -> None:
        """Look after the file from now on, unless that is so already, until the last app has left."""
        with self._lock:
            if self._is_running or self.file.path is None:
                return
            self._is_running = True
        hub.spawn(self._watch)

    def taken(self, app: str, number: int) -> None:
        """Take that an app goes by a reading."""
        with self._lock:
            self.apps[app] = number
            reading, apps = self.in_force, sorted(self.apps)
            if reading.errors or self._told == reading.number or set(self.apps.values()) != {reading.number}:
                return
            self._told = reading.number
        LOGGER.info("The policy file %s is in force in every app: %s.", self.file.path, ", ".join(apps))

    def left(self, app: str) -> None:
        """Take that an app goes by the policy no more."""
        with self._lock:
            self.apps.pop(app, None)

    def _watch(self) -> None:
        while self.apps:
            try:
                self.file.poll()
                self.pass_on()
            except Exception:
                LOGGER.exception("The policy file %s was not read.", self.file.path)
            hub.sleep(LOOK_S)
        self._is_running = False


class InForce(Protocol):
    """A policy that somebody goes by."""

    @property
    def reading(self) -> PolicyReading:
        """The reading that counts."""


class FollowedPolicy:
    """The policy as one app goes by it: `reading` is the last that it has taken."""

    def __init__(self, app: str, reader: PolicyReader) -> None:
        self.reading = reader.in_force
        self.path = reader.file.path
        self._app = app
        self._reader = reader
        reader.taken(app, self.reading.number)

    def start(self) -> None:
        """Have the file looked after."""
        self._reader.start()

    def take(self, use: Callable[[PolicyReading], None]) -> None:
        """Have the app go by the latest reading, unless it does: `use` says how, on the app's own loop."""
        latest = self._reader.in_force
        if latest.number != self.reading.number:
            self.reading = latest
            use(latest)
            self._reader.taken(self._app, latest.number)

    def reload(self) -> PolicyReading:
        """Have the file read again, for all apps (`PolicyReader.reload`); return what that came to."""
        return self._reader.reload()

    @property
    def reader(self) -> PolicyReader:
        """Who reads the file for all apps of the process."""
        return self._reader

    def leave(self) -> None:
        """Go by the policy no more."""
        self._reader.left(self._app)


def shares_fabric(policy: Policy) -> bool:
    """Tell whether this controller is one of several."""
    return policy.cluster.engine != NO_ENGINE


def wants_cluster() -> bool:
    """Tell, before there is any app, whether the policy file wants the controller to be one of several."""
    path = policy_path()
    try:
        content = b"" if path is None else path.read_bytes()
        if b"cluster" not in content:
            return False
        return shares_fabric(load_policy(content, str(path), FabricFile(path).read))
    except (OSError, PolicyInvalid):
        return False  # which whoever reads it says


_readers: list[PolicyReader] = []


def follow_policy(app: str) -> FollowedPolicy:
    """Return the policy as an app is to go by it; it is read for the first one of a process, or of a new set of apps.

    SystemExit with every fault where it cannot be used.
    """
    reader = _readers[0] if _readers else None
    if reader is None or not reader.apps or app in reader.apps or reader.file.path != policy_path():
        file = PolicyFile(LOGGER)
        file.load()
        file.watch_signal()
        _readers[:] = [reader := PolicyReader(file)]
    return FollowedPolicy(app, reader)
