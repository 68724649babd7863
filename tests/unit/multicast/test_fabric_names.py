"""What fabrics are called, and what is told of them, without a controller around it."""

from __future__ import annotations

import pytest

from controller.config.policy import NamedFabric
from controller.multicast.fabric_names import TOLD_SWITCHES, FabricNames
from topology.fabrics import Fabrics
from topology.graph import Graph, NodeKind


class Parts:
    """Switches and the links between them, and what they are called."""

    def __init__(self, count: int, *named: NamedFabric) -> None:
        self.graph = Graph()
        self.fabrics = Fabrics(self.graph)
        self.names = FabricNames(self.fabrics, named)
        for dpid in range(1, count + 1):
            self.graph.add_node(dpid, NodeKind.TOR)
            self.fabrics.switch_added(dpid)

    def link(self, dpid: int, other: int) -> None:
        self.graph.add_link(dpid, other)
        self.fabrics.linked(dpid, other)

    def cut(self, dpid: int, other: int) -> None:
        self.graph.remove_link(dpid, other)
        self.fabrics.unlinked(dpid, other)

    def told(self, is_starting: bool = False) -> list[tuple[str, str, dict[str, object]]]:
        return [(kind, text, dict(fields)) for kind, text, fields in self.names.changes(is_starting)]


def chain(count: int, *named: NamedFabric) -> Parts:
    """Return switches 1 to `count`, each linked to the next one; what there was to tell of them has been told."""
    parts = Parts(count, *named)
    for dpid in range(1, count):
        parts.link(dpid, dpid + 1)
    parts.told(is_starting=True)
    return parts


def test_all_names_of_one_fabric_are_idle_but_the_first_of_the_file_and_each_is_told_once() -> None:
    parts = chain(4, NamedFabric("b", (9, 2)), NamedFabric("a", (4,)), NamedFabric("c", (1,)), NamedFabric("d", (8,)))
    assert {parts.names.name_at(dpid) for dpid in (1, 2, 3, 4)} == {"b"}
    assert list(parts.names.idle_names()) == [("b", "a"), ("b", "c")]
    assert parts.told() == []
    parts.names.use((NamedFabric("b", (2,)), NamedFabric("c", (1,)), NamedFabric("e", (3,))))
    (found,) = parts.told()
    assert found == (
        "fabric-named-twice",
        "The names b and e of the policy file are of one fabric: it is called b.",
        {},
    )


def test_a_name_that_was_idle_is_told_of_again_when_it_is_idle_again() -> None:
    parts = chain(2, NamedFabric("a", (1,)), NamedFabric("b", (2,)))
    parts.cut(1, 2)
    parts.told()
    parts.link(1, 2)
    assert [kind for kind, _, _ in parts.told()] == ["fabric-joined", "fabric-named-twice"]


def test_a_switch_that_is_not_there_has_no_name() -> None:
    parts = chain(2, NamedFabric("a", (3,)))
    assert parts.names.name_at(1) is None
    assert parts.names.name_at(3) is None


def test_fabrics_without_names_that_are_joined_are_named_by_their_lowest_switches_in_order() -> None:
    parts = Parts(6, NamedFabric("z", (5,)))
    parts.told()
    parts.link(2, 6)
    parts.link(6, 5)
    parts.link(5, 3)
    text = "Fabric z, the fabric of switch 2, the fabric of switch 3 and the fabric of switch 6 are one now"
    assert parts.told() == [("fabric-joined", f"{text}, as a link joins them: it is fabric z.", {"dpid": 2})]
    assert parts.told() == []


def test_a_join_at_the_start_is_not_told_later_either() -> None:
    parts = Parts(2)
    parts.told(is_starting=True)
    parts.link(1, 2)
    assert parts.told(is_starting=True) == []
    assert parts.told() == []


@pytest.mark.parametrize("cut_off", [1, 2, TOLD_SWITCHES, TOLD_SWITCHES + 1, TOLD_SWITCHES + 3])
def test_the_lowest_switches_of_a_part_that_was_cut_off_are_named(cut_off: int) -> None:
    size = 36
    parts = chain(size, NamedFabric("a", (1,)))
    first = size - cut_off + 1
    parts.cut(first - 1, first)
    named = [f"switch {dpid}" for dpid in range(first, size + 1)]
    more = named[TOLD_SWITCHES:]
    if more:
        named[TOLD_SWITCHES:] = []
        listed = f"{', '.join(named[:-1])} and {named[-1]} and {len(more)} more"
    else:
        listed = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    text = f"No link joins {listed} to the rest of fabric a any more: this is the fabric of switch {first} now."
    assert parts.told() == [("fabric-split", text, {"dpid": first})]


def test_the_part_that_keeps_the_name_is_the_rest_however_small_it_is() -> None:
    parts = chain(5, NamedFabric("a", (1,)))
    parts.cut(1, 2)
    assert [fields for _, _, fields in parts.told()] == [{"dpid": 2}]
    assert parts.names.name_at(1) == "a"


def test_the_largest_part_is_the_rest_where_none_keeps_the_name() -> None:
    parts = chain(6, NamedFabric("a", (3,)))
    parts.graph.remove_link(2, 3)
    parts.graph.remove_link(3, 4)
    parts.graph.remove_node(3)
    parts.fabrics.switch_removed(3, (2, 4))
    (found,) = parts.told()
    text = "No link joins switch 1 and switch 2 to the rest of fabric a any more: this is the fabric of switch 1 now."
    assert found == ("fabric-split", text, {"dpid": 1})


def test_a_switch_that_was_away_is_no_longer_of_what_it_was_of_before() -> None:
    parts = chain(3)
    parts.cut(2, 3)
    parts.told()
    parts.fabrics.switch_removed(3, ())
    assert parts.told() == []
    parts.fabrics.switch_added(3)
    parts.link(2, 3)
    assert parts.told() == [], "it has a link from its first moment, and joins nothing as a fabric of its own"
