"""The OpenFlow apps: what `vsrt run`, recordings, checks, the demonstration and packages know of them.

The row of each stands beside its core, in the module `app` of a package of `controller`, and is found there; two rows
stand here. Nothing here loads the framework, and a core is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType

import controller
from controller.app_spec import AppSpec, CoreSpec

DASHBOARD = AppSpec("dashboard", "page and API", None, module="apps.dashboard.app", is_usual=True, rank=110)
"""The one app without a core."""


def _place_core() -> CoreSpec:
    from controller.cluster.place import PlaceCore
    from controller.events import DeadlineReached

    return CoreSpec(
        lambda policy, _at_s: {"lease_s": policy.cluster.lease_s},
        lambda start, _now, datapath: PlaceCore(start["lease_s"], datapath),
        lambda _policy: DeadlineReached(),
    )


CLUSTER = AppSpec("cluster", "which of several controllers leads", _place_core, module="apps.cluster.app", rank=90)
"""It stands here since a controller that is alone loads nothing of what several share."""


def find_apps() -> Iterator[AppSpec]:
    """Yield the rows that stand beside cores; packages without a row are not loaded."""
    for package in iter_modules(controller.__path__):
        folders = [str(Path(folder) / package.name) for folder in controller.__path__]
        if package.ispkg and PathFinder.find_spec("app", folders) is not None:
            yield import_module(f"{controller.__name__}.{package.name}.app").APP


APPS: Mapping[str, AppSpec] = MappingProxyType(
    {spec.name: spec for spec in sorted((*find_apps(), CLUSTER, DASHBOARD), key=lambda spec: (spec.rank, spec.name))}
)

TABLE_APPS = tuple(sorted(spec.name for spec in APPS.values() if spec.keeps_entries))
"""The apps that keep flow entries."""

USUAL_APPS = tuple(spec.name for spec in APPS.values() if spec.is_usual)
"""The apps that packages and containers run; they load what they need."""


def required_modules(name: str) -> list[str]:
    """Return the modules of the apps that are loaded with an app, as the framework asks for them."""
    return [APPS[needed].module_name for needed in APPS[name].needs]
