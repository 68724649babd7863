"""The errors at ports: the highest lately, those measured wholly since a time, and their bounds."""

from __future__ import annotations

import pytest

from controller.maintenance import errors as module
from controller.maintenance.errors import REMEMBERED_S, ErrorsMeasured, PortErrors, risen


def told(errors: PortErrors, now: float, *ports: tuple[int, int, float], switches: tuple[int, ...] = (1, 2)) -> None:
    errors.measured(ErrorsMeasured(switches, ports), now)


def test_the_highest_of_the_last_minutes_counts_and_is_forgotten() -> None:
    errors = PortErrors()
    told(errors, 10.0, (1, 3, 4.0))
    told(errors, 20.0, (1, 3, 0.0), (2, 7, 1.0), (2, 8, 9.0))
    assert errors.before(1, [(2, 7)]) == {(1, 3): 4.0, (2, 7): 1.0}
    told(errors, 20.0 + REMEMBERED_S, (2, 7, 0.0))
    assert errors.before(1, []) == {(1, 3): 4.0}
    told(errors, 20.0 + 2 * REMEMBERED_S)
    assert errors.before(1, []) == {}
    assert errors.before(2, []) == {(2, 7): 1.0, (2, 8): 9.0}, "of one it was not said that these are over"
    told(errors, 20.0 + 3 * REMEMBERED_S)
    assert errors.before(2, []) == {(2, 8): 9.0}


def test_what_is_known_since_a_time_was_counted_wholly_after_it() -> None:
    errors = PortErrors()
    told(errors, 10.0, (1, 3, 4.0))
    assert errors.since(1, [(2, 7)], 11.0) is None
    told(errors, 20.0, (1, 3, 5.0))
    assert errors.since(1, [(2, 7)], 11.0) is None, "what this poll counted began before"
    told(errors, 30.0, switches=(1,))
    assert errors.since(1, [(2, 7)], 11.0) is None, "the other end was not polled"
    assert errors.since(1, [], 11.0) == {(1, 3): 5.0}
    told(errors, 31.0, (2, 7, 0.5), switches=(2,))
    assert errors.since(1, [(2, 7)], 11.0) == {(1, 3): 5.0, (2, 7): 0.5}


def test_a_switch_that_was_away_is_measured_anew() -> None:
    errors = PortErrors()
    told(errors, 10.0)
    told(errors, 20.0)
    assert errors.is_measured(1)
    errors.forget(1)
    assert not errors.is_measured(1)
    told(errors, 30.0)
    assert errors.since(1, [], 25.0) == {}, "the first poll of a connection counts from the one before it"


def test_ports_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PORTS_BOUND", 2)
    errors = PortErrors()
    told(errors, 10.0, (1, 1, 1.0), (1, 2, 1.0), (1, 3, 1.0), (1, 1, 2.0))
    assert (errors.missed_count, errors.before(1, [])) == (1, {(1, 1): 2.0, (1, 2): 1.0})


def test_a_rise_is_that_of_the_port_where_it_is_greatest() -> None:
    before = {(1, 1): 4.0, (1, 2): 1.0}
    assert risen(before, {(1, 1): 4.1, (1, 2): 1.0}, 0.1) is None
    assert risen(before, {(1, 1): 4.5, (1, 2): 2.0, (2, 1): 0.3}, 0.1) == ((1, 2), 2.0, 1.0)
    assert risen(before, {}, 0.1) is None
