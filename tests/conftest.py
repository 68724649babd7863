from __future__ import annotations

import os
import shutil
import sys

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


def _is_live(item: pytest.Item) -> bool:
    return item.get_closest_marker("emulation") is not None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let every emulation test run under each framework."""
    text = "run emulation tests under Ryu and os-ken also where the framework has no part in what they test"
    parser.addoption("--every-framework", action="store_true", help=text)


def pytest_configure() -> None:
    """Keep what Python compiles, beside the sources and out of the repository: tests start hundreds of processes."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run emulation tests after all others, and skip them where they cannot run and nobody insists."""
    items.sort(key=_is_live)
    hindrance = _emulation_hindrance()
    if hindrance is None or os.environ.get("VSRT_REQUIRE_EMULATION"):
        return
    for item in items:
        if _is_live(item):
            item.add_marker(pytest.mark.skip(reason=hindrance))


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
