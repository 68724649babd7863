"""The journal in a shared store: what was confirmed is there, in order, fenced; replicas have what the log has."""

from __future__ import annotations

import logging
import queue
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.cluster.engine_log import TRIES, EngineLog
from controller.cluster import journal
from controller.cluster.engine import (
    Committed,
    Compacted,
    ConditionFailed,
    KeyChanges,
    KeyCondition,
    KeyPage,
    KeyValue,
    PutKey,
    ReadPage,
    Reply,
    Request,
    Silent,
    Transaction,
)
from controller.cluster.journal import Replica, read_record, record_text
from controller.cluster.keys import Keys
from controller.cluster.memory_engine import MemoryEngine, MemoryStore, RequestFault
from controller.log import LogBatch, LogEntry, LogEntryKind, LogPart, MemoryLog, Row, Waiting, WriteLog

WAIT_S = 20.0
FABRIC = "f"
KEYS = Keys(FABRIC)


def entry(key: str, value: object) -> LogEntry:
    return LogEntry.of_record(LogEntryKind.DECISION, key, None if value is None else {"v": value})


def batch(revision: int, *entries: LogEntry, sweep_below: int | None = None) -> LogBatch:
    return LogBatch({each.key: Row(revision, each) for each in entries}, sweep_below)


class Journal:
    """A journal in a fabric of its own, and how often its fence was refused."""

    def __init__(self, engine, fabric: str, epoch: str = "1") -> None:
        self.engine = engine
        self.keys = Keys(fabric)
        reply = engine.ask(Transaction((), (PutKey(self.keys.epoch, epoch),), True))
        assert type(reply) is Committed
        self.refusals: list[str] = []
        fence = KeyCondition(self.keys.epoch, reply.revision, epoch)
        self.log = EngineLog(engine, fabric, fence, lambda: self.refusals.append(epoch))


@pytest.fixture
def kept(stored, prefix: str) -> Journal:
    return Journal(stored.engine(), prefix.strip("/").replace("/", "-"))


@pytest.fixture
def memory() -> Journal:
    return Journal(MemoryEngine(MemoryStore()), FABRIC)


def test_what_was_committed_is_read_in_the_order_in_which_it_was_written(kept: Journal):
    assert kept.log.read() == (0, ())
    assert kept.log.commit(batch(1, entry("group/b", 1), entry("group/a", 1)))
    assert kept.log.commit(batch(2, entry("group/a", 2), entry("link/1-2", "ü")))
    assert kept.log.commit(batch(3, entry("group/c", None), entry("operator", 1)))
    assert kept.log.read() == (
        3,
        (entry("group/b", 1), entry("group/a", 2), entry("link/1-2", "ü"), entry("operator", 1)),
    )
    assert kept.log.commit(batch(4, entry("group/b", None), entry("link/1-2", None)))
    assert kept.log.read() == (3, (entry("group/a", 2), entry("operator", 1)))


def test_a_batch_of_any_size_is_committed_and_read_in_pages(kept: Journal):
    entries = [entry(f"group/{number:04}", "x" * 2000) for number in range(600)]
    assert kept.log.commit(batch(1, *entries))
    assert kept.log.read() == (1, tuple(entries))


def test_what_was_not_written_anew_is_no_more(kept: Journal):
    assert kept.log.commit(batch(1, *(entry(f"old/{number:03}", 1) for number in range(300))))
    assert kept.log.commit(batch(2, entry("new", 1)))
    assert kept.log.commit(batch(3, entry("newer", 1), sweep_below=2))
    assert kept.log.read() == (3, (entry("new", 1), entry("newer", 1)))


def test_who_leads_no_more_writes_nothing(kept: Journal):
    assert kept.log.commit(batch(1, entry("a", 1)))
    kept.engine.ask(Transaction((), (PutKey(kept.keys.epoch, "2"),), True))
    assert not kept.log.commit(batch(2, entry("a", 2)))
    assert not kept.log.commit(batch(3, sweep_below=3))
    assert kept.log.trouble is not None and "leads it no more" in kept.log.trouble
    assert kept.refusals == ["1", "1"] and kept.log.read() == (1, (entry("a", 1),))


def test_an_epoch_of_the_same_number_in_a_store_set_up_anew_is_another_one(memory: Journal):
    store = memory.engine.store
    for _ in range(5):
        memory.engine.ask(Transaction((), (PutKey("/else", ""),), True))
    store.empty()
    memory.engine.ask(Transaction((), (PutKey(memory.keys.epoch, "1"),), True))
    memory.engine.ask(Transaction((), (PutKey(memory.keys.epoch, "1"),), True))
    assert not memory.log.commit(batch(1, entry("a", 1))) and memory.refusals == ["1"]


@pytest.mark.parametrize("fault", list(RequestFault))
def test_where_the_store_is_silent_nothing_is_confirmed_and_it_may_be_tried_again(
    memory: Journal, fault: RequestFault
):
    memory.engine.fault = fault
    assert not memory.log.commit(batch(1, entry("a", 1), entry("b", 1)))
    assert (memory.log.trouble or "").startswith("the journal of fabric f cannot be written (The store")
    with pytest.raises(TimeoutError):
        memory.log.read()
    memory.engine.fault = None
    assert memory.log.commit(batch(1, entry("a", 1), entry("b", 1))) and memory.log.trouble is None
    assert memory.log.read() == (1, (entry("a", 1), entry("b", 1)))


def test_a_request_without_an_answer_is_sent_again(memory: Journal, monkeypatch: pytest.MonkeyPatch):
    asked, ask = [], memory.engine.ask

    def lossy(request):
        asked.append(request)
        memory.engine.fault = RequestFault.REPLY_LOST if len(asked) < TRIES else None
        return ask(request)

    monkeypatch.setattr(memory.engine, "ask", lossy)
    assert memory.log.commit(batch(1, entry("a", 1)))
    assert len(asked) == TRIES and len(set(asked)) == 1


class Late:
    """A store that does a request only when a later one was answered, though nobody waits for it any more."""

    def __init__(self, engine: MemoryEngine) -> None:
        self.engine = engine
        self.late: Request | None = None
        self.is_late = False

    def ask(self, request: Request) -> Reply:
        if self.is_late:
            self.late, self.is_late = request, False
            return Silent("The store does not answer in time.")
        return self.engine.ask(request)


@pytest.mark.parametrize("when", ["before it is asked anew", "after a later write", "never"])
def test_what_a_store_does_late_undoes_no_later_write(memory: Journal, when: str):
    late = Late(memory.engine)
    log = EngineLog(late, FABRIC, memory.log._fence, lambda: memory.refusals.append(""))
    assert log.commit(batch(1, entry("a", 0)))
    late.is_late = True
    if when == "before it is asked anew":
        late.engine = memory.engine
        ask = late.ask

        def at_once(request: Request) -> Reply:
            late_one, late.late = late.late, None
            if late_one is not None:
                assert type(memory.engine.ask(late_one)) is Committed
            return ask(request)

        late.ask = at_once  # type: ignore[method-assign]
    assert log.commit(batch(2, entry("a", 1)))
    assert log.commit(batch(3, entry("a", 2), entry("b", 1)))
    if when == "after a later write":
        assert late.late is not None and type(memory.engine.ask(late.late)) is ConditionFailed
    assert log.commit(batch(4, entry("c", 1)))
    assert log.read() == (4, (entry("a", 2), entry("b", 1), entry("c", 1))) and not memory.refusals


def test_an_entry_that_no_store_takes_is_said_to_be_one(memory: Journal):
    assert not memory.log.commit(batch(1, entry("a", "x" * 2_000_000)))
    assert memory.log.trouble is not None and "larger than" in memory.log.trouble


@pytest.mark.parametrize("text", ["", "x", "decision", "decision 1", "decision 1 ", "x 1 {}", "decision one {}"])
def test_what_makes_no_sense_is_left_aside_and_counted(memory: Journal, text: str):
    memory.engine.ask(Transaction((), (PutKey(f"{KEYS.journal}bad", text),), True))
    memory.log.commit(batch(1, entry("a", 1)))
    assert memory.log.read() == (1, (entry("a", 1),))
    replica = Replica(KEYS.journal)
    assert replica.read(memory.engine.ask(replica.begin())) == (entry("a", 1),) and replica.faulty == 1


def test_a_record_is_read_as_it_was_written():
    row = Row(7, LogEntry.of_record(LogEntryKind.OBSERVATION, "group/1/2", {"a b": [1, None, "ü"]}))
    assert row.entry.text is not None
    held = KeyValue(f"{KEYS.journal}group/1/2", record_text(row, row.entry.text), 9)
    assert read_record(held, KEYS.journal) == row


def test_a_large_batch_is_divided_by_what_a_store_answers_in_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(journal, "BUNDLE_BYTES", 1000)
    entries = [entry(f"k{number}", "x" * 300) for number in range(7)]
    parts = [*journal.commits(batch(1, *entries), KEYS.journal, KeyCondition("/e", 1))]
    assert [len(part.edits) for part in parts] == [2, 2, 2, 1] and all(part.is_repeatable for part in parts)


# Replicas


def read_all(replica: Replica, engine: MemoryEngine, limit: int) -> tuple[LogEntry, ...]:
    asked: ReadPage | tuple[LogEntry, ...] = replica.begin()
    while isinstance(asked, ReadPage):
        page = engine.ask(asked._replace(limit=limit))
        assert type(page) is KeyPage
        asked = replica.read(page)
    return asked


WRITES = st.lists(
    st.tuples(
        st.dictionaries(
            st.sampled_from([f"k/{number}" for number in range(12)]), st.none() | st.integers(0, 9), max_size=6
        ),
        st.sampled_from(LogPart),
        st.sampled_from(["follow", "wait", "compact", "read anew"]),
    ),
    max_size=25,
)


@given(WRITES, st.integers(1, 5))
def test_a_replica_has_what_the_log_has(writes, limit: int):
    store = MemoryStore()
    memory = Journal(MemoryEngine(store), FABRIC)
    engine, waiting, oracle = memory.engine, Waiting(), MemoryLog()
    replica, copy = Replica(KEYS.journal), {}

    def take(entries: tuple[LogEntry, ...]) -> None:
        for each in entries:
            copy.pop(each.key, None)
            if each.value is not None:
                copy[each.key] = each

    take(read_all(replica, engine, limit))
    watch = engine.watch(KEYS.journal, replica.revision)
    for values, part, then in writes:
        write = WriteLog(tuple(entry(key, value) for key, value in values.items()), part)
        waiting.take(write)
        oracle.write(write)
        assert memory.log.commit(waiting.batch())
        if then == "compact":
            store.compact()
        if then == "read anew":
            take(read_all(replica, engine, limit))
            watch = engine.watch(KEYS.journal, replica.revision)
        elif then == "follow":
            told = watch.take(0)
            if type(told) is KeyChanges:
                take(replica.follow(told))
            elif type(told) is Compacted:
                take(read_all(replica, engine, limit))
                watch = engine.watch(KEYS.journal, replica.revision)
    take(read_all(replica, engine, limit))
    assert copy == {each.key: each for each in oracle.read()}
    assert {each.key for each in memory.log.read()[1]} == set(copy) and replica.faulty == 0


def test_a_replica_reads_as_of_one_revision_and_follows_from_there(memory: Journal):
    assert memory.log.commit(batch(1, *(entry(f"k/{number}", 1) for number in range(9))))
    replica = Replica(KEYS.journal)
    asked = replica.begin()._replace(limit=4)
    while isinstance(asked, ReadPage):
        page = memory.engine.ask(asked._replace(limit=4))
        assert memory.log.commit(batch(2, entry("k/7", 2), entry("k/8", None)))
        asked = replica.read(page)
    assert asked == tuple(entry(f"k/{number}", 1) for number in range(9))
    told = memory.engine.watch(KEYS.journal, replica.revision).take(0)
    gone = LogEntry(LogEntryKind.OBSERVATION, "k/8", None)
    assert replica.follow(told) == (entry("k/7", 2), gone, entry("k/7", 2), entry("k/7", 2))
    assert replica.revision == memory.engine.store.revision


def test_the_keeper_answers_an_operator_when_the_store_has_it(stored, prefix: str):
    pytest.importorskip("os_ken")
    from apps.log_keeper import LogKeeper

    kept = Journal(stored.engine(), prefix.strip("/").replace("/", "-"))
    work: queue.Queue = queue.Queue()
    threads: list = []
    app = SimpleNamespace(
        threads=threads,
        is_active=True,
        reactor=SimpleNamespace(has_begun=True),
        later=lambda action: work.put(action) or True,
        logger=logging.getLogger("log"),
    )
    keeper = LogKeeper(app, kept.log, lambda: None)  # type: ignore[arg-type, return-value]
    assert keeper.read() == ()
    keeper.start()
    answers: list[bool] = []
    for number in range(3):
        if number == 2:
            stored.engine().ask(Transaction((), (PutKey(kept.keys.epoch, "2"),), True))
        keeper.write(WriteLog((entry(f"operator/{number}", number),)))
        keeper.acknowledge(answers.append)
        while len(answers) <= number:
            work.get(timeout=WAIT_S)()
    assert answers == [True, True, False] and kept.refusals
    assert keeper.trouble is not None and "leads it no more" in keeper.trouble
    keeper.close()
    threads[0].join(WAIT_S)
    assert [each.key for each in kept.log.read()[1]] == ["operator/0", "operator/1"]
