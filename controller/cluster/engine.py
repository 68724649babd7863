"""The store that several controllers share: keys with revisions, leases, transactions that compare before they put.

`Engine` is the port. What it is asked and what it answers are frozen values, so that the cores which need it stay
without socket and clock; `controller.cluster.memory_engine` has a twin in memory, `apps.cluster.etcd` the real one.

A *revision* counts what was committed in the whole store: each transaction that changes something adds 1. A key has
the revision in which it was last put; 0 stands for a key that is absent.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

OPERATIONS_BOUND = 128
"""Conditions, or edits, that one transaction may have."""

REQUEST_BYTES_BOUND = 1_500_000
"""Bytes of the keys and values of one transaction."""

PAGE_KEYS = 256
"""Keys that a page has at most unless the reader says otherwise."""

_EDIT_BYTES = 64


class KeyCondition(NamedTuple):
    """`key` was last put in `revision` (0: it is absent), and has `value` where that is given."""

    key: str
    revision: int
    value: str | None = None


class PutKey(NamedTuple):
    """Give `key` a value, which ends with `lease` (0: it stays)."""

    key: str
    value: str
    lease: int = 0


class Delete(NamedTuple):
    """Remove `key`, whether it is there or not."""

    key: str


class KeyValue(NamedTuple):
    """A key as it is: its value, the revision in which it got it, and the lease it ends with (0: none)."""

    key: str
    value: str
    revision: int
    lease: int = 0


class KeyChange(NamedTuple):
    """What became of a key in `revision`; `value` is None where it was removed."""

    key: str
    value: str | None
    revision: int
    lease: int = 0


# Requests


class GrantLease(NamedTuple):
    """Make a lease that ends `ttl_s` whole seconds after it was last kept."""

    ttl_s: int


class KeepLease(NamedTuple):
    """Have a lease last its whole time again."""

    lease: int


class RevokeLease(NamedTuple):
    """End a lease now, with the keys that end with it."""

    lease: int


class Transaction(NamedTuple):
    """Do all `edits` where all `conditions` hold, else none.

    `is_repeatable` says that doing it twice is as doing it once, so that it may be sent again where no answer came.
    ValueError from `check` where it is larger than stores take.
    """

    conditions: tuple[KeyCondition, ...]
    edits: tuple[PutKey | Delete, ...]
    is_repeatable: bool = False


class ReadPage(NamedTuple):
    """Tell the keys that begin with `prefix`, in their order, those that follow `after` (all where it is '').

    `revision` is the one they are told as of; 0 stands for the present.
    """

    prefix: str
    after: str = ""
    revision: int = 0
    limit: int = PAGE_KEYS


Request: TypeAlias = GrantLease | KeepLease | RevokeLease | Transaction | ReadPage


# Replies


class LeaseGranted(NamedTuple):
    """`lease` lasts `ttl_s` seconds, which may be more than was asked for."""

    lease: int
    ttl_s: int


class LeaseKept(NamedTuple):
    """`lease` lasts `ttl_s` seconds from when the store said so."""

    lease: int
    ttl_s: int


class LeaseGone(NamedTuple):
    """There is no such lease: nothing was done."""


class LeaseRevoked(NamedTuple):
    """The lease is no more, nor what ended with it."""


class Committed(NamedTuple):
    """All conditions held, all edits were done, in `revision`."""

    revision: int


class ConditionFailed(NamedTuple):
    """A condition did not hold and nothing was done; `held` has the keys of the conditions that are there."""

    revision: int
    held: tuple[KeyValue, ...]


class KeyPage(NamedTuple):
    """Keys as of `revision`, which the next page is to be asked for where there is more."""

    revision: int
    held: tuple[KeyValue, ...]
    has_more: bool


class Compacted(NamedTuple):
    """What was asked for is older than `revision` (0 where the store does not say), and not known any more."""

    revision: int


class Silent(NamedTuple):
    """No answer came in time, or one that says nothing: what was asked for may have been done or not."""

    why: str


Reply: TypeAlias = (
    LeaseGranted | LeaseKept | LeaseGone | LeaseRevoked | Committed | ConditionFailed | KeyPage | Compacted | Silent
)


# Watches


class KeyChanges(NamedTuple):
    """Changes in the order of their revisions; all of a revision are in one of these. `revision` is the last one."""

    revision: int
    changes: tuple[KeyChange, ...]


WatchReport: TypeAlias = KeyChanges | Compacted | Silent
"""What a watch tells; after `Compacted` and `Silent` it tells nothing more."""


class Watch(Protocol):
    """What tells the changes of some keys, none of them twice and none left out."""

    def take(self, wait_s: float) -> WatchReport | None:
        """Return what there is to tell, waiting for it at most `wait_s` seconds; None where nothing came."""

    def close(self) -> None:
        """Tell nothing more."""


class Engine(Protocol):
    """A store as one thread uses it."""

    def ask(self, request: Request) -> Reply:
        """Have a request answered, within some seconds."""

    def watch(self, prefix: str, after_revision: int) -> Watch:
        """Have the changes told of keys that begin with `prefix`, those in later revisions than this one."""


def check(transaction: Transaction) -> Transaction:
    """Return a transaction as it is; ValueError where it has too much, or two edits of one key."""
    if max(len(transaction.conditions), len(transaction.edits)) > OPERATIONS_BOUND:
        raise ValueError(f"a transaction has more than {OPERATIONS_BOUND} conditions or edits")
    if len({edit.key for edit in transaction.edits}) < len(transaction.edits):
        raise ValueError("a transaction edits a key twice")
    if sum(map(size_bytes, transaction.edits)) > REQUEST_BYTES_BOUND:
        raise ValueError(f"a transaction is larger than {REQUEST_BYTES_BOUND} bytes")
    return transaction


def size_bytes(edit: PutKey | Delete) -> int:
    """Return what an edit counts for in a request, in bytes."""
    value = edit.value if type(edit) is PutKey else ""
    return len(edit.key.encode()) + len(value.encode()) + _EDIT_BYTES


def end_of(prefix: str) -> str:
    """Return the first key after all that begin with a prefix of ASCII characters."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
