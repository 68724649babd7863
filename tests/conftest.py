from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, however slow the machine; `--hypothesis-profile=explore` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

EMULATION_TOOLS = ("ovs-vswitchd", "ovsdb-server", "mnexec", "ethtool", "tc", "setpriv")


def _emulation_hindrance() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    path = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
    missing = [tool for tool in EMULATION_TOOLS if shutil.which(tool, path=path) is None]
    return f"needs {', '.join(missing)}" if missing else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run emulation tests after all others, and skip them where they cannot run and nobody insists."""
    items.sort(key=lambda item: item.get_closest_marker("emulation") is not None)
    hindrance = _emulation_hindrance()
    if hindrance is None or os.environ.get("VSRT_REQUIRE_EMULATION"):
        return
    for item in items:
        if item.get_closest_marker("emulation") is not None:
            item.add_marker(pytest.mark.skip(reason=hindrance))
