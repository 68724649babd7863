"""Values of the store, and archives, that make no sense: nobody who reads them ends by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from apps.cluster.shared_policy import read_record
from controller.cluster.archive import FORMAT, Archive, ArchiveInvalid, read_archive
from controller.cluster.keys import read_leader, read_present
from controller.cluster.share_records import read_manager, read_monitor, read_share

DEEP = "[" * 100_000
LEADER = {"member": "a", "incarnation": "b", "epoch": 1, "peer": ""}
MONITOR = {"incarnation": "a", "metrics": "", "switches": {}, "epoch": 1}
SHARE = {"owner": "a", "incarnation": "b", "former": "", "epoch": 1, "due_in_s": 1}
READERS = (read_leader, read_present, read_manager, read_monitor, read_share, read_record)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("text", [DEEP, "", "5", "null", "Infinity", "[NaN]", "{}", '{"epoch": 1e999}'])
def test_what_makes_no_sense_is_none(read: Callable[[str], Any], text: str):
    assert read(text) is None


@pytest.mark.parametrize("number", ["Infinity", "NaN", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("read", "value", "name"),
    [
        (read_leader, LEADER, "epoch"),
        (read_monitor, MONITOR, "epoch"),
        (read_share, SHARE, "epoch"),
        (read_share, SHARE, "due_in_s"),
    ],
)
def test_a_number_without_end_makes_no_sense(
    read: Callable[[str], Any], value: dict[str, Any], name: str, number: str
):
    text = json.dumps(value)
    assert read(text) is not None
    assert read(text.replace(f'"{name}": 1', f'"{name}": {number}')) is None


def test_a_switch_below_0_makes_no_sense():
    assert read_monitor(json.dumps({**MONITOR, "switches": {"-1": [1, 1]}})) is None


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        f'{{"format": "{FORMAT}", "records": 1, "fabric": "f", "revision": Infinity, "keys": {{}}}}',
        f'{{"format": "{FORMAT}", "records": 1, "fabric": "f", "revision": 1e999, "keys": {{}}}}',
        Archive("f", 1, {"a": "\ud800"}).text(),
        Archive("f", 1, {"\udfff": "a"}).text(),
    ],
)
def test_an_archive_that_makes_no_sense_is_refused(text: str):
    with pytest.raises(ArchiveInvalid):
        read_archive(text)
