"""A log of changes that has become long: what is written anew, and that nobody forgets how the fabric is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.change_recorder import bound_log, known_changes


def line(number: int, resource: str, new: str) -> str:
    change = {"time": float(number), "resource": resource, "type": "port", "property": "vlan", "old": "", "new": new}
    return json.dumps(change) + "\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A port that is set once, one that is set and gone, and one that changes a thousand times."""
    path = tmp_path / "changes.jsonl"
    texts = [line(0, "1:1", "10"), line(1, "1:2", "20"), line(2, "1:2", "")]
    path.write_text("".join([*texts, *(line(number, "1:3", str(number)) for number in range(3, 1003))]))
    return path


def test_a_short_log_stays_as_it_is(log: Path) -> None:
    before = log.read_bytes()
    assert not bound_log(log, len(before))
    assert log.read_bytes() == before


def test_of_a_long_one_the_newest_half_stays_and_what_is_still_set(log: Path) -> None:
    known = {resource: settings for resource, settings in known_changes(log).items() if settings["vlan"]}
    bound_bytes = log.stat().st_size - 1
    assert bound_log(log, bound_bytes)
    assert known_changes(log) == known
    rows = [json.loads(text) for text in log.read_text().splitlines()]
    assert rows[0]["resource"] == "1:1", "what is set for long comes first"
    numbers = [row["time"] for row in rows]
    assert numbers == sorted(numbers) and numbers[-1] == 1002.0
    assert 0.4 * bound_bytes < log.stat().st_size < 0.6 * bound_bytes
    assert not bound_log(log, bound_bytes)


def test_a_long_log_that_cannot_be_written_anew_stays_as_it_is(log: Path) -> None:
    before = log.read_bytes()
    log.with_name(f"{log.name}.new").mkdir()
    with pytest.raises(OSError, match=r"directory|permitted"):
        bound_log(log, 100)
    assert log.read_bytes() == before
