"""A follower is told all that the leader's logs have, in order, and knows when that is so."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

pytest.importorskip("os_ken")

from apps.cluster.lead import Followed
from apps.cluster.log_feed import ENTRIES_AT_ONCE, LogFeed
from controller.cluster.engine import Committed, KeyCondition, PutKey, Transaction
from controller.cluster.journal import commits
from controller.cluster.keys import Keys
from controller.cluster.versions import RECORDS
from controller.log import LogBatch, LogEntry, LogEntryKind, Row
from patience import wait_until

WAIT_S = 20.0


class Feed:
    """A feed of a store, and what it handed over."""

    def __init__(self, stored, prefix: str) -> None:
        self.fabric = prefix.strip("/").replace("/", "-")
        self.keys = Keys(self.fabric)
        self.writer = stored.engine()
        self.copy: dict[str, LogEntry] = {}
        self.handed: list[Followed] = []
        self.refused: list[int] = []
        link = SimpleNamespace(ask=stored.engine().ask, watch=stored.engine().watch)
        self.link = link
        self.feed = LogFeed(link, self.fabric, self._hand, self.refused.append)

    def _hand(self, followed: Followed) -> None:
        self.handed.append(followed)
        for each in (*followed.journal, *followed.hosts):
            if each.text is None:
                self.copy.pop(each.key, None)
            else:
                self.copy[each.key] = each

    def write(self, revision: int, *entries: LogEntry, prefix: str = "", version: int = RECORDS) -> int:
        """PutKey entries into a log; return the store's revision with them."""
        batch, last = LogBatch({each.key: Row(revision, each) for each in entries}, None), 0
        for transaction in commits(
            batch, prefix or self.keys.journal, KeyCondition(f"{self.keys.root}no", 0), version
        ):
            reply = self.writer.ask(transaction)
            assert type(reply) is Committed
            last = reply.revision
        return last


@pytest.fixture
def told(stored, prefix: str):
    feed = Feed(stored, prefix)
    yield feed
    feed.feed.close()


def entry(key: str, value: object) -> LogEntry:
    return LogEntry.of_record(LogEntryKind.OBSERVATION, key, None if value is None else {"v": value})


def test_all_that_there_is_and_then_what_is_written(told: Feed):
    many = [entry(f"k/{number:04}", number) for number in range(ENTRIES_AT_ONCE + 50)]
    host = entry("host/0/a", 1)
    told.write(1, *many)
    revision = told.write(1, host, prefix=told.keys.hosts)
    told.feed.start()
    assert told.feed.wait(revision, WAIT_S)
    assert told.copy == {each.key: each for each in (*many, host)}
    assert all(len(each.journal) + len(each.hosts) <= ENTRIES_AT_ONCE for each in told.handed)
    assert [each for each in told.handed if each.hosts] == [Followed((), (host,))]
    revision = told.write(7, entry("k/0001", "new"), entry("k/0002", None))
    assert told.feed.wait(revision, WAIT_S)
    assert told.copy["k/0001"] == entry("k/0001", "new")
    assert "k/0002" not in told.copy
    assert (told.feed.journal.write, told.feed.hosts.write) == (7, 1)


def test_a_write_of_anything_else_of_the_fabric_says_that_what_was_before_is_told(told: Feed):
    told.feed.start()
    told.write(1, entry("k", 1))
    reply = told.writer.ask(Transaction((), (PutKey(told.keys.policy, "digest"),), True))
    assert type(reply) is Committed
    assert told.feed.wait(reply.revision, WAIT_S)
    assert told.copy == {"k": entry("k", 1)}
    assert not told.feed.wait(reply.revision + 1, 0.0)


def test_a_store_that_forgot_what_was_written_meanwhile_is_read_anew(told: Feed, stored):
    told.feed.start()
    assert told.feed.wait(told.write(1, entry("gone", 1), entry("kept", 1)), WAIT_S)
    told.write(2, entry("gone", None), entry("new", 2))
    stored.compact()
    assert told.feed.wait(told.write(3, entry("last", 3)), WAIT_S)
    assert set(told.copy) == {"kept", "new", "last"}


def test_records_of_the_version_before_are_read_beside_those_of_this_one(told: Feed):
    told.write(1, entry("old", 1), version=RECORDS - 1)
    revision = told.write(2, entry("new", 2))
    told.feed.start()
    assert told.feed.wait(revision, WAIT_S)
    assert told.copy == {"old": entry("old", 1), "new": entry("new", 2)}
    assert told.refused == []


@pytest.mark.parametrize("when", ["before", "later"])
def test_records_two_versions_too_late_are_refused_and_nothing_more_is_told(told: Feed, when: str):
    if when == "later":
        told.feed.start()
        assert told.feed.wait(told.write(1, entry("known", 1)), WAIT_S)
    told.write(2, entry("unknown", 2), version=RECORDS + 2)
    if when == "before":
        told.feed.start()
    wait_until(lambda: told.refused, os.getpid(), WAIT_S)
    revision = told.write(3, entry("known", 3))
    assert not told.feed.wait(revision, 0.3)
    assert told.refused == [RECORDS + 2]
    assert told.copy == ({"known": entry("known", 1)} if when == "later" else {})


@pytest.mark.parametrize("when", ["before", "later"])
def test_records_one_version_too_late_are_read_when_they_are_written_anew(told: Feed, when: str):
    if when == "later":
        told.feed.start()
        assert told.feed.wait(told.write(1, entry("known", 1), entry("gone", 1)), WAIT_S)
    late = told.write(2, entry("unknown", 2), entry("known", 2), version=RECORDS + 1)
    if when == "before":
        told.feed.start()
    assert not told.feed.wait(late, 0.3)
    revision = told.write(3, entry("unknown", 2), entry("known", 3), entry("gone", None))
    assert told.feed.wait(revision, WAIT_S)
    assert told.copy == {"unknown": entry("unknown", 2), "known": entry("known", 3)}
    assert told.refused == []


def test_records_one_version_too_late_that_nobody_writes_anew_are_refused(told: Feed):
    feed = LogFeed(told.link, told.fabric, told.handed.append, told.refused.append, later_s=0.2)
    late = told.write(2, entry("unknown", 2), version=RECORDS + 1)
    feed.start()
    wait_until(lambda: told.refused, os.getpid(), WAIT_S)
    assert told.refused == [RECORDS + 1]
    assert not feed.wait(late, 0.0)
