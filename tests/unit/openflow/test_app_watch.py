"""Who looks at an app exchanges its methods while somebody looks, and they are the app's own before and after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from apps.openflow.app_watch import AppWatch
from controller.probes.static_points import DerivedFrom


class Asked(NamedTuple):
    number: int


class Told(NamedTuple):
    number: int


class Owner:
    """Notes what it takes, and performs an effect for each."""

    takes_events = True
    core = "the core"

    def __init__(self) -> None:
        self.noted: list[Any] = []

    def feed(self, event: Any) -> None:
        self.noted.append(event)
        self.perform((Told(event.number),))

    def perform(self, effects: Iterable[Any]) -> None:
        self.noted += effects


def test_watchers_see_what_their_types_are_before_the_owner_does():
    owner, seen = Owner(), []
    watched = AppWatch(owner)
    watched.watch("event", Asked, lambda event: seen.append(("event", event, len(owner.noted))))
    watched.watch("effect", Told, lambda effect: seen.append(("effect", effect, len(owner.noted))))
    owner.feed(Asked(1))
    owner.feed(Told(2))
    assert seen == [("event", Asked(1), 0), ("effect", Told(1), 1), ("effect", Told(2), 3)]
    assert owner.noted == [Asked(1), Told(1), Told(2), Told(2)]


def test_nothing_is_left_when_nobody_looks_any_more():
    owner = Owner()
    watched = AppWatch(owner)
    for _ in range(1000):
        first, second = (lambda event: None), (lambda event: None)
        ends = [watched.watch("event", Asked, each) for each in (first, second)]
        end_of_effects = watched.watch("effect", Told, first)
        assert {"feed", "perform"} <= set(vars(owner))
        ends[0]()
        assert "feed" in vars(owner)
        ends[1]()
        end_of_effects()
        assert set(vars(owner)) == {"noted"}
    assert owner.feed.__func__ is Owner.feed


def test_each_type_is_seen_as_long_as_somebody_looks_at_it():
    owner, seen = Owner(), list[Any]()
    watched = AppWatch(owner)
    ends = [watched.watch(what, kind, seen.append) for what in ("event", "effect") for kind in (Asked, Told)]
    kinds_seen = []
    for end in (*ends, None):
        seen.clear()
        owner.feed(Asked(1))
        owner.feed(Told(1))
        kinds_seen.append([type(each) for each in seen])
        if end is not None:
            end()
    assert kinds_seen == [[Asked, Told, Told, Told], [Told, Told, Told], [Told, Told], [Told, Told], []]


def test_what_the_owner_does_not_take_is_seen_by_nobody():
    owner, seen = Owner(), []
    AppWatch(owner).watch("event", Asked, seen.append)
    owner.takes_events = False
    owner.feed(Asked(1))
    owner.takes_events = True
    owner.feed(Asked(2))
    assert seen == [Asked(2)]


def test_what_the_owner_raises_passes():
    class Failing(Owner):
        def feed(self, event: Any) -> None:
            raise ValueError("no")

    owner, seen = Failing(), []
    AppWatch(owner).watch("event", Asked, seen.append)
    with pytest.raises(ValueError, match="no"):
        owner.feed(Asked(1))
    assert seen == [Asked(1)]


def test_what_is_derived_is_handed_over_and_a_fault_in_that_is_seen_by_nobody(caplog: pytest.LogCaptureFixture):
    def halves(event: Asked, core: Any) -> Iterable[Any]:
        yield core, 10 // event.number
        yield core, event.number

    owner, seen = Owner(), []
    sources = DerivedFrom("event", Asked, halves), DerivedFrom("effect", Told, lambda told, core: (told,))
    end = AppWatch(owner).watch_sources(sources, seen.append)
    for number in (2, 0, 0, 5):
        owner.feed(Asked(number))
    core = owner.core
    assert [each for each in seen if each[0] == core] == [(core, 5), (core, 2), (core, 2), (core, 5)]
    assert [each for each in seen if type(each) is Told] == [Told(2), Told(0), Told(0), Told(5)]
    assert [each for each in owner.noted if type(each) is Asked] == [Asked(2), Asked(0), Asked(0), Asked(5)]
    assert caplog.text.count("A point of Asked gives nothing") == 1
    end()
    assert not {"feed", "perform"} & set(vars(owner))
