"""The points at which probes can look: what cores take and what they ask for, live or in a recording.

Some are derived from these: they keep their names and arguments whatever becomes of the records behind them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from apps.registry import APPS, TABLE_APPS
from controller.config.policy import Policy
from controller.datapath.core import DatapathCore, OwnerTold
from controller.effects import ApplyEdits, RequestFlows, RequestResources, RequestRole, RoleDenied
from controller.events import BarrierReplied, FlowStatsReceived, OwnerLeft, ResourcesReceived, RoleReplied, RoleWanted
from controller.probes.points import PointCatalogue, ProbePoint
from controller.probes.static_points import OF_MULTICAST, POINT, STATIC_POINTS, DerivedFrom
from controller.probes.value_kinds import is_record
from controller.rules.pipeline import DATAPATH_XID_TAG

SHARED = "datapath"
"""Under this name stands what apps with flow entries share: what switches are sent, and what they confirm."""

MONITOR, MULTICAST, FABRIC = "monitor", "multicast", "fabric"
"""Two apps with points of their own; what the former reads is found under a name of its own."""

SHARED_EVENTS = frozenset(
    {BarrierReplied, FlowStatsReceived, OwnerLeft, ResourcesReceived, RoleReplied, RoleWanted},
)
SHARED_EFFECTS = frozenset({ApplyEdits, RequestFlows, RequestResources, RequestRole, RoleDenied})
"""What these apps neither take nor ask for themselves."""


@cache
def recorded_points() -> PointCatalogue:
    """Return the points of all apps that are recorded."""
    cores: dict[str, Any] = {SHARED: DatapathCore(DATAPATH_XID_TAG)}
    for name, app in APPS.items():
        spec = None if app.core is None else app.core()
        if spec is not None and spec.records is not None:
            start = dict(spec.start(Policy(), 0.0))
            if spec.secret_bytes:
                start["secret"] = bytes(spec.secret_bytes)
            cores[name] = spec.make(start, 0.0, None)
    return points_of(cores)


def points_of(cores: Mapping[str, Any]) -> PointCatalogue:
    """Return the points of cores by the names of their apps, `SHARED` for what apps share."""
    points = (point for app, core in cores.items() for point in _points(app, core))
    timed = [app for app in cores if app != SHARED]
    return PointCatalogue(points, SHARED, [app for app in TABLE_APPS if app in cores], timed)


def point_app(app: str, what: str, record: object) -> str:
    """Return under which app's name scripts find what an app takes or asks for.

    Apps without switches in common, as in recordings of one alone, have what would be shared under its name too.
    """
    shared = SHARED_EVENTS if what == "event" else SHARED_EFFECTS
    return SHARED if app in TABLE_APPS and type(record) in shared else app


def sources_of(point: ProbePoint) -> tuple[str, tuple[DerivedFrom, ...]]:
    """Return whose records a point is about, and from what it is derived; nothing where these are what it gives."""
    if point.what == POINT:
        return point.app, STATIC_POINTS[point.said].sources
    if point.app == FABRIC:
        from controller.probes.sample_points import SAMPLE_POINTS

        return MONITOR, SAMPLE_POINTS[point.said].sources
    return point.app, ()


def _points(app: str, core: Any) -> Iterator[ProbePoint]:
    events = frozenset[type](core.handlers)
    effects = SHARED_EFFECTS | {OwnerTold} if app == SHARED else asked_for(type(core))
    if app in TABLE_APPS:
        events, effects = events - SHARED_EVENTS, effects - SHARED_EFFECTS
    yield from (ProbePoint(app, "event", kind) for kind in events if is_record(kind))
    yield from (ProbePoint(app, "effect", kind) for kind in effects if is_record(kind))
    has = {("event", kind) for kind in events} | {("effect", kind) for kind in effects}
    for name, point in STATIC_POINTS.items():
        is_of_app = app == MULTICAST or name not in OF_MULTICAST
        if is_of_app and any((source.what, source.kind) in has for source in point.sources):
            yield ProbePoint(app, POINT, point.record, name)
    if app == MONITOR:
        from controller.probes.sample_points import SAMPLE, SAMPLE_POINTS

        yield from (ProbePoint(FABRIC, SAMPLE, point.record, name) for name, point in SAMPLE_POINTS.items())


def asked_for(core: type) -> frozenset[type]:
    """Return the types of what a core asks for; compiled ones have no annotations, and call these `Output`."""
    annotated = get_type_hints(core.handle).get("return")  # type: ignore[attr-defined]
    return frozenset(_members(sys.modules[core.__module__].Output if annotated is None else annotated))


def _members(annotation: Any) -> Iterator[type]:
    """Yield the types that an annotation names, in lists and unions."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        yield annotation
    elif get_origin(annotation) in (Union, UnionType, list, tuple):
        for each in get_args(annotation):
            yield from _members(each)
