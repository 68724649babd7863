"""The change log: whoever follows it knows what there is, whatever happens meanwhile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.snapshot import log as log_module
from controller.snapshot.log import ChangeLog, DocumentLog, changes


class Reader:
    """Follows one section as the rules of the feed have it."""

    def __init__(self) -> None:
        self.version = 0
        self.known: dict[str, dict[str, int]] = {}

    def take(self, delta: dict) -> bool:
        if delta["whole"]:
            self.known = {}
        self.known |= delta["put"]
        for ident in delta["remove"]:
            self.known.pop(ident, None)
        self.version = delta["version"]
        return delta["more"]


def section_of(world: dict[int, int]) -> DocumentLog[int]:
    return DocumentLog(lambda: list(world), lambda key: {"n": world[key]} if key in world else None)


def read_all(section: DocumentLog[int], reader: Reader, limit: int = 3) -> int:
    questions = 1
    while reader.take(section.changes(reader.version, limit)):
        questions += 1
        assert questions < 1000
    return questions


class Following(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world: dict[int, int] = {}
        self.section = section_of(self.world)
        self.readers = [Reader(), Reader(), Reader()]

    @rule(key=st.integers(0, 12), value=st.integers(0, 3))
    def put(self, key: int, value: int) -> None:
        self.world[key] = value
        self.section.touch(key)

    @rule(key=st.integers(0, 12))
    def drop(self, key: int) -> None:
        self.world.pop(key, None)
        self.section.touch(key)

    @rule()
    def forget(self) -> None:
        self.section.log.forget()

    @rule(which=st.integers(0, 2), limit=st.integers(1, 5))
    def page(self, which: int, limit: int) -> None:
        self.readers[which].take(self.section.changes(self.readers[which].version, limit))

    @precondition(lambda self: self.world)
    @rule(which=st.integers(0, 2))
    def follow(self, which: int) -> None:
        reader = self.readers[which]
        read_all(self.section, reader)
        assert reader.known == {str(key): {"n": value} for key, value in self.world.items()}

    @invariant()
    def what_is_read_in_the_end_is_what_there_is(self) -> None:
        for reader in self.readers:
            copy = Reader()
            copy.version, copy.known = reader.version, dict(reader.known)
            read_all(self.section, copy)
            assert copy.known == {str(key): {"n": value} for key, value in self.world.items()}


TestFollowing = Following.TestCase


def test_only_what_changed_is_read_again():
    world = dict.fromkeys(range(100), 0)
    section, reader = section_of(world), Reader()
    read_all(section, reader, limit=40)
    world[7] = 1
    section.touch(7)
    section.touch(7)
    del world[9]
    section.touch(9)
    delta = section.changes(reader.version, 40)
    assert delta == {
        "version": delta["version"], "whole": False, "put": {"7": {"n": 1}}, "remove": ["9"], "more": False
    }  # fmt: skip
    again = section.changes(delta["version"], 40)
    assert again == {"version": delta["version"], "whole": False, "put": {}, "remove": [], "more": False}


def test_a_log_is_bounded_and_an_overflow_begins_anew(monkeypatch):
    monkeypatch.setattr(log_module, "SLACK", 10)
    world: dict[int, int] = {}
    section, reader = section_of(world), Reader()
    read_all(section, reader)
    for key in range(1000):
        section.touch(key)
    world[5] = 5
    assert len(section.log._log) <= 10
    delta = section.changes(reader.version, 100)
    assert delta["whole"]
    assert delta["put"] == {"5": {"n": 5}}


def test_nothing_is_noted_before_anyone_reads():
    log: ChangeLog[int] = ChangeLog()
    for key in range(10):
        log.touch(key)
    assert log.version == 1
    assert log.since(0, 10, lambda: [1]).keys == (1,)
    log.touch(2)
    assert log.since(log.version - 1, 10, lambda: [1]).keys == (2,)


def test_a_version_of_the_future_begins_anew():
    section = section_of({1: 1})
    read_all(section, Reader())
    assert section.changes(10**9, 5)["whole"]


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6), limit=st.integers(1, 40))
def test_sections_share_an_answer_and_none_starves(sizes: list[int], limit: int):
    sections = {str(n): section_of(dict.fromkeys(range(size), 0)) for n, size in enumerate(sizes)}
    answer = changes(sections, {**dict.fromkeys(sections, 0), "unknown": 3}, limit)
    assert list(answer) == list(sections)
    assert sum(len(delta["put"]) for delta in answer.values()) <= max(limit, len(sizes))
    for size, delta in zip(sizes, answer.values(), strict=True):
        assert len(delta["put"]) >= min(size, 1)
        assert delta["more"] == (len(delta["put"]) < size)
