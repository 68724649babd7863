"""The OpenFlow apps, a row each: what `vsrt run`, recordings, checks, the demonstration and packages know of them.

Nothing here loads the framework, and a core is loaded when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from controller.config.policy import Policy
    from controller.datapath.core import DatapathCore

Start: TypeAlias = Mapping[str, Any]
"""What a core is made of, by name: that is what a recording starts with."""

SECRET_BYTES = 32
"""Of the key by which discovery knows its own LLDP frames."""


class CoreSpec(NamedTuple):
    """How the core of an app is made, live or from a recording, and what it is told of another policy.

    Attributes
    ----------
    start
        Takes the policy and the time in seconds since 1970, and returns what the core is made of.
    make
        Takes that, the time in seconds of the clock that the core's events have, and what apps share of switches.
    changed
        Returns the event that tells the core of another policy.
    records
        The types, or modules of types, of its events and of what it is made of that no other app has. None where the
        app is not recorded: its events hold more than a line of text should.
    """

    start: Callable[[Policy, float], Start]
    make: Callable[[Start, float, DatapathCore | None], Any]
    changed: Callable[[Policy], Any]
    records: tuple[ModuleType | type, ...] | None = None


class AppSpec(NamedTuple):
    """One app.

    Attributes
    ----------
    name
        What it is called on command lines, in documents and recordings; its class is ``<Name>App``.
    says
        What it is for, in a few words.
    core
        Loads and returns how its core is made; None for an app without one.
    module
        The module that the framework loads, where it is not ``apps.<name>``.
    needs
        Apps that are loaded with it.
    keeps_entries
        Whether it keeps flow entries on switches: it then shares switches with the others of its kind.
    is_shown
        Whether operators see its notices, so that it may tell what befell a connection; the first such app does.
    is_usual
        Whether packages and containers run it.
    """

    name: str
    says: str
    core: Callable[[], CoreSpec] | None
    module: str = ""
    needs: tuple[str, ...] = ()
    keeps_entries: bool = False
    is_shown: bool = False
    is_usual: bool = False

    @property
    def module_name(self) -> str:
        """The module that the framework loads."""
        return self.module or f"apps.{self.name}"

    @property
    def file(self) -> str:
        """Its file, which ``ryu-manager`` is given."""
        return f"{self.module_name.replace('.', '/')}.py"

    def required_modules(self) -> list[str]:
        """Return the modules of the apps that are loaded with it, as the framework asks for them."""
        return [APPS[name].module_name for name in self.needs]


def _multicast() -> CoreSpec:
    from controller.log import LogEntry, LogEntryKind
    from controller.multicast import events
    from controller.multicast.core import MulticastCore

    return CoreSpec(
        lambda policy, _at_s: {"policy": policy},
        lambda start, now, datapath: MulticastCore(start["policy"], now, datapath),
        events.PolicyLoaded,
        (events, LogEntry, LogEntryKind),
    )


def _unicast() -> CoreSpec:
    from controller.unicast import settings
    from controller.unicast.core import UnicastCore

    return CoreSpec(
        lambda policy, _at_s: {"settings": settings.of_policy(policy)},
        lambda start, _now, datapath: UnicastCore(start["settings"], datapath),
        lambda policy: settings.UnicastChanged(settings.of_policy(policy)),
        (settings,),
    )


def _discovery() -> CoreSpec:
    from controller.discovery import settings
    from controller.discovery.core import DiscoveryCore
    from controller.discovery.journal import HostsFollowed, HostsRead

    return CoreSpec(
        lambda policy, _at_s: {"settings": settings.of_policy(policy), "secret": os.urandom(SECRET_BYTES)},
        lambda start, _now, datapath: DiscoveryCore(start["settings"], start["secret"], datapath),
        lambda policy: settings.DiscoveryChanged(settings.of_policy(policy)),
        (settings, HostsRead, HostsFollowed),
    )


def _monitor() -> CoreSpec:
    from controller.performance.poller import StatsReceived
    from controller.performance.poller_core import MonitorChanged, MonitorCore
    from controller.performance.shared_polls import SharedMonitorCore, SharesConfirmed, SharesLeft, SharesTaken

    def make(start: Start, now: float, _datapath: DatapathCore | None) -> MonitorCore:
        core = SharedMonitorCore if start["monitor"].share == "cluster" else MonitorCore
        return core(start["monitor"], now, start["at_s"])

    return CoreSpec(
        lambda policy, at_s: {"monitor": policy.monitor, "at_s": at_s},
        make,
        lambda policy: MonitorChanged(policy.monitor),
        (StatsReceived, MonitorChanged, SharesConfirmed, SharesLeft, SharesTaken),
    )


def _allocator() -> CoreSpec:
    from controller.allocation.events import AllocationChanged
    from controller.allocation.live import AllocatorCore

    return CoreSpec(
        lambda policy, _at_s: {"settings": policy.allocation},
        lambda start, _now, _datapath: AllocatorCore(start["settings"]),
        lambda policy: AllocationChanged(policy.allocation),
    )


def _queues() -> CoreSpec:
    from controller.queues.core import QueueCore
    from controller.queues.settings import QueuesChanged, of_policy

    return CoreSpec(
        lambda policy, _at_s: {"settings": of_policy(policy)},
        lambda start, now, _datapath: QueueCore(start["settings"], now),
        lambda policy: QueuesChanged(of_policy(policy)),
    )


def _anomaly() -> CoreSpec:
    from controller.anomaly.live import AnomalyCore
    from controller.anomaly.live_events import AnomalyChanged

    return CoreSpec(
        lambda policy, _at_s: {"settings": policy.anomaly, "poll_s": policy.monitor.longest_interval_s()},
        lambda start, _now, _datapath: AnomalyCore(start["settings"], start["poll_s"]),
        lambda policy: AnomalyChanged(policy.anomaly, policy.monitor.longest_interval_s()),
    )


def _alarms() -> CoreSpec:
    from controller.alarms import events
    from controller.alarms.core import AlarmCore
    from controller.alarms.known import Cable, End
    from controller.snapshot.events import Severity

    return CoreSpec(
        lambda policy, at_s: {"settings": policy.alarms, "topology": policy.topology, "at_s": at_s},
        lambda start, now, _datapath: AlarmCore(start["settings"], start["topology"], now, start["at_s"]),
        lambda policy: events.AlarmsChanged(policy.alarms, policy.topology),
        (events, Severity, Cable, End),
    )


def _cluster() -> CoreSpec:
    from controller.cluster.place import PlaceCore
    from controller.events import DeadlineReached

    return CoreSpec(
        lambda policy, _at_s: {"lease_s": policy.cluster.lease_s},
        lambda start, _now, datapath: PlaceCore(start["lease_s"], datapath),
        lambda _policy: DeadlineReached(),
    )


APPS: Mapping[str, AppSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            AppSpec(
                "multicast",
                "groups, their members, senders and trees",
                _multicast,
                needs=("discovery", "alarms"),
                keeps_entries=True,
                is_shown=True,
                is_usual=True,
            ),
            AppSpec(
                "unicast",
                "shortest paths between hosts",
                _unicast,
                needs=("discovery",),
                keeps_entries=True,
                is_usual=True,
            ),
            AppSpec("discovery", "switches, links and hosts", _discovery, keeps_entries=True),
            AppSpec("monitor", "what ports and links carry", _monitor, is_shown=True, is_usual=True),
            AppSpec("allocator", "proposes ports", _allocator, needs=("discovery",), is_usual=True),
            AppSpec("queues", "who waits at ports", _queues, needs=("discovery",), is_usual=True),
            AppSpec("anomaly", "ports unlike their peers", _anomaly, needs=("discovery",), is_usual=True),
            AppSpec("alarms", "what is wrong now", _alarms, needs=("discovery",)),
            AppSpec("cluster", "which of several controllers leads", _cluster, module="apps.cluster.app"),
            AppSpec("dashboard", "page and API", None, module="apps.dashboard.app", is_usual=True),
        )
    }
)

TABLE_APPS = tuple(sorted(spec.name for spec in APPS.values() if spec.keeps_entries))
"""The apps that keep flow entries."""

USUAL_APPS = tuple(spec.name for spec in APPS.values() if spec.is_usual)
"""The apps that packages and containers run; they load what they need."""
