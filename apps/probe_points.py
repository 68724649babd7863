"""The points at which probes of a recording can look: what apps take and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from apps.registry import APPS
from controller import events
from controller.app_spec import CoreSpec
from controller.probes.points import PointCatalogue, ProbePoint
from controller.probes.value_kinds import fields_of, is_record
from controller.recording import kinds_of
from topology.events import TOPOLOGY_EVENTS


@cache
def recorded_points() -> PointCatalogue:
    """Return the points of all apps that are recorded."""
    return PointCatalogue(
        point for app, spec in APPS.items() if spec.core is not None for point in _points(app, spec.core())
    )


def _points(app: str, spec: CoreSpec) -> Iterator[ProbePoint]:
    if spec.records is None or spec.core is None:
        return
    taken = [kind for kind in kinds_of((events, *TOPOLOGY_EVENTS, *spec.records)) if is_record(kind)]
    parts = {part for kind in taken for field in fields_of(kind).values() for part in _records_in(field)}
    for kind in taken:
        if kind not in parts:
            yield ProbePoint(app, "event", kind)
    for kind in _members(get_type_hints(spec.core.handle)["return"]):
        if is_record(kind):
            yield ProbePoint(app, "effect", kind)


def _records_in(kind: Any) -> Iterator[type]:
    """Yield the types of records that values of a kind are, or are made of."""
    if kind.name == "record":
        yield from kind.of
    elif kind.name == "list":
        yield from _records_in(kind.of[0])


def _members(annotation: Any) -> Iterator[type]:
    """Yield the types that an annotation names, in lists and unions."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, list, tuple):
        for each in get_args(annotation):
            yield from _members(each)
