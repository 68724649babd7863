"""Two fabrics that have one name by mistake: who is not of the leader's takes no part."""

from __future__ import annotations

import pytest

from apps.cluster.fabric_check import FabricCheck
from apps.cluster.messages import Seen
from controller.cluster.keys import Leader
from controller.cluster.place import Course
from controller.cluster.strangers import REFUSED_S, TOLD_S

LEADER = Leader("a1", "run", 7, "")
THEIRS = frozenset({1, 2, 3})
OURS = frozenset({11, 12})


def seen(*, theirs: frozenset[int] = THEIRS, leader: Leader | None = LEADER, is_silent: bool = False) -> Seen:
    dpids = {"a1": theirs, "b1": OURS, "b2": frozenset({12, 13})}
    return Seen(leader, 7, ("a1", "b1", "b2"), is_silent, 1, dpids=dpids)


class Looking:
    """Controller b1, which looks ten times a second."""

    def __init__(self, logged: frozenset[int] = frozenset()) -> None:
        self.check = FabricCheck("hall", "b1", logged.__contains__)
        self.now = 100.0

    def look(
        self, for_s: float, seen: Seen, own: frozenset[int] = OURS, course: Course = Course.FOLLOWING
    ) -> list[tuple[str, float]]:
        """Return the kinds of what is told, and after what time."""
        begun_s, told = self.now, []
        while self.now < begun_s + for_s:
            found = self.check.look(own, seen, course, self.now)
            told += [(each.kind, round(self.now - begun_s, 1)) for each in found]
            self.now += 0.1
        return told


def test_one_that_follows_another_fabric_takes_no_part():
    looking = Looking()
    assert looking.look(60.0, seen()) == [
        ("member-apart", pytest.approx(TOLD_S, abs=0.2)),
        ("fabric-is-another", pytest.approx(REFUSED_S, abs=0.2)),
    ]
    assert looking.check.other_fabric == (
        "Fabric hall of the store is another one: a1 leads it, and none of the 2 switches of this controller is of "
        "it. This controller takes no part until it is started anew, with a name for its fabric that no other has "
        "(cluster.fabric)."
    )
    (problem,) = looking.check.problems()
    assert problem.startswith("a1 is connected to switches, and to none that this controller is connected to")


@pytest.mark.parametrize(
    ("case", "kinds"),
    [
        ({"own": OURS | {3}}, []),
        ({"own": frozenset()}, []),
        ({"seen": seen(theirs=frozenset())}, []),
        ({"seen": seen(is_silent=True)}, []),
        ({"seen": seen(leader=None)}, ["member-apart"]),
        ({"course": Course.LEADING}, ["member-apart"]),
    ],
    ids=["one in common", "none connected", "the leader has none", "silent store", "nobody leads", "it leads"],
)
def test_one_that_may_be_of_the_fabric_takes_part(case: dict[str, object], kinds: list[str]):
    looking = Looking()
    arguments = {"seen": seen(), **case}
    assert [kind for kind, _ in looking.look(60.0, **arguments)] == kinds  # type: ignore[arg-type]
    assert not looking.check.other_fabric


def test_a_switch_that_the_log_knows_is_of_the_fabric():
    looking = Looking(logged=frozenset({12}))
    assert [kind for kind, _ in looking.look(60.0, seen())] == ["member-apart"]
    assert not looking.check.other_fabric


def test_a_switch_in_common_begins_the_time_anew():
    looking = Looking()
    for _ in range(5):
        looking.look(REFUSED_S - 0.5, seen())
        looking.look(0.2, seen(), OURS | {3})
        assert not list(looking.check.problems())
    assert not looking.check.other_fabric


def test_one_that_is_to_take_over_the_log_of_another_fabric_takes_no_part():
    """The other fabric's controllers led before, and none of them runs."""
    looking = Looking()
    looking.check.logged = THEIRS
    assert not looking.check.is_log_of(OURS)
    alone = Seen(Leader("b1", "run", 8, ""), 8, ("b1",), False, 1, dpids={"b1": OURS})
    assert looking.look(60.0, alone, course=Course.TAKING_OVER) == [
        ("fabric-is-another", pytest.approx(REFUSED_S, abs=0.2))
    ]
    assert looking.check.other_fabric.startswith(
        "Fabric hall of the store is another one: its log has 3 switches, and none of the 2 switches of this"
    )


@pytest.mark.parametrize("logged", [frozenset[int](), frozenset({12, 40})], ids=["an empty log", "one in common"])
def test_one_whose_log_may_be_of_the_fabric_takes_it_over(logged: frozenset[int]):
    looking = Looking()
    looking.check.logged = logged
    assert looking.check.is_log_of(OURS)
    assert not looking.look(60.0, seen(theirs=frozenset()), course=Course.TAKING_OVER)
    assert not looking.check.other_fabric


def test_one_that_waits_for_switches_takes_a_log_over_when_one_of_it_connects():
    looking = Looking()
    looking.check.logged = THEIRS
    alone = seen(theirs=frozenset())
    for own in (frozenset[int](), OURS, frozenset[int](), OURS, OURS | {3}):
        assert not looking.look(REFUSED_S - 0.5, alone, own, Course.TAKING_OVER)
    assert looking.check.is_log_of(OURS | {3}) and not looking.check.other_fabric
