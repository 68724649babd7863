"""The reader of the change feed against the writer's own log, and against answers that are no answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller.snapshot import reader
from controller.snapshot.log import DocumentLog, changes
from controller.snapshot.reader import FeedInvalid, Snapshot, natural_key

APPS = ("multicast", "monitor")
IDS = st.sampled_from([f"1:{number}" for number in range(6)])


def delta(version: int, put: dict[str, Any], remove: tuple[str, ...] = (), **more: bool) -> dict[str, Any]:
    return {"version": version, "whole": False, "put": put, "remove": list(remove), "more": False, **more}


def answer(epoch: str = "one", **sections: dict[str, Any]) -> dict[str, Any]:
    return {"epoch": epoch, "names": list(sections), "sections": sections}


def documents(snapshot: Snapshot, name: str = "ports") -> dict[str, Any]:
    return {id_: found.fields for id_, found in snapshot.section(name).documents.items()}


class Following(RuleBasedStateMachine):
    """Two apps change documents; a reader that asks now and then knows at the end what the first holds, merged."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, dict[str, dict[str, Any]]] = {app: {} for app in APPS}
        self.epoch = 0
        self.snapshot = Snapshot()
        self.mirror: dict[str, dict[str, Any]] = {}
        self.mirrored = 0
        self._open()

    def _open(self) -> None:
        self.sections = {app: DocumentLog(self.held[app].keys, self.held[app].get) for app in APPS}

    @rule(app=st.sampled_from(APPS), id_=IDS, value=st.none() | st.integers(0, 3), shared=st.none() | st.just("both"))
    def put(self, app: str, id_: str, value: int | None, shared: str | None) -> None:
        self.held[app][id_] = {"shared": shared, app: value}
        self.sections[app].touch(id_)

    @rule(app=st.sampled_from(APPS), id_=IDS)
    def remove(self, app: str, id_: str) -> None:
        if self.held[app].pop(id_, None) is not None:
            self.sections[app].touch(id_)

    @rule()
    def restart(self) -> None:
        self.epoch += 1
        self._open()

    @rule(limit=st.integers(1, 4))
    def ask_once(self, limit: int) -> None:
        self._ask(limit)

    def _ask(self, limit: int) -> bool:
        question = self.snapshot.question()
        fresh = question.get("epoch") != str(self.epoch)
        asked = question["changes"].get("ports")
        sections = {}
        if asked is not None:
            seen = {} if fresh or asked == 0 else asked
            sections["ports"] = {
                app: changes({"ports": section}, {"ports": seen.get(app, 0)}, limit)["ports"]
                for app, section in self.sections.items()
            }
        return self.snapshot.apply({"epoch": str(self.epoch), "names": ["ports"], "sections": sections})

    @rule(limit=st.integers(1, 4))
    def catch_up(self, limit: int) -> None:
        while self._ask(limit):
            pass
        wanted: dict[str, Any] = {}
        for id_, fields in self.held["multicast"].items():
            added = self.held["monitor"].get(id_, {})
            known = {name: value for name, value in fields.items() if value is not None}
            wanted[id_] = {"id": id_, **fields, **added, **known}
        assert documents(self.snapshot) == wanted

    @rule()
    def mirror_changes(self) -> None:
        """Who follows the reader by differences knows what it knows."""
        difference = self.snapshot.section("ports").since(self.mirrored)
        if difference is None:
            self.mirror = documents(self.snapshot)
        else:
            for id_ in difference.removed:
                self.mirror.pop(id_, None)
            self.mirror.update((found.id, found.fields) for found in difference.put)
        self.mirrored = self.snapshot.version
        assert self.mirror == documents(self.snapshot)

    @invariant()
    def every_document_says_its_id(self) -> None:
        assert all(found["id"] == id_ for id_, found in documents(self.snapshot).items())


TestFollowing = Following.TestCase


def test_a_reader_asks_for_all_sections_from_the_versions_it_has() -> None:
    snapshot = Snapshot()
    assert snapshot.question() == {"changes": {}}
    assert snapshot.apply({"epoch": "one", "names": ["ports"], "sections": {}})
    assert snapshot.question() == {"changes": {"ports": 0}, "epoch": "one"}
    snapshot.apply(answer(ports={"monitor": delta(7, {"1:1": {"rx_bps": 1}}, whole=True)}))
    assert snapshot.question() == {"changes": {"ports": {"monitor": 7}}, "epoch": "one"}


def test_an_app_that_a_new_process_has_not_takes_its_fields_with_it() -> None:
    snapshot = Snapshot()
    snapshot.tell("status", "status", {"own": 1})
    both = {
        "multicast": delta(1, {"status": {"ready": True}}, whole=True),
        "monitor": delta(1, {"status": {"polls": 2}}, whole=True),
    }
    snapshot.apply(answer(status=both))
    assert documents(snapshot, "status") == {"status": {"id": "status", "own": 1, "ready": True, "polls": 2}}
    snapshot.apply({"epoch": "two", "names": ["status"], "sections": {}})
    assert "polls" in documents(snapshot, "status")["status"]
    failed = answer("two", status={"multicast": delta(1, {}, whole=True)}) | {"errors": {"monitor": "TimeoutError"}}
    snapshot.apply(failed)
    assert "polls" in documents(snapshot, "status")["status"]
    snapshot.apply(answer("two", status={"multicast": delta(1, {})}))
    assert documents(snapshot, "status") == {"status": {"id": "status", "own": 1}}


def test_what_others_tell_of_a_switch_that_its_owner_has_not_is_no_document() -> None:
    snapshot = Snapshot()
    polled = {"1": {"dpid": 1, "up": True}, "2": {"dpid": 2, "up": False}}
    snapshot.apply(answer(switches={"monitor": delta(1, polled, whole=True)}))
    assert set(documents(snapshot, "switches")) == {"1", "2"}
    version = snapshot.version
    there = {"1": {"dpid": 1, "connected": True, "up": None}}
    snapshot.apply(answer(switches={"monitor": delta(1, {}), "multicast": delta(1, there, whole=True)}))
    assert documents(snapshot, "switches") == {
        "1": {"id": "1", "dpid": 1, "dpid_hex": "0000000000000001", "connected": True, "up": True}
    }
    assert snapshot.section("switches").since(version).removed == ["2"]
    snapshot.apply(answer(switches={"multicast": delta(2, {}, ("1",)), "monitor": delta(2, {"1": {"up": False}})}))
    assert documents(snapshot, "switches") == {}
    snapshot.apply(answer(switches={"multicast": delta(3, there)}))
    assert documents(snapshot, "switches")["1"]["up"] is False


def test_where_the_owner_does_not_run_any_more_the_next_one_decides() -> None:
    snapshot = Snapshot()
    both = {
        "multicast": delta(1, {}, whole=True),
        "monitor": delta(1, {"1:1": {"rx_bps": 2}}, whole=True),
    }
    snapshot.apply(answer(ports=both))
    assert documents(snapshot) == {}
    snapshot.apply(answer("two", ports={"monitor": delta(1, {"1:1": {"rx_bps": 2}}, whole=True)}))
    assert documents(snapshot) == {"1:1": {"id": "1:1", "rx_bps": 2}}


def test_who_has_missed_too_many_removals_is_given_the_whole_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_TOMBSTONES", 2)
    snapshot = Snapshot()
    for number in range(4):
        put = delta(number, {str(number): {}})
        snapshot.apply(answer(hosts={"multicast": put}))
    before = snapshot.version
    snapshot.apply(answer(hosts={"multicast": delta(9, {}, ("0", "1"))}))
    section = snapshot.section("hosts")
    assert section.since(before) == ([], ["1", "0"])
    snapshot.apply(answer(hosts={"multicast": delta(9, {}, ("2",))}))
    assert section.since(before) is None


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"error": "ask with one line of JSON"},
        {"epoch": 1, "names": [], "sections": {}},
        {"epoch": "one", "names": "ports", "sections": {}},
        {"epoch": "one", "names": [], "sections": []},
        {"epoch": "one", "names": [], "sections": {"ports": []}},
        {"epoch": "one", "names": [], "sections": {"ports": {"monitor": 1}}},
        {"epoch": "one", "names": [], "sections": {"ports": {"monitor": {"version": 1, "put": [], "remove": []}}}},
        {"epoch": "one", "names": [], "sections": {"ports": {"monitor": {"version": 1, "put": {}, "remove": "x"}}}},
        {"epoch": "one", "names": [], "sections": {"ports": {"monitor": {"version": "1", "put": {}, "remove": []}}}},
        {
            "epoch": "one",
            "names": [],
            "sections": {"ports": {"monitor": {"version": 1, "put": {"a": 1}, "remove": []}}},
        },
    ],
)
def test_what_is_no_answer_of_a_feed_is_told(wrong: Any) -> None:
    with pytest.raises(FeedInvalid):
        Snapshot().apply(wrong)


@given(st.lists(st.integers(0, 300), min_size=2, max_size=2), st.lists(st.integers(0, 300), min_size=2, max_size=2))
def test_ids_sort_by_their_numbers(one: list[int], other: list[int]) -> None:
    first, second = (":".join(map(str, numbers)) for numbers in (one, other))
    assert (natural_key(first) < natural_key(second)) == (one < other)
