"""The unicast app: shortest paths between hosts, beside multicast."""

from __future__ import annotations

import time
from typing import Any

from apps.openflow.app import FabricApp
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastSettings

_REQUIRED_APP = ["apps.discovery"]


class Unicast(FabricApp):
    """Feeds the unicast core."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        settings = UnicastSettings()
        self.core: UnicastCore = UnicastCore(settings)
        self.record(time.monotonic(), settings=settings)
