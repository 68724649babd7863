"""What stands in the folders of a mounted controller."""

from __future__ import annotations

import json

import pytest

from apps.cli.mount_command import SECTIONS
from apps.dashboard.reads import STREAMED
from apps.mount import tree as tree_module
from apps.mount.tree import NAME_BYTES, MountedTree, NoEntry, content, file_name
from controller.snapshot.reader import Snapshot
from told_snapshot import told


def tree(snapshot: Snapshot) -> MountedTree:
    made = MountedTree(["drain", "static-member-add"])
    made.put(snapshot)
    return made


SWITCHES = {
    "3": {"dpid": 3, "tier": "tor", "name": None, "in_sync": True, "labels": {"pod": "2"}},
    "10": {"dpid": 10, "tier": "core\x1b[31m", "name": "s10", "in_sync": False, "labels": {}},
}


def test_sections_are_folders_of_documents_whose_fields_are_files() -> None:
    mounted = tree(told({"switches": SWITCHES, "status": {"status": {"ready": True, "counters": {"joins": 7}}}}))
    assert mounted.names([]) == ["connection", "do", "events", "status", "switches"]
    assert sorted(mounted.names(["switches"])) == ["10", "3"]
    assert set(mounted.names(["switches", "3"])) >= {"dpid", "tier", "name", "in_sync", "labels"}
    assert mounted.read(["switches", "3", "tier"]) == b"tor\n"
    assert mounted.read(["switches", "3", "name"]) == b""
    assert mounted.read(["switches", "10", "in_sync"]) == b"false\n"
    assert json.loads(mounted.read(["switches", "3", "labels"])) == {"pod": "2"}
    assert mounted.read(["status", "ready"]) == b"true\n", "a section of one document has its fields itself"
    assert mounted.names(["do"]) == ["answer", "drain", "static-member-add"]


@pytest.mark.parametrize(
    "path",
    [["x"], ["switches", "4"], ["switches", "3", "x"], ["switches", "3", "tier", "x"], ["do", "x"], ["status", "x"]],
)
def test_what_is_not_there_is_no_entry(path: list[str]) -> None:
    mounted = tree(told({"switches": SWITCHES, "status": {"status": {"ready": True}}}))
    with pytest.raises(NoEntry):
        mounted.is_folder(path)
    with pytest.raises(NoEntry):
        mounted.read(path)


def test_changes_are_seen_and_what_is_gone_is_gone() -> None:
    snapshot = told({"switches": SWITCHES})
    mounted = tree(snapshot)
    snapshot.section("switches").put("multicast", "3", {"dpid": 3, "tier": "core"}, 2)
    snapshot.section("switches").remove("multicast", "10", 2)
    mounted.put(snapshot)
    assert mounted.read(["switches", "3", "tier"]) == b"core\n"
    assert mounted.names(["switches"]) == ["3"]


def test_ids_of_the_network_are_names_in_a_folder() -> None:
    assert file_name("3/2") == "3%2F2"
    assert file_name("a%2Fb") == "a%252Fb"
    assert file_name("\x1b[31m\n") == "%1B[31m%0A"
    assert (file_name("."), file_name(".."), file_name("")) == ("%2E", "%2E%2E", "%")
    long, other = file_name("ä" * 300), file_name("ä" * 300 + "b")
    assert max(len(name.encode()) for name in (long, other)) <= NAME_BYTES
    assert long != other
    mounted = tree(told({"addresses": {"video/cam1": {"pool": "video"}}}))
    assert mounted.names(["addresses"]) == ["video%2Fcam1"]
    assert mounted.read(["addresses", "video%2Fcam1", "pool"]) == b"video\n"


def test_events_grow_in_the_order_of_their_times_each_once() -> None:
    snapshot = told({"events": {"multicast-9": {"time_s": 2, "text": "b"}, "monitor-10": {"time_s": 1, "text": "a"}}})
    mounted = tree(snapshot)
    before = mounted.read(["events"])
    assert [json.loads(line)["text"] for line in before.splitlines()] == ["a", "b"]
    snapshot.section("events").put("multicast", "multicast-11", {"time_s": 3, "text": "c"}, 2)
    snapshot.section("events").remove("multicast", "multicast-9", 2)
    mounted.put(snapshot)
    after = mounted.read(["events"])
    assert after.startswith(before), "what is gone from the section stays in the file"
    assert json.loads(after[len(before) :])["text"] == "c"
    assert not mounted.is_folder(["events"])


def test_the_file_of_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "EVENTS_BYTES", 1000)
    snapshot = Snapshot()
    mounted = tree(snapshot)
    for number in range(100):
        snapshot.section("events").put("multicast", f"m-{number}", {"time_s": number, "text": "x" * 20}, number + 1)
        mounted.put(snapshot)
        assert len(mounted.read(["events"])) <= 1000
    lines = mounted.read(["events"]).splitlines()
    assert json.loads(lines[-1])["time_s"] == 99
    assert [json.loads(line)["time_s"] for line in lines] == list(range(100 - len(lines), 100))


def test_text_is_as_it_is_and_all_else_is_json() -> None:
    assert content("a\nb") == b"a\nb\n"
    assert content([1, "ä"]) == '[1, "ä"]\n'.encode()
    assert content("\ud800") == b"?\n"


def test_all_is_followed_that_the_api_streams() -> None:
    assert set(SECTIONS) == set(STREAMED)
