"""What upgrades the switches of a campaign: the operator's program, run for each switch when it is drained."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from apps.cli.called import SnapshotNames
from apps.cli.common import OperationFailed, printable
from apps.cli.following import followed
from apps.cli.progress import ProgressBar
from apps.cli.snapshot_source import ConnectionLost, SnapshotSource

HOOK_HELP = (
    "it is run with the datapath id of the switch in hexadecimal and its name; status 0 says that all went well"
)

KILL_AFTER_S = 5.0
"""How long after it is told to end a program is killed."""

AGAIN_S = 1.0
"""How soon a controller that does not answer is told again how an upgrade went."""

SECTION = "maintenance"

STDERR = 2
"""The file descriptor that has what the program prints, so that standard output is the command's own."""

Hook = Path
"""The program that upgrades a switch."""


class CampaignEnd(NamedTuple):
    """How a campaign stands when the command ends; `is_replaced` where another command upgrades now."""

    campaign: Mapping[str, Any]
    switches: tuple[Mapping[str, Any], ...]
    text: str
    is_replaced: bool


def read_hook(text: str) -> Hook:
    """Return the program that a text names; ValueError where there is none."""
    found = shutil.which(text)
    if found is None:
        raise ValueError(f"{text} is no program that can be run")
    return Path(found).absolute()


class Runner:
    """Runs the hook of each switch that waits for it, several at a time, and tells the controller how it went.

    Parameters
    ----------
    ask
        Has the controller do something: a verb of `vsrt maintain`, and its fields.
    hook
        The program.
    name
        Stands for this command: a command that takes over has another one.
    limit_s
        How long the program may take.
    """

    def __init__(
        self,
        ask: Callable[[str, Mapping[str, Any]], Any],
        hook: Hook,
        name: str,
        limit_s: float,
        called: SnapshotNames,
    ) -> None:
        self._ask = ask
        self._hook = hook
        self._name = name
        self._limit_s = limit_s
        self._called = called
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._attended: set[int] = set()
        self._faults: dict[int, str] = {}
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self._bar = ProgressBar()

    def run(self, open_source: Callable[[], SnapshotSource]) -> CampaignEnd:
        """Follow the campaign until it has ended, is halted with nothing in work, or another command upgrades."""
        try:
            for snapshot in followed(open_source(), (SECTION,)):
                documents = [document.fields for document in snapshot.section(SECTION).documents.values()]
                campaign = next((fields for fields in documents if "dpid" not in fields), None)
                if campaign is None:
                    continue
                switches = [fields for fields in documents if "dpid" in fields]
                ended = self._end(campaign, switches)
                if ended is not None:
                    return ended
                self._bar.draw(f"maintenance ({campaign['state']})", campaign["done"], campaign["switches"])
                for fields in switches:
                    if fields["step"] == "hook" and fields["dpid"] not in self._attended:
                        self._go_on(fields)
        finally:
            self._bar.clear()
            self._leave()
        raise OperationFailed("the controller tells nothing more")

    def _end(self, campaign: Mapping[str, Any], switches: Sequence[Mapping[str, Any]]) -> CampaignEnd | None:
        where = tuple(sorted(switches, key=lambda fields: fields["dpid"]))
        if campaign["runner"] != self._name:
            return CampaignEnd(campaign, where, "another command upgrades the switches from now on", True)
        state = campaign["state"]
        if state not in ("done", "aborted") and (state != "halted" or campaign["in_work"] or self._running):
            return None
        failed = [f"{fields['name']} ({fields['reason']})" for fields in where if fields["step"] == "failed"]
        text = sentence(campaign) + (f": {', '.join(failed)}" if failed else "")
        return CampaignEnd(campaign, where, text, False)

    def _go_on(self, fields: Mapping[str, Any]) -> None:
        """Upgrade a switch, or tell again how that went to a controller that was told and does not know.

        One that is killed forgets what it was told a moment ago, and one that knows that an upgrade was to begin may
        have had no time to answer: it begins then.
        """
        dpid = fields["dpid"]
        if fields["claimed"] and dpid in self._faults:
            self._spawn(dpid, self._tell, dpid)
        else:
            self._begin(fields)

    def _begin(self, fields: Mapping[str, Any]) -> None:
        dpid = fields["dpid"]
        self._faults.pop(dpid, None)  # of another time
        try:
            self._ask("hook-begin", {"dpid": dpid, "runner": self._name})
        except ConnectionLost:
            return  # it is to be upgraded still when the controller is back
        except OperationFailed as refusal:
            print(printable(f"vsrt: {refusal}"), file=sys.stderr)
            return
        try:
            process = subprocess.Popen(
                [self._hook, f"{dpid:#x}", fields["name"]],
                stdin=subprocess.DEVNULL,
                stdout=STDERR,
                start_new_session=True,
                env={**os.environ, "VSRT_TIER": fields["tier"], "VSRT_GROUP": fields["redundancy_group"]},
            )
        except OSError as error:
            self._faults[dpid] = f"{self._hook} cannot be run ({error.strerror or error})"
            self._spawn(dpid, self._tell, dpid)
            return
        self._running[dpid] = process
        self._spawn(dpid, self._attend, dpid, process)

    def _spawn(self, dpid: int, target: Callable[..., None], *args: Any) -> None:
        """Do something for a switch beside what else is done; nothing more is begun for it meanwhile."""

        def attend() -> None:
            try:
                target(*args)
            finally:
                self._attended.discard(dpid)

        self._attended.add(dpid)
        thread = threading.Thread(target=attend, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _attend(self, dpid: int, process: subprocess.Popen[bytes]) -> None:
        """Wait for the program, end it when its time is over, and tell the controller."""
        try:
            status = process.wait(self._limit_s)
            fault = "" if status == 0 else _said(status)
        except subprocess.TimeoutExpired:
            _end_all(process)
            fault = f"it did not end within {self._limit_s:g} s, and was ended"
        self._faults[dpid] = fault
        self._running.pop(dpid, None)
        self._tell(dpid)

    def _tell(self, dpid: int) -> None:
        until_s = time.monotonic() + self._limit_s
        while not self._over.is_set():
            try:
                self._ask("hook-end", {"dpid": dpid, "runner": self._name, "fault": self._faults[dpid]})
                return
            except ConnectionLost:
                if time.monotonic() > until_s:
                    return
                self._over.wait(AGAIN_S)
            except OperationFailed as refusal:
                print(printable(f"vsrt: {self._called.label(dpid)}: {refusal}"), file=sys.stderr)
                return

    def _leave(self) -> None:
        """End what still runs: nobody would tell how it went."""
        self._over.set()
        for process in list(self._running.values()):
            _end_all(process)
        for thread in self._threads:
            thread.join(KILL_AFTER_S)


def sentence(campaign: Mapping[str, Any]) -> str:
    """Say how far a campaign is."""
    text = f"the campaign is {campaign['state']}: {campaign['done']} of {campaign['switches']} switches are done"
    for name, said in (("in_work", "in work"), ("failed", "failed"), ("skipped", "left out")):
        if campaign[name]:
            text += f", {campaign[name]} {said}"
    return f"{text}; it waits: {campaign['waits_for']}" if campaign["waits_for"] else text


def _said(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(KILL_AFTER_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait()
