"""A store in memory that several members share in tests and simulations, with the faults that real ones have.

Its time is what it is told (`MemoryStore.advance`); the same requests at the same times get the same answers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from enum import StrEnum
from itertools import islice
from operator import attrgetter

from controller.cluster.engine import (
    Committed,
    Compacted,
    ConditionFailed,
    GrantLease,
    KeepLease,
    KeyChange,
    KeyChanges,
    KeyCondition,
    KeyPage,
    KeyValue,
    LeaseGone,
    LeaseGranted,
    LeaseKept,
    LeaseRevoked,
    PutKey,
    ReadPage,
    Reply,
    Request,
    RevokeLease,
    Silent,
    Transaction,
    WatchReport,
    check,
)

_REVISION = attrgetter("revision")


class RequestFault(StrEnum):
    """What befalls the requests of one member."""

    REQUEST_LOST = "request-lost"
    """They do not reach the store."""
    REPLY_LOST = "reply-lost"
    """They are done, and nobody hears of it."""


class MemoryStore:
    """Keys, leases and their history.

    Attributes
    ----------
    now_s
        Its time, in seconds of any monotonic clock.
    revision
        The number of the last commit.
    incarnation
        How often it was emptied.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.revision = 1
        self.incarnation = 0
        self._silent_until_s = self._stands_until_s = 0.0
        self._left: list[Request] = []
        self._compacted = 0
        self._versions: dict[str, list[KeyChange]] = {}
        self._order: list[str] = []
        self._history: list[KeyChange] = []
        self._leases: dict[int, tuple[int, float]] = {}
        self._last_lease = 0

    # Time and faults

    @property
    def is_silent(self) -> bool:
        """Whether nothing is answered now."""
        return self.now_s < self._silent_until_s

    def advance(self, now_s: float) -> None:
        """Let time go on to `now_s`; leases end on the way, and what was left to a store that stood still is done."""
        if self._left and self._silent_until_s <= now_s:
            self._pass(self._silent_until_s)
            left, self._left = self._left, []
            for request in left:
                self.answer(request)
        self._pass(now_s)

    def _pass(self, now_s: float) -> None:
        while True:
            ends_s, lease = min(((ends_s, lease) for lease, (_, ends_s) in self._leases.items()), default=(None, 0))
            if ends_s is None or ends_s > now_s:
                break
            self.now_s = max(self.now_s, ends_s)
            self.expire(lease)
        self.now_s = max(self.now_s, now_s)

    def be_silent(self, for_s: float) -> None:
        """Answer nothing for a time, in which no lease ends: each lasts its whole time after it.

        So does a store of several servers that loses its leader and elects another.
        """
        self._silent_until_s = max(self._silent_until_s, self.now_s + for_s)
        for lease, (ttl_s, _) in self._leases.items():
            self._leases[lease] = (ttl_s, self._silent_until_s + ttl_s)

    def stand_still(self, for_s: float) -> None:
        """Answer nothing for a time, then do what was asked meanwhile; leases end as if it had not stood still.

        So does a store whose one server was stopped, by a signal or with its machine.
        """
        self._silent_until_s = max(self._silent_until_s, self.now_s + for_s)
        self._stands_until_s = self._silent_until_s

    def leave(self, request: Request) -> None:
        """Take a request whose answer nobody waits for, where it comes while the store stands still."""
        if self.now_s < self._stands_until_s:
            self._left.append(request)

    def expire(self, lease: int) -> None:
        """End a lease, as if nobody had kept it."""
        self._leases.pop(lease, None)
        keys = [key for key, versions in self._versions.items() if versions[-1].lease == lease and lease]
        if keys:
            self._commit([KeyChange(key, None, self.revision + 1) for key in sorted(keys)])

    def empty(self) -> None:
        """Lose everything, revisions and leases too, as if it were set up anew."""
        self.revision, self._compacted = 1, 0
        self.incarnation += 1
        self._versions, self._order, self._history, self._leases, self._left = {}, [], [], {}, []

    def compact(self) -> None:
        """Forget what was before the present."""
        self._compacted = self.revision
        self._history = []
        current = {key: versions[-1:] for key, versions in self._versions.items()}
        self._versions = {key: versions for key, versions in current.items() if versions[0].value is not None}
        self._order = sorted(self._versions)

    # Requests

    def next_lease_end_s(self) -> float | None:
        """Return when the next lease ends, None where there is none."""
        return min((ends_s for _, ends_s in self._leases.values()), default=None)

    def get(self, key: str, revision: int = 0) -> KeyValue | None:
        """Return a key as of a revision (0: now), None where it is absent."""
        versions = self._versions.get(key)
        if versions is None:
            return None
        place = bisect_right(versions, revision, key=_REVISION) if revision else len(versions)
        version = versions[place - 1] if place else None
        if version is None or version.value is None:
            return None
        return KeyValue(key, version.value, version.revision, version.lease)

    def answer(self, request: Request) -> Reply:
        """Answer a request at once."""
        if type(request) is Transaction:
            return self._transact(check(request))
        if type(request) is ReadPage:
            return self._page(request)
        if type(request) is GrantLease:
            self._last_lease += 1
            self._leases[self._last_lease] = (request.ttl_s, self.now_s + request.ttl_s)
            return LeaseGranted(self._last_lease, request.ttl_s)
        assert type(request) is KeepLease or type(request) is RevokeLease
        if request.lease not in self._leases:
            return LeaseGone()
        if type(request) is RevokeLease:
            self.expire(request.lease)
            return LeaseRevoked()
        ttl_s, _ = self._leases[request.lease]
        self._leases[request.lease] = (ttl_s, self.now_s + ttl_s)
        return LeaseKept(request.lease, ttl_s)

    def changes_after(self, prefix: str, revision: int) -> KeyChanges | Compacted | None:
        """Return what changed after a revision, None where nothing did."""
        if revision < self._compacted:
            return Compacted(self._compacted)
        place = bisect_right(self._history, revision, key=_REVISION)
        changes = tuple(change for change in self._history[place:] if change.key.startswith(prefix))
        return KeyChanges(changes[-1].revision, changes) if changes else None

    def _transact(self, transaction: Transaction) -> Reply:
        if not all(map(self._holds, transaction.conditions)):
            held = (self.get(condition.key) for condition in transaction.conditions)
            return ConditionFailed(self.revision, tuple(entry for entry in held if entry is not None))
        if any(type(edit) is PutKey and edit.lease and edit.lease not in self._leases for edit in transaction.edits):
            return LeaseGone()
        revision = self.revision + 1
        changes = []
        for edit in transaction.edits:
            if type(edit) is PutKey:
                changes.append(KeyChange(edit.key, edit.value, revision, edit.lease))
            elif self.get(edit.key) is not None:
                changes.append(KeyChange(edit.key, None, revision))
        if changes:
            self._commit(changes)
        return Committed(self.revision)

    def _holds(self, condition: KeyCondition) -> bool:
        held = self.get(condition.key)
        if held is None:
            return condition.revision == 0
        return held.revision == condition.revision and condition.value in (None, held.value)

    def _page(self, request: ReadPage) -> Reply:
        revision = request.revision or self.revision
        if revision < self._compacted:
            return Compacted(self._compacted)
        prefix, after, order = request.prefix, request.after, self._order
        start = bisect_left(order, prefix) if after < prefix else bisect_right(order, after)
        held: list[KeyValue] = []
        for key in islice(order, start, None):
            if not key.startswith(prefix):
                break
            entry = self.get(key, revision)
            if entry is None:
                continue
            if len(held) == request.limit:
                return KeyPage(revision, tuple(held), True)
            held.append(entry)
        return KeyPage(revision, tuple(held), False)

    def _commit(self, changes: list[KeyChange]) -> None:
        self.revision += 1
        self._history += changes
        for change in changes:
            versions = self._versions.get(change.key)
            if versions is None:
                insort(self._order, change.key)
                versions = self._versions[change.key] = []
            versions.append(change)


class MemoryEngine:
    """The store as one member has it.

    Attributes
    ----------
    fault
        What befalls its requests, None where they are answered; its watches tell nothing meanwhile.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.fault: RequestFault | None = None

    def ask(self, request: Request) -> Reply:
        """Have a request answered at once, unless there is a fault."""
        if self.fault is RequestFault.REQUEST_LOST:
            return Silent("The store does not answer.")
        if self.store.is_silent:
            self.store.leave(request)
            return Silent("The store does not answer.")
        reply = self.store.answer(request)
        return reply if self.fault is None else Silent("The store's answer was lost.")

    def watch(self, prefix: str, after_revision: int) -> MemoryWatch:
        """Have changes told, those after a revision."""
        return MemoryWatch(self, prefix, after_revision)


class MemoryWatch:
    """The changes of keys that begin with `prefix`; it lasts until the store is emptied."""

    def __init__(self, engine: MemoryEngine, prefix: str, after_revision: int) -> None:
        self._engine = engine
        self._prefix = prefix
        self._revision = after_revision
        self._incarnation = engine.store.incarnation
        self._is_open = True

    def take(self, wait_s: float) -> WatchReport | None:
        """Return what there is to tell; to wait is to let the store's time go on, from lease to lease."""
        store = self._engine.store
        until_s = store.now_s + wait_s
        report = self._report()
        while report is None and store.now_s < until_s:
            ends_s = store.next_lease_end_s()
            store.advance(until_s if ends_s is None else min(until_s, ends_s))
            report = self._report()
        return report

    def close(self) -> None:
        """Tell nothing more."""
        self._is_open = False

    def _report(self) -> WatchReport | None:
        store = self._engine.store
        if not self._is_open or store.is_silent or self._engine.fault is not None:
            return None
        if store.incarnation != self._incarnation or self._revision > store.revision:
            self._is_open = False
            return Silent("The store was set up anew.")
        report = store.changes_after(self._prefix, self._revision)
        if type(report) is KeyChanges:
            self._revision = report.revision
        elif report is not None:
            self._is_open = False
        return report
