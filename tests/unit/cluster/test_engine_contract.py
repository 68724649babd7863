"""What every store does, the twin in memory and etcd alike."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import pytest

from controller.cluster.engine import (
    OPERATIONS_BOUND,
    REQUEST_BYTES_BOUND,
    Committed,
    Compacted,
    ConditionFailed,
    Delete,
    Engine,
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
    RevokeLease,
    Silent,
    Transaction,
    Watch,
)

WAIT_S = 20.0
T = TypeVar("T")


def a(kind: type[T], reply: object) -> T:
    assert type(reply) is kind, reply
    return reply


def put(engine: Engine, *edits: PutKey | Delete) -> int:
    return a(Committed, engine.ask(Transaction((), edits, True))).revision


def page(engine: Engine, prefix: str, **particulars: object) -> KeyPage:
    return a(KeyPage, engine.ask(ReadPage(prefix, **particulars)))


def told(watch: Watch, count: int) -> tuple[KeyChange, ...]:
    changes: tuple[KeyChange, ...] = ()
    while len(changes) < count:
        changes += a(KeyChanges, watch.take(WAIT_S)).changes
    return changes


def test_a_transaction_compares_all_that_it_says_and_then_does_all(stored, prefix):
    engine, other = stored.engine(), stored.engine()
    first, second = f"{prefix}a", f"{prefix}b"
    both = Transaction((KeyCondition(first, 0), KeyCondition(second, 0)), (PutKey(first, "1"), PutKey(second, "1")))
    revision = a(Committed, engine.ask(both)).revision
    assert other.ask(both) == ConditionFailed(
        revision, (KeyValue(first, "1", revision), KeyValue(second, "1", revision))
    )
    one = Transaction(
        (KeyCondition(first, revision), KeyCondition(second, revision)), (PutKey(first, "2"), Delete(second))
    )
    later = a(Committed, other.ask(one)).revision
    assert later == revision + 1
    assert engine.ask(one) == ConditionFailed(later, (KeyValue(first, "2", later),))
    assert page(engine, prefix) == KeyPage(later, (KeyValue(first, "2", later),), False)


def test_a_condition_may_ask_for_a_value(stored, prefix):
    engine, key = stored.engine(), f"{prefix}epoch"
    revision = put(engine, PutKey(key, "7"))
    reply = engine.ask(Transaction((KeyCondition(key, revision, "8"),), (PutKey(key, "9"),)))
    assert reply == ConditionFailed(revision, (KeyValue(key, "7", revision),))
    a(Committed, engine.ask(Transaction((KeyCondition(key, revision, "7"),), (PutKey(key, "9"),))))
    a(Committed, engine.ask(Transaction((KeyCondition(f"{prefix}none", 0, ""),), (PutKey(key, "10"),))))


def test_what_removes_nothing_changes_no_revision(stored, prefix):
    engine = stored.engine()
    revision = put(engine, PutKey(f"{prefix}a", ""))
    assert put(engine, Delete(f"{prefix}b")) == revision
    assert page(engine, prefix).held == (KeyValue(f"{prefix}a", "", revision),)


def test_a_prefix_is_read_in_pages_as_of_one_revision(stored, prefix):
    engine = stored.engine()
    keys = [f"{prefix}k{number:03}" for number in range(10)]
    revision = put(engine, *(PutKey(key, "1") for key in keys))
    first = page(engine, prefix, limit=4)
    assert (first.revision, first.has_more) == (revision, True)
    put(engine, PutKey(keys[5], "2"), Delete(keys[6]), PutKey(f"{prefix}k9999", "2"))
    held = [*first.held]
    while first.has_more:
        first = page(engine, prefix, after=held[-1].key, revision=revision, limit=4)
        held += first.held
    assert held == [KeyValue(key, "1", revision) for key in keys]
    assert [entry.key for entry in page(engine, prefix).held] == [*keys[:6], *keys[7:], f"{prefix}k9999"]


def test_text_of_any_script_comes_back(stored, prefix):
    engine, text = stored.engine(), '{"name": "Zürich 交换机 \\u0000"}'
    revision = put(engine, PutKey(f"{prefix}ä", text))
    assert page(engine, prefix).held == (KeyValue(f"{prefix}ä", text, revision),)


def test_keys_end_with_their_lease(stored, prefix):
    engine = stored.engine()
    lease = a(LeaseGranted, engine.ask(GrantLease(60)))
    assert lease.ttl_s == 60
    revision = put(engine, PutKey(f"{prefix}mine", "1", lease.lease), PutKey(f"{prefix}other", "1"))
    watch = engine.watch(prefix, revision)
    assert engine.ask(KeepLease(lease.lease)) == LeaseKept(lease.lease, 60)
    assert engine.ask(RevokeLease(lease.lease)) == LeaseRevoked()
    assert told(watch, 1) == (KeyChange(f"{prefix}mine", None, revision + 1),)
    assert [entry.key for entry in page(engine, prefix).held] == [f"{prefix}other"]
    assert engine.ask(KeepLease(lease.lease)) == LeaseGone() == engine.ask(RevokeLease(lease.lease))
    assert engine.ask(Transaction((), (PutKey(f"{prefix}mine", "1", lease.lease),))) == LeaseGone()
    watch.close()


def test_a_lease_that_nobody_keeps_ends(stored, prefix):
    engine = stored.engine()
    lease = a(LeaseGranted, engine.ask(GrantLease(1))).lease
    revision = put(engine, PutKey(f"{prefix}mine", "1", lease))
    watch = stored.engine().watch(prefix, revision - 1)
    assert told(watch, 2) == (
        KeyChange(f"{prefix}mine", "1", revision, lease),
        KeyChange(f"{prefix}mine", None, revision + 1),
    )
    assert engine.ask(KeepLease(lease)) == LeaseGone()
    watch.close()


def test_a_put_without_the_lease_outlasts_it(stored, prefix):
    engine = stored.engine()
    lease = a(LeaseGranted, engine.ask(GrantLease(60))).lease
    put(engine, PutKey(f"{prefix}a", "1", lease), PutKey(f"{prefix}b", "1", lease))
    put(engine, PutKey(f"{prefix}a", "2"))
    engine.ask(RevokeLease(lease))
    assert [(entry.key, entry.lease) for entry in page(engine, prefix).held] == [(f"{prefix}a", 0)]


def test_a_watch_tells_what_changed_since_and_what_changes_then(stored, prefix):
    engine = stored.engine()
    before = put(engine, PutKey(f"{prefix}a", "1"))
    second = put(engine, PutKey(f"{prefix}b", "1"), PutKey(f"{prefix}a", "2"), PutKey(f"/elsewhere{prefix}", "1"))
    watch = engine.watch(prefix, before)
    assert sorted(told(watch, 2)) == [KeyChange(f"{prefix}a", "2", second), KeyChange(f"{prefix}b", "1", second)]
    assert watch.take(0) is None
    third = put(engine, Delete(f"{prefix}b"))
    assert told(watch, 1) == (KeyChange(f"{prefix}b", None, third),)
    watch.close()


def test_all_changes_of_a_revision_are_told_together(stored, prefix):
    engine = stored.engine()
    watch = engine.watch(prefix, page(engine, prefix).revision)
    revisions = [
        put(engine, *(PutKey(f"{prefix}{number:03}", str(turn)) for number in range(OPERATIONS_BOUND)))
        for turn in range(5)
    ]
    reports: list[KeyChanges] = []
    while sum(len(report.changes) for report in reports) < 5 * OPERATIONS_BOUND:
        reports.append(a(KeyChanges, watch.take(WAIT_S)))
    assert {change.revision for report in reports for change in report.changes} == set(revisions)
    for report in reports:
        for revision in {change.revision for change in report.changes}:
            assert sum(change.revision == revision for change in report.changes) == OPERATIONS_BOUND
    assert all(former.revision < latter.revision for former, latter in pairwise(reports))
    watch.close()


def test_a_watch_tells_no_part_of_what_was_compacted(stored, prefix):
    """What was deleted in the very revision up to which the past is forgotten would be left out."""
    engine, key = stored.engine(), f"{prefix}a"
    put = engine.ask(Transaction((), (PutKey(key, "1"),)))
    engine.ask(Transaction((), (Delete(key),)))
    stored.compact()
    watch = engine.watch(prefix, put.revision)
    assert type(watch.take(WAIT_S)) is Compacted
    watch.close()


def test_what_was_compacted_is_said_to_be(stored, prefix):
    engine = stored.engine()
    before = put(engine, PutKey(f"{prefix}a", "1"))
    for turn in range(3):
        put(engine, PutKey(f"{prefix}a", str(turn)))
    stored.compact()
    watch = engine.watch(prefix, before - 1)
    a(Compacted, watch.take(WAIT_S))
    assert watch.take(0) is None
    a(Compacted, engine.ask(ReadPage(prefix, revision=before)))
    assert [entry.value for entry in page(engine, prefix).held] == ["2"]


@pytest.mark.parametrize(
    "transaction",
    [
        Transaction((), tuple(PutKey(f"/k{number}", "") for number in range(OPERATIONS_BOUND + 1))),
        Transaction(tuple(KeyCondition(f"/k{number}", 0) for number in range(OPERATIONS_BOUND + 1)), ()),
        Transaction((), (PutKey("/a", ""), Delete("/a"))),
        Transaction((), (PutKey("/a", "x" * REQUEST_BYTES_BOUND),)),
    ],
    ids=["edits", "conditions", "a key twice", "bytes"],
)
def test_a_transaction_that_no_store_takes_is_a_fault_of_who_asks(stored, transaction):
    with pytest.raises(ValueError, match="transaction"):
        stored.engine().ask(transaction)


def test_the_largest_transaction_is_taken(stored, prefix):
    engine = stored.engine()
    value = "x" * (REQUEST_BYTES_BOUND // OPERATIONS_BOUND - 200)
    put(engine, *(PutKey(f"{prefix}{number:03}", value) for number in range(OPERATIONS_BOUND)))
    held: list[KeyValue] = []
    while not held or len(held) < OPERATIONS_BOUND:
        held += page(engine, prefix, after=held[-1].key if held else "").held
    assert {entry.value for entry in held} == {value}
    put(engine, *(Delete(entry.key) for entry in held))


def test_a_store_that_was_set_up_anew_has_nothing_and_ends_watches(stored, prefix):
    engine = stored.engine()
    revision = put(engine, *(PutKey(f"{prefix}{number}", "1") for number in range(3)))
    watch = engine.watch(prefix, revision)
    stored.empty()
    a(Silent, watch.take(WAIT_S))
    fresh = stored.engine()
    assert page(fresh, prefix).held == ()
    a(Silent, fresh.watch(prefix, revision + 1000).take(WAIT_S))
