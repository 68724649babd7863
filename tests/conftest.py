from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from fewer_examples import divide_examples
from lanes import COMPUTING, WAITING, Lanes, give_way
from required import is_all_required
from second_tries import CHILDREN, let_try_again

# The same examples each time, however slow the machine; `--hypothesis-profile=explore` looks for new ones.
# Constants that Hypothesis reads out of the modules loaded so far would depend on the tests that ran before.
if hasattr(providers, "_get_local_constants"):
    NO_CONSTANTS = providers.Constants()
    providers._get_local_constants = lambda: NO_CONSTANTS
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

COLLECTOR_THRESHOLDS = (50_000, 20, 20)
EMULATION_TOOLS = ("ovs-vswitchd", "ovsdb-server", "mnexec", "ethtool", "tc", "setpriv", "vtysh", "igmpproxy")


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
    """Return tests in the order they run in: those that compute, then live ones, the longest modules first."""
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)

    def turn(module: list[pytest.Item]) -> int:
        return any(map(_is_live, module)) + any(map(_counts_packets, module))

    return [item for module in sorted(modules.values(), key=turn) for item in module]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let every emulation test run under each framework, and properties be tried with fewer examples."""
    text = "run each emulation test under Ryu and os-ken, where else tests take turns or keep to one of them"
    parser.addoption("--every-framework", action="store_true", help=text)
    text = "try each property with one of N of its examples; with all of them where it is 1, as it is by default"
    parser.addoption("--examples-divisor", type=int, default=1, metavar="N", help=text)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes | None:
    """Have some processes keep to live modules."""
    return Lanes(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let what holds no packets against the clock give way to what does; note where a module begins."""
    CHILDREN.begin(item.path)
    give_way(0 if _counts_packets(item) else WAITING if _is_live(item) else COMPUTING)
    return (yield)


def pytest_configure() -> None:
    """Keep what Python compiles, beside the sources and out of the repository: tests start hundreds of processes.

    What is imported and collected stays, and is not looked through for what may go. A shell starts what is in its
    background with SIGINT ignored; the processes that tests start, and end by SIGINT, would ignore it too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests into their order; say which are tried again, and which are skipped since they cannot run here."""
    items[:] = _in_turn(items)
    if (divisor := config.getoption("examples_divisor")) < 1:
        raise pytest.UsageError(f"--examples-divisor: {divisor} is not 1 or more")
    if divisor != 1:
        divide_examples(items, divisor)
    let_try_again(items)
    hindrance = _emulation_hindrance()
    if hindrance is None or is_all_required():
        return
    for item in filter(_is_live, items):
        item.add_marker(pytest.mark.skip(reason=hindrance))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was imported and collected, half a gigabyte that stays, out of Python's cyclic collections.

    These are fewer too: a test's objects are gone with it. What little of the half gigabyte nothing refers to any
    more stays as well, for to find it each process would look through all of the rest.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that was told to leave nothing out and did."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not is_all_required() or reporter is None:
        return
    skipped = reporter.stats.get("skipped", [])
    for report in skipped:
        reporter.ensure_newline()
        reporter.write_line(f"left out, where nothing may be: {report.nodeid}: {report.longrepr}", red=True)
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
