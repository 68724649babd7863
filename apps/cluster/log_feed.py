"""The logs of the controller that leads, followed by one that may have to lead next, on a thread of the system's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from apps.cluster.lead import Followed
from apps.cluster.link import SidecarLink
from apps.system import system_threading
from controller.cluster.engine import KeyChanges, KeyPage, ReadPage
from controller.cluster.journal import Replica
from controller.cluster.keys import Keys
from controller.cluster.versions import may_be_written_anew
from controller.log import LogEntry

ENTRIES_AT_ONCE = 250
"""Entries that the loop is handed at a time, so that each of its turns is short."""

AGAIN_S = 0.2
WATCH_WAIT_S = 0.5

LATER_AGAIN_S = 0.5
"""How long until logs that the leader is to write anew are read again."""

LATER_S = 30.0
"""How long a leader has to write logs anew by records that this program reads."""


class LogFeed:
    """Hands over what is in the logs, and then whatever is written, until it is closed.

    Parameters
    ----------
    link
        By which the store is asked.
    fabric
        Whose logs these are.
    hand
        Takes entries, on this thread: all there are at first, then in the order in which they were written.
    refuse
        Called once with the version of records that this program cannot read and that nobody writes anew for it;
        nothing is handed over from then on.
    later_s
        For how long records that are one version too late are waited for to be written anew.

    Attributes
    ----------
    journal, hosts
        The replicas: what they have was handed over.
    """

    def __init__(
        self,
        link: SidecarLink,
        fabric: str,
        hand: Callable[[Followed], None],
        refuse: Callable[[int], None],
        later_s: float = LATER_S,
    ) -> None:
        keys = Keys(fabric)
        self.journal, self.hosts = Replica(keys.journal), Replica(keys.hosts)
        self._link = link
        self._root = keys.root
        self._hand = hand
        self._refuse = refuse
        self._later_s = later_s
        self._late_since_s: float | None = None
        self._revision = 0
        self._changed = system_threading.Condition()
        self._has_ended = system_threading.Event()

    def start(self) -> None:
        """Begin to follow."""
        system_threading.Thread(target=self._run, name="log-feed", daemon=True).start()

    def close(self) -> None:
        """Follow no longer."""
        self._has_ended.set()

    def wait(self, revision: int, wait_s: float) -> bool:
        """Wait until all up to a revision of the store was handed over; tell whether that is so."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: self._revision >= revision, wait_s))

    # On its thread

    def _run(self) -> None:
        while not self._has_ended.is_set():
            if not self._read():
                self._has_ended.wait(AGAIN_S if self._late_since_s is None else LATER_AGAIN_S)
                continue
            watch = self._link.watch(self._root, self._revision)
            while not self._has_ended.is_set():
                report = watch.take(WATCH_WAIT_S)
                if type(report) is KeyChanges:
                    if not self._take(self.journal.follow(report), self.hosts.follow(report), report.revision):
                        break
                elif report is not None:
                    break
            watch.close()

    def _read(self) -> bool:
        """Read both logs as of one revision; False where the store does not answer, or they cannot be read whole."""
        entries: list[tuple[LogEntry, ...]] = []
        revision = 0
        for replica in (self.journal, self.hosts):
            asked: ReadPage | tuple[LogEntry, ...] = replica.begin(revision)
            while isinstance(asked, ReadPage):
                page = self._link.ask(asked)
                if type(page) is not KeyPage:
                    return False
                asked = replica.read(page)
            revision = replica.revision
            entries.append(asked)
        return self._take(entries[0], entries[1], revision)

    def _take(self, journal: tuple[LogEntry, ...], hosts: tuple[LogEntry, ...], revision: int) -> bool:
        """Hand entries over; False where there are records besides that cannot be read: then all is read anew."""
        is_whole = self._is_whole()
        if self._has_ended.is_set():
            return False
        for some in _slices(journal):
            self._hand(Followed(some, ()))
        for some in _slices(hosts):
            self._hand(Followed((), some))
        if is_whole:
            with self._changed:
                self._revision = revision
                self._changed.notify_all()
        return is_whole

    def _is_whole(self) -> bool:
        """Tell whether there is nothing that cannot be read; refuse it where nobody will write it anew."""
        unknown = [each for each in (self.journal.unknown_version, self.hosts.unknown_version) if each is not None]
        if not unknown:
            self._late_since_s = None
            return True
        now = time.monotonic()
        if self._late_since_s is None:
            self._late_since_s = now
        is_overdue = now >= self._late_since_s + self._later_s
        if not self._has_ended.is_set() and (is_overdue or not all(map(may_be_written_anew, unknown))):
            self.close()
            self._refuse(unknown[0])
        return False


def _slices(entries: tuple[LogEntry, ...]) -> Iterator[tuple[LogEntry, ...]]:
    return (entries[at : at + ENTRIES_AT_ONCE] for at in range(0, len(entries), ENTRIES_AT_ONCE))
