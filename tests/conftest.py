from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, however slow the machine; `--hypothesis-profile=explore` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

COLLECTOR_THRESHOLDS = (5_000, 20, 20)
EMULATION_TOOLS = ("ovs-vswitchd", "ovsdb-server", "mnexec", "ethtool", "tc", "setpriv")


def _emulation_hindrance() -> str | None:
    if os.geteuid() != 0:
        return "needs root"
    path = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
    missing = [tool for tool in EMULATION_TOOLS if shutil.which(tool, path=path) is None]
    return f"needs {', '.join(missing)}" if missing else None


def _is_live(item: pytest.Item) -> bool:
    return item.get_closest_marker("emulation") is not None


def _counts_packets(item: pytest.Item) -> bool:
    return _is_live(item) and item.get_closest_marker("unhurried") is None


def _in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return tests in the order they run in: those that hold packets against the clock after all others.

    Modules that mostly wait are spread evenly over those that compute, so that these have the processors meanwhile.
    """
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    live = [module for module in modules.values() if any(map(_counts_packets, module))]
    others = [module for module in modules.values() if not any(map(_counts_packets, module))]
    waiting = [module for module in others if any(map(_is_live, module))]
    computing = [module for module in others if not any(map(_is_live, module))]
    places = [(at / len(waiting), 0, module) for at, module in enumerate(waiting)]
    places += [(at / len(computing), 1, module) for at, module in enumerate(computing)]
    places.sort(key=lambda place: place[:2])
    return [item for module in [*(module for _, _, module in places), *live] for item in module]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let every emulation test run under each framework."""
    text = "run emulation tests under Ryu and os-ken also where the framework has no part in what they test"
    parser.addoption("--every-framework", action="store_true", help=text)


def pytest_configure() -> None:
    """Keep what Python compiles, beside the sources and out of the repository: tests start hundreds of processes."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run most emulation tests after all others, and skip them where they cannot run and nobody insists."""
    items[:] = _in_turn(items)
    hindrance = _emulation_hindrance()
    if hindrance is None or os.environ.get("VSRT_REQUIRE_EMULATION"):
        return
    for item in items:
        if _is_live(item):
            item.add_marker(pytest.mark.skip(reason=hindrance))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was imported and collected, half a gigabyte that stays, out of Python's cyclic collections.

    These are fewer too: a test's objects are gone with it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that was told to leave nothing out and did."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("VSRT_REQUIRE_EMULATION") or reporter is None:
        return
    skipped = reporter.stats.get("skipped", [])
    for report in skipped:
        reporter.ensure_newline()
        reporter.write_line(f"left out, where nothing may be: {report.nodeid}: {report.longrepr}", red=True)
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
