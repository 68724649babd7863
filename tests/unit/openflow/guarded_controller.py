"""A controller under os-ken whose cores tell when another thread than their app's loop touches them.

    python guarded_controller.py PORT APP...

Cores and the parts they are made of are watched from the moment their app is made: a line ``TOUCHED`` goes to
standard error for each place from which one is reached elsewhere than on the loop of its app, or before that begins
on the thread that makes the apps. Threads take turns as often as they can.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import sys
import threading
import traceback
from typing import Any

from apps.end_signals import EndSignals
from apps.openflow import framework
from apps.openflow.app import App
from apps.registry import APPS

LOOPS: dict[int, Any] = {}
"""By the id of a core or a part of one: its app."""

KEPT: list[Any] = []
"""Keeps them, so that no id is used twice."""

TOLD: set[str] = set()


def tell(part: Any, name: str) -> None:
    place = "".join(traceback.format_stack(sys._getframe(2), limit=6))
    if place not in TOLD:
        TOLD.add(place)
        found = f"TOUCHED {type(part).__name__}.{name} on {threading.current_thread().name}\n{place}"
        os.write(2, found.encode())


def watched(kind: type[Any]) -> type[Any]:
    def reach(self: Any, name: str) -> Any:
        app = LOOPS.get(id(self))
        if app is not None and app.keeper != threading.get_ident() and name != "__class__":
            tell(self, name)
        return kind.__getattribute__(self, name)

    return type(kind.__name__, (kind,), {"__slots__": (), "__getattribute__": reach})


def watch(part: Any, app: Any) -> None:
    """Watch an object of the cores' modules and all that its attributes lead to."""
    kind = type(part)
    ours = kind.__module__.startswith(("controller.", "topology."))
    frozen = dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen
    if id(part) in LOOPS or not ours or frozen or isinstance(part, (tuple, enum.Enum, type)) or callable(part):
        return
    names = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if name != "__weakref__"]
    values = [getattr(part, name, None) for name in (*names, *getattr(part, "__dict__", ()))]
    try:
        part.__class__ = watched(kind)
    except TypeError:
        return
    LOOPS[id(part)] = app
    KEPT.append(part)
    for value in values:
        watch(value, app)


def guard(app: Any) -> None:
    app.keeper = threading.main_thread().ident  # apps made later share parts with it
    watch(app.core, app)
    join = app._join

    def join_loop() -> None:
        app.keeper = threading.get_ident()
        join()

    app._join = join_loop


def main() -> None:
    sys.setswitchinterval(1e-6)
    port, *names = sys.argv[1:]
    guard_apps()
    framework.configure("127.0.0.1", int(port))
    with EndSignals() as signals:
        framework.run_apps([APPS[name].module_name for name in names], signals)


def guard_apps() -> None:
    """Guard each app as the framework makes it."""
    manager = framework.app_manager.AppManager
    instantiate = manager._instantiate

    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        app = instantiate(self, *args, **kwargs)
        if isinstance(app, App):
            guard(app)
            os.write(2, f"guarded {app.name}: {sum(found is app for found in LOOPS.values())} objects\n".encode())
        return app

    manager._instantiate = guarded


if __name__ == "__main__":
    main()
