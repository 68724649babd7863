"""What operators ask of the running core, by name: JSON-able documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controller.multicast.stages import MulticastStages

VIEWS: Mapping[str, Callable[[MulticastStages], Any]] = {
    "status": lambda core: core.status_view.status(),
    "groups": lambda core: core.group_view.groups(),
    "rules": lambda core: core.sections.counted_rules(),
    "routers": lambda core: core.router_view.routers(),
}
