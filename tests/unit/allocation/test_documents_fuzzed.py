"""Whatever stands in a document, it is answered or refused with a field: nothing else is raised."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.allocation.book import PortBook, PortStateError
from controller.allocation.documents import answer_paths, answer_pools, metric_of_state, read_paths, read_pools
from controller.allocation.fields import RequestError
from controller.allocation.plan import TooFewPathsError, plan
from controller.allocation.pools import choose_pool
from controller.allocation.request import answer, read_request
from controller.allocation.selection import TooFewPortsError, select
from controller.config.settings import Allocation

PORT = {"id": "a", "usage": 1, "volumes": 2, "connected": True, "components": {"pod": "x"}, "network": "f"}
DOCUMENTS: dict[str, Any] = {
    "request": {
        "levels": ["pod"],
        "ports": [PORT, {"id": "b", "usage": None}],
        "count": 1,
        "allow_fewer": False,
        "previously_allocated": ["a"],
        "used": {"pod": ["x"]},
        "affinity": {"level": "pod", "budget": {"x": 1}},
        "mode": "vipr",
    },
    "paths": {
        "levels": ["pod"],
        "networks": [{"name": "f", "ports": [PORT]}],
        "hosts": [{"name": "h", "initiators": [{"id": "i", "network": "f"}]}],
        "max_paths": 2,
        "min_paths": 1,
    },
    "pools": {
        "size_gb": 1,
        "arrays": [{"id": "x", "ports": [{"id": "a", "usage": 3, "network": "f", "components": {"pod": "x"}}]}],
        "pools": [{"id": "p", "array": "x", "free_gb": 4}],
    },
    "state": {
        "family": "vmax",
        "parameters": {"volume_ceiling": 3},
        "port_percent_busy": 5,
        "cpu_percent_busy": None,
    },
}


def stored() -> dict[str, Any]:
    book = PortBook(Allocation())
    book.add("a", "vmax", "cpu")
    return book.state()


DOCUMENTS["stored"] = stored()


def request(document: Any) -> Any:
    found = read_request(document)
    return answer(found.candidates, select(*found))


def paths(document: Any) -> Any:
    found = read_paths(document)
    return answer_paths(found, plan(*found))


def pools(document: Any) -> Any:
    found = read_pools(document)
    return answer_pools(found, choose_pool(*found))


def restore(document: Any) -> Any:
    book = PortBook(Allocation())
    book.restore(document)
    return book.state()


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "request": request,
    "paths": paths,
    "pools": pools,
    "state": metric_of_state,
    "stored": restore,
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "a", "x", "f", "pod", "vmax"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "pod", "a", "name"]), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a document, its own included."""
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    return [path, *(found for key, child in entries for found in places(child, (*path, key)))]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_are_good_as_they_are(name: str):
    json.dumps(ANSWERS[name](copy.deepcopy(DOCUMENTS[name])), allow_nan=False)


@given(st.data(), st.sampled_from(sorted(DOCUMENTS)), st.booleans())
def test_any_other_value_in_any_place_is_answered_or_refused(data: st.DataObject, name: str, drop: bool):
    document = copy.deepcopy(DOCUMENTS[name])
    path = data.draw(st.sampled_from(places(document)))
    if not path:
        document = data.draw(VALUES)
    else:
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        if drop:
            del holder[path[-1]]
        else:
            holder[path[-1]] = data.draw(VALUES)
    try:
        found = ANSWERS[name](document)
    except (RequestError, PortStateError) as error:
        assert ":" in str(error) or "." in str(error)
    except (TooFewPortsError, TooFewPathsError):
        pass
    else:
        json.dumps(found, allow_nan=False)


def test_no_ports_and_names_that_are_numbers():
    with pytest.raises(TooFewPortsError):
        request({"levels": ["pod"], "ports": [], "count": 1})
    assert request({"levels": [], "ports": [{"id": 7, "usage": 0}], "count": 1})["ports"] == [7]
    with pytest.raises(RequestError, match="id"):
        request({"levels": [], "ports": [{"id": True, "usage": 0}], "count": 1})
